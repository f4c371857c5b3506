/* Whose memory a piece may take. The lock is held.
 *
 * Every open stream may use its share, a part of all that is the same for each. Beyond that, a
 * stream takes what the others will not need. A stream that is opened when another, whose pieces
 * nobody takes, has everything, gets its first buffer back from that one's pieces that were not
 * handed out: they are fetched again later. So no consumer waits for another. */
#include "images/download-own.h"

enum { SPARE_LIMIT = 8 * PIECE_MAX }; /* with less in all there is nothing to spare */

/* ---- shares ---- */

/* Every stream's. */
static size_t memory_share(const struct download *d)
{
	const struct stream *s;
	size_t n = 0;

	TAILQ_FOREACH (s, &d->streams, entry)
		n += !stream_over(s) && (s->hunger > 0 || s->used > 0);
	return d->buffers.limit / (n ? n : 1);
}

/* What the others may still claim of their shares. */
static size_t reserved(const struct stream *s, size_t part)
{
	const struct stream *t;
	size_t sum = 0;

	TAILQ_FOREACH (t, &s->d->streams, entry)
		if (t != s && !stream_over(t) && t->used < part)
			sum += t->hunger < part - t->used ? (size_t)t->hunger : part - t->used;
	return sum;
}

static bool memory_may_take(const struct stream *s, size_t n)
{
	const struct buffers *b = &s->d->buffers;
	size_t left = b->limit - b->used, part = memory_share(s->d);
	/* for the first piece of a stream that is yet to be opened, which would have to take it
	 * back */
	size_t spare = s->ordered && s->used > 0 && b->limit >= SPARE_LIMIT ? PIECE_MAX : 0;

	n = buffers_round(n);
	if (n + spare > left)
		return false;
	return s->used == 0 || s->used + n <= part || reserved(s, part) + n <= left;
}

/* Ordered streams: the next piece that needs memory, or NULL. */
static struct job *stream_first_lacking(const struct stream *s)
{
	for (size_t i = s->handed; i < s->n; i++)
		if (s->jobs[i].state == JOB_WANTED && !s->jobs[i].buffer.data)
			return &s->jobs[i];
	return NULL;
}

/* In order, the first piece that lacks memory gets it before any behind it: they would hold what it
 * needs, and wait for it. */
static bool its_turn(const struct job *j)
{
	return !j->stream->ordered || stream_first_lacking(j->stream) == j;
}

bool job_may_begin(struct job *j)
{
	if (j->buffer.data || (its_turn(j) && memory_may_take(j->stream, j->piece->length)))
		return true;
	j->stream->d->hungry = true;
	return false;
}

bool job_take(struct job *j)
{
	struct stream *s = j->stream;
	struct err e;

	if (!job_may_begin(j))
		return false;
	if (!j->buffer.data) {
		j->buffer = buffers_take(&s->d->buffers, j->piece->length);
		if (!j->buffer.data) {
			err_set(&e, ERR_SYSTEM, "no memory for %u bytes", j->piece->length);
			stream_fail(s, &e);
			return false;
		}
		s->used += j->buffer.size;
		s->hunger -= j->piece->length;
	}
	job_unlist(j);
	job_set_state(j, JOB_BUSY);
	return true;
}

bool lane_may_go_on(struct lane *l)
{
	struct job *j = lane_next_job(l);

	return !j || job_may_begin(j);
}

/* ---- relief ---- */

static struct lane *paused_lane(struct download *d, const struct stream *s)
{
	for (unsigned i = 0; i < d->limits.connections; i++) {
		struct lane *l = &d->lanes[i];

		if (l->busy && l->paused && !l->unwanted && l->stream == s)
			return l;
	}
	return NULL;
}

