/* For tests that mount: a child in a mount namespace of its own, in an empty tmpfs. */
#ifndef OWN_MOUNTS_H
#define OWN_MOUNTS_H

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

enum { CHILD_DONE = 77 };

/* Run fn in it, with the tmpfs's folder opened. It asserts, and fails the test by not getting to
 * its end. */
static inline void with_own_mounts(void (*fn)(int top))
{
	char path[] = "/tmp/svrun-unit-XXXXXX";
	int status, top;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(path));
	pid = fork();
	if (pid == 0) {
		umask(0);
		assert_int_equal(unshare(CLONE_NEWNS), 0);
		assert_int_equal(sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
		assert_int_equal(sys_mount("t", path, "tmpfs", 0, "mode=755"), 0);
		top = sys_open(path, O_PATH | O_DIRECTORY, 0);
		assert_true(top >= 0);
		assert_int_equal(fchdir(top), 0);
		fn(top);
		_exit(CHILD_DONE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rmdir(path);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), CHILD_DONE);
}

static inline void put(const char *path, const char *text, mode_t mode)
{
	int fd = sys_open(path, O_CREAT | O_EXCL | O_WRONLY, mode);

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

#endif
