#include "builder/python-index.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/mirror-auth.h"
#include "images/request.h"
#include "images/url.h"

enum { PAGE_MAX = 64 << 20, FILES_MAX = 100000, TRIES = 4, BACKOFF_MS = 500 };

void python_index_open(struct python_index *x, struct mirrors *mirrors, struct arena *a)
{
	*x = (struct python_index){.mirrors = mirrors, .a = a};
	http_open(&x->http, mirrors->config);
}

void python_index_close(struct python_index *x)
{
	http_close(&x->http);
}

/* ---- requests ---- */

static int send_once(struct python_index *x, const char *url, const char *authorization,
	struct exchange *q, char **at, struct err *e)
{
	static const char *const fields[] = {
		"Accept: application/vnd.pypi.simple.v1+json, text/html;q=0.2", NULL};
	auto_free char *host = url_host(url);
	char shown[256];
	struct http_site *site;
	CURL *h;
	int rc;

	if (!host)
		return err_set(e, ERR_USAGE, "%s: not an address of http or https",
			url_show(url, shown, sizeof(shown)));
	site = http_site(&x->http, host, e);
	if (!site)
		return -1;
	h = http_take(&x->http);
	rc = request_send(&x->http,
		&(struct request){.url = url,
			.authorization = authorization,
			.fields = fields,
			.site = site,
			.content = true},
		q, h, at, e);
	http_give(&x->http, h);
	return rc;
}

static int failed(const struct exchange *q, const char *url, struct err *e)
{
	enum err_kind kind = ERR_NETWORK;
	const char *hint = NULL;
	char shown[256];

	url_show(url, shown, sizeof(shown));
	if (q->too_long)
		return err_set(
			e, ERR_CORRUPT, "%s: more than the limit of %zu bytes", shown, q->max);
	if (q->code == CURLE_OK) {
		err_set(e, q->status == 404 ? ERR_NOT_FOUND : ERR_NETWORK, "%s: HTTP status %ld",
			shown, q->status);
		if (q->status == 401 || q->status == 403)
			return err_hint(e, "credentials for its host are looked for where those of "
					   "registries are: docs/credentials.md");
		return q->status == 404 ? err_hint(e, "is the mirror 'pypi' the folder above "
						      "'simple', and does it have the package?")
					: -1;
	}
	exchange_code_passes(q->code, &kind, &hint);
	err_set(e, kind, "%s: %s", shown, q->text[0] ? q->text : curl_easy_strerror(q->code));
	return hint ? err_hint(e, "%s", hint) : -1;
}

/* uri: as a lock has it, "mirror:pypi/...". */
static int ask(
	struct python_index *x, const char *uri, struct exchange *q, char **at, struct err *e)
{
	const char *url = mirror_url(x->mirrors, uri, e), *authorization = NULL;

	if (!url || mirror_authorization(x->mirrors, uri, url, &authorization, e) < 0)
		return -1;
	for (unsigned n = 1;; n++) {
		enum err_kind kind;
		const char *hint;
		bool passes;

		free(*at);
		*at = NULL;
		if (send_once(x, url, authorization, q, at, e) < 0)
			return -1;
		if (q->code == CURLE_OK && q->status == 200 && !q->too_long)
			return 0;
		passes = q->code != CURLE_OK ? exchange_code_passes(q->code, &kind, &hint)
					     : exchange_status_passes(q->status);
		if (q->too_long || !passes || n == TRIES)
			return failed(q, url, e);
		exchange_sleep(exchange_wait_ms(q->retry_after_s, BACKOFF_MS, n));
	}
}

/* ---- pages ---- */

struct page {
	struct arena *a;
	const char *base, *at;
	struct wheel_offer *v;
	size_t n, cap;
};

