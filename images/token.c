#include "images/token.h"

#include <openssl/crypto.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/exchange.h"
#include "images/request.h"
#include "images/url.h"

enum { DOCUMENT_MAX = 256 << 10, LIFETIME_MAX_S = 365 * 86400 };

struct token {
	struct token *next;
	char *realm, *service, *scope;
	char *value; /* NULL: none, or refused */
	double renew_ms;
	unsigned generation;
	bool proven;
};

void tokens_init(struct tokens *t)
{
	*t = (struct tokens){.now_ms = sys_now_ms, .backoff_ms = 250};
	pthread_mutex_init(&t->lock, NULL);
}

static void forget(struct token *k)
{
	if (k->value)
		OPENSSL_cleanse(k->value, strlen(k->value));
	free(k->value);
	k->value = NULL;
}

void tokens_fini(struct tokens *t)
{
	while (t->list) {
		struct token *k = t->list;

		t->list = k->next;
		forget(k);
		free(k->realm);
		free(k->service);
		free(k->scope);
		free(k);
	}
	pthread_mutex_destroy(&t->lock);
}

/* ---- the request ---- */

static void add_param(struct buf *b, char sep, const char *name, const char *value, size_t n)
{
	char *text = curl_easy_escape(NULL, value, (int)n);

	if (b->len)
		buf_put(b, &sep, 1);
	buf_printf(b, "%s=%s", name, text ? text : "");
	if (text)
		OPENSSL_cleanse(text, strlen(text));
	curl_free(text);
}

static void add_text(struct buf *b, const char *name, const char *value)
{
	add_param(b, '&', name, value, strlen(value));
}

/* realm?service=S&scope=A&scope=B */
static char *get_url(const struct token_ask *q)
{
	auto_buf struct buf b = BUF_INIT(64 << 10);

	if (q->service[0])
		add_text(&b, "service", q->service);
	for (const char *s = q->scope; *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");

		add_param(&b, '&', "scope", s, n);
		s += n;
	}
	add_text(&b, "client_id", "svrun");
	if (q->credential->user && !q->credential->identity)
		add_text(&b, "account", q->credential->user);
	return mem_printf("%s%c%s", q->realm, strchr(q->realm, '?') ? '&' : '?', b.data);
}

static int try_get(const struct token_ask *q, const struct http_site *site, struct exchange *x,
	CURL *h, struct err *e)
{
	const struct credential *c = q->credential;
	const char *secret = c->identity ? c->identity : c->secret;
	const char *user = c->user ? c->user : c->identity ? "<token>" : NULL;
	auto_free char *url = get_url(q);
	auto_free char *basic = user && secret ? request_basic(user, secret) : NULL;
	const struct request r = {.url = url, .authorization = basic, .site = site};
	int rc;

	x->method = "GET";
	x->body = NULL;
	rc = request_send(q->http, &r, x, h, NULL, e);
	if (basic)
		OPENSSL_cleanse(basic, strlen(basic));
	return rc;
}

static int try_post(const struct token_ask *q, const struct http_site *site, struct exchange *x,
	CURL *h, struct err *e)
{
	static const char *const fields[] = {
		"Content-Type: application/x-www-form-urlencoded", NULL};
	const struct request r = {.url = q->realm, .fields = fields, .site = site};
	struct buf b = BUF_INIT(256 << 10);
	struct exchange_body body = {0};
	int rc;

	add_text(&b, "grant_type", "refresh_token");
	add_text(&b, "refresh_token", q->credential->identity);
	add_text(&b, "service", q->service);
	add_text(&b, "client_id", "svrun");
	if (q->scope[0])
		add_text(&b, "scope", q->scope);
	body.data = b.data;
	body.n = b.len;
	x->method = "POST";
	x->body = &body;
	rc = request_send(q->http, &r, x, h, NULL, e);
	x->body = NULL;
	OPENSSL_cleanse(b.data, b.len);
	buf_fini(&b);
	return rc;
}

/* The realm's answer to one try. */
static int try_once(
	const struct token_ask *q, const struct http_site *site, struct exchange *x, struct err *e)
{
	CURL *h = http_take(q->http);
	int rc = 0;

	if (q->credential->identity)
		rc = try_post(q, site, x, h, e);
	if (rc == 0 && q->credential->identity &&
		(x->code != CURLE_OK || (x->status != 404 && x->status != 405))) {
		http_give(q->http, h);
		return 0;
	}
	if (rc == 0) {
		http_give(q->http, h);
		h = http_take(q->http);
		rc = try_get(q, site, x, h, e);
	}
	http_give(q->http, h);
	return rc;
}

static int failed(const struct token_ask *q, const struct exchange *x, struct err *e)
{
	char words[EXCHANGE_WORDS], where[256];
	enum err_kind kind;
	const char *hint;

	url_show(q->realm, where, sizeof(where));
	if (x->status == 0 || x->code != CURLE_OK) {
		exchange_code_passes(x->code, &kind, &hint);
		err_set(e, kind, "token from %s: %s", where,
			x->text[0] ? x->text : curl_easy_strerror(x->code));
		return hint ? err_hint(e, "%s", hint) : -1;
	}
	kind = x->status >= 400 && x->status <= 403 ? ERR_DENIED : ERR_NETWORK;
	err_set(e, kind, "token from %s: HTTP status %ld%s", where, x->status,
		exchange_words(x, words));
	return kind == ERR_DENIED ? err_hint(e, "svrun image login %s", q->site->host) : -1;
}

