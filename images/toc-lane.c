#include "images/toc-lane.h"

#include <assert.h>
#include <string.h>

#include "images/toc-frame.h"

enum {
	AT_ONCE_MAX = 4 << 20, /* zstd frames that unpack to no more are decoded in one call */
	STEP = 256 << 10,      /* of others: what stays in the processor's cache */
};

struct lane {
	const struct toc_work *w;
	/* what comes in */
	struct toc_pieces pieces;
	struct stream *stream;
	struct piece *piece;     /* the current one, or NULL */
	struct toc_frame *frame; /* made when it is needed */
	uint64_t frame_at;       /* eStargz: the member that is being decoded, ... */
	uint64_t frame_out;      /* ... how much of it has come, ... */
	uint64_t frame_in;       /* ... and how far in the blob */
	unsigned char *scratch;  /* scratch_size() bytes */
	/* what goes out */
	unsigned char *buf; /* of the sink: the chunk of ours that grows, or NULL */
	uint32_t fill;
	struct hash file; /* of a file that only has a digest as a whole */
	struct hash chunk;
	const struct digest *expected; /* of the chunk of ours, when the table knows it */
};

/* ---- out ---- */

static struct attr *attr_of(const struct lane *x, const struct toc_chunk *c)
{
	return &x->w->out->v[x->w->t->files[c->file].entry].a;
}

/* The part of its file that this lane is for. */
static void window(const struct lane *x, const struct toc_chunk *c, uint64_t *from, uint64_t *to)
{
	const struct toc *t = x->w->t;
	const struct toc_lane *l = x->w->lane;

	*from = c->file == t->chunks[l->first].file ? l->from : 0;
	*to = c->file == t->chunks[l->first + l->n - 1].file ? l->to : t->files[c->file].size;
}

/* So many bytes are in the buffer now, which end at `end` of the file. */
static void added(struct lane *x, const struct toc_chunk *c, uint64_t end, size_t n)
{
	struct chunk *ours = &attr_of(x, c)->chunks[(end - 1) / CHUNK_SIZE];

	x->fill += (uint32_t)n;
	if (x->fill < ours->length)
		return;
	sink_put(x->w->sink, steal_ptr(&x->buf), x->fill, ours, x->expected);
	x->fill = 0;
}

/* Bytes of the file at `at`, as much of them as this lane is for. */
static void emit(
	struct lane *x, const struct toc_chunk *c, uint64_t at, const unsigned char *p, size_t n)
{
	uint64_t from, to;

	window(x, c, &from, &to);
	while (n > 0) {
		uint64_t limit = at < from ? from : at - at % CHUNK_SIZE + CHUNK_SIZE;
		size_t k = n < limit - at ? n : (size_t)(limit - at);

		if (at >= to)
			return;
		if (at >= from) {
			assert(x->fill == at % CHUNK_SIZE);
			if (!x->buf)
				x->buf = sink_buffer(x->w->sink);
			memcpy(x->buf + x->fill, p, k);
			added(x, c, at + k, k);
		}
		at += k;
		p += k;
		n -= k;
	}
}

/* Where a whole chunk may be decoded to without being copied, or NULL. */
static unsigned char *place_for(struct lane *x, const struct toc_chunk *c)
{
	uint64_t from, to;

	window(x, c, &from, &to);
	if (c->at < from || c->at + c->size > to || c->at % CHUNK_SIZE + c->size > CHUNK_SIZE)
		return NULL;
	assert(x->fill == c->at % CHUNK_SIZE);
	if (!x->buf)
		x->buf = sink_buffer(x->w->sink);
	return x->buf + x->fill;
}

static void hash_part(struct lane *x, const struct toc_chunk *c, const void *p, size_t n)
{
	if (x->w->t->files[c->file].whole)
		hash_add(&x->file, p, n);
	else if (!x->expected && c->has_digest)
		hash_add(&x->chunk, p, n);
}

/* ---- in ---- */

static bool is_at_once(const struct toc_work *w, const struct toc_chunk *c)
{
	return w->codec == CODEC_ZSTD && c->size <= AT_ONCE_MAX && c->end - c->offset <= PIECE_MAX;
}

