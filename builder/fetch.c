#include "builder/fetch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "builder/partial.h"
#include "builder/transfer.h"
#include "images/http.h"

enum {
	POLL_MS = 1000,             /* the longest sleep: libcurl wakes earlier when it must */
	TELL_EVERY_MS = 400,        /* that a try failed */
	LOCKED_POLL_MS = 100,       /* between looks at what another process is fetching */
	REHASH_STEP = 8 << 20,      /* bytes hashed before the network gets its turn again */
	PROGRESS_BYTES = 256 << 10, /* so many new bytes make a try count as a first one */
};

const struct fetch_limits fetch_defaults = {
	.parallel = 24,
	.tries = 5,
	.backoff_ms = 500,
	.retry_after_s = 60,
	.connect_s = 20,
	.stall_s = 30,
	.stall_bytes = 100,
};

/*   IDLE -> LOCKED -> HASHING -> RUNNING -> IDLE
 *                        |       |    ^
 *                        v       v    |
 *                      (IDLE)   BACKOFF           */
enum lane_state {
	LANE_IDLE,
	LANE_LOCKED,  /* wants the partial file; another process may have it */
	LANE_HASHING, /* what an earlier run left */
	LANE_RUNNING, /* libcurl has it */
	LANE_BACKOFF,
};

/* What works on one input at a time. */
struct lane {
	enum lane_state state;
	double due; /* LOCKED, BACKOFF: not before */
	unsigned tries;
	bool told;         /* that somebody else is at it */
	uint64_t mark;     /* the most bytes that an earlier try got to */
	uint64_t reported; /* bytes that progress knows of */
	const struct input *in;
	struct transfer t;
};

struct fetch {
	struct store *s;
	const struct fetch_limits *limits;
	struct progress *progress;
	CURLM *multi;
	struct lane *lanes;
	size_t nlanes;
	const struct input **todo; /* each digest once, big ones first */
	size_t n, next, left;
	uint64_t need; /* bytes, as far as sizes are known */
	double told;   /* when a failed try was last told */
	struct err *e;
};

/* ---- a lane's steps ---- */

static void report(struct fetch *f, struct lane *l)
{
	uint64_t more;

	if (l->t.part.size <= l->reported) /* started over: not counted twice */
		return;
	more = l->t.part.size - l->reported;
	l->reported = l->t.part.size;
	progress_add(f->progress, more);
	if (l->in->size)
		f->need -= more < f->need ? more : f->need;
}

static void finish(struct fetch *f, struct lane *l)
{
	partial_close(&l->t.part);
	l->state = LANE_IDLE;
	f->left--;
}

static void begin(struct fetch *f, struct lane *l)
{
	l->in = f->todo[f->next++];
	l->state = LANE_LOCKED;
	l->due = 0;
	l->tries = 0;
	l->told = false;
	l->reported = l->mark = 0;
}

static int step_locked(struct fetch *f, struct lane *l)
{
	int rc;

	if (cache_has(f->s, l->in)) {
		if (l->in->size > l->reported) {
			progress_add(f->progress, l->in->size - l->reported);
			f->need -= l->in->size < f->need ? l->in->size : f->need;
		}
		finish(f, l);
		return 0;
	}
	rc = partial_open(&l->t.part, f->s, l->in, f->e);
	if (rc < 0)
		return -1;
	if (rc == 1) {
		l->state = LANE_HASHING;
		return 0;
	}
	l->due = sys_now_ms() + LOCKED_POLL_MS;
	if (!l->told)
		progress_note(f->progress, "%s: waiting for another process that fetches it",
			l->in->name);
	l->told = true;
	return 0;
}

static int start(struct fetch *f, struct lane *l)
{
	CURLMcode rc;

	transfer_begin(&l->t);
	rc = curl_multi_add_handle(f->multi, l->t.curl);
	if (rc != CURLM_OK)
		return err_set(f->e, ERR_SYSTEM, "%s: %s", l->in->name, curl_multi_strerror(rc));
	l->state = LANE_RUNNING;
	return 0;
}