static int ask(struct tokens *t, const struct token_ask *q, struct exchange *x, struct err *e)
{
	struct http_site site;

	if (http_site_led(q->http, q->site, q->realm, false, &site, e) < 0)
		return -1;
	for (unsigned n = 1;; n++) {
		enum err_kind kind;
		const char *hint;
		bool passes;

		if (try_once(q, &site, x, e) < 0)
			return err_ctx(e, "token");
		if (x->code == CURLE_OK && x->status == 200)
			return 0;
		passes = x->code != CURLE_OK ? exchange_code_passes(x->code, &kind, &hint)
					     : exchange_status_passes(x->status);
		if (!passes || n == EXCHANGE_TRIES)
			return failed(q, x, e);
		exchange_sleep(exchange_wait_ms(x->retry_after_s, t->backoff_ms, n));
	}
}

/* ---- the answer ---- */

bool token_usable(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return n > 0 && n <= TOKEN_MAX;
}

/* Seconds since the token was made: by the clock of the server that says when. A cache may have
 * kept the answer; but a clock that is wrong must not make every token look old. */
static double age_s(const struct exchange *x, const json_t *doc, double lifetime)
{
	const char *issued = json_string_value(json_object_get(doc, "issued_at"));
	const char *date = exchange_field(x, "Date", 0);
	struct tm tm = {0};
	time_t at, now = date ? curl_getdate(date, NULL) : -1;

	if (!issued || !strptime(issued, "%Y-%m-%dT%H:%M:%S", &tm))
		return 0;
	at = timegm(&tm);
	if (now == -1 || at == -1 || at > now || (double)(now - at) >= lifetime)
		return 0;
	return (double)(now - at);
}

static double lifetime_s(const json_t *doc)
{
	const json_t *v = json_object_get(doc, "expires_in");
	double s = json_number_value(v);

	if (!json_is_number(v) || !(s > 0))
		return TOKEN_LIFETIME_S;
	return s > LIFETIME_MAX_S ? LIFETIME_MAX_S : s;
}

static int take(struct tokens *t, struct token *k, const struct token_ask *q,
	const struct exchange *x, struct err *e)
{
	auto_json json_t *doc = json_parse(x->answer.data ? x->answer.data : "", x->answer.len, e);
	const char *token = json_string_value(json_object_get(doc, "token"));
	const char *refresh = json_string_value(json_object_get(doc, "refresh_token"));
	double life, margin;
	char where[256];

	url_show(q->realm, where, sizeof(where));
	if (!doc)
		return err_ctx(e, "token from %s", where);
	if (!token)
		token = json_string_value(json_object_get(doc, "access_token"));
	if (!token_usable(token))
		return err_set(
			e, ERR_CORRUPT, "token from %s: the answer holds no usable token", where);
	life = lifetime_s(doc);
	life -= age_s(x, doc, life);
	margin = life / 4 < TOKEN_MARGIN_S ? life / 4 : TOKEN_MARGIN_S;
	k->value = mem_printf("Bearer %s", token);
	k->renew_ms = t->now_ms() + (life - margin) * 1e3;
	k->generation = ++t->generations;
	k->proven = false;
	if (q->credential->identity && token_usable(refresh)) {
		free(q->credential->identity);
		q->credential->identity = mem_strdup(refresh);
	}
	return 0;
}

/* ---- the cache ---- */

static struct token *find(struct tokens *t, const struct token_ask *q)
{
	struct token *k;

	for (k = t->list; k; k = k->next)
		if (str_eq(k->realm, q->realm) && str_eq(k->service, q->service) &&
			str_eq(k->scope, q->scope))
			return k;
	k = mem_alloc(sizeof(*k));
	k->realm = mem_strdup(q->realm);
	k->service = mem_strdup(q->service);
	k->scope = mem_strdup(q->scope);
	k->next = t->list;
	t->list = k;
	return k;
}

static int fetch(struct tokens *t, struct token *k, const struct token_ask *q, struct err *e)
{
	auto_free char *base =
		mem_printf("http%s://%s/v2/", q->site->plain ? "" : "s", q->site->host);
	auto_free char *realm = url_resolve(base, q->realm, e);
	struct token_ask ask_there = *q;
	auto_exchange struct exchange x;
	int rc;

	exchange_init(&x, "GET", DOCUMENT_MAX);
	if (!realm)
		return err_ctx(e, "%s: where to ask for a token", q->site->host);
	ask_there.realm = realm;
	rc = ask(t, &ask_there, &x, e);
	if (rc == 0)
		rc = take(t, k, &ask_there, &x, e);
	if (x.answer.data)
		OPENSSL_cleanse(x.answer.data, x.answer.len);
	return rc;
}

int tokens_get(struct tokens *t, const struct token_ask *q, char **value, unsigned *generation,
	struct err *e)
{
	struct token *k;
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	k = find(t, q);
	if (k->value && t->now_ms() >= k->renew_ms)
		forget(k);
	if (!k->value)
		rc = fetch(t, k, q, e);
	if (rc == 0) {
		*value = mem_strdup(k->value);
		*generation = k->generation;
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

void tokens_prove(struct tokens *t, unsigned generation)
{
	pthread_mutex_lock(&t->lock);
	for (struct token *k = t->list; k; k = k->next)
		if (k->generation == generation)
			k->proven = true;
	pthread_mutex_unlock(&t->lock);
}

bool tokens_refuse(struct tokens *t, unsigned generation)
{
	bool again = true; /* one of before: there is a newer one */

	pthread_mutex_lock(&t->lock);
	for (struct token *k = t->list; k; k = k->next)
		if (k->generation == generation && k->value) {
			again = k->proven;
			forget(k);
		}
	pthread_mutex_unlock(&t->lock);
	return again;
}
