#include "tests/unit/test.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/mount-point.h"

/* A root in a temporary folder, and beside it a place that nothing may reach. */
struct place {
	char path[64];
	int top, root;
	struct own_mounts own;
};

static void place_init(struct place *p)
{
	*p = (struct place){.path = "/tmp/svrun-point-XXXXXX"};
	assert_non_null(mkdtemp(p->path));
	p->top = sys_open(p->path, O_PATH | O_DIRECTORY, 0);
	assert_int_equal(sys_mkdirat(p->top, "root", 0755), 0);
	assert_int_equal(sys_mkdirat(p->top, "outside", 0755), 0);
	p->root = sys_openat(p->top, "root", O_PATH | O_DIRECTORY, 0);
	assert_int_equal(own_mounts_add(&p->own, p->root, NULL), 0);
}

static void place_fini(struct place *p)
{
	close(p->root);
	close(p->top);
	assert_int_equal(sys_remove_tree(AT_FDCWD, p->path), 0);
}

static void link_to(struct place *p, const char *target, const char *name)
{
	assert_int_equal(sys_symlinkat(target, p->root, name), 0);
}

static void expect_at(struct place *p, const char *asked, enum point_kind kind, const char *there)
{
	struct err e = {0};
	struct stat a, b;
	int fd = mount_point(p->root, asked, kind, false, &p->own, &e);

	if (fd < 0)
		fail_msg("%s: %s", asked, e.text);
	assert_int_equal(sys_fstat(fd, &a), 0);
	if (sys_fstatat(p->root, there, &b, AT_SYMLINK_NOFOLLOW) < 0 || a.st_ino != b.st_ino)
		fail_msg("%s did not lead to %s", asked, there);
	close(fd);
}

static void refuse(struct place *p, const char *asked, bool no_links, const char *text)
{
	struct err e = {0};
	int fd = mount_point(p->root, asked, POINT_DIR, no_links, &p->own, &e);

	assert_int_equal(fd, -1);
	if (!str_eq(e.text, text))
		fail_msg("%s: expected '%s', got '%s'", asked, text, e.text);
}

static bool is_empty(struct place *p, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", p->path, name);
	return rmdir(path) == 0 && mkdir(path, 0755) == 0;
}

TEST(what_is_missing_is_made_in_the_root)
{
	struct place p;

	place_init(&p);
	expect_at(&p, "/a/b/c", POINT_DIR, "a/b/c");
	expect_at(&p, "//a//b/d/", POINT_DIR, "a/b/d");
	expect_at(&p, "/a/file", POINT_FILE, "a/file");
	expect_at(&p, "/a/b/../file", POINT_FILE, "a/file");
	place_fini(&p);
}

TEST(links_lead_nowhere_but_into_the_root)
{
	struct place p;

	place_init(&p);
	assert_int_equal(sys_mkdirat(p.root, "run", 0755), 0);
	link_to(&p, "/run", "abs");
	link_to(&p, "../../../../run", "up");
	link_to(&p, "../outside", "out");
	expect_at(&p, "/abs/x", POINT_DIR, "run/x");
	expect_at(&p, "/up/y", POINT_DIR, "run/y");
	expect_at(&p, "/out/z", POINT_DIR, "outside/z"); /* root/outside: made, in here */
	assert_true(is_empty(&p, "outside"));
	place_fini(&p);
}

TEST(a_link_to_nowhere_gets_its_target_made)
{
	struct place p;

	place_init(&p);
	assert_int_equal(sys_mkdirat(p.root, "etc", 0755), 0);
	link_to(&p, "../run/resolve/stub.conf", "etc/resolv.conf");
	expect_at(&p, "/etc/resolv.conf", POINT_FILE, "run/resolve/stub.conf");
	place_fini(&p);
}

TEST(links_in_circles_end)
{
	struct place p;
	char text[256];

	place_init(&p);
	link_to(&p, "b", "a");
	link_to(&p, "a", "b");
	snprintf(text, sizeof(text), "/a/x: Too many levels of symbolic links");
	refuse(&p, "/a/x", false, text);
	link_to(&p, "c1/x", "c1");
	refuse(&p, "/c1", false, "/c1: Too many levels of symbolic links");
	place_fini(&p);
}

TEST(places_of_kernel_file_systems_may_not_be_links)
{
	struct place p;

	place_init(&p);
	assert_int_equal(sys_mkdirat(p.root, "elsewhere", 0755), 0);
	link_to(&p, "elsewhere", "proc");
	link_to(&p, "nowhere", "sys");
	refuse(&p, "/proc", true, "/proc in the root is a link, not a directory");
	refuse(&p, "/sys", true, "/sys in the root is a link, not a directory");
	refuse(&p, "/sys/fs/cgroup", true, "/sys/fs/cgroup in the root is a link, not a directory");
	place_fini(&p);
}

TEST(the_wrong_kind_of_thing_is_an_error)
{
	struct place p;
	int fd;

	place_init(&p);
	fd = sys_openat(p.root, "file", O_CREAT | O_WRONLY, 0644);
	close(fd);
	refuse(&p, "/file", false, "/file in the root is not a directory");
	refuse(&p, "/file/x", false, "/file/x: part of it is not a directory");
	assert_int_equal(sys_mkdirat(p.root, "dir", 0755), 0);
	assert_int_equal(mount_point(p.root, "/dir", POINT_FILE, false, &p.own, NULL), -1);
	place_fini(&p);
}

/* Swap root/a, a folder, with root/b, a link out of the root, until killed. */
static pid_t start_swapper(struct place *p)
{
	pid_t pid;

	assert_int_equal(sys_mkdirat(p->root, "a", 0755), 0);
	link_to(p, "../outside", "b");
	pid = fork();
	while (pid == 0)
		if (syscall(SYS_renameat2, p->root, "a", p->root, "b", RENAME_EXCHANGE) < 0)
			_exit(1);
	return pid;
}

