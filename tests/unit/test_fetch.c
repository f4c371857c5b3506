#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/fetch.h"
#include "tests/helpers/httpd.h"

/* ---- a store in a scratch folder, and a server with one file ---- */

enum { BIG = 3 << 20 };

struct fixture {
	char dir[32];
	struct store s;
	struct httpd h;
	struct err e;
	struct arena arena;
	unsigned char *data; /* BIG bytes */
};

static const struct fetch_limits quick = {
	.parallel = 24,
	.tries = 3,
	.backoff_ms = 10,
	.retry_after_s = 1,
	.connect_s = 2,
	.stall_s = 1,
	.stall_bytes = 100,
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	setenv("no_proxy", "127.0.0.1", 1);
	snprintf(f->dir, sizeof(f->dir), "/tmp/svrun-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->s.path = f->dir;
	f->s.fd = sys_open(f->dir, O_RDONLY | O_DIRECTORY, 0);
	assert_true(f->s.fd >= 0);
	f->data = mem_alloc(BIG);
	for (size_t i = 0; i < BIG; i++)
		f->data[i] = (unsigned char)(i * 2654435761U >> 13);
	httpd_start(&f->h);
}

static void teardown(struct fixture *f)
{
	httpd_stop(&f->h);
	close(f->s.fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
	arena_fini(&f->arena);
	free(f->data);
}

static struct input input_of(struct fixture *f, const char *path, const void *p, size_t n)
{
	struct input in = {.name = "thing 1.0",
		.url = arena_printf(&f->arena, "http://127.0.0.1:%d%s", f->h.port, path),
		.kind = HASH_SHA256,
		.size = n,
		.max = n};
	struct digest d = digest_of(p, n);

	memcpy(in.digest, d.b, DIGEST_SIZE);
	return in;
}

static struct input serve_big(struct fixture *f, struct httpd_file **file)
{
	*file = httpd_add(&f->h, "/big", f->data, BIG);
	return input_of(f, "/big", f->data, BIG);
}

static int fetch(struct fixture *f, const struct input *in)
{
	return fetch_all(&f->s, in, 1, &quick, NULL, &f->e);
}

/* "cache/sha256/HEX" -> "cache/partial/sha256-HEX" */
static void partial_path(const struct input *in, char out[CACHE_NAME + 16])
{
	char name[CACHE_NAME];

	cache_name(in, name);
	name[strlen("cache/sha256")] = '-';
	snprintf(out, CACHE_NAME + 16, "cache/partial/%s", name + strlen("cache/"));
}

/* Bytes of an earlier run. */
static void leave_partial(struct fixture *f, const struct input *in, const void *p, size_t n)
{
	char path[CACHE_NAME + 16];
	int fd;

	partial_path(in, path);
	assert_int_equal(sys_mkdir_p(f->s.fd, "cache/partial", 0755), 0);
	fd = sys_openat(f->s.fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, p, n), 0);
	close(fd);
}

static off_t partial_size(struct fixture *f, const struct input *in)
{
	char path[CACHE_NAME + 16];
	struct stat st;

	partial_path(in, path);
	return sys_fstatat(f->s.fd, path, &st, 0) < 0 ? -1 : st.st_size;
}

static void is_cached(struct fixture *f, const struct input *in)
{
	int fd = cache_open(&f->s, in, &f->e);

	if (fd < 0)
		fail_msg("%s", f->e.text);
	assert_int_equal(cache_verify(&f->s, in, fd, &f->e), 0);
	close(fd);
	assert_int_equal(partial_size(f, in), -1);
}

static void arrives(struct fixture *f, const struct input *in)
{
	if (fetch(f, in) < 0)
		fail_msg("%s", f->e.text);
	is_cached(f, in);
}

static void fails(struct fixture *f, const struct input *in, enum err_kind kind, const char *words)
{
	assert_int_equal(fetch(f, in), -1);
	if (f->e.kind != kind || !strstr(f->e.text, words) || !strstr(f->e.text, in->name))
		fail_msg("kind %s, '%s' lacks '%s' or the name", err_kind_name(f->e.kind),
			f->e.text, words);
	assert_false(cache_has(&f->s, in));
}

/* ---- what goes well ---- */

TEST(many_files_arrive_over_few_connections)
{
	enum { MANY = 200 };
	struct fixture f;
	struct input *in;

	setup(&f);
	in = arena_alloc(&f.arena, MANY * sizeof(*in));
	for (size_t i = 0; i < MANY; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/%zu", i);
		httpd_add(&f.h, path, f.data + i, 1000 + i * 7);
		in[i] = input_of(&f, path, f.data + i, 1000 + i * 7);
	}
	assert_int_equal(fetch_all(&f.s, in, MANY, &quick, NULL, &f.e), 0);
	for (size_t i = 0; i < MANY; i++) {
		is_cached(&f, &in[i]);
		assert_int_equal(f.h.files[i].requests, 1);
	}
	assert_true(f.h.connections <= quick.parallel);
	assert_int_equal(f.h.identity, MANY);
	/* nothing left to do: no request */
	assert_int_equal(fetch_all(&f.s, in, MANY, &quick, NULL, &f.e), 0);
	assert_int_equal(f.h.identity, MANY);
	teardown(&f);
}

TEST(one_content_at_two_places_is_fetched_once)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in[3];

	setup(&f);
	in[0] = in[1] = in[2] = serve_big(&f, &file);
	in[1].name = "thing again";
	assert_int_equal(fetch_all(&f.s, in, 3, &quick, NULL, &f.e), 0);
	is_cached(&f, in);
	assert_int_equal(file->requests, 1);
	teardown(&f);
}

