#include "tests/unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"
#include "images/download.h"
#include "tests/helpers/httpd.h"

/* ---- a registry that says what real ones mean, without their protocol ---- */

struct registry {
	int port;
	unsigned endpoints, down; /* so many of the first are passed over */
	atomic_uint aims, verdicts[4];
};

size_t registry_endpoints(const struct registry *r)
{
	return r->endpoints;
}

const char *registry_name(const struct registry *r)
{
	(void)r;
	return "registry.example/app";
}

int registry_aim(struct registry *r, unsigned endpoint, const struct digest *blob, CURL *h,
	struct registry_aim *a, struct err *e)
{
	char url[64];

	(void)e;
	if (endpoint < r->down)
		endpoint = r->down;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/%u/%02x", r->port, endpoint, blob->b[0]);
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_NOPROXY, "*");
	*a = (struct registry_aim){.endpoint = endpoint};
	a->headers = curl_slist_append(NULL, "X-Test: yes");
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, a->headers);
	atomic_fetch_add(&r->aims, 1);
	return 0;
}

void registry_aim_fini(struct registry_aim *a)
{
	curl_slist_free_all(a->headers);
	a->headers = NULL;
}

enum { TRIES = 4 };

static enum registry_verdict judge(
	CURL *h, CURLcode code, unsigned tries, unsigned *wait_ms, struct err *e)
{
	curl_off_t after = 0;
	long status = 0;

	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(h, CURLINFO_RETRY_AFTER, &after);
	assert_true(tries > 0);
	if (code == CURLE_OK && (status == 200 || status == 206))
		return REGISTRY_OK;
	err_set(e, status == 404 ? ERR_NOT_FOUND : ERR_NETWORK, "status %ld, %s", status,
		curl_easy_strerror(code));
	if (status == 404)
		return REGISTRY_NEXT;
	if (status == 401)
		return REGISTRY_FAILED;
	*wait_ms = after > 0 ? 50 : 5;
	return tries < TRIES ? REGISTRY_AGAIN : REGISTRY_NEXT;
}

enum registry_verdict registry_judge(struct registry *r, const struct registry_aim *a,
	const struct digest *blob, CURL *h, CURLcode code, unsigned tries, unsigned *wait_ms,
	struct err *e)
{
	enum registry_verdict v = judge(h, code, tries, wait_ms, e);

	(void)a;
	(void)blob;
	atomic_fetch_add(&r->verdicts[v], 1);
	return v;
}

/* ---- a server with blobs, and their pieces ---- */

enum { BLOB = 6 << 20, PIECES = 512 };

struct fixture {
	struct httpd h;
	struct registry r;
	struct download_limits limits;
	struct download *d;
	unsigned char *data; /* of every blob */
	struct digest digests[4];
	struct err e;
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->data = mem_alloc(BLOB);
	for (size_t i = 0; i < BLOB; i++)
		f->data[i] = (unsigned char)(i * 2654435761U >> 13);
	for (size_t i = 0; i < 4; i++)
		f->digests[i].b[0] = (uint8_t)i;
	httpd_start(&f->h);
	f->r.port = f->h.port;
	f->r.endpoints = 1;
	f->limits = (struct download_limits){
		.connections = 4, .memory = 8 << 20, .stall_s = 1, .stall_bytes = 1};
}

static void start(struct fixture *f)
{
	f->d = download_new(&f->r, &f->limits, &f->e);
	assert_non_null(f->d);
}

static void teardown(struct fixture *f)
{
	download_free(f->d);
	httpd_stop(&f->h);
	free(f->data);
}

static struct httpd_file *serve(struct fixture *f, unsigned endpoint, unsigned blob)
{
	char path[16];

	snprintf(path, sizeof(path), "/%u/%02x", endpoint, blob);
	return httpd_add(&f->h, path, f->data, BLOB);
}

/* What the server counted, while it runs. */
static size_t counted(struct fixture *f, const size_t *n)
{
	size_t v;

	pthread_mutex_lock(&f->h.lock);
	v = *n;
	pthread_mutex_unlock(&f->h.lock);
	return v;
}

static unsigned requests(struct fixture *f, const struct httpd_file *file)
{
	unsigned v;

	pthread_mutex_lock(&f->h.lock);
	v = file->requests;
	pthread_mutex_unlock(&f->h.lock);
	return v;
}

/* n pieces of a blob, each of length bytes and gap bytes apart, from `from` on. */
static size_t cut(struct fixture *f, struct piece *v, size_t n, unsigned blob, size_t from,
	size_t length, size_t gap)
{
	for (size_t i = 0; i < n; i++) {
		v[i] = (struct piece){.blob = &f->digests[blob],
			.blob_size = BLOB,
			.offset = from + i * (length + gap),
			.length = (uint32_t)length};
		assert_true(v[i].offset + length <= BLOB);
	}
	return n;
}