static int step_hashing(struct fetch *f, struct lane *l)
{
	int rc = partial_rehash(&l->t.part, REHASH_STEP, f->e);
	struct err bad = {0};

	if (rc <= 0)
		return rc;
	report(f, l);
	l->mark = l->t.part.size;
	if (!partial_complete(&l->t.part))
		return start(f, l);
	if (partial_publish(&l->t.part, l->t.part.name, &bad) == 0) {
		finish(f, l);
		return 0;
	}
	if (bad.kind != ERR_CORRUPT) {
		if (f->e)
			*f->e = bad;
		return -1;
	}
	/* right size, wrong bytes: the power went before they were on the disk */
	return partial_restart(&l->t.part, f->e) < 0 ? -1 : start(f, l);
}

static int step(struct fetch *f, struct lane *l, double now)
{
	if (l->state == LANE_IDLE && f->next < f->n)
		begin(f, l);
	if (l->state == LANE_LOCKED && l->due <= now && step_locked(f, l) < 0)
		return -1;
	if (l->state == LANE_HASHING && step_hashing(f, l) < 0)
		return -1;
	if (l->state == LANE_BACKOFF && l->due <= now && start(f, l) < 0)
		return -1;
	return 0;
}

/* ---- how a try ended ---- */

static int give_up(struct fetch *f, const struct lane *l)
{
	if (f->e)
		*f->e = l->t.e;
	return -1;
}

static int failed(struct fetch *f, struct lane *l)
{
	if (l->t.e.kind == ERR_CORRUPT)
		partial_discard(&l->t.part);
	return give_up(f, l);
}

static int tried_enough(struct fetch *f, struct lane *l)
{
	struct err last = l->t.e;

	if (last.kind != ERR_NETWORK)
		return failed(f, l);
	err_set(&l->t.e, last.kind, "%.1400s, after %u tries", last.text, l->tries);
	err_hint(&l->t.e,
		"check the network and the mirror; what arrived is kept, and the next run "
		"goes on from there");
	return give_up(f, l);
}

static int retry(struct fetch *f, struct lane *l)
{
	unsigned shift;
	double wait;

	if (l->t.part.size >= l->mark + PROGRESS_BYTES)
		l->tries = 0;
	if (l->t.part.size >
		l->mark) /* never less: what comes again after a restart is no progress */
		l->mark = l->t.part.size;
	if (++l->tries >= f->limits->tries)
		return tried_enough(f, l);
	shift = l->tries - 1;
	wait = (double)f->limits->backoff_ms * (double)(1U << (shift < 6 ? shift : 6));
	if (wait < l->t.retry_after_ms)
		wait = l->t.retry_after_ms;
	l->due = sys_now_ms() + wait;
	if (l->due - wait - f->told >=
		TELL_EVERY_MS) { /* without a network all lanes fail at once */
		f->told = l->due - wait;
		progress_note(f->progress, "%s; again in %.1f s", l->t.e.text, wait / 1e3);
	}
	l->state = LANE_BACKOFF;
	return 0;
}

static int ended(struct fetch *f, struct lane *l, CURLcode code)
{
	enum verdict v;

	curl_multi_remove_handle(f->multi, l->t.curl);
	report(f, l);
	v = transfer_end(&l->t, code);
	if (v == VERDICT_DONE) {
		finish(f, l);
		return 0;
	}
	return v == VERDICT_RETRY ? retry(f, l) : failed(f, l);
}

/* ---- the loop ---- */

static struct lane *lane_of(struct fetch *f, const CURL *curl)
{
	for (size_t i = 0; i < f->nlanes; i++)
		if (f->lanes[i].t.curl == curl)
			return &f->lanes[i];
	return NULL;
}

static int poll_ms(const struct fetch *f)
{
	double now = sys_now_ms(), wait = POLL_MS;

	for (size_t i = 0; i < f->nlanes; i++) {
		const struct lane *l = &f->lanes[i];

		if (l->state == LANE_HASHING || (l->state == LANE_IDLE && f->next < f->n))
			return 0;
		if ((l->state == LANE_LOCKED || l->state == LANE_BACKOFF) && l->due - now < wait)
			wait = l->due - now;
	}
	return wait < 0 ? 0 : (int)wait + 1;
}

