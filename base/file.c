#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

int file_read_fd(int fd, const char *name, struct buf *b, struct err *e)
{
	for (;;) {
		size_t room = b->max - b->len;
		ssize_t n;

		if (room > 64 * 1024)
			room = 64 * 1024;
		if (room == 0) { /* full: only the end of the file is fine now */
			char c;

			n = sys_read(fd, &c, 1);
			if (n == 0)
				break;
			return n < 0 ? err_sys(e, "read %s", name)
				     : err_set(e, ERR_CORRUPT,
					       "%s: longer than the limit of %zu bytes", name,
					       b->max);
		}
		if (buf_reserve(b, room, e) < 0)
			return -1;
		n = sys_read(fd, b->data + b->len, room);
		if (n < 0)
			return err_sys(e, "read %s", name);
		if (n == 0)
			break;
		b->len += (size_t)n;
	}
	return buf_reserve(b, 0, e); /* ends it with a NUL */
}

int file_read(int dirfd, const char *path, struct buf *b, struct err *e)
{
	auto_fd int fd = sys_openat(dirfd, path, O_RDONLY, 0);

	if (fd < 0)
		return err_sys(e, "open %s", path);
	return file_read_fd(fd, path, b, e);
}

/* The next name for a temporary file. Process ids come again (after a boot, in a container), so
 * what a killed process left may have it: on EEXIST there is another one. */
static void tmp_name(char *tmp, size_t size, const char *dir)
{
	static atomic_uint counter;

	snprintf(tmp, size, "%s.tmp.%ld.%u", dir, (long)getpid(), atomic_fetch_add(&counter, 1));
}

/* A file with a name of its own, where there are none without. */
static int named_tmp(int dirfd, const char *dir, char *tmp, size_t size, mode_t mode)
{
	for (;;) {
		int fd;

		tmp_name(tmp, size, dir);
		fd = sys_openat(dirfd, tmp, O_RDWR | O_CREAT | O_EXCL, mode);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
}

static bool has_no_tmpfile(void)
{
	return errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT;
}

static int link_fd(int fd, int dirfd, const char *path)
{
	char proc[64];

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return sys_linkat(AT_FDCWD, proc, dirfd, path, AT_SYMLINK_FOLLOW);
}

/* A file without a name takes the place of path by way of a name of its own: writers of one path
 * must not meet, and a kill leaves something only between these two calls. */
static int replace(int fd, int dirfd, const char *dir, const char *path)
{
	char tmp[4400];

	for (;;) {
		tmp_name(tmp, sizeof(tmp), dir);
		if (link_fd(fd, dirfd, tmp) == 0)
			break;
		if (errno != EEXIST)
			return -1;
	}
	if (sys_renameat(dirfd, tmp, dirfd, path) == 0)
		return 0;
	{
		int saved = errno;

		sys_unlinkat(dirfd, tmp, 0);
		errno = saved;
	}
	return -1;
}

int file_write(int dirfd, const char *path, const void *p, size_t n, mode_t mode, struct err *e)
{
	char dir[4096], tmp[4400];
	const char *slash = strrchr(path, '/');
	size_t dirlen = slash ? (size_t)(slash - path) + 1 : 0;
	bool named = false;
	int rc;

	if (dirlen >= sizeof(dir)) {
		errno = ENAMETOOLONG;
		return err_sys(e, "write %s", path);
	}
	memcpy(dir, path, dirlen);
	dir[dirlen] = '\0';

	auto_fd int fd = sys_openat(dirfd, dirlen ? dir : ".", O_TMPFILE | O_RDWR, mode);

	if (fd < 0 && has_no_tmpfile()) {
		named = true;
		fd = named_tmp(dirfd, dir, tmp, sizeof(tmp), mode);
	}
	if (fd < 0) {
		err_sys(e, "create a file beside %s", path);
		return dirlen ? -1 : sys_hint_space(e, dirfd, n);
	}
	rc = sys_write_all(fd, p, n) < 0 || sys_fsync(fd) < 0 ? -1
	     : named ? sys_renameat(dirfd, tmp, dirfd, path)
		     : replace(fd, dirfd, dir, path);
	if (rc < 0) {
		err_sys(e, "write %s", path);
		sys_hint_space(e, fd, n);
		if (named)
			sys_unlinkat(dirfd, tmp, 0);
	}
	return rc;
}

int file_tmp(int dirfd, char tmp[64], mode_t mode, struct err *e)
{
	int fd = sys_openat(dirfd, ".", O_TMPFILE | O_RDWR, mode);

	tmp[0] = '\0';
	if (fd < 0 && has_no_tmpfile())
		fd = named_tmp(dirfd, "", tmp, 64, mode);
	if (fd < 0) {
		err_sys(e, "create a temporary file");
		return sys_hint_space(e, dirfd, 0);
	}
	return fd;
}

int file_publish(int dirfd, int fd, const char *tmp, const char *path, struct err *e)
{
	int rc;

	if (sys_fdatasync(fd) < 0) {
		err_sys(e, "sync %s", path);
		return sys_hint_space(e, fd, 0);
	}
	if (tmp[0]) {
		rc = sys_renameat(dirfd, tmp, dirfd, path);
	} else {
		rc = link_fd(fd, dirfd, path);
		if (rc < 0 && errno == EEXIST)
			rc = 0;
	}
	return rc < 0 ? err_sys(e, "publish %s", path) : 0;
}

int file_replace(int dirfd, int fd, const char *tmp, const char *path, struct err *e)
{
	if (sys_fdatasync(fd) < 0) {
		err_sys(e, "sync %s", path);
		return sys_hint_space(e, fd, 0);
	}
	if (tmp[0] ? sys_renameat(dirfd, tmp, dirfd, path) < 0 : replace(fd, dirfd, "", path) < 0)
		return err_sys(e, "write %s", path);
	return 0;
}
