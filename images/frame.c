#include "images/frame.h"

#include <assert.h>
#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <string.h>
#include <zstd.h>

struct encoder {
	enum codec codec;
	int level;
	ZSTD_CCtx *zstd;
	struct isal_zstream *gzip;
	uint8_t *gzip_buf;
};

/* isa-l's level 3 finds other matches on other CPUs (measured: SSE, AVX2 and AVX-512 all differ),
 * so that the same build would get another digest elsewhere. Levels 0 to 2 are the same everywhere.
 */
static const struct {
	uint32_t buf, tables; /* tables: the part of buf that is kept from frame to frame */
} gzip_levels[] = {
	{ISAL_DEF_LVL0_DEFAULT, ISAL_DEF_LVL0_REQ},
	{ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL1_REQ},
	{ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL2_REQ},
};
enum {
	GZIP_LEVELS = sizeof(gzip_levels) / sizeof(gzip_levels[0]),
	ZSTD_LEVEL_MAX = 19, /* above it, encoders take more memory than our chunks are worth */
};

static void zstd_set(ZSTD_CCtx *c, ZSTD_cParameter p, int v)
{
	size_t rc = ZSTD_CCtx_setParameter(c, p, v);

	assert(!ZSTD_isError(rc));
}

static bool level_ok(enum codec c, int level)
{
	switch (c) {
	case CODEC_NONE:
		return true;
	case CODEC_ZSTD:
		return level >= 1 && level <= ZSTD_LEVEL_MAX;
	case CODEC_GZIP:
		return level >= 0 && level < GZIP_LEVELS;
	}
	return false;
}

struct encoder *encoder_new(enum codec c, int level, struct err *e)
{
	struct encoder *x;

	if (!level_ok(c, level)) {
		err_set(e, ERR_USAGE, "%s has no level %d (zstd 1 to %d, gzip 0 to %d)",
			codec_name(c), level, ZSTD_LEVEL_MAX, GZIP_LEVELS - 1);
		return NULL;
	}
	x = mem_alloc(sizeof(*x));
	x->codec = c;
	x->level = level;
	if (c == CODEC_ZSTD) {
		x->zstd = ZSTD_createCCtx();
		if (!x->zstd) {
			encoder_free(x);
			err_set(e, ERR_SYSTEM, "no memory for a zstd encoder");
			return NULL;
		}
		zstd_set(x->zstd, ZSTD_c_compressionLevel, level);
		zstd_set(x->zstd, ZSTD_c_contentSizeFlag, 1);
		zstd_set(x->zstd, ZSTD_c_checksumFlag, 0); /* sha256 says it all */
	} else if (c == CODEC_GZIP) {
		x->gzip = mem_alloc(sizeof(*x->gzip));
		x->gzip_buf = mem_alloc(gzip_levels[level].buf);
	}
	return x;
}

void encoder_free(struct encoder *x)
{
	if (!x)
		return;
	ZSTD_freeCCtx(x->zstd);
	free(x->gzip);
	free(x->gzip_buf);
	free(x);
}

size_t frame_bound(enum codec c, size_t n)
{
	enum { GZIP_WRAP = 64, GZIP_STORED = 65535, GZIP_STORED_HEADER = 5 };

	if (c == CODEC_ZSTD)
		return ZSTD_compressBound(n);
	if (c == CODEC_GZIP)
		return n + (n / GZIP_STORED + 1) * GZIP_STORED_HEADER + GZIP_WRAP;
	return n;
}

static int gzip_frame(
	struct encoder *x, const void *in, size_t n, void *out, size_t *len, struct err *e)
{
	struct isal_zstream *z = x->gzip;
	int rc;

	/* isa-l leaves the hash tables of the frame before in place, and would find other matches
	 * with them */
	memset(z, 0, sizeof(*z));
	memset(x->gzip_buf, 0, gzip_levels[x->level].tables);
	isal_deflate_stateless_init(z);
	z->level = (uint32_t)x->level;
	z->level_buf = x->gzip_buf;
	z->level_buf_size = gzip_levels[x->level].buf;
	z->gzip_flag = IGZIP_GZIP;
	z->end_of_stream = 1;
	z->flush = NO_FLUSH;
	z->next_in = (uint8_t *)(uintptr_t)in; /* not written to */
	z->avail_in = (uint32_t)n;
	z->next_out = out;
	z->avail_out = (uint32_t)frame_bound(CODEC_GZIP, n);
	rc = isal_deflate_stateless(z);
	if (rc != COMP_OK)
		return err_set(e, ERR_SYSTEM, "gzip: isa-l error %d", rc);
	*len = z->total_out;
	return 0;
}

int encoder_frame(
	struct encoder *x, const void *in, size_t n, void *out, size_t *len, struct err *e)
{
	assert(n > 0 && n <= UINT32_MAX / 2);
	if (x->codec == CODEC_GZIP)
		return gzip_frame(x, in, n, out, len, e);
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

static int decode_zstd(const void *stored, size_t n, void *out, uint32_t length, struct err *e)
{
	size_t rc = ZSTD_findFrameCompressedSize(stored, n);

	if (ZSTD_isError(rc) || rc != n || ZSTD_getFrameContentSize(stored, n) != length)
		return err_set(e, ERR_CORRUPT, "not one zstd frame of %u bytes", length);
	rc = ZSTD_decompress(out, length, stored, n);
	if (ZSTD_isError(rc))
		return err_set(e, ERR_CORRUPT, "zstd: %s", ZSTD_getErrorName(rc));
	return rc == length ? 0 : err_set(e, ERR_CORRUPT, "zstd: %zu bytes, not %u", rc, length);
}

static int decode_gzip(const void *stored, size_t n, void *out, uint32_t length, struct err *e)
{
	auto_free struct inflate_state *z = mem_alloc(sizeof(*z));
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

int codec_decode(
	enum codec c, const void *stored, size_t n, void *out, uint32_t length, struct err *e)
{
	if (n == 0 || n > UINT32_MAX)
		return err_set(e, ERR_CORRUPT, "a frame of %zu bytes", n);
	if (c == CODEC_ZSTD)
		return decode_zstd(stored, n, out, length, e);
	if (c == CODEC_GZIP)
		return decode_gzip(stored, n, out, length, e);
	if (n != length)
		return err_set(e, ERR_CORRUPT, "%zu bytes, not %u", n, length);
	memcpy(out, stored, n);
	return 0;
}
