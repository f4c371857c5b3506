/* Chunks that are wrong or missing, written again: from a good copy, from a layer in the store,
 * from where the image came from. What was tried is looked at again in the end: that counts. */
#include <string.h>

#include "base/sys.h"
#include "images/chunk-source.h"
#include "images/fsck-private.h"
#include "images/pool-sweep.h"
#include "images/pull.h"
#include "images/reach.h"

/* By the digest of its chunk. */
static int by_digest(const void *a, const void *b)
{
	const struct digest *d = a;
	const struct fault *x = b;

	return memcmp(d->b, x->c.digest.b, DIGEST_SIZE);
}

/* ---- in the pool ---- */

/* A record and its twin have the same data. */
static int from_copy(struct check *k, const struct fault *x, void *data, struct err *e)
{
	struct chunk record = x->c;

	if (!x->twin || pool_find(k->pool, &record, e) <= 0 ||
		pool_check(k->pool, &record, data, NULL) < 0)
		return 0;
	return pool_repair(k->pool, &x->c, data, e);
}

/* A chunk that nobody had when the images were looked at may have got an owner since. */
static int own_chunk(void *ctx, const struct node *n, struct chunk *c, struct err *e)
{
	struct check *k = ctx;
	struct fault *x = bsearch(&c->digest, k->v, k->n, sizeof(*k->v), by_digest);

	(void)n;
	(void)e;
	while (x && x > k->v && digest_eq(&x[-1].c.digest, &c->digest))
		x--;
	for (; x && x < k->v + k->n && digest_eq(&x->c.digest, &c->digest); x++)
		if (!x->owned) {
			x->owned = true;
			x->manifest = *k->owner;
		}
	return 0;
}

static int own_chunks(void *ctx, struct image *im, struct err *e)
{
	struct check *k = ctx;

	k->owner = &im->manifest_digest;
	return reach_tree_chunks(k->s, im, own_chunk, k, e);
}

static int own_root(void *ctx, const struct digest *manifest, struct err *e)
{
	struct check *k = ctx;

	return reach_images(k->s, manifest, own_chunks, k, e);
}

/* What no image has is garbage (or in a list of a layer, which is then as good as none); but the
 * next pull would take it for good. Nobody else has the pool open: so nobody is about to name an
 * image that has it. */
static int forget(struct check *k, struct err *e)
{
	auto_free struct chunk **v = mem_array(k->n, sizeof(struct chunk *));
	bool unowned = false;
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++)
		unowned = unowned || !k->v[i].owned;
	if (!unowned)
		return 0;
	if (reach_roots(k->s, own_root, k, NULL) < 0) /* it cannot be told what they need */
		return 0;
	for (size_t i = 0; i < k->n; i++)
		if (!k->v[i].owned && !k->v[i].twin)
			v[n++] = &k->v[i].c;
	return n ? pool_forget(k->pool, v, n, e) : 0;
}

static int put_back(struct check *k, const struct fault *x, const void *data, struct err *e)
{
	struct chunk put = x->c;

	return x->c.block == CHUNK_NO_BLOCK ? pool_put(k->pool, data, x->c.length, &put, e)
					    : pool_repair(k->pool, &x->c, data, e);
}

/* ---- from layers in the store ---- */

struct layers {
	struct check *k;
	struct layer *v;
	size_t n;
	const struct digest *manifest;
	void *data;
};

/* Errors of the layer are none: there may be another way. */
static int from_layer(struct layers *l, const struct chunk *c, struct err *e)
{
	struct check *k = l->k;
	struct fault *x = bsearch(&c->digest, k->v, k->n, sizeof(*k->v), by_digest);

	if (!x || !x->owned || !digest_eq(&x->manifest, l->manifest) ||
		chunk_from_layer(k->s, l->v, l->n, c, l->data, NULL) < 0)
		return 0;
	while (x > k->v && digest_eq(&x[-1].c.digest, &c->digest))
		x--;
	for (; x < k->v + k->n && digest_eq(&x->c.digest, &c->digest); x++)
		if (put_back(k, x, l->data, e) < 0)
			return -1;
	return 0;
}

static int from_layers(struct check *k, struct image *im, void *data, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(INDEX_BYTES_MAX);
	struct layers l = {.k = k, .manifest = &im->manifest_digest, .data = data};
	struct tree *t = NULL;
	int rc = 0;

	if (image_index(im, k->s, &b, NULL) == 0)
		t = index_decode(b.data, b.len, &l.v, &l.n, NULL);
	for (struct node *x = t ? tree_root(t) : NULL; x && rc == 0; x = tree_next(x))
		for (uint32_t i = 0; x->a.type == NODE_FILE && i < x->a.nchunks && rc == 0; i++)
			rc = from_layer(&l, &x->a.chunks[i], e);
	tree_free(t);
	free(l.v);
	return rc;
}

