#include "images/export.h"

#include "images/pool.h"
#include "images/progress.h"
#include "images/tar.h"

/* The file's chunk, out of the pool, as it should be. */
static int read_chunk(struct pool *p, struct chunk *c, void *data, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	int rc = pool_find(p, c, e);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(
			e, ERR_CORRUPT, "the pool lacks chunk %s", digest_text(&c->digest, text));
	return pool_check(p, c, data, e);
}

int export_read(struct pool *p, const struct node *n, void *out, struct err *e)
{
	char path[TREE_PATH_MAX + 1];
	unsigned char *at = out;

	for (uint32_t i = 0; i < n->a.nchunks; i++) {
		if (read_chunk(p, &n->a.chunks[i], at, e) < 0)
			return err_ctx(e, "'%.200s'", node_path(n, path));
		at += n->a.chunks[i].length;
	}
	return 0;
}

int export_read_small(
	struct pool *p, const struct node *n, size_t max, struct buf *b, struct err *e)
{
	n = n && n->link ? n->link : n;
	if (!n || n->a.type != NODE_FILE || n->a.size > max)
		return 0;
	*b = BUF_INIT(max + 1);
	if (buf_reserve(b, (size_t)n->a.size, e) < 0 || export_read(p, n, b->data, e) < 0)
		return -1;
	b->len = (size_t)n->a.size;
	b->data[b->len] = '\0';
	return 1;
}

static int write_file(struct outlet *o, struct pool *p, const struct node *n, unsigned char *data,
	struct progress *pr, struct err *e)
{
	for (uint32_t i = 0; i < n->a.nchunks; i++) {
		struct chunk *c = &n->a.chunks[i];

		if (read_chunk(p, c, data, e) < 0 || outlet_write(o, data, c->length, e) < 0)
			return -1;
		progress_add(pr, c->length);
	}
	return 0;
}

static int write_tree(
	struct outlet *o, struct pool *p, struct tree *t, struct progress *pr, struct err *e)
{
	auto_free unsigned char *data = mem_alloc(CHUNK_SIZE);
	char path[TREE_PATH_MAX + 1];

	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		if (!tar_has_member(n))
			continue;
		if (outlet_node(o, n, e) < 0)
			return -1;
		if (n->a.type == NODE_FILE && write_file(o, p, n, data, pr, e) < 0)
			return err_ctx(e, "'%.200s'", node_path(n, path));
		if (outlet_end(o, e) < 0)
			return -1;
	}
	return 0;
}

int image_export(
	struct image *im, struct store *s, struct outlet *o, struct progress *pr, struct err *e)
{
	struct tree *t = image_tree(im, s, NULL, NULL, e);
	struct pool *p = t ? pool_open(s->fd, false, e) : NULL;
	uint64_t total = 0;
	int rc = -1;

	if (p) {
		for (struct node *n = tree_root(t); n; n = tree_next(n))
			total += n->a.type == NODE_FILE ? n->a.size : 0;
		progress_begin(pr, "export", total);
		rc = write_tree(o, p, t, pr, e);
		progress_end(pr);
		pool_close(p);
	}
	tree_free(t);
	if (rc < 0 && e && e->kind == ERR_CORRUPT)
		err_hint(e, "svrun image fsck finds and repairs what is damaged");
	return rc;
}
