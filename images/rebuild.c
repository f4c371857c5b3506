#include "images/rebuild.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sys.h"
#include "images/folder-search.h"
#include "images/frame.h"
#include "images/pool.h"
#include "images/tar.h"

enum {
	SAMPLES = 8,   /* chunks that tell a level */
	TRIES_MAX = 4, /* levels that a whole layer is written with */
	LEVELS_MAX = 19,
	LEVEL_USUAL = 3, /* the builder's */
	/* the search for folders */
	FOLDERS_MAX = 4,
	SEARCH_TRIES_MIN = 16,
	SEARCH_TRIES_MAX = 2000,
};
static const uint64_t search_bytes = (uint64_t)1 << 30; /* of tars, in all tries */

struct rebuild {
	struct image *im;
	struct store *s;
	int hold; /* keeps garbage collection away */
	struct pool *pool;
	struct tree *tree;
	struct layer *layers;
	size_t nlayers;
};

static int open_index(struct rebuild *r, struct err *e)
{
	if (!r->im->has_index)
		return err_set(e, ERR_UNSUPPORTED, "the image has no index of its own");
	r->tree = image_tree(r->im, r->s, &r->layers, &r->nlayers, e);
	if (!r->tree)
		return -1;
	for (struct node *n = tree_root(r->tree); n; n = tree_next(n))
		n->scratch = 0; /* of list_nodes() */
	return 0;
}

struct rebuild *rebuild_open(struct image *im, struct store *s, struct err *e)
{
	struct rebuild *r = mem_alloc(sizeof(*r));

	r->im = im;
	r->s = s;
	r->hold = pool_hold(s->fd, e);
	if (r->hold >= 0 && open_index(r, e) == 0)
		r->pool = pool_open(s->fd, false, e);
	if (r->pool)
		return r;
	rebuild_close(r);
	return NULL;
}

void rebuild_close(struct rebuild *r)
{
	if (!r)
		return;
	if (r->pool)
		pool_close(r->pool);
	sys_close_ref(&r->hold);
	tree_free(r->tree);
	free(r->layers);
	free(r);
}

/* ---- what is in the layer ---- */

struct nodes {
	struct node **v;
	size_t n, cap;
};

/* node->scratch of what is in a layer. */
static uint64_t mark_of(int32_t number)
{
	return (uint64_t)number + 1;
}

static void add_node(struct nodes *l, struct node *n, uint64_t mark)
{
	if (n->scratch == mark)
		return;
	n->scratch = mark;
	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n++] = n;
}

/* Every layer names all the parents of what it holds (builder/group.c), in the order of the tree.
 * A folder is the index's first layer's that has it; in others it is known by what is in it. */
static void list_nodes(struct rebuild *r, int32_t number, struct nodes *l)
{
	uint64_t mark = mark_of(number);

	for (struct node *n = tree_root(r->tree); n; n = tree_next(n)) {
		struct node *up[TREE_DEPTH_MAX + 1];
		size_t depth = 0;

		if (n->layer != number)
			continue;
		for (struct node *p = n->parent; p && p->parent && depth < TREE_DEPTH_MAX;
			p = p->parent)
			up[depth++] = p;
		while (depth > 0)
			add_node(l, up[--depth], mark);
		add_node(l, n, mark);
	}
}

static struct chunk **list_chunks(const struct nodes *l, size_t *n)
{
	struct chunk **v = NULL;
	size_t cap = 0;

	*n = 0;
	for (size_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < l->v[i]->a.nchunks; k++) {
			mem_grow(&v, &cap, *n);
			v[(*n)++] = &l->v[i]->a.chunks[k];
		}
	return v;
}