TEST(sha512_of_unknown_size_and_empty_files_arrive)
{
	struct fixture f;
	struct input in, none;
	struct hash h;

	setup(&f);
	httpd_add(&f.h, "/a", f.data, BIG)->no_length = true;
	httpd_add(&f.h, "/empty", "", 0);
	in = input_of(&f, "/a", f.data, BIG);
	in.kind = HASH_SHA512;
	in.size = 0;
	hash_init(&h, HASH_SHA512);
	hash_add(&h, f.data, BIG);
	hash_final(&h, in.digest);
	arrives(&f, &in);
	none = input_of(&f, "/empty", "", 0);
	arrives(&f, &none);
	teardown(&f);
}

TEST(redirects_are_followed_ten_times_and_only_to_http)
{
	struct fixture f;
	struct input in;
	char target[96];

	setup(&f);
	httpd_add(&f.h, "/end", f.data, 100);
	for (int i = 0; i < 12; i++) {
		char path[16];
		struct httpd_file *hop;

		snprintf(path, sizeof(path), "/hop%d", i);
		hop = httpd_add(&f.h, path, "", 0);
		hop->status = 302;
		hop->header = i ? arena_printf(&f.arena, "Location: /hop%d\r\n", i - 1)
				: "Location: /end\r\n";
	}
	in = input_of(&f, "/hop11", f.data, 100);
	fails(&f, &in, ERR_NETWORK, "redirects");
	in = input_of(&f, "/hop9", f.data, 100);
	arrives(&f, &in);

	snprintf(target, sizeof(target), "Location: file://%s/x\r\n", f.dir);
	httpd_add(&f.h, "/file", "", 0)->status = 302;
	f.h.files[f.h.nfiles - 1].header = target;
	in = input_of(&f, "/file", f.data, 101);
	fails(&f, &in, ERR_UNSUPPORTED, "file");
	teardown(&f);
}

