#include "builder/upper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/content.h"
#include "images/tree-attr.h"

enum { NAMES_BYTES = 64 << 10, PIECE = 1 << 18, FOLDER_NAMES_MAX = 4 << 20 };

static const char overlay[] = "trusted.overlay.";

/* A file with more than one name, by its first one. */
struct inode {
	ino_t ino;
	const char *path; /* in the list's arena */
};

struct reading {
	struct upper *u;
	struct entries *out;
	struct content content;
	unsigned char *piece;
	uint64_t bytes;
	struct inode
		*inodes; /* a hash table: slots is a power of two, ninodes at most half of it */
	size_t slots, ninodes;
	char path[TREE_PATH_MAX + 1];
	unsigned depth;
};

/* One object while it is read. */
struct object {
	const char *name; /* in its folder */
	int fd;           /* O_PATH for all but files and folders */
	struct stat st;
	struct attr a;
	bool opaque;
};

/* ---- secrets ---- */

static bool leaks(struct reading *r, const void *p, size_t n)
{
	const char *id = r->u->scan && n ? secret_scan_add(r->u->scan, p, n) : NULL;

	if (!id || r->u->secret)
		return r->u->secret != NULL;
	r->u->secret = id;
	snprintf(r->u->secret_path, sizeof(r->u->secret_path), "%s", r->path);
	return true;
}

static bool leaks_alone(struct reading *r, const void *p, size_t n)
{
	if (r->u->scan)
		secret_scan_begin(r->u->scan);
	return leaks(r, p, n);
}

/* A secret may have been cut into folders. */
static bool leaks_joined(struct reading *r)
{
	char joined[TREE_PATH_MAX + 1];
	size_t n = 0;

	if (!r->u->scan || !strchr(r->path, '/'))
		return false;
	for (const char *p = r->path; *p; p++)
		if (*p != '/')
			joined[n++] = *p;
	return leaks_alone(r, joined, n);
}

/* A name that is, or has, a secret is not said: its folder is, which is the first `folder` bytes;
 * of one in several names, none is. */
static bool leaks_by_name(struct reading *r, size_t folder)
{
	if (leaks_alone(r, r->path, strlen(r->path)))
		r->u->secret_path[folder] = '\0';
	else if (leaks_joined(r))
		r->u->secret_path[0] = '\0';
	else
		return false;
	return true;
}

/* ---- attributes ---- */

