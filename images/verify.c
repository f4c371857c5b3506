/* svrun image verify: everything an image needs, hashed again. */
#include "images/image.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "images/chunk-source.h"
#include "images/mount-image.h"
#include "images/mount.h"
#include "images/progress.h"
#include "images/tree-chunks.h"
#include "images/verify-layer.h"
#include "images/workers.h"

enum {
	BATCH = 64, /* chunks that a thread checks with one buffer */
};
static const uint64_t tar_size_max = (uint64_t)1 << 40; /* of a layer that no index speaks of */

struct verify {
	struct image *im;
	struct store *s;
	bool repair, away; /* away: layers that are not in the store can be fetched */
	struct progress *progress;
	struct tree *tree;
	struct layer *layers; /* as the index has them */
	size_t nlayers;
	struct pool *pool;
	struct tree_chunks chunks;
	atomic_size_t repaired;
};

/* ---- layers ---- */

static int verify_layer(void *ctx, size_t i, struct err *e)
{
	struct verify *v = ctx;
	const struct image_layer *l = &v->im->layers[i];
	uint64_t max =
		i < v->nlayers && v->layers[i].tar_size ? v->layers[i].tar_size : tar_size_max;
	bool damaged;

	/* a pulled image lives in the pool; only the layer with its index must be here */
	if (v->away && !store_has(v->s, &l->digest) &&
		(!v->im->has_index || !digest_eq(&l->digest, &v->im->index.layer)))
		return 0;
	if (layer_verify(v->s, l, max, v->progress, &damaged, e) == 0)
		return 0;
	if (damaged && v->repair && store_blob_remove(v->s, &l->digest, NULL) == 0)
		err_hint(e, "it was removed: svrun image build makes it again");
	if (damaged)
		err_hint(e,
			"svrun image verify --repair removes it, svrun image build makes it again");
	return err_ctx(e, "layer %zu", i);
}

static int verify_layers(struct verify *v, struct err *e)
{
	uint64_t total = 0;
	int rc;

	for (size_t i = 0; i < v->im->nlayers; i++)
		total += v->im->layers[i].size;
	progress_begin(v->progress, "layers", total);
	rc = workers_each(v->im->nlayers, 0, verify_layer, v, e);
	progress_end(v->progress);
	return rc;
}

/* ---- the index ---- */

static int load_index(struct verify *v, struct err *e)
{
	v->tree = image_tree(v->im, v->s, &v->layers, &v->nlayers, e);
	return v->tree ? 0 : -1;
}

/* ---- the pool ---- */

/* found: the pool has a record of it, whose data are wrong; else it has none. */
static int repair_chunk(struct verify *v, const struct chunk *c, bool found, struct err *e)
{
	auto_free void *data = mem_alloc(c->length);
	struct chunk put = *c;
	struct err fault = {0};
	char text[DIGEST_TEXT + 1];

	if (chunk_from_layer(v->s, v->layers, v->nlayers, c, data, &fault) < 0) {
		if (v->away) {
			err_set(e, ERR_CORRUPT,
				"the pool lacks chunk %s, and its layer is not here",
				digest_text(&c->digest, text));
			return err_hint(e, "svrun image fsck --repair fetches it again");
		}
		if (e)
			*e = fault;
		return -1;
	}
	if (found ? pool_repair(v->pool, c, data, e) < 0
		  : pool_put(v->pool, data, c->length, &put, e) < 0)
		return -1;
	atomic_fetch_add(&v->repaired, 1);
	return 0;
}

static int verify_chunk(struct verify *v, struct chunk *c, void *scratch, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	struct err fault = {0};
	int found = pool_find(v->pool, c, e);

	if (found < 0)
		return -1;
	if (found && pool_check(v->pool, c, scratch, &fault) == 0)
		return 0;
	if (v->repair)
		return repair_chunk(v, c, found, e);
	if (!found)
		err_set(&fault, ERR_CORRUPT, "the pool lacks chunk %s",
			digest_text(&c->digest, text));
	err_hint(&fault, "svrun image verify --repair writes it again from its layer");
	if (e)
		*e = fault;
	return -1;
}

static int verify_batch(void *ctx, size_t i, struct err *e)
{
	struct verify *v = ctx;
	auto_free void *scratch = mem_alloc(CHUNK_SIZE);

	for (size_t k = i * BATCH; k < v->chunks.n && k < (i + 1) * BATCH; k++) {
		if (verify_chunk(v, v->chunks.v[k], scratch, e) < 0)
			return -1;
		progress_add(v->progress, v->chunks.v[k]->length);
	}
	return 0;
}

static int verify_pool(struct verify *v, struct err *e)
{
	uint64_t total = 0;
	int rc;

	v->pool = pool_open(v->s->fd, v->repair, e);
	if (!v->pool) {
		if (e && e->kind == ERR_NOT_FOUND)
			err_hint(e, "svrun image verify --repair makes it from the images' layers");
		return -1;
	}
	tree_chunks_init(&v->chunks, v->tree);
	for (size_t i = 0; i < v->chunks.n; i++)
		total += v->chunks.v[i]->length;
	progress_begin(v->progress, "pool", total);
	rc = workers_each((v->chunks.n + BATCH - 1) / BATCH, 0, verify_batch, v, e);
	if (rc == 0 && v->repair)
		rc = pool_commit(v->pool, e);
	progress_end(v->progress);
	pool_close(v->pool); /* before mount_prepare() opens it */
	return rc;
}

/* ---- the metadata image ---- */

/* It is only a cache of the index and the pool, so one that is missing is simply made. */
static int verify_metadata(struct verify *v, struct err *e)
{
	const struct digest *d = &v->im->manifest_digest;
	int ready = mount_image_ready(v->s, d, e);

	if (ready < 0)
		return -1;
	if (ready && v->repair && mount_image_check(v->s, d, NULL) < 0) {
		if (mount_image_remove(v->s, d, e) < 0)
			return -1;
		atomic_fetch_add(&v->repaired, 1);
		ready = 0;
	}
	if (ready && mount_image_check(v->s, d, e) < 0)
		return err_hint(e, "svrun image verify --repair makes it again");
	return mount_prepare(v->s, d, NULL, e);
}

int image_verify(struct image *im, struct store *s, struct image_verify *out, struct progress *pr,
	struct err *e)
{
	auto_free char *source = store_source(s, &im->manifest_digest);
	struct verify v = {
		.im = im, .s = s, .repair = out->repair, .away = source != NULL, .progress = pr};
	bool indexed = image_is_indexed(im, s);
	struct err index = {0};
	int rc;

	/* the index bounds what layers may unpack to; when it is damaged, so is the layer that
	 * carries it, which says more */
	if (indexed)
		load_index(&v, &index);
	rc = verify_layers(&v, e);
	if (rc == 0 && index.kind != ERR_NONE) {
		if (e)
			*e = index;
		rc = -1;
	}
	if (rc == 0 && indexed)
		rc = verify_pool(&v, e) < 0 ? -1 : verify_metadata(&v, e);
	out->chunks = v.chunks.n;
	out->repaired = v.repaired;
	free(v.layers);
	tree_chunks_fini(&v.chunks);
	tree_free(v.tree);
	return rc;
}
