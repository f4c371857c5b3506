#include "images/exchange.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/http.h"

void exchange_init(struct exchange *x, const char *method, size_t max)
{
	*x = (struct exchange){.method = method, .deadline_s = EXCHANGE_DOCUMENT_S};
	x->max = max;
	x->answer.max = max > EXCHANGE_ERROR_MAX ? max : EXCHANGE_ERROR_MAX;
	x->head.max = EXCHANGE_HEAD_MAX;
}

void exchange_fini(struct exchange *x)
{
	buf_fini(&x->answer);
	buf_fini(&x->head);
}

/* ---- the answer ---- */

/* Called for every line of every answer, 100 and those to a proxy's CONNECT included. */
static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;
	size_t len = n;

	if (n >= 5 && memcmp(data, "HTTP/", 5) == 0) {
		x->head.len = 0;
		return size * n;
	}
	while (len && (data[len - 1] == '\r' || data[len - 1] == '\n' || data[len - 1] == ' ' ||
			      data[len - 1] == '\t'))
		len--;
	if (len == 0 || memchr(data, '\0', len))
		return size * n;
	if (buf_add(&x->head, data, len, NULL) < 0 || buf_add(&x->head, "", 1, NULL) < 0)
		return 0;
	return size * n;
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;
	long status = 0;
	size_t max;

	curl_easy_getinfo(x->h, CURLINFO_RESPONSE_CODE, &status);
	max = status >= 200 && status <= 299 ? x->max : EXCHANGE_ERROR_MAX;
	if (size * n > max - x->answer.len) {
		x->too_long = true;
		return 0;
	}
	buf_put(&x->answer, data, size * n);
	return size * n;
}

const char *exchange_field(const struct exchange *x, const char *name, size_t nth)
{
	size_t n = strlen(name);

	for (const char *s = x->head.data; s && s < x->head.data + x->head.len; s += strlen(s) + 1)
		if (strncasecmp(s, name, n) == 0 && s[n] == ':' && nth-- == 0)
			return s + n + 1 + strspn(s + n + 1, " \t");
	return NULL;
}

/* ---- the request ---- */

static size_t on_read(char *data, size_t size, size_t n, void *ctx)
{
	struct exchange_body *b = ctx;
	size_t k = size * n;

	if (k > b->n - b->at)
		k = (size_t)(b->n - b->at);
	if (b->data) {
		memcpy(data, (const char *)b->data + b->at, k);
	} else if (sys_pread_all(b->fd, data, k, (off_t)(b->offset + b->at)) < 0) {
		b->error = errno;
		return CURL_READFUNC_ABORT;
	}
	b->at += k;
	if (b->sent)
		b->sent(b->ctx, b->at);
	return k;
}

/* libcurl begins anew when a connection that was kept turns out to be dead. */
static int on_seek(void *ctx, curl_off_t at, int origin)
{
	struct exchange_body *b = ctx;

	if (origin != SEEK_SET || at < 0 || (uint64_t)at > b->n)
		return CURL_SEEKFUNC_FAIL;
	b->at = (uint64_t)at;
	return CURL_SEEKFUNC_OK;
}

/* libcurl's own limit would take the time that a registry needs to store what it was sent for a
 * stalled connection. */
static int on_progress(
	void *ctx, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal, curl_off_t ulnow)
{
	struct exchange *x = ctx;
	uint64_t moved = (uint64_t)(dlnow + ulnow);
	bool sent = (uint64_t)ulnow >= x->body->n && dlnow == 0;
	double now = sys_now_ms(), limit = sent ? EXCHANGE_ANSWER_S : HTTP_STALL_S;

	(void)dltotal;
	(void)ultotal;
	if (moved < x->moved || moved - x->moved >= HTTP_STALL_S * HTTP_STALL_BYTES ||
		(moved > x->moved && sent)) {
		x->moved = moved;
		x->moved_ms = now;
	}
	return now - x->moved_ms > limit * 1e3;
}

static void set_body(struct exchange *x, CURL *h)
{
	x->body->at = 0;
	x->body->error = 0;
	x->moved = 0;
	x->moved_ms = sys_now_ms();
	curl_easy_setopt(h, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)x->body->n);
	curl_easy_setopt(h, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
	curl_easy_setopt(h, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(h, CURLOPT_READDATA, x->body);
	curl_easy_setopt(h, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(h, CURLOPT_SEEKDATA, x->body);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, 0L);
	curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(h, CURLOPT_XFERINFODATA, x);
}

static void set_method(struct exchange *x, CURL *h)
{
	if (x->body)
		set_body(x, h);
	else if (str_eq(x->method, "HEAD"))
		curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
	else if (str_eq(x->method, "POST"))
		curl_easy_setopt(h, CURLOPT_POSTFIELDS, "");
	else
		curl_easy_setopt(h, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, x->method);
}

void exchange_perform(struct exchange *x, CURL *h)
{
	x->h = h;
	x->answer.len = x->head.len = 0;
	x->too_long = false;
	x->status = 0;
	x->text[0] = '\0';
	set_method(x, h);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, x->text);
	curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(h, CURLOPT_HEADERDATA, x);
	curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)x->deadline_s * 1000);
	x->code = curl_easy_perform(h);
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &x->status);
	x->retry_after_s = exchange_retry_after(h);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, NULL);
	/* an error's body that is cut short is an error's body */
	if (x->code == CURLE_WRITE_ERROR && x->too_long && (x->status < 200 || x->status > 299))
		x->code = CURLE_OK;
	if (x->code == CURLE_ABORTED_BY_CALLBACK && x->body && !x->body->error)
		x->code = CURLE_OPERATION_TIMEDOUT;
}

