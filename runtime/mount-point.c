#include "runtime/mount-point.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "base/sys.h"

enum { TRIES_MAX = 4096 };

/* The mount that a descriptor is on. 1: it is the root of that, 0: not. */
static int on_mount(int fd, uint64_t *id, struct err *e)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0)
		return err_sys(e, "statx");
	if (!(st.stx_mask & STATX_MNT_ID) || !(st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return err_set(e, ERR_UNSUPPORTED, "this kernel has no statx mount ids");
	*id = st.stx_mnt_id;
	return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

int own_mounts_add(struct own_mounts *o, int fd, struct err *e)
{
	if (o->n == OWN_MOUNTS_MAX)
		return err_set(e, ERR_USAGE, "more than %d tmpfs mounts", OWN_MOUNTS_MAX);
	if (on_mount(fd, &o->ids[o->n], e) < 0)
		return -1;
	o->n++;
	return 0;
}

static bool is_own(const struct own_mounts *o, uint64_t id)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->ids[i] == id)
			return true;
	return false;
}

bool own_mounts_has(const struct own_mounts *o, int fd)
{
	uint64_t id;

	return on_mount(fd, &id, NULL) >= 0 && is_own(o, id);
}

/* A path being made. */
struct making {
	int root;
	const struct own_mounts *own;
	char path[PATH_MAX];
	bool no_links;
	bool linked; /* a link to nowhere was followed */
};

/* The path as far as its first n bytes. */
static int open_part(const struct making *m, size_t n, int flags)
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%.*s", n ? (int)n : 1, n ? m->path : "/");
	return sys_openat2(m->root, part, O_PATH | flags, 0,
		RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (m->no_links ? RESOLVE_NO_SYMLINKS : 0));
}

/* The length of the path without its last component: "/a/b/" -> "/a/". */
static size_t parent_length(const char *path, size_t n)
{
	while (n && path[n - 1] == '/')
		n--;
	while (n && path[n - 1] != '/')
		n--;
	return n;
}

/* The missing component turned out to be a link to nowhere: go on where it points. */
static int follow(
	struct making *m, size_t done, int dir, const char *name, const char *rest, struct err *e)
{
	char target[PATH_MAX], next[PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0 && errno == EINVAL) /* made by somebody else meanwhile */
		return 0;
	if (n < 0)
		return err_sys(e, "%s", m->path);
	target[n] = '\0';
	m->linked = true;
	if (snprintf(next, sizeof(next), "%.*s%s%s", *target == '/' ? 0 : (int)done, m->path,
		    target, rest) >= (int)sizeof(next))
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
	char rest[PATH_MAX];
	uint64_t on;

	if (m->linked)
		return refuse_link(m, e);
	for (size_t n = done;; n = parent_length(m->path, n)) {
		auto_fd int top = open_part(m, n, 0);
		int fd, is_root = top < 0 ? err_sys(e, "%s", m->path) : on_mount(top, &on, e);

		if (is_root < 0)
			return -1;
		if (on != id || (!is_root && !n))
			return refuse_link(m, e);
		if (!is_root)
			continue;
		snprintf(rest, sizeof(rest), "./%.*s", (int)(done - n), m->path + n);
		fd = sys_openat2(top, rest, O_PATH | O_DIRECTORY, 0,
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
	size_t done = strlen(m->path), len;
	char name[NAME_MAX + 1];
	const char *rest;
	uint64_t id;
	auto_fd int dir = -1, place = -1;

	do {
		done = parent_length(m->path, done);
		dir = open_part(m, done, 0);
	} while (dir < 0 && errno == ENOENT && done);
	if (dir < 0)
		return err_sys(e, "%s", m->path);
	len = strcspn(m->path + done, "/");
	rest = m->path + done + len;
	if (len > NAME_MAX)
		return err_set(e, ERR_CORRUPT, "%s: name too long", m->path);
	snprintf(name, sizeof(name), "%.*s", (int)len, m->path + done);
	if (!len || str_eq(name, "..") || str_eq(name, "."))
		return err_set(e, ERR_CORRUPT, "%s: '%s' behind a missing folder", m->path, name);
	if (on_mount(dir, &id, e) < 0)
		return -1;
	bool mine = is_own(m->own, id);
	place = mine ? steal_fd(&dir) : open_in_volume(m, done, id, e);
	if (place < 0)
		return -1;
	if (make_one(place, name, kind == POINT_FILE && rest[strspn(rest, "/")] == '\0') == 0)
		return 0;
	if (errno == EEXIST && mine && !m->no_links)
		return follow(m, done, place, name, rest, e);
	if (errno == EEXIST)
		return refuse_link(m, e);
	return err_sys(e, "make %.*s", (int)(rest - m->path), m->path);
}

/* What is there is not what was looked for: say what it is. */
static int explain(const struct making *m, const char *path, enum point_kind kind, struct err *e)
{
	auto_fd int fd = open_part(m, strlen(m->path), 0);

	if (fd < 0)
		return err_set(e, ERR_CORRUPT, "%s: part of it is not a directory", path);
	return err_set(e, ERR_CORRUPT, "%s in the root is %s", path,
		kind == POINT_DIR ? "not a directory" : "a directory, not a file");
}

int mount_point(int rootfd, const char *path, enum point_kind kind, bool no_links,
	const struct own_mounts *own, struct err *e)
{
	struct making m = {.root = rootfd, .own = own, .no_links = no_links};
	struct stat st;

	if (str_copy(m.path, sizeof(m.path), path) < 0)
		return err_set(e, ERR_CORRUPT, "%.100s...: path too long", path);
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		auto_fd int fd = open_part(&m, strlen(m.path), kind == POINT_DIR ? O_DIRECTORY : 0);

		if (fd >= 0 &&
			(kind == POINT_DIR || (sys_fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))))
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

int mount_point_folder(int rootfd, const char *path, const char **name, bool no_links,
	const struct own_mounts *own, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	if (str_copy(dir, sizeof(dir), path) < 0)
		return err_set(e, ERR_CORRUPT, "%.100s...: path too long", path);
	dir[slash - path + (slash == path)] = '\0';
	*name = slash + 1;
	return mount_point(rootfd, dir, POINT_DIR, no_links, own, e);
}
