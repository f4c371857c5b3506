#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/registry-call.h"
#include "images/registry.h"
#include "tests/helpers/fake-registry.h"

/* ---- a registry, another host, and a client ---- */

enum { DATA = 1 << 20, CHUNK = 64 << 10 };

struct fixture {
	struct fake a, b; /* the registry; a mirror, a token server or storage */
	struct config config;
	struct registry *r;
	struct err e;
	struct buf buf;
	char type[REGISTRY_TYPE];
	struct digest d;
	unsigned char *data;
	char auth_file[48];
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	setenv("no_proxy", "127.0.0.1", 1);
	setenv("REGISTRY_AUTH_FILE", "/nonexistent/auth.json", 1);
	f->buf.max = 16 << 20;
	f->data = mem_alloc(DATA);
	for (size_t i = 0; i < DATA; i++)
		f->data[i] = (unsigned char)(i * 2654435761U >> 13);
	f->d = digest_of(f->data, DATA);
	f->config.registries = json_object();
	fake_start(&f->a);
	fake_start(&f->b);
}

static void teardown(struct fixture *f)
{
	registry_close(f->r);
	fake_stop(&f->a);
	fake_stop(&f->b);
	buf_fini(&f->buf);
	json_decref(f->config.registries);
	free(f->data);
	if (f->auth_file[0])
		unlink(f->auth_file);
}

static void open_for(struct fixture *f, bool push, const char *mount_from)
{
	const struct registry_options o = {.config = &f->config,
		.host = f->a.host,
		.path = "team/app",
		.push = push,
		.mount_from = mount_from,
		.plain_http = true};

	registry_close(f->r);
	f->r = registry_open(&o, &f->e);
	if (!f->r)
		fail_msg("%s", f->e.text);
	f->r->backoff_ms = 1;
	f->r->chunk = CHUNK;
	for (size_t i = 0; i < f->r->n; i++)
		f->r->v[i].auth.tokens.backoff_ms = 1;
}

/* The registry has a mirror. */
static void with_mirror(struct fixture *f, const char *mirror)
{
	json_object_set_new(
		f->config.registries, f->a.host, json_pack("{s:[s]}", "mirrors", mirror));
	json_object_set_new(f->config.registries, f->b.host, json_pack("{s:b}", "plain-http", 1));
}

static void log_in(struct fixture *f, const char *host, const char *user_and_secret)
{
	int fd;
	auto_free char *text =
		mem_printf("{\"auths\":{\"%s\":{\"auth\":\"%s\"}}}", host, user_and_secret);

	snprintf(f->auth_file, sizeof(f->auth_file), "/tmp/svrun-test-auth-XXXXXX");
	fd = mkstemp(f->auth_file);
	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, text, strlen(text)), 0);
	close(fd);
	setenv("REGISTRY_AUTH_FILE", f->auth_file, 1);
}

static int manifest(struct fixture *f, const char *target)
{
	f->e = (struct err){0};
	return registry_manifest(f->r, target, &f->buf, f->type, &f->d, &f->e);
}

static void arrives(struct fixture *f, const char *target)
{
	if (manifest(f, target) < 0)
		fail_msg("%s", f->e.text);
	assert_string_equal(f->buf.data, "{\"schemaVersion\":2}");
}

static void says(struct fixture *f, enum err_kind kind, const char *words)
{
	if (f->e.kind != kind || !strstr(f->e.text, words))
		fail_msg("kind %s, '%s' lacks '%s'", err_kind_name(f->e.kind), f->e.text, words);
}

/* ---- manifests ---- */

TEST(a_manifest_arrives_with_its_type_and_digest)
{
	struct fixture f;
	struct digest want;

	setup(&f);
	f.a.type = "Application/vnd.oci.image.manifest.v1+json; charset=utf-8";
	open_for(&f, false, NULL);
	arrives(&f, "1.0");
	want = digest_of(f.a.manifest, strlen(f.a.manifest));
	assert_true(digest_eq(&want, &f.d));
	assert_string_equal(f.type, "application/vnd.oci.image.manifest.v1+json");
	assert_non_null(strstr(f.a.last_accept, "application/vnd.oci.image.index.v1+json"));
	assert_non_null(strstr(f.a.last_accept, "docker.distribution.manifest.list.v2+json"));
	assert_string_equal(f.a.last_authorization, "");
	assert_int_equal(registry_has_manifest(f.r, "1.0", &f.e), 1);
	assert_int_equal(f.a.w.connections, 1);
	teardown(&f);
}

TEST(a_manifest_with_another_digest_is_refused)
{
	struct fixture f;
	char text[DIGEST_TEXT + 1], field[128];
	struct digest other = digest_of("x", 1);

	setup(&f);
	open_for(&f, false, NULL);
	assert_int_equal(manifest(&f, digest_text(&other, text)), -1);
	says(&f, ERR_CORRUPT, text);
	snprintf(field, sizeof(field), "Docker-Content-Digest: %s", text);
	f.a.header = field; /* says one thing and sends another */
	assert_int_equal(manifest(&f, "latest"), -1);
	says(&f, ERR_CORRUPT, "team/app: manifest latest: expected sha256:");
	f.a.header = "Docker-Content-Digest: sha512:00"; /* not what we compute */
	arrives(&f, "latest");
	teardown(&f);
}

TEST(a_registrys_own_words_are_shown_and_made_harmless)
{
	struct fixture f;

	setup(&f);
	open_for(&f, false, NULL);
	f.a.status = 404;
	f.a.words = "{\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\","
		    "\"message\":\"no\\u001b[31m such \xc3\xa9\\nthing\"}]}";
	assert_int_equal(manifest(&f, "1.0"), -1);
	says(&f, ERR_NOT_FOUND,
		"team/app: manifest 1.0: HTTP status 404: MANIFEST_UNKNOWN: no?[31m such ???thing");
	assert_int_equal(registry_has_manifest(f.r, "1.0", &f.e), 0);
	f.a.words = "<html>not json</html>";
	assert_int_equal(manifest(&f, "1.0"), -1);
	assert_true(str_ends(f.e.text, "HTTP status 404"));
	teardown(&f);
}

