#include "images/chunk-fetch.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/sys.h"
#include "images/frame.h"
#include "images/progress.h"
#include "images/workers.h"

enum {
	GAP_MAX = 8 << 10,        /* bytes that may be fetched for nothing, to save a request */
	PIECE_MIN = 256 << 10,    /* smaller ones are not worth a round trip ... */
	PIECES_WANTED = 64,       /* ... and with fewer, connections would idle */
	SCRATCH = 2 * CHUNK_SIZE, /* decoded, and not yet written */
	ITEMS_MAX = 512,          /* chunks in it */
	THREADS_MAX = 16,
};
static const double record_every_ms = 5000; /* of a long pull */

/* Chunks v[first..first + n), whose frames lie in one piece. */
struct run {
	size_t first, n;
};

struct fetch {
	const struct chunk_fetch *f;
	struct chunk **v;
	struct piece *pieces;
	struct run *runs; /* by piece */
	size_t npieces, cap;
	struct stream *stream;
	pthread_mutex_t lock; /* of recorded */
	double recorded;      /* when what had arrived was last recorded */
};

/* ---- planning ---- */

static int by_place(const void *a, const void *b)
{
	const struct chunk *x = *(struct chunk *const *)a, *y = *(struct chunk *const *)b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int check_places(const struct fetch *t, size_t n, struct err *e)
{
	char text[DIGEST_TEXT + 1];

	for (size_t i = 0; i < n; i++) {
		const struct chunk *c = t->v[i];

		if (c->layer < 0 || (size_t)c->layer >= t->f->nlayers)
			return err_set(e, ERR_CORRUPT,
				"the index says of no layer that it has chunk %s",
				digest_text(&c->digest, text));
		if (i > 0 && c->layer == t->v[i - 1]->layer &&
			c->offset < t->v[i - 1]->offset + t->v[i - 1]->stored)
			return err_set(e, ERR_CORRUPT, "layer %d: two frames lie at byte %" PRIu64,
				(int)c->layer, c->offset);
	}
	return 0;
}

static uint32_t piece_size(const struct fetch *t, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += t->v[i]->stored;
	sum /= PIECES_WANTED;
	return sum < PIECE_MIN ? PIECE_MIN : sum > PIECE_MAX ? PIECE_MAX : (uint32_t)sum;
}

static void plan(struct fetch *t, size_t n)
{
	uint32_t size = piece_size(t, n);
	size_t rcap = 0;

	for (size_t i = 0; i < n; i++) {
		const struct chunk *c = t->v[i];
		const struct layer *l = &t->f->layers[c->layer];
		struct piece *p = t->npieces ? &t->pieces[t->npieces - 1] : NULL;
		uint64_t end = c->offset + c->stored;

		if (p && p->blob == &l->digest && c->offset - (p->offset + p->length) <= GAP_MAX &&
			end - p->offset <= size) {
			p->length = (uint32_t)(end - p->offset);
			t->runs[t->npieces - 1].n++;
			continue;
		}
		mem_grow(&t->pieces, &t->cap, t->npieces);
		mem_grow(&t->runs, &rcap, t->npieces);
		t->pieces[t->npieces] = (struct piece){.blob = &l->digest,
			.blob_size = l->size,
			.offset = c->offset,
			.length = c->stored};
		t->runs[t->npieces++] = (struct run){.first = i, .n = 1};
	}
}

/* All blocks at once. */
static void expect(struct fetch *t, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += ((uint64_t)t->v[i]->length + POOL_BLOCK - 1) / POOL_BLOCK * POOL_BLOCK;
	pool_expect(t->f->pool, bytes);
}

/* ---- one thread ---- */

struct worker {
	struct fetch *t;
	struct decoder *decoders[3]; /* by codec */
	unsigned char *scratch;
	size_t used;
	struct pool_item items[ITEMS_MAX];
	size_t n;
};

/* So that what is killed has not worked for nothing. The others wait meanwhile, so not too often.
 */
static int record_some(struct fetch *t, struct err *e)
{
	double now = sys_now_ms();
	bool due;

	pthread_mutex_lock(&t->lock);
	due = now - t->recorded >= record_every_ms;
	if (due)
		t->recorded = now;
	pthread_mutex_unlock(&t->lock);
	return due && !t->f->repair ? pool_commit_soon(t->f->pool, e) : 0;
}

static int flush(struct worker *w, struct err *e)
{
	const struct chunk_fetch *f = w->t->f;
	int rc = 0;

	if (f->repair)
		for (size_t i = 0; rc == 0 && i < w->n; i++)
			rc = pool_repair(f->pool, w->items[i].c, w->items[i].data, e);
	else if (w->n)
		rc = pool_put_known(f->pool, w->items, w->n, e);
	w->n = w->used = 0;
	return rc < 0 ? -1 : record_some(w->t, e);
}

static int add_chunk(struct worker *w, const struct piece *p, struct chunk *c, struct err *e)
{
	const unsigned char *stored = p->data + (c->offset - p->offset), *data = stored;
	enum codec codec = w->t->f->layers[c->layer].codec;

	if ((w->used + c->length > SCRATCH || w->n == ITEMS_MAX) && flush(w, e) < 0)
		return -1;
	if (codec == CODEC_NONE && c->stored != c->length)
		return err_set(e, ERR_CORRUPT, "a frame of %u bytes for a chunk of %u", c->stored,
			c->length);
	if (codec != CODEC_NONE) {
		if (!w->decoders[codec])
			w->decoders[codec] = decoder_new(codec);
		data = w->scratch + w->used;
		if (decoder_frame(w->decoders[codec], stored, c->stored, w->scratch + w->used,
			    c->length, e) < 0)
			return -1;
	}
	w->used += c->length;
	w->items[w->n++] = (struct pool_item){.data = data, .c = c};
	return 0;
}

static int do_piece(struct worker *w, const struct piece *p, struct err *e)
{
	const struct fetch *t = w->t;
	const struct run *r = &t->runs[p - t->pieces];
	struct progress_line **lines = t->f->lines;
	int rc = 0;

	for (size_t i = r->first; rc == 0 && i < r->first + r->n; i++) {
		rc = add_chunk(w, p, t->v[i], e);
		if (rc < 0)
			err_ctx(e, "layer %d, byte %" PRIu64, (int)t->v[i]->layer, t->v[i]->offset);
	}
	if (rc == 0) { /* plain frames are written from the piece itself */
		rc = flush(w, e);
		if (rc < 0)
			err_ctx(e, "layer %d", (int)t->v[r->first]->layer);
	}
	if (rc == 0 && lines)
		progress_line_add(lines[t->v[r->first]->layer], p->length);
	return rc;
}

static int work(void *ctx, size_t i, struct err *e)
{
	struct fetch *t = ctx;
	auto_free struct worker *w = mem_alloc(sizeof(*w));
	struct piece *p;
	int rc;

	(void)i;
	w->t = t;
	w->scratch = mem_alloc(SCRATCH);
	while ((rc = stream_next(t->stream, &p, e)) > 0) {
		rc = do_piece(w, p, e);
		stream_release(t->stream, p);
		if (rc < 0)
			break;
	}
	for (size_t k = 0; k < sizeof(w->decoders) / sizeof(w->decoders[0]); k++)
		decoder_free(w->decoders[k]);
	free(w->scratch);
	return rc;
}

int chunk_fetch(const struct chunk_fetch *f, struct chunk **v, size_t n, struct err *e)
{
	struct fetch t = {.f = f, .v = v, .lock = PTHREAD_MUTEX_INITIALIZER};
	size_t threads = workers_cores() + 1; /* one may wait: for its turn to write, for data */
	int rc;

	if (n == 0)
		return 0;
	qsort(v, n, sizeof(struct chunk *), by_place);
	if (check_places(&t, n, e) < 0)
		return -1;
	plan(&t, n);
	if (!f->repair)
		expect(&t, n);
	t.recorded = sys_now_ms();
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	t.stream = stream_open(f->download, t.pieces, t.npieces, false);
	rc = workers_each(threads, threads, work, &t, e);
	stream_close(t.stream);
	free(t.pieces);
	free(t.runs);
	return rc;
}
