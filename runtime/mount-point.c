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

enum { LINKS_MAX = 16, TRIES_MAX = 4096 };

/* The mount that a descriptor is on, and whether it is the root of that. */
struct on_mount {
	uint64_t id;
	bool root;
};

static int on_mount(int fd, struct on_mount *m, struct err *e)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0)
		return err_sys(e, "statx");
	if (!(st.stx_mask & STATX_MNT_ID) || !(st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return err_set(e, ERR_UNSUPPORTED, "this kernel has no statx mount ids");
	m->id = st.stx_mnt_id;
	m->root = st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	return 0;
}

int own_mounts_add(struct own_mounts *o, int fd, struct err *e)
{
	struct on_mount m;

	if (o->n == OWN_MOUNTS_MAX)
		return err_set(e, ERR_USAGE, "more than %d tmpfs mounts", OWN_MOUNTS_MAX);
	if (on_mount(fd, &m, e) < 0)
		return -1;
	o->ids[o->n++] = m.id;
	return 0;
}

static bool is_own(const struct own_mounts *o, uint64_t id)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->ids[i] == id)
			return true;
	return false;
}

int own_mounts_has(const struct own_mounts *o, int fd, struct err *e)
{
	struct on_mount m;

	return on_mount(fd, &m, e) < 0 ? -1 : is_own(o, m.id);
}

static int open_how(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags, .resolve = resolve};

	for (int tries = 0;; tries++) { /* EAGAIN: a rename raced with the walk */
		int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

		if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || tries == 64)
			return fd;
	}
}

static int open_point(int rootfd, const char *path, uint64_t flags, bool no_links)
{
	return open_how(rootfd, path, flags,
		RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (no_links ? RESOLVE_NO_SYMLINKS : 0));
}

/* A path being made. */
struct making {
	int root;
	const struct own_mounts *own;
	bool no_links;
	char path[PATH_MAX];
	unsigned links; /* to nowhere, followed so far */
};

/* The length of the path without its last component: "/a/b/" -> "/a". */
static size_t parent_length(const char *path, size_t n)
{
	while (n && path[n - 1] == '/')
		n--;
	while (n && path[n - 1] != '/')
		n--;
	while (n && path[n - 1] == '/')
		n--;
	return n;
}

static int open_prefix(const struct making *m, size_t n)
{
	char prefix[PATH_MAX];

	memcpy(prefix, n ? m->path : "/", n ? n : 1);
	prefix[n ? n : 1] = '\0';
	return open_point(m->root, prefix, 0, m->no_links);
}

/* The longest part of the path that exists; its length in *done. */
static int open_existing(const struct making *m, size_t *done)
{
	for (size_t n = strlen(m->path);;) {
		int fd;

		n = parent_length(m->path, n);
		fd = open_prefix(m, n);
		if (fd >= 0 || errno != ENOENT || !n) {
			*done = n;
			return fd;
		}
	}
}