/* The bytes of the blob from offset to end, as many as the current piece has. */
static int input(struct lane *x, uint64_t offset, uint64_t end, const unsigned char **p, size_t *n,
	struct err *e)
{
	while (!x->piece || offset >= x->piece->offset + x->piece->length) {
		int rc;

		if (x->piece)
			stream_release(x->stream, steal_ptr(&x->piece));
		rc = stream_next(x->stream, &x->piece, e);
		assert(rc != 0); /* the pieces were made for these chunks */
		if (rc < 0) {
			x->piece = NULL;
			return -1;
		}
		if (sink_check(x->w->sink, e) < 0)
			return -1;
	}
	assert(offset >= x->piece->offset);
	*p = x->piece->data + (offset - x->piece->offset);
	*n = x->piece->length - (size_t)(offset - x->piece->offset);
	if (*n > end - offset)
		*n = (size_t)(end - offset);
	return 0;
}

static struct toc_frame *frame(struct lane *x)
{
	if (!x->frame)
		x->frame = toc_frame_new(x->w->codec);
	return x->frame;
}

static int decode_at_once(struct lane *x, const struct toc_chunk *c, struct err *e)
{
	const unsigned char *in;
	unsigned char *place, *p;
	size_t n;

	if (input(x, c->offset, c->end, &in, &n, e) < 0)
		return -1;
	place = place_for(x, c);
	p = place ? place : x->scratch;
	if (toc_frame_whole(frame(x), in, n, p, (size_t)c->size, e) < 0)
		return -1;
	hash_part(x, c, p, (size_t)c->size);
	if (place)
		added(x, c, c->at + c->size, (size_t)c->size);
	else
		emit(x, c, c->at, p, (size_t)c->size);
	return 0;
}

/* The next bytes of the frame that is being decoded, into scratch. */
static int step(struct lane *x, const struct toc_chunk *c, size_t want, size_t *got, struct err *e)
{
	int64_t out = 0;

	while (out == 0) {
		const unsigned char *in;
		size_t n, all;

		if (x->frame_in >= c->end)
			return err_set(e, ERR_CORRUPT, "its frame ends early");
		if (input(x, x->frame_in, c->end, &in, &n, e) < 0)
			return -1;
		all = n;
		out = toc_frame_more(x->frame, &in, &n, x->scratch, want, e);
		if (out < 0)
			return -1;
		if (out == 0 && n == all)
			return err_set(e, ERR_CORRUPT, "its frame does not go on");
		x->frame_in += all - n;
	}
	x->frame_out += (uint64_t)out;
	*got = (size_t)out;
	return 0;
}

static void begin_frame(struct lane *x, const struct toc_chunk *c)
{
	toc_frame_begin(frame(x));
	x->frame_at = x->frame_in = c->offset;
	x->frame_out = 0;
}

/* Nothing more may come of a zstd frame. */
static int end_frame(struct lane *x, const struct toc_chunk *c, struct err *e)
{
	const unsigned char *in = NULL;
	size_t n = 0, all = 0;
	int rc = toc_frame_end(x->frame, &in, &n, e);

	while (rc > 0) {
		if (x->frame_in >= c->end)
			return err_set(e, ERR_CORRUPT, "its frame ends early");
		if (input(x, x->frame_in, c->end, &in, &n, e) < 0)
			return -1;
		all = n;
		rc = toc_frame_end(x->frame, &in, &n, e);
		x->frame_in += all - n;
	}
	return rc;
}

/* A frame whose place is several pieces long, or that unpacks to much, or that has other files'
 * data before and behind. */
