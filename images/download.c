#include "images/download-own.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>

const struct download_limits download_defaults = {
	.connections = 16,
	.memory = 48 << 20,
	.stall_s = 20,
	.stall_bytes = 1 << 10,
};

/* ---- the engine ---- */

static int start_lanes(struct download *d, struct err *e)
{
	d->lanes = mem_array(d->limits.connections, sizeof(*d->lanes));
	for (unsigned i = 0; i < d->limits.connections; i++)
		if (lane_init(&d->lanes[i], d, e) < 0)
			return -1;
	d->multi = curl_multi_init();
	if (!d->multi)
		return err_set(e, ERR_SYSTEM, "no memory for connections");
	/* an idle connection for each, and for each host behind a redirect */
	curl_multi_setopt(d->multi, CURLMOPT_MAXCONNECTS, (long)d->limits.connections * 2);
	curl_multi_setopt(d->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	return 0;
}

static int start_thread(struct download *d, struct err *e)
{
	sigset_t all, old;

	sigfillset(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	errno = pthread_create(&d->thread, NULL, download_network, d);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return errno ? err_sys(e, "start the network thread") : 0;
}

static void destroy(struct download *d)
{
	for (unsigned i = 0; i < d->limits.connections; i++)
		lane_fini(&d->lanes[i]);
	if (d->multi)
		curl_multi_cleanup(d->multi);
	buffers_fini(&d->buffers);
	pthread_mutex_destroy(&d->lock);
	free(d->lanes);
	free(d->ignores_range);
	free(d);
}

struct download *download_new(struct registry *r, const struct download_limits *l, struct err *e)
{
	struct download *d = mem_alloc(sizeof(*d));
	size_t memory = buffers_round(PIECE_MAX);

	curl_global_init(CURL_GLOBAL_DEFAULT);
	d->r = r;
	d->limits = l ? *l : download_defaults;
	if (d->limits.connections == 0)
		d->limits.connections = 1;
	d->endpoints = (unsigned)registry_endpoints(r);
	d->ignores_range = mem_array(d->endpoints, sizeof(*d->ignores_range));
	TAILQ_INIT(&d->streams);
	pthread_mutex_init(&d->lock, NULL);
	buffers_init(&d->buffers, d->limits.memory > memory ? d->limits.memory : memory);
	if (start_lanes(d, e) < 0 || start_thread(d, e) < 0) {
		destroy(d);
		return NULL;
	}
	return d;
}

void download_free(struct download *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	assert(TAILQ_EMPTY(&d->streams));
	d->stop = true;
	pthread_mutex_unlock(&d->lock);
	curl_multi_wakeup(d->multi);
	pthread_join(d->thread, NULL);
	destroy(d);
}

uint64_t download_received(const struct download *d)
{
	return atomic_load_explicit(&d->received, memory_order_relaxed);
}

/* ---- streams ---- */

static struct blob *blob_of(struct stream *s, const struct piece *p, size_t index)
{
	struct blob *b;

	for (size_t i = s->nblobs; i-- > 0;) /* most often the last one */
		if (digest_eq(s->blobs[i].digest, p->blob))
			return &s->blobs[i];
	b = &s->blobs[s->nblobs++];
	*b = (struct blob){.stream = s, .digest = p->blob, .size = p->blob_size, .first = index};
	return b;
}

static int check_piece(const struct piece *p, const struct blob *b, struct err *e)
{
	char text[DIGEST_TEXT + 1];

	if (p->length > 0 && p->length <= PIECE_MAX && p->blob_size == b->size &&
		p->length <= p->blob_size && p->offset <= p->blob_size - p->length)
		return 0;
	return err_set(e, ERR_CORRUPT,
		"blob %s has %" PRIu64 " bytes, and none at %" PRIu64 " with %" PRIu32 " more",
		digest_text(p->blob, text), b->size, p->offset, p->length);
}

static void add_jobs(struct stream *s, struct piece *v)
{
	struct err e;

	s->jobs = mem_array(s->n, sizeof(*s->jobs));
	s->blobs = mem_array(s->n, sizeof(*s->blobs));
	for (size_t i = 0; i < s->n; i++) {
		struct job *j = &s->jobs[i];

		*j = (struct job){.piece = &v[i], .stream = s, .blob = blob_of(s, &v[i], i)};
		j->blob->wanted++;
		s->hunger += v[i].length;
		v[i].own = j;
		v[i].data = NULL;
		if (!s->failed && check_piece(&v[i], j->blob, &e) < 0)
			stream_fail(s, &e);
	}
	for (size_t i = s->n; i-- > 0;) {
		bool more = i + 1 < s->n && s->jobs[i + 1].blob == s->jobs[i].blob;

		s->jobs[i].run_end = more ? s->jobs[i + 1].run_end : i + 1;
	}
}

struct stream *stream_open(struct download *d, struct piece *v, size_t n, bool ordered)
{
	struct stream *s = mem_alloc(sizeof(*s));

	*s = (struct stream){.d = d, .n = n, .ordered = ordered};
	TAILQ_INIT(&s->retry);
	TAILQ_INIT(&s->wholes);
	TAILQ_INIT(&s->arrived);
	pthread_cond_init(&s->cond, NULL);
	add_jobs(s, v);
	pthread_mutex_lock(&d->lock);
	TAILQ_INSERT_HEAD(&d->streams, s, entry);
	pthread_mutex_unlock(&d->lock);
	curl_multi_wakeup(d->multi);
	return s;
}

/* Lock held: 1, 0, -1 as stream_next(); 2: not yet. */
static int try_next(struct stream *s, struct piece **p, struct err *e)
{
	struct job *j;

	if (s->failed) {
		if (e)
			*e = s->e;
		return -1;
	}
	if (s->handed == s->n)
		return 0;
	j = job_hand_out(s);
	if (!j)
		return 2;
	j->piece->data = j->buffer.data;
	*p = j->piece;
	/* others that wait: the next may be here already, or there is none any more */
	if (s->waiters > 0 && s->handed == s->n)
		pthread_cond_broadcast(&s->cond);
	else if (s->waiters > 0 && s->ordered && s->jobs[s->handed].state == JOB_ARRIVED)
		pthread_cond_signal(&s->cond);
	return 1;
}

int stream_next(struct stream *s, struct piece **p, struct err *e)
{
	struct download *d = s->d;
	int rc;

	pthread_mutex_lock(&d->lock);
	while ((rc = try_next(s, p, e)) == 2) {
		s->waiters++;
		if (d->hungry) /* it may be this stream whose turn it is, now that it waits */
			curl_multi_wakeup(d->multi);
		pthread_cond_wait(&s->cond, &d->lock);
		s->waiters--;
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

void stream_release(struct stream *s, struct piece *p)
{
	struct download *d = s->d;
	struct job *j = p->own;
	bool hungry;

	pthread_mutex_lock(&d->lock);
	assert(j->stream == s && j->state == JOB_OUT);
	p->data = NULL;
	job_done(j);
	hungry = d->hungry;
	pthread_mutex_unlock(&d->lock);
	if (hungry)
		curl_multi_wakeup(d->multi);
}

void stream_close(struct stream *s)
{
	struct download *d;

	if (!s)
		return;
	d = s->d;
	pthread_mutex_lock(&d->lock);
	s->closing = true;
	stream_clear(s);
	curl_multi_wakeup(d->multi);
	while (!s->closed)
		pthread_cond_wait(&s->cond, &d->lock);
	for (size_t i = 0; i < s->n; i++)
		job_drop(&s->jobs[i]);
	pthread_mutex_unlock(&d->lock);
	curl_multi_wakeup(d->multi); /* others may have the memory now */
	pthread_cond_destroy(&s->cond);
	free(s->jobs);
	free(s->blobs);
	free(s);
}