TEST(a_manifest_beyond_the_limit_is_refused_while_it_comes)
{
	struct fixture f;
	char *big = mem_alloc(REGISTRY_MANIFEST_MAX + 2);

	setup(&f);
	open_for(&f, false, NULL);
	memset(big, ' ', REGISTRY_MANIFEST_MAX + 1);
	f.a.manifest = big;
	assert_int_equal(manifest(&f, "1.0"), -1);
	says(&f, ERR_CORRUPT, "longer than 8388608 bytes");
	teardown(&f);
	free(big);
}

TEST(what_passes_is_tried_again_and_what_stays_is_given_up)
{
	static const int passing[] = {408, 429, 500, 502, 503, 504, -1};
	struct fixture f;

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		setup(&f);
		open_for(&f, false, NULL);
		f.a.status = passing[i];
		f.a.times = EXCHANGE_TRIES - 1;
		arrives(&f, "1.0");
		assert_int_equal(f.a.failed, EXCHANGE_TRIES - 1);
		f.a.times = 0;
		f.a.failed = 0;
		assert_int_equal(manifest(&f, "1.0"), -1);
		says(&f, ERR_NETWORK, "team/app: manifest 1.0: ");
		/* libcurl itself tries again when a connection that was kept is closed */
		assert_in_range(f.a.failed, EXCHANGE_TRIES, EXCHANGE_TRIES + (passing[i] < 0));
		teardown(&f);
	}
}

TEST(waits_grow_and_have_bounds)
{
	for (unsigned n = 1; n <= 20; n++) {
		unsigned ms = exchange_wait_ms(0, 100, n), shift = n > 7 ? 6 : n - 1;

		assert_in_range(ms, 75U << shift, 125U << shift);
	}
	assert_in_range(exchange_wait_ms(3, 1, 1), 3000, 3001);
	assert_in_range(exchange_wait_ms(UINT64_MAX, 1, 1), 60000, 60001);
}

TEST(a_registry_that_is_not_there_is_named)
{
	struct fixture f;

	setup(&f);
	snprintf(f.a.host, sizeof(f.a.host), "127.0.0.1:1");
	open_for(&f, false, NULL);
	assert_int_equal(manifest(&f, "1.0"), -1);
	says(&f, ERR_NETWORK, "127.0.0.1:1/team/app: manifest 1.0: ");
	teardown(&f);
}

/* ---- blobs in one piece ---- */

TEST(a_blob_arrives_whole_or_is_refused)
{
	struct fixture f;
	struct digest other = digest_of("x", 1);
	struct digest none = digest_of("", 0);

	setup(&f);
	fake_has(&f.a, f.data, DATA);
	open_for(&f, false, NULL);
	assert_int_equal(registry_blob(f.r, &f.d, DATA, &f.buf, &f.e), 0);
	assert_int_equal(f.buf.len, DATA);
	assert_memory_equal(f.buf.data, f.data, DATA);
	assert_int_equal(f.buf.max, 16 << 20);
	assert_int_equal(registry_blob(f.r, &f.d, DATA - 1, &f.buf, &f.e), -1);
	says(&f, ERR_CORRUPT, "longer than 1048575 bytes");
	assert_int_equal(registry_blob(f.r, &f.d, DATA + 1, &f.buf, &f.e), -1);
	says(&f, ERR_CORRUPT, "expected 1048577 bytes, found 1048576");
	assert_int_equal(registry_blob(f.r, &f.d, 17 << 20, &f.buf, &f.e), -1);
	says(&f, ERR_CORRUPT, "more than the limit");
	assert_int_equal(registry_blob(f.r, &other, 1, &f.buf, &f.e), -1);
	says(&f, ERR_NOT_FOUND, "BLOB_UNKNOWN");
	digest_text(&other, f.a.digest); /* a registry that has something else */
	f.a.n = 1;
	assert_int_equal(registry_blob(f.r, &other, 1, &f.buf, &f.e), -1);
	says(&f, ERR_CORRUPT, "expected sha256:");
	fake_has(&f.a, "", 0);
	assert_int_equal(registry_blob(f.r, &none, 0, &f.buf, &f.e), 0);
	assert_int_equal(f.buf.len, 0);
	assert_string_equal(f.buf.data, "");
	teardown(&f);
}

/* ---- credentials ---- */

TEST(basic_credentials_are_sent_when_asked_for_and_only_then)
{
	struct fixture f;

	setup(&f);
	f.a.challenge = "Basic realm=\"x\"";
	f.a.authorization = "Basic dXNlcjpzZWNyZXQ="; /* user:secret */
	log_in(&f, f.a.host, "dXNlcjpzZWNyZXQ=");
	open_for(&f, false, NULL);
	arrives(&f, "1.0");
	assert_int_equal(f.a.refused, 1);
	arrives(&f, "1.1");
	assert_int_equal(f.a.refused, 1);
	f.a.challenge = NULL;
	open_for(&f, false, NULL);
	arrives(&f, "1.0");
	assert_string_equal(f.a.last_authorization, "");
	teardown(&f);
}

TEST(wrong_and_missing_credentials_are_told_from_each_other)
{
	struct fixture f;

	setup(&f);
	f.a.challenge = "Basic realm=\"x\"";
	f.a.authorization = "Basic dXNlcjpzZWNyZXQ=";
	open_for(&f, false, NULL);
	assert_int_equal(manifest(&f, "1.0"), -1);
	says(&f, ERR_DENIED, "asks for credentials, and has none here");
	assert_non_null(strstr(f.e.hint, "svrun image login 127.0.0.1:"));
	assert_int_equal(f.a.refused, 1);

	log_in(&f, f.a.host, "dXNlcjp3cm9uZw=="); /* user:wrong */
	open_for(&f, false, NULL);
	assert_int_equal(manifest(&f, "1.0"), -1);
	says(&f, ERR_DENIED, "HTTP status 401: UNAUTHORIZED: so it is");
	assert_non_null(strstr(f.e.hint, f.auth_file));
	assert_int_equal(f.a.refused, 3);

	f.a.challenge = "Negotiate";
	open_for(&f, false, NULL);
	assert_int_equal(manifest(&f, "1.0"), -1);
	says(&f, ERR_UNSUPPORTED, "asks for authentication by Negotiate");
	teardown(&f);
}