static void is_right(const struct fixture *f, const struct piece *p)
{
	assert_non_null(p->data);
	assert_memory_equal(p->data, f->data + p->offset, p->length);
}

/* All of them, each once; in order if that was asked for. */
static void take_all(struct fixture *f, struct stream *s, struct piece *v, size_t n, bool ordered)
{
	bool seen[PIECES] = {false};
	struct piece *p;
	int rc;

	for (size_t i = 0; i < n; i++) {
		rc = stream_next(s, &p, &f->e);
		if (rc < 0)
			fail_msg("%s", f->e.text);
		assert_int_equal(rc, 1);
		assert_in_range(p - v, 0, n - 1);
		assert_false(seen[p - v]);
		seen[p - v] = true;
		if (ordered)
			assert_int_equal(p - v, i);
		is_right(f, p);
		stream_release(s, p);
	}
	assert_int_equal(stream_next(s, &p, &f->e), 0);
}

static void arrives(struct fixture *f, struct piece *v, size_t n, bool ordered)
{
	struct stream *s = stream_open(f->d, v, n, ordered);

	take_all(f, s, v, n, ordered);
	stream_close(s);
}

static void fails(
	struct fixture *f, struct piece *v, size_t n, enum err_kind kind, const char *words)
{
	struct stream *s = stream_open(f->d, v, n, false);
	struct piece *p;
	int rc;

	while ((rc = stream_next(s, &p, &f->e)) == 1)
		stream_release(s, p);
	assert_int_equal(rc, -1);
	assert_int_equal(f->e.kind, kind);
	if (!strstr(f->e.text, words))
		fail_msg("%s", f->e.text);
	memset(&f->e, 0, sizeof(f->e));
	assert_int_equal(stream_next(s, &p, &f->e), -1); /* and again */
	assert_int_equal(f->e.kind, kind);
	stream_close(s);
}

/* ---- good servers ---- */

TEST(pieces_arrive_right_each_once_over_connections_that_are_kept)
{
	struct fixture f;
	struct piece v[64];

	setup(&f);
	serve(&f, 0, 0);
	start(&f);
	arrives(&f, v, cut(&f, v, 64, 0, 5, 60000, 1000), false);
	assert_int_equal(f.h.connections, 4);
	assert_int_equal(f.r.aims, 64);
	assert_int_equal(download_received(f.d), 64 * 60000);
	teardown(&f);
}

TEST(in_order_pieces_come_in_order_whatever_arrives_first)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v[32];

	setup(&f);
	file = serve(&f, 0, 0);
	file->only = true; /* the first one comes late */
	file->delay_ms = 100;
	start(&f);
	arrives(&f, v, cut(&f, v, 32, 0, 0, 100000, 0), true);
	teardown(&f);
}

TEST(as_they_arrive_a_late_piece_holds_up_nobody)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v[32], *p;
	struct stream *s;

	setup(&f);
	file = serve(&f, 0, 0);
	file->only = true;
	file->delay_ms = 200;
	start(&f);
	s = stream_open(f.d, v, cut(&f, v, 32, 0, 0, 100000, 1), false);
	for (size_t i = 0; i < 32; i++) {
		assert_int_equal(stream_next(s, &p, &f.e), 1);
		assert_true((p == &v[0]) == (i == 31));
		stream_release(s, p);
	}
	stream_close(s);
	teardown(&f);
}

TEST(pieces_that_follow_each_other_share_requests_which_become_short_towards_the_end)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v[300];

	setup(&f);
	file = serve(&f, 0, 0);
	start(&f);
	arrives(&f, v, cut(&f, v, 300, 0, 5, 20000, 0), false);
	assert_in_range(file->requests, 8, 150);
	assert_int_equal(counted(&f, &file->asked), 300 * 20000);
	/* a gap ends a run; so do others' pieces */
	file->requests = 0;
	cut(&f, v, 10, 0, 0, 1000, 0);
	cut(&f, v + 10, 10, 0, 10001, 1000, 0);
	arrives(&f, v, 20, false);
	assert_in_range(file->requests, 2, 20);
	teardown(&f);
}

TEST(a_blob_in_one_piece_is_asked_for_without_a_range)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v = {0};

	setup(&f);
	file = httpd_add(&f.h, "/0/00", f.data, 1 << 20);
	file->ignore_range = true;
	start(&f);
	v = (struct piece){.blob = &f.digests[0], .blob_size = 1 << 20, .length = 1 << 20};
	arrives(&f, &v, 1, true);
	assert_int_equal(file->requests, 1);
	assert_int_equal(file->ranged, 0);
	teardown(&f);
}

