#include "images/member.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "images/tree-attr.h"

#define WHITEOUT ".wh."
#define SPECIAL ".wh..wh." /* aufs' own files, and ... */
#define OPAQUE ".wh..wh..opq"

enum {
	FREE_MEMBERS = 1 << 20,
	BYTES_A_MEMBER = 16, /* of the blob: no codec gets an honest header below that */
	FREE_BYTES = 64 << 20,
	BYTES_RATIO = 8,
};

static uint64_t limit(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_members(uint64_t blob_size)
{
	return limit(TREE_NODES_MAX, FREE_MEMBERS + blob_size / BYTES_A_MEMBER);
}

static uint64_t max_bytes(uint64_t blob_size)
{
	return limit((uint64_t)4 << 30, FREE_BYTES + limit(blob_size, UINT32_MAX) * BYTES_RATIO);
}

void members_init(struct members *v, const char *name, uint64_t blob_size, struct entries *out)
{
	*v = (struct members){.name = name,
		.out = out,
		.max = max_members(blob_size),
		.max_bytes = max_bytes(blob_size)};
}

/* ---- all layers ---- */

void members_total_init(struct members_total *t, uint64_t blob_sizes)
{
	*t = (struct members_total){
		.max = max_members(blob_sizes), .max_bytes = max_bytes(blob_sizes)};
	pthread_mutex_init(&t->lock, NULL);
}

void members_total_fini(struct members_total *t)
{
	pthread_mutex_destroy(&t->lock);
}

static uint64_t bytes_of(const struct entry *x)
{
	uint64_t n = strlen(x->path) + (x->a.target ? strlen(x->a.target) : 0);

	for (uint32_t i = 0; i < x->a.nxattrs; i++)
		n += strlen(x->a.xattrs[i].name) + x->a.xattrs[i].len;
	return n;
}

int members_total_add(struct members_total *t, const struct entries *l, struct err *e)
{
	uint64_t bytes = 0;
	int rc = 0;

	for (size_t i = 0; i < l->n; i++)
		bytes += bytes_of(&l->v[i]);
	pthread_mutex_lock(&t->lock);
	t->n += l->n;
	t->bytes += bytes;
	if (t->n > t->max)
		rc = err_set(e, ERR_CORRUPT,
			"with the other layers, more members than the limit of %" PRIu64, t->max);
	else if (t->bytes > t->max_bytes)
		rc = err_set(e, ERR_CORRUPT,
			"with the other layers, names and attributes longer than the limit of "
			"%" PRIu64 " bytes",
			t->max_bytes);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

static int in_member(const struct members *v, const struct tar_member *m, struct err *e)
{
	char text[STR_SHOWN];

	return err_ctx(e, "%s: member '%s' at byte %" PRIu64, v->name, str_shown(m->name, text),
		m->header_at);
}

/* ---- names ---- */

/* Is it, or is it below, something that aufs kept for itself? */
static bool is_special(const char *path)
{
	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (str_starts(p, SPECIAL) && !str_eq(p, OPAQUE))
			return true;
	}
	return false;
}

/* Split NAME off a/b/.wh.NAME, so that path becomes a/b/NAME; or a/b for an opaque folder. 1 and
 * the kind; 0 when the name is none of these. */
static int hiding(char *path, enum entry_kind *kind, struct err *e)
{
	char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *name = base + strlen(WHITEOUT);

	if (str_eq(base, OPAQUE)) {
		*kind = ENTRY_OPAQUE;
		*(slash ? slash : path) = '\0';
		return 1;
	}
	if (!str_starts(base, WHITEOUT))
		return 0;
	/* "." and ".." among them: cleaning would make them another name */
	if (tree_check_name(name, strlen(name), e) < 0)
		return err_ctx(e, "a whiteout");
	*kind = ENTRY_WHITEOUT;
	memmove(base, name, strlen(name) + 1);
	return 1;
}

/* ---- attributes ---- */

static const struct {
	enum node_type type;
} types[] = {
	['0'] = {NODE_FILE},
	['1'] = {NODE_HARDLINK},
	['2'] = {NODE_SYMLINK},
	['3'] = {NODE_CHAR},
	['4'] = {NODE_BLOCK},
	['5'] = {NODE_DIR},
	['6'] = {NODE_FIFO},
};

static int fill_type(const struct tar_member *m, struct attr *a, struct err *e)
{
	if (m->type < '0' || m->type > '6')
		return err_set(e, ERR_UNSUPPORTED, "its type is %d, which is no kind of file",
			(unsigned char)m->type);
	*a = (struct attr){.type = types[(unsigned char)m->type].type,
		.mode = m->type == '2' ? 0777 : m->mode, /* as lstat(2) shows every one */
		.uid = m->uid,
		.gid = m->gid,
		.mtime = m->mtime,
		.major = m->major,
		.minor = m->minor,
		.size = m->type == '0' ? m->size : 0};
	return 0;
}

/* A hard link's target is a member's name, a symbolic link's is data. */
static int fill_target(struct members *v, const struct tar_member *m, struct attr *a, struct err *e)
{
	char path[TREE_PATH_MAX + 1];
	const char *target = m->target;

	if (a->type != NODE_HARDLINK && a->type != NODE_SYMLINK)
		return 0;
	if (a->type == NODE_HARDLINK) {
		if (tree_clean_path(target, path, e) < 0)
			return err_ctx(e, "hard link");
		target = path;
	}
	if (!*target || strnlen(target, TREE_PATH_MAX + 1) > TREE_PATH_MAX)
		return err_set(e, ERR_CORRUPT, "the link's target is empty or longer than %d bytes",
			TREE_PATH_MAX);
	v->bytes += strlen(target);
	a->target = arena_strdup(&v->out->arena, target);
	return 0;
}

/* Extended attributes that a file system of images can hold, and that mean something inside of it.
 * Others are left out, as the kernel would refuse to set them on the file systems that other
 * engines unpack to. overlay's own would tell our mount what to hide. */
static bool keeps_xattr(const char *name)
{
	return attr_xattr_ok(name) && !str_starts(name, "trusted.overlay.") &&
	       !str_starts(name, "user.overlay.");
}

static void fill_xattrs(struct members *v, const struct tar_member *m, struct attr *a)
{
	struct arena *arena = &v->out->arena;
	uint32_t n = 0;

	if (a->type == NODE_HARDLINK)
		return;
	for (uint32_t i = 0; i < m->nxattrs; i++)
		n += keeps_xattr(m->xattrs[i].name);
	if (n == 0)
		return;
	a->xattrs = arena_alloc(arena, n * sizeof(*a->xattrs));
	for (uint32_t i = 0; i < m->nxattrs; i++) {
		const struct xattr *x = &m->xattrs[i];

		if (!keeps_xattr(x->name))
			continue;
		v->bytes += strlen(x->name) + x->len;
		a->xattrs[a->nxattrs++] = (struct xattr){.name = arena_strdup(arena, x->name),
			.value = arena_dup(arena, x->value, x->len),
			.len = x->len};
	}
}

/* ---- members ---- */

static int fill_attr(struct members *v, const char *path, const struct tar_member *m,
	struct attr *a, struct err *e)
{
	struct attr sizeless;

	if (tree_check_path(path, e) < 0 || fill_type(m, a, e) < 0 || fill_target(v, m, a, e) < 0)
		return -1;
	if (!*path && a->type != NODE_DIR)
		return err_set(e, ERR_CORRUPT, "it is the root, but no folder");
	fill_xattrs(v, m, a);
	sizeless = *a;
	sizeless.size = 0; /* the chunks come later */
	return attr_check(&sizeless, e);
}

static int count(struct members *v, size_t bytes, struct err *e)
{
	v->bytes += bytes;
	if (++v->n > v->max)
		return err_set(e, ERR_CORRUPT, "it is one too many: the limit is %" PRIu64, v->max);
	if (v->bytes > v->max_bytes)
		return err_set(e, ERR_CORRUPT,
			"all names and attributes are longer than the limit of %" PRIu64 " bytes",
			v->max_bytes);
	return 0;
}

static int add(struct members *v, const struct tar_member *m, struct entry **entry, struct err *e)
{
	char path[TREE_PATH_MAX + 1];
	enum entry_kind kind = ENTRY_PUT;
	struct attr a = {0};
	int rc;

	*entry = NULL;
	if (tree_strip_path(m->name, path, e) < 0 || count(v, strlen(path), e) < 0)
		return -1;
	if (is_special(path))
		return 0;
	rc = hiding(path, &kind, e);
	if (rc < 0)
		return -1;
	if (rc > 0 ? tree_check_path(path, e) < 0 : fill_attr(v, path, m, &a, e) < 0)
		return -1;
	*entry = entries_add(v->out, path);
	(*entry)->kind = kind;
	(*entry)->a = a;
	return 0;
}

int members_add(struct members *v, const struct tar_member *m, struct entry **entry, struct err *e)
{
	return add(v, m, entry, e) < 0 ? in_member(v, m, e) : 0;
}
