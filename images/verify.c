/* svrun image verify: everything an image needs, hashed again. */
#include "images/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/progress.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/workers.h"
#include "images/mount.h"

enum { STEP = 256 << 10, WINDOW_LOG_MAX = 27 };

/* ---- a layer: blob digest and DiffID in one pass ---- */

struct layer_check {
	const struct image_layer *l;
	const char *path;
	struct hash blob, tar;
	uint64_t size;
	unsigned char *in, *out;
	struct progress *progress;
};

static int mismatch(const char *path, const char *what, const struct digest *want,
	const struct digest *got, struct err *e)
{
	char w[DIGEST_TEXT + 1], g[DIGEST_TEXT + 1];

	return err_set(e, ERR_CORRUPT, "%s: %s: expected %s, found %s", path, what,
		digest_text(want, w), digest_text(got, g));
}

/* The next piece of the blob, hashed; 0 at its end. */
static ssize_t next_piece(struct layer_check *c, int fd, struct err *e)
{
	ssize_t n = sys_read(fd, c->in, STEP);

	if (n < 0)
		return err_sys(e, "read %s", c->path);
	hash_add(&c->blob, c->in, (size_t)n);
	c->size += (uint64_t)n;
	progress_add(c->progress, (uint64_t)n);
	return n;
}

static int drain_plain(struct layer_check *c, int fd, struct err *e)
{
	ssize_t n;

	while ((n = next_piece(c, fd, e)) > 0)
		hash_add(&c->tar, c->in, (size_t)n);
	return (int)n;
}

/* Pass the rest of a blob whose decoder gave up through the hash: its digest tells more. */
static int drain_rest(struct layer_check *c, int fd)
{
	ssize_t n;

	while ((n = next_piece(c, fd, NULL)) > 0)
		;
	return -1;
}

static int drain_zstd(struct layer_check *c, int fd, struct err *e)
{
	ZSTD_DCtx *z = ZSTD_createDCtx();
	size_t left = 0;
	ssize_t n;

	ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	while ((n = next_piece(c, fd, e)) > 0) {
		ZSTD_inBuffer in = {c->in, (size_t)n, 0};

		while (in.pos < in.size) {
			ZSTD_outBuffer out = {c->out, STEP, 0};

			left = ZSTD_decompressStream(z, &out, &in);
			if (ZSTD_isError(left))
				break;
			hash_add(&c->tar, c->out, out.pos);
		}
		if (ZSTD_isError(left)) {
			err_set(e, ERR_CORRUPT, "%s: %s", c->path, ZSTD_getErrorName(left));
			ZSTD_freeDCtx(z);
			return drain_rest(c, fd);
		}
	}
	ZSTD_freeDCtx(z);
	if (n == 0 && left != 0)
		return err_set(e, ERR_CORRUPT, "%s: ends in the middle of a frame", c->path);
	return (int)n;
}

static int drain_gzip(struct layer_check *c, int fd, struct err *e)
{
	z_stream z = {0};
	int rc = inflateInit2(&z, 15 + 16); /* gzip only */
	ssize_t n = -1;

	while (rc >= 0 && (n = next_piece(c, fd, e)) > 0) {
		z.next_in = c->in;
		z.avail_in = (unsigned)n;
		while (z.avail_in > 0 && rc >= 0) {
			if (rc == Z_STREAM_END)
				inflateReset(&z); /* the next member */
			z.next_out = c->out;
			z.avail_out = STEP;
			rc = inflate(&z, Z_NO_FLUSH);
			hash_add(&c->tar, c->out, STEP - z.avail_out);
		}
	}
	inflateEnd(&z);
	if (rc < 0) {
		err_set(e, ERR_CORRUPT, "%s: not gzip", c->path);
		return drain_rest(c, fd);
	}
	if (n == 0 && rc != Z_STREAM_END)
		return err_set(e, ERR_CORRUPT, "%s: ends in the middle of a member", c->path);
	return (int)n;
}

static int drain(struct layer_check *c, int fd, struct err *e)
{
	if (str_ends(c->l->media_type, "+zstd"))
		return drain_zstd(c, fd, e);
	if (str_ends(c->l->media_type, "+gzip") || str_ends(c->l->media_type, ".gzip"))
		return drain_gzip(c, fd, e);
	return drain_plain(c, fd, e);
}

static int check_layer(
	struct store *s, const struct image_layer *l, struct progress *p, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	auto_free char *path =
		mem_printf("%s/blobs/sha256/%s", s->path, digest_hex(&l->digest, hex));
	auto_free unsigned char *buffers = mem_alloc(2 * STEP);
	struct layer_check c = {
		.l = l, .path = path, .in = buffers, .out = buffers + STEP, .progress = p};
	struct digest blob, tar;
	auto_fd int fd = store_blob_open(s, &l->digest, NULL, e);
	int rc;

	if (fd < 0)
		return -1;
	hash_init(&c.blob, HASH_SHA256);
	hash_init(&c.tar, HASH_SHA256);
	rc = drain(&c, fd, e);
	blob = hash_digest(&c.blob);
	tar = hash_digest(&c.tar);
	if (c.size != l->size)
		return err_set(e, ERR_CORRUPT, "%s: expected %" PRIu64 " bytes, found %" PRIu64,
			path, l->size, c.size);
	if (!digest_eq(&blob, &l->digest))
		return mismatch(path, "blob", &l->digest, &blob, e);
	if (rc < 0)
		return -1;
	return digest_eq(&tar, &l->diff_id) ? 0 : mismatch(path, "DiffID", &l->diff_id, &tar, e);
}