TEST(file_addresses_work_and_resume)
{
	struct fixture f;
	struct input in;
	char url[64];
	int fd;

	setup(&f);
	snprintf(url, sizeof(url), "file://%s/src", f.dir);
	in = input_of(&f, "/", f.data, BIG);
	in.url = url;
	fails(&f, &in, ERR_NOT_FOUND, "src");
	fd = sys_openat(f.s.fd, "src", O_WRONLY | O_CREAT, 0644);
	assert_int_equal(sys_write_all(fd, f.data, BIG), 0);
	close(fd);
	leave_partial(&f, &in, f.data, BIG / 2);
	arrives(&f, &in);

	in = input_of(&f, "/", f.data, BIG / 2); /* another file than was locked */
	in.url = url;
	fails(&f, &in, ERR_CORRUPT, "expected 1572864 bytes, found 3145728");
	teardown(&f);
}

/* ---- going on where an earlier run stopped ---- */

TEST(a_partial_file_is_resumed)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	in = serve_big(&f, &file);
	leave_partial(&f, &in, f.data, 1000000);
	arrives(&f, &in);
	assert_int_equal(file->requests, 1);
	assert_int_equal(file->range_start, 1000000);
	assert_int_equal(f.h.sent, BIG - 1000000);
	teardown(&f);
}

TEST(a_complete_partial_file_needs_no_server)
{
	static const uint64_t sizes[] = {BIG, 0};
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	for (size_t i = 0; i < 2; i++) {
		setup(&f);
		in = serve_big(&f, &file);
		in.size = sizes[i];
		leave_partial(&f, &in, f.data, BIG);
		arrives(&f, &in);
		assert_int_equal(file->requests, 0);
		teardown(&f);
	}
}

TEST(a_server_without_ranges_starts_over)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	in = serve_big(&f, &file);
	file->ignore_range = true;
	leave_partial(&f, &in, f.data, 1000000);
	arrives(&f, &in);
	assert_int_equal(file->requests, 1);
	teardown(&f);
}

TEST(another_range_than_asked_for_starts_over)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	in = serve_big(&f, &file);
	file->wrong_range = true;
	leave_partial(&f, &in, f.data, 1000000);
	arrives(&f, &in);
	assert_int_equal(file->requests, 2);
	assert_int_equal(file->ranged, 1);
	teardown(&f);
}

TEST(a_partial_file_of_something_else_starts_over)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	in = serve_big(&f, &file);
	leave_partial(&f, &in, f.data + 1, 1000000);
	arrives(&f, &in);
	assert_int_equal(file->requests, 2);
	assert_int_equal(file->ranged, 1);
	teardown(&f);
}

TEST(a_partial_file_longer_than_it_may_be_starts_over)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	file = httpd_add(&f.h, "/a", f.data, 1000);
	in = input_of(&f, "/a", f.data, 1000);
	leave_partial(&f, &in, f.data, 2000); /* than its size: no range is asked for */
	arrives(&f, &in);
	assert_int_equal(file->ranged, 0);
	teardown(&f);

	setup(&f);
	file = httpd_add(&f.h, "/a", f.data, 1000);
	in = input_of(&f, "/a", f.data, 1000);
	in.size = 0;
	in.max = 5000;
	leave_partial(&f, &in, f.data + 1, 2000); /* than the server has: 416 */
	arrives(&f, &in);
	assert_int_equal(file->requests, 2);
	assert_int_equal(file->ranged, 1);
	teardown(&f);
}

TEST(a_complete_partial_file_with_wrong_bytes_starts_over)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	in = serve_big(&f, &file);
	f.data[0] ^= 1;
	leave_partial(&f, &in, f.data, BIG);
	f.data[0] ^= 1;
	arrives(&f, &in);
	assert_int_equal(file->requests, 1);
	teardown(&f);
}