static int hex_of(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* The last part of an address, with its escapes undone: the file's name. */
static char *file_of(struct arena *a, const char *url)
{
	size_t n = strcspn(url, "?#"), start = n, k = 0;
	char *out;

	while (start > 0 && url[start - 1] != '/')
		start--;
	out = arena_alloc(a, n - start + 1);
	for (size_t i = start; i < n; i++) {
		int high = i + 2 < n && url[i] == '%' ? hex_of(url[i + 1]) : -1;
		int low = high >= 0 ? hex_of(url[i + 2]) : -1;

		out[k] = url[i];
		if (low >= 0) {
			out[k] = (char)(high * 16 + low);
			i += 2;
		}
		k++;
	}
	return out;
}

/* As a lock has it: below the mirror's own address, or a whole one. NULL: neither. */
static const char *locked_url(const struct page *p, const char *href)
{
	auto_free char *url = url_resolve(p->at, href, NULL);
	size_t n = strlen(p->base);

	if (!url)
		return NULL;
	url[strcspn(url, "#")] = '\0';
	if (strncmp(url, p->base, n) == 0 && url[n] == '/')
		return arena_printf(p->a, "mirror:pypi%s", url + n);
	return str_starts(url, "https://") ? arena_strdup(p->a, url) : NULL;
}

static int add(struct page *p, const char *href, const char *file, const char *sha256,
	uint64_t size, struct err *e)
{
	struct wheel_offer o = {.size = size};

	if (!sha256 || digest_from_hex(&o.sha256, sha256) < 0)
		return 0;
	if (p->n == FILES_MAX)
		return err_set(e, ERR_CORRUPT, "more than %d files", FILES_MAX);
	o.url = locked_url(p, href);
	if (!o.url)
		return 0;
	o.file = file ? arena_strdup(p->a, file) : file_of(p->a, href);
	mem_grow(&p->v, &p->cap, p->n);
	p->v[p->n++] = o;
	return 0;
}

/* ---- JSON ---- */

static int read_json(struct page *p, const char *text, size_t n, struct err *e)
{
	auto_json json_t *root = json_parse(text, n, e);
	const json_t *j;
	size_t i;

	if (!root)
		return -1;
	json_array_foreach (json_object_get(root, "files"), i, j) {
		const char *href = json_string_value(json_object_get(j, "url"));
		const char *file = json_string_value(json_object_get(j, "filename"));
		json_int_t size = json_integer_value(json_object_get(j, "size"));
		const char *sha256 =
			json_string_value(json_object_get(json_object_get(j, "hashes"), "sha256"));

		if (href && file &&
			add(p, href, file, sha256, size > 0 ? (uint64_t)size : 0, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- HTML ---- */

/* The value of href in an <a ...>, with "&amp;" undone; NULL: none. */
static char *href_of(struct arena *a, const char *tag, size_t n)
{
	for (size_t i = 1; i + 6 < n; i++) {
		size_t len, k = 0;
		char quote = tag[i + 5], *out;
		const char *start = tag + i + 6, *end;

		if (strncasecmp(tag + i, "href=", 5) != 0 || (quote != '"' && quote != '\'') ||
			!strchr(" \t\r\n", tag[i - 1]))
			continue;
		end = memchr(start, quote, n - i - 6);
		if (!end)
			return NULL;
		len = (size_t)(end - start);
		out = arena_alloc(a, len + 1);
		for (size_t m = 0; m < len; m++) {
			out[k++] = start[m];
			if (start[m] == '&' && len - m >= 5 && strncmp(start + m, "&amp;", 5) == 0)
				m += 4;
		}
		return out;
	}
	return NULL;
}

static int read_html(struct page *p, const char *text, size_t n, struct err *e)
{
	const char *end = text + n;

	for (const char *s = text; s < end && (s = memchr(s, '<', (size_t)(end - s))); s++) {
		const char *close = memchr(s, '>', (size_t)(end - s)), *hash;
		char *href, sha256[DIGEST_HEX + 1];

		if (!close)
			return 0;
		if (close - s < 4 || (s[1] != 'a' && s[1] != 'A') || !strchr(" \t\r\n", s[2]))
			continue;
		href = href_of(p->a, s, (size_t)(close - s));
		hash = href ? strstr(href, "sha256=") : NULL;
		if (!hash || strlen(hash + 7) < DIGEST_HEX)
			continue;
		memcpy(sha256, hash + 7, DIGEST_HEX);
		sha256[DIGEST_HEX] = '\0';
		if (add(p, href, NULL, sha256, 0, e) < 0)
			return -1;
	}
	return 0;
}

int python_index_parse(struct arena *a, const char *base, const char *at, const char *page,
	size_t len, struct wheel_offer **v, size_t *n, struct err *e)
{
	struct page p = {.a = a, .base = base, .at = at};
	size_t blank = 0;
	int rc;

	while (blank < len && strchr(" \t\r\n", page[blank]))
		blank++;
	rc = blank < len && page[blank] == '{' ? read_json(&p, page, len, e)
					       : read_html(&p, page, len, e);
	*n = rc < 0 ? 0 : p.n;
	*v = *n ? arena_dup(a, p.v, p.n * sizeof(*p.v)) : NULL;
	free(p.v);
	return rc;
}

int python_index_list(struct python_index *x, const char *project, struct wheel_offer **v,
	size_t *n, struct err *e)
{
	auto_free char *uri = mem_printf("mirror:pypi/simple/%s/", project), *at = NULL;
	const char *base = mirror_url(x->mirrors, "mirror:pypi", e);
	auto_exchange struct exchange q;
	int rc;

	exchange_init(&q, "GET", PAGE_MAX);
	if (!base)
		return -1;
	q.deadline_s = EXCHANGE_DOCUMENT_S;
	rc = ask(x, uri, &q, &at, e);
	if (rc == 0)
		rc = python_index_parse(
			x->a, base, at, q.answer.data ? q.answer.data : "", q.answer.len, v, n, e);
	return rc;
}

int python_index_size(struct python_index *x, const char *url, uint64_t *size, struct err *e)
{
	const char *full = mirror_url(x->mirrors, url, e), *length;
	auto_free char *at = NULL;
	auto_exchange struct exchange q;
	char shown[256];

	exchange_init(&q, "HEAD", 0);
	if (!full)
		return -1;
	q.deadline_s = EXCHANGE_DOCUMENT_S;
	if (ask(x, url, &q, &at, e) < 0)
		return -1;
	length = exchange_field(&q, "Content-Length", 0);
	if (!length || str_u64(length, INT64_MAX, size) < 0 || *size == 0)
		return err_set(e, ERR_NETWORK, "%s: the server does not say how big it is",
			url_show(full, shown, sizeof(shown)));
	return 0;
}
