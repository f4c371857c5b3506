#include "tests/unit/test.h"

#include <stdlib.h>

#include "base/str.h"
#include "images/auth.h"
#include "images/token.h"
#include "tests/helpers/webd.h"

/* ---- a realm, and somebody who asks there ---- */

struct fixture {
	struct webd w;
	struct http http;
	struct http_site site; /* of the registry */
	struct tokens t;
	struct credential credential;
	struct token_ask ask;
	char realm[64];
	char *value;
	unsigned generation;
	struct err e;

	/* what the realm answers */
	int status, post_status; /* 0: as it should be */
	const char *answer;      /* "%u" is the number of the token */
	const char *header;

	/* what came */
	unsigned gets, posts;
	char target[4096], body[4096], authorization[256];
};

static double clock_ms;

static double now(void)
{
	return clock_ms;
}

static void answer(struct webd *w, const struct webd_request *q, struct webd_reply *a)
{
	static _Thread_local char text[TOKEN_MAX + 1024];
	struct fixture *f = w->ctx;
	bool post = strcmp(q->method, "POST") == 0;
	int status = post ? f->post_status : f->status;

	f->posts += post;
	f->gets += !post;
	snprintf(f->target, sizeof(f->target), "%s", q->target);
	snprintf(f->body, sizeof(f->body), "%.*s", (int)q->n, (const char *)q->body);
	snprintf(f->authorization, sizeof(f->authorization), "%s", webd_field(q, "Authorization"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), f->answer, f->gets + f->posts);
#pragma GCC diagnostic pop
	a->status = status ? status : 200;
	a->body = text;
	a->n = strlen(text);
	if (f->header)
		webd_head(a, "%s", f->header);
}

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	setenv("no_proxy", "127.0.0.1,localhost", 1);
	setenv("REGISTRY_AUTH_FILE", "/nonexistent/auth.json", 1);
	f->answer = "{\"token\":\"t%u\",\"expires_in\":300}";
	webd_start(&f->w, answer, f);
	http_open(&f->http, NULL);
	f->site.host = mem_strdup("registry.example");
	f->site.plain = true;
	tokens_init(&f->t);
	f->t.now_ms = now;
	f->t.backoff_ms = 1;
	clock_ms = 1000;
	snprintf(f->realm, sizeof(f->realm), "http://127.0.0.1:%d/token", f->w.port);
	f->ask = (struct token_ask){.http = &f->http,
		.site = &f->site,
		.realm = f->realm,
		.service = "service",
		.scope = "repository:a/b:pull",
		.credential = &f->credential};
}

static void teardown(struct fixture *f)
{
	free(f->value);
	free(f->credential.user);
	free(f->credential.secret);
	free(f->credential.identity);
	free(f->site.host);
	tokens_fini(&f->t);
	http_close(&f->http);
	webd_stop(&f->w);
}

static int get(struct fixture *f)
{
	free(f->value);
	f->value = NULL;
	f->e = (struct err){0};
	return tokens_get(&f->t, &f->ask, &f->value, &f->generation, &f->e);
}

static void gets(struct fixture *f, const char *value)
{
	if (get(f) < 0)
		fail_msg("%s", f->e.text);
	assert_string_equal(f->value, value);
}

static void fails(struct fixture *f, enum err_kind kind, const char *words)
{
	assert_int_equal(get(f), -1);
	if (f->e.kind != kind || !strstr(f->e.text, words))
		fail_msg("kind %s, '%s' lacks '%s'", err_kind_name(f->e.kind), f->e.text, words);
}

/* ---- how it is asked for ---- */

TEST(nobody_in_particular_asks_with_get)
{
	struct fixture f;

	setup(&f);
	gets(&f, "Bearer t1");
	assert_string_equal(
		f.target, "/token?service=service&scope=repository%3Aa%2Fb%3Apull&client_id=svrun");
	assert_string_equal(f.authorization, "");
	f.ask.service = f.ask.scope = "";
	gets(&f, "Bearer t2");
	assert_string_equal(f.target, "/token?client_id=svrun");
	teardown(&f);
}

TEST(a_user_asks_with_basic)
{
	struct fixture f;

	setup(&f);
	f.credential.user = mem_strdup("us&er");
	f.credential.secret = mem_strdup("secret");
	gets(&f, "Bearer t1");
	assert_string_equal(f.authorization, "Basic dXMmZXI6c2VjcmV0");
	assert_non_null(strstr(f.target, "&account=us%26er"));
	teardown(&f);
}

