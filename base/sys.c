#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/str.h"

/* Again when a signal came in between. */
#define RETRY(call)                                                                                \
	({                                                                                         \
		__typeof__(call) r_;                                                               \
		do                                                                                 \
			r_ = (call);                                                               \
		while (r_ == -1 && errno == EINTR);                                                \
		r_;                                                                                \
	})

/* What the header declares, as the call that it is. */
#define WRAP(type, name, params, call)                                                             \
	type name params                                                                           \
	{                                                                                          \
		return (type)RETRY(call);                                                          \
	}

void sys_close_ref(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

WRAP(int, sys_open, (const char *path, int flags, mode_t mode),
	open(path, flags | O_CLOEXEC, mode));
WRAP(int, sys_openat, (int dirfd, const char *path, int flags, mode_t mode),
	openat(dirfd, path, flags | O_CLOEXEC, mode));

int sys_openat2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC), .resolve = resolve};

	if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
		how.mode = mode;
	for (int tries = 0;; tries++) { /* EAGAIN: a rename raced with the walk */
		int fd = (int)RETRY(syscall(SYS_openat2, dirfd, path, &how, sizeof(how)));

		if (fd >= 0 || errno != EAGAIN || tries == 64)
			return fd;
	}
}

int sys_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	return sys_openat2(dirfd, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

int sys_open_in_root(int rootfd, const char *path, int flags, mode_t mode)
{
	return sys_openat2(rootfd, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

WRAP(ssize_t, sys_read, (int fd, void *p, size_t n), read(fd, p, n));
WRAP(ssize_t, sys_write, (int fd, const void *p, size_t n), write(fd, p, n));
WRAP(ssize_t, sys_pread, (int fd, void *p, size_t n, off_t at), pread(fd, p, n, at));

/* The same until all n bytes are done: `done` of them are. */
#define WRAP_ALL(name, params, call)                                                               \
	int name params                                                                            \
	{                                                                                          \
		for (size_t done = 0; done < n;) {                                                 \
			ssize_t r = RETRY(call);                                                   \
			if (r == 0)                                                                \
				errno = ENODATA;                                                   \
			if (r <= 0)                                                                \
				return -1;                                                         \
			done += (size_t)r;                                                         \
		}                                                                                  \
		return 0;                                                                          \
	}

WRAP_ALL(sys_read_all, (int fd, void *p, size_t n), read(fd, (char *)p + done, n - done));
WRAP_ALL(sys_write_all, (int fd, const void *p, size_t n),
	write(fd, (const char *)p + done, n - done));
WRAP_ALL(sys_pread_all, (int fd, void *p, size_t n, off_t at),
	pread(fd, (char *)p + done, n - done, at + (off_t)done));
WRAP_ALL(sys_pwrite_all, (int fd, const void *p, size_t n, off_t at),
	pwrite(fd, (const char *)p + done, n - done, at + (off_t)done));
WRAP(int, sys_mkdirat, (int dirfd, const char *path, mode_t mode), mkdirat(dirfd, path, mode));

int sys_mkdir_p(int dirfd, const char *path, mode_t mode)
{
	char part[4096];

	if (str_copy(part, sizeof(part), path) < 0) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (char *p = part; *p;) {
		char slash;

		p += 1 + strcspn(p + 1, "/");
		slash = *p;
		*p = '\0';
		if (sys_mkdirat(dirfd, part, mode) < 0 && errno != EEXIST)
			return -1;
		*p = slash;
	}
	return 0;
}

WRAP(int, sys_unlinkat, (int dirfd, const char *path, int flags), unlinkat(dirfd, path, flags));
WRAP(int, sys_renameat, (int olddir, const char *old, int newdir, const char *new_),
	renameat(olddir, old, newdir, new_));
WRAP(int, sys_symlinkat, (const char *target, int dirfd, const char *path),
	symlinkat(target, dirfd, path));
WRAP(int, sys_linkat, (int olddir, const char *old, int newdir, const char *new_, int flags),
	linkat(olddir, old, newdir, new_, flags));
WRAP(int, sys_fsync, (int fd), fsync(fd));
WRAP(int, sys_fdatasync, (int fd), fdatasync(fd));

void sys_start_writeback(int fd)
{
	(void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

WRAP(int, sys_ftruncate, (int fd, off_t n), ftruncate(fd, n));
WRAP(int, sys_fstat, (int fd, struct stat *st), fstat(fd, st));
WRAP(int, sys_fstatat, (int dirfd, const char *path, struct stat *st, int flags),
	fstatat(dirfd, path, st, flags));
WRAP(int, sys_flock, (int fd, int op), flock(fd, op));
WRAP(int, sys_pipe, (int fds[2]), pipe2(fds, O_CLOEXEC));
WRAP(int, sys_socketpair, (int fds[2]), socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));

ssize_t sys_send_fd(int sock, const void *p, size_t n, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {.buf = {0}};
	struct iovec iov = {(void *)(uintptr_t)p, n};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control.buf);
		control.head = (struct cmsghdr){
			CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	return RETRY(sendmsg(sock, &h, MSG_NOSIGNAL));
}

WRAP(int, sys_close_range, (unsigned first, unsigned last, unsigned flags),
	syscall(SYS_close_range, first, last, flags));
WRAP(int, sys_dup3, (int fd, int to, int flags), dup3(fd, to, flags));
WRAP(int, sys_mount,
	(const char *src, const char *dst, const char *type, unsigned long flags, const void *data),
	mount(src, dst, type, flags, data));
WRAP(int, sys_umount2, (const char *path, int flags), umount2(path, flags));
/* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC and MOUNT_ATTR_SIZE_VER0 (four u64): headers of some systems lack
 * them. */
enum { CLOEXEC = 1, ATTR_SIZE = 32 };
WRAP(int, sys_fsopen, (const char *type), syscall(SYS_fsopen, type, CLOEXEC));
WRAP(int, sys_fsconfig, (int fsfd, unsigned cmd, const char *key, const void *value, int aux),
	syscall(SYS_fsconfig, fsfd, cmd, key, value, aux));
WRAP(int, sys_fsmount, (int fsfd, unsigned attr_flags),
	syscall(SYS_fsmount, fsfd, CLOEXEC, attr_flags));
WRAP(int, sys_open_tree, (int dirfd, const char *path, unsigned flags),
	syscall(SYS_open_tree, dirfd, path, flags | O_CLOEXEC));
WRAP(int, sys_move_mount, (int fromfd, const char *from, int tofd, const char *to, unsigned flags),
	syscall(SYS_move_mount, fromfd, from, tofd, to, flags));

WRAP(int, sys_mount_setattr, (int dirfd, const char *path, unsigned flags, struct mount_attr *attr),
	syscall(SYS_mount_setattr, dirfd, path, flags, attr, ATTR_SIZE));

/* ---- removing a tree ---- */

enum { REMOVE_DEPTH_MAX = 64 };

/* A tree may be deeper than there are descriptors or stack: a container makes what it likes.
 * Folders that deep are moved up to the top, where a later pass finds them. */
struct removal {
	int top;
	dev_t dev;
	unsigned long moved;
};

static int move_up(struct removal *r, int dirfd, const char *name)
{
	char up[32];

	for (;;) {
		snprintf(up, sizeof(up), ".deep.%lu", r->moved++);
		if (sys_renameat(dirfd, name, r->top, up) == 0)
			return 0;
		if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
			return -1;
	}
}

static int remove_entry(struct removal *r, int dirfd, const char *name, unsigned depth);

static int remove_inside(struct removal *r, int own_fd, unsigned depth)
{
	DIR *dir = fdopendir(own_fd);
	struct dirent *d;
	int rc = 0, saved;

	if (!dir) {
		sys_close_ref(&own_fd);
		return -1;
	}
	while (rc == 0 && (errno = 0, d = readdir(dir)))
		if (!str_eq(d->d_name, ".") && !str_eq(d->d_name, ".."))
			rc = remove_entry(r, dirfd(dir), d->d_name, depth + 1);
	saved = errno;
	closedir(dir);
	errno = saved;
	return rc < 0 || saved ? -1 : 0;
}

static int remove_top(struct removal *r)
{
	unsigned long before;

	do {
		before = r->moved;
		if (remove_inside(r, sys_openat(r->top, ".", O_RDONLY | O_DIRECTORY, 0), 0) < 0)
			return -1;
	} while (r->moved != before);
	return 0;
}

/* What is gone was removed, by whomever. depth 0: the tree itself. */
static int remove_entry(struct removal *r, int dirfd, const char *name, unsigned depth)
{
	struct stat st, parent;

	if (sys_unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	auto_fd int fd = sys_openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (sys_fstat(fd, &st) < 0 || (depth == 0 && sys_fstatat(fd, "..", &parent, 0) < 0))
		return -1;
	if (depth == 0)
		*r = (struct removal){fd, parent.st_dev, 0};
	if (st.st_dev != r->dev) {
		errno = EXDEV;
		return -1;
	}
	if (depth > REMOVE_DEPTH_MAX)
		return move_up(r, dirfd, name);
	if ((depth ? remove_inside(r, steal_fd(&fd), depth) : remove_top(r)) < 0)
		return -1;
	return sys_unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}

int sys_remove_tree(int dirfd, const char *name)
{
	struct removal r = {.top = -1};

	return remove_entry(&r, dirfd, name, 0);
}

/* The mount point whose device is dev, from /proc/self/mountinfo. */
static void mount_point_of(dev_t dev, char *out, size_t size)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], point[2048];
	unsigned maj, min;

	snprintf(out, size, "device %u:%u", major(dev), minor(dev));
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*d %*d %u:%u %*s %2047s", &maj, &min, point) == 3 &&
			makedev(maj, min) == dev) {
			snprintf(out, size, "%.128s", point);
			break;
		}
	if (f)
		fclose(f);
}

int sys_hint_space(struct err *e, int fd, uint64_t need)
{
	struct statvfs fs;
	struct stat st;
	char where[160], more[64] = "";
	int saved = errno;

	if ((saved == ENOSPC || saved == EDQUOT) && fstatvfs(fd, &fs) == 0 && fstat(fd, &st) == 0) {
		uint64_t avail = (uint64_t)fs.f_bavail * fs.f_frsize;

		mount_point_of(st.st_dev, where, sizeof(where));
		if (need > avail)
			snprintf(more, sizeof(more), ", %" PRIu64 " MiB more needed",
				((need - avail) >> 20) + 1);
		if (fs.f_files && fs.f_favail == 0)
			err_hint(e,
				"file system %s has no room for more files (all %" PRIu64
				" inodes are used); remove some, or set SVRUN_ROOT",
				where, (uint64_t)fs.f_files);
		else
			err_hint(e,
				"file system %s is full: %" PRIu64
				" MiB free%s; free space there, or set SVRUN_ROOT",
				where, avail >> 20, more);
	}
	errno = saved;
	return -1;
}

double sys_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