TEST(logging_in_is_tried_with_the_credentials_that_are_given)
{
	struct fixture f;

	setup(&f);
	f.a.challenge = "Basic realm=\"x\"";
	f.a.authorization = "Basic dXNlcjpzZWNyZXQ=";
	open_for(&f, false, NULL);
	assert_int_equal(registry_ping(f.r, "user", "secret", &f.e), 0);
	open_for(&f, false, NULL);
	assert_int_equal(registry_ping(f.r, "user", "wrong", &f.e), -1);
	says(&f, ERR_DENIED, "HTTP status 401");
	assert_non_null(strstr(f.a.log, "GET /v2/\n"));
	teardown(&f);
}

/* b is the token server of a. */
static void token_handle(struct webd *w, const struct webd_request *q, struct webd_reply *a)
{
	static _Thread_local char text[256];
	struct fixture *f = w->ctx;
	size_t at = strlen(f->b.log);

	snprintf(f->b.log + at, sizeof(f->b.log) - at, "%s %s\n", q->method, q->target);
	snprintf(f->b.last_authorization, sizeof(f->b.last_authorization), "%s",
		webd_field(q, "Authorization"));
	f->b.generation++;
	snprintf(text, sizeof(text), "{\"token\":\"t%u\",\"expires_in\":300}", f->b.generation);
	a->status = 200;
	a->body = text;
	a->n = strlen(text);
	if (f->b.status)
		fake_words(a, f->b.status, "DENIED");
}

static char *with_tokens(struct fixture *f)
{
	char *challenge = mem_printf("Bearer scope=\"repository:team/app:pull\",realm="
				     "\"http://%s/token?a=b\",service=\"the one\"",
		f->b.host);

	f->a.challenge = challenge;
	f->a.authorization = "Bearer t1";
	f->b.w.handle = token_handle;
	f->b.w.ctx = f;
	return challenge;
}

TEST(a_token_is_fetched_once_and_sent)
{
	struct fixture f;
	char *challenge;

	setup(&f);
	challenge = with_tokens(&f);
	log_in(&f, f.a.host, "dXNlcjpzZWNyZXQ=");
	open_for(&f, false, NULL);
	arrives(&f, "1.0");
	arrives(&f, "1.1");
	assert_int_equal(f.b.generation, 1);
	assert_string_equal(f.b.last_authorization, "Basic dXNlcjpzZWNyZXQ=");
	assert_string_equal(f.b.log,
		"GET /token?a=b&service=the%20one&scope=repository%3Ateam%2Fapp%3Apull&client_id="
		"svrun&account=user\n");
	teardown(&f);
	free(challenge);
}

TEST(a_token_that_ran_out_is_renewed_and_one_refused_from_the_start_is_not)
{
	struct fixture f;
	char *challenge;

	setup(&f);
	challenge = with_tokens(&f);
	open_for(&f, false, NULL);
	arrives(&f, "1.0");
	assert_string_equal(f.b.last_authorization, ""); /* anonymous */
	f.a.authorization = "Bearer t2";                 /* t1 ran out */
	arrives(&f, "1.1");
	assert_int_equal(f.b.generation, 2);
	f.a.authorization = "Bearer never";
	assert_int_equal(manifest(&f, "1.2"), -1);
	says(&f, ERR_DENIED, "HTTP status 401");
	assert_non_null(strstr(f.e.hint, "svrun image login"));
	assert_int_equal(f.b.generation, 3); /* t2 was good once, t3 never was */
	teardown(&f);
	free(challenge);
}

TEST(a_token_server_that_denies_is_named)
{
	struct fixture f;
	char *challenge;

	setup(&f);
	challenge = with_tokens(&f);
	f.b.status = 403;
	open_for(&f, false, NULL);
	assert_int_equal(manifest(&f, "1.0"), -1);
	says(&f, ERR_DENIED, "/token: HTTP status 403: DENIED: so it is");
	assert_null(strstr(f.e.text, "a=b")); /* queries may hold secrets */
	assert_int_equal(f.b.w.requests, 1);
	teardown(&f);
	free(challenge);
}

TEST(a_push_asks_for_what_it_needs)
{
	struct fixture f;
	char *challenge;

	setup(&f);
	challenge = with_tokens(&f);
	open_for(&f, true, "team/base");
	assert_int_equal(registry_has_blob(f.r, &f.d, &f.e), 0);
	assert_non_null(strstr(f.b.log, "scope=repository%3Ateam%2Fapp%3Apull%2Cpush&client_id"));
	f.a.authorization = "Bearer t2";
	assert_int_equal(registry_mount_blob(f.r, &f.d, &f.e), 1);
	assert_non_null(strstr(f.b.log, "scope=repository%3Ateam%2Fapp%3Apull%2Cpush&scope="
					"repository%3Ateam%2Fbase%3Apull&client_id"));
	teardown(&f);
	free(challenge);
}

TEST(a_scope_that_only_the_registry_knows_is_asked_for_too)
{
	struct fixture f;
	char *challenge;

	setup(&f);
	challenge = with_tokens(&f);
	free(challenge);
	challenge = mem_printf("Bearer realm=\"http://%s/token\",scope=\"repository:team/app:pull "
			       "repository:real/app:pull registry:catalog:*\"",
		f.b.host);
	f.a.challenge = challenge;
	open_for(&f, false, NULL);
	arrives(&f, "1.0");
	assert_non_null(
		strstr(f.b.log, "?scope=repository%3Ateam%2Fapp%3Apull&scope=repository%3A"
				"real%2Fapp%3Apull&scope=registry%3Acatalog%3A%2A&client_id"));
	teardown(&f);
	free(challenge);
}

