/* Which piece is next, and whose memory it may take.
 *
 * Memory: every open stream may use its share, a part of all that is the same for each. Beyond
 * that, a stream takes what the others will not need. A stream that is opened when another, whose
 * pieces nobody takes, has everything, gets its first buffer back from that one's pieces that were
 * not handed out: they are fetched again later (queue_relieve()). So no consumer waits for another.
 */
#include "images/download-own.h"

#include <assert.h>

enum { RUN_MAX = 16 << 20 };

size_t job_index(const struct job *j)
{
	return (size_t)(j - j->stream->jobs);
}

static bool over(const struct stream *s)
{
	return s->failed || s->closing;
}

/* ---- states ---- */

static void set_state(struct job *j, enum job_state state)
{
	j->blob->wanted += state == JOB_WANTED;
	j->blob->wanted -= j->state == JOB_WANTED;
	j->state = state;
}

static void undelay(struct download *d, double *due)
{
	if (*due > 0)
		d->delayed--;
	*due = 0;
}

static void delay(struct download *d, double *due, double until)
{
	undelay(d, due);
	if (until > 0)
		d->delayed++;
	*due = until;
}

static void unlist(struct job *j)
{
	undelay(j->stream->d, &j->due);
	if (j->listed)
		TAILQ_REMOVE(&j->stream->retry, j, entry);
	j->listed = false;
}

static void list(struct job *j)
{
	struct job_list *l = &j->stream->retry;
	struct job *before = TAILQ_LAST(l, job_list);

	while (before && before > j)
		before = TAILQ_PREV(before, job_list, entry);
	if (before)
		TAILQ_INSERT_AFTER(l, before, j, entry);
	else
		TAILQ_INSERT_HEAD(l, j, entry);
	j->listed = true;
}

void job_drop(struct job *j)
{
	struct stream *s = j->stream;

	if (!j->buffer.data)
		return;
	s->used -= j->buffer.size;
	s->hunger += j->piece->length;
	buffers_give(&s->d->buffers, &j->buffer);
	j->have = j->mark = 0;
}

void job_arrived(struct job *j)
{
	struct stream *s = j->stream;

	if (over(s)) {
		job_back(j, 0);
		return;
	}
	set_state(j, JOB_ARRIVED);
	TAILQ_INSERT_TAIL(&s->arrived, j, entry);
	if (s->waiters > 0 && (!s->ordered || job_index(j) == s->handed))
		pthread_cond_signal(&s->cond);
}

void job_back(struct job *j, double due)
{
	set_state(j, JOB_WANTED);
	if (over(j->stream)) {
		job_drop(j);
		return;
	}
	if (j->blob->whole) /* its next whole lane takes it as it passes */
		return;
	list(j);
	delay(j->stream->d, &j->due, due);
}

void stream_clear(struct stream *s)
{
	struct blob *b;
	struct job *j;

	while ((j = TAILQ_FIRST(&s->retry))) {
		unlist(j);
		job_drop(j);
	}
	while ((j = TAILQ_FIRST(&s->arrived))) {
		TAILQ_REMOVE(&s->arrived, j, entry);
		set_state(j, JOB_WANTED);
		job_drop(j);
	}
	TAILQ_FOREACH (b, &s->wholes, entry)
		undelay(s->d, &b->due);
}

void stream_fail(struct stream *s, const struct err *e)
{
	if (over(s))
		return;
	s->failed = true;
	s->e = *e;
	stream_clear(s);
	pthread_cond_broadcast(&s->cond);
}

struct job *job_hand_out(struct stream *s)
{
	struct job *j = s->ordered ? &s->jobs[s->handed] : TAILQ_FIRST(&s->arrived);

	if (!j || j->state != JOB_ARRIVED)
		return NULL;
	TAILQ_REMOVE(&s->arrived, j, entry);
	set_state(j, JOB_OUT);
	s->handed++;
	return j;
}

void job_done(struct job *j)
{
	set_state(j, JOB_DONE);
	job_drop(j);
}

/* ---- blobs that are read whole ---- */

void blob_make_whole(struct blob *b)
{
	struct stream *s = b->stream;
	struct blob *after = TAILQ_LAST(&s->wholes, blob_list);
	struct job *next;

	if (b->whole)
		return;
	b->whole = true;
	while (after && after->first > b->first)
		after = TAILQ_PREV(after, blob_list, entry);
	if (after)
		TAILQ_INSERT_AFTER(&s->wholes, after, b, entry);
	else
		TAILQ_INSERT_HEAD(&s->wholes, b, entry);
	for (struct job *j = TAILQ_FIRST(&s->retry); j; j = next) {
		next = TAILQ_NEXT(j, entry);
		if (j->blob == b)
			unlist(j);
	}
}