TEST(a_name_that_is_swapped_for_a_link_meanwhile_never_leads_outside)
{
	enum { TRIES = 10000 };
	struct stat outside, st;
	struct place p;
	pid_t swapper;
	int status;

	place_init(&p);
	swapper = start_swapper(&p);
	assert_int_equal(sys_fstatat(p.top, "outside", &outside, 0), 0);
	for (int i = 0; i < TRIES; i++) {
		struct err e = {0};
		int fd = mount_point(
			p.root, i % 2 ? "/a" : "/a/new", POINT_DIR, i % 4 == 3, &p.own, &e);

		if (fd < 0)
			continue; /* it lost the race, and says so */
		assert_int_equal(sys_fstat(fd, &st), 0);
		assert_int_not_equal(st.st_ino, outside.st_ino);
		close(fd);
	}
	assert_int_equal(kill(swapper, SIGKILL), 0);
	assert_int_equal(waitpid(swapper, &status, 0), swapper);
	assert_true(WIFSIGNALED(status));
	assert_true(is_empty(&p, "outside"));
	place_fini(&p);
}

/* Volumes are mounts: in a child, in a mount namespace of its own. "vol" is one, with a folder
 * "in", a link "link" to that and one to nowhere; the root has links into it. */
static void volume_init(struct place *p)
{
	static const char *const links[][2] = {{"in", "vol/link"}, {"nowhere", "vol/dangling"},
		{"/vol/in", "deep"}, {"/vol", "top"}, {"/vol/gone", "gone"}};
	char path[96];

	if (unshare(CLONE_NEWNS) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		fail_msg("no mount namespace");
	snprintf(path, sizeof(path), "%s/root", p->path); /* the mount of this namespace */
	p->root = sys_open(path, O_PATH | O_DIRECTORY, 0);
	p->own.n = 0;
	assert_int_equal(own_mounts_add(&p->own, p->root, NULL), 0);
	snprintf(path, sizeof(path), "%s/root/vol", p->path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(sys_mount("t", path, "tmpfs", 0, NULL), 0);
	assert_int_equal(sys_mkdirat(p->root, "vol/in", 0755), 0);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		link_to(p, links[i][0], links[i][1]);
}

/* Run fn in a child; it asserts, and fails the test by not getting to the end. */
static void in_child(void (*fn)(struct place *p))
{
	struct place p;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	place_init(&p);
	pid = fork();
	if (pid == 0) {
		volume_init(&p);
		fn(&p);
		_exit(77);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 77);
	place_fini(&p);
}

static void make_in_volume(struct place *p)
{
	expect_at(p, "/vol", POINT_DIR, "vol");
	expect_at(p, "/vol/new", POINT_DIR, "vol/new");
	expect_at(p, "/vol/in/a/b", POINT_DIR, "vol/in/a/b");
	expect_at(p, "/vol/in/file", POINT_FILE, "vol/in/file");
	/* A link to the volume as a whole has no say in where inside of it. */
	expect_at(p, "/top/other", POINT_DIR, "vol/other");
	/* What is there is found over any link. */
	expect_at(p, "/deep", POINT_DIR, "vol/in");
	expect_at(p, "/vol/link/a", POINT_DIR, "vol/in/a");
}

TEST(in_a_volume_the_missing_is_made_where_no_link_leads_to_it)
{
	in_child(make_in_volume);
}

static void make_over_links(struct place *p)
{
	static const char *const paths[] = {
		"/vol/link/new", "/deep/new", "/deep/a/b", "/vol/dangling", "/gone", "/gone/x"};
	struct stat st;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct err e = {0};

		assert_int_equal(mount_point(p->root, paths[i], POINT_DIR, false, &p->own, &e), -1);
		if (e.kind != ERR_DENIED || !strstr(e.text, "a link leads to it into a volume"))
			fail_msg("%s: %s", paths[i], e.text);
	}
	assert_int_equal(sys_fstatat(p->root, "vol/in/new", &st, 0), -1);
	assert_int_equal(sys_fstatat(p->root, "vol/gone", &st, 0), -1);
	assert_int_equal(sys_fstatat(p->root, "vol/nowhere", &st, 0), -1);
}

TEST(nothing_is_made_in_a_volume_over_a_link)
{
	in_child(make_over_links);
}

static void make_in_readonly(struct place *p)
{
	struct err e = {0};
	char path[96];

	snprintf(path, sizeof(path), "%s/root/vol", p->path);
	assert_int_equal(sys_mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	assert_int_equal(mount_point(p->root, "/vol/new", POINT_DIR, false, &p->own, &e), -1);
	assert_string_equal(e.text, "make /vol/new: Read-only file system");
}

TEST(a_read_only_volume_stays_as_it_is)
{
	in_child(make_in_readonly);
}

RUN_TESTS(cmocka_unit_test(what_is_missing_is_made_in_the_root),
	cmocka_unit_test(links_lead_nowhere_but_into_the_root),
	cmocka_unit_test(a_link_to_nowhere_gets_its_target_made),
	cmocka_unit_test(links_in_circles_end),
	cmocka_unit_test(places_of_kernel_file_systems_may_not_be_links),
	cmocka_unit_test(the_wrong_kind_of_thing_is_an_error),
	cmocka_unit_test(a_name_that_is_swapped_for_a_link_meanwhile_never_leads_outside),
	cmocka_unit_test(in_a_volume_the_missing_is_made_where_no_link_leads_to_it),
	cmocka_unit_test(nothing_is_made_in_a_volume_over_a_link),
	cmocka_unit_test(a_read_only_volume_stays_as_it_is))
