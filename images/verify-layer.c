#include "images/verify-layer.h"

#include <inttypes.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

#include "base/sys.h"
#include "images/progress.h"

enum {
	STEP = 256 << 10,
	WINDOW_LOG_MAX = 27, /* what every zstd decoder takes without being asked */
	GZIP_ONLY = 15 + 16, /* zlib's windowBits */
};

struct check {
	const char *path;
	uint64_t tar_max, blob_size, tar_size;
	struct hash blob, tar;
	unsigned char *in, *out;
	ZSTD_DCtx *zstd;
	z_stream gzip;
	bool inside; /* of a frame or member */
};

static int emit(struct check *c, size_t n, struct err *e)
{
	if (n > c->tar_max - c->tar_size)
		return err_set(e, ERR_CORRUPT, "%s: unpacks to more than %" PRIu64 " bytes",
			c->path, c->tar_max);
	c->tar_size += n;
	hash_add(&c->tar, c->out, n);
	return 0;
}

/* ---- decoders: a piece of the blob goes in, the tar comes out ---- */

static int plain_feed(struct check *c, size_t n, struct err *e)
{
	unsigned char *out = c->out;
	int rc;

	c->out = c->in;
	rc = emit(c, n, e);
	c->out = out;
	return rc;
}

static int zstd_feed(struct check *c, size_t n, struct err *e)
{
	ZSTD_inBuffer in = {c->in, n, 0};
	ZSTD_outBuffer out;

	do {
		size_t rc;

		out = (ZSTD_outBuffer){c->out, STEP, 0};
		rc = ZSTD_decompressStream(c->zstd, &out, &in);
		if (ZSTD_isError(rc))
			return err_set(
				e, ERR_CORRUPT, "%s: zstd: %s", c->path, ZSTD_getErrorName(rc));
		c->inside = rc != 0;
		if (emit(c, out.pos, e) < 0)
			return -1;
	} while (in.pos < in.size || (c->inside && out.pos == out.size));
	return 0;
}

static int gzip_feed(struct check *c, size_t n, struct err *e)
{
	z_stream *z = &c->gzip;

	z->next_in = c->in;
	z->avail_in = (unsigned)n;
	do {
		int rc;

		if (!c->inside && inflateReset(z) != Z_OK)
			return err_set(e, ERR_SYSTEM, "zlib does not start again");
		z->next_out = c->out;
		z->avail_out = STEP;
		rc = inflate(z, Z_NO_FLUSH);
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return err_set(e, ERR_CORRUPT, "%s: gzip: %s", c->path,
				z->msg ? z->msg : "damaged");
		c->inside = rc != Z_STREAM_END;
		if (emit(c, STEP - z->avail_out, e) < 0)
			return -1;
	} while (z->avail_in > 0 || (c->inside && z->avail_out == 0));
	return 0;
}

static const struct {
	const char *unit;
	int (*feed)(struct check *c, size_t n, struct err *e);
} decoders[] = {
	[CODEC_NONE] = {"", plain_feed},
	[CODEC_ZSTD] = {"zstd frame", zstd_feed},
	[CODEC_GZIP] = {"gzip member", gzip_feed},
};

/* ---- the pass ---- */

/* Read all of the blob. A blob that cannot be decoded is still hashed to its end, as its digest
 * says more than its decoder: then the decoder's error is in *fault, and the result is 0. */
static int pass(struct check *c, enum codec codec, int fd, struct progress *pr, struct err *fault,
	struct err *e)
{
	for (;;) {
		ssize_t n = sys_read(fd, c->in, STEP);

		if (n < 0)
			return err_sys(e, "read %s", c->path);
		if (n == 0)
			break;
		hash_add(&c->blob, c->in, (size_t)n);
		c->blob_size += (uint64_t)n;
		progress_add(pr, (uint64_t)n);
		if (fault->kind == ERR_NONE && decoders[codec].feed(c, (size_t)n, fault) < 0)
			continue;
	}
	if (fault->kind == ERR_NONE && c->inside)
		err_set(fault, ERR_CORRUPT, "%s: ends in the middle of a %s", c->path,
			decoders[codec].unit);
	return 0;
}

static int compare(struct check *c, const struct image_layer *l, const struct err *fault,
	bool *damaged, struct err *e)
{
	struct digest blob = hash_digest(&c->blob), tar = hash_digest(&c->tar);

	*damaged = true;
	if (c->blob_size != l->size)
		return err_set(e, ERR_CORRUPT, "%s: expected %" PRIu64 " bytes, found %" PRIu64,
			c->path, l->size, c->blob_size);
	if (digest_check(&l->digest, &blob, e, "%s", c->path) < 0)
		return -1;
	*damaged = false;
	if (fault->kind != ERR_NONE) {
		if (e)
			*e = *fault;
		return -1;
	}
	return digest_check(&l->diff_id, &tar, e, "%s: DiffID", c->path);
}

int layer_verify(struct store *s, const struct image_layer *l, uint64_t tar_max,
	struct progress *pr, bool *damaged, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	auto_free char *path =
		mem_printf("%s/blobs/sha256/%s", s->path, digest_hex(&l->digest, hex));
	auto_free unsigned char *buffers = mem_alloc(2 * STEP);
	struct check c = {.path = path, .tar_max = tar_max, .in = buffers, .out = buffers + STEP};
	struct err fault = {0};
	auto_fd int fd = store_blob_open(s, &l->digest, NULL, e);
	int rc = -1;

	*damaged = fd < 0;
	if (fd < 0)
		return -1;
	hash_init(&c.blob, HASH_SHA256);
	hash_init(&c.tar, HASH_SHA256);
	c.zstd = l->codec == CODEC_ZSTD ? ZSTD_createDCtx() : NULL;
	if ((l->codec == CODEC_ZSTD && !c.zstd) ||
		(l->codec == CODEC_GZIP && inflateInit2(&c.gzip, GZIP_ONLY) != Z_OK)) {
		err_set(e, ERR_SYSTEM, "no memory for a decoder");
	} else {
		if (c.zstd)
			ZSTD_DCtx_setParameter(c.zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
		rc = pass(&c, l->codec, fd, pr, &fault, e);
	}
	ZSTD_freeDCtx(c.zstd);
	if (l->codec == CODEC_GZIP)
		inflateEnd(&c.gzip);
	return rc < 0 ? -1 : compare(&c, l, &fault, damaged, e);
}