/* ---- what a registry says ---- */

/* Somebody else's words on somebody's terminal: ASCII only, which has no way to write backwards. */
static void add_text(char *out, size_t size, size_t *n, const char *text)
{
	for (size_t left = 200; text && *text && left; text++, left--)
		if (*n + 1 < size)
			out[(*n)++] = *text >= ' ' && *text < '\x7f' ? *text : '?';
	out[*n] = '\0';
}

static void add_error(char *out, size_t *n, const char *code, const char *message)
{
	if (code && *code) {
		add_text(out, EXCHANGE_WORDS, n, ": ");
		add_text(out, EXCHANGE_WORDS, n, code);
	}
	if (message && *message) {
		add_text(out, EXCHANGE_WORDS, n, ": ");
		add_text(out, EXCHANGE_WORDS, n, message);
	}
}

char *exchange_words(const struct exchange *x, char out[EXCHANGE_WORDS])
{
	auto_json json_t *doc =
		x->answer.len ? json_parse(x->answer.data, x->answer.len, NULL) : NULL;
	const json_t *errors = json_object_get(doc, "errors");
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < json_array_size(errors) && i < 2; i++) {
		const json_t *one = json_array_get(errors, i);

		add_error(out, &n, json_string_value(json_object_get(one, "code")),
			json_string_value(json_object_get(one, "message")));
	}
	if (n == 0)
		add_error(out, &n, json_string_value(json_object_get(doc, "details")),
			json_string_value(json_object_get(doc, "error_description")));
	return out;
}

/* ---- failures ---- */

bool exchange_status_passes(long status)
{
	return status == 408 || status == 425 || status == 429 ||
	       (status >= 500 && status <= 599 && status != 501 && status != 505);
}

/* Errors that another try, or another day, would not mend, and those that have a likely reason. All
 * others are the network's. */
static const struct {
	CURLcode code;
	enum err_kind kind;
	const char *hint;
} known[] = {
	{CURLE_URL_MALFORMAT, ERR_USAGE, NULL},
	{CURLE_PEER_FAILED_VERIFICATION, ERR_DENIED,
		"put the certificate authority into /etc/svrun/certs.d/HOST[:PORT]/ca.crt, or give "
		"--insecure"},
	{CURLE_SSL_CACERT_BADFILE, ERR_SYSTEM, "correct the file of certificates"},
	{CURLE_SSL_CERTPROBLEM, ERR_SYSTEM, "correct the client certificate and its key"},
	{CURLE_OUT_OF_MEMORY, ERR_SYSTEM, NULL},
	{CURLE_READ_ERROR, ERR_SYSTEM, NULL},
	{CURLE_SSL_CONNECT_ERROR, ERR_NETWORK,
		"when it has no TLS: --plain-http, or \"plain-http\" in the site's configuration"},
};

const char *exchange_text_hint(const char *text)
{
	/* OpenSSL's words for the alerts with which servers refuse clients without one */
	static const char *const words[] = {
		"certificate required", "bad certificate", "handshake failure"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return "it may ask for a client certificate: \"cert\" and \"key\" in the "
			       "site's "
			       "configuration, or client.cert and client.key in "
			       "/etc/svrun/certs.d/HOST[:PORT]";
	return NULL;
}

bool exchange_code_passes(CURLcode code, enum err_kind *kind, const char **hint)
{
	*kind = ERR_NETWORK;
	*hint = NULL;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].code == code) {
			*kind = known[i].kind;
			*hint = known[i].hint;
		}
	return *kind == ERR_NETWORK;
}

bool exchange_code_unreachable(CURLcode code)
{
	static const CURLcode codes[] = {CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST,
		CURLE_COULDNT_CONNECT, CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION,
		CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_WEIRD_SERVER_REPLY,
		CURLE_UNSUPPORTED_PROTOCOL};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i] == code)
			return true;
	return false;
}

static unsigned jitter(unsigned ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ms - ms / 4 + (unsigned)now.tv_nsec / 1000 % (ms / 2 + 1);
}

unsigned exchange_wait_ms(uint64_t retry_after_s, unsigned base_ms, unsigned n)
{
	unsigned shift = n > 1 ? n - 1 : 0, ms = jitter(base_ms << (shift < 6 ? shift : 6));

	if (retry_after_s > EXCHANGE_RETRY_S)
		retry_after_s = EXCHANGE_RETRY_S;
	return ms < retry_after_s * 1000 ? (unsigned)retry_after_s * 1000 : ms;
}

uint64_t exchange_retry_after(CURL *h)
{
	curl_off_t after = 0;

	curl_easy_getinfo(h, CURLINFO_RETRY_AFTER, &after);
	return after > 0 ? (uint64_t)after : 0;
}

void exchange_sleep(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}