/* The missing component turned out to be a link to nowhere: go on where it points. */
static int follow(
	struct making *m, size_t done, int dir, const char *name, const char *rest, struct err *e)
{
	char target[PATH_MAX], next[PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
	int len;

	if (n < 0 && errno == EINVAL) /* made by somebody else meanwhile */
		return 0;
	if (n < 0)
		return err_sys(e, "%s", m->path);
	target[n] = '\0';
	if (++m->links > LINKS_MAX)
		return err_set(e, ERR_CORRUPT, "%s: too many links", m->path);
	len = target[0] == '/'
		      ? snprintf(next, sizeof(next), "%s%s", target, rest)
		      : snprintf(next, sizeof(next), "%.*s/%s%s", (int)done, m->path, target, rest);
	if (len < 0 || (size_t)len >= sizeof(next))
		return err_set(e, ERR_CORRUPT, "%s: path too long", m->path);
	return str_copy(m->path, sizeof(m->path), next);
}

static int refuse_link(const struct making *m, struct err *e)
{
	err_set(e, ERR_DENIED, "%s does not exist, and a link leads to it into a volume", m->path);
	return err_hint(e, "make it in the volume first");
}

/* The folder path[0..done), which is on the volume `id`, as the volume alone has it: from its root
 * on, without links. */
static int open_in_volume(const struct making *m, size_t done, uint64_t id, struct err *e)
{
	char rest[PATH_MAX] = ".";
	struct on_mount on;

	if (m->links)
		return refuse_link(m, e);
	for (size_t n = done;; n = parent_length(m->path, n)) {
		auto_fd int top = open_prefix(m, n);
		int fd;

		if (top < 0)
			return err_sys(e, "%s", m->path);
		if (on_mount(top, &on, e) < 0)
			return -1;
		if (on.id != id || (!on.root && !n))
			return refuse_link(m, e);
		if (!on.root)
			continue;
		if (done > n)
			snprintf(rest, sizeof(rest), "./%.*s", (int)(done - n), m->path + n);
		fd = open_how(top, rest, O_DIRECTORY,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
		if (fd < 0 && errno == ELOOP)
			return refuse_link(m, e);
		return fd < 0 ? err_sys(e, "%s", m->path) : fd;
	}
}

static int make_one(int dir, const char *name, bool file)
{
	if (!file)
		return sys_mkdirat(dir, name, 0755);
	auto_fd int fd = sys_openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0644);
	return fd < 0 ? -1 : 0;
}

/* Make the first missing component of m->path. 0: made, or followed a link. */
static int make_next(struct making *m, enum point_kind kind, struct err *e)
{
	struct on_mount on;
	char name[NAME_MAX + 1];
	size_t done, len;
	const char *p, *rest;
	bool mine;

	auto_fd int dir = open_existing(m, &done);
	if (dir < 0)
		return err_sys(e, "%s", m->path);
	p = m->path + done;
	p += strspn(p, "/");
	len = strcspn(p, "/");
	rest = p + len;
	if (len > NAME_MAX)
		return err_set(e, ERR_CORRUPT, "%s: name too long", m->path);
	memcpy(name, p, len);
	name[len] = '\0';
	if (!len || str_eq(name, "..") || str_eq(name, "."))
		return err_set(e, ERR_CORRUPT, "%s: '%s' behind a missing folder", m->path, name);
	if (on_mount(dir, &on, e) < 0)
		return -1;
	mine = is_own(m->own, on.id);
	if (!mine) {
		int fd = open_in_volume(m, done, on.id, e);

		if (fd < 0)
			return -1;
		sys_close_ref(&dir);
		dir = fd;
	}
	if (make_one(dir, name, kind == POINT_FILE && rest[strspn(rest, "/")] == '\0') == 0)
		return 0;
	if (errno == EEXIST && mine && !m->no_links)
		return follow(m, done, dir, name, rest, e);
	if (errno == EEXIST)
		return refuse_link(m, e);
	return err_sys(e, "make %.*s", (int)(rest - m->path), m->path);
}

/* What is there is not what was looked for: say what it is. */
static int explain(const struct making *m, const char *path, enum point_kind kind, struct err *e)
{
	auto_fd int fd = open_point(m->root, m->path, 0, m->no_links);

	if (fd < 0)
		return err_set(e, ERR_CORRUPT, "%s: part of it is not a directory", path);
	return err_set(e, ERR_CORRUPT, "%s in the root is %s", path,
		kind == POINT_DIR ? "not a directory" : "a directory, not a file");
}

static bool is_kind(int fd, enum point_kind kind)
{
	struct stat st;

	return kind == POINT_DIR || (sys_fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode));
}

int mount_point(int rootfd, const char *path, enum point_kind kind, bool no_links,
	const struct own_mounts *own, struct err *e)
{
	struct making m = {.root = rootfd, .own = own, .no_links = no_links};

	if (str_copy(m.path, sizeof(m.path), path) < 0)
		return err_set(e, ERR_CORRUPT, "%.100s...: path too long", path);
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		auto_fd int fd =
			open_point(rootfd, m.path, kind == POINT_DIR ? O_DIRECTORY : 0, no_links);

		if (fd >= 0 && is_kind(fd, kind))
			return steal_fd(&fd);
		if (fd >= 0 || errno == ENOTDIR)
			return explain(&m, path, kind, e);
		if (errno == ELOOP && no_links)
			return err_set(
				e, ERR_CORRUPT, "%s in the root is a link, not a directory", path);
		if (errno != ENOENT)
			return err_sys(e, "%s", path);
		if (make_next(&m, kind, e) < 0)
			return -1;
	}
	return err_set(e, ERR_CORRUPT, "%s: it changes all the time", path);
}