/* ---- redirects ---- */

TEST(a_blob_whose_location_ran_out_is_asked_for_anew)
{
	struct fixture f;

	setup(&f);
	fake_has(&f.a, f.data, DATA);
	fake_has(&f.b, f.data, DATA);
	snprintf(f.a.redirect, sizeof(f.a.redirect), "http://%s/storage/x", f.b.host);
	f.b.status = 403;
	f.b.times = 2;
	open_for(&f, false, NULL);
	assert_int_equal(registry_blob(f.r, &f.d, DATA, &f.buf, &f.e), 0);
	assert_int_equal(f.a.blobs, 3);
	f.b.times = 0;
	assert_int_equal(registry_blob(f.r, &f.d, DATA, &f.buf, &f.e), -1);
	says(&f, ERR_NETWORK, "where it led: HTTP status 403");
	assert_string_equal(f.e.hint, "");
	teardown(&f);
}

TEST(authorization_stays_with_the_origin_that_asked_for_it)
{
	struct fixture f;

	setup(&f);
	fake_has(&f.a, f.data, DATA);
	fake_has(&f.b, f.data, DATA);
	f.a.challenge = "Basic realm=\"x\"";
	f.a.authorization = "Basic dXNlcjpzZWNyZXQ=";
	log_in(&f, f.a.host, "dXNlcjpzZWNyZXQ=");
	open_for(&f, false, NULL);
	snprintf(f.a.redirect, sizeof(f.a.redirect), "http://%s/storage/x?sig=1", f.b.host);
	strncpy(f.b.last_authorization, "none came", sizeof(f.b.last_authorization) - 1);
	assert_int_equal(registry_blob(f.r, &f.d, DATA, &f.buf, &f.e), 0);
	assert_string_equal(f.b.last_authorization, "");
	snprintf(f.a.redirect, sizeof(f.a.redirect), "/storage/x");
	assert_int_equal(registry_blob(f.r, &f.d, DATA, &f.buf, &f.e), 0);
	assert_string_equal(f.a.last_authorization, "Basic dXNlcjpzZWNyZXQ=");
	teardown(&f);
}

TEST(redirects_to_nowhere_and_without_end_are_refused)
{
	static const struct {
		const char *to, *words;
		enum err_kind kind;
	} cases[] = {
		{"file:///etc/passwd", "malformed", ERR_CORRUPT},
		{"ftp://registry.example/x", "malformed", ERR_CORRUPT},
		{"http://user:secret@registry.example/x", "malformed", ERR_CORRUPT},
		{"http://registry.example/a b", "malformed", ERR_CORRUPT},
	};
	struct fixture f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(&f);
		fake_has(&f.a, f.data, DATA);
		open_for(&f, false, NULL);
		snprintf(f.a.redirect, sizeof(f.a.redirect), "%s", cases[i].to);
		assert_int_equal(registry_blob(f.r, &f.d, DATA, &f.buf, &f.e), -1);
		says(&f, cases[i].kind, cases[i].words);
		teardown(&f);
	}
	setup(&f);
	fake_has(&f.a, f.data, DATA);
	open_for(&f, false, NULL);
	snprintf(f.a.redirect, sizeof(f.a.redirect), "/v2/team/app/blobs/%s", f.a.digest);
	assert_int_equal(registry_blob(f.r, &f.d, DATA, &f.buf, &f.e), -1);
	says(&f, ERR_NETWORK, "more than 5 redirects");
	assert_int_equal(f.a.blobs, 6);
	teardown(&f);
}

/* ---- mirrors ---- */

TEST(a_mirror_is_asked_first_and_under_its_prefix)
{
	struct fixture f;
	char mirror[64];

	setup(&f);
	snprintf(mirror, sizeof(mirror), "%s", f.b.host);
	with_mirror(&f, mirror);
	open_for(&f, false, NULL);
	assert_int_equal(registry_endpoints(f.r), 2);
	arrives(&f, "1.0");
	assert_int_equal(f.a.w.requests, 0);
	assert_int_equal(f.b.manifests, 1);

	snprintf(mirror, sizeof(mirror), "%s/cache/of/it/", f.b.host);
	with_mirror(&f, mirror);
	open_for(&f, false, NULL);
	arrives(&f, "1.0"); /* the mirror has no such repository */
	assert_non_null(strstr(f.b.log, "GET /v2/cache/of/it/team/app/manifests/1.0\n"));
	assert_int_equal(f.a.manifests, 1);
	open_for(&f, true, NULL);
	assert_int_equal(registry_endpoints(f.r), 1);
	teardown(&f);
}

TEST(a_mirror_that_does_not_do_is_passed_over)
{
	static const int statuses[] = {404, 503, 401, 403, -1};
	struct fixture f;

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		setup(&f);
		with_mirror(&f, f.b.host);
		fake_has(&f.a, f.data, DATA);
		f.b.status = statuses[i];
		open_for(&f, false, NULL);
		arrives(&f, "1.0");
		assert_int_equal(f.a.manifests, 1);
		f.d = digest_of(f.data, DATA);
		assert_int_equal(registry_blob(f.r, &f.d, DATA, &f.buf, &f.e), 0);
		assert_int_equal(f.a.blobs, 1);
		f.a.status = 404;
		assert_int_equal(manifest(&f, "1.0"), -1);
		says(&f, ERR_NOT_FOUND, f.a.host);
		teardown(&f);
	}
}

TEST(a_mirror_with_wrong_content_is_passed_over)
{
	struct fixture f;
	struct digest d;
	char text[DIGEST_TEXT + 1];

	setup(&f);
	with_mirror(&f, f.b.host);
	f.b.manifest = "{\"schemaVersion\":3}";
	d = digest_of(f.a.manifest, strlen(f.a.manifest));
	open_for(&f, false, NULL);
	arrives(&f, digest_text(&d, text));
	assert_int_equal(f.b.manifests, 1);
	teardown(&f);
}