TEST(no_pieces_are_no_work)
{
	struct fixture f;

	setup(&f);
	start(&f);
	arrives(&f, NULL, 0, false);
	arrives(&f, NULL, 0, true);
	teardown(&f);
}

TEST(a_piece_outside_of_its_blob_is_refused)
{
	struct fixture f;
	struct piece v = {0};

	setup(&f);
	start(&f);
	v = (struct piece){
		.blob = &f.digests[0], .blob_size = 100, .offset = UINT64_MAX - 5, .length = 10};
	fails(&f, &v, 1, ERR_CORRUPT, "has 100 bytes");
	v = (struct piece){.blob = &f.digests[0], .blob_size = 100, .offset = 91, .length = 10};
	fails(&f, &v, 1, ERR_CORRUPT, "has 100 bytes");
	v = (struct piece){.blob = &f.digests[0], .blob_size = 100, .offset = 91, .length = 0};
	fails(&f, &v, 1, ERR_CORRUPT, "has 100 bytes");
	assert_int_equal(f.r.aims, 0);
	teardown(&f);
}

/* ---- memory ---- */

/* Nothing more comes: what was received stays the same for a while, once it is as much as must
 * come, however slow the machine is. */
static void settles(struct fixture *f, uint64_t more_than)
{
	uint64_t last = UINT64_MAX;

	for (int i = 0; i < 3000 && download_received(f->d) <= more_than; i++)
		usleep(10000);
	while (download_received(f->d) != last) {
		last = download_received(f->d);
		usleep(100000);
	}
}

static void a_stopped_consumer_bounds(bool whole, size_t gap)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v[48];
	struct stream *s;

	setup(&f);
	f.limits.memory = 4 << 20;
	file = serve(&f, 0, 0);
	file->ignore_range = whole;
	start(&f);
	s = stream_open(f.d, v, cut(&f, v, 48, 0, 0, (128 << 10) - gap, gap), false);
	settles(&f, 3 << 20);
	assert_true(download_received(f.d) > 3 << 20);
	assert_true(download_received(f.d) <= 4 << 20);
	if (!whole && gap)
		assert_true(counted(&f, &file->asked) <= 4 << 20);
	take_all(&f, s, v, 48, false);
	if (!whole && gap)
		assert_int_equal(file->requests, 48);
	stream_close(s);
	teardown(&f);
}

TEST(a_consumer_that_stops_bounds_what_is_asked_for)
{
	a_stopped_consumer_bounds(false, 1);
}

TEST(a_consumer_that_stops_bounds_what_is_read_of_runs_of_pieces)
{
	a_stopped_consumer_bounds(false, 0);
}

TEST(streams_share_memory_and_one_that_nobody_reads_does_not_stop_another)
{
	struct fixture f;
	struct piece v[48], w[48];
	struct stream *s, *t;

	setup(&f);
	f.limits.memory = 4 << 20;
	serve(&f, 0, 0);
	serve(&f, 0, 1);
	start(&f);
	s = stream_open(f.d, v, cut(&f, v, 48, 0, 0, 128 << 10, 0), false);
	settles(&f, 0); /* it has everything now */
	t = stream_open(f.d, w, cut(&f, w, 48, 1, 0, 128 << 10, 0), true);
	take_all(&f, t, w, 48, true);
	take_all(&f, s, v, 48, false);
	stream_close(t);
	stream_close(s);
	teardown(&f);
}

TEST(streams_in_order_do_not_wait_for_each_other)
{
	struct fixture f;
	struct piece v[4][24], *p;
	struct stream *s[4];

	setup(&f);
	f.limits.memory = 4 << 20;
	for (unsigned i = 0; i < 4; i++)
		serve(&f, 0, i);
	start(&f);
	for (unsigned i = 0; i < 4; i++)
		s[i] = stream_open(f.d, v[i], cut(&f, v[i], 24, i, 0, 256 << 10, 0), true);
	for (size_t i = 0; i < 24; i++) /* the last one first, one after the other */
		for (size_t k = 4; k-- > 0;) {
			assert_int_equal(stream_next(s[k], &p, &f.e), 1);
			assert_ptr_equal(p, &v[k][i]);
			is_right(&f, p);
			stream_release(s[k], p);
		}
	for (unsigned i = 0; i < 4; i++)
		stream_close(s[i]);
	teardown(&f);
}