/* ---- image by image ---- */

/* fn once for each image that has faults; the pool is fn's business. */
static int each_owner(struct check *k,
	int (*fn)(struct check *k, const struct digest *manifest, struct err *e), struct err *e)
{
	struct digest_map seen = {0};
	int rc = 0;

	for (size_t i = 0; i < k->n && rc == 0; i++)
		if (k->v[i].owned && !digest_map_find(&seen, &k->v[i].manifest)) {
			digest_map_add(&seen, &k->v[i].manifest);
			rc = fn(k, &k->v[i].manifest, e);
		}
	digest_map_fini(&seen);
	return rc;
}

static int repair_from_layers(struct check *k, const struct digest *manifest, struct err *e)
{
	auto_free void *data = mem_alloc(CHUNK_SIZE);
	struct image im;
	int rc;

	if (image_load(&im, k->s, manifest, NULL) < 0)
		return 0;
	rc = from_layers(k, &im, data, e);
	image_fini(&im);
	return rc;
}

/* Is it as it should be now? 1, 0, -1. */
static int is_right(struct check *k, const struct fault *x, void *data, struct err *e)
{
	struct chunk c = x->c;
	int rc = 1;

	if (!x->twin)
		rc = pool_find(k->pool, &c, e);
	return rc <= 0 ? rc : pool_check(k->pool, &c, data, NULL) == 0;
}

static int repair_here(struct check *k, struct err *e)
{
	auto_free void *data = mem_alloc(CHUNK_SIZE);

	if (forget(k, e) < 0 || each_owner(k, repair_from_layers, e) < 0)
		return -1;
	for (size_t i = 0; i < k->n; i++)
		if (from_copy(k, &k->v[i], data, e) < 0)
			return -1;
	return pool_commit(k->pool, e);
}

/* ---- from elsewhere ---- */

struct wanting {
	struct chunk **v;
	size_t n;
};

static int list_wrong(
	struct check *k, const struct digest *manifest, struct wanting *w, struct err *e)
{
	auto_free void *data = mem_alloc(CHUNK_SIZE);

	w->v = mem_array(k->n, sizeof(struct chunk *));
	k->pool = pool_open(k->s->fd, false, e);
	if (!k->pool)
		return -1;
	for (size_t i = 0; i < k->n; i++) {
		struct fault *x = &k->v[i];
		int right = 1;

		if (x->owned && !x->twin && digest_eq(&x->manifest, manifest))
			right = is_right(k, x, data, e);
		if (right < 0)
			return -1;
		if (!right)
			w->v[w->n++] = &x->c;
	}
	return 0;
}

static int repair_from_source(struct check *k, const struct digest *manifest, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	struct wanting w = {0};
	struct err fault = {0};
	int rc = list_wrong(k, manifest, &w, e);

	pool_close(k->pool);
	k->pool = NULL;
	if (rc == 0 && w.n &&
		image_refetch(k->s, k->f->config, manifest, w.v, w.n, k->f->progress, &fault) < 0)
		fsck_say(k->f, "image %.12s: %s", digest_hex(manifest, hex), fault.text);
	free(w.v);
	return rc;
}

/* ---- all of it ---- */

static int count_right(struct check *k, struct err *e)
{
	auto_free void *data = mem_alloc(CHUNK_SIZE);
	char text[DIGEST_TEXT + 1];

	for (size_t i = 0; i < k->n; i++) {
		const struct fault *x = &k->v[i];
		int right = is_right(k, x, data, e);

		if (right < 0)
			return -1;
		if (!right && !x->owned && !x->twin)
			right = 1; /* forgotten */
		if (right)
			k->f->repaired++;
		else
			fsck_say(k->f, "chunk %s could not be had: pull or build its image again",
				digest_text(&x->c.digest, text));
	}
	return 0;
}

static int with_pool(
	struct check *k, bool alone, int (*fn)(struct check *k, struct err *e), struct err *e)
{
	int rc;

	k->pool = alone ? pool_open_alone(k->s->fd, e) : pool_open(k->s->fd, false, e);
	if (!k->pool)
		return -1;
	rc = fn(k, e);
	pool_close(k->pool);
	k->pool = NULL;
	return rc;
}

int fsck_repair(struct check *k, struct err *e)
{
	if (with_pool(k, true, repair_here, e) < 0 || each_owner(k, repair_from_source, e) < 0 ||
		/* what came may be what a twin lacks */
		with_pool(k, true, repair_here, e) < 0)
		return -1;
	return with_pool(k, false, count_right, e);
}
