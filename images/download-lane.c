/* A transfer's beginning, and what its end means. */
#include "images/download-own.h"

#include "base/str.h"
#include "base/sys.h"

enum {
	CURL_BUFFER = 512 << 10,    /* libcurl's, per connection: few system calls for much data */
	PROGRESS_BYTES = 256 << 10, /* so many new bytes make a try count as a first one */
	BROKEN_TRIES = 3,           /* answers that are not what was asked for, on one endpoint */
	BROKEN_WAIT_MS = 100,       /* doubled with every try */
};

/* ---- the end ---- */

static void let_go(struct lane *l)
{
	if (l->added)
		curl_multi_remove_handle(l->d->multi, l->curl);
	if (l->aimed)
		registry_aim_fini(&l->aim);
	l->added = l->aimed = false;
}

/* The lane is idle from here on. Returns the piece that is without a lane now. Lock held. */
static struct job *detach(struct lane *l)
{
	struct job *j = l->job;

	lane_give_back(l);
	l->busy = l->paused = false;
	l->job = NULL;
	l->stream->lanes--;
	if (l->whole)
		l->blob->lane = NULL;
	if (j && --j->lanes > 0)
		return NULL;
	return j;
}

static void describe(const struct lane *l, struct err *e)
{
	char range[RANGE_TEXT];

	if (!l->whole) /* which blob of whom is said already */
		err_ctx(e, "bytes %s", range_ask(l->first, l->end - 1, range));
}

/* How a try ended. e: unless v is OK. */
static void conclude(struct lane *l, enum registry_verdict v, unsigned wait_ms, struct err *e)
{
	struct download *d = l->d;
	struct blob *b = l->blob;
	struct stream *s = l->stream;
	double due = wait_ms > 0 ? sys_now_ms() + wait_ms : 0;
	struct job *j;
	bool alone; /* else another lane has the same piece */

	if (v != REGISTRY_OK)
		describe(l, e);
	pthread_mutex_lock(&d->lock);
	if (v == REGISTRY_OK && l->job)
		lane_win(l);
	alone = !l->job || l->job->lanes == 1;
	j = detach(l);
	if (v == REGISTRY_NEXT && alone && !blob_next_endpoint(b, l->endpoint + 1))
		v = REGISTRY_FAILED;
	if (j && v == REGISTRY_OK)
		job_arrived(j);
	else if (j)
		job_back(j, v == REGISTRY_AGAIN ? due : 0);
	if (v == REGISTRY_FAILED && alone)
		stream_fail(s, e);
	if (v == REGISTRY_AGAIN && l->whole)
		blob_wait(b, due);
	if (v == REGISTRY_OK && l->whole) { /* what is still wanted is for a new start */
		b->tries = 0;
		b->best = b->mark = 0;
	}
	pthread_mutex_unlock(&d->lock);
}

void lane_cancel(struct lane *l)
{
	struct job *j;

	let_go(l);
	pthread_mutex_lock(&l->d->lock);
	j = detach(l);
	if (j)
		job_back(j, 0);
	pthread_mutex_unlock(&l->d->lock);
}

static bool complete(const struct lane *l)
{
	if (l->sated || !l->job)
		return l->sated || l->pos == l->end;
	return l->pos == l->job->piece->offset + l->job->piece->length;
}

/* Tries count from the last good progress on: a big piece over a bad link gets there in the end. */
static unsigned count_tries(struct lane *l)
{
	struct blob *b = l->blob;
	struct job *j = l->job;

	if (l->whole) {
		b->best = l->pos > b->best ? l->pos : b->best;
		if (b->best - b->mark >= PROGRESS_BYTES) {
			b->mark = b->best;
			b->tries = 1;
		}
		return b->tries;
	}
	if (!j) /* between two pieces */
		return 1;
	if (j->have - j->mark >= PROGRESS_BYTES) {
		j->mark = j->have;
		j->tries = 1;
	}
	return j->tries;
}

/* What of this try may be bad is fetched again. */
static void conclude_broken(struct lane *l, unsigned tries)
{
	bool more = tries < BROKEN_TRIES && !l->hopeless;
	char text[DIGEST_TEXT + 1];

	if (l->job && l->job->lanes == 1)
		l->job->have = (uint32_t)(l->from - l->job->piece->offset);
	err_ctx(&l->e, "%s: blob %s", registry_name(l->d->r), digest_text(l->blob->digest, text));
	conclude(
		l, more ? REGISTRY_AGAIN : REGISTRY_NEXT, (unsigned)BROKEN_WAIT_MS << tries, &l->e);
}

