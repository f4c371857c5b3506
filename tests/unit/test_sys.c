#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sys.h"

static int make_dir(char *path)
{
	assert_non_null(mkdtemp(path));
	return sys_open(path, O_RDONLY | O_DIRECTORY, 0);
}

TEST(beneath_and_in_root_do_not_leave_the_folder)
{
	char path[] = "/tmp/svrun-test-XXXXXX";
	auto_fd int dir = make_dir(path);

	assert_int_equal(sys_symlinkat("/etc/passwd", dir, "abs"), 0);
	assert_int_equal(sys_symlinkat("../../../etc/passwd", dir, "up"), 0);
	assert_int_equal(sys_open_beneath(dir, "abs", O_RDONLY, 0), -1);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(sys_open_beneath(dir, "../x", O_RDONLY, 0), -1);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(sys_open_in_root(dir, "abs", O_RDONLY, 0), -1);
	assert_int_equal(errno, ENOENT); /* looked for inside */
	assert_int_equal(sys_open_in_root(dir, "up", O_RDONLY, 0), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
}

TEST(removing_a_tree_does_not_follow_links)
{
	char path[] = "/tmp/svrun-test-XXXXXX", other[] = "/tmp/svrun-test-XXXXXX";
	auto_fd int dir = make_dir(path);
	auto_fd int kept = make_dir(other);
	struct stat st;

	assert_int_equal(file_write(kept, "file", "x", 1, 0644, NULL), 0);
	assert_int_equal(sys_mkdir_p(dir, "a/b/c", 0755), 0);
	assert_int_equal(sys_symlinkat(other, dir, "a/b/link"), 0);
	assert_int_equal(sys_remove_tree(dir, "a"), 0);
	assert_int_equal(sys_fstatat(dir, "a", &st, 0), -1);
	assert_int_equal(sys_fstatat(kept, "file", &st, 0), 0);
	assert_int_equal(sys_remove_tree(dir, "a"), 0); /* not there is fine */
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
	assert_int_equal(sys_remove_tree(AT_FDCWD, other), 0);
}

/* Deeper than a process may have descriptors, as a container can make it. */
TEST(removing_a_tree_works_at_any_depth)
{
	enum { DEPTH = 3000 };
	char path[] = "/tmp/svrun-test-XXXXXX";
	auto_fd int dir = make_dir(path);
	int at = dup(dir);
	struct rlimit old, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){256, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);

	assert_int_equal(sys_mkdirat(dir, ".deep.0", 0755), 0); /* a name that may be in the way */
	assert_int_equal(file_write(dir, ".deep.1", "x", 1, 0644, NULL), 0);
	for (int i = 0; i < DEPTH; i++) {
		int next;

		assert_int_equal(sys_mkdirat(at, "x", 0755), 0);
		assert_int_equal(file_write(at, "file", "x", 1, 0644, NULL), 0);
		next = sys_openat(at, "x", O_PATH | O_DIRECTORY, 0);
		close(at);
		at = next;
	}
	close(at);
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

TEST(a_published_file_appears_whole_and_a_read_has_a_ceiling)
{
	char path[] = "/tmp/svrun-test-XXXXXX", tmp[64];
	auto_fd int dir = make_dir(path);
	auto_fd int fd = file_tmp(dir, tmp, 0600, NULL);
	auto_buf struct buf b = BUF_INIT(5), small = BUF_INIT(4);
	struct err e = {0};

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, "hello", 5), 0);
	assert_int_equal(file_publish(dir, fd, tmp, "x", false, NULL), 0);
	assert_int_equal(file_read(dir, "x", &b, NULL), 0);
	assert_string_equal(b.data, "hello");
	assert_int_equal(file_read(dir, "x", &small, &e), -1);
	assert_string_equal(e.text, "x: longer than the limit of 4 bytes");
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
}

/* Process ids come again: after a boot, in a container. */
TEST(what_a_killed_process_left_is_in_nobodys_way)
{
	char path[] = "/tmp/svrun-test-XXXXXX", name[64];
	auto_fd int dir = make_dir(path);
	auto_buf struct buf b = BUF_INIT(100);

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), ".tmp.%d.%d", (int)getpid(), i);
		assert_int_equal(file_write(dir, name, "old", 3, 0644, NULL), 0);
	}
	assert_int_equal(file_write(dir, "x", "new", 3, 0644, NULL), 0);
	assert_int_equal(file_write(dir, "x", "newer", 5, 0644, NULL), 0);
	assert_int_equal(file_read(dir, "x", &b, NULL), 0);
	assert_string_equal(b.data, "newer");
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
}

TEST(processes_that_write_one_file_do_not_meet)
{
	enum { PROCESSES = 8, TIMES = 50 };
	char path[] = "/tmp/svrun-test-XXXXXX";
	auto_fd int dir = make_dir(path);
	auto_buf struct buf b = BUF_INIT(100);
	int status;

	for (int p = 0; p < PROCESSES; p++)
		if (fork() == 0) {
			for (int i = 0; i < TIMES; i++)
				if (file_write(dir, "x", "whole", 5, 0644, NULL) < 0)
					_exit(1);
			_exit(0);
		}
	for (int p = 0; p < PROCESSES; p++) {
		wait(&status);
		assert_int_equal(status, 0);
	}
	assert_int_equal(file_read(dir, "x", &b, NULL), 0);
	assert_string_equal(b.data, "whole");
	assert_int_equal(sys_unlinkat(dir, "x", 0), 0);
	assert_int_equal(sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR), 0); /* nothing is left */
}

TEST(removing_a_tree_works_from_a_folder_of_another_file_system)
{
	char path[] = "/dev/shm/svrun-test-XXXXXX", cwd[4096];
	auto_fd int dir = make_dir(path);

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(sys_mkdir_p(dir, "a/b", 0755), 0);
	assert_int_equal(chdir("/proc"), 0);
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
	assert_int_equal(chdir(cwd), 0);
	assert_int_equal(sys_fstatat(AT_FDCWD, path, &(struct stat){0}, 0), -1);
}

/* gpg-agent takes its sockets away while a test removes its folder. */
TEST(two_that_remove_one_tree_do_not_stumble_over_each_other)
{
	char path[] = "/tmp/svrun-test-XXXXXX", name[32];
	auto_fd int dir = make_dir(path);
	int status;

	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "%d/a", i);
		assert_int_equal(sys_mkdir_p(dir, name, 0755), 0);
	}
	for (int p = 0; p < 2; p++)
		if (fork() == 0)
			_exit(sys_remove_tree(AT_FDCWD, path) < 0 && errno != ENOENT);
	for (int p = 0; p < 2; p++) {
		wait(&status);
		assert_int_equal(status, 0);
	}
	assert_int_equal(sys_fstatat(AT_FDCWD, path, &(struct stat){0}, 0), -1);
}

RUN_TESTS(cmocka_unit_test(removing_a_tree_works_from_a_folder_of_another_file_system),
	cmocka_unit_test(two_that_remove_one_tree_do_not_stumble_over_each_other),
	cmocka_unit_test(processes_that_write_one_file_do_not_meet),
	cmocka_unit_test(beneath_and_in_root_do_not_leave_the_folder),
	cmocka_unit_test(removing_a_tree_does_not_follow_links),
	cmocka_unit_test(removing_a_tree_works_at_any_depth),
	cmocka_unit_test(what_a_killed_process_left_is_in_nobodys_way),
	cmocka_unit_test(a_published_file_appears_whole_and_a_read_has_a_ceiling))