struct layers_check {
	struct image *im;
	struct store *s;
	struct progress *p;
};

static int check_one_layer(void *ctx, size_t i, struct err *e)
{
	struct layers_check *c = ctx;

	return check_layer(c->s, &c->im->layers[i], c->p, e) < 0 ? err_ctx(e, "layer %zu", i) : 0;
}

/* ---- the pool ---- */

struct chunks_check {
	struct store *s;
	struct pool *pool;
	struct layer *layers;
	struct chunk **v;
	size_t n;
	bool repair;
	pthread_mutex_t lock;
	size_t repaired;
};

/* Decode a chunk from its layer again and put it where the pool has, or will have, it. */
static int repair_chunk(struct chunks_check *c, struct chunk *x, struct err *e)
{
	const struct layer *l = &c->layers[x->layer];
	auto_free unsigned char *stored = mem_alloc(x->stored), *data = mem_alloc(x->length);
	auto_fd int fd = store_blob_open(c->s, &l->digest, NULL, e);
	struct chunk put;
	int rc;

	if (fd < 0)
		return -1;
	if (sys_pread_all(fd, stored, x->stored, (off_t)x->offset) < 0)
		return err_sys(e, "read a chunk of a layer");
	if (codec_decode(l->codec, stored, x->stored, data, x->length, e) < 0)
		return -1;
	put.digest = digest_of(data, x->length);
	if (!digest_eq(&put.digest, &x->digest))
		return mismatch("layer", "chunk", &x->digest, &put.digest, e);
	rc = x->block >= 0 ? pool_repair(c->pool, x, data, e)
			   : pool_put(c->pool, data, x->length, &put, e);
	pthread_mutex_lock(&c->lock);
	c->repaired++;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

enum { BATCH = 64 };

static int check_chunk(
	struct chunks_check *c, struct chunk *x, unsigned char *scratch, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	struct err fault = {0};
	int rc = pool_find(c->pool, x, &fault);

	if (rc == 0)
		rc = err_set(&fault, ERR_CORRUPT, "pool: chunk %s is missing",
			digest_hex(&x->digest, hex));
	else if (rc == 1)
		rc = pool_check(c->pool, x, scratch, &fault);
	if (rc < 0 && !c->repair) {
		if (e)
			*e = fault;
		return err_hint(e, "svrun image verify --repair writes it again from its layer");
	}
	return rc < 0 ? repair_chunk(c, x, e) : 0;
}

static int check_batch(void *ctx, size_t i, struct err *e)
{
	struct chunks_check *c = ctx;
	auto_free unsigned char *scratch = mem_alloc(CHUNK_SIZE);

	for (size_t k = i * BATCH; k < c->n && k < (i + 1) * BATCH; k++)
		if (check_chunk(c, c->v[k], scratch, e) < 0)
			return -1;
	return 0;
}

static void list_chunks(struct chunks_check *c, struct tree *t)
{
	size_t cap = 0;

	for (struct node *n = tree_root(t); n; n = tree_next(n))
		for (uint32_t i = 0; n->a.type == NODE_FILE && i < n->a.nchunks; i++) {
			mem_grow(&c->v, &cap, c->n);
			c->v[c->n++] = &n->a.chunks[i];
		}
}

static int check_pool(struct image *im, struct store *s, struct image_verify *v, struct tree *t,
	struct layer *layers, struct err *e)
{
	struct chunks_check c = {
		.s = s, .layers = layers, .repair = v->repair, .lock = PTHREAD_MUTEX_INITIALIZER};
	char path[128], hex[DIGEST_HEX + 1];
	int rc;

	c.pool = pool_open(s->fd, v->repair, e);
	if (!c.pool)
		return -1;
	list_chunks(&c, t);
	rc = workers_each((c.n + BATCH - 1) / BATCH, 0, check_batch, &c, e);
	if (rc == 0 && v->repair)
		rc = pool_commit(c.pool, e);
	pool_close(c.pool);
	free(c.v);
	v->chunks += c.n;
	v->repaired += c.repaired;
	if (rc == 0 && v->repair && c.repaired) { /* its blocks may have moved */
		snprintf(path, sizeof(path), "erofs/%s.img", digest_hex(&im->manifest_digest, hex));
		if (sys_unlinkat(s->fd, path, 0) < 0 && errno != ENOENT)
			return err_sys(e, "remove %s/%s", s->path, path);
	}
	return rc;
}

int image_verify(struct image *im, struct store *s, struct image_verify *v, struct progress *pr,
	struct err *e)
{
	struct layers_check lc = {im, s, pr};
	struct layer *layers = NULL;
	size_t nlayers;
	uint64_t total = 0;
	struct tree *t;
	int rc;

	for (size_t i = 0; i < im->nlayers; i++)
		total += im->layers[i].size;
	progress_begin(pr, "layers", total);
	rc = workers_each(im->nlayers, 0, check_one_layer, &lc, e);
	progress_end(pr);
	if (rc < 0 || !im->has_index)
		return rc;

	auto_buf struct buf b = BUF_INIT(INDEX_BYTES_MAX);

	if (index_read(s, &im->index, &b, e) < 0)
		return -1;
	t = index_decode(b.data, b.len, &layers, &nlayers, e);
	if (!t)
		return err_ctx(e, "image index");
	progress_begin(pr, "pool", 0);
	rc = check_pool(im, s, v, t, layers, e);
	progress_end(pr);
	tree_free(t);
	free(layers);
	return rc < 0 ? -1 : mount_prepare(s, &im->manifest_digest, NULL, e);
}
