/* Transfers of blobs that somebody else performs: where they go, and what their end means. The
 * locations that registries redirect to are kept, for each endpoint and blob, while they work: a
 * layer of hundreds of pieces asks the registry once. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "images/registry-call.h"
#include "images/url.h"

enum { BUCKETS = 256, STALE_TRIES = 3 /* failures until a location is thought to be the reason */ };

struct location {
	struct location *next;
	struct digest blob;
	unsigned endpoint, generation, hops;
	char *url; /* NULL: not good any more */
};

struct locations {
	pthread_mutex_t lock;
	unsigned generations;
	struct location *v[BUCKETS];
};

/* ---- locations ---- */

struct locations *locations_new(void)
{
	struct locations *l = mem_alloc(sizeof(*l));

	pthread_mutex_init(&l->lock, NULL);
	return l;
}

void locations_free(struct locations *l)
{
	for (size_t i = 0; i < BUCKETS; i++)
		while (l->v[i]) {
			struct location *one = l->v[i];

			l->v[i] = one->next;
			free(one->url);
			free(one);
		}
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* With the lock held. */
static struct location *location_of(
	struct locations *l, unsigned endpoint, const struct digest *blob)
{
	struct location **bucket = &l->v[blob->b[0]], *one;

	for (one = *bucket; one; one = one->next)
		if (one->endpoint == endpoint && digest_eq(&one->blob, blob))
			return one;
	one = mem_alloc(sizeof(*one));
	one->blob = *blob;
	one->endpoint = endpoint;
	one->next = *bucket;
	*bucket = one;
	return one;
}

/* A copy, or NULL. */
static char *location_get(
	struct locations *l, unsigned endpoint, const struct digest *blob, unsigned *generation)
{
	struct location *one;
	char *url = NULL;

	pthread_mutex_lock(&l->lock);
	one = location_of(l, endpoint, blob);
	if (one->url) {
		url = mem_strdup(one->url);
		*generation = one->generation;
	}
	pthread_mutex_unlock(&l->lock);
	return url;
}

/* The try that a was aimed for was led on. False: too often. */
static bool location_set(
	struct locations *l, const struct registry_aim *a, const struct digest *blob, char *own_url)
{
	struct location *one;
	bool ok = true;

	pthread_mutex_lock(&l->lock);
	one = location_of(l, a->endpoint, blob);
	if (!a->redirected || (one->url && one->generation == a->generation)) {
		one->hops = a->redirected ? one->hops + 1 : 1;
		ok = one->hops <= REQUEST_REDIRECTS;
		free(one->url);
		one->url = ok ? steal_ptr(&own_url) : NULL;
		one->generation = ++l->generations;
	}
	pthread_mutex_unlock(&l->lock);
	free(own_url);
	return ok;
}

/* What a was aimed at is not good any more, unless there is another one already. */
static void location_drop(
	struct locations *l, const struct registry_aim *a, const struct digest *blob)
{
	struct location *one;

	pthread_mutex_lock(&l->lock);
	one = location_of(l, a->endpoint, blob);
	if (one->generation == a->generation) {
		free(one->url);
		one->url = NULL;
	}
	pthread_mutex_unlock(&l->lock);
}

/* ---- aim ---- */

/* How must this endpoint be asked? The first time it is asked for the blob's head, because the
 * caller's own transfer would not show us the challenge. */
static int probe(struct registry *r, struct endpoint *p, const char *url, struct err *e)
{
	const struct call c = {
		.method = "HEAD", .what = "a blob", .url = url, .once = true, .stay = true};
	auto_exchange struct exchange x;
	int rc;

	exchange_init(&x, "HEAD", EXCHANGE_ERROR_MAX);
	rc = call_send(r, p, &c, &x, e);
	/* whatever it was: it did not ask for credentials */
	if (rc == 0 && x.code == CURLE_OK)
		auth_let_in(&p->auth, 0);
	return rc;
}

static void set_transfer(CURL *h, const char *url, const struct http_site *site,
	const char *authorization, struct registry_aim *a)
{
	if (authorization) {
		auto_free char *field = mem_printf("Authorization: %s", authorization);

		a->headers = curl_slist_append(a->headers, field);
		assert(a->headers);
	}
	http_common(h, "http,https");
	http_apply(h, site);
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, a->headers);
	/* many requests at once want many connections, not one that they share */
	curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
}