TEST(a_mirror_that_cannot_be_reached_is_left_alone)
{
	struct fixture f;

	setup(&f);
	with_mirror(&f, "127.0.0.1:1");
	open_for(&f, false, NULL);
	arrives(&f, "1.0");
	assert_true(endpoint_down(&f.r->v[0]));
	arrives(&f, "1.1");
	teardown(&f);
}

/* ---- pieces: aim and judge ---- */

struct piece_try {
	enum registry_verdict verdict;
	long status;
	unsigned wait_ms, endpoint;
	bool redirected;
	size_t n;
};

static size_t count(char *data, size_t size, size_t n, void *ctx)
{
	(void)data;
	*(size_t *)ctx += size * n;
	return size * n;
}

/* One try of the first 100 bytes. */
static struct piece_try try_piece(struct fixture *f, CURL *h, unsigned endpoint, unsigned tries)
{
	struct piece_try t = {0};
	struct registry_aim a;
	CURLcode code;

	f->e = (struct err){0};
	if (registry_aim(f->r, endpoint, &f->d, h, &a, &f->e) < 0)
		fail_msg("%s", f->e.text);
	curl_easy_setopt(h, CURLOPT_RANGE, "0-99");
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, count);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, &t.n);
	code = curl_easy_perform(h);
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &t.status);
	t.endpoint = a.endpoint;
	t.redirected = a.redirected;
	t.verdict = registry_judge(f->r, &a, &f->d, h, code, tries, &t.wait_ms, &f->e);
	registry_aim_fini(&a);
	return t;
}

/* As a downloader does: until OK or FAILED. Returns the number of requests. */
static unsigned fetch_piece(struct fixture *f, CURL *h, struct piece_try *last)
{
	unsigned endpoint = 0, tries = 0, n = 0;

	for (;;) {
		*last = try_piece(f, h, endpoint, ++tries);
		n++;
		if (last->verdict == REGISTRY_NEXT) {
			endpoint = last->endpoint + 1;
			tries = 0;
		} else if (last->verdict != REGISTRY_AGAIN) {
			return n;
		}
		assert_in_range(n, 1, 30);
	}
}

TEST(a_piece_is_authorized_and_arrives)
{
	struct fixture f;
	struct piece_try t;
	CURL *h;
	char *challenge;

	setup(&f);
	h = curl_easy_init();
	challenge = with_tokens(&f);
	fake_has(&f.a, f.data, DATA);
	open_for(&f, false, NULL);
	assert_int_equal(fetch_piece(&f, h, &t), 1);
	assert_int_equal(t.verdict, REGISTRY_OK);
	assert_int_equal(t.n, 100);
	f.a.authorization = "Bearer t2"; /* in the middle of a long transfer */
	assert_int_equal(fetch_piece(&f, h, &t), 2);
	assert_int_equal(t.verdict, REGISTRY_OK);
	f.a.authorization = "Bearer never";
	fetch_piece(&f, h, &t);
	assert_int_equal(t.verdict, REGISTRY_FAILED);
	says(&f, ERR_DENIED, "HTTP status 401");
	curl_easy_cleanup(h);
	teardown(&f);
	free(challenge);
}

TEST(a_location_is_remembered_while_it_works)
{
	struct fixture f;
	struct piece_try t;
	CURL *h;

	setup(&f);
	h = curl_easy_init();
	fake_has(&f.a, f.data, DATA);
	fake_has(&f.b, f.data, DATA);
	snprintf(f.a.redirect, sizeof(f.a.redirect), "http://%s/storage/x?sig=1", f.b.host);
	f.a.challenge = "Basic realm=\"x\"";
	f.a.authorization = "Basic dXNlcjpzZWNyZXQ=";
	log_in(&f, f.a.host, "dXNlcjpzZWNyZXQ=");
	open_for(&f, false, NULL);
	assert_int_equal(fetch_piece(&f, h, &t), 2);
	assert_true(t.verdict == REGISTRY_OK && t.redirected && t.n == 100);
	for (int i = 0; i < 5; i++)
		assert_int_equal(fetch_piece(&f, h, &t), 1);
	assert_int_equal(f.a.blobs, 1);
	assert_int_equal(f.b.blobs, 6);
	assert_string_equal(f.b.last_authorization, "");
	teardown(&f);
	curl_easy_cleanup(h);
}

TEST(a_location_that_ran_out_is_asked_for_anew)
{
	static const int statuses[] = {400, 401, 403, 404, 410};
	struct fixture f;
	struct piece_try t;

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		CURL *h;

		setup(&f);
		h = curl_easy_init();
		fake_has(&f.a, f.data, DATA);
		fake_has(&f.b, f.data, DATA);
		snprintf(f.a.redirect, sizeof(f.a.redirect), "http://%s/storage/x?sig=1", f.b.host);
		open_for(&f, false, NULL);
		fetch_piece(&f, h, &t);
		f.b.status = statuses[i];
		f.b.fail_in = "sig=1";
		snprintf(f.a.redirect, sizeof(f.a.redirect), "http://%s/storage/x?sig=2", f.b.host);
		assert_int_equal(fetch_piece(&f, h, &t), 3);
		assert_int_equal(t.verdict, REGISTRY_OK);
		f.b.fail_in = "sig=2"; /* and when none ever works */
		fetch_piece(&f, h, &t);
		assert_int_equal(t.verdict, REGISTRY_FAILED);
		says(&f, ERR_NETWORK, "where the registry led: HTTP status");
		f.a.status = 404; /* only the registry itself can say that */
		f.a.fail_method = "GET";
		fetch_piece(&f, h, &t);
		assert_int_equal(t.verdict, REGISTRY_FAILED);
		says(&f, ERR_NOT_FOUND, "HTTP status 404");
		curl_easy_cleanup(h);
		teardown(&f);
	}
}