TEST(more_streams_than_memory_for_a_piece_of_each_still_end)
{
	struct fixture f;
	struct piece v[4], *p;
	struct stream *s[4];

	setup(&f);
	f.limits.memory = 4 << 20;
	for (unsigned i = 0; i < 4; i++) {
		serve(&f, 0, i);
		cut(&f, &v[i], 1, i, 1, PIECE_MAX, 0);
	}
	start(&f);
	for (unsigned i = 0; i < 4; i++)
		s[i] = stream_open(f.d, &v[i], 1, true);
	settles(&f, 0); /* one of them has everything */
	for (size_t k = 0; k < 4; k++) {
		assert_int_equal(stream_next(s[k], &p, &f.e), 1);
		is_right(&f, p);
		stream_release(s[k], p);
		stream_close(s[k]);
	}
	teardown(&f);
}

struct consumer {
	struct fixture *f;
	struct stream *s;
	atomic_uint n;
};

static void *consume(void *ctx)
{
	struct consumer *c = ctx;
	struct piece *p;
	struct err e;
	int rc;

	while ((rc = stream_next(c->s, &p, &e)) == 1) {
		if (memcmp(p->data, c->f->data + p->offset, p->length) == 0)
			atomic_fetch_add(&c->n, 1);
		stream_release(c->s, p);
	}
	return rc == 0 ? c : NULL;
}

static void several_threads(bool ordered)
{
	struct fixture f;
	struct piece v[200];
	struct consumer c = {.f = &f};
	pthread_t t[4];
	void *ok;

	setup(&f);
	f.limits.memory = 4 << 20;
	serve(&f, 0, 0);
	start(&f);
	c.s = stream_open(f.d, v, cut(&f, v, 200, 0, 0, 20000, 3), ordered);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, consume, &c);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(t[i], &ok);
		assert_ptr_equal(ok, &c);
	}
	assert_int_equal(c.n, 200);
	stream_close(c.s);
	teardown(&f);
}

TEST(several_threads_may_take_pieces)
{
	several_threads(false);
	several_threads(true);
}

/* ---- servers that break things ---- */

TEST(what_passes_is_tried_again_from_the_last_good_byte)
{
	static const struct {
		const char *what;
		struct httpd_file fault;
		unsigned extra; /* requests */
	} cases[] = {
		{"dropped in the body", {.cut = 1000, .times = 3}, 3},
		{"dropped late", {.cut = 90000, .times = 3}, 3},
		{"429", {.status = 429, .header = "Retry-After: 1\r\n", .times = 3}, 3},
		{"503", {.status = 503, .times = 3}, 3},
		{"wrong Content-Range", {.wrong_range = true, .times = 2}, 2},
		{"shorter than said", {.claim = 200000, .cut = 100000, .times = 2}, 2},
		{"Content-Length unlike Content-Range", {.claim = 99999, .times = 2}, 2},
		{"longer than asked for", {.no_length = true, .overrun = true, .times = 2}, 2},
		{"no length, but right", {.no_length = true, .times = 2}, 0},
		{"hangs", {.hang = true, .times = 1}, 1},
		{"one byte a second", {.drip_ms = 2500, .times = 1}, 1},
	};

	for (size_t i = 0; i < 3 * sizeof(cases) / sizeof(cases[0]); i++) {
		size_t at = i / 3, way = i % 3; /* alone, in order, in runs */
		struct fixture f;
		struct httpd_file *file, good;
		struct piece v[20];

		setup(&f);
		file = serve(&f, 0, 0);
		good = *file;
		*file = cases[at].fault;
		memcpy(file->path, good.path, sizeof(good.path));
		file->data = good.data;
		file->n = good.n;
		start(&f);
		arrives(&f, v, cut(&f, v, 20, 0, 7, 100000, way == 0), way == 1);
		if (way < 2 && file->requests != 20 + cases[at].extra)
			fail_msg("%s: %u requests", cases[at].what, file->requests);
		if (way == 2 && file->requests > 20 + cases[at].extra)
			fail_msg("%s: %u requests in runs", cases[at].what, file->requests);
		teardown(&f);
	}
}

TEST(a_body_that_is_cut_again_and_again_arrives_in_the_end)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v[2];

	setup(&f);
	file = serve(&f, 0, 0);
	file->cut = 300000; /* always */
	start(&f);
	arrives(&f, v, cut(&f, v, 2, 0, 0, 2500000, 0), true);
	assert_int_equal(file->requests, 18);
	assert_int_equal(download_received(f.d), 5000000);
	teardown(&f);
}