void blob_wait(struct blob *b, double due)
{
	if (b->whole && !over(b->stream))
		delay(b->stream->d, &b->due, due);
}

static void make_ranged(struct blob *b)
{
	struct stream *s = b->stream;

	b->whole = false;
	undelay(s->d, &b->due);
	TAILQ_REMOVE(&s->wholes, b, entry);
	for (size_t i = b->first; i < s->n; i++)
		if (s->jobs[i].blob == b && s->jobs[i].state == JOB_WANTED && !s->jobs[i].listed)
			list(&s->jobs[i]);
}

bool blob_next_endpoint(struct blob *b, unsigned next)
{
	struct download *d = b->stream->d;

	if (next >= d->endpoints)
		return false;
	if (next <= b->endpoint) /* another piece found out first */
		return true;
	b->endpoint = next;
	b->tries = 0;
	b->best = b->mark = 0;
	if (b->whole && !d->ignores_range[b->endpoint])
		make_ranged(b);
	return true;
}

/* ---- runs ---- */

struct job *lane_next_job(struct lane *l)
{
	struct stream *s = l->stream;

	for (; l->blob->wanted > 0 && l->cursor < l->run_end; l->cursor++) {
		struct job *j = &s->jobs[l->cursor];

		if (j->blob != l->blob)
			l->cursor = j->run_end - 1;
		else if (j->state == JOB_WANTED && j->piece->offset >= l->pos)
			return j;
	}
	return NULL;
}

void lane_give_back(struct lane *l)
{
	struct job *j;

	while (!l->whole && (j = lane_next_job(l))) {
		job_back(j, 0);
		l->cursor++;
	}
	l->run_end = l->cursor;
}

/* Servers have much to do for a request: one that is for several pieces costs them, and the way
 * there, less. In order, others would wait for the end of a run, so there are none. Towards the end
 * runs become short, so that all lanes end at about the same time. */
static size_t run_bytes(const struct stream *s)
{
	uint64_t part = s->hunger / (2 * (uint64_t)s->d->limits.connections);

	if (s->ordered)
		return 0;
	return part < RUN_MAX ? (size_t)part : RUN_MAX;
}

static bool follows(const struct job *j, const struct job *before)
{
	return j->blob == before->blob && j->state == JOB_WANTED &&
	       j->piece->offset == before->piece->offset + before->piece->length;
}

/* Claim what follows j. Returns the index where the run ends. */
static size_t claim(struct job *j)
{
	struct stream *s = j->stream;
	size_t i = job_index(j) + 1, bytes = j->piece->length, max = run_bytes(s);

	for (; i < s->n && follows(&s->jobs[i], &s->jobs[i - 1]); i++) {
		struct job *next = &s->jobs[i];

		bytes += next->piece->length;
		if (bytes > max || next->due > 0)
			break;
		if (next->listed)
			unlist(next);
		else if (i < s->frontier) /* another lane's */
			break;
		if (s->frontier == i)
			s->frontier++;
	}
	return i;
}

/* ---- memory ---- */

static size_t share(const struct download *d)
{
	const struct stream *s;
	size_t n = 0;

	TAILQ_FOREACH (s, &d->streams, entry)
		n += !over(s) && (s->hunger > 0 || s->used > 0);
	return d->buffers.limit / (n ? n : 1);
}

/* What the others may still claim of their shares. */
static size_t reserved(const struct stream *s, size_t part)
{
	const struct stream *t;
	size_t sum = 0;

	TAILQ_FOREACH (t, &s->d->streams, entry)
		if (t != s && !over(t) && t->used < part)
			sum += t->hunger < part - t->used ? (size_t)t->hunger : part - t->used;
	return sum;
}

static bool may_take(const struct stream *s, size_t n)
{
	const struct buffers *b = &s->d->buffers;
	size_t left = b->limit - b->used, part = share(s->d);

	n = buffers_round(n);
	if (n > left)
		return false;
	return s->used == 0 || s->used + n <= part || reserved(s, part) + n <= left;
}

static bool may_begin(struct job *j)
{
	if (j->buffer.data || may_take(j->stream, j->piece->length))
		return true;
	j->stream->d->hungry = true;
	return false;
}

bool job_take(struct job *j)
{
	struct stream *s = j->stream;
	struct err e;

	if (!may_begin(j))
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
	unlist(j);
	set_state(j, JOB_BUSY);
	return true;
}

bool lane_may_go_on(struct lane *l)
{
	struct job *j = lane_next_job(l);

	return !j || may_begin(j);
}

/* ---- what is next ---- */

/* A server may turn out to ignore Range after pieces were put aside. */
static bool read_whole(struct blob *b)
{
	if (!b->whole && b->stream->d->ignores_range[b->endpoint])
		blob_make_whole(b);
	return b->whole;
}