static int aim_at(struct registry *r, unsigned endpoint, const struct digest *blob, CURL *h,
	struct registry_aim *a, struct err *e)
{
	struct endpoint *p = &r->v[endpoint];
	char text[DIGEST_TEXT + 1];
	auto_free char *own = mem_printf("%s/blobs/%s", p->base, digest_text(blob, text));
	unsigned generation = 0, let_in = 0;
	auto_free char *location = location_get(r->locations, endpoint, blob, &generation);
	auto_free char *value = NULL;
	bool ours = !location || url_same_origin(location, p->base);
	struct http_site site = *p->site;

	*a = (struct registry_aim){.endpoint = endpoint, .redirected = location != NULL};
	if (!ours && http_site_led(&r->http, p->site, location, true, &site, e) < 0)
		return -1;
	if (!location && auth_unknown(&p->auth) && probe(r, p, own, e) < 0)
		return -1;
	if (ours && auth_value(&p->auth, p->scope, &value, &let_in, e) < 0)
		return err_ctx(e, "%s: blob %s", p->name, text);
	a->generation = location ? generation : let_in;
	set_transfer(h, location ? location : own, &site, value, a);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, a->text);
	return 0;
}

int registry_aim(struct registry *r, unsigned endpoint, const struct digest *blob, CURL *h,
	struct registry_aim *a, struct err *e)
{
	for (; endpoint + 1 < r->n; endpoint++) {
		struct err one = {0};

		if (endpoint_down(&r->v[endpoint]))
			continue;
		if (aim_at(r, endpoint, blob, h, a, &one) == 0)
			return 0;
		registry_aim_fini(a);
		endpoint_failed(&r->v[endpoint]);
		endpoint_passed_over(&r->v[endpoint], &one);
	}
	assert(endpoint < r->n);
	return aim_at(r, endpoint, blob, h, a, e);
}

void registry_aim_fini(struct registry_aim *a)
{
	curl_slist_free_all(a->headers);
	a->headers = NULL;
}

/* ---- judge ---- */

/* One try's end. */
struct end {
	struct registry *r;
	struct endpoint *p;
	const struct registry_aim *a;
	const struct digest *blob;
	CURL *h;
	CURLcode code;
	long status;
	unsigned tries, *wait_ms;
	struct err *e;
};

static const char *blob_text(const struct end *t, char text[DIGEST_TEXT + 1])
{
	return digest_text(t->blob, text);
}

/* No more tries here. */
static enum registry_verdict give_up(const struct end *t)
{
	if (t->p->last)
		return REGISTRY_FAILED;
	if (t->e)
		endpoint_passed_over(t->p, t->e);
	return REGISTRY_NEXT;
}

/* e is set: again, unless that was enough. */
static enum registry_verdict again(const struct end *t, bool at_once)
{
	if (t->tries >= t->p->tries)
		return give_up(t);
	*t->wait_ms =
		at_once && t->tries <= STALE_TRIES
			? 0
			: exchange_wait_ms(exchange_retry_after(t->h), t->r->backoff_ms, t->tries);
	return REGISTRY_AGAIN;
}

static void say_status(const struct end *t, enum err_kind kind, const char *more)
{
	char text[DIGEST_TEXT + 1], where[128] = "";
	char *url = NULL, *host = NULL;

	if (t->a->redirected)
		curl_easy_getinfo(t->h, CURLINFO_EFFECTIVE_URL, &url);
	if (url)
		host = url_host(url);
	if (host)
		snprintf(where, sizeof(where), "%.100s, where the registry led: ", host);
	free(host);
	err_set(t->e, kind, "%s: blob %s: %sHTTP status %ld%s", t->p->name, blob_text(t, text),
		where, t->status, more);
}

static enum registry_verdict judge_redirect(const struct end *t)
{
	char *to = NULL, *from = NULL, *url, text[DIGEST_TEXT + 1];

	curl_easy_getinfo(t->h, CURLINFO_REDIRECT_URL, &to);
	curl_easy_getinfo(t->h, CURLINFO_EFFECTIVE_URL, &from);
	if (!to || !from) {
		say_status(t, ERR_NETWORK, " without a location");
		return give_up(t);
	}
	url = url_resolve(from, to, t->e);
	if (!url) {
		err_ctx(t->e, "%s: blob %s", t->p->name, blob_text(t, text));
		return give_up(t);
	}
	if (!t->a->redirected)
		auth_let_in(&t->p->auth, t->a->generation);
	say_status(t, ERR_NETWORK, ", redirects without end");
	if (!location_set(t->r->locations, t->a, t->blob, url) || t->tries >= 2 * EXCHANGE_TRIES)
		return give_up(t);
	return REGISTRY_AGAIN; /* no failure, and no reason to give up: what is there may be */
}

