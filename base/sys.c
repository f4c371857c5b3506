#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>

#ifndef FSOPEN_CLOEXEC
#define FSOPEN_CLOEXEC 1
#endif
#ifndef FSMOUNT_CLOEXEC
#define FSMOUNT_CLOEXEC 1
#endif
#ifndef OPEN_TREE_CLOEXEC
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#endif

#ifdef SVRUN_TORTURE
static atomic_long fault_in = -1;

void sys_fault_after(long n)
{
	atomic_store(&fault_in, n);
}

static bool fault(void)
{
	if (atomic_load(&fault_in) < 0 || atomic_fetch_sub(&fault_in, 1) != 0)
		return false;
	errno = EIO;
	return true;
}
#else
void sys_fault_after(long n)
{
	(void)n;
}

static inline bool fault(void)
{
	return false;
}
#endif

#define RETRY(call)                                                                                \
	({                                                                                         \
		__typeof__(call) r_;                                                               \
		do                                                                                 \
			r_ = fault() ? -1 : (call);                                                \
		while (r_ == -1 && errno == EINTR);                                                \
		r_;                                                                                \
	})

void sys_close_ref(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

int sys_open(const char *path, int flags, mode_t mode)
{
	return sys_openat(AT_FDCWD, path, flags, mode);
}

int sys_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return RETRY(openat(dirfd, path, flags | O_CLOEXEC, mode));
}

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

ssize_t sys_read(int fd, void *p, size_t n)
{
	return RETRY(read(fd, p, n));
}

ssize_t sys_write(int fd, const void *p, size_t n)
{
	return RETRY(write(fd, p, n));
}

ssize_t sys_pread(int fd, void *p, size_t n, off_t at)
{
	return RETRY(pread(fd, p, n, at));
}

ssize_t sys_pwrite(int fd, const void *p, size_t n, off_t at)
{
	return RETRY(pwrite(fd, p, n, at));
}

#define ALL(step)                                                                                  \
	do {                                                                                       \
		size_t done = 0;                                                                   \
		while (done < n) {                                                                 \
			ssize_t r = (step);                                                        \
			if (r < 0)                                                                 \
				return -1;                                                         \
			if (r == 0) {                                                              \
				errno = ENODATA;                                                   \
				return -1;                                                         \
			}                                                                          \
			done += (size_t)r;                                                         \
		}                                                                                  \
		return 0;                                                                          \
	} while (0)

int sys_read_all(int fd, void *p, size_t n)
{
	ALL(sys_read(fd, (char *)p + done, n - done));
}

int sys_write_all(int fd, const void *p, size_t n)
{
	ALL(sys_write(fd, (const char *)p + done, n - done));
}

int sys_pread_all(int fd, void *p, size_t n, off_t at)
{
	ALL(sys_pread(fd, (char *)p + done, n - done, at + (off_t)done));
}

int sys_pwrite_all(int fd, const void *p, size_t n, off_t at)
{
	ALL(sys_pwrite(fd, (const char *)p + done, n - done, at + (off_t)done));
}

int sys_pwritev_all(int fd, struct iovec *v, int n, off_t at)
{
	while (n > 0) {
		ssize_t r = RETRY(pwritev(fd, v, n, at));

		if (r < 0)
			return -1;
		at += r;
		for (; n > 0 && (size_t)r >= v->iov_len; v++, n--)
			r -= (ssize_t)v->iov_len;
		if (n > 0) {
			v->iov_base = (char *)v->iov_base + r;
			v->iov_len -= (size_t)r;
		}
	}
	return 0;
}

int sys_mkdirat(int dirfd, const char *path, mode_t mode)
{
	return RETRY(mkdirat(dirfd, path, mode));
}

int sys_mkdir_p(int dirfd, const char *path, mode_t mode)
{
	char part[4096];

	for (const char *slash = path; slash;) {
		size_t n;

		slash = strchr(slash + 1, '/');
		n = slash ? (size_t)(slash - path) : strlen(path);
		if (n >= sizeof(part)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, n);
		part[n] = '\0';
		if (n && sys_mkdirat(dirfd, part, mode) < 0 && errno != EEXIST)
			return -1;
	}
	return 0;
}

int sys_unlinkat(int dirfd, const char *path, int flags)
{
	return RETRY(unlinkat(dirfd, path, flags));
}

int sys_renameat(int olddir, const char *old, int newdir, const char *new_)
{
	return RETRY(renameat(olddir, old, newdir, new_));
}

int sys_symlinkat(const char *target, int dirfd, const char *path)
{
	return RETRY(symlinkat(target, dirfd, path));
}

int sys_linkat(int olddir, const char *old, int newdir, const char *new_, int flags)
{
	return RETRY(linkat(olddir, old, newdir, new_, flags));
}

int sys_fsync(int fd)
{
	return RETRY(fsync(fd));
}

int sys_fdatasync(int fd)
{
	return RETRY(fdatasync(fd));
}

void sys_start_writeback(int fd)
{
	(void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

int sys_ftruncate(int fd, off_t n)
{
	return RETRY(ftruncate(fd, n));
}

int sys_fstat(int fd, struct stat *st)
{
	return RETRY(fstat(fd, st));
}

int sys_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return RETRY(fstatat(dirfd, path, st, flags));
}

int sys_flock(int fd, int op)
{
	return RETRY(flock(fd, op));
}

int sys_pipe(int fds[2])
{
	return RETRY(pipe2(fds, O_CLOEXEC));
}

int sys_socketpair(int fds[2])
{
	return RETRY(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
}

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

int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)RETRY(syscall(SYS_close_range, first, last, flags));
}

