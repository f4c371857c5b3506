#include "images/decompress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <zstd.h>

#include <isa-l/igzip_lib.h>

#include "base/mem.h"

enum {
	OUT = 256 << 10, /* stays in the cache until it is parsed and hashed */
	WINDOW_LOG_MAX = 27,
	GZIP_FIRST_BYTE = 0x1f,
};

struct decompress {
	struct source source;
	struct source *in;
	const char *name;
	enum codec codec;
	uint64_t out, max;
	const uint8_t *p; /* input that was not looked at yet */
	size_t left;
	bool eof;    /* of the input */
	bool inside; /* of a member or frame: the input may not end */
	bool some;   /* gzip: a member has begun */
	bool more;   /* zstd: output is waiting */
	unsigned turn;
	uint8_t *buf[DECOMPRESS_LAG + 1];
	struct inflate_state *gzip;
	ZSTD_DCtx *zstd;
};

/* Have input, unless it has ended. */
static int refill(struct decompress *d, struct err *e)
{
	static const uint8_t nothing;
	const void *p = &nothing;
	int rc;

	if (d->left || d->eof)
		return 0;
	rc = source_next(d->in, &p, &d->left, e);
	if (rc <= 0)
		d->left = 0;
	d->p = rc > 0 ? p : &nothing; /* the decoders add zero to it */
	d->eof = rc == 0;
	return rc < 0 ? -1 : 0;
}

/* ---- none ---- */

static int plain_next(struct decompress *d, const void **data, size_t *n, struct err *e)
{
	if (refill(d, e) < 0)
		return -1;
	*data = d->p;
	*n = d->left;
	d->left = 0;
	return 0;
}

/* ---- gzip ---- */

/* Headers are read here and not by isa-l: it keeps the length of an extra field in a variable that
 * does not live until its next call, and so goes wrong where the input is cut inside of one. */
enum {
	GZIP_FIXED = 10, /* bytes of a header that are always there */
	GZIP_HAS_CRC = 2,
	GZIP_HAS_EXTRA = 4,
	GZIP_HAS_NAME = 8,
	GZIP_HAS_COMMENT = 16,
	GZIP_RESERVED = 0xe0,
};

static int gzip_truncated(const struct decompress *d, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "%s: truncated gzip data", d->name);
}

static int gzip_byte(struct decompress *d, uint8_t *c, struct err *e)
{
	if (refill(d, e) < 0)
		return -1;
	if (d->eof)
		return gzip_truncated(d, e);
	*c = *d->p++;
	d->left--;
	return 0;
}

static int gzip_skip(struct decompress *d, size_t n, struct err *e)
{
	while (n > 0) {
		size_t step;

		if (refill(d, e) < 0)
			return -1;
		if (d->eof)
			return gzip_truncated(d, e);
		step = d->left < n ? d->left : n;
		d->p += step;
		d->left -= step;
		n -= step;
	}
	return 0;
}

static int gzip_skip_text(struct decompress *d, struct err *e)
{
	uint8_t c;

	do
		if (gzip_byte(d, &c, e) < 0)
			return -1;
	while (c);
	return 0;
}

static int gzip_skip_extra(struct decompress *d, struct err *e)
{
	uint8_t low, high;

	if (gzip_byte(d, &low, e) < 0 || gzip_byte(d, &high, e) < 0)
		return -1;
	return gzip_skip(d, (size_t)(low | high << 8), e);
}

static int gzip_header(struct decompress *d, struct err *e)
{
	static const uint8_t magic[] = {GZIP_FIRST_BYTE, 0x8b, 8};
	uint8_t head[GZIP_FIXED], flags;

	for (size_t i = 0; i < sizeof(head); i++)
		if (gzip_byte(d, &head[i], e) < 0)
			return -1;
	flags = head[3];
	if (memcmp(head, magic, sizeof(magic)) != 0 || (flags & GZIP_RESERVED))
		return err_set(e, ERR_CORRUPT, "%s: invalid gzip data", d->name);
	if (((flags & GZIP_HAS_EXTRA) && gzip_skip_extra(d, e) < 0) ||
		((flags & GZIP_HAS_NAME) && gzip_skip_text(d, e) < 0) ||
		((flags & GZIP_HAS_COMMENT) && gzip_skip_text(d, e) < 0))
		return -1;
	return flags & GZIP_HAS_CRC ? gzip_skip(d, 2, e) : 0;
}

/* A member begins; behind the first one nothing may follow, or nothing but zeros. */
static int gzip_member(struct decompress *d, struct err *e)
{
	for (;;) {
		if (refill(d, e) < 0)
			return -1;
		if (d->eof)
			return d->some ? 0 : gzip_truncated(d, e);
		if (*d->p != 0 || !d->some)
			break;
		d->p++; /* tape blocks are padded with zeros */
		d->left--;
	}
	if (*d->p != GZIP_FIRST_BYTE)
		return err_set(e, ERR_CORRUPT,
			d->some ? "%s: bytes behind the end of the gzip data"
				: "%s: invalid gzip data",
			d->name);
	if (gzip_header(d, e) < 0)
		return -1;
	isal_inflate_reset(d->gzip);
	d->gzip->crc_flag = ISAL_GZIP_NO_HDR_VER;
	d->inside = d->some = true;
	return 0;
}