void lane_end(struct lane *l, CURLcode code)
{
	enum registry_verdict v;
	unsigned tries, wait_ms = 0;
	struct err e = {0};
	bool done;

	if (l->unwanted) {
		lane_cancel(l);
		return;
	}
	if (code == CURLE_OK && !l->accepted)
		(void)!lane_accept(l); /* an empty body */
	tries = count_tries(l);
	done = !l->discard && !l->broken && complete(l);
	if (l->redo) {
		let_go(l);
		l->job->tries--;
		conclude(l, REGISTRY_AGAIN, 0, &e);
		return;
	}
	if (l->broken) {
		let_go(l);
		conclude_broken(l, tries);
		return;
	}
	if (done || (l->discard && code == CURLE_WRITE_ERROR)) /* ended by us */
		code = CURLE_OK;
	else if (code == CURLE_OK && !l->discard && !l->short_range)
		code = CURLE_PARTIAL_FILE;
	v = registry_judge(l->d->r, &l->aim, l->blob->digest, l->curl, code, tries, &wait_ms, &e);
	let_go(l);
	if (v == REGISTRY_OK && done) {
		if (l->job)
			lane_note_time(l);
		conclude(l, v, 0, NULL);
	} else if (v == REGISTRY_OK && l->discard) {
		err_set(&l->e, ERR_NETWORK, "an answer without the blob");
		conclude_broken(l, tries);
	} else {
		conclude(l, v == REGISTRY_OK ? REGISTRY_AGAIN : v, wait_ms, &e);
	}
}

/* ---- the beginning ---- */

int lane_init(struct lane *l, struct download *d, struct err *e)
{
	*l = (struct lane){.d = d, .curl = curl_easy_init()};
	return l->curl ? 0 : err_set(e, ERR_SYSTEM, "no memory for a connection");
}

void lane_fini(struct lane *l)
{
	if (l->curl)
		curl_easy_cleanup(l->curl);
	l->curl = NULL;
}

static void set_options(struct lane *l)
{
	char text[RANGE_TEXT];
	CURL *c = l->curl;

	range_ask(l->first, l->end - 1, text);
	curl_easy_setopt(c, CURLOPT_RANGE, l->ranged ? text : NULL);
	curl_easy_setopt(c, CURLOPT_PRIVATE, l);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	/* over one connection of HTTP/2, pieces would share one window and one loss */
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, (long)CURL_BUFFER);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)l->d->limits.stall_s);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)l->d->limits.stall_bytes);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, lane_on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, l);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, lane_on_data);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, l);
}

static void count_try(struct lane *l)
{
	struct job *j = l->job;

	if (l->blob->endpoint < l->endpoint)
		l->blob->endpoint = l->endpoint;
	if (l->whole) {
		l->blob->tries++;
		return;
	}
	if (j->endpoint != l->endpoint)
		j->tries = 0;
	j->endpoint = l->endpoint;
	j->tries++;
}

static void go(struct lane *l)
{
	struct download *d = l->d;
	struct err e = {0};

	curl_easy_reset(l->curl); /* keeps connections and names: the multi handle has them */
	if (registry_aim(d->r, l->endpoint, l->blob->digest, l->curl, &l->aim, &e) < 0) {
		conclude(l, REGISTRY_FAILED, 0, &e);
		return;
	}
	l->aimed = true;
	l->endpoint = l->aim.endpoint; /* those that are down are passed over */
	count_try(l);
	set_options(l);
	lane_begin_piece(l);
	l->moved = l->started;
	l->moved_pos = l->pos;
	if (curl_multi_add_handle(d->multi, l->curl) != CURLM_OK) {
		let_go(l);
		err_set(&e, ERR_SYSTEM, "no memory for a request");
		conclude(l, REGISTRY_FAILED, 0, &e);
		return;
	}
	l->added = true;
}

static void aim_at_run(struct lane *l, struct job *j, size_t run_end)
{
	const struct piece *last = j->stream->jobs[run_end - 1].piece;

	l->job = j;
	l->cursor = job_index(j) + 1;
	l->run_end = run_end;
	l->first = l->pos = j->piece->offset + j->have;
	l->end = last->offset + last->length;
	/* a server that ignores Range does no harm where all is wanted */
	l->ranged = l->first > 0 || l->end < l->blob->size;
}

static void aim_at_whole(struct lane *l)
{
	l->whole = true;
	l->cursor = l->blob->first;
	l->run_end = l->stream->n;
	l->end = l->blob->size;
}

void lane_start(struct lane *l, const struct work *w)
{
	struct blob *b = w->whole ? w->whole : w->job->blob;

	*l = (struct lane){.d = l->d,
		.curl = l->curl,
		.busy = true,
		.blob = b,
		.stream = b->stream,
		.endpoint = b->endpoint};
	if (w->whole)
		aim_at_whole(l);
	else
		aim_at_run(l, w->job, w->run_end);
	pthread_mutex_lock(&l->d->lock);
	l->stream->lanes++;
	if (w->whole)
		b->lane = l;
	else
		l->job->lanes++;
	pthread_mutex_unlock(&l->d->lock);
	go(l);
}
