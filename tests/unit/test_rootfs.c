#include "tests/unit/test.h"

#include <fcntl.h>
#include <sys/vfs.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/rootfs.h"
#include "tests/unit/own-mounts.h"

static const struct spec with_mounts = {.namespaces[NS_MOUNT] = {.given = true}};

static char here[128];

/* A root with a file in "bundle/rootfs". */
static int open_root(void)
{
	struct err e = {0};
	int fd;

	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(mkdir("bundle", 0755), 0);
	assert_int_equal(mkdir("bundle/rootfs", 0755), 0);
	assert_int_equal(mkdir("bundle/rootfs/dir", 0755), 0);
	put("bundle/rootfs/file", "", 0644);
	fd = rootfs_open("bundle", "rootfs", &e);
	if (fd < 0)
		fail_msg("%s", e.text);
	return fd;
}

static void refuse_without_namespace(int top)
{
	struct spec s = {0};
	struct err e = {0};
	int fd = open_root();

	(void)top;
	assert_int_equal(rootfs_attach(fd, &s, &e), -1);
	assert_string_equal(e.text, "a root can be made in a new mount namespace only");
	assert_int_equal(rootfs_open("bundle", "rootfs/file", &e), -1);
	assert_int_equal(rootfs_open("bundle", "nothing", &e), -1);
	assert_int_equal(rootfs_open("nothing", "rootfs", &e), -1);
}

TEST(a_root_needs_a_mount_namespace_and_a_folder)
{
	with_own_mounts(refuse_without_namespace);
}

static void enter(bool no_pivot, bool readonly)
{
	struct spec s = with_mounts;
	struct err e = {0};
	int fd = open_root();

	s.root_readonly = readonly;
	if (rootfs_attach(fd, &s, &e) < 0 || rootfs_pivot(fd, &s, no_pivot, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(access("/file", F_OK), 0);
	assert_int_equal(access(here, F_OK), -1);
	assert_int_equal(chdir("../.."), 0);
	assert_int_equal(access("file", F_OK), 0);
	assert_int_equal(mkdir("/new", 0755), readonly ? -1 : 0);
}

static void enter_by_pivot(int top)
{
	(void)top;
	enter(false, true);
}

static void enter_by_chroot(int top)
{
	(void)top;
	enter(true, false);
}

TEST(the_root_is_all_there_is_after_pivot_root)
{
	with_own_mounts(enter_by_pivot);
}

TEST(the_root_is_all_there_is_after_chroot)
{
	with_own_mounts(enter_by_chroot);
}

/* CVE-2024-21626: a descriptor of a folder outside as working directory. */
static void change_out(int top)
{
	struct spec s = with_mounts;
	struct err e = {0};
	char path[64];
	int fd = open_root();

	assert_int_equal(mkdir("outside", 0755), 0);
	top = sys_open("outside", O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(mkdir("bundle/rootfs/proc", 0755), 0);
	assert_int_equal(rootfs_attach(fd, &s, &e), 0);
	assert_int_equal(rootfs_pivot(fd, &s, false, &e), 0);
	assert_int_equal(sys_mount("proc", "/proc", "proc", 0, NULL), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", top);
	assert_int_equal(rootfs_chdir(path, &e), -1);
	if (rootfs_chdir("/dir", &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(rootfs_chdir("/file", &e), -1);
}

TEST(a_working_directory_is_inside)
{
	with_own_mounts(change_out);
}

RUN_TESTS(cmocka_unit_test(a_root_needs_a_mount_namespace_and_a_folder),
	cmocka_unit_test(the_root_is_all_there_is_after_pivot_root),
	cmocka_unit_test(the_root_is_all_there_is_after_chroot),
	cmocka_unit_test(a_working_directory_is_inside))
