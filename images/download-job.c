/* The states of pieces and of blobs, and the lists that they are on. The lock is held. */
#include "images/download-own.h"

size_t job_index(const struct job *j)
{
	return (size_t)(j - j->stream->jobs);
}

bool stream_over(const struct stream *s)
{
	return s->failed || s->closing;
}

/* ---- states ---- */

void job_set_state(struct job *j, enum job_state state)
{
	j->blob->wanted += state == JOB_WANTED;
	j->blob->wanted -= j->state == JOB_WANTED;
	j->state = state;
}

void due_clear(struct download *d, double *due)
{
	if (*due > 0)
		d->delayed--;
	*due = 0;
}

static void due_set(struct download *d, double *due, double until)
{
	due_clear(d, due);
	if (until > 0)
		d->delayed++;
	*due = until;
}

void job_unlist(struct job *j)
{
	due_clear(j->stream->d, &j->due);
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

	if (stream_over(s)) {
		job_back(j, 0);
		return;
	}
	job_set_state(j, JOB_ARRIVED);
	TAILQ_INSERT_TAIL(&s->arrived, j, entry);
	if (s->waiters > 0 && (!s->ordered || job_index(j) == s->handed))
		pthread_cond_signal(&s->cond);
}

void job_back(struct job *j, double due)
{
	job_set_state(j, JOB_WANTED);
	if (stream_over(j->stream)) {
		job_drop(j);
		return;
	}
	if (j->blob->whole) /* its next whole lane takes it as it passes */
		return;
	list(j);
	due_set(j->stream->d, &j->due, due);
}

void stream_clear(struct stream *s)
{
	struct blob *b;
	struct job *j;

	while ((j = TAILQ_FIRST(&s->retry))) {
		job_unlist(j);
		job_drop(j);
	}
	while ((j = TAILQ_FIRST(&s->arrived))) {
		TAILQ_REMOVE(&s->arrived, j, entry);
		job_set_state(j, JOB_WANTED);
		job_drop(j);
	}
	TAILQ_FOREACH (b, &s->wholes, entry)
		due_clear(s->d, &b->due);
}

void stream_fail(struct stream *s, const struct err *e)
{
	if (stream_over(s))
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
	job_set_state(j, JOB_OUT);
	s->handed++;
	return j;
}

void job_done(struct job *j)
{
	job_set_state(j, JOB_DONE);
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
			job_unlist(j);
	}
}

void blob_wait(struct blob *b, double due)
{
	if (b->whole && !stream_over(b->stream))
		due_set(b->stream->d, &b->due, due);
}

static void make_ranged(struct blob *b)
{
	struct stream *s = b->stream;

	b->whole = false;
	due_clear(s->d, &b->due);
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
