/* The network thread: starts, runs and ends transfers. */
#include "images/download-own.h"

#include <time.h>

#include "base/sys.h"

enum {
	POLL_MS = 1000,        /* the longest sleep */
	NAP_US = 1000,         /* lets data gather on a link that is slower than we are */
	NAP_BELOW = 256 << 10, /*   when a turn moved less than this */
	OPEN_FIRST = 4,        /* transfers at once, to begin with ... */
	OPEN_EVERY_MS = 100,   /* ... and one more so often, as long as somebody waits for data */
	HEDGE_POLL_MS = 200,   /* between looks for stragglers */
	HEDGE_STILL_MS = 2000, /* without a byte: asked for again */
	HEDGE_YOUNG_MS = 500,  /* too early to tell */
	HEDGE_SLOWER = 3,      /* times the median of the pieces before */
	HEDGE_SAMPLES = 4,     /* before there is a median */
	HEDGE_SHARE = 20,      /* at most a 20th of the bytes is fetched twice */
};

static struct lane *idle_lane(struct download *d, unsigned *n)
{
	struct lane *idle = NULL;

	*n = 0;
	for (unsigned i = d->limits.connections; i-- > 0;)
		if (!d->lanes[i].busy) {
			idle = &d->lanes[i];
			++*n;
		}
	return idle;
}

/* ---- stragglers ---- */

static double median(const struct download *d)
{
	size_t n = d->ntimes < DOWNLOAD_TIMES ? d->ntimes : DOWNLOAD_TIMES;
	double v[DOWNLOAD_TIMES];

	for (size_t i = 0; i < n; i++) {
		size_t k = i;

		for (; k > 0 && v[k - 1] > d->times[i]; k--)
			v[k] = v[k - 1];
		v[k] = d->times[i];
	}
	return n >= HEDGE_SAMPLES ? v[n / 2] : 0;
}

static bool slow(const struct lane *l, double now, double typical)
{
	uint64_t end = l->job->piece->offset + l->job->piece->length;
	double took = now - l->started;
	double all = (double)(end - l->from), got = (double)(l->pos - l->from);

	if (typical <= 0 || took < HEDGE_YOUNG_MS || took < typical)
		return false;
	return all * took > HEDGE_SLOWER * typical * got && (all - got) * took > typical * got;
}

/* A lane that does not get on, or NULL. What it would do later is for others from now on. */
static struct lane *straggler(struct download *d, double now)
{
	double typical = median(d);

	for (unsigned i = 0; i < d->limits.connections; i++) {
		struct lane *l = &d->lanes[i];
		bool still;

		if (!l->busy || l->unwanted || l->whole || l->paused)
			continue;
		if (l->pos != l->moved_pos) {
			l->moved_pos = l->pos;
			l->moved = now;
		}
		still = now - l->moved >= HEDGE_STILL_MS;
		if (!l->job)
			l->unwanted = still;
		else if (!l->job->hedged && (still || slow(l, now, typical)))
			return l;
	}
	return NULL;
}

/* Nothing more can be begun: who is free helps the slow. Both fill one buffer, each byte of which
 * is the same whoever brings it; the first at the end has won. */
static void hedge(struct download *d, struct lane *idle, double now)
{
	struct lane *l = straggler(d, now);
	uint64_t left;
	struct work w;

	if (!l)
		return;
	left = l->job->piece->length - l->job->have;
	if (d->hedged + left > download_received(d) / HEDGE_SHARE + 2 * PIECE_MAX)
		return;
	l->job->hedged = true;
	d->hedged += left;
	pthread_mutex_lock(&d->lock);
	lane_give_back(l);
	pthread_mutex_unlock(&d->lock);
	w = (struct work){.job = l->job, .run_end = job_index(l->job) + 1};
	lane_start(idle, &w);
}

/* ---- one turn ---- */

/* End what nobody wants; say so to those who close streams. */
static void sweep(struct download *d)
{
	struct stream *s, *next;

	pthread_mutex_lock(&d->lock);
	for (unsigned i = 0; i < d->limits.connections; i++) {
		struct lane *l = &d->lanes[i];

		if (l->busy && (l->stream->failed || l->stream->closing || d->stop))
			l->unwanted = true;
	}
	pthread_mutex_unlock(&d->lock);
	for (unsigned i = 0; i < d->limits.connections; i++)
		if (d->lanes[i].busy && d->lanes[i].unwanted)
			lane_cancel(&d->lanes[i]);
	pthread_mutex_lock(&d->lock);
	for (s = TAILQ_FIRST(&d->streams); s; s = next) {
		next = TAILQ_NEXT(s, entry);
		if (!s->closing || s->lanes > 0)
			continue;
		TAILQ_REMOVE(&d->streams, s, entry);
		s->closed = true;
		pthread_cond_broadcast(&s->cond);
	}
	pthread_mutex_unlock(&d->lock);
}

