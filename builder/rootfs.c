#include "builder/rootfs.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/archive.h"

static int put(const struct rootfs *r, const char *path, struct attr *a, struct err *e)
{
	a->mtime = r->epoch;
	return tree_put(r->tree, path, a, r->origin, e) ? 0 : err_ctx(e, "/%s", path);
}

struct node *rootfs_at(struct tree *t, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[TREE_PATH_MAX + 1], full[2 * TREE_PATH_MAX + 2];
	const struct node *n;

	if (!slash)
		return tree_find(t, path);
	if ((size_t)(slash - path) > TREE_PATH_MAX)
		return NULL;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	n = tree_resolve(t, dir);
	if (!n)
		return NULL;
	node_path(n, dir);
	snprintf(full, sizeof(full), "%s%s", dir, dir[0] ? slash : slash + 1);
	return tree_find(t, full);
}

int rootfs_file(const struct rootfs *r, const char *path, const void *data, size_t n,
	struct owner o, struct err *e)
{
	struct attr a = {.type = NODE_FILE, .mode = o.mode, .uid = o.uid, .gid = o.gid};
	struct arena arena = {0};
	int rc = content_from_mem(data, n, r->pool, &arena, &a, e);

	if (rc == 0)
		rc = put(r, path, &a, e);
	arena_fini(&arena);
	return rc;
}

int rootfs_dir(const struct rootfs *r, const char *path, struct owner o, struct err *e)
{
	struct attr a = {.type = NODE_DIR, .mode = o.mode, .uid = o.uid, .gid = o.gid};
	const struct node *n = tree_resolve(r->tree, path);

	return n && n->a.type == NODE_DIR ? 0 : put(r, path, &a, e);
}

int rootfs_link(const struct rootfs *r, const char *path, const char *target, struct err *e)
{
	struct attr a = {.type = NODE_SYMLINK, .mode = 0777, .target = target};
	const struct node *n = rootfs_at(r->tree, path);

	if (n && n->a.type != NODE_SYMLINK && !(n->a.type == NODE_DIR && !n->child))
		return 0;
	return put(r, path, &a, e);
}

bool rootfs_has(const struct rootfs *r, const char *path)
{
	return tree_resolve(r->tree, path) != NULL;
}

static const struct attr *file_attr(const struct node *n)
{
	const struct node *object = n && n->link ? n->link : n;

	return object && object->a.type == NODE_FILE ? &object->a : NULL;
}

int rootfs_read(const struct rootfs *r, const char *path, struct buf *b, struct err *e)
{
	const struct attr *a = file_attr(tree_resolve(r->tree, path));

	if (!a)
		return 0;
	for (uint32_t i = 0; i < a->nchunks; i++) {
		if (buf_reserve(b, a->chunks[i].length, e) < 0 ||
			pool_read(r->pool, &a->chunks[i], b->data + b->len, e) < 0)
			return err_ctx(e, "/%s", path);
		b->len += a->chunks[i].length;
		b->data[b->len] = '\0';
	}
	return 1;
}

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

struct strings rootfs_list(const struct rootfs *r, const char *path, struct arena *a)
{
	const struct node *dir = tree_resolve(r->tree, path);
	struct strings l = {0};
	size_t n = 0;

	if (!dir || dir->a.type != NODE_DIR)
		return l;
	for (const struct node *k = dir->child; k; k = k->next)
		n++;
	l.v = arena_alloc(a, n * sizeof(const char *));
	for (const struct node *k = dir->child; k; k = k->next)
		l.v[l.n++] = k->name;
	qsort(l.v, l.n, sizeof(const char *), by_text);
	return l;
}

int rootfs_md5(const struct rootfs *r, const struct node *file, char hex[33], struct err *e)
{
	const struct attr *a = file_attr(file);
	auto_free unsigned char *chunk = mem_alloc(CHUNK_SIZE);
	uint8_t digest[HASH_MAX];
	struct hash h;

	hash_init(&h, HASH_MD5);
	for (uint32_t i = 0; a && i < a->nchunks; i++) {
		if (pool_read(r->pool, &a->chunks[i], chunk, e) < 0)
			return -1;
		hash_add(&h, chunk, a->chunks[i].length);
	}
	hex_encode(digest, hash_final(&h, digest), hex);
	return 0;
}