TEST(an_identity_token_is_posted)
{
	struct fixture f;

	setup(&f);
	f.credential.identity = mem_strdup("id&1");
	f.answer = "{\"access_token\":\"t%u\",\"refresh_token\":\"id2\",\"expires_in\":300}";
	f.ask.scope = "repository:a/b:pull,push repository:c:pull";
	gets(&f, "Bearer t1");
	assert_string_equal(f.body,
		"grant_type=refresh_token&refresh_token=id%261&service=service&client_id=svrun&"
		"scope=repository%3Aa%2Fb%3Apull%2Cpush%20repository%3Ac%3Apull");
	assert_string_equal(f.authorization, "");
	clock_ms += 400e3;
	gets(&f, "Bearer t2"); /* with the one that came with the first */
	assert_non_null(strstr(f.body, "refresh_token=id2&"));
	teardown(&f);
}

TEST(a_realm_that_does_not_know_post_is_asked_with_get)
{
	static const int statuses[] = {404, 405};
	struct fixture f;

	for (size_t i = 0; i < 2; i++) {
		setup(&f);
		f.credential.identity = mem_strdup("id1");
		f.post_status = statuses[i];
		gets(&f, "Bearer t2");
		assert_true(f.posts == 1 && f.gets == 1);
		assert_string_equal(f.authorization, "Basic PHRva2VuPjppZDE="); /* <token>:id1 */
		teardown(&f);
	}
	setup(&f);
	f.credential.identity = mem_strdup("id1");
	f.post_status = 401;
	f.answer = "{\"details\":\"no\\u0007pe %u\"}";
	fails(&f, ERR_DENIED, "/token: HTTP status 401: no?pe 1");
	assert_true(f.posts == 1 && f.gets == 0);
	assert_string_equal(f.e.hint, "svrun image login registry.example");
	teardown(&f);
}

/* ---- how long it is kept ---- */

TEST(tokens_are_kept_until_shortly_before_they_end)
{
	static const struct {
		const char *answer, *header;
		double good_s; /* it is renewed right after this */
	} cases[] = {
		{"{\"token\":\"t%u\",\"expires_in\":300}", NULL, 290},
		{"{\"token\":\"t%u\"}", NULL, 50},
		{"{\"token\":\"t%u\",\"expires_in\":0}", NULL, 50},
		{"{\"token\":\"t%u\",\"expires_in\":-5}", NULL, 50},
		{"{\"token\":\"t%u\",\"expires_in\":\"300\"}", NULL, 50},
		{"{\"token\":\"t%u\",\"expires_in\":8}", NULL, 6},
		{"{\"token\":\"t%u\",\"expires_in\":300,\"issued_at\":\"2026-01-01T00:00:00Z\"}",
			"Date: Thu, 01 Jan 2026 00:01:40 GMT", 190},
		/* a clock that is wrong, a time that is none */
		{"{\"token\":\"t%u\",\"expires_in\":300,\"issued_at\":\"2030-01-01T00:00:00Z\"}",
			"Date: Thu, 01 Jan 2026 00:01:40 GMT", 290},
		{"{\"token\":\"t%u\",\"expires_in\":300,\"issued_at\":\"2020-01-01T00:00:00Z\"}",
			"Date: Thu, 01 Jan 2026 00:01:40 GMT", 290},
		{"{\"token\":\"t%u\",\"expires_in\":300,\"issued_at\":\"yesterday\"}", NULL, 290},
		{"{\"token\":\"t%u\",\"expires_in\":1e300}", NULL, 365 * 86400 - 10},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		setup(&f);
		f.answer = cases[i].answer;
		f.header = cases[i].header;
		gets(&f, "Bearer t1");
		clock_ms += cases[i].good_s * 1e3 - 1;
		gets(&f, "Bearer t1");
		clock_ms += 2;
		gets(&f, "Bearer t2");
		teardown(&f);
	}
}

TEST(each_realm_service_and_scope_has_its_own)
{
	struct fixture f;
	char other[64];

	setup(&f);
	gets(&f, "Bearer t1");
	f.ask.scope = "repository:a/b:pull,push";
	gets(&f, "Bearer t2");
	f.ask.service = "another";
	gets(&f, "Bearer t3");
	snprintf(other, sizeof(other), "http://127.0.0.1:%d/other", f.w.port);
	f.ask.realm = other;
	gets(&f, "Bearer t4");
	f.ask.realm = f.realm;
	f.ask.service = "service";
	f.ask.scope = "repository:a/b:pull";
	gets(&f, "Bearer t1");
	teardown(&f);
}

TEST(a_token_that_was_good_is_asked_for_anew_when_it_is_refused)
{
	struct fixture f;
	unsigned first;

	setup(&f);
	gets(&f, "Bearer t1");
	first = f.generation;
	assert_false(tokens_refuse(&f.t, first)); /* it never was */
	gets(&f, "Bearer t2");
	assert_int_not_equal(f.generation, first);
	assert_true(tokens_refuse(&f.t, first)); /* there is a newer one */
	gets(&f, "Bearer t2");
	tokens_prove(&f.t, f.generation);
	assert_true(tokens_refuse(&f.t, f.generation));
	gets(&f, "Bearer t3");
	teardown(&f);
}

