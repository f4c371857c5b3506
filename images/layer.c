#include "images/layer.h"

#include <string.h>

#include "images/framer.h"
#include "images/tar.h"

enum { HEADER_WEIGHT = 1024 };

/* The tar is made in groups (framer.h): about FRAMER_WEIGHT bytes of consecutive members, or one
 * chunk of a big file. A group says where it begins; it ends where the next one does. */
struct group {
	size_t node;
	uint32_t chunk; /* of the node; 0: its header, too */
	uint64_t at;    /* offset in the tar (aligned layers only) */
};

struct writer {
	const struct layer *l;
	int32_t number;
	struct node *const *nodes;
	size_t n;
	struct pool *pool;
	struct group *groups;
	size_t ngroups, cap;
};

/* ---- planning ---- */

static size_t header_weight(const struct node *n)
{
	size_t w = HEADER_WEIGHT;

	for (uint32_t i = 0; i < n->a.nxattrs; i++)
		w += n->a.xattrs[i].len;
	return w;
}

static uint32_t items_of(const struct node *n)
{
	return n->a.nchunks ? n->a.nchunks : 1;
}

static int add_zeros(struct buf *b, size_t n, struct err *e)
{
	static const char zeros[TAR_END];

	return buf_add(b, zeros, n, e);
}

/* What goes before the data of node i: the padding of the member before it, and its header. */
static int add_header(const struct writer *w, struct buf *b, size_t i, uint64_t at, struct err *e)
{
	size_t pad = i > 0 ? tar_padding(w->nodes[i - 1]) : 0;

	if (add_zeros(b, pad, e) < 0)
		return -1;
	if (!tar_has_member(w->nodes[i]))
		return 0;
	return tar_header(
		b, w->nodes[i], at + pad, w->l->codec == CODEC_NONE && w->nodes[i]->a.nchunks, e);
}

/* Put node i into the layer. The object of a hard link must be there before it. */
static int claim(struct writer *w, size_t i, struct err *e)
{
	struct node *n = w->nodes[i];
	char a[TREE_PATH_MAX + 1], b[TREE_PATH_MAX + 1];

	if (n->layer == CHUNK_NO_LAYER)
		n->layer = w->number;
	if (n->link && n->link->layer != w->number)
		return err_set(e, ERR_UNSUPPORTED,
			"hard link '%.200s' and its object '%.200s' are not in one layer",
			node_path(n, a), node_path(n->link, b));
	return 0;
}

static int plan(struct writer *w, struct err *e)
{
	auto_buf struct buf scratch = BUF_INIT(TAR_HEADER_MAX);
	size_t weight = 0, items = FRAMER_MARKS; /* the first item begins a group */
	uint64_t at = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct node *n = w->nodes[i];

		if (claim(w, i, e) < 0)
			return -1;
		for (uint32_t k = 0; k < items_of(n); k++) {
			size_t add = (k == 0 ? header_weight(n) : 0) +
				     (k < n->a.nchunks ? n->a.chunks[k].length : 0);

			if (items == FRAMER_MARKS || weight + add > FRAMER_WEIGHT) {
				mem_grow(&w->groups, &w->cap, w->ngroups);
				w->groups[w->ngroups++] =
					(struct group){.node = i, .chunk = k, .at = at};
				weight = items = 0;
			}
			weight += add;
			items++;
			scratch.len = 0;
			if (w->l->codec == CODEC_NONE && k == 0 &&
				add_header(w, &scratch, i, at, e) < 0)
				return -1;
			at += scratch.len + (k < n->a.nchunks ? n->a.chunks[k].length : 0);
		}
	}
	if (w->ngroups == 0) { /* an empty layer is the end of a tar alone */
		mem_grow(&w->groups, &w->cap, w->ngroups);
		w->groups[w->ngroups++] = (struct group){0};
	}
	return 0;
}

/* ---- making it ---- */

static int add_chunk(struct writer *w, struct framer_group *g, struct chunk *c, struct err *e)
{
	if (buf_reserve(&g->raw, c->length, e) < 0 ||
		pool_check(w->pool, c, g->raw.data + g->raw.len, e) < 0)
		return -1;
	g->raw.len += c->length;
	framer_mark(g, c->length, c);
	return 0;
}

static int fill(void *ctx, size_t group, struct framer_group *g, struct err *e)
{
	struct writer *w = ctx;
	const struct group *from = &w->groups[group],
			   *to = group + 1 < w->ngroups ? from + 1 : NULL;
	size_t i = from->node;
	uint32_t k = from->chunk;

	while (to ? i < to->node || k < to->chunk : i < w->n) {
		const struct node *n = w->nodes[i];

		if (k == 0 && add_header(w, &g->raw, i, from->at + g->raw.len, e) < 0)
			return -1;
		if (k < n->a.nchunks && add_chunk(w, g, &n->a.chunks[k], e) < 0)
			return -1;
		if (++k >= n->a.nchunks) {
			i++;
			k = 0;
		}
	}
	if (to)
		return 0;
	return add_zeros(&g->raw, w->n ? tar_padding(w->nodes[w->n - 1]) : 0, e) < 0
		       ? -1
		       : add_zeros(&g->raw, TAR_END, e);
}

static void placed(void *ctx, const struct framer_mark *m)
{
	struct writer *w = ctx;
	struct chunk *c = m->user;

	if (c->layer != CHUNK_NO_LAYER)
		return;
	c->layer = w->number;
	c->stored = m->stored;
	c->offset = m->offset;
}

int layer_write_blob(struct layer *l, int32_t number, struct node *const *nodes, size_t n,
	struct pool *p, struct blob_writer *blob, struct progress *pr, struct err *e)
{
	struct writer w = {.l = l, .number = number, .nodes = nodes, .n = n, .pool = p};
	struct framer f = {.codec = l->codec,
		.level = l->level,
		.fill = fill,
		.placed = placed,
		.ctx = &w,
		.progress = pr};
	int rc = plan(&w, e);

	f.n = w.ngroups;
	if (rc == 0)
		rc = framer_run(&f, blob, e);
	free(w.groups);
	if (rc < 0)
		return -1;
	l->digest = f.digest;
	l->diff_id = f.diff_id;
	l->size = blob->size;
	l->tar_size = f.tar_size;
	return 0;
}

int layer_write(struct layer *l, int32_t number, struct node *const *nodes, size_t n,
	struct pool *p, struct store *s, struct progress *pr, struct err *e)
{
	struct blob_writer w;
	int rc;

	if (store_blob_begin(s, &w, e) < 0)
		return -1;
	rc = layer_write_blob(l, number, nodes, n, p, &w, pr, e);
	if (rc == 0)
		rc = store_blob_commit(&w, &l->digest, e);
	store_blob_abort(&w);
	return rc;
}