TEST(redirects_of_pieces_are_as_limited_as_others)
{
	struct fixture f;
	struct piece_try t;
	CURL *h;

	setup(&f);
	h = curl_easy_init();
	fake_has(&f.a, f.data, DATA);
	open_for(&f, false, NULL);
	snprintf(f.a.redirect, sizeof(f.a.redirect), "/v2/team/app/blobs/%s", f.a.digest);
	fetch_piece(&f, h, &t);
	assert_int_equal(t.verdict, REGISTRY_FAILED);
	says(&f, ERR_NETWORK, "redirects without end");
	snprintf(f.a.redirect, sizeof(f.a.redirect), "file:///etc/passwd");
	open_for(&f, false, NULL);
	assert_int_equal(fetch_piece(&f, h, &t), 1);
	says(&f, ERR_CORRUPT, "malformed");
	teardown(&f);
	curl_easy_cleanup(h);
}

TEST(a_busy_registry_says_how_long_to_wait)
{
	static const struct {
		const char *header;
		unsigned least, most;
	} cases[] = {
		{"Retry-After: 2", 2000, 2100},
		{"Retry-After: 86400", 60000, 60100},
		{"Retry-After: Thu, 01 Jan 2099 00:00:00 GMT", 60000, 60100},
		{"Retry-After: soon", 0, 100},
	};
	struct fixture f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct piece_try t;
		CURL *h;

		setup(&f);
		h = curl_easy_init();
		fake_has(&f.a, f.data, DATA);
		f.a.status = 429;
		f.a.fail_method = "GET";
		f.a.header = cases[i].header;
		open_for(&f, false, NULL);
		t = try_piece(&f, h, 0, 1);
		assert_int_equal(t.verdict, REGISTRY_AGAIN);
		if (t.wait_ms < cases[i].least || t.wait_ms > cases[i].most)
			fail_msg("%s: %u ms", cases[i].header, t.wait_ms);
		assert_int_equal(try_piece(&f, h, 0, 5).verdict, REGISTRY_AGAIN);
		assert_int_equal(try_piece(&f, h, 0, 6).verdict, REGISTRY_FAILED);
		says(&f, ERR_NETWORK, "HTTP status 429");
		curl_easy_cleanup(h);
		teardown(&f);
	}
}

TEST(pieces_pass_over_a_mirror_that_does_not_do)
{
	static const int statuses[] = {404, 500, 403, -1};
	struct fixture f;

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		struct piece_try t;
		CURL *h;

		setup(&f);
		h = curl_easy_init();
		with_mirror(&f, f.b.host);
		fake_has(&f.a, f.data, DATA);
		f.b.status = statuses[i];
		open_for(&f, false, NULL);
		fetch_piece(&f, h, &t);
		assert_int_equal(t.verdict, REGISTRY_OK);
		assert_int_equal(t.endpoint, 1);
		assert_true(f.b.w.requests > 0);
		curl_easy_cleanup(h);
		teardown(&f);
	}
	setup(&f);
	with_mirror(&f, "127.0.0.1:1");
	fake_has(&f.a, f.data, DATA);
	open_for(&f, false, NULL);
	{
		CURL *h = curl_easy_init();
		struct piece_try t;

		assert_in_range(fetch_piece(&f, h, &t), 1, 2);
		assert_int_equal(t.verdict, REGISTRY_OK);
		assert_int_equal(fetch_piece(&f, h, &t), 1); /* left alone from now on */
		curl_easy_cleanup(h);
	}
	teardown(&f);
}

TEST(a_piece_that_breaks_off_is_tried_again_six_times)
{
	struct fixture f;
	struct piece_try t;
	CURL *h;

	setup(&f);
	h = curl_easy_init();
	fake_has(&f.a, f.data, DATA);
	f.a.status = -1;
	f.a.fail_method = "GET";
	open_for(&f, false, NULL);
	assert_int_equal(fetch_piece(&f, h, &t), EXCHANGE_TRIES);
	assert_int_equal(t.verdict, REGISTRY_FAILED);
	says(&f, ERR_NETWORK, "team/app: blob sha256:");
	curl_easy_cleanup(h);
	teardown(&f);
}

/* ---- many at once ---- */

enum { THREADS = 8, PIECES = 60 };

struct worker {
	struct fixture *f;
	pthread_t thread;
	unsigned failed;
	char text[256];
};

static void *fetch_many(void *ctx)
{
	struct worker *w = ctx;
	CURL *h = curl_easy_init();

	for (unsigned i = 0; i < PIECES; i++) {
		struct fixture own = {.r = w->f->r, .d = w->f->d}; /* its own error */
		struct piece_try t;

		fetch_piece(&own, h, &t);
		if (t.verdict != REGISTRY_OK || t.n != 100) {
			w->failed++;
			snprintf(w->text, sizeof(w->text), "%.255s", own.e.text);
		}
	}
	curl_easy_cleanup(h);
	return NULL;
}

/* Tokens and locations that run out all the time, but not before every thread must have heard that
 * they were good: what never was good is no reason to go on. */
static void nervous_handle(struct webd *w, const struct webd_request *q, struct webd_reply *a)
{
	static char token[64];
	struct fixture *f = w->ctx;
	char newest[32];

	if (strstr(q->target, "/storage/")) {
		snprintf(newest, sizeof(newest), "?sig=%u.", f->a.sessions);
		if (strstr(q->target, newest))
			fake_data(&f->a, q, a, f->a.blob, f->a.n);
		else
			a->status = 403;
		f->a.sessions += ++f->a.blobs % (3 * THREADS) == 0;
		return;
	}
	if (f->a.heads > THREADS) {
		snprintf(token, sizeof(token), "Bearer t%u", ++f->a.manifests);
		f->a.authorization = token;
		f->a.heads = 0;
	}
	if (!fake_let_in(&f->a, q, a))
		return;
	f->a.heads++;
	a->status = 307;
	webd_head(a, "Location: /storage/x?sig=%u.", f->a.sessions);
}

