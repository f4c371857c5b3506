/* System calls: the kernel's arguments and errno, with EINTR retried and O_CLOEXEC added. Names
 * that come from outside (images, archives, registries) are opened only with sys_open_beneath() or,
 * inside a container's root, sys_open_in_root() (openat2(2)). */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/err.h"

#define auto_fd __attribute__((cleanup(sys_close_ref)))

/* Closes *fd when it is >= 0, keeps errno. */
void sys_close_ref(int *fd);

static inline int steal_fd(int *fd)
{
	int n = *fd;

	*fd = -1;
	return n;
}

int sys_open(const char *path, int flags, mode_t mode);
int sys_openat(int dirfd, const char *path, int flags, mode_t mode);
/* RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS: fails with EXDEV on any way out of dirfd. */
int sys_open_beneath(int dirfd, const char *path, int flags, mode_t mode);
/* RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS: absolute links and .. stay inside rootfd. */
int sys_open_in_root(int rootfd, const char *path, int flags, mode_t mode);
/* With other RESOLVE_* of <linux/openat2.h>. */
int sys_openat2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve);

ssize_t sys_read(int fd, void *p, size_t n);
ssize_t sys_write(int fd, const void *p, size_t n);
ssize_t sys_pread(int fd, void *p, size_t n, off_t at);
/* All n bytes or -1; a read that ends early fails with ENODATA. */
int sys_read_all(int fd, void *p, size_t n);
int sys_write_all(int fd, const void *p, size_t n);
int sys_pread_all(int fd, void *p, size_t n, off_t at);
int sys_pwrite_all(int fd, const void *p, size_t n, off_t at);

int sys_mkdirat(int dirfd, const char *path, mode_t mode);
/* Every missing folder of path with mode; an existing one is fine. */
int sys_mkdir_p(int dirfd, const char *path, mode_t mode);
int sys_unlinkat(int dirfd, const char *path, int flags);
int sys_renameat(int olddir, const char *old, int newdir, const char *new_);
int sys_symlinkat(const char *target, int dirfd, const char *path);
int sys_linkat(int olddir, const char *old, int newdir, const char *new_, int flags);
int sys_fsync(int fd);
int sys_fdatasync(int fd);
/* Start writing what is dirty of the file, and do not wait: a later sync has less to do. */
void sys_start_writeback(int fd);
int sys_ftruncate(int fd, off_t n);
int sys_fstat(int fd, struct stat *st);
int sys_fstatat(int dirfd, const char *path, struct stat *st, int flags);
/* op: LOCK_SH, LOCK_EX, LOCK_UN, with LOCK_NB. */
int sys_flock(int fd, int op);
int sys_pipe(int fds[2]);
int sys_socketpair(int fds[2]); /* AF_UNIX SOCK_SEQPACKET */
/* Send bytes over a Unix socket, and the descriptor fd with them (-1: none). Never SIGPIPE. */
ssize_t sys_send_fd(int sock, const void *p, size_t n, int fd);
int sys_close_range(unsigned first, unsigned last, unsigned flags);
int sys_dup3(int fd, int to, int flags);

/* The fd-based mount API. glibc has these only since 2.36. */
int sys_mount(
	const char *src, const char *dst, const char *type, unsigned long flags, const void *data);
int sys_umount2(const char *path, int flags);
int sys_fsopen(const char *type);
int sys_fsconfig(int fsfd, unsigned cmd, const char *key, const void *value, int aux);
int sys_fsmount(int fsfd, unsigned attr_flags);
int sys_open_tree(int dirfd, const char *path, unsigned flags);
int sys_move_mount(int fromfd, const char *from, int tofd, const char *to, unsigned flags);
struct mount_attr;
int sys_mount_setattr(int dirfd, const char *path, unsigned flags, struct mount_attr *attr);

/* Remove what stands at name below dirfd, whatever it is; never follows a link, never crosses a
 * mount. 0 also when it is not there. */
int sys_remove_tree(int dirfd, const char *name);

/* When errno is ENOSPC or EDQUOT: give e the hint which file system is full (device number and
 * mount point), how much is free and how much is missing for `need` more bytes (0: unknown). */
int sys_hint_space(struct err *e, int fd, uint64_t need);

/* Milliseconds of CLOCK_MONOTONIC. */
double sys_now_ms(void);

#endif
