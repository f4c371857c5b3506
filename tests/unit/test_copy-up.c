#include "tests/unit/test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/copy-up.h"
#include "tests/unit/own-mounts.h"

static int copy(int top, struct err *e)
{
	auto_fd int from = sys_openat(top, "from", O_PATH | O_DIRECTORY, 0);
	auto_fd int to = sys_openat(top, "to", O_PATH | O_DIRECTORY, 0);

	return copy_up(from, to, e);
}

static void folders(void)
{
	assert_int_equal(mkdir("from", 0755), 0);
	assert_int_equal(mkdir("to", 0755), 0);
}

static void same(const char *name)
{
	char a[64], b[64];
	struct stat x, y;

	snprintf(a, sizeof(a), "from/%s", name);
	snprintf(b, sizeof(b), "to/%s", name);
	assert_int_equal(lstat(a, &x), 0);
	if (lstat(b, &y) < 0)
		fail_msg("%s is missing", name);
	if (x.st_mode != y.st_mode || x.st_uid != y.st_uid || x.st_gid != y.st_gid ||
		x.st_rdev != y.st_rdev || (!S_ISDIR(x.st_mode) && x.st_size != y.st_size) ||
		(S_ISREG(x.st_mode) && x.st_mtime != y.st_mtime))
		fail_msg("%s differs", name);
}

static void copy_all_kinds(int top)
{
	static const char *const names[] = {"file", "dir", "dir/link", "dir/pipe", "zero"};
	struct sockaddr_un a = {AF_UNIX, "from/sock"};
	const struct timespec times[2] = {{1000, 0}, {2000, 0}};
	struct err e = {0};
	char value[8];
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	folders();
	put("from/file", "text", 0644);
	assert_int_equal(chown("from/file", 7, 8), 0);
	assert_int_equal(chmod("from/file", 06711), 0);
	assert_int_equal(setxattr("from/file", "trusted.x", "value", 5, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, "from/file", times, 0), 0);
	assert_int_equal(mkdir("from/dir", 0), 0);
	assert_int_equal(chmod("from/dir", 03751), 0);
	assert_int_equal(symlink("../../nowhere", "from/dir/link"), 0);
	assert_int_equal(lchown("from/dir/link", 3, 4), 0);
	assert_int_equal(mkfifo("from/dir/pipe", 0640), 0);
	assert_int_equal(mknod("from/zero", S_IFCHR | 0604, makedev(1, 5)), 0);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(chown("from", 1, 2), 0);
	if (copy(top, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		same(names[i]);
	assert_int_equal(getxattr("to/file", "trusted.x", value, sizeof(value)), 5);
	assert_int_equal(access("to/sock", F_OK), -1);
	same("");
	close(s);
}

TEST(all_kinds_of_files_are_copied_but_sockets)
{
	with_own_mounts(copy_all_kinds);
}

static void copy_over_mounts(int top)
{
	struct err e = {0};

	folders();
	assert_int_equal(mkdir("from/vol", 0700), 0);
	assert_int_equal(sys_mount("t", "from/vol", "tmpfs", 0, "mode=700"), 0);
	put("from/vol/secret", "x", 0600);
	if (copy(top, &e) < 0)
		fail_msg("%s", e.text);
	same("vol");
	assert_int_equal(rmdir("to/vol"), 0); /* and empty */
}

TEST(what_is_mounted_in_it_is_not_copied)
{
	with_own_mounts(copy_over_mounts);
}

static void copy_links_out(int top)
{
	struct err e = {0};

	folders();
	assert_int_equal(mkdir("outside", 0755), 0);
	assert_int_equal(symlink("../outside", "from/dir"), 0);
	put("outside/x", "x", 0600);
	if (copy(top, &e) < 0)
		fail_msg("%s", e.text);
	same("dir");
	/* A folder that is there already, as a link: nothing goes through it. */
	assert_int_equal(unlink("from/dir"), 0);
	assert_int_equal(mkdir("from/dir", 0755), 0);
	put("from/dir/y", "y", 0600);
	assert_int_equal(copy(top, &e), -1);
	assert_string_equal(e.text, "dir: File exists");
	assert_int_equal(access("outside/y", F_OK), -1);
}

TEST(links_are_copied_not_followed)
{
	with_own_mounts(copy_links_out);
}

static void copy_too_much(int top)
{
	struct err e = {0};
	int dir, next;

	folders();
	dir = sys_openat(top, "from", O_PATH, 0);
	for (int i = 0; i <= COPY_UP_DEPTH_MAX; i++) {
		assert_int_equal(sys_mkdirat(dir, "d", 0755), 0);
		next = sys_openat(dir, "d", O_PATH, 0);
		close(dir);
		dir = next;
	}
	close(dir);
	assert_int_equal(copy(top, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	assert_true(str_ends(e.text, "d: d: tmpcopyup: more than 64 folders deep"));
	assert_int_equal(sys_remove_tree(top, "from"), 0);
	assert_int_equal(sys_remove_tree(top, "to"), 0);
	folders();
	put("from/file", "", 0600);
	for (int i = 0; i < COPY_UP_FILES_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "from/%d", i);
		assert_int_equal(link("from/file", name), 0);
	}
	e = (struct err){0};
	assert_int_equal(copy(top, &e), -1);
	assert_string_equal(e.text, "tmpcopyup: more than 65536 files");
}

TEST(there_is_a_limit_to_depth_and_number)
{
	with_own_mounts(copy_too_much);
}

RUN_TESTS(cmocka_unit_test(all_kinds_of_files_are_copied_but_sockets),
	cmocka_unit_test(what_is_mounted_in_it_is_not_copied),
	cmocka_unit_test(links_are_copied_not_followed),
	cmocka_unit_test(there_is_a_limit_to_depth_and_number))
