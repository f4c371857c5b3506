#include "runtime/mount-point.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "base/sys.h"

enum { LINKS_MAX = 16 };

static int mount_id(int fd, uint64_t *id, struct err *e)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0)
		return err_sys(e, "statx");
	if (!(st.stx_mask & STATX_MNT_ID))
		return err_set(e, ERR_UNSUPPORTED, "this kernel has no statx mount ids");
	*id = st.stx_mnt_id;
	return 0;
}

int own_mounts_add(struct own_mounts *o, int fd, struct err *e)
{
	if (o->n == OWN_MOUNTS_MAX)
		return err_set(e, ERR_USAGE, "more than %d tmpfs mounts", OWN_MOUNTS_MAX);
	if (mount_id(fd, &o->ids[o->n], e) < 0)
		return -1;
	o->n++;
	return 0;
}

int own_mounts_has(const struct own_mounts *o, int fd, struct err *e)
{
	uint64_t id;

	if (mount_id(fd, &id, e) < 0)
		return -1;
	for (unsigned i = 0; i < o->n; i++)
		if (o->ids[i] == id)
			return 1;
	return 0;
}

static int open_point(int rootfd, const char *path, bool no_links)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
			   (no_links ? RESOLVE_NO_SYMLINKS : 0)};

	for (int tries = 0;; tries++) {
		int fd = (int)syscall(SYS_openat2, rootfd, path, &how, sizeof(how));

		if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || tries == 64)
			return fd;
	}
}

/* A path being made: where[0..done) exists. */
struct making {
	char path[PATH_MAX];
	unsigned links;
};

/* The missing component turned out to be a link to nowhere: go on where it points. */
static int follow(
	struct making *m, size_t done, int dir, const char *name, const char *rest, struct err *e)
{
	char target[PATH_MAX], next[PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
	int len;

	if (n < 0)
		return err_sys(e, "%s", m->path);
	target[n] = '\0';
	if (++m->links > LINKS_MAX)
		return err_set(e, ERR_CORRUPT, "%s: too many links", m->path);
	len = snprintf(next, sizeof(next), "%.*s/%s%s", target[0] == '/' ? 0 : (int)done, m->path,
		target, rest);
	if (len < 0 || (size_t)len >= sizeof(next))
		return err_set(e, ERR_CORRUPT, "%s: path too long", m->path);
	return str_copy(m->path, sizeof(m->path), next);
}

static int make_one(int dir, const char *name, bool file)
{
	if (!file)
		return sys_mkdirat(dir, name, 0755);
	auto_fd int fd = sys_openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0644);
	return fd < 0 ? -1 : 0;
}

/* Make the first missing component of m->path. 0: made, or followed a link. */
static int make_next(int rootfd, struct making *m, enum point_kind kind, bool no_links,
	const struct own_mounts *own, struct err *e)
{
	auto_fd int dir = -1;
	char prefix[PATH_MAX], name[NAME_MAX + 1];
	size_t done = 0, start = 0, end = 0;
	const char *p = m->path;
	int mine;

	for (;;) { /* the longest prefix that exists */
		int fd;

		memcpy(prefix, p, end);
		memcpy(prefix + end, end ? "" : "/", end ? 1 : 2);
		fd = open_point(rootfd, prefix, no_links);
		if (fd < 0)
			break;
		sys_close_ref(&dir);
		dir = fd;
		done = end;
		start = end + strspn(p + end, "/");
		end = start + strcspn(p + start, "/");
		if (end == start)
			return 0; /* appeared meanwhile */
	}
	if (errno != ENOENT || dir < 0)
		return err_sys(e, "%s", prefix);
	if (end - start > NAME_MAX)
		return err_set(e, ERR_CORRUPT, "%s: name too long", p);
	memcpy(name, p + start, end - start);
	name[end - start] = '\0';
	if (str_eq(name, "..") || str_eq(name, "."))
		return err_set(e, ERR_CORRUPT, "%s: '%s' behind a missing folder", p, name);
	mine = own_mounts_has(own, dir, e);
	if (mine < 0)
		return -1;
	if (!mine) {
		err_set(e, ERR_NOT_FOUND, "%s does not exist, and lies in a volume", p);
		return err_hint(e, "make it in the volume first");
	}
	if (make_one(dir, name, kind == POINT_FILE && p[end + strspn(p + end, "/")] == '\0') == 0)
		return 0;
	if (errno == EEXIST && !no_links)
		return follow(m, done, dir, name, p + end, e);
	return err_sys(e, "make %s", prefix);
}

static int check_kind(int fd, const char *path, enum point_kind kind, struct err *e)
{
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (kind == POINT_DIR && !S_ISDIR(st.st_mode))
		return err_set(e, ERR_CORRUPT, "%s in the root is not a directory", path);
	if (kind == POINT_FILE && S_ISDIR(st.st_mode))
		return err_set(e, ERR_CORRUPT, "%s in the root is a directory, not a file", path);
	return 0;
}

int mount_point(int rootfd, const char *path, enum point_kind kind, bool no_links,
	const struct own_mounts *own, struct err *e)
{
	struct making m = {.links = 0};

	if (str_copy(m.path, sizeof(m.path), path) < 0)
		return err_set(e, ERR_CORRUPT, "%.100s...: path too long", path);
	for (;;) {
		auto_fd int fd = open_point(rootfd, m.path, no_links);

		if (fd >= 0) {
			if (check_kind(fd, path, kind, e) < 0)
				return -1;
			return steal_fd(&fd);
		}
		if (errno == ELOOP && no_links)
			return err_set(
				e, ERR_CORRUPT, "%s in the root is a link, not a directory", path);
		if (errno == ENOTDIR)
			return err_set(e, ERR_CORRUPT, "%s: part of it is not a directory", path);
		if (errno != ENOENT)
			return err_sys(e, "%s", path);
		if (make_next(rootfd, &m, kind, no_links, own, e) < 0)
			return -1;
	}
}