static int by_name(const void *a, const void *b)
{
	const struct xattr *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* The way to an object's extended attributes that follows nothing: links have none worth keeping,
 * and /proc/self/fd/N of an O_PATH descriptor would lead to the object again. */
static void own_path(const struct object *o, char out[32])
{
	snprintf(out, 32, "/proc/self/fd/%d", o->fd);
}

static int read_value(
	struct reading *r, const char *path, const char *name, struct xattr *x, struct err *e)
{
	ssize_t n = getxattr(path, name, r->piece, TREE_XATTR_VALUE_MAX);

	char shown[STR_SHOWN];

	if (n < 0)
		return err_sys(e, "read attribute %s", str_shown(name, shown));
	x->name = arena_strdup(&r->out->arena, name);
	x->value = arena_dup(&r->out->arena, r->piece, (size_t)n);
	x->len = (size_t)n;
	return 0;
}

/* Also of those that no image has: they stay in a cache folder. */
static bool leaks_by_attribute(struct reading *r, const char *path, const char *name)
{
	ssize_t n;

	if (!r->u->scan || leaks_alone(r, name, strlen(name)))
		return r->u->secret != NULL;
	n = getxattr(path, name, r->piece, PIECE);
	return n > 0 && leaks_alone(r, r->piece, (size_t)n);
}

static int read_xattrs(struct reading *r, struct object *o, struct err *e)
{
	auto_free char *names = mem_alloc(NAMES_BYTES);
	char path[32];
	ssize_t n;

	own_path(o, path);
	n = S_ISLNK(o->st.st_mode) ? 0 : listxattr(path, names, NAMES_BYTES);
	if (n < 0)
		return errno == ENOTSUP ? 0 : err_sys(e, "list attributes");
	o->a.xattrs = arena_alloc(&r->out->arena, TREE_XATTRS_MAX * sizeof(*o->a.xattrs));
	for (const char *name = names; name < names + n; name += strlen(name) + 1) {
		struct xattr *x = &o->a.xattrs[o->a.nxattrs];

		if (str_starts(name, overlay)) {
			char value = 0;

			o->opaque |= str_eq(name + strlen(overlay), "opaque") &&
				     getxattr(path, name, &value, 1) == 1 && value == 'y';
			continue;
		}
		if (leaks_by_attribute(r, path, name))
			return 0;
		/* A label of the host's policy says nothing about the image. */
		if (!attr_xattr_ok(name) || str_eq(name, "security.selinux"))
			continue;
		if (o->a.nxattrs == TREE_XATTRS_MAX)
			return err_set(e, ERR_CORRUPT, "more than %d extended attributes",
				TREE_XATTRS_MAX);
		if (read_value(r, path, name, x, e) < 0)
			return -1;
		o->a.nxattrs++;
	}
	if (o->a.nxattrs)
		qsort(o->a.xattrs, o->a.nxattrs, sizeof(*o->a.xattrs), by_name);
	return 0;
}

static int read_link(struct reading *r, struct object *o, struct err *e)
{
	char target[TREE_PATH_MAX + 2];
	ssize_t n = readlinkat(o->fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return err_sys(e, "read link");
	target[n] = '\0';
	o->a.target = arena_strdup(&r->out->arena, target);
	leaks_alone(r, target, (size_t)n);
	return 0;
}

static int read_data(struct reading *r, struct object *o, struct err *e)
{
	ssize_t n;

	if (r->u->scan)
		secret_scan_begin(r->u->scan);
	content_begin(&r->content);
	while ((n = sys_read(o->fd, r->piece, PIECE)) > 0) {
		r->bytes += (uint64_t)n;
		if (r->u->tick)
			r->u->tick(r->u->tick_ctx);
		r->u->too_much = r->bytes > r->u->max_bytes;
		if (r->u->too_much)
			return err_set(e, ERR_CORRUPT,
				"more than %" PRIu64 " bytes were written in all", r->u->max_bytes);
		if (leaks(r, r->piece, (size_t)n))
			return 0;
		if (r->u->pool && content_add(&r->content, r->piece, (uint64_t)n, e) < 0)
			return -1;
	}
	if (n < 0)
		return err_sys(e, "read");
	return r->u->pool ? content_end(&r->content, &r->out->arena, &o->a, e) : 0;
}

/* ---- what changed ---- */

static const struct node *below(struct reading *r)
{
	const struct node *n = tree_find(r->u->tree, r->path);

	return n && n->link ? n->link : n;
}

static bool is_same(const struct attr *a, const struct attr *b)
{
	if (a->type != b->type || a->uid != b->uid || a->gid != b->gid || !attr_same_xattrs(a, b))
		return false;
	if (a->type == NODE_SYMLINK)
		return str_eq(a->target, b->target);
	return a->mode == b->mode && (a->type != NODE_FILE || attr_same_data(a, b));
}

static void put(struct reading *r, const struct object *o, enum entry_kind kind)
{
	struct entry *en = entries_add(r->out, r->path);

	en->kind = kind;
	en->a = o->a;
}

/* The slot of ino, empty when there is none yet. */
static struct inode *find_inode(struct inode *v, size_t slots, ino_t ino)
{
	size_t i = (size_t)(ino * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (slots - 1);

	while (v[i].path && v[i].ino != ino)
		i = (i + 1) & (slots - 1);
	return &v[i];
}

static void grow_inodes(struct reading *r)
{
	size_t slots = r->slots ? 2 * r->slots : 64;
	struct inode *v = mem_array(slots, sizeof(*v));

	for (size_t i = 0; i < r->slots; i++)
		if (r->inodes[i].path)
			*find_inode(v, slots, r->inodes[i].ino) = r->inodes[i];
	free(r->inodes);
	r->inodes = v;
	r->slots = slots;
}

/* Its first name, when it has one already; else r->path is that from now on. */
static const char *first_name(struct reading *r, const struct object *o)
{
	struct inode *i;

	if (2 * r->ninodes >= r->slots)
		grow_inodes(r);
	i = find_inode(r->inodes, r->slots, o->st.st_ino);
	if (i->path)
		return i->path;
	*i = (struct inode){o->st.st_ino, arena_strdup(&r->out->arena, r->path)};
	r->ninodes++;
	return NULL;
}

static int read_file(struct reading *r, struct object *o, struct err *e)
{
	const char *first = o->st.st_nlink > 1 ? first_name(r, o) : NULL;
	const struct node *old = below(r);

	if (first) {
		o->a = (struct attr){.type = NODE_HARDLINK, .target = first};
		put(r, o, ENTRY_PUT);
		return 0;
	}
	if (S_ISREG(o->st.st_mode) && o->st.st_ctim.tv_sec >= r->u->since && read_data(r, o, e) < 0)
		return -1;
	if (S_ISLNK(o->st.st_mode) && read_link(r, o, e) < 0)
		return -1;
	if (!r->u->secret && (!old || !is_same(&old->a, &o->a)))
		put(r, o, ENTRY_PUT);
	return 0;
}

static int read_folder(struct reading *r, int fd, struct err *e);

static int read_dir(struct reading *r, struct object *o, struct err *e)
{
	const struct node *old = below(r);
	int rc;

	if (old && old->a.type == NODE_DIR && o->opaque && old->child)
		put(r, o, ENTRY_OPAQUE);
	if (!old || !is_same(&old->a, &o->a))
		put(r, o, ENTRY_PUT);
	if (r->depth == TREE_DEPTH_MAX)
		return err_set(e, ERR_CORRUPT, "folders more than %d deep", TREE_DEPTH_MAX);
	r->depth++;
	rc = read_folder(r, steal_fd(&o->fd), e);
	r->depth--;
	return rc;
}

/* ---- one object ---- */

static enum node_type type_of(mode_t mode)
{
	return S_ISDIR(mode)    ? NODE_DIR
	       : S_ISREG(mode)  ? NODE_FILE
	       : S_ISLNK(mode)  ? NODE_SYMLINK
	       : S_ISFIFO(mode) ? NODE_FIFO
				: 0;
}

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* What stood there before is gone all the same. */
static int leave_out(struct reading *r, const struct object *o, const char *what)
{
	if (below(r))
		put(r, o, ENTRY_WHITEOUT);
	if (r->u->left_out)
		r->u->left_out(r->u->ctx, r->path, what);
	return 0;
}

static int read_object(struct reading *r, struct object *o, struct err *e)
{
	if (is_whiteout(&o->st)) {
		if (below(r))
			put(r, o, ENTRY_WHITEOUT);
		return 0;
	}
	if (S_ISSOCK(o->st.st_mode))
		return leave_out(r, o, "a socket");
	o->a = (struct attr){.type = type_of(o->st.st_mode),
		.mode = o->st.st_mode & 07777,
		.uid = o->st.st_uid,
		.gid = o->st.st_gid,
		.mtime = o->st.st_mtim.tv_sec > 0 ? o->st.st_mtim.tv_sec : 0};
	if (!o->a.type)
		return r->u->left_out ? leave_out(r, o, "a device node")
				      : err_set(e, ERR_CORRUPT, "a device node");
	if (read_xattrs(r, o, e) < 0)
		return -1;
	if (r->u->secret)
		return 0;
	return o->a.type == NODE_DIR ? read_dir(r, o, e) : read_file(r, o, e);
}

static int open_plain(int dirfd, const char *name, int flags)
{
	struct open_how how = {.flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};

	/* A link itself may be opened, not followed: O_PATH with O_NOFOLLOW. */
	if (flags & O_PATH)
		how.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV;
	return (int)syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
}

static int open_object(struct object *o, int dirfd, struct err *e)
{
	if (sys_fstatat(dirfd, o->name, &o->st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "stat");
	o->fd = open_plain(dirfd, o->name,
		S_ISDIR(o->st.st_mode)   ? O_RDONLY | O_DIRECTORY
		: S_ISREG(o->st.st_mode) ? O_RDONLY | O_NONBLOCK
					 : O_PATH);
	return o->fd < 0 ? err_sys(e, "open") : 0;
}

/* Is it another folder's file that counts? *dirfd, o->name: that. 1: as the tree has it. */
static int look_elsewhere(const struct reading *r, struct object *o, int *dirfd)
{
	const struct strings *s = &r->u->others;
	struct stat st;
	size_t i = 0;

	while (i < s->n && !str_eq(s->v[i], r->path))
		i++;
	if (i == s->n || sys_fstatat(*dirfd, o->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISREG(st.st_mode))
		return 0;
	*dirfd = r->u->instead;
	o->name = r->path;
	return sys_fstatat(*dirfd, o->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* The object at r->path, whose folder is the first `folder` bytes of that. */
static int read_named(struct reading *r, struct object *o, int dirfd, size_t folder, struct err *e)
{
	if (r->out->n >= TREE_NODES_MAX)
		return err_set(e, ERR_CORRUPT, "more than %d objects", TREE_NODES_MAX);
	if (tree_check_path(r->path, e) < 0)
		return -1;
	if (leaks_by_name(r, folder))
		return 0;
	if (r->u->tick)
		r->u->tick(r->u->tick_ctx);
	if (look_elsewhere(r, o, &dirfd))
		return 0;
	return open_object(o, dirfd, e) < 0 ? -1 : read_object(r, o, e);
}

static int read_entry(struct reading *r, int dirfd, const char *name, struct err *e)
{
	size_t at = strlen(r->path);
	struct object o = {.name = name, .fd = -1};
	char shown[STR_SHOWN];
	int rc = -1;

	if (at + strlen(name) + 2 > sizeof(r->path)) {
		err_set(e, ERR_CORRUPT, "a path longer than %d bytes", TREE_PATH_MAX);
	} else {
		snprintf(r->path + at, sizeof(r->path) - at, "%s%s", at ? "/" : "", name);
		rc = read_named(r, &o, dirfd, at, e);
	}
	sys_close_ref(&o.fd);
	if (rc < 0 && r->depth == 1)
		err_ctx(e, "what it wrote, /%s", str_shown(r->path, shown));
	if (rc == 0)
		r->path[at] = '\0';
	return rc;
}

/* ---- folders ---- */

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static int list_names(DIR *dir, struct arena *a, const char ***v, size_t *n, struct err *e)
{
	const struct dirent *d;
	size_t cap = 0;

	while ((errno = 0, d = readdir(dir))) {
		if (str_eq(d->d_name, ".") || str_eq(d->d_name, ".."))
			continue;
		if (*n == FOLDER_NAMES_MAX)
			return err_set(e, ERR_CORRUPT, "more than %d names in one folder",
				FOLDER_NAMES_MAX);
		mem_grow(v, &cap, *n);
		(*v)[(*n)++] = arena_strdup(a, d->d_name);
	}
	if (errno)
		return err_sys(e, "list");
	if (*n)
		qsort(*v, *n, sizeof(**v), by_text);
	return 0;
}

/* Closes fd. */
static int read_folder(struct reading *r, int fd, struct err *e)
{
	struct arena names = {0};
	const char **v = NULL;
	size_t n = 0;
	DIR *dir = fdopendir(fd);
	int rc;

	if (!dir) {
		close(fd);
		return err_sys(e, "list");
	}
	rc = list_names(dir, &names, &v, &n, e);
	for (size_t i = 0; rc == 0 && !r->u->secret && i < n; i++)
		rc = read_entry(r, dirfd(dir), v[i], e);
	free(v);
	arena_fini(&names);
	closedir(dir);
	return rc;
}

/* The root itself may have other attributes now. */
static int read_root(struct reading *r, struct err *e)
{
	struct object o = {.name = ".", .fd = open_plain(r->u->dir, ".", O_RDONLY | O_DIRECTORY)};
	int rc = -1;

	if (o.fd < 0 || sys_fstat(o.fd, &o.st) < 0)
		err_sys(e, "what it wrote");
	else
		rc = read_object(r, &o, e);
	sys_close_ref(&o.fd);
	return rc;
}

int upper_read(struct upper *u, struct entries *out, struct err *e)
{
	struct reading r = {.u = u, .out = out, .piece = mem_alloc(PIECE)};
	int rc;

	u->secret = NULL;
	content_init(&r.content, u->pool);
	rc = read_root(&r, e);
	content_fini(&r.content);
	free(r.piece);
	free(r.inodes);
	return rc;
}
