#include "images/registry-call.h"

#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/url.h"

enum {
	AUTH_TRIES = 3,
	UNREACHABLE_TRIES = 3, /* wrong names, and hosts that hang, should not take long to tell */
};

/* What a try came to. */
enum { TRY_ANSWER, TRY_AUTHORIZE, TRY_ELSEWHERE };

/* ---- endpoints ---- */

bool endpoint_down(struct endpoint *p)
{
	bool down;

	pthread_mutex_lock(&p->lock);
	down = p->down_until > sys_now_ms();
	pthread_mutex_unlock(&p->lock);
	return down;
}

void endpoint_failed(struct endpoint *p)
{
	pthread_mutex_lock(&p->lock);
	if (!p->last)
		p->down_until = sys_now_ms() + MIRROR_REST_MS;
	pthread_mutex_unlock(&p->lock);
}

void endpoint_passed_over(struct endpoint *p, const struct err *e)
{
	bool told;

	pthread_mutex_lock(&p->lock);
	told = p->told;
	p->told = true;
	pthread_mutex_unlock(&p->lock);
	if (!told && e->kind != ERR_NOT_FOUND) /* a mirror need not have everything */
		warn("%s; the next mirror or the registry is asked", e->text);
}

/* ---- errors ---- */

static int code_failed(
	struct endpoint *p, const char *what, const struct exchange *x, struct err *e)
{
	const char *text = x->text[0] ? x->text : curl_easy_strerror(x->code), *hint;
	enum err_kind kind;

	if (x->too_long)
		return err_set(e, ERR_CORRUPT, "%s: %s: the answer is longer than %zu bytes",
			p->name, what, x->max);
	exchange_code_passes(x->code, &kind, &hint);
	if (exchange_text_hint(text))
		hint = exchange_text_hint(text);
	err_set(e, kind, "%s: %s: %s", p->name, what, text);
	return hint ? err_hint(e, "%s", hint) : -1;
}

static enum err_kind kind_of(long status)
{
	if (status == 404 || status == 410)
		return ERR_NOT_FOUND;
	if (status == 401 || status == 403 || status == 407)
		return ERR_DENIED;
	if (status == 405 || status == 501)
		return ERR_UNSUPPORTED;
	return ERR_NETWORK;
}

int call_failed(struct endpoint *p, const char *what, const struct exchange *x, struct err *e)
{
	char words[EXCHANGE_WORDS];
	enum err_kind kind = kind_of(x->status);

	if (x->code != CURLE_OK)
		return code_failed(p, what, x, e);
	if (kind == ERR_DENIED && x->elsewhere) /* not for want of credentials */
		kind = ERR_NETWORK;
	err_set(e, kind, "%s: %s: %sHTTP status %ld%s", p->name, what,
		x->elsewhere ? "where it led: " : "", x->status, exchange_words(x, words));
	return kind == ERR_DENIED ? auth_hint(&p->auth, e) : -1;
}

/* ---- a call ---- */

/* TRY_AUTHORIZE: with what is known now; TRY_ANSWER: take it as it is. */
static int judge_auth(
	struct endpoint *p, const struct exchange *x, unsigned generation, struct err *e)
{
	struct challenges c = {0};
	const char *field;
	int rc;

	if (x->code != CURLE_OK && x->status == 0)
		return TRY_ANSWER;
	if (x->status != 401 && (x->status != 403 || generation == 0)) {
		if ((x->status >= 200 && x->status <= 399) || x->status == 404)
			auth_let_in(&p->auth, generation);
		return TRY_ANSWER;
	}
	for (size_t i = 0;
		x->status == 401 && (field = exchange_field(x, "WWW-Authenticate", i)) != NULL; i++)
		challenges_add(&c, field);
	rc = auth_refused(&p->auth, x->status == 401 ? &c : NULL, generation, e);
	return rc < 0 ? err_ctx(e, "%s", p->name) : rc ? TRY_AUTHORIZE : TRY_ANSWER;
}

/* One request with the authorization that is known. */
static int try_once(struct registry *r, struct endpoint *p, const struct call *c,
	struct exchange *x, struct err *e)
{
	auto_free char *value = NULL, *at = NULL;
	bool ours = url_same_origin(c->url, p->base);
	struct http_site site = *p->site;
	struct request q = {.url = c->url,
		.fields = c->fields,
		.site = &site,
		.content = c->content,
		.stay = c->stay};
	unsigned generation = 0;
	CURL *h;
	int rc = 0;

	if (ours)
		rc = auth_value(&p->auth, c->scope ? c->scope : p->scope, &value, &generation, e);
	else
		rc = http_site_led(&r->http, p->site, c->url, c->content, &site, e);
	if (rc < 0)
		return err_ctx(e, "%s: %s", p->name, c->what);
	q.authorization = value;
	h = http_take(&r->http);
	rc = request_send(&r->http, &q, x, h, &at, e);
	http_give(&r->http, h);
	if (rc < 0)
		return err_ctx(e, "%s: %s", p->name, c->what);
	ours = ours && url_same_origin(at, p->base);
	x->elsewhere = !str_eq(at, c->url);
	rc = x->elsewhere ? TRY_ELSEWHERE : TRY_ANSWER;
	if (c->at) {
		free(*c->at);
		*c->at = steal_ptr(&at);
	}
	return ours ? judge_auth(p, x, generation, e) : rc;
}

static bool passes(const struct exchange *x)
{
	enum err_kind kind;
	const char *hint;

	if (x->code == CURLE_WRITE_ERROR)
		return false;
	return x->code != CURLE_OK ? exchange_code_passes(x->code, &kind, &hint)
				   : exchange_status_passes(x->status);
}

/* A location that the registry led to and that is no longer good: it may have a fresh one. */
static bool is_stale(const struct exchange *x)
{
	return x->status == 400 || x->status == 401 || x->status == 403 || x->status == 404 ||
	       x->status == 410;
}

/* Another try, after the nth? */
static bool once_more(struct endpoint *p, const struct exchange *x, bool elsewhere, unsigned n)
{
	unsigned max = p->tries;

	if (exchange_code_unreachable(x->code) || x->code == CURLE_OPERATION_TIMEDOUT) {
		endpoint_failed(p);
		max = max < UNREACHABLE_TRIES ? max : UNREACHABLE_TRIES;
	}
	if (n >= max || endpoint_down(p))
		return false;
	return passes(x) || (x->code == CURLE_OK && elsewhere && is_stale(x));
}

int call_send(struct registry *r, struct endpoint *p, const struct call *c, struct exchange *x,
	struct err *e)
{
	unsigned auths = 0;

	x->method = c->method;
	x->body = c->body;
	x->deadline_s = c->deadline_s ? c->deadline_s : EXCHANGE_DOCUMENT_S;
	if (c->deadline_s == CALL_NO_DEADLINE)
		x->deadline_s = 0;
	for (unsigned n = 1;;) {
		int rc = try_once(r, p, c, x, e);

		if (rc < 0)
			return -1;
		if (rc == TRY_AUTHORIZE && ++auths <= AUTH_TRIES)
			continue;
		if (x->code == CURLE_OK && rc != TRY_ELSEWHERE &&
			(x->status == 401 || x->status == 403))
			return call_failed(p, c->what, x, e);
		if (c->once)
			return 0;
		if (!once_more(p, x, rc == TRY_ELSEWHERE, n))
			return x->code == CURLE_OK && !passes(x) ? 0
								 : call_failed(p, c->what, x, e);
		exchange_sleep(exchange_wait_ms(x->retry_after_s, r->backoff_ms, n++));
	}
}
