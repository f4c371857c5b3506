/* Chunks that the pool lacks, or whose data there are damaged, from where the image came from. */
#include "images/pull.h"

#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "images/chunk-fetch.h"
#include "images/complete.h"
#include "images/decompress.h"
#include "images/progress.h"
#include "images/registry.h"
#include "images/tar-read.h"
#include "images/tree-chunks.h"
#include "images/unpack.h"

struct refetch {
	struct store *s;
	const struct config *config;
	struct image *im;
	const char *source;
	struct chunk **v; /* sorted by digest */
	bool *done;
	size_t n, left;
	struct progress *progress;
};

static int by_digest(const void *a, const void *b)
{
	const struct chunk *const *x = a, *const *y = b;

	return memcmp((*x)->digest.b, (*y)->digest.b, DIGEST_SIZE);
}

static struct chunk **find(const struct refetch *r, const struct digest *d)
{
	struct chunk key = {.digest = *d}, *k = &key;

	return bsearch(&k, r->v, r->n, sizeof(struct chunk *), by_digest);
}

/* ---- images with an index of their own: frame by frame ---- */

/* Where their frames lie is what the index says. */
static int place_chunks(struct refetch *r, struct tree *t, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	struct tree_chunks c;
	size_t found = 0;

	tree_chunks_init(&c, t);
	for (size_t i = 0; i < c.n; i++) {
		struct chunk **x = find(r, &c.v[i]->digest);

		if (!x)
			continue;
		(*x)->layer = c.v[i]->layer;
		(*x)->offset = c.v[i]->offset;
		(*x)->stored = c.v[i]->stored;
		found++;
	}
	tree_chunks_fini(&c);
	if (found == r->n)
		return 0;
	return err_set(e, ERR_NOT_FOUND, "chunk %s is not of this image",
		digest_text(&r->v[0]->digest, text));
}

/* What is damaged is written over; what the pool lacks is added. */
static int fetch_both(struct refetch *r, struct chunk_fetch *f, struct err *e)
{
	auto_free struct chunk **damaged = mem_array(r->n, sizeof(struct chunk *)),
			       **missing = mem_array(r->n, sizeof(struct chunk *));
	size_t n = 0, m = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->v[i]->block == CHUNK_NO_BLOCK)
			missing[m++] = r->v[i];
		else
			damaged[n++] = r->v[i];
	f->repair = true;
	if (n && chunk_fetch(f, damaged, n, e) < 0)
		return -1;
	f->repair = false;
	if (m && chunk_fetch(f, missing, m, e) < 0)
		return -1;
	return m ? pool_commit(f->pool, e) : 0;
}

static int fetch_frames(
	struct refetch *r, struct registry *registry, struct layer *layers, size_t n, struct err *e)
{
	struct chunk_fetch f = {.layers = layers, .nlayers = n};
	int rc = -1;

	f.download = download_new(registry, &download_defaults, e);
	f.pool = f.download ? pool_open(r->s->fd, true, e) : NULL;
	if (f.pool)
		rc = fetch_both(r, &f, e);
	pool_close(f.pool);
	download_free(f.download);
	return rc;
}

static int refetch_own(struct refetch *r, struct err *e)
{
	const char *slash = strchr(r->source, '/');
	auto_free char *host = mem_printf("%.*s", (int)(slash - r->source), r->source);
	struct registry_options o = {.config = r->config, .host = host, .path = slash + 1};
	auto_free struct layer *layers = NULL;
	struct registry *registry = NULL;
	size_t n;
	struct tree *t = image_tree(r->im, r->s, &layers, &n, e);
	int rc = -1;

	if (t && place_chunks(r, t, e) == 0)
		registry = registry_open(&o, e);
	if (registry)
		rc = fetch_frames(r, registry, layers, n, e);
	registry_close(registry);
	tree_free(t);
	return rc;
}

/* ---- images of others: whole layers, until all are found ---- */

static int walk_file(struct refetch *r, struct tar_reader *tar, uint64_t size, struct pool *p,
	unsigned char *buf, struct err *e)
{
	while (size > 0) {
		uint32_t want = size < CHUNK_SIZE ? (uint32_t)size : CHUNK_SIZE, have = 0;
		struct digest d;
		struct chunk **c;

		while (have < want) {
			const void *data;
			size_t n;

			if (tar_reader_take(tar, want - have, &data, &n, e) < 0)
				return -1;
			memcpy(buf + have, data, n);
			have += (uint32_t)n;
		}
		size -= want;
		d = digest_of(buf, want);
		c = find(r, &d);
		if (!c || r->done[c - r->v])
			continue;
		if ((*c)->block == CHUNK_NO_BLOCK ? pool_put(p, buf, want, *c, e) < 0
						  : pool_repair(p, *c, buf, e) < 0)
			return -1;
		r->done[c - r->v] = true;
		r->left--;
	}
	return 0;
}

