#include "images/reframe.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "images/framer.h"
#include "images/tar.h"

enum {
	HEADERS_MAX = 1 << 20, /* bytes of headers in one frame */
	RECORDS_MAX = 1 << 20, /* of an extended header's records that are looked at */
};

/* Offsets in a header block. */
enum { AT_NAME = 0, NAME = 100, AT_SIZE = 124, SIZE = 12, AT_SUM = 148, SUM = 8, AT_TYPE = 156 };

struct reframer {
	struct source *tar;
	const uint8_t *at; /* what the source gave and is not used yet */
	size_t n;
	bool eof;
	uint64_t offset; /* in the tar */
	/* what comes next, in this order; then a header */
	uint64_t data;  /* of a file */
	uint64_t skip;  /* bytes that are no file data: padding, the body of an extended header */
	unsigned zeros; /* zero blocks in a row; two end the archive */
	bool extended;  /* skip begins with `records` of an extended header */
	size_t records;
	struct buf pax;
	bool has_size;
	uint64_t size; /* that the extended header says of the next member */
	struct chunk_list *chunks;
};

void chunk_list_fini(struct chunk_list *l)
{
	free(l->v);
	*l = (struct chunk_list){0};
}

/* ---- reading ---- */

/* Move up to want bytes into b: fewer only at the end of the tar. */
static int pull(struct reframer *r, struct buf *b, size_t want, size_t *got, struct err *e)
{
	for (*got = 0; *got < want && !r->eof;) {
		size_t k = want - *got < r->n ? want - *got : r->n;

		if (k == 0) {
			const void *p;
			int rc = source_next(r->tar, &p, &r->n, e);

			if (rc < 0)
				return -1;
			r->at = p;
			r->eof = rc == 0;
			continue;
		}
		if (buf_add(b, r->at, k, e) < 0)
			return -1;
		r->at += k;
		r->n -= k;
		*got += k;
		r->offset += k;
	}
	return 0;
}

static int pull_all(struct reframer *r, struct buf *b, size_t n, struct err *e)
{
	size_t got;

	if (pull(r, b, n, &got, e) < 0)
		return -1;
	if (got == n)
		return 0;
	return err_set(e, ERR_CORRUPT,
		"the tar ends at byte %" PRIu64 ", in the middle of a member", r->offset);
}

/* ---- headers ---- */

static bool all_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/* A number in octal, or, when the first bit is set, in base 256. */
static int number(const uint8_t *p, size_t n, uint64_t *v)
{
	size_t i = 0;

	*v = 0;
	if (p[0] & 0x80) {
		*v = p[0] & 0x7f;
		for (i = 1; i < n; i++) {
			if (*v > INT64_MAX >> 8)
				return -1;
			*v = *v << 8 | p[i];
		}
		return 0;
	}
	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		*v = *v << 3 | (uint64_t)(p[i] - '0');
	return i < n && p[i] != ' ' && p[i] != '\0' ? -1 : 0;
}

static bool sum_fits(const uint8_t *h)
{
	uint64_t want, sum = 0;
	int64_t with_sign = 0; /* some old writers added up signed characters */

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		uint8_t c = i >= AT_SUM && i < AT_SUM + SUM ? ' ' : h[i];

		sum += c;
		with_sign += (int8_t)c;
	}
	return number(h + AT_SUM, SUM, &want) == 0 && (want == sum || (int64_t)want == with_sign);
}

/* "LENGTH key=value\n" records: only "size" matters here. */
static int read_records(struct reframer *r, struct err *e)
{
	const char *p = r->pax.data, *end = p + r->pax.len;

	while (p < end) {
		char *after;
		unsigned long long length;

		if (*p < '0' || *p > '9') /* padding that some writers put behind */
			return 0;
		length = strtoull(p, &after, 10);
		if (*after != ' ' || length > (size_t)(end - p) ||
			length <= (size_t)(after - p) + 1 || p[length - 1] != '\n')
			return err_set(e, ERR_CORRUPT,
				"a malformed extended header before byte %" PRIu64 " of the tar",
				r->offset);
		after++;
		if (strncmp(after, "size=", 5) == 0) {
			char *stop;

			r->size = strtoull(after + 5, &stop, 10);
			r->has_size = stop > after + 5 && *stop == '\n' && r->size <= INT64_MAX;
			if (!r->has_size)
				return err_set(e, ERR_CORRUPT,
					"an extended header before byte %" PRIu64
					" of the tar says no size",
					r->offset);
		}
		p += length;
	}
	return 0;
}

static bool has_body(char type)
{
	return type < '1' || type > '6'; /* links, devices, folders and fifos have none */
}

static bool is_data(const uint8_t *h)
{
	char type = (char)h[AT_TYPE];

	return type == '0' || type == '\0' || type == '7';
}

