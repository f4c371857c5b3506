/* One transfer: a single range of a blob into a piece's buffer, or a whole blob from which pieces
 * are cut as it passes. Nothing of an answer is believed before its head was compared with what was
 * asked. Source: RFC 9110 14.4, 15.3.7. */
#include "images/download-own.h"

#include <inttypes.h>

#include "base/str.h"
#include "base/sys.h"

enum {
	CURL_BUFFER = 512 << 10,    /* libcurl's, per connection: few system calls for much data */
	DISCARD_MAX = 64 << 10,     /* of a body that is no data (an error document) */
	PROGRESS_BYTES = 256 << 10, /* so many new bytes make a try count as a first one */
	BROKEN_TRIES = 3,           /* answers that are not what was asked for, on one endpoint */
	BROKEN_WAIT_MS = 100,       /* doubled with every try */
};

/* ---- the answer's head ---- */

static int broken(struct lane *l, bool hopeless)
{
	l->broken = true;
	l->hopeless = hopeless;
	return -1;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct lane *l = ctx;

	n *= size;
	if (n >= 5 && memcmp(data, "HTTP/", 5) == 0) /* of every answer, redirects included */
		l->has_range = 0;
	else if (l->has_range == 0)
		l->has_range = range_header(&l->range, data, n);
	return n;
}

static int check_total(struct lane *l, uint64_t total)
{
	if (total == l->blob->size)
		return 0;
	err_set(&l->e, ERR_CORRUPT,
		"the answer says that the blob has %" PRIu64 " bytes, its descriptor says %" PRIu64,
		total, l->blob->size);
	return broken(l, true);
}

/* A part of what was asked for is allowed, if it begins there: the rest is asked for next. */
static int accept_range(struct lane *l, curl_off_t length)
{
	const struct range *r = &l->range;
	char found[RANGE_TEXT] = "none that can be read", want[RANGE_TEXT];

	if (l->has_range <= 0 || !r->satisfied || r->first != l->first || r->last >= l->end) {
		if (l->has_range > 0)
			range_print(r, found);
		err_set(&l->e, ERR_NETWORK, "asked for bytes %s, answered with Content-Range %s",
			range_ask(l->first, l->end - 1, want), found);
		return broken(l, false);
	}
	if (r->has_total && check_total(l, r->total) < 0)
		return -1;
	if (length >= 0 && (uint64_t)length != r->last - r->first + 1) {
		err_set(&l->e, ERR_NETWORK,
			"Content-Length %" CURL_FORMAT_CURL_OFF_T " does not fit Content-Range %s",
			length, range_print(r, found));
		return broken(l, false);
	}
	l->short_range = r->last + 1 < l->end;
	l->end = r->last + 1;
	return 0;
}

/* Make this lane, which has a whole blob coming though it asked for a piece of it, the one that
 * cuts the blob. When there is one already, only give up. */
static int become_whole(struct lane *l)
{
	struct blob *b = l->blob;
	struct stream *s = l->stream;
	struct job *j = l->job;

	blob_make_whole(b);
	if (b->lane || (s->ordered && s->whole_lanes > 0) || j->lanes > 1) {
		l->redo = true;
		return -1;
	}
	l->job = NULL;
	j->lanes = 0;
	job_back(j, 0);
	b->lane = l;
	b->tries++;
	s->whole_lanes++;
	l->whole = true;
	l->first = l->pos = 0;
	l->end = b->size;
	l->cursor = b->first;
	return 0;
}

static int accept_whole(struct lane *l, curl_off_t length)
{
	struct download *d = l->d;
	int rc = 0;

	if (length >= 0 && check_total(l, (uint64_t)length) < 0)
		return -1;
	if (!l->ranged)
		return 0;
	pthread_mutex_lock(&d->lock);
	d->ignores_range[l->endpoint] = true;
	rc = become_whole(l);
	pthread_mutex_unlock(&d->lock);
	return rc;
}