TEST(a_killed_fetch_is_resumed)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;
	off_t got;
	pid_t pid;

	setup(&f);
	in = serve_big(&f, &file);
	file->times = 1;
	file->cut = BIG / 3;
	file->claim = BIG;
	file->header = "X-First: 1\r\n";
	pid = fork();
	if (pid == 0) {
		struct fetch_limits slow = quick;

		slow.backoff_ms = 60000; /* sits there with what it got */
		(void)!fetch_all(&f.s, &in, 1, &slow, NULL, NULL);
		_exit(1);
	}
	for (int i = 0; i < 500 && partial_size(&f, &in) < BIG / 3; i++)
		usleep(10000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	got = partial_size(&f, &in);
	assert_int_equal(got, BIG / 3);
	arrives(&f, &in);
	assert_int_equal(file->requests, 2);
	assert_int_equal(file->range_start, got);
	teardown(&f);
}

/* ---- two at once ---- */

struct second {
	struct fixture *f;
	const struct input *in;
	int rc;
	struct err e;
};

static void *fetch_too(void *ctx)
{
	struct second *s = ctx;

	s->rc = fetch_all(&s->f->s, s->in, 1, &quick, NULL, &s->e);
	return NULL;
}

TEST(two_at_once_do_the_work_once)
{
	enum { SECONDS = 4 };
	struct fixture f;
	struct httpd_file *file;
	struct input in;
	pthread_t threads[SECONDS];
	struct second s[SECONDS];

	setup(&f);
	in = serve_big(&f, &file);
	file->delay_ms = 200;
	for (int i = 0; i < SECONDS; i++) {
		s[i] = (struct second){.f = &f, .in = &in};
		assert_int_equal(pthread_create(&threads[i], NULL, fetch_too, &s[i]), 0);
	}
	for (int i = 0; i < SECONDS; i++) {
		pthread_join(threads[i], NULL);
		if (s[i].rc < 0)
			fail_msg("%s", s[i].e.text);
	}
	is_cached(&f, &in);
	assert_int_equal(file->requests, 1);
	teardown(&f);
}

/* ---- faults that pass ---- */

TEST(a_broken_transfer_goes_on_from_its_last_byte)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	in = serve_big(&f, &file);
	file->cut = BIG / 10; /* every time: but each one gets on */
	arrives(&f, &in);
	assert_int_equal(file->requests, 11);
	assert_int_equal(f.h.sent, BIG);
	teardown(&f);
}

TEST(statuses_that_pass_are_tried_again)
{
	static const int passing[] = {500, 502, 503, 504, 429, 408};
	struct fixture f;

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		struct httpd_file *file;
		struct input in;

		setup(&f);
		in = serve_big(&f, &file);
		file->status = passing[i];
		file->times = 2;
		arrives(&f, &in);
		assert_int_equal(file->requests, 3);
		teardown(&f);
	}
}

TEST(retry_after_is_waited_for_up_to_the_limit)
{
	static const struct {
		const char *header;
		double min_ms, max_ms;
	} cases[] = {
		{"Retry-After: 1\r\n", 1000, 1900},
		{"Retry-After: 86400\r\n", 1000, 1900}, /* the limit is 1 s */
		{"Retry-After: Thu, 01 Jan 2099 00:00:00 GMT\r\n", 1000, 1900},
		{"Retry-After: soon\r\n", 0, 900},
	};
	struct fixture f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct httpd_file *file;
		struct input in;
		double start = sys_now_ms(), ms;

		setup(&f);
		in = serve_big(&f, &file);
		file->status = 429;
		file->times = 1;
		file->header = cases[i].header;
		arrives(&f, &in);
		ms = sys_now_ms() - start;
		if (ms < cases[i].min_ms || ms > cases[i].max_ms)
			fail_msg("%s: %f ms", cases[i].header, ms);
		teardown(&f);
	}
}

/* ---- faults that do not ---- */

TEST(a_missing_file_hints_at_a_new_lock)
{
	static const int gone[] = {404, 410};
	struct fixture f;

	for (size_t i = 0; i < 2; i++) {
		struct httpd_file *file;
		struct input in;

		setup(&f);
		in = serve_big(&f, &file);
		file->status = gone[i];
		fails(&f, &in, ERR_NOT_FOUND, in.url);
		assert_int_equal(file->requests, 1);
		assert_non_null(strstr(f.e.hint, "svrun image lock"));
		teardown(&f);
	}
}