static int gzip_step(struct decompress *d, struct err *e)
{
	struct inflate_state *z = d->gzip;
	uint32_t take = d->left < UINT32_MAX ? (uint32_t)d->left : UINT32_MAX;
	int rc;

	z->next_in = (uint8_t *)(uintptr_t)d->p; /* not written to */
	z->avail_in = take;
	rc = isal_inflate(z);
	if (rc != ISAL_DECOMP_OK && rc != ISAL_END_INPUT)
		return err_set(e, ERR_CORRUPT, "%s: %s", d->name,
			rc == ISAL_INCORRECT_CHECKSUM ? "wrong gzip checksum"
						      : "invalid gzip data");
	d->p += take - z->avail_in;
	d->left -= take - z->avail_in;
	if (z->block_state == ISAL_BLOCK_FINISH)
		d->inside = false;
	return 0;
}

static int gzip_next(struct decompress *d, const void **data, size_t *n, struct err *e)
{
	struct inflate_state *z = d->gzip;

	*data = d->buf[d->turn];
	z->next_out = d->buf[d->turn];
	z->avail_out = OUT;
	while (z->avail_out == OUT) {
		if (!d->inside && gzip_member(d, e) < 0)
			return -1;
		if (!d->inside)
			break;
		/* at the end of the input, too: isa-l holds some output back */
		if (refill(d, e) < 0 || gzip_step(d, e) < 0)
			return -1;
		if (d->inside && d->eof && z->avail_out == OUT)
			return gzip_truncated(d, e);
	}
	*n = OUT - z->avail_out;
	return 0;
}

/* ---- zstd ---- */

static int zstd_next(struct decompress *d, const void **data, size_t *n, struct err *e)
{
	ZSTD_outBuffer out = {d->buf[d->turn], OUT, 0};

	*data = out.dst;
	while (out.pos < OUT) {
		ZSTD_inBuffer in;
		size_t rc;

		if (!d->more && refill(d, e) < 0)
			return -1;
		if (d->eof && d->left == 0 && !d->more)
			break;
		in = (ZSTD_inBuffer){d->p, d->left, 0};
		rc = ZSTD_decompressStream(d->zstd, &out, &in);
		if (ZSTD_isError(rc))
			return err_set(
				e, ERR_CORRUPT, "%s: zstd: %s", d->name, ZSTD_getErrorName(rc));
		d->p += in.pos;
		d->left -= in.pos;
		d->inside = rc != 0;
		d->more = d->inside && out.pos == OUT;
	}
	if (out.pos == 0 && d->inside)
		return err_set(e, ERR_CORRUPT, "%s: truncated zstd data", d->name);
	*n = out.pos;
	return 0;
}

/* ---- all ---- */

static int (*const next[])(struct decompress *d, const void **data, size_t *n, struct err *e) = {
	[CODEC_NONE] = plain_next,
	[CODEC_ZSTD] = zstd_next,
	[CODEC_GZIP] = gzip_next,
};

static int decompress_next(struct source *source, const void **data, size_t *n, struct err *e)
{
	struct decompress *d = (struct decompress *)source;

	if (next[d->codec](d, data, n, e) < 0)
		return -1;
	d->turn = (d->turn + 1) % (DECOMPRESS_LAG + 1);
	if (*n > d->max - d->out)
		return err_set(e, ERR_CORRUPT,
			"%s: unpacks to more than the limit of %" PRIu64 " bytes", d->name, d->max);
	d->out += *n;
	return *n > 0;
}

struct source *decompress_source(struct decompress *d)
{
	return &d->source;
}

struct decompress *decompress_new(
	enum codec c, struct source *in, uint64_t max, const char *name, struct err *e)
{
	struct decompress *d = mem_alloc(sizeof(*d));

	*d = (struct decompress){.source.next = decompress_next,
		.codec = c,
		.in = in,
		.max = max,
		.name = name,
		.inside = c != CODEC_GZIP};
	for (size_t i = 0; c != CODEC_NONE && i < sizeof(d->buf) / sizeof(d->buf[0]); i++)
		d->buf[i] = mem_alloc(OUT);
	if (c == CODEC_GZIP) {
		d->gzip = mem_alloc(sizeof(*d->gzip));
		isal_inflate_init(d->gzip);
	}
	if (c == CODEC_ZSTD) {
		d->zstd = ZSTD_createDCtx();
		if (!d->zstd) {
			err_set(e, ERR_SYSTEM, "%s: no memory for a zstd decoder", name);
			decompress_free(steal_ptr(&d));
			return NULL;
		}
		ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	}
	return d;
}

void decompress_free(struct decompress *d)
{
	if (!d)
		return;
	ZSTD_freeDCtx(d->zstd);
	free(d->gzip);
	for (size_t i = 0; i < sizeof(d->buf) / sizeof(d->buf[0]); i++)
		free(d->buf[i]);
	free(d);
}