static int decode_in_steps(struct lane *x, const struct toc_chunk *c, struct err *e)
{
	uint64_t at = c->at, end = c->at + c->size;
	size_t n;

	/* a member that several chunks share is decoded once */
	if (c->inner == 0 || x->frame_at != c->offset || x->frame_out > c->inner)
		begin_frame(x, c);
	while (x->frame_out < c->inner) {
		uint64_t gap = c->inner - x->frame_out;

		if (step(x, c, gap < STEP ? (size_t)gap : STEP, &n, e) < 0)
			return -1;
	}
	while (at < end) {
		if (step(x, c, end - at < STEP ? (size_t)(end - at) : STEP, &n, e) < 0)
			return -1;
		hash_part(x, c, x->scratch, n);
		emit(x, c, at, x->scratch, n);
		at += n;
	}
	return end_frame(x, c, e);
}

static int make_zeros(struct lane *x, const struct toc_chunk *c, struct err *e)
{
	uint64_t at = c->at, end = c->at + c->size;

	memset(x->scratch, 0, STEP);
	while (at < end) {
		size_t n = end - at < STEP ? (size_t)(end - at) : STEP;

		hash_part(x, c, x->scratch, n);
		emit(x, c, at, x->scratch, n);
		at += n;
		if (at % CHUNK_SIZE == 0 && sink_check(x->w->sink, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- chunks ---- */

/* The file's last byte is out: is it what the table promised? */
static int end_whole(struct lane *x, const struct toc_chunk *c, struct err *e)
{
	const struct toc_file *f = &x->w->t->files[c->file];
	struct digest found;

	if (!f->whole || c->at + c->size < f->size)
		return 0;
	found = hash_digest(&x->file);
	return digest_check(&f->digest, &found, e, "its data");
}

static int decode(struct lane *x, const struct toc_chunk *c, struct err *e)
{
	if (c->zeros)
		return make_zeros(x, c, e);
	if (is_at_once(x->w, c))
		return decode_at_once(x, c, e);
	return decode_in_steps(x, c, e);
}

static int fetch_chunk(struct lane *x, const struct toc_chunk *c, struct err *e)
{
	struct digest found;
	uint32_t k;

	x->expected = c->has_digest && toc_chunk_is_ours(x->w->t, c, &k) ? &c->digest : NULL;
	hash_init(&x->chunk, HASH_SHA256);
	if (c->at == 0)
		hash_init(&x->file, HASH_SHA256);
	if (decode(x, c, e) < 0 || end_whole(x, c, e) < 0)
		return -1;
	if (x->expected || !c->has_digest || x->w->t->files[c->file].whole)
		return 0;
	found = hash_digest(&x->chunk);
	return digest_check(&c->digest, &found, e, "its data");
}

static int fetch_all(struct lane *x, struct err *e)
{
	const struct toc *t = x->w->t;

	for (size_t i = 0; i < x->w->lane->n; i++) {
		const struct toc_chunk *c = &t->chunks[x->w->lane->first + i];

		if (!c->known && fetch_chunk(x, c, e) < 0)
			return err_ctx(e, "'%.200s', byte %llu",
				x->w->out->v[t->files[c->file].entry].path,
				(unsigned long long)c->at);
	}
	assert(!x->buf);
	return 0;
}

/* Most writers' chunks are far smaller than the largest that is decoded at once. */
static size_t scratch_size(const struct toc_work *w)
{
	size_t most = STEP;

	for (size_t i = 0; i < w->lane->n; i++) {
		const struct toc_chunk *c = &w->t->chunks[w->lane->first + i];

		if (is_at_once(w, c) && c->size > most)
			most = (size_t)c->size;
	}
	return most;
}

int toc_lane_fetch(const struct toc_work *w, struct err *e)
{
	struct lane x = {.w = w, .frame_at = UINT64_MAX, .scratch = mem_alloc(scratch_size(w))};
	int rc;

	toc_pieces_make(&x.pieces, w->t, w->lane, &w->layer->digest, w->layer->size);
	if (x.pieces.n)
		x.stream = stream_open(w->d, x.pieces.v, x.pieces.n, true);
	rc = fetch_all(&x, e);
	if (x.buf)
		sink_put(w->sink, x.buf, 0, NULL, NULL);
	if (x.stream)
		stream_close(x.stream);
	toc_pieces_fini(&x.pieces);
	toc_frame_free(x.frame);
	free(x.scratch);
	return rc;
}