TEST(what_stays_wrong_is_an_error_that_names_blob_and_range)
{
	static const struct {
		struct httpd_file fault;
		enum err_kind kind;
		const char *words;
	} cases[] = {
		{{.wrong_range = true}, ERR_NETWORK,
			"bytes 7-100006: registry.example/app: blob "
			"sha256:0000000000000000000000000000000000000000000000000000000000000000: "
			"asked for bytes 7-100006, answered with Content-Range bytes "
			"8-100007/6291456"},
		{{.total = BLOB - 1}, ERR_CORRUPT, "its descriptor says 6291456"},
		{{.ignore_range = true, .claim = BLOB + 1}, ERR_CORRUPT, "has 6291457 bytes"},
		{{.claim = 5}, ERR_NETWORK, "Content-Length 5 does not fit Content-Range"},
		{{.no_length = true, .overrun = true}, ERR_CORRUPT, "goes on behind byte 100007"},
		{{.cut = 1}, ERR_NETWORK, "bytes 10-100006: status 206"},
		{{.status = 404}, ERR_NOT_FOUND, "bytes 7-100006: status 404"},
		{{.status = 401}, ERR_NETWORK, "bytes 7-100006: status 401"},
		{{.status = 500}, ERR_NETWORK, "bytes 7-100006: status 500"},
		{{.status = 204}, ERR_NETWORK, "status 204"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		struct httpd_file *file, good;
		struct piece v[1];

		setup(&f);
		file = serve(&f, 0, 0);
		good = *file;
		*file = cases[i].fault;
		memcpy(file->path, good.path, sizeof(good.path));
		file->data = good.data;
		file->n = good.n;
		start(&f);
		fails(&f, v, cut(&f, v, 1, 0, 7, 100000, 0), cases[i].kind, cases[i].words);
		assert_true(file->requests < 10);
		teardown(&f);
	}
}

TEST(what_one_endpoint_lacks_comes_from_the_next)
{
	struct fixture f;
	struct httpd_file *good;
	struct piece v[20];

	setup(&f);
	f.r.endpoints = 3;
	good = serve(&f, 0, 1);
	serve(&f, 1, 0)->total = 17; /* lies */
	serve(&f, 2, 0);
	start(&f);
	arrives(&f, v, cut(&f, v, 20, 0, 0, 100000, 0), false);
	/* only the first ones were asked for in vain */
	assert_true(f.r.verdicts[REGISTRY_NEXT] <= 4);
	arrives(&f, v, cut(&f, v, 20, 1, 0, 100000, 0), true);
	assert_int_equal(good->requests, 20);
	teardown(&f);
}

TEST(an_endpoint_that_is_passed_over_when_aiming_is_not_tried_for_ever)
{
	struct fixture f;
	struct httpd_file *whole;
	struct piece v[20];

	setup(&f);
	f.r.endpoints = 3;
	f.r.down = 1;
	whole = serve(&f, 1, 1);
	whole->ignore_range = true;
	serve(&f, 2, 0);
	start(&f);
	arrives(&f, v, cut(&f, v, 20, 0, 0, 100000, 0), false); /* the second lacks it */
	arrives(&f, v, cut(&f, v, 20, 1, 0, 100000, 0), true);
	assert_true(
		whole->requests <= 8); /* those under way before the first answer, and the one */
	teardown(&f);
	setup(&f);
	f.r.endpoints = 2;
	f.r.down = 1;
	start(&f);
	fails(&f, v, cut(&f, v, 20, 0, 0, 100000, 0), ERR_NOT_FOUND, "status 404");
	teardown(&f);
}

TEST(waiting_for_one_piece_does_not_hold_up_the_others)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v[40], *p;
	struct stream *s;

	setup(&f);
	file = serve(&f, 0, 0);
	file->only = true;
	file->status = 429;
	file->header = "Retry-After: 1\r\n";
	file->times = 3;
	start(&f);
	s = stream_open(f.d, v, cut(&f, v, 40, 0, 0, 100000, 0), false);
	for (size_t i = 0; i < 40; i++) {
		assert_int_equal(stream_next(s, &p, &f.e), 1);
		is_right(&f, p);
		assert_true((p == &v[0]) == (i == 39));
		stream_release(s, p);
	}
	stream_close(s);
	teardown(&f);
}

/* ---- servers without ranges ---- */

TEST(a_server_that_ignores_ranges_sends_the_blob_once)
{
	for (int ordered = 0; ordered < 2; ordered++) {
		struct fixture f;
		struct httpd_file *file, *later;
		struct piece v[60];

		setup(&f);
		file = serve(&f, 0, 0);
		later = serve(&f, 0, 1);
		file->ignore_range = later->ignore_range = true;
		start(&f);
		/* with gaps, and nothing from the end */
		arrives(&f, v, cut(&f, v, 50, 0, 5, 60000, 1000), ordered);
		assert_true(file->requests <= 5); /* all lanes asked once, one went on */
		/* the second blob of that server is asked for once */
		arrives(&f, v, cut(&f, v, 50, 1, 5, 60000, 1000), ordered);
		assert_int_equal(later->requests, 1);
		assert_int_equal(later->ranged, 0);
		teardown(&f);
	}
}