static int turn(struct fetch *f)
{
	double now = sys_now_ms();
	CURLMsg *msg;
	CURLMcode rc;
	int running, queued;

	for (size_t i = 0; i < f->nlanes; i++)
		if (step(f, &f->lanes[i], now) < 0)
			return -1;
	rc = curl_multi_perform(f->multi, &running);
	while (rc == CURLM_OK && (msg = curl_multi_info_read(f->multi, &queued)))
		if (msg->msg == CURLMSG_DONE) {
			struct lane *l = lane_of(f, msg->easy_handle);

			if (l && ended(f, l, msg->data.result) < 0)
				return -1;
		}
	for (size_t i = 0; i < f->nlanes; i++)
		if (f->lanes[i].state == LANE_RUNNING)
			report(f, &f->lanes[i]);
	if (rc == CURLM_OK && f->left)
		rc = curl_multi_poll(f->multi, NULL, 0, poll_ms(f), NULL);
	return rc == CURLM_OK ? 0 : err_set(f->e, ERR_SYSTEM, "fetch: %s", curl_multi_strerror(rc));
}

static int by_size_then_digest(const void *a, const void *b)
{
	const struct input *x = *(const struct input *const *)a;
	const struct input *y = *(const struct input *const *)b;

	if (x->size != y->size)
		return x->size < y->size ? 1 : -1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return memcmp(x->digest, y->digest, sizeof(x->digest));
}

/* Each digest once (a package may be placed at several paths), big ones first, so that the end is
 * not one big file on one connection. */
static void plan(struct fetch *f, const struct input *in, size_t n)
{
	f->todo = mem_array(n, sizeof(struct input *));
	for (size_t i = 0; i < n; i++)
		f->todo[i] = &in[i];
	qsort(f->todo, n, sizeof(struct input *), by_size_then_digest);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || by_size_then_digest(&f->todo[i], &f->todo[f->n - 1]) != 0)
			f->todo[f->n++] = f->todo[i];
	f->left = f->n;
}

static void begin_progress(struct fetch *f)
{
	bool known = true;

	for (size_t i = 0; i < f->n; i++) {
		f->need += f->todo[i]->size;
		known = known && f->todo[i]->size;
	}
	progress_begin(f->progress, "fetch", known ? f->need : 0);
}

static int open_lanes(struct fetch *f)
{
	size_t n = f->n < f->limits->parallel ? f->n : f->limits->parallel;

	http_init();
	f->multi = curl_multi_init();
	if (!f->multi)
		return err_set(f->e, ERR_SYSTEM, "no memory for transfers");
	curl_multi_setopt(f->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)f->limits->parallel);
	curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)f->limits->parallel);
	f->lanes = mem_array(n, sizeof(*f->lanes));
	for (f->nlanes = 0; f->nlanes < n; f->nlanes++)
		if (transfer_init(&f->lanes[f->nlanes].t, f->limits, &f->need, f->e) < 0)
			return -1;
	return 0;
}

static void close_lanes(struct fetch *f)
{
	for (size_t i = 0; i < f->nlanes; i++) {
		if (f->lanes[i].state == LANE_RUNNING)
			curl_multi_remove_handle(f->multi, f->lanes[i].t.curl);
		transfer_fini(&f->lanes[i].t);
	}
	free(f->lanes);
	if (f->multi)
		curl_multi_cleanup(f->multi);
}

/* The names that partial_publish() gave, made to last. */
static int sync_folders(struct store *s, struct err *e)
{
	static const char *const dirs[] = {"cache/sha256", "cache/sha512"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		auto_fd int fd = sys_openat(s->fd, dirs[i], O_RDONLY | O_DIRECTORY, 0);

		if (fd < 0 || sys_fsync(fd) < 0)
			return err_sys(e, "sync %s/%s", s->path, dirs[i]);
	}
	return 0;
}

int fetch_all(struct store *s, const struct input *in, size_t n, const struct fetch_limits *l,
	struct progress *p, struct err *e)
{
	struct fetch f = {.s = s, .limits = l, .progress = p, .e = e};
	int rc;

	if (n == 0)
		return 0;
	if (partial_prepare(s, e) < 0)
		return -1;
	plan(&f, in, n);
	begin_progress(&f);
	rc = open_lanes(&f);
	while (rc == 0 && f.left)
		rc = turn(&f);
	close_lanes(&f);
	free(f.todo);
	progress_end(p);
	return rc == 0 ? sync_folders(s, e) : rc;
}