static struct job *due_retry(struct stream *s, double now)
{
	struct job *j = TAILQ_FIRST(&s->retry);

	while (j) {
		if (read_whole(j->blob)) /* took it off the list, and more */
			j = TAILQ_FIRST(&s->retry);
		else if (j->due <= now)
			return j;
		else
			j = TAILQ_NEXT(j, entry);
	}
	return NULL;
}

static struct job *at_frontier(struct stream *s)
{
	while (s->frontier < s->n) {
		struct job *j = &s->jobs[s->frontier];

		if (read_whole(j->blob))
			s->frontier = j->run_end;
		else if (j->state != JOB_WANTED)
			s->frontier++;
		else
			return j;
	}
	return NULL;
}

static struct job *first_wanted(struct blob *b)
{
	struct job *j = &b->stream->jobs[b->first];

	while (j->blob != b || j->state != JOB_WANTED)
		j++;
	return j;
}

/* In order, one blob at a time: the pieces of a later one would fill the memory first. */
static struct blob *due_whole(struct stream *s, double now)
{
	struct blob *b;

	if (s->ordered && s->whole_lanes > 0)
		return NULL;
	TAILQ_FOREACH (b, &s->wholes, entry) {
		if (b->lane || b->wanted == 0)
			continue;
		if (b->due <= now)
			return may_begin(first_wanted(b)) ? b : NULL;
		if (s->ordered)
			return NULL;
	}
	return NULL;
}

static bool stream_pick(struct stream *s, double now, struct work *w)
{
	struct job *next = at_frontier(s), *again = due_retry(s, now);

	*w = (struct work){0};
	if (!again && (w->whole = due_whole(s, now))) {
		undelay(s->d, &w->whole->due);
		return true;
	}
	w->job = again ? again : next;
	if (!w->job || !job_take(w->job))
		return false;
	if (w->job == next)
		s->frontier++;
	w->run_end = claim(w->job);
	return true;
}

bool queue_pick(struct download *d, double now, struct work *w)
{
	struct stream *s;

	TAILQ_FOREACH (s, &d->streams, entry)
		if (!over(s) && stream_pick(s, now, w)) {
			TAILQ_REMOVE(&d->streams, s, entry);
			TAILQ_INSERT_TAIL(&d->streams, s, entry);
			return true;
		}
	return false;
}

static void look_at(double due, double now, double *first, unsigned *n)
{
	if (due <= now)
		return;
	++*n;
	if (due < *first)
		*first = due;
}

unsigned queue_delayed(struct download *d, double now, int max, int *wait)
{
	double first = now + max;
	struct stream *s;
	struct blob *b;
	struct job *j;
	unsigned n = 0;

	if (d->delayed > 0)
		TAILQ_FOREACH (s, &d->streams, entry) {
			TAILQ_FOREACH (j, &s->retry, entry)
				look_at(j->due, now, &first, &n);
			TAILQ_FOREACH (b, &s->wholes, entry)
				look_at(b->due, now, &first, &n);
		}
	*wait = (int)(first - now) + (n > 0);
	return n;
}

/* ---- relief ---- */

static struct lane *paused_lane(struct download *d, const struct stream *s, bool own)
{
	for (unsigned i = 0; i < d->limits.connections; i++) {
		struct lane *l = &d->lanes[i];

		if (l->busy && l->paused && !l->unwanted && (l->stream == s) == own)
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

	if (s->waiters == 0 || over(s) || s->handed == s->n)
		return NULL;
	if (s->ordered) {
		j = &s->jobs[s->handed];
		return j->state == JOB_WANTED && j->due <= now ? j : NULL;
	}
	if (!TAILQ_EMPTY(&s->arrived) || running(d, s) > 0)
		return NULL;
	l = paused_lane(d, s, true);
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

static struct job *victim(struct stream *s, const struct job *j)
{
	struct job *best = NULL;
	struct stream *t;

	if (s->used + buffers_round(j->piece->length) > share(s->d))
		best = last_idle(s, j);
	if (best)
		return best;
	TAILQ_FOREACH (t, &s->d->streams, entry)
		if (!best || t->used > best->stream->used) {
			struct job *last = last_idle(t, j);

			best = last ? last : best;
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
	struct lane *l = j->blob->lane, *other;
	bool changed = false;

	while (!j->buffer.data && !may_take(s, j->piece->length)) {
		struct job *v = victim(s, j);

		if (!v)
			break;
		take_back(v);
		changed = true;
	}
	if (l && l->paused && !l->unwanted && l->cursor > job_index(j)) /* passed it already */
		return l->unwanted = true;
	other = lanes_left || l ? NULL : paused_lane(d, s, false);
	if (other)
		return other->unwanted = true;
	return changed;
}

bool queue_relieve(struct download *d, double now, bool lanes_left)
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