int sys_dup3(int fd, int to, int flags)
{
	return RETRY(dup3(fd, to, flags));
}

int sys_mount(
	const char *src, const char *dst, const char *type, unsigned long flags, const void *data)
{
	return RETRY(mount(src, dst, type, flags, data));
}

int sys_umount2(const char *path, int flags)
{
	return RETRY(umount2(path, flags));
}

int sys_fsopen(const char *type)
{
	return (int)RETRY(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC));
}

int sys_fsconfig(int fsfd, unsigned cmd, const char *key, const void *value, int aux)
{
	return (int)RETRY(syscall(SYS_fsconfig, fsfd, cmd, key, value, aux));
}

int sys_fsmount(int fsfd, unsigned attr_flags)
{
	return (int)RETRY(syscall(SYS_fsmount, fsfd, FSMOUNT_CLOEXEC, attr_flags));
}

int sys_open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)RETRY(syscall(SYS_open_tree, dirfd, path, flags | OPEN_TREE_CLOEXEC));
}

int sys_move_mount(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	return (int)RETRY(syscall(SYS_move_mount, fromfd, from, tofd, to, flags));
}

int sys_mount_setattr(int dirfd, const char *path, unsigned flags, struct mount_attr *attr)
{
	enum { MOUNT_ATTR_SIZE = 32 }; /* four u64: MOUNT_ATTR_SIZE_VER0 */

	return (int)RETRY(syscall(SYS_mount_setattr, dirfd, path, flags, attr, MOUNT_ATTR_SIZE));
}

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
		if (RETRY(renameat(dirfd, name, r->top, up)) == 0)
			return 0;
		if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
			return -1;
	}
}

static int remove_inside(struct removal *r, int fd, unsigned depth);

static int remove_entry(struct removal *r, int dirfd, const char *name, unsigned depth)
{
	struct stat st;
	int sub;

	if (sys_unlinkat(dirfd, name, 0) == 0 || errno == ENOENT) /* or somebody else did */
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	sub = sys_openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (sub < 0)
		return errno == ENOENT ? 0 : -1;
	if (sys_fstat(sub, &st) < 0 || st.st_dev != r->dev) {
		close(sub);
		errno = EXDEV;
		return -1;
	}
	if (depth == REMOVE_DEPTH_MAX) {
		close(sub);
		return move_up(r, dirfd, name);
	}
	if (remove_inside(r, sub, depth + 1) < 0)
		return -1;
	return sys_unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}

/* Closes fd. */
static int remove_inside(struct removal *r, int fd, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *d;
	int rc = 0, saved;

	if (!dir) {
		close(fd);
		return -1;
	}
	while (rc == 0 && (errno = 0, d = readdir(dir)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			rc = remove_entry(r, dirfd(dir), d->d_name, depth);
	saved = errno;
	closedir(dir);
	errno = saved;
	return rc < 0 || saved ? -1 : 0;
}

static int remove_all_inside(int top, dev_t dev)
{
	struct removal r = {.top = top, .dev = dev};
	unsigned long before;

	do {
		int fd = sys_openat(top, ".", O_RDONLY | O_DIRECTORY, 0);

		before = r.moved;
		if (fd < 0 || remove_inside(&r, fd, 0) < 0)
			return -1;
	} while (r.moved != before);
	return 0;
}

int sys_remove_tree(int dirfd, const char *name)
{
	struct stat st, parent;
	int fd, saved;

	if (sys_unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	fd = sys_openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return -1;
	if (sys_fstat(fd, &st) < 0 || sys_fstatat(fd, "..", &parent, 0) < 0 ||
		st.st_dev != parent.st_dev) {
		close(fd);
		errno = EXDEV;
		return -1;
	}
	if (remove_all_inside(fd, st.st_dev) < 0) {
		saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	close(fd);
	return sys_unlinkat(dirfd, name, AT_REMOVEDIR);
}

/* The mount point whose device is dev, from /proc/self/mountinfo. */
static void mount_point_of(dev_t dev, char *out, size_t size)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];

	snprintf(out, size, "device %u:%u", major(dev), minor(dev));
	while (f && fgets(line, sizeof(line), f)) {
		unsigned maj, min;
		char point[2048];

		if (sscanf(line, "%*d %*d %u:%u %*s %2047s", &maj, &min, point) == 3 &&
			maj == major(dev) && min == minor(dev)) {
			snprintf(out, size, "%.128s", point);
			break;
		}
	}
	if (f)
		fclose(f);
}

int sys_hint_space(struct err *e, int fd, uint64_t need)
{
	struct statvfs fs;
	struct stat st;
	char where[160];
	uint64_t avail;
	int saved = errno;

	if ((saved == ENOSPC || saved == EDQUOT) && fstatvfs(fd, &fs) == 0 && fstat(fd, &st) == 0) {
		mount_point_of(st.st_dev, where, sizeof(where));
		avail = (uint64_t)fs.f_bavail * fs.f_frsize;
		if (fs.f_files && fs.f_favail == 0)
			err_hint(e,
				"file system %s has no room for more files (all %" PRIu64
				" inodes are used); remove some, or set SVRUN_ROOT",
				where, (uint64_t)fs.f_files);
		else if (need > avail)
			err_hint(e,
				"file system %s is full: %" PRIu64 " MiB free, %" PRIu64
				" MiB more needed; free space there, or set SVRUN_ROOT",
				where, avail >> 20, ((need - avail) >> 20) + 1);
		else
			err_hint(e,
				"file system %s is full (%" PRIu64
				" MiB free); free space there, or set SVRUN_ROOT",
				where, avail >> 20);
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
