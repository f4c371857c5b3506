#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"

int file_read_fd(int fd, const char *name, struct buf *b, struct err *e)
{
	enum { STEP = 64 * 1024 };

	for (;;) {
		size_t room = b->max - b->len < STEP ? b->max - b->len : STEP;
		char beyond;
		ssize_t n;

		if (room && buf_reserve(b, room, e) < 0)
			return -1;
		/* full: only the end of the file is fine now */
		n = room ? sys_read(fd, b->data + b->len, room) : sys_read(fd, &beyond, 1);
		if (n < 0)
			return err_sys(e, "read %s", name);
		if (n == 0)
			return buf_reserve(b, 0, e); /* ends it with a NUL */
		if (!room)
			return err_set(e, ERR_CORRUPT, "%s: longer than the limit of %zu bytes",
				name, b->max);
		b->len += (size_t)n;
	}
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
static void tmp_name(char tmp[FILE_TMP_NAME])
{
	static atomic_uint counter;

	snprintf(tmp, FILE_TMP_NAME, ".tmp.%ld.%u", (long)getpid(), atomic_fetch_add(&counter, 1));
}

int file_tmp(int dirfd, char tmp[FILE_TMP_NAME], mode_t mode, struct err *e)
{
	int fd = sys_openat(dirfd, ".", O_TMPFILE | O_RDWR, mode);

	tmp[0] = '\0';
	if (fd >= 0)
		return fd;
	if (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT) {
		do {
			tmp_name(tmp);
			fd = sys_openat(dirfd, tmp, O_RDWR | O_CREAT | O_EXCL, mode);
		} while (fd < 0 && errno == EEXIST);
		if (fd >= 0)
			return fd;
	}
	err_sys(e, "create a temporary file");
	return sys_hint_space(e, dirfd, 0);
}

static int link_fd(int fd, int dirfd, const char *path)
{
	char proc[64];

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return sys_linkat(AT_FDCWD, proc, dirfd, path, AT_SYMLINK_FOLLOW);
}

/* A file without a name takes the place of path by way of a name of its own: writers of one path
 * must not meet, and a kill leaves something only between these two calls. Where nothing stands yet
 * it needs no other name. */
static int replace(int fd, int dirfd, const char *path)
{
	char tmp[FILE_TMP_NAME];
	int saved;

	if (faccessat(dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && link_fd(fd, dirfd, path) == 0)
		return 0;
	do {
		tmp_name(tmp);
		if (link_fd(fd, dirfd, tmp) == 0) {
			if (sys_renameat(dirfd, tmp, dirfd, path) == 0)
				return 0;
			saved = errno;
			sys_unlinkat(dirfd, tmp, 0);
			errno = saved;
			return -1;
		}
	} while (errno == EEXIST);
	return -1;
}

int file_name(int dirfd, int fd, const char *tmp, const char *path, bool replaces, struct err *e)
{
	int rc;

	if (tmp[0])
		rc = sys_renameat(dirfd, tmp, dirfd, path);
	else if (replaces)
		rc = replace(fd, dirfd, path);
	else
		rc = link_fd(fd, dirfd, path) == 0 || errno == EEXIST ? 0 : -1;
	return rc < 0 ? err_sys(e, "write %s", path) : 0;
}

int file_publish(int dirfd, int fd, const char *tmp, const char *path, bool replaces, struct err *e)
{
	if (sys_fdatasync(fd) == 0)
		return file_name(dirfd, fd, tmp, path, replaces, e);
	err_sys(e, "sync %s", path);
	return sys_hint_space(e, fd, 0);
}

int file_write(int dirfd, const char *path, const void *p, size_t n, mode_t mode, struct err *e)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? mem_printf("%.*s/", (int)(slash - path), path) : NULL;
	char tmp[FILE_TMP_NAME];
	auto_fd int opened = dir ? sys_openat(dirfd, dir, O_PATH | O_DIRECTORY, 0) : -1;

	if (dir && opened < 0)
		return err_sys(e, "create a file beside %s", path);
	dirfd = dir ? opened : dirfd;
	auto_fd int fd = file_tmp(dirfd, tmp, mode, e);
	if (fd < 0)
		return err_ctx(e, "write %s", path);
	if (sys_write_all(fd, p, n) == 0) {
		if (file_publish(dirfd, fd, tmp, slash ? slash + 1 : path, true, e) == 0)
			return 0;
	} else {
		err_sys(e, "write %s", path);
		sys_hint_space(e, fd, n);
	}
	if (tmp[0])
		sys_unlinkat(dirfd, tmp, 0);
	return -1;
}
