/* What is begun next. The lock is held. */
#include "images/download-own.h"

enum { RUN_MAX = 16 << 20 };

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
			job_unlist(next);
		else if (i < s->frontier) /* another lane's */
			break;
		if (s->frontier == i)
			s->frontier++;
	}
	return i;
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
		else if (j->due <= now && job_may_begin(j))
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

static bool due_and_free(const struct blob *b, double now)
{
	return b->whole && !b->lane && b->wanted > 0 && b->due <= now;
}

/* In order: of the first blob whose turn it is. */
static struct job *due_whole_in_order(struct stream *s, double now)
{
	for (size_t i = s->handed; i < s->n; i++) {
		struct job *j = &s->jobs[i];

		if (j->state != JOB_WANTED)
			continue;
		if (due_and_free(j->blob, now))
			return j;
		if (!j->buffer.data) /* none behind it may begin */
			break;
	}
	return NULL;
}

/* A piece of a blob that is to be read whole. */
static struct job *due_whole(struct stream *s, double now)
{
	struct blob *b;

	if (s->ordered)
		return due_whole_in_order(s, now);
	TAILQ_FOREACH (b, &s->wholes, entry)
		if (due_and_free(b, now))
			return first_wanted(b);
	return NULL;
}

static bool begin(struct stream *s, struct job *j, struct work *w)
{
	struct blob *b = j->blob;

	*w = (struct work){0};
	if (b->whole) {
		if (!job_may_begin(j))
			return false;
		due_clear(s->d, &b->due);
		w->whole = b;
		return true;
	}
	if (!job_take(j))
		return false;
	if (job_index(j) == s->frontier)
		s->frontier++;
	w->job = j;
	w->run_end = claim(j);
	return true;
}

static void put_in(struct job *v[3], size_t *n, struct job *j)
{
	size_t i = *n;

	if (!j)
		return;
	for (; i > 0 && v[i - 1] > j; i--)
		v[i] = v[i - 1];
	v[i] = j;
	++*n;
}

/* What comes first in the stream comes first. */
static bool stream_pick(struct stream *s, double now, struct work *w)
{
	struct job *next = at_frontier(s), *again = due_retry(s, now), *v[3];
	size_t n = 0;

	put_in(v, &n, again);
	put_in(v, &n, next);
	put_in(v, &n, due_whole(s, now));
	for (size_t i = 0; i < n; i++) {
		if (begin(s, v[i], w))
			return true;
	}
	return false;
}

bool queue_pick(struct download *d, double now, struct work *w)
{
	struct stream *s;

	TAILQ_FOREACH (s, &d->streams, entry)
		if (!stream_over(s) && stream_pick(s, now, w)) {
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