TEST(many_threads_renew_tokens_and_locations_once)
{
	struct fixture f;
	struct worker w[THREADS] = {0};
	char *challenge;

	setup(&f);
	challenge = with_tokens(&f);
	fake_has(&f.a, f.data, DATA);
	f.a.manifests = 1;
	f.a.w.handle = nervous_handle;
	f.a.w.ctx = &f;
	open_for(&f, false, NULL);
	for (size_t i = 0; i < THREADS; i++) {
		w[i].f = &f;
		assert_int_equal(pthread_create(&w[i].thread, NULL, fetch_many, &w[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	for (size_t i = 0; i < THREADS; i++)
		if (w[i].failed)
			fail_msg("%u: %s", w[i].failed, w[i].text);
	assert_true(f.a.manifests > 1);
	assert_int_equal(f.b.generation, f.a.manifests);
	teardown(&f);
	free(challenge);
}

/* ---- pushing ---- */

static int upload(struct fixture *f, size_t n)
{
	int fd = memfd_create("blob", MFD_CLOEXEC), rc;

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, f->data, n), 0);
	f->d = digest_of(f->data, n);
	f->e = (struct err){0};
	rc = registry_upload(f->r, &f->d, fd, n, NULL, &f->e);
	close(fd);
	return rc;
}

static void is_there(struct fixture *f, size_t n)
{
	if (f->e.text[0])
		fail_msg("%s\n%s", f->e.text, f->a.log);
	assert_int_equal(f->a.n, n);
	assert_memory_equal(f->a.blob, f->data, n);
	assert_int_equal(registry_has_blob(f->r, &f->d, &f->e), 1);
}

TEST(a_blob_is_uploaded_in_chunks_and_a_small_one_at_once)
{
	static const size_t sizes[] = {0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, DATA - 7};
	struct fixture f;

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i / 2];

		setup(&f);
		f.a.relative = i % 2;
		open_for(&f, true, NULL);
		upload(&f, n);
		is_there(&f, n);
		assert_int_equal(f.a.patches, n > CHUNK ? (n + CHUNK - 1) / CHUNK : 0);
		assert_int_equal(f.a.puts, 1);
		assert_int_equal(f.a.deletes, 0);
		teardown(&f);
	}
}

TEST(a_registry_says_how_big_chunks_must_be)
{
	struct fixture f;

	setup(&f);
	f.a.min_chunk = 300000;
	open_for(&f, true, NULL);
	upload(&f, DATA);
	is_there(&f, DATA);
	assert_int_equal(f.a.patches, 4);
	teardown(&f);
}

TEST(an_upload_goes_on_after_what_broke_it)
{
	struct fixture f;

	setup(&f); /* in the middle of a chunk */
	f.a.w.take = CHUNK / 3;
	open_for(&f, true, NULL);
	upload(&f, 4 * CHUNK);
	is_there(&f, 4 * CHUNK);
	assert_int_equal(f.a.sessions, 1);
	assert_in_range(f.a.patches, 5, 6); /* 6 when libcurl sent the chunk again by itself: 416 */
	teardown(&f);

	setup(&f); /* with what passes, at every kind of request */
	for (size_t i = 0; i < 3; i++) {
		static const char *const methods[] = {"POST", "PATCH", "PUT"};

		f.a.fail_method = methods[i];
		f.a.status = 503;
		f.a.times = 2;
		f.a.failed = f.a.sessions = 0;
		f.a.digest[0] = '\0';
		open_for(&f, true, NULL);
		upload(&f, 4 * CHUNK);
		is_there(&f, 4 * CHUNK);
		assert_int_equal(f.a.failed, 2);
		assert_int_equal(f.a.sessions, 1);
	}
	teardown(&f);

	setup(&f); /* its session is forgotten */
	f.a.forget = true;
	open_for(&f, true, NULL);
	upload(&f, 4 * CHUNK);
	is_there(&f, 4 * CHUNK);
	assert_int_equal(f.a.sessions, 2);
	teardown(&f);

	setup(&f); /* the connection breaks when all is done */
	f.a.fail_method = "PUT";
	f.a.status = -1;
	fake_has(&f.a, f.data, CHUNK);
	open_for(&f, true, NULL);
	upload(&f, CHUNK);
	is_there(&f, CHUNK);
	assert_in_range(f.a.failed, 1, 2);
	teardown(&f);
}

TEST(a_registry_without_chunks_and_one_with_a_small_limit_are_served)
{
	struct fixture f;

	setup(&f);
	f.a.no_patch = true;
	open_for(&f, true, NULL);
	upload(&f, DATA);
	is_there(&f, DATA);
	teardown(&f);

	setup(&f);
	f.a.limit = 300 << 10;
	open_for(&f, true, NULL);
	f.r->chunk = DATA;
	upload(&f, DATA);
	is_there(&f, DATA);
	assert_int_equal(f.a.patches, 4);
	teardown(&f);
}

TEST(an_upload_that_fails_for_good_is_cancelled)
{
	struct fixture f;

	setup(&f);
	f.a.fail_method = "PATCH";
	f.a.status = 503;
	open_for(&f, true, NULL);
	assert_int_equal(upload(&f, 4 * CHUNK), -1);
	says(&f, ERR_NETWORK, "HTTP status 503");
	assert_int_equal(f.a.failed, EXCHANGE_TRIES);
	assert_int_equal(f.a.deletes, 1);
	teardown(&f);

	setup(&f); /* other bytes than said */
	open_for(&f, true, NULL);
	{
		int fd = memfd_create("blob", MFD_CLOEXEC);

		assert_int_equal(sys_write_all(fd, f.data + 1, 1000), 0);
		f.d = digest_of(f.data, 1000);
		assert_int_equal(registry_upload(f.r, &f.d, fd, 1000, NULL, &f.e), -1);
		says(&f, ERR_CORRUPT, "DIGEST_INVALID");
		assert_int_equal(registry_upload(f.r, &f.d, fd, 2000, NULL, &f.e), -1);
		says(&f, ERR_SYSTEM, "read what is to be uploaded");
		close(fd);
	}
	assert_int_equal(f.a.deletes, 2);
	teardown(&f);
}

