/* What comes of a transfer: a run of pieces, or a whole blob from which pieces are cut as it
 * passes. Nothing of an answer is believed before its head was compared with what was asked.
 * Source: RFC 9110 14.4, 15.3.7. */
#include "images/download-own.h"

#include <inttypes.h>

#include "base/str.h"
#include "base/sys.h"

enum { DISCARD_MAX = 64 << 10 /* of a body that is no data (an error document) */ };

/* ---- the answer's head ---- */

static int broken(struct lane *l, bool hopeless)
{
	l->broken = true;
	l->hopeless = hopeless;
	return -1;
}

size_t lane_on_header(char *data, size_t size, size_t n, void *ctx)
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
	if (b->lane || j->lanes > 1) {
		l->redo = true;
		return -1;
	}
	lane_give_back(l);
	l->job = NULL;
	j->lanes = 0;
	job_back(j, 0);
	b->lane = l;
	b->tries++;
	l->whole = true;
	l->first = l->pos = 0;
	l->end = b->size;
	l->cursor = b->first;
	l->run_end = s->n;
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

int lane_accept(struct lane *l)
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

/* The piece is here: who else fetches it is in vain. Lock held. */
void lane_win(struct lane *l)
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

void lane_begin_piece(struct lane *l)
{
	l->from = l->pos;
	l->started = sys_now_ms();
}

void lane_note_time(struct lane *l)
{
	struct download *d = l->d;

	if (l->from == l->job->piece->offset)
		d->times[d->ntimes++ % DOWNLOAD_TIMES] = sys_now_ms() - l->started;
}

enum step { STEP_GO, STEP_PAUSE, STEP_SATED };

/* The piece that the byte at pos belongs to, or the next one behind it; its memory is taken when
 * its first byte is there. */
static enum step next_piece(struct lane *l, size_t n)
{
	struct job *j;
	enum step step = STEP_GO;

	pthread_mutex_lock(&l->d->lock);
	j = lane_next_job(l);
	if (!j)
		step = STEP_SATED;
	else if (j->piece->offset - l->pos >= n)
		l->pos += n; /* in a gap; j ends before l->end */
	else if (!job_take(j))
		step = STEP_PAUSE;
	else
		l->job = j;
	pthread_mutex_unlock(&l->d->lock);
	j = l->job;
	if (!j)
		return step;
	j->have = j->mark = 0;
	j->tries = j->lanes = 1;
	j->endpoint = l->endpoint;
	l->pos = j->piece->offset;
	lane_begin_piece(l);
	return step;
}

/* The last piece of a range is not done before the answer's end: it may be too long. */
static void piece_done(struct lane *l)
{
	struct job *j = l->job;

	lane_note_time(l);
	pthread_mutex_lock(&l->d->lock);
	lane_win(l);
	l->job = NULL;
	j->lanes = 0;
	job_arrived(j);
	l->sated = !lane_next_job(l) && l->pos < l->end;
	pthread_mutex_unlock(&l->d->lock);
}

/* Use some of the next n bytes; how many. */
static size_t cut(struct lane *l, const char *data, size_t n, enum step *step)
{
	uint64_t before = l->pos, end;
	size_t at = 0;

	if (!l->job) {
		*step = next_piece(l, n);
		at = (size_t)(l->pos - before);
		if (!l->job)
			return at;
	}
	end = l->job->piece->offset + l->job->piece->length;
	fill(l, data + at, n - at < end - l->pos ? n - at : (size_t)(end - l->pos));
	if (l->pos == end && (l->whole || end < l->end))
		piece_done(l);
	return (size_t)(l->pos - before);
}

static size_t take_data(struct lane *l, const char *data, size_t n)
{
	enum step step = STEP_GO;
	size_t at = l->skip;

	l->skip = 0;
	while (at < n && l->pos < l->end && !l->sated && step == STEP_GO)
		at += cut(l, data + at, n - at, &step);
	if (step == STEP_PAUSE) { /* all of data comes again */
		l->skip = at;
		l->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	l->sated = l->sated || step == STEP_SATED;
	if (!l->sated && at < n)
		return too_long(l), 0;
	return l->sated ? 0 : n;
}

size_t lane_on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct lane *l = ctx;
	uint64_t from;
	size_t used;

	n *= size;
	if (l->sated || l->broken || l->redo || l->unwanted || (!l->accepted && lane_accept(l) < 0))
		return 0;
	from = l->pos;
	if (l->discard) {
		l->discarded += n;
		used = l->discarded > DISCARD_MAX ? 0 : n;
		atomic_fetch_add_explicit(&l->d->received, n, memory_order_relaxed);
		return used;
	}
	used = take_data(l, data, n);
	atomic_fetch_add_explicit(&l->d->received, l->pos - from, memory_order_relaxed);
	return used;
}