static int accept_answer(struct lane *l)
{
	curl_off_t length = -1;
	long status = 0;

	l->accepted = true;
	curl_easy_getinfo(l->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(l->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	if (status == 200)
		return accept_whole(l, length);
	if (status == 206 && l->ranged)
		return accept_range(l, length);
	l->discard = true; /* registry_judge() knows what it means */
	return 0;
}

/* ---- the body ---- */

static int too_long(struct lane *l)
{
	err_set(&l->e, ERR_CORRUPT, "the answer goes on behind byte %" PRIu64 ", its end", l->end);
	return broken(l, false);
}

static void fill(struct lane *l, const char *data, size_t n)
{
	struct job *j = l->job;
	uint64_t at = l->pos - j->piece->offset;

	memcpy(j->buffer.data + at, data, n);
	l->pos += n;
	if (at + n > j->have)
		j->have = (uint32_t)(at + n);
}

static size_t range_data(struct lane *l, const char *data, size_t n)
{
	if (n > l->end - l->pos)
		return too_long(l), 0;
	fill(l, data, n);
	return n;
}

enum step { STEP_GO, STEP_PAUSE, STEP_SATED };

/* The piece that the byte at pos belongs to, or the next one behind it; its memory is taken when
 * its first byte is there. */
static enum step whole_piece(struct lane *l, size_t n)
{
	struct job *j;
	enum step step = STEP_GO;

	pthread_mutex_lock(&l->d->lock);
	j = lane_next_job(l);
	if (!j)
		step = STEP_SATED;
	else if (j->piece->offset - l->pos >= n)
		l->pos += n; /* in a gap */
	else if (!job_take(j))
		step = STEP_PAUSE;
	else
		l->job = j;
	pthread_mutex_unlock(&l->d->lock);
	if (l->job) {
		l->job->have = l->job->mark = 0;
		l->job->lanes = 1;
	}
	return step;
}

static void whole_piece_done(struct lane *l)
{
	struct job *j = l->job;

	l->job = NULL;
	pthread_mutex_lock(&l->d->lock);
	j->lanes = 0;
	job_arrived(j);
	l->sated = !lane_next_job(l) && l->pos < l->end;
	pthread_mutex_unlock(&l->d->lock);
}

/* What whole_data() does with the next of n bytes; how many it used. */
static size_t whole_step(struct lane *l, const char *data, size_t n, enum step *step)
{
	uint64_t from = l->pos, end;

	if (!l->job) {
		*step = whole_piece(l, n);
		if (*step != STEP_GO || !l->job)
			return (size_t)(l->pos - from);
		n -= (size_t)(l->job->piece->offset - l->pos);
		data += l->job->piece->offset - l->pos;
		l->pos = l->job->piece->offset;
	}
	end = l->job->piece->offset + l->job->piece->length;
	fill(l, data, n < end - l->pos ? n : (size_t)(end - l->pos));
	if (l->pos == end)
		whole_piece_done(l);
	return (size_t)(l->pos - from);
}

static size_t whole_data(struct lane *l, const char *data, size_t n)
{
	enum step step = STEP_GO;
	size_t at = l->skip;

	l->skip = 0;
	if (n - at > l->end - l->pos)
		return too_long(l), 0;
	while (at < n && !l->sated && step == STEP_GO)
		at += whole_step(l, data + at, n - at, &step);
	if (step == STEP_PAUSE) { /* all of data comes again */
		l->skip = at;
		l->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	l->sated = l->sated || step == STEP_SATED;
	return l->sated ? 0 : n;
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct lane *l = ctx;
	uint64_t from;
	size_t used;

	n *= size;
	if (l->sated || l->broken || l->redo || l->unwanted ||
		(!l->accepted && accept_answer(l) < 0))
		return 0;
	from = l->pos;
	if (l->discard) {
		l->discarded += n;
		used = l->discarded > DISCARD_MAX ? 0 : n;
		atomic_fetch_add_explicit(&l->d->received, n, memory_order_relaxed);
		return used;
	}
	used = l->whole ? whole_data(l, data, n) : range_data(l, data, n);
	atomic_fetch_add_explicit(&l->d->received, l->pos - from, memory_order_relaxed);
	return used;
}

/* ---- the end ---- */

static void let_go(struct lane *l)
{
	if (l->added)
		curl_multi_remove_handle(l->d->multi, l->curl);
	if (l->aimed)
		registry_aim_fini(&l->aim);
	l->added = l->aimed = false;
}

/* The piece is here: who else fetches it is in vain. Lock held. */
static void win(struct lane *l)
{
	for (unsigned i = 0; i < l->d->limits.connections; i++) {
		struct lane *other = &l->d->lanes[i];

		if (other == l || !other->busy || other->job != l->job)
			continue;
		other->unwanted = true;
		other->job = NULL;
		l->job->lanes--;
	}
}

/* The lane is idle from here on. Returns the piece that is without a lane now. Lock held. */
static struct job *detach(struct lane *l)
{
	struct job *j = l->job;

	l->busy = l->paused = false;
	l->job = NULL;
	l->stream->lanes--;
	if (l->whole) {
		l->blob->lane = NULL;
		l->stream->whole_lanes--;
	}
	if (j && --j->lanes > 0)
		return NULL;
	return j;
}

static void describe(const struct lane *l, struct err *e)
{
	char text[DIGEST_TEXT + 1], range[RANGE_TEXT];

	digest_text(l->blob->digest, text);
	if (l->whole)
		err_ctx(e, "blob %s", text);
	else
		err_ctx(e, "blob %s, bytes %s", text, range_ask(l->first, l->end - 1, range));
}

/* How a try ended. e: unless v is OK. */
static void conclude(struct lane *l, enum registry_verdict v, unsigned wait_ms, struct err *e)
{
	struct download *d = l->d;
	struct blob *b = l->blob;
	struct stream *s = l->stream;
	double due = wait_ms > 0 ? sys_now_ms() + wait_ms : 0;
	struct job *j;

	if (v != REGISTRY_OK)
		describe(l, e);
	pthread_mutex_lock(&d->lock);
	if (v == REGISTRY_OK && !l->whole)
		win(l);
	j = detach(l);
	if (v == REGISTRY_NEXT && (j || l->whole) && !blob_next_endpoint(b, l->endpoint + 1))
		v = REGISTRY_FAILED;
	if (j && v == REGISTRY_OK)
		job_arrived(j);
	else if (j)
		job_back(j, v == REGISTRY_AGAIN ? due : 0);
	if (v == REGISTRY_FAILED && (j || l->whole))
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
	if (l->whole)
		return l->sated || l->pos == l->blob->size;
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

	if (!l->whole && l->job->lanes == 1)
		l->job->have = (uint32_t)(l->first - l->job->piece->offset);
	err_ctx(&l->e, "%s", registry_name(l->d->r));
	conclude(
		l, more ? REGISTRY_AGAIN : REGISTRY_NEXT, (unsigned)BROKEN_WAIT_MS << tries, &l->e);
}

static void note_time(struct lane *l)
{
	struct download *d = l->d;

	if (!l->whole && l->first == l->job->piece->offset)
		d->times[d->ntimes++ % DOWNLOAD_TIMES] = sys_now_ms() - l->started;
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
		(void)!accept_answer(l); /* an empty body */
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
		note_time(l);
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
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, l);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
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

	l->started = l->moved = sys_now_ms();
	l->moved_pos = l->pos;
	curl_easy_reset(l->curl); /* keeps connections and names: the multi handle has them */
	if (registry_aim(d->r, l->endpoint, l->blob->digest, l->curl, &l->aim, &e) < 0) {
		conclude(l, REGISTRY_FAILED, 0, &e);
		return;
	}
	l->aimed = true;
	l->endpoint = l->aim.endpoint; /* those that are down are passed over */
	count_try(l);
	set_options(l);
	if (curl_multi_add_handle(d->multi, l->curl) != CURLM_OK) {
		let_go(l);
		err_set(&e, ERR_SYSTEM, "no memory for a request");
		conclude(l, REGISTRY_FAILED, 0, &e);
		return;
	}
	l->added = true;
}

static void reset(struct lane *l, struct blob *b)
{
	*l = (struct lane){.d = l->d,
		.curl = l->curl,
		.busy = true,
		.blob = b,
		.stream = b->stream,
		.endpoint = b->endpoint};
}

void lane_start_range(struct lane *l, struct job *j)
{
	const struct piece *p = j->piece;

	reset(l, j->blob);
	l->job = j;
	l->first = l->pos = p->offset + j->have;
	l->end = p->offset + p->length;
	/* a server that ignores Range does no harm where all is wanted */
	l->ranged = l->first > 0 || l->end < l->blob->size;
	pthread_mutex_lock(&l->d->lock);
	j->lanes++;
	l->stream->lanes++;
	pthread_mutex_unlock(&l->d->lock);
	go(l);
}

void lane_start_whole(struct lane *l, struct blob *b)
{
	reset(l, b);
	l->whole = true;
	l->cursor = b->first;
	l->end = b->size;
	pthread_mutex_lock(&l->d->lock);
	b->lane = l;
	b->stream->lanes++;
	b->stream->whole_lanes++;
	pthread_mutex_unlock(&l->d->lock);
	go(l);
}