static enum registry_verdict judge_denied(const struct end *t)
{
	struct err ignored = {0};
	int rc = t->status == 401 || t->a->generation
			 ? auth_refused(&t->p->auth, NULL, t->a->generation, &ignored)
			 : 0;

	say_status(t, ERR_DENIED, "");
	auth_hint(&t->p->auth, t->e);
	return rc > 0 ? again(t, true) : give_up(t);
}

/* The registry's own answer, and nothing that another try would change. */
static enum registry_verdict judge_final(const struct end *t)
{
	if (!t->a->redirected && t->status == 404)
		auth_let_in(&t->p->auth, t->a->generation);
	if (t->status == 404 || t->status == 410)
		say_status(t, ERR_NOT_FOUND, "");
	else if (t->status == 416)
		say_status(t, ERR_CORRUPT, ": the blob is shorter than the image says");
	else
		say_status(t, ERR_NETWORK, "");
	return give_up(t);
}

static enum registry_verdict judge_status(const struct end *t)
{
	static const long stale[] = {400, 401, 403, 404, 410};

	if (t->status == 301 || t->status == 302 || t->status == 303 || t->status == 307 ||
		t->status == 308)
		return judge_redirect(t);
	for (size_t i = 0; t->a->redirected && i < sizeof(stale) / sizeof(stale[0]); i++)
		if (t->status == stale[i]) { /* a signature that ran out, most of the time */
			location_drop(t->r->locations, t->a, t->blob);
			say_status(t, ERR_NETWORK, "");
			return again(t, true);
		}
	if (exchange_status_passes(t->status)) {
		say_status(t, ERR_NETWORK, "");
		if (t->a->redirected && t->tries >= STALE_TRIES)
			location_drop(t->r->locations, t->a, t->blob);
		/* a mirror that is ill is no better a moment later; one that is busy may be */
		return t->p->last || t->a->redirected || t->status == 429 ? again(t, false)
									  : give_up(t);
	}
	return t->status == 401 || t->status == 403 ? judge_denied(t) : judge_final(t);
}

static enum registry_verdict judge_code(const struct end *t)
{
	char text[DIGEST_TEXT + 1];
	enum err_kind kind;
	const char *hint;
	bool passes = exchange_code_passes(t->code, &kind, &hint),
	     unreachable = exchange_code_unreachable(t->code);

	err_set(t->e, kind, "%s: blob %s: %s", t->p->name, blob_text(t, text),
		t->a->text[0] ? t->a->text : curl_easy_strerror(t->code));
	if (!hint)
		hint = exchange_text_hint(t->a->text);
	if (hint)
		err_hint(t->e, "%s", hint);
	if (t->a->redirected && (unreachable || t->tries >= STALE_TRIES)) {
		location_drop(t->r->locations, t->a, t->blob);
	} else if (!t->a->redirected && !t->p->last &&
		   (unreachable || t->code == CURLE_OPERATION_TIMEDOUT)) {
		if (unreachable)
			endpoint_failed(t->p);
		return give_up(t);
	}
	return passes ? again(t, false) : give_up(t);
}

enum registry_verdict registry_judge(struct registry *r, const struct registry_aim *a,
	const struct digest *blob, CURL *h, CURLcode code, unsigned tries, unsigned *wait_ms,
	struct err *e)
{
	struct end t = {.r = r,
		.p = &r->v[a->endpoint],
		.a = a,
		.blob = blob,
		.h = h,
		.code = code,
		.tries = tries,
		.wait_ms = wait_ms,
		.e = e};

	*wait_ms = 0;
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &t.status);
	if (t.status == 200 || t.status == 206) {
		if (!a->redirected)
			auth_let_in(&t.p->auth, a->generation);
		return code == CURLE_OK ? REGISTRY_OK : judge_code(&t);
	}
	/* callers stop the transfer of what is an error's body: the status is what counts */
	if (t.status >= 200 && (code == CURLE_OK || code == CURLE_WRITE_ERROR))
		return judge_status(&t);
	return judge_code(&t);
}