static bool start_one(struct download *d, struct lane *idle, double now)
{
	struct work w;
	bool found;

	pthread_mutex_lock(&d->lock);
	found = queue_pick(d, now, &w);
	pthread_mutex_unlock(&d->lock);
	if (found)
		lane_start(idle, &w);
	return found;
}

/* Lanes whose next piece has memory now. */
static void resume(struct download *d)
{
	for (unsigned i = 0; i < d->limits.connections; i++) {
		struct lane *l = &d->lanes[i];
		CURLcode code;
		bool go;

		if (!l->busy || !l->paused || l->unwanted)
			continue;
		pthread_mutex_lock(&d->lock);
		go = lane_may_go_on(l);
		pthread_mutex_unlock(&d->lock);
		if (!go)
			continue;
		l->paused = false;
		code = curl_easy_pause(l->curl, CURLPAUSE_CONT); /* may call on_data() */
		if (code != CURLE_OK)
			lane_end(l, code);
	}
}

/* Does a consumer wait for data that have not come? */
static bool starving(const struct download *d)
{
	const struct stream *s;

	TAILQ_FOREACH (s, &d->streams, entry)
		if (s->waiters > 0 && s->handed < s->n && TAILQ_EMPTY(&s->arrived))
			return true;
	return false;
}

/* How many transfers may run at once. A far link needs many to be full; near one, where consumers
 * are the slower ones, more of them only cost the server: each opens the blob, and reads ahead for
 * itself. */
static unsigned open_limit(struct download *d, double now)
{
	if (d->open < OPEN_FIRST)
		d->open = OPEN_FIRST;
	if (d->open < d->limits.connections && now - d->opened >= OPEN_EVERY_MS && starving(d)) {
		d->open++;
		d->opened = now;
	}
	return d->open < d->limits.connections ? d->open : d->limits.connections;
}

/* Start what can be started. Returns how long the network may be waited for. */
static int schedule(struct download *d)
{
	double now = sys_now_ms();
	unsigned n, delayed, open;
	struct lane *idle;
	bool relieved;
	int wait;

	pthread_mutex_lock(&d->lock);
	d->hungry = false;
	open = open_limit(d, now);
	delayed = queue_delayed(d, now, POLL_MS, &wait);
	pthread_mutex_unlock(&d->lock);
	resume(d);
	while ((idle = idle_lane(d, &n)) && n > delayed && d->limits.connections - n < open &&
		start_one(d, idle, now))
		;
	idle = idle_lane(d, &n);
	pthread_mutex_lock(&d->lock);
	relieved = memory_relieve(d, now, n > delayed);
	queue_delayed(d, now, idle && n < d->limits.connections ? HEDGE_POLL_MS : POLL_MS, &wait);
	pthread_mutex_unlock(&d->lock);
	if (idle && now >= d->next_hedge) {
		d->next_hedge = now + HEDGE_POLL_MS;
		hedge(d, idle, now);
	}
	return relieved ? 0 : wait;
}

static bool reap(struct download *d)
{
	bool any = false;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(d->multi, &left))) {
		CURLcode code = m->data.result; /* m is gone when the handle is removed */
		char *lane = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &lane);
		lane_end((struct lane *)(void *)lane, code);
		any = true;
	}
	return any;
}

/* One read for each few packets would cost more than the data themselves. Only in the middle of
 * bodies: requests and answers are not held up. */
static void nap(uint64_t moved)
{
	const struct timespec t = {.tv_nsec = NAP_US * 1000};

	if (moved > 0 && moved < NAP_BELOW)
		nanosleep(&t, NULL);
}

static void turn(struct download *d, int wait)
{
	uint64_t before = download_received(d);
	int running;

	curl_multi_perform(d->multi, &running);
	if (reap(d))
		return;
	nap(download_received(d) - before);
	curl_multi_poll(d->multi, NULL, 0, wait, NULL);
}

void *download_network(void *arg)
{
	struct download *d = arg;
	bool stop = false;

	while (!stop) {
		sweep(d);
		turn(d, schedule(d));
		pthread_mutex_lock(&d->lock);
		stop = d->stop;
		pthread_mutex_unlock(&d->lock);
	}
	sweep(d);
	return NULL;
}