TEST(other_statuses_fail_at_once)
{
	static const struct {
		int status;
		enum err_kind kind;
	} cases[] = {{400, ERR_NETWORK}, {401, ERR_DENIED}, {403, ERR_DENIED}, {204, ERR_NETWORK},
		{304, ERR_NETWORK}};
	struct fixture f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct httpd_file *file;
		struct input in;
		char words[32];

		setup(&f);
		in = serve_big(&f, &file);
		file->status = cases[i].status;
		snprintf(words, sizeof(words), "HTTP status %d", cases[i].status);
		fails(&f, &in, cases[i].kind, words);
		assert_int_equal(file->requests, 1);
		teardown(&f);
	}
}

TEST(a_server_that_stays_sick_is_given_up)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	in = serve_big(&f, &file);
	file->status = 503;
	fails(&f, &in, ERR_NETWORK, "HTTP status 503, after 3 tries");
	assert_int_equal(file->requests, 3);
	assert_non_null(strstr(f.e.hint, "goes on from there"));
	teardown(&f);
}

TEST(what_never_gets_further_is_given_up)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	in = serve_big(&f, &file);
	file->cut = BIG / 2;
	file->ignore_range = true;
	fails(&f, &in, ERR_NETWORK, "after 3 tries");
	assert_in_range(file->requests, 3, 4);
	assert_int_equal(partial_size(&f, &in), BIG / 2); /* kept */
	teardown(&f);
}

TEST(wrong_bytes_are_named_with_both_digests_and_deleted)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;
	char hex[2 * HASH_MAX + 1];

	setup(&f);
	in = serve_big(&f, &file);
	file->flip = BIG / 2;
	hex_encode(in.digest, DIGEST_SIZE, hex);
	fails(&f, &in, ERR_CORRUPT, hex);
	f.data[BIG / 2 - 1] ^= 1;
	in = input_of(&f, "/big", f.data, BIG);
	hex_encode(in.digest, DIGEST_SIZE, hex);
	assert_non_null(strstr(f.e.text, "expected sha256:"));
	assert_non_null(strstr(f.e.text, "found sha256:"));
	assert_non_null(strstr(f.e.text, hex));
	assert_non_null(strstr(f.e.text, in.url));
	assert_int_equal(file->requests, 1);
	assert_int_equal(sys_unlinkat(f.s.fd, "cache/partial", AT_REMOVEDIR), 0); /* empty */
	teardown(&f);
}

TEST(wrong_lengths_are_refused_before_the_body)
{
	struct fixture f;
	struct httpd_file *file;
	struct input in;

	setup(&f);
	file = httpd_add(&f.h, "/a", f.data, BIG);
	file->drip_ms = 1000; /* whoever reads the body gets old */
	in = input_of(&f, "/a", f.data, BIG - 1);
	fails(&f, &in, ERR_CORRUPT, "expected 3145727 bytes, found 3145728");
	in.size = 0;
	in.max = 1000;
	fails(&f, &in, ERR_CORRUPT, "3145728 bytes, more than the limit of 1000");
	assert_int_equal(file->requests, 2);
	assert_int_equal(partial_size(&f, &in), -1);
	teardown(&f);
}

TEST(an_endless_body_is_cut_at_the_size)
{
	static const uint64_t sizes[] = {BIG, 0};
	struct fixture f;

	for (size_t i = 0; i < 2; i++) {
		struct httpd_file *file;
		struct input in;

		setup(&f);
		in = serve_big(&f, &file);
		file->endless = true;
		in.size = sizes[i];
		fails(&f, &in, ERR_CORRUPT, "3145728 bytes");
		assert_int_equal(file->requests, 1);
		assert_int_equal(partial_size(&f, &in), -1);
		teardown(&f);
	}
}