TEST(a_token_is_renewed_in_the_middle_of_an_upload)
{
	struct fixture f;
	char *challenge;

	setup(&f);
	challenge = with_tokens(&f);
	open_for(&f, true, NULL);
	assert_int_equal(registry_has_blob(f.r, &f.d, &f.e), 0);
	f.a.authorization = "Bearer t2";
	upload(&f, 4 * CHUNK);
	is_there(&f, 4 * CHUNK);
	assert_int_equal(f.b.generation, 2);
	teardown(&f);
	free(challenge);
}

TEST(a_blob_is_mounted_or_not)
{
	struct fixture f;

	setup(&f);
	open_for(&f, true, "team/base");
	assert_int_equal(registry_mount_blob(f.r, &f.d, &f.e), 1);
	assert_int_equal(f.a.deletes, 0);
	open_for(&f, true, "team/other");
	assert_int_equal(registry_mount_blob(f.r, &f.d, &f.e), 0);
	assert_int_equal(f.a.deletes, 1); /* of the session that was opened instead */
	open_for(&f, true, NULL);
	assert_int_equal(registry_mount_blob(f.r, &f.d, &f.e), 0);
	teardown(&f);
}

TEST(a_blob_behind_a_redirect_is_there)
{
	struct fixture f;

	setup(&f);
	fake_has(&f.a, f.data, DATA);
	fake_has(&f.b, f.data, DATA);
	snprintf(f.a.redirect, sizeof(f.a.redirect), "http://%s/storage/x", f.b.host);
	f.b.fail_method = "HEAD"; /* signed for GET */
	f.b.status = 403;
	open_for(&f, true, NULL);
	assert_int_equal(registry_has_blob(f.r, &f.d, &f.e), 1);
	assert_int_equal(f.b.ranges, 1);
	teardown(&f);
}

TEST(a_manifest_is_put_and_its_digest_compared)
{
	struct fixture f;
	const char *type = "application/vnd.oci.image.manifest.v1+json";

	setup(&f);
	open_for(&f, true, NULL);
	assert_int_equal(
		registry_put_manifest(f.r, "1.0", type, f.a.manifest, strlen(f.a.manifest), &f.e),
		0);
	assert_int_equal(registry_put_manifest(f.r, "1.0", type, "{}", 2, &f.e), -1);
	says(&f, ERR_CORRUPT, "as the registry has it");
	f.a.status = 400;
	f.a.words = "{\"errors\":[{\"code\":\"MANIFEST_BLOB_UNKNOWN\"}]}";
	assert_int_equal(registry_put_manifest(f.r, "1.0", type, "{}", 2, &f.e), -1);
	says(&f, ERR_NETWORK, "manifest 1.0: HTTP status 400: MANIFEST_BLOB_UNKNOWN");
	assert_int_equal(registry_put_manifest(f.r, "1.0", "a/b\r\nX-Evil: 1", "{}", 2, &f.e), -1);
	says(&f, ERR_CORRUPT, "a media type that is none");
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(a_manifest_arrives_with_its_type_and_digest),
	cmocka_unit_test(a_manifest_with_another_digest_is_refused),
	cmocka_unit_test(a_registrys_own_words_are_shown_and_made_harmless),
	cmocka_unit_test(a_manifest_beyond_the_limit_is_refused_while_it_comes),
	cmocka_unit_test(what_passes_is_tried_again_and_what_stays_is_given_up),
	cmocka_unit_test(waits_grow_and_have_bounds),
	cmocka_unit_test(a_registry_that_is_not_there_is_named),
	cmocka_unit_test(a_blob_arrives_whole_or_is_refused),
	cmocka_unit_test(basic_credentials_are_sent_when_asked_for_and_only_then),
	cmocka_unit_test(wrong_and_missing_credentials_are_told_from_each_other),
	cmocka_unit_test(logging_in_is_tried_with_the_credentials_that_are_given),
	cmocka_unit_test(a_token_is_fetched_once_and_sent),
	cmocka_unit_test(a_token_that_ran_out_is_renewed_and_one_refused_from_the_start_is_not),
	cmocka_unit_test(a_token_server_that_denies_is_named),
	cmocka_unit_test(a_push_asks_for_what_it_needs),
	cmocka_unit_test(a_scope_that_only_the_registry_knows_is_asked_for_too),
	cmocka_unit_test(a_blob_whose_location_ran_out_is_asked_for_anew),
	cmocka_unit_test(authorization_stays_with_the_origin_that_asked_for_it),
	cmocka_unit_test(redirects_to_nowhere_and_without_end_are_refused),
	cmocka_unit_test(a_mirror_is_asked_first_and_under_its_prefix),
	cmocka_unit_test(a_mirror_that_does_not_do_is_passed_over),
	cmocka_unit_test(a_mirror_with_wrong_content_is_passed_over),
	cmocka_unit_test(a_mirror_that_cannot_be_reached_is_left_alone),
	cmocka_unit_test(a_piece_is_authorized_and_arrives),
	cmocka_unit_test(a_location_is_remembered_while_it_works),
	cmocka_unit_test(a_location_that_ran_out_is_asked_for_anew),
	cmocka_unit_test(redirects_of_pieces_are_as_limited_as_others),
	cmocka_unit_test(a_busy_registry_says_how_long_to_wait),
	cmocka_unit_test(pieces_pass_over_a_mirror_that_does_not_do),
	cmocka_unit_test(a_piece_that_breaks_off_is_tried_again_six_times),
	cmocka_unit_test(many_threads_renew_tokens_and_locations_once),
	cmocka_unit_test(a_blob_is_uploaded_in_chunks_and_a_small_one_at_once),
	cmocka_unit_test(a_registry_says_how_big_chunks_must_be),
	cmocka_unit_test(an_upload_goes_on_after_what_broke_it),
	cmocka_unit_test(a_registry_without_chunks_and_one_with_a_small_limit_are_served),
	cmocka_unit_test(an_upload_that_fails_for_good_is_cancelled),
	cmocka_unit_test(a_token_is_renewed_in_the_middle_of_an_upload),
	cmocka_unit_test(a_blob_is_mounted_or_not),
	cmocka_unit_test(a_blob_behind_a_redirect_is_there),
	cmocka_unit_test(a_manifest_is_put_and_its_digest_compared))