TEST(bytes_behind_the_last_piece_are_not_read)
{
	struct fixture f;
	struct piece v[2];

	setup(&f);
	serve(&f, 0, 0)->ignore_range = true;
	start(&f);
	arrives(&f, v, cut(&f, v, 2, 0, 10, 1000, 0), true);
	assert_true(download_received(f.d) < BLOB / 4);
	teardown(&f);
}

TEST(a_consumer_that_stops_bounds_what_is_read_of_a_whole_blob)
{
	a_stopped_consumer_bounds(true, 0);
	a_stopped_consumer_bounds(true, 1);
}

TEST(a_whole_blob_that_breaks_is_begun_again_without_giving_pieces_twice)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v[60];

	setup(&f);
	f.limits.connections = 1;
	file = serve(&f, 0, 0);
	file->ignore_range = true;
	file->cut = 3 << 20;
	file->times = 3;
	start(&f);
	arrives(&f, v, cut(&f, v, 60, 0, 0, 100000, 0), true);
	assert_int_equal(file->requests, 4);
	teardown(&f);
}

TEST(a_whole_blob_that_lies_about_its_end_is_an_error)
{
	static const struct {
		struct httpd_file fault;
		enum err_kind kind;
		const char *words;
	} cases[] = {
		{{.ignore_range = true, .cut = 100}, ERR_NETWORK, "status 200"},
		{{.ignore_range = true, .no_length = true, .overrun = true}, ERR_CORRUPT,
			"goes on behind byte 6291456"},
		{{.ignore_range = true, .no_length = true, .cut = 1000}, ERR_NETWORK, "status 200"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		struct httpd_file *file, good;
		struct piece v[2];

		setup(&f);
		file = serve(&f, 0, 0);
		good = *file;
		*file = cases[i].fault;
		memcpy(file->path, good.path, sizeof(good.path));
		file->data = good.data;
		file->n = good.n;
		start(&f);
		cut(&f, v, 1, 0, 200, 1000, 0);
		cut(&f, v + 1, 1, 0, BLOB - 1000, 1000, 0);
		if (i == 1) /* the end of the last piece must not be in sight of the end */
			v[1].length = 900;
		if (i == 1)
			arrives(&f, v, 2, true); /* what follows is not read */
		else
			fails(&f, v, 2, cases[i].kind, cases[i].words);
		teardown(&f);
	}
}

TEST(whole_blobs_in_order_and_pieces_of_several_mixed)
{
	struct fixture f;
	struct piece v[96];

	setup(&f);
	f.limits.memory = 4 << 20;
	for (unsigned i = 0; i < 4; i++)
		serve(&f, 0, i)->ignore_range = true;
	start(&f);
	for (size_t i = 0; i < 96; i++) /* four blobs by turns */
		cut(&f, &v[i], 1, (unsigned)(i % 4), i / 4 * 200000, 190000, 0);
	arrives(&f, v, 96, false);
	arrives(&f, v, 96, true);
	teardown(&f);
}

TEST(whole_blobs_one_after_the_other_in_order)
{
	struct fixture f;
	struct piece v[96];

	setup(&f);
	f.limits.memory = 4 << 20;
	for (unsigned i = 0; i < 4; i++)
		serve(&f, 0, i)->ignore_range = true;
	start(&f);
	for (unsigned i = 0; i < 4; i++)
		cut(&f, &v[(size_t)i * 24], 24, i, 0, 250000, 0);
	arrives(&f, v, 96, true);
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(f.h.files[i].requests, 1);
	teardown(&f);
}

TEST(a_whole_blob_that_nobody_reads_does_not_stop_another)
{
	struct fixture f;
	struct piece v[48], w[48];
	struct stream *s, *t;

	setup(&f);
	f.limits.memory = 4 << 20;
	f.limits.connections = 1;
	serve(&f, 0, 0)->ignore_range = true;
	serve(&f, 0, 1)->ignore_range = true;
	start(&f);
	s = stream_open(f.d, v, cut(&f, v, 48, 0, 0, 128 << 10, 0), true);
	settles(&f, 0);
	t = stream_open(f.d, w, cut(&f, w, 48, 1, 0, 128 << 10, 0), true);
	take_all(&f, t, w, 48, true);
	take_all(&f, s, v, 48, true);
	stream_close(t);
	stream_close(s);
	teardown(&f);
}

TEST(where_the_next_endpoint_knows_ranges_they_are_used_again)
{
	struct fixture f;
	struct httpd_file *first, *second;
	struct piece v[40];

	setup(&f);
	f.r.endpoints = 2;
	first = serve(&f, 0, 0);
	first->ignore_range = true;
	first->cut = 1 << 20;
	second = serve(&f, 1, 0);
	start(&f);
	arrives(&f, v, cut(&f, v, 40, 0, 0, 100000, 0), true);
	assert_true(first->requests > 1);
	assert_true(second->ranged > 10);
	teardown(&f);
}

/* ---- stragglers ---- */

TEST(a_straggler_is_asked_for_again_and_the_faster_wins)
{
	for (int i = 0; i < 4; i++) {
		bool hang = i % 2, ordered = i / 2;
		struct fixture f;
		struct httpd_file *file;
		struct piece v[20];

		setup(&f);
		f.limits.stall_s = 60;
		file = serve(&f, 0, 0);
		file->only = true;
		file->only_from = ordered ? 200000 : 0;
		file->times = 1;
		file->hang = hang;
		file->drip_ms = hang ? 0 : 20;
		start(&f);
		arrives(&f, v, cut(&f, v, 20, 0, 0, 100000, 0), ordered);
		if (ordered)
			assert_int_equal(file->requests, 21);
		teardown(&f);
	}
}

TEST(a_run_that_stops_between_two_pieces_is_left_to_others)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v[20];

	setup(&f);
	f.limits.stall_s = 60;
	file = serve(&f, 0, 0);
	file->only = true;
	file->pause_at = 100000;
	file->times = 1;
	start(&f);
	arrives(&f, v, cut(&f, v, 20, 0, 0, 100000, 0), false);
	teardown(&f);
}