/* ---- many at once ---- */

static void *get_one(void *ctx)
{
	struct fixture *f = ctx;
	char *value = NULL;
	unsigned generation;
	struct err e = {0};

	if (tokens_get(&f->t, &f->ask, &value, &generation, &e) < 0)
		return mem_strdup(e.text);
	return value;
}

TEST(who_comes_while_one_is_fetched_waits_for_it)
{
	enum { MANY = 16 };
	struct fixture f;
	pthread_t threads[MANY];

	setup(&f);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, get_one, &f), 0);
	for (int i = 0; i < MANY; i++) {
		void *value;

		pthread_join(threads[i], &value);
		assert_string_equal(value, "Bearer t1");
		free(value);
	}
	assert_int_equal(f.gets, 1);
	teardown(&f);
}

/* ---- what is not accepted ---- */

TEST(a_realm_without_tls_is_refused_by_a_registry_with_it)
{
	static const char *const realms[] = {"http://127.0.0.1:%d/token", "HTTP://127.0.0.1:%d/"};
	struct fixture f;

	setup(&f);
	f.site.plain = false;
	f.credential.user = mem_strdup("user");
	f.credential.secret = mem_strdup("secret");
	for (size_t i = 0; i < 2; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(f.realm, sizeof(f.realm), realms[i], f.w.port);
#pragma GCC diagnostic pop
		fails(&f, ERR_DENIED, "leads from https to http");
	}
	assert_int_equal(f.w.connections, 0);
	teardown(&f);
}

TEST(realms_that_are_no_addresses_are_refused)
{
	static const char *const realms[] = {"file:///etc/passwd", "ftp://registry.example/",
		"http://user:secret@registry.example/", "http://", "http://a b/", "//["};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < sizeof(realms) / sizeof(realms[0]); i++) {
		f.ask.realm = realms[i];
		fails(&f, ERR_CORRUPT, "registry.example: where to ask for a token: ");
	}
	teardown(&f);
}

TEST(answers_without_a_usable_token_are_refused)
{
	static char big[TOKEN_MAX + 512];
	static const struct {
		const char *answer, *words;
	} cases[] = {{"", ""}, {"<html>%u", ""}, {"[]", "no usable token"},
		{"{}", "no usable token"}, {"{\"token\":5}", "no usable token"},
		{"{\"token\":\"\"}", "no usable token"},
		{"{\"token\":\"a\\r\\nHost: b\"}", "no usable token"},
		{"{\"token\":\"a b\"}", "no usable token"}, {big, "no usable token"}};
	struct fixture f;

	snprintf(big, sizeof(big), "{\"token\":\"%0*d\"}", TOKEN_MAX + 1, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(&f);
		f.answer = cases[i].answer;
		fails(&f, ERR_CORRUPT, cases[i].words);
		assert_non_null(strstr(f.e.text, "token from http://127.0.0.1:"));
		teardown(&f);
	}
}

TEST(a_realm_that_is_ill_is_tried_again_and_given_up)
{
	struct fixture f;

	setup(&f);
	f.status = 503;
	fails(&f, ERR_NETWORK, "HTTP status 503");
	assert_int_equal(f.gets, 6);
	teardown(&f);
}

TEST(basic_does_not_follow_a_redirect_to_another_port)
{
	struct fixture f, other;
	char header[128];

	setup(&f);
	setup(&other);
	f.credential.user = mem_strdup("user");
	f.credential.secret = mem_strdup("secret");
	snprintf(header, sizeof(header), "Location: %s", other.realm);
	f.status = 307;
	f.header = header;
	gets(&f, "Bearer t1"); /* of the other one, and as nobody */
	assert_int_equal(other.gets, 1);
	assert_string_equal(other.authorization, "");
	assert_string_equal(f.authorization, "Basic dXNlcjpzZWNyZXQ=");
	teardown(&other);
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(nobody_in_particular_asks_with_get),
	cmocka_unit_test(a_user_asks_with_basic), cmocka_unit_test(an_identity_token_is_posted),
	cmocka_unit_test(a_realm_that_does_not_know_post_is_asked_with_get),
	cmocka_unit_test(tokens_are_kept_until_shortly_before_they_end),
	cmocka_unit_test(each_realm_service_and_scope_has_its_own),
	cmocka_unit_test(a_token_that_was_good_is_asked_for_anew_when_it_is_refused),
	cmocka_unit_test(who_comes_while_one_is_fetched_waits_for_it),
	cmocka_unit_test(a_realm_without_tls_is_refused_by_a_registry_with_it),
	cmocka_unit_test(realms_that_are_no_addresses_are_refused),
	cmocka_unit_test(answers_without_a_usable_token_are_refused),
	cmocka_unit_test(a_realm_that_is_ill_is_tried_again_and_given_up),
	cmocka_unit_test(basic_does_not_follow_a_redirect_to_another_port))