static int walk_tar(struct refetch *r, struct tar_reader *tar, struct pool *p, struct err *e)
{
	auto_free unsigned char *buf = mem_alloc(CHUNK_SIZE);
	const struct tar_member *m;
	int rc;

	while (r->left && (rc = tar_reader_next(tar, &m, e)) != 0) {
		if (rc < 0)
			return -1;
		if (m->type == '0' && walk_file(r, tar, m->size, p, buf, e) < 0)
			return -1;
	}
	return 0;
}

static int walk_layer(
	struct refetch *r, const struct image_layer *l, int fd, struct pool *p, struct err *e)
{
	struct source_fd file;
	struct decompress *plain;
	struct tar_reader *tar;
	int rc = -1;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "seek");
	source_fd_init(&file, fd, l->size, "layer");
	plain = decompress_new(l->codec, &file.source, unpack_limit(l->size), "layer", e);
	if (plain) {
		tar = tar_reader_new(decompress_source(plain), "layer");
		rc = walk_tar(r, tar, p, e);
		tar_reader_free(tar);
	}
	decompress_free(plain);
	source_fd_fini(&file);
	return rc;
}

static int walk_into_pool(struct refetch *r, size_t i, int fd, struct err *e)
{
	struct pool *p = pool_open(r->s->fd, true, e); /* the completer may have had it open */
	int rc = p ? walk_layer(r, &r->im->layers[i], fd, p, e) : -1;

	if (p && pool_commit(p, rc == 0 ? e : NULL) < 0)
		rc = -1;
	pool_close(p);
	return rc;
}

/* Of an image that was loaded, layers are here. What they give is checked chunk by chunk. */
static int walk_stored(struct refetch *r, size_t i, struct err *e)
{
	auto_fd int fd = store_blob_open(r->s, &r->im->layers[i].digest, NULL, e);

	return fd < 0 ? -1 : walk_into_pool(r, i, fd, e);
}

static int refetch_layer(struct refetch *r, struct completer *x, size_t i, struct err *e)
{
	bool here = store_has(r->s, &r->im->layers[i].digest);
	struct blob_writer w;
	int rc;

	if (here && !r->source)
		return walk_stored(r, i, e);
	if (here && walk_stored(r, i, NULL) == 0)
		return 0;
	if (completer_layer(x, i, &w, e) < 0)
		return -1;
	rc = walk_into_pool(r, i, w.fd, e);
	store_blob_abort(&w);
	return rc;
}

static int refetch_foreign(struct refetch *r, struct err *e)
{
	struct completer *x = completer_new(r->im, r->s, r->config, r->source, r->progress);
	int rc = 0;

	r->left = r->n;
	for (size_t i = 0; rc == 0 && r->left && i < r->im->nlayers; i++) {
		rc = refetch_layer(r, x, i, e);
		if (rc < 0)
			err_ctx(e, "layer %zu", i);
	}
	completer_free(x);
	if (rc == 0 && r->left)
		return err_set(
			e, ERR_NOT_FOUND, "%zu chunks are in none of the image's layers", r->left);
	return rc;
}

int image_refetch(struct store *s, const struct config *c, const struct digest *manifest,
	struct chunk *const *v, size_t n, struct progress *p, struct err *e)
{
	auto_free char *source = store_source(s, manifest);
	struct refetch r = {.s = s, .config = c, .source = source, .n = n, .progress = p};
	struct image im;
	int rc;

	if (n == 0)
		return 0;
	if (image_load(&im, s, manifest, e) < 0)
		return -1;
	if (im.has_index && !(source && strchr(source, '/'))) { /* its layers were looked at */
		image_fini(&im);
		err_set(e, ERR_NOT_FOUND, "nothing is known of where the image came from");
		return err_hint(e, "pull or build it again");
	}
	r.im = &im;
	r.v = mem_array(n, sizeof(struct chunk *));
	r.done = mem_array(n, sizeof(*r.done));
	memcpy(r.v, v, n * sizeof(struct chunk *));
	qsort(r.v, n, sizeof(struct chunk *), by_digest);
	rc = im.has_index ? refetch_own(&r, e) : refetch_foreign(&r, e);
	free(r.v);
	free(r.done);
	image_fini(&im);
	return rc < 0 ? err_ctx(e, "fetch again from %s", source ? source : "its layers") : 0;
}