/* ---- all at once ---- */

struct reader {
	struct fixture *f;
	unsigned seed;
	size_t wanted;
	const char *wrong;
};

static size_t below(struct reader *r, size_t n)
{
	return (size_t)rand_r(&r->seed) % n;
}

/* Pieces of several blobs, by turns, with and without gaps, small and large. */
static size_t some_pieces(struct reader *r, struct piece v[60])
{
	size_t at[4] = {0}, n = 0;

	for (size_t tries = 0; n < 60 && tries < 200; tries++) {
		size_t blob = below(r, 3) ? r->seed % 2 : below(r, 4);
		size_t length = 1 + below(r, below(r, 4) ? 60000 : 900000);
		size_t from = at[blob] + (below(r, 2) ? below(r, 30000) : 0);

		if (from + length > BLOB)
			continue;
		cut(r->f, &v[n++], 1, (unsigned)blob, from, length, 0);
		at[blob] = from + length;
		r->wanted += length;
	}
	return n;
}

static void read_some(struct reader *r, bool ordered)
{
	struct piece v[60], *p;
	size_t n = some_pieces(r, v), got = 0, enough = below(r, 4) ? n : below(r, n);
	struct stream *s = stream_open(r->f->d, v, n, ordered);
	struct err e;

	for (; got < enough && stream_next(s, &p, &e) == 1; got++) {
		if (memcmp(p->data, r->f->data + p->offset, p->length) != 0)
			r->wrong = "other bytes";
		if (ordered && p != &v[got])
			r->wrong = "another piece's turn";
		if (below(r, 8) == 0)
			usleep((unsigned)below(r, 2000));
		stream_release(s, p);
	}
	if (got < enough)
		r->wrong = "a piece that did not come";
	stream_close(s);
}

static void *read_rounds(void *ctx)
{
	struct reader *r = ctx;

	for (int i = 0; i < 4; i++)
		read_some(r, below(r, 2));
	return NULL;
}

/* More than the memory holds, from two endpoints that break all the time: nobody waits for ever,
 * and not much is fetched twice. */
TEST(streams_of_all_kinds_end_while_memory_is_short_and_servers_break)
{
	for (unsigned seed = 1; seed <= 2; seed++) {
		struct fixture f;
		struct reader r[5];
		pthread_t t[5];
		size_t wanted = 0;

		setup(&f);
		f.r.endpoints = 2;
		f.limits.memory = 6 << 20;
		f.limits.connections = 8;
		serve(&f, 0, 0)->ignore_range = seed == 1;
		serve(&f, 0, 1)->cut = 700000;
		serve(&f, 0, 2)->status = 503;
		serve(&f, 0, 3)->cut = 3000000;
		for (unsigned i = 0; i < 4; i++)
			serve(&f, 1, i);
		start(&f);
		for (unsigned i = 0; i < 5; i++) {
			r[i] = (struct reader){.f = &f, .seed = seed * 100 + i};
			pthread_create(&t[i], NULL, read_rounds, &r[i]);
		}
		for (unsigned i = 0; i < 5; i++) {
			pthread_join(t[i], NULL);
			if (r[i].wrong)
				fail_msg("%s", r[i].wrong);
			wanted += r[i].wanted;
		}
		assert_true(download_received(f.d) < 8 * wanted);
		teardown(&f);
	}
}

