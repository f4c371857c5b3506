#include "images/frame.h"

#include <assert.h>
#include <isa-l/igzip_lib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum {
	ZSTD_LEVEL_MAX = 19, /* above it, encoders take more memory than our chunks are worth */
	GZIP_LEVEL_MAX = 9,
	GZIP_WINDOW = 15 + 16, /* zlib's way to ask for gzip's header */
	GZIP_MEMORY = 8,
};

/* gzip is encoded with zlib, and only decoded with isa-l: isa-l is three times faster, but its
 * output depends on the CPU (level 3), on the frames before, and on where its buffers lie (all
 * levels, measured), so that two builds would not be equal. */
struct encoder {
	enum codec codec;
	ZSTD_CCtx *zstd;
	z_stream *gzip;
};

static void zstd_set(ZSTD_CCtx *c, ZSTD_cParameter p, int v)
{
	size_t rc = ZSTD_CCtx_setParameter(c, p, v);

	assert(!ZSTD_isError(rc));
}

static int zstd_init(struct encoder *x, int level, struct err *e)
{
	x->zstd = ZSTD_createCCtx();
	if (!x->zstd)
		return err_set(e, ERR_SYSTEM, "no memory for a zstd encoder");
	zstd_set(x->zstd, ZSTD_c_compressionLevel, level);
	zstd_set(x->zstd, ZSTD_c_contentSizeFlag, 1);
	zstd_set(x->zstd, ZSTD_c_checksumFlag, 0); /* sha256 says it all */
	return 0;
}

static int gzip_init(struct encoder *x, int level, struct err *e)
{
	x->gzip = mem_alloc(sizeof(*x->gzip));
	if (deflateInit2(x->gzip, level, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
		    Z_DEFAULT_STRATEGY) == Z_OK)
		return 0;
	free(steal_ptr(&x->gzip));
	return err_set(e, ERR_SYSTEM, "no memory for a gzip encoder");
}

struct encoder *encoder_new(enum codec c, int level, struct err *e)
{
	int max = c == CODEC_ZSTD ? ZSTD_LEVEL_MAX : GZIP_LEVEL_MAX, rc = 0;
	struct encoder *x;

	if (c != CODEC_NONE && (level < 1 || level > max)) {
		err_set(e, ERR_USAGE, "%s has no level %d: 1 to %d", codec_name(c), level, max);
		return NULL;
	}
	x = mem_alloc(sizeof(*x));
	x->codec = c;
	if (c == CODEC_ZSTD)
		rc = zstd_init(x, level, e);
	else if (c == CODEC_GZIP)
		rc = gzip_init(x, level, e);
	if (rc < 0)
		encoder_free(steal_ptr(&x));
	return x;
}

void encoder_free(struct encoder *x)
{
	if (!x)
		return;
	ZSTD_freeCCtx(x->zstd);
	if (x->gzip)
		deflateEnd(x->gzip);
	free(x->gzip);
	free(x);
}

size_t frame_bound(enum codec c, size_t n)
{
	enum {
		GZIP_WRAP = 18 + 13
	}; /* what deflateBound() adds for header, trailer and rounding */

	if (c == CODEC_ZSTD)
		return ZSTD_compressBound(n);
	if (c == CODEC_GZIP)
		return n + (n >> 5) + (n >> 7) + (n >> 11) + GZIP_WRAP; /* zlib's worst case */
	return n;
}

static int gzip_frame(z_stream *z, const void *in, size_t n, void *out, size_t *len, struct err *e)
{
	int rc;

	deflateReset(z);
	z->next_in = (Bytef *)(uintptr_t)in; /* not written to */
	z->avail_in = (uInt)n;
	z->next_out = out;
	z->avail_out = (uInt)frame_bound(CODEC_GZIP, n);
	rc = deflate(z, Z_FINISH);
	if (rc != Z_STREAM_END)
		return err_set(e, ERR_SYSTEM, "gzip: zlib error %d", rc);
	*len = z->total_out;
	return 0;
}