/* One of a stream whose consumer has other things to do. */
static struct lane *others_lane(struct download *d, const struct stream *s)
{
	for (unsigned i = 0; i < d->limits.connections; i++) {
		struct lane *l = &d->lanes[i];

		if (l->busy && l->paused && !l->unwanted && l->stream != s &&
			l->stream->waiters == 0)
			return l;
	}
	return NULL;
}

static unsigned running(const struct download *d, const struct stream *s)
{
	unsigned n = s->lanes;

	for (unsigned i = 0; i < d->limits.connections; i++)
		n -= d->lanes[i].busy && d->lanes[i].paused && d->lanes[i].stream == s;
	return n;
}

/* The piece that a consumer waits for when nothing is under way that would bring one. */
static struct job *wish(struct download *d, struct stream *s, double now)
{
	struct lane *l;
	struct job *j = NULL;

	if (s->waiters == 0 || stream_over(s) || s->handed == s->n)
		return NULL;
	if (s->ordered) {
		j = &s->jobs[s->handed];
		return j->state == JOB_WANTED && j->due <= now ? j : NULL;
	}
	if (!TAILQ_EMPTY(&s->arrived) || running(d, s) > 0)
		return NULL;
	l = paused_lane(d, s);
	if (l)
		j = lane_next_job(l);
	for (size_t i = 0; !j && i < s->n; i++)
		if (s->jobs[i].state == JOB_WANTED && s->jobs[i].due <= now)
			j = &s->jobs[i];
	return j;
}

/* The piece of s that is needed last of those that have memory and nobody has in hand. */
static struct job *last_idle(struct stream *s, const struct job *but)
{
	struct job *last = NULL, *j;

	TAILQ_FOREACH (j, &s->arrived, entry)
		if (j != but && (!last || j > last))
			last = j;
	TAILQ_FOREACH (j, &s->retry, entry)
		if (j != but && j->buffer.data && (!last || j > last))
			last = j;
	return last;
}

/* Whose memory j gets: that of later pieces of its own stream; when it has nothing at all, that of
 * a stream with more than its share. Whoever takes stays within its share, so there is no taking to
 * and fro; where a piece is larger than a share, only those lose who do not wait themselves. */
static struct job *victim(struct stream *s, const struct job *j)
{
	size_t part = memory_share(s->d);
	bool large = buffers_round(j->piece->length) > part;
	struct job *best = last_idle(s, j);
	struct stream *t;

	if (best || s->used > 0)
		return best;
	TAILQ_FOREACH (t, &s->d->streams, entry) {
		struct job *last = NULL;

		if (t->used > part || (large && t->waiters == 0))
			last = last_idle(t, j);
		if (last && (!best || t->used > best->stream->used))
			best = last;
	}
	return best;
}

static void take_back(struct job *j)
{
	if (j->state == JOB_ARRIVED) {
		TAILQ_REMOVE(&j->stream->arrived, j, entry);
		job_drop(j);
		job_back(j, 0);
	} else {
		job_drop(j);
	}
}

static bool relieve(struct download *d, struct stream *s, struct job *j, bool lanes_left)
{
	struct lane *l;
	bool changed = false;

	while (!j->buffer.data && !memory_may_take(s, j->piece->length)) {
		struct job *v = victim(s, j);

		if (!v)
			break;
		take_back(v);
		changed = true;
	}
	l = j->blob->lane;
	if (l && l->paused && !l->unwanted && lane_next_job(l) != j) /* passed it already */
		return l->unwanted = true;
	if (l || lanes_left || (!s->ordered && s->lanes > 0))
		return changed;
	l = others_lane(d, s);
	if (!l && s->ordered)
		l = paused_lane(d, s);
	if (l)
		l->unwanted = true;
	return changed || l;
}

bool memory_relieve(struct download *d, double now, bool lanes_left)
{
	struct stream *s;
	bool changed = false;

	TAILQ_FOREACH (s, &d->streams, entry) {
		struct job *j = wish(d, s, now);

		if (j && relieve(d, s, j, lanes_left))
			changed = true;
	}
	return changed;
}