/* ---- ends ---- */

TEST(closing_in_the_middle_ends_what_is_under_way)
{
	for (int whole = 0; whole < 2; whole++) {
		struct fixture f;
		struct httpd_file *file;
		struct piece v[40], *p = NULL;
		struct stream *s;

		setup(&f);
		f.limits.stall_s = 60;
		file = serve(&f, 0, 0);
		file->ignore_range = whole;
		file->hang = true; /* all but the first */
		file->only = true;
		file->only_from = 100000;
		serve(&f, 0, 1);
		start(&f);
		s = stream_open(f.d, v, cut(&f, v, 40, 0, 0, 100000, 0), false);
		assert_int_equal(stream_next(s, &p, &f.e), 1);
		stream_close(s); /* with p out */
		/* the engine goes on */
		arrives(&f, v, cut(&f, v, 40, 1, 0, 100000, 0), true);
		teardown(&f);
	}
}

TEST(closing_what_waits_to_be_tried_again_does_not_wait)
{
	struct fixture f;
	struct httpd_file *file;
	struct piece v[10];
	struct stream *s;

	setup(&f);
	file = serve(&f, 0, 0);
	file->status = 503;
	start(&f);
	s = stream_open(f.d, v, cut(&f, v, 10, 0, 0, 1000, 0), false);
	while (requests(&f, file) < 2)
		usleep(1000);
	stream_close(s);
	s = stream_open(f.d, v, cut(&f, v, 10, 0, 0, 1000, 0), false);
	stream_close(s); /* perhaps before anything began */
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(pieces_arrive_right_each_once_over_connections_that_are_kept),
	cmocka_unit_test(in_order_pieces_come_in_order_whatever_arrives_first),
	cmocka_unit_test(as_they_arrive_a_late_piece_holds_up_nobody),
	cmocka_unit_test(
		pieces_that_follow_each_other_share_requests_which_become_short_towards_the_end),
	cmocka_unit_test(a_blob_in_one_piece_is_asked_for_without_a_range),
	cmocka_unit_test(no_pieces_are_no_work),
	cmocka_unit_test(a_piece_outside_of_its_blob_is_refused),
	cmocka_unit_test(a_consumer_that_stops_bounds_what_is_asked_for),
	cmocka_unit_test(a_consumer_that_stops_bounds_what_is_read_of_runs_of_pieces),
	cmocka_unit_test(streams_share_memory_and_one_that_nobody_reads_does_not_stop_another),
	cmocka_unit_test(streams_in_order_do_not_wait_for_each_other),
	cmocka_unit_test(more_streams_than_memory_for_a_piece_of_each_still_end),
	cmocka_unit_test(several_threads_may_take_pieces),
	cmocka_unit_test(what_passes_is_tried_again_from_the_last_good_byte),
	cmocka_unit_test(a_body_that_is_cut_again_and_again_arrives_in_the_end),
	cmocka_unit_test(what_stays_wrong_is_an_error_that_names_blob_and_range),
	cmocka_unit_test(what_one_endpoint_lacks_comes_from_the_next),
	cmocka_unit_test(an_endpoint_that_is_passed_over_when_aiming_is_not_tried_for_ever),
	cmocka_unit_test(waiting_for_one_piece_does_not_hold_up_the_others),
	cmocka_unit_test(a_server_that_ignores_ranges_sends_the_blob_once),
	cmocka_unit_test(bytes_behind_the_last_piece_are_not_read),
	cmocka_unit_test(a_consumer_that_stops_bounds_what_is_read_of_a_whole_blob),
	cmocka_unit_test(a_whole_blob_that_breaks_is_begun_again_without_giving_pieces_twice),
	cmocka_unit_test(a_whole_blob_that_lies_about_its_end_is_an_error),
	cmocka_unit_test(whole_blobs_in_order_and_pieces_of_several_mixed),
	cmocka_unit_test(whole_blobs_one_after_the_other_in_order),
	cmocka_unit_test(a_whole_blob_that_nobody_reads_does_not_stop_another),
	cmocka_unit_test(where_the_next_endpoint_knows_ranges_they_are_used_again),
	cmocka_unit_test(a_straggler_is_asked_for_again_and_the_faster_wins),
	cmocka_unit_test(a_run_that_stops_between_two_pieces_is_left_to_others),
	cmocka_unit_test(streams_of_all_kinds_end_while_memory_is_short_and_servers_break),
	cmocka_unit_test(closing_in_the_middle_ends_what_is_under_way),
	cmocka_unit_test(closing_what_waits_to_be_tried_again_does_not_wait))
