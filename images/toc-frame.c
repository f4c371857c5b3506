#include "images/toc-frame.h"

#include <assert.h>
#include <isa-l/igzip_lib.h>
#include <zstd.h>
#include <zstd_errors.h>

struct toc_frame {
	enum codec codec;
	bool over; /* the frame has ended */
	ZSTD_DCtx *zstd;
	struct inflate_state *gzip;
};

struct toc_frame *toc_frame_new(enum codec c)
{
	struct toc_frame *f = mem_alloc(sizeof(*f));
	size_t rc;

	f->codec = c;
	if (c == CODEC_GZIP) {
		f->gzip = mem_alloc(sizeof(*f->gzip));
		return f;
	}
	f->zstd = ZSTD_createDCtx();
	assert(f->zstd);
	rc = ZSTD_DCtx_setParameter(f->zstd, ZSTD_d_windowLogMax, TOC_FRAME_WINDOW_LOG);
	assert(!ZSTD_isError(rc));
	return f;
}

void toc_frame_free(struct toc_frame *f)
{
	if (!f)
		return;
	ZSTD_freeDCtx(f->zstd);
	free(f->gzip);
	free(f);
}

void toc_frame_begin(struct toc_frame *f)
{
	f->over = false;
	if (f->zstd) {
		ZSTD_DCtx_reset(f->zstd, ZSTD_reset_session_only);
		return;
	}
	isal_inflate_init(f->gzip);
	f->gzip->crc_flag = ISAL_GZIP;
}

static int zstd_error(size_t rc, struct err *e)
{
	if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
		return err_set(e, ERR_UNSUPPORTED, "a zstd frame with a window of more than 8 MiB");
	return err_set(e, ERR_CORRUPT, "zstd: %s", ZSTD_getErrorName(rc));
}

static int64_t more_zstd(struct toc_frame *f, const unsigned char **in, size_t *n, void *out,
	size_t room, struct err *e)
{
	ZSTD_inBuffer i = {*in, *n, 0};
	ZSTD_outBuffer o = {out, room, 0};

	while (o.pos == 0 && i.pos < i.size && !f->over) {
		size_t rc = ZSTD_decompressStream(f->zstd, &o, &i);

		if (ZSTD_isError(rc))
			return zstd_error(rc, e);
		f->over = rc == 0;
	}
	/* what stays inside of the decoder comes without further input */
	if (o.pos == 0 && !f->over) {
		size_t rc = ZSTD_decompressStream(f->zstd, &o, &i);

		if (ZSTD_isError(rc))
			return zstd_error(rc, e);
		f->over = rc == 0;
	}
	*in += i.pos;
	*n -= i.pos;
	return (int64_t)o.pos;
}

static int64_t more_gzip(struct toc_frame *f, const unsigned char **in, size_t *n, void *out,
	size_t room, struct err *e)
{
	struct inflate_state *z = f->gzip;
	uint32_t want = room > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)room;
	int rc;

	z->next_in = (uint8_t *)(uintptr_t)*in; /* not written to */
	z->avail_in = *n > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)*n;
	z->next_out = out;
	z->avail_out = want;
	rc = isal_inflate(z);
	if (rc < 0 || rc == ISAL_NEED_DICT)
		return err_set(e, ERR_CORRUPT, "gzip: no valid data (isa-l: %d)", rc);
	f->over = z->block_state == ISAL_BLOCK_FINISH;
	*n -= (size_t)(z->next_in - *in);
	*in = z->next_in;
	return (int64_t)(want - z->avail_out);
}

int64_t toc_frame_more(struct toc_frame *f, const unsigned char **in, size_t *n, void *out,
	size_t room, struct err *e)
{
	int64_t got;

	if (f->over)
		return err_set(e, ERR_CORRUPT, "a frame unpacks to less than the table says");
	got = f->zstd ? more_zstd(f, in, n, out, room, e) : more_gzip(f, in, n, out, room, e);
	if (got == 0 && f->over)
		return err_set(e, ERR_CORRUPT, "a frame unpacks to less than the table says");
	return got;
}

int toc_frame_end(struct toc_frame *f, const unsigned char **in, size_t *n, struct err *e)
{
	int64_t got;
	char one;

	if (f->over || !f->zstd)
		return 0;
	got = more_zstd(f, in, n, &one, 1, e);
	if (got > 0)
		return err_set(e, ERR_CORRUPT, "a frame unpacks to more than the table says");
	return got < 0 ? -1 : !f->over;
}

int toc_frame_whole(
	struct toc_frame *f, const void *in, size_t n, void *out, size_t size, struct err *e)
{
	size_t rc = ZSTD_findFrameCompressedSize(in, n);

	if (ZSTD_isError(rc))
		return err_set(e, ERR_CORRUPT, "no whole zstd frame: %s", ZSTD_getErrorName(rc));
	rc = ZSTD_decompressDCtx(f->zstd, out, size, in, rc);
	if (ZSTD_isError(rc) && ZSTD_getErrorCode(rc) == ZSTD_error_dstSize_tooSmall)
		return err_set(e, ERR_CORRUPT, "a frame unpacks to more than the table says");
	if (ZSTD_isError(rc))
		return zstd_error(rc, e);
	if (rc != size)
		return err_set(e, ERR_CORRUPT, "a frame unpacks to less than the table says");
	return 0;
}