TEST(silence_and_dripping_are_given_up)
{
	static const struct {
		bool hang;
		unsigned drip_ms;
	} cases[] = {{.hang = true}, {.drip_ms = 500}};
	struct fixture f;

	for (size_t i = 0; i < 2; i++) {
		struct httpd_file *file;
		struct input in;
		double start = sys_now_ms();

		setup(&f);
		in = serve_big(&f, &file);
		file->hang = cases[i].hang;
		file->drip_ms = cases[i].drip_ms;
		fails(&f, &in, ERR_NETWORK, "after 3 tries");
		assert_true(sys_now_ms() - start < 15000);
		assert_int_equal(file->requests, 3);
		teardown(&f);
	}
}

TEST(no_server_is_a_network_error)
{
	struct fixture f;
	struct input in;

	setup(&f);
	in = input_of(&f, "/a", f.data, 10);
	in.url = "http://127.0.0.1:1/a";
	fails(&f, &in, ERR_NETWORK, "127.0.0.1:1/a");
	in.url = "ftp://127.0.0.1/a";
	fails(&f, &in, ERR_UNSUPPORTED, "ftp");
	teardown(&f);
}

/* Lines that fetch_all() prints about inputs that all fail. */
static int lines_of_failure(struct fixture *f, const struct input *in, size_t n)
{
	struct progress *p = progress_new(PROGRESS_PLAIN);
	FILE *told = tmpfile();
	int saved = dup(2), lines = 0;

	assert_non_null(told);
	assert_int_equal(dup2(fileno(told), 2), 2);
	assert_int_equal(fetch_all(&f->s, in, n, &quick, p, &f->e), -1);
	assert_int_equal(dup2(saved, 2), 2);
	close(saved);
	progress_free(p);
	rewind(told);
	for (char line[1024]; fgets(line, sizeof(line), told);)
		lines += strstr(line, "; again in ") != NULL;
	fclose(told);
	return lines;
}

TEST(without_a_network_one_failure_is_told_for_all)
{
	enum { MANY = 20 };
	struct fixture f;
	struct input in[MANY];

	setup(&f);
	for (size_t i = 0; i < MANY; i++) {
		in[i] = input_of(&f, "/a", f.data + i, 10);
		in[i].url = "http://127.0.0.1:1/a";
	}
	assert_int_equal(lines_of_failure(&f, in, MANY), 1);
	assert_int_equal(f.e.kind, ERR_NETWORK);
	teardown(&f);
}

TEST(passwords_in_addresses_are_not_shown)
{
	struct fixture f;
	struct input in;

	setup(&f);
	in = input_of(&f, "/a", f.data, 10);
	in.url = arena_printf(&f.arena, "http://me:s3cret@127.0.0.1:%d/missing", f.h.port);
	fails(&f, &in, ERR_NOT_FOUND, "http://127.0.0.1:");
	assert_null(strstr(f.e.text, "s3cret"));
	teardown(&f);
}

TEST(one_failure_keeps_what_others_have)
{
	struct fixture f;
	struct input in[2];

	setup(&f);
	httpd_add(&f.h, "/slow", f.data, BIG)->cut = BIG / 2;
	f.h.files[0].times = 1;
	f.h.files[0].claim = BIG;
	httpd_add(&f.h, "/bad", f.data, 10)->status = 404;
	f.h.files[1].delay_ms = 300;
	in[0] = input_of(&f, "/slow", f.data, BIG);
	in[1] = input_of(&f, "/bad", f.data, 10);

	struct fetch_limits slow = quick;

	slow.backoff_ms = 5000;
	assert_int_equal(fetch_all(&f.s, in, 2, &slow, NULL, &f.e), -1);
	assert_int_equal(f.e.kind, ERR_NOT_FOUND);
	assert_int_equal(partial_size(&f, &in[0]), BIG / 2);
	arrives(&f, &in[0]);
	teardown(&f);
}