int encoder_frame(
	struct encoder *x, const void *in, size_t n, void *out, size_t *len, struct err *e)
{
	assert(n > 0 && n <= UINT32_MAX / 2);
	if (x->codec == CODEC_GZIP)
		return gzip_frame(x->gzip, in, n, out, len, e);
	if (x->codec == CODEC_NONE) {
		memcpy(out, in, n);
		*len = n;
		return 0;
	}
	*len = ZSTD_compress2(x->zstd, out, frame_bound(CODEC_ZSTD, n), in, n);
	if (ZSTD_isError(*len))
		return err_set(e, ERR_SYSTEM, "zstd: %s", ZSTD_getErrorName(*len));
	return 0;
}

/* ---- decoding ---- */

struct decoder {
	enum codec codec;
	ZSTD_DCtx *zstd;
	struct inflate_state *gzip;
};

struct decoder *decoder_new(enum codec c)
{
	struct decoder *x = mem_alloc(sizeof(*x));

	x->codec = c;
	if (c == CODEC_ZSTD) {
		x->zstd = ZSTD_createDCtx();
		assert(x->zstd);
	}
	if (c == CODEC_GZIP)
		x->gzip = mem_alloc(sizeof(*x->gzip));
	return x;
}

void decoder_free(struct decoder *x)
{
	if (!x)
		return;
	ZSTD_freeDCtx(x->zstd);
	free(x->gzip);
	free(x);
}

static int decode_zstd(
	ZSTD_DCtx *c, const void *stored, size_t n, void *out, uint32_t length, struct err *e)
{
	size_t rc = ZSTD_findFrameCompressedSize(stored, n);

	if (ZSTD_isError(rc) || rc != n || ZSTD_getFrameContentSize(stored, n) != length)
		return err_set(e, ERR_CORRUPT, "not one zstd frame of %u bytes", length);
	rc = ZSTD_decompressDCtx(c, out, length, stored, n);
	if (ZSTD_isError(rc))
		return err_set(e, ERR_CORRUPT, "zstd: %s", ZSTD_getErrorName(rc));
	return rc == length ? 0 : err_set(e, ERR_CORRUPT, "zstd: %zu bytes, not %u", rc, length);
}

static int decode_gzip(struct inflate_state *z, const void *stored, size_t n, void *out,
	uint32_t length, struct err *e)
{
	int rc;

	isal_inflate_init(z);
	z->crc_flag = ISAL_GZIP;
	z->next_in = (uint8_t *)(uintptr_t)stored; /* not written to */
	z->avail_in = (uint32_t)n;
	z->next_out = out;
	z->avail_out = length;
	rc = isal_inflate_stateless(z);
	if (rc != ISAL_DECOMP_OK || z->total_out != length || z->avail_in != 0)
		return err_set(
			e, ERR_CORRUPT, "not one gzip member of %u bytes (isa-l: %d)", length, rc);
	return 0;
}

int decoder_frame(
	struct decoder *x, const void *stored, size_t n, void *out, uint32_t length, struct err *e)
{
	if (n == 0 || n > UINT32_MAX)
		return err_set(e, ERR_CORRUPT, "a frame of %zu bytes", n);
	if (x->codec == CODEC_ZSTD)
		return decode_zstd(x->zstd, stored, n, out, length, e);
	if (x->codec == CODEC_GZIP)
		return decode_gzip(x->gzip, stored, n, out, length, e);
	if (n != length)
		return err_set(e, ERR_CORRUPT, "%zu bytes, not %u", n, length);
	memcpy(out, stored, n);
	return 0;
}

int codec_decode(
	enum codec c, const void *stored, size_t n, void *out, uint32_t length, struct err *e)
{
	struct decoder *x = decoder_new(c);
	int rc = decoder_frame(x, stored, n, out, length, e);

	decoder_free(x);
	return rc;
}
