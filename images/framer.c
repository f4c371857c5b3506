#include "images/framer.h"

#include <assert.h>
#include <pthread.h>

#include "images/frame.h"
#include "images/progress.h"
#include "images/workers.h"

enum {
	THREADS_MAX = 16, /* the one that hashes keeps up with no more */
	/* Groups that may wait for the next in order: on a busy machine its thread may not run for
	 * a while. A slot has up to 3 MiB. */
	SLOTS_PER_THREAD = 4,
	SLOTS_MAX = 40,
};

struct run {
	struct framer *f;
	struct framer_group *slots;
	struct encoder **idle; /* encoders that no thread is using */
	size_t nidle;
	pthread_mutex_t lock; /* of all below, and of idle */
	pthread_cond_t turned;
	size_t turn; /* the group that is to be filled next: serial ones only */
	bool ended;  /* no turn comes any more */
	struct hash tar;
	struct blob_writer *blob;
};

void framer_mark(struct framer_group *g, uint32_t length, void *user)
{
	assert(g->nmarks < FRAMER_MARKS && length > 0 && length <= g->raw.len);
	g->marks[g->nmarks++] =
		(struct framer_mark){.at = g->raw.len - length, .length = length, .user = user};
}

/* ---- making a group ---- */

static struct encoder *take_encoder(struct run *r, struct err *e)
{
	struct encoder *x = NULL;

	pthread_mutex_lock(&r->lock);
	if (r->nidle > 0)
		x = r->idle[--r->nidle];
	pthread_mutex_unlock(&r->lock);
	return x ? x : encoder_new(r->f->codec, r->f->level, e);
}

static void give_encoder(struct run *r, struct encoder *x)
{
	pthread_mutex_lock(&r->lock);
	r->idle[r->nidle++] = x;
	pthread_mutex_unlock(&r->lock);
}

/* Make one frame of raw[from..to), if there is anything. */
static int add_frame(const struct framer *f, struct framer_group *g, struct encoder *x, size_t from,
	size_t to, size_t *len, struct err *e)
{
	*len = to - from;
	if (from == to || f->codec == CODEC_NONE) /* raw itself is the output */
		return 0;
	if (buf_reserve(&g->out, frame_bound(f->codec, to - from), e) < 0 ||
		encoder_frame(x, g->raw.data + from, to - from, g->out.data + g->out.len, len, e) <
			0)
		return -1;
	g->out.len += *len;
	return 0;
}

static int make_frames(
	const struct framer *f, struct framer_group *g, struct encoder *x, struct err *e)
{
	size_t done = 0, len;

	for (size_t i = 0; i < g->nmarks; i++) {
		struct framer_mark *m = &g->marks[i];

		if (add_frame(f, g, x, done, m->at, &len, e) < 0)
			return -1;
		m->offset = f->codec == CODEC_NONE ? m->at : g->out.len; /* within the group */
		done = m->at + m->length;
		if (add_frame(f, g, x, m->at, done, &len, e) < 0)
			return -1;
		m->stored = (uint32_t)len;
		if (f->hash)
			m->digest = digest_of(g->raw.data + m->at, m->length);
	}
	return add_frame(f, g, x, done, g->raw.len, &len, e);
}

/* Fill in turn. 1 also when an earlier group failed or was the last. */
static int fill_in_turn(struct run *r, size_t i, struct framer_group *g, struct err *e)
{
	int rc = 1;

	pthread_mutex_lock(&r->lock);
	while (!r->ended && r->turn != i)
		pthread_cond_wait(&r->turned, &r->lock);
	if (!r->ended) {
		pthread_mutex_unlock(&r->lock);
		rc = r->f->fill(r->f->ctx, i, g, e);
		pthread_mutex_lock(&r->lock);
		r->turn++;
		r->ended = rc != 0;
	}
	pthread_cond_broadcast(&r->turned);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static int make_group(void *ctx, size_t i, size_t slot, struct err *e)
{
	struct run *r = ctx;
	struct framer_group *g = &r->slots[slot];
	struct encoder *x;
	int rc;

	g->raw.len = g->out.len = g->nmarks = 0;
	rc = r->f->serial ? fill_in_turn(r, i, g, e) : r->f->fill(r->f->ctx, i, g, e);
	if (rc != 0)
		return rc;
	x = take_encoder(r, e);
	if (!x)
		return -1;
	rc = make_frames(r->f, g, x, e);
	give_encoder(r, x);
	return rc;
}

/* ---- taking it ---- */

static int take_group(void *ctx, size_t i, size_t slot, struct err *e)
{
	struct run *r = ctx;
	struct framer_group *g = &r->slots[slot];
	const struct buf *out = r->f->codec == CODEC_NONE ? &g->raw : &g->out;
	uint64_t data = 0;

	(void)i;
	for (size_t k = 0; k < g->nmarks; k++) {
		g->marks[k].offset += r->blob->size;
		r->f->placed(r->f->ctx, &g->marks[k]);
		data += g->marks[k].length;
	}
	if (r->f->codec != CODEC_NONE) /* a plain tar is its own blob: one digest for both */
		hash_add(&r->tar, g->raw.data, g->raw.len);
	r->f->tar_size += g->raw.len;
	if (store_blob_add(r->blob, out->data, out->len, e) < 0)
		return -1;
	progress_add(r->f->progress, data);
	return 0;
}

static int run_pipe(struct run *r, struct err *e)
{
	size_t cores = workers_cores(), threads = cores < THREADS_MAX ? cores : THREADS_MAX;
	size_t slots =
		SLOTS_PER_THREAD * threads < SLOTS_MAX ? SLOTS_PER_THREAD * threads : SLOTS_MAX;
	struct workers_pipe pipe = {.n = r->f->n,
		.threads = threads,
		.slots = slots,
		.make = make_group,
		.take = take_group,
		.ctx = r};
	int rc;

	r->slots = mem_array(slots, sizeof(*r->slots));
	r->idle = mem_array(threads, sizeof(struct encoder *));
	for (size_t i = 0; i < slots; i++)
		r->slots[i].raw.max = r->slots[i].out.max = FRAMER_RAW_MAX;
	rc = workers_ordered(&pipe, e);
	for (size_t i = 0; i < slots; i++) {
		buf_fini(&r->slots[i].raw);
		buf_fini(&r->slots[i].out);
	}
	while (r->nidle > 0)
		encoder_free(r->idle[--r->nidle]);
	free(r->idle);
	free(r->slots);
	return rc;
}

int framer_run(struct framer *f, struct blob_writer *w, struct err *e)
{
	struct run r = {.f = f,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.turned = PTHREAD_COND_INITIALIZER,
		.blob = w};

	f->tar_size = 0;
	hash_init(&r.tar, HASH_SHA256);
	if (run_pipe(&r, e) < 0)
		return -1;
	f->digest = store_blob_digest(w);
	f->diff_id = f->codec == CODEC_NONE ? f->digest : hash_digest(&r.tar);
	return 0;
}