TEST(a_full_disk_says_where_and_how_much_is_missing)
{
	struct fixture f;
	struct input in[2];

	/* a mount namespace of its own: nothing is left on the host, however this ends */
	if (unshare(CLONE_NEWNS) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		print_message("skipped: needs root to mount a small tmpfs\n");
		skip();
		return;
	}
	setup(&f);
	close(f.s.fd);
	assert_int_equal(sys_mount("tmpfs", f.dir, "tmpfs", 0, "size=1m"), 0);
	f.s.fd = sys_open(f.dir, O_RDONLY | O_DIRECTORY, 0);
	httpd_add(&f.h, "/big", f.data, BIG);
	httpd_add(&f.h, "/small", f.data, 1000);
	in[0] = input_of(&f, "/big", f.data, BIG);
	in[1] = input_of(&f, "/small", f.data, 1000);
	fails(&f, &in[0], ERR_SYSTEM, "No space left on device");
	if (!strstr(f.e.hint, f.dir) || !strstr(f.e.hint, "MiB more needed"))
		fail_msg("hint: %s", f.e.hint);

	/* more room: it goes on from there */
	assert_int_equal(sys_mount("tmpfs", f.dir, "tmpfs", MS_REMOUNT, "size=8m"), 0);
	arrives(&f, &in[0]);
	assert_true(f.h.files[0].range_start > 0);
	arrives(&f, &in[1]);
	close(f.s.fd);
	assert_int_equal(sys_umount2(f.dir, MNT_DETACH), 0);
	f.s.fd = sys_open(f.dir, O_RDONLY | O_DIRECTORY, 0);
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(many_files_arrive_over_few_connections),
	cmocka_unit_test(one_content_at_two_places_is_fetched_once),
	cmocka_unit_test(sha512_of_unknown_size_and_empty_files_arrive),
	cmocka_unit_test(redirects_are_followed_ten_times_and_only_to_http),
	cmocka_unit_test(file_addresses_work_and_resume),
	cmocka_unit_test(a_partial_file_is_resumed),
	cmocka_unit_test(a_complete_partial_file_needs_no_server),
	cmocka_unit_test(a_server_without_ranges_starts_over),
	cmocka_unit_test(another_range_than_asked_for_starts_over),
	cmocka_unit_test(a_partial_file_of_something_else_starts_over),
	cmocka_unit_test(a_partial_file_longer_than_it_may_be_starts_over),
	cmocka_unit_test(a_complete_partial_file_with_wrong_bytes_starts_over),
	cmocka_unit_test(a_killed_fetch_is_resumed), cmocka_unit_test(two_at_once_do_the_work_once),
	cmocka_unit_test(a_broken_transfer_goes_on_from_its_last_byte),
	cmocka_unit_test(statuses_that_pass_are_tried_again),
	cmocka_unit_test(retry_after_is_waited_for_up_to_the_limit),
	cmocka_unit_test(a_missing_file_hints_at_a_new_lock),
	cmocka_unit_test(other_statuses_fail_at_once),
	cmocka_unit_test(a_server_that_stays_sick_is_given_up),
	cmocka_unit_test(what_never_gets_further_is_given_up),
	cmocka_unit_test(wrong_bytes_are_named_with_both_digests_and_deleted),
	cmocka_unit_test(wrong_lengths_are_refused_before_the_body),
	cmocka_unit_test(an_endless_body_is_cut_at_the_size),
	cmocka_unit_test(silence_and_dripping_are_given_up),
	cmocka_unit_test(no_server_is_a_network_error),
	cmocka_unit_test(without_a_network_one_failure_is_told_for_all),
	cmocka_unit_test(passwords_in_addresses_are_not_shown),
	cmocka_unit_test(one_failure_keeps_what_others_have),
	cmocka_unit_test(a_full_disk_says_where_and_how_much_is_missing))