static int find_chunks(struct rebuild *r, struct chunk **v, size_t n, struct err *e)
{
	size_t missing = 0;

	if (n > 0 && pool_find_all(r->pool, v, n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		missing += v[i]->block == CHUNK_NO_BLOCK;
	if (missing == 0)
		return 0;
	return err_set(e, ERR_NOT_FOUND, "the pool lacks %zu of its %zu chunks", missing, n);
}

/* ---- which level made it ---- */

/* Does a level make frames as long as the samples' are? 1, 0, -1. */
static int level_fits(struct rebuild *r, enum codec codec, int level, struct chunk *const *v,
	size_t n, struct err *e)
{
	auto_free unsigned char *data = mem_alloc(CHUNK_SIZE),
				*out = mem_alloc(frame_bound(codec, CHUNK_SIZE));
	struct encoder *x = encoder_new(codec, level, e);
	int rc = x ? 1 : -1;

	for (size_t i = 0; rc == 1 && i < n; i++) {
		size_t length;

		if (pool_check(r->pool, v[i], data, e) < 0 ||
			encoder_frame(x, data, v[i]->length, out, &length, e) < 0)
			rc = -1;
		else
			rc = length == v[i]->stored;
	}
	encoder_free(x);
	return rc;
}

/* Some of the layer's chunks, spread over it, whose frames are in this layer. */
static size_t pick_samples(
	struct chunk *const *v, size_t n, int32_t number, struct chunk *out[SAMPLES])
{
	size_t count = 0, own = 0, seen = 0;

	for (size_t i = 0; i < n; i++)
		own += v[i]->layer == number;
	for (size_t i = 0; i < n && count < SAMPLES; i++) {
		if (v[i]->layer != number)
			continue;
		if (seen++ >= count * own / SAMPLES)
			out[count++] = v[i];
	}
	return count;
}

/* Levels that may have made the layer, the usual one first. */
static int find_levels(struct rebuild *r, enum codec codec, struct chunk *const *v, size_t n,
	int32_t number, int out[LEVELS_MAX], struct err *e)
{
	struct chunk *samples[SAMPLES];
	size_t count = pick_samples(v, n, number, samples);
	int max = codec == CODEC_ZSTD ? LEVELS_MAX : codec == CODEC_GZIP ? 9 : 0, found = 0;

	if (max == 0) {
		out[0] = 0;
		return 1;
	}
	for (int i = 0; i < max; i++) {
		/* 3 1 2 4 5 ... */
		int level = i == 0 ? LEVEL_USUAL : i < LEVEL_USUAL ? i : i + 1;
		int rc = level_fits(r, codec, level, samples, count, e);

		if (rc < 0)
			return -1;
		if (rc)
			out[found++] = level;
	}
	return found;
}

/* ---- writing ---- */

struct attempt {
	struct rebuild *r;
	size_t layer;
	int level;
	struct blob_writer *w;
	struct progress *progress;
	struct layer out; /* what came out last */
};

/* 1 when w has the layer's bytes, 0 when they came out otherwise and w is gone, -1. */
static int attempt(void *ctx, struct node *const *v, size_t n, struct err *e)
{
	struct attempt *a = ctx;
	const struct image_layer *want = &a->r->im->layers[a->layer];
	int rc;

	a->out = (struct layer){.codec = want->codec, .level = a->level};
	if (store_blob_begin(a->r->s, a->w, e) < 0)
		return -1;
	rc = layer_write_blob(&a->out, (int32_t)a->layer, v, n, a->r->pool, a->w, a->progress, e);
	a->progress = NULL; /* once is enough */
	if (rc == 0)
		rc = digest_eq(&a->out.digest, &want->digest);
	if (rc <= 0)
		store_blob_abort(a->w);
	return rc;
}

/* The tar was another one: shorter by the headers of some folders? */
static int search_folders(struct attempt *a, struct err *e)
{
	uint64_t want = a->r->layers[a->layer].tar_size, got = a->out.tar_size;
	struct folder_search s = {.tree = a->r->tree,
		.number = (int32_t)a->layer,
		.mark = mark_of((int32_t)a->layer),
		.attempt = attempt,
		.ctx = a};

	if (want <= got || (want - got) % TAR_BLOCK || (want - got) / TAR_BLOCK > FOLDERS_MAX)
		return 0;
	s.missing = (size_t)((want - got) / TAR_BLOCK);
	s.tries = want < search_bytes / SEARCH_TRIES_MIN ? (size_t)(search_bytes / want)
							 : SEARCH_TRIES_MIN;
	if (s.tries > SEARCH_TRIES_MAX)
		s.tries = SEARCH_TRIES_MAX;
	return folder_search(&s, e);
}

static int write_again(
	struct attempt *a, const struct nodes *l, const int *levels, int n, struct err *e)
{
	const struct image_layer *want = &a->r->im->layers[a->layer];
	bool other_tar = false;

	for (int k = 0; k < n && k < TRIES_MAX; k++) {
		int rc;

		a->level = levels[k];
		rc = attempt(a, l->v, l->n, e);
		if (rc == 0 && !digest_eq(&a->out.diff_id, &want->diff_id)) {
			other_tar = true;
			rc = search_folders(a, e);
		}
		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}
	if (other_tar)
		return err_set(e, ERR_NOT_FOUND,
			"its tar comes out otherwise: it may hold folders that the index does not "
			"tell of");
	return err_set(
		e, ERR_NOT_FOUND, "no level of %s makes the same bytes", codec_name(want->codec));
}

int rebuild_layer(
	struct rebuild *r, size_t i, struct blob_writer *w, struct progress *p, struct err *e)
{
	const struct image_layer *want = &r->im->layers[i];
	struct attempt a = {.r = r, .layer = i, .w = w, .progress = p};
	struct nodes l = {0};
	struct chunk **v;
	size_t n;
	int rc = -1, levels[LEVELS_MAX], nlevels;

	if (i >= r->nlayers || !digest_eq(&r->layers[i].digest, &want->digest) ||
		r->layers[i].codec != want->codec)
		return err_set(e, ERR_NOT_FOUND, "the index does not tell of it");
	list_nodes(r, (int32_t)i, &l);
	v = list_chunks(&l, &n);
	if (find_chunks(r, v, n, e) == 0) {
		nlevels = find_levels(r, want->codec, v, n, (int32_t)i, levels, e);
		if (nlevels >= 0)
			rc = write_again(&a, &l, levels, nlevels, e);
	}
	free(v);
	free(l.v);
	return rc;
}