static int read_header(struct reframer *r, const uint8_t *h, struct err *e)
{
	char type = (char)h[AT_TYPE];
	uint64_t size;

	if (!sum_fits(h) || number(h + AT_SIZE, SIZE, &size) < 0 || size > INT64_MAX - TAR_BLOCK)
		return err_set(e, ERR_CORRUPT, "no header at byte %" PRIu64 " of the tar",
			r->offset - TAR_BLOCK);
	if (type == 'S')
		return err_set(e, ERR_UNSUPPORTED, "a sparse member at byte %" PRIu64 " of the tar",
			r->offset - TAR_BLOCK);
	r->extended = type == 'x';
	if (r->extended) {
		if (size > RECORDS_MAX)
			return err_set(e, ERR_CORRUPT,
				"an extended header of %" PRIu64 " bytes at byte %" PRIu64
				" of the tar",
				size, r->offset - TAR_BLOCK);
		r->records = size;
		r->pax.len = 0;
	} else if (type != 'g' && type != 'L' && type != 'K') { /* the member itself */
		if (r->has_size)
			size = r->size;
		r->has_size = false;
		if (!has_body(type))
			size = 0;
	}
	r->data = is_data(h) ? size : 0;
	r->skip = -size % TAR_BLOCK + (r->data ? 0 : size);
	return 0;
}

/* ---- the stream, piece by piece ---- */

static int next_header(struct reframer *r, struct framer_group *g, struct err *e)
{
	size_t got;

	if (pull(r, &g->raw, TAR_BLOCK, &got, e) < 0)
		return -1;
	if (got < TAR_BLOCK) /* whatever stands behind the end of the archive is kept */
		return 0;

	const uint8_t *h = (const uint8_t *)g->raw.data + g->raw.len - TAR_BLOCK;

	if (all_zero(h, TAR_BLOCK)) {
		r->zeros++;
		return 0;
	}
	r->zeros = 0;
	return read_header(r, h, e);
}

static int next_skipped(struct reframer *r, struct framer_group *g, struct err *e)
{
	size_t k = r->skip < HEADERS_MAX ? (size_t)r->skip : HEADERS_MAX, from = g->raw.len;

	if (pull_all(r, &g->raw, k, e) < 0)
		return -1;
	r->skip -= k;
	if (!r->extended)
		return 0;
	if (buf_add(&r->pax, g->raw.data + from,
		    k < r->records - r->pax.len ? k : r->records - r->pax.len, e) < 0)
		return -1;
	if (r->skip > 0)
		return 0;
	r->extended = false;
	return read_records(r, e);
}

static int next_tail(struct reframer *r, struct framer_group *g, struct err *e)
{
	size_t got;

	return pull(r, &g->raw, HEADERS_MAX, &got, e);
}

static int next_data(struct reframer *r, struct framer_group *g, struct err *e)
{
	uint32_t k = r->data < CHUNK_SIZE ? (uint32_t)r->data : CHUNK_SIZE;

	if (buf_reserve(&g->raw, k, e) < 0 || pull_all(r, &g->raw, k, e) < 0)
		return -1;
	framer_mark(g, k, NULL);
	r->data -= k;
	return 0;
}

/* Is the group done, and does the next piece of data go into another one? */
static bool is_full(const struct reframer *r, const struct framer_group *g)
{
	uint64_t next = r->data < CHUNK_SIZE ? r->data : CHUNK_SIZE;

	return g->nmarks == FRAMER_MARKS || g->raw.len >= FRAMER_WEIGHT ||
	       (g->raw.len > 0 && next > 0 && g->raw.len + next > FRAMER_WEIGHT);
}

static int fill(void *ctx, size_t group, struct framer_group *g, struct err *e)
{
	struct reframer *r = ctx;
	int rc = 0;

	(void)group;
	while (rc == 0 && !r->eof && !is_full(r, g)) {
		if (r->data)
			rc = next_data(r, g, e);
		else if (r->skip)
			rc = next_skipped(r, g, e);
		else if (r->zeros < 2)
			rc = next_header(r, g, e);
		else
			rc = next_tail(r, g, e);
	}
	if (rc == 0 && r->eof && (r->data || r->skip))
		rc = pull_all(r, &g->raw, 1, e);
	if (rc == 0 && r->offset == 0) /* no codec has a frame of nothing */
		rc = err_set(e, ERR_UNSUPPORTED, "a layer without the end of a tar");
	return rc < 0 ? -1 : g->raw.len == 0;
}

static void placed(void *ctx, const struct framer_mark *m)
{
	struct chunk_list *l = ((struct reframer *)ctx)->chunks;

	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n++] = (struct chunk){.digest = m->digest,
		.length = m->length,
		.block = CHUNK_NO_BLOCK,
		.layer = CHUNK_NO_LAYER,
		.stored = m->stored,
		.offset = m->offset};
}

int reframe(struct layer *l, struct source *tar, struct store *s, struct chunk_list *chunks,
	struct progress *p, struct err *e)
{
	struct reframer r = {.tar = tar, .chunks = chunks, .pax = BUF_INIT(RECORDS_MAX)};
	struct framer f = {.codec = l->codec,
		.level = l->level,
		.n = SIZE_MAX,
		.serial = true,
		.hash = true,
		.fill = fill,
		.placed = placed,
		.ctx = &r,
		.progress = p};
	int rc;

	*chunks = (struct chunk_list){0};
	rc = framer_run(&f, s, &l->diff_id, e);
	buf_fini(&r.pax);
	if (rc < 0) {
		chunk_list_fini(chunks);
		return -1;
	}
	l->digest = f.digest;
	l->size = f.size;
	l->tar_size = f.tar_size;
	return 0;
}
