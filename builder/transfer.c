#include "builder/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/http.h"
#include "images/url.h"
#include "images/range.h"

enum { MAX_REDIRECTS = 10 };

/* ---- the answer's head ---- */

/* Called for every line of every answer, those of redirects included. */
static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	struct range r;

	if (n >= 5 && memcmp(data, "HTTP/", 5) == 0)
		t->has_range = false;
	if (range_header(&r, data, n) > 0 && r.satisfied) {
		t->has_range = true;
		t->range_start = r.first;
		t->range_total = r.has_total ? r.total : 0;
	}
	return size * n;
}

static int refuse(struct transfer *t, enum verdict v)
{
	t->refused = v;
	return -1;
}

/* The length that the answer promises fits what the lock says? Saves downloading a login page. */
static int check_length(struct transfer *t, uint64_t total)
{
	const struct input *in = t->part.in;

	if (in->size && total != in->size) {
		err_set(&t->e, ERR_CORRUPT, "%s: %s: expected %" PRIu64 " bytes, found %" PRIu64,
			in->name, t->where, in->size, total);
		return refuse(t, VERDICT_FAILED);
	}
	if (total > partial_limit(&t->part)) {
		err_set(&t->e, ERR_CORRUPT,
			"%s: %s: %" PRIu64 " bytes, more than the limit of %" PRIu64, in->name,
			t->where, total, partial_limit(&t->part));
		return refuse(t, VERDICT_FAILED);
	}
	return 0;
}

static int restart(struct transfer *t, enum verdict v)
{
	if (partial_restart(&t->part, &t->e) < 0)
		v = VERDICT_FAILED;
	return refuse(t, v);
}

/* 206 with the bytes that were asked for, and nothing else. */
static int accept_range(struct transfer *t)
{
	if (!t->ranged || !t->has_range || t->range_start != t->part.size) {
		err_set(&t->e, ERR_NETWORK, "%s: %s: the answer is another range than asked for",
			t->part.in->name, t->where);
		return restart(t, VERDICT_RETRY);
	}
	return t->range_total ? check_length(t, t->range_total) : 0;
}

static int accept_whole(struct transfer *t, curl_off_t length)
{
	if (t->part.size && partial_restart(&t->part, &t->e) < 0) /* ranges are not for everybody */
		return refuse(t, VERDICT_FAILED);
	t->whole = length >= 0;
	return length >= 0 ? check_length(t, (uint64_t)length) : 0;
}

/* Look at the status line before the first byte is taken. */
static int accept_answer(struct transfer *t)
{
	curl_off_t length = -1;
	long status = 0;
	char *scheme = NULL;

	t->accepted = true;
	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	curl_easy_getinfo(t->curl, CURLINFO_SCHEME, &scheme);
	if (scheme && strcasecmp(scheme, "file") == 0) { /* starts where it was asked to */
		t->whole = !t->ranged;
		return length >= 0 ? check_length(t, t->part.size + (uint64_t)length) : 0;
	}
	if (status == 206)
		return accept_range(t);
	if (status == 200)
		return accept_whole(t, length);
	err_set(&t->e, ERR_NETWORK, "%s: %s: unexpected HTTP status %ld", t->part.in->name,
		t->where, status);
	return refuse(t, VERDICT_FAILED);
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;

	if (!t->accepted && accept_answer(t) < 0)
		return 0;
	if (partial_add(&t->part, data, size * n, &t->e) < 0) {
		sys_hint_space(&t->e, t->part.fd, *t->need);
		refuse(t, VERDICT_FAILED);
		return 0;
	}
	return size * n;
}

/* ---- a try ---- */

int transfer_init(
	struct transfer *t, const struct fetch_limits *l, const uint64_t *need, struct err *e)
{
	*t = (struct transfer){.limits = l, .need = need, .part.fd = -1, .curl = curl_easy_init()};
	if (!t->curl)
		return err_set(e, ERR_SYSTEM, "no memory for a transfer");
	http_common(t->curl, "http,https,file");
	curl_easy_setopt(t->curl, CURLOPT_PRIVATE, t);
	curl_easy_setopt(t->curl, CURLOPT_ERRORBUFFER, t->text);
	curl_easy_setopt(t->curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(t->curl, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
	curl_easy_setopt(t->curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(t->curl, CURLOPT_PIPEWAIT, 1L);
	curl_easy_setopt(t->curl, CURLOPT_CONNECTTIMEOUT, (long)l->connect_s);
	curl_easy_setopt(t->curl, CURLOPT_LOW_SPEED_TIME, (long)l->stall_s);
	curl_easy_setopt(t->curl, CURLOPT_LOW_SPEED_LIMIT, (long)l->stall_bytes);
	curl_easy_setopt(t->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(t->curl, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
	return 0;
}

void transfer_fini(struct transfer *t)
{
	partial_close(&t->part);
	if (t->curl)
		curl_easy_cleanup(t->curl);
	curl_slist_free_all(t->headers);
	t->curl = NULL;
	t->headers = NULL;
}

/* libcurl sends neither to a host that a redirect leads to. */
static void authorize(struct transfer *t)
{
	const struct input *in = t->part.in;
	auto_free char *header = NULL;
	bool secure = str_starts(in->url, "https://");

	curl_slist_free_all(t->headers);
	t->headers = NULL;
	if (in->authorization) {
		header = mem_printf("Authorization: %s", in->authorization);
		t->headers = curl_slist_append(NULL, header);
		explicit_bzero(header, strlen(header));
	}
	curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, t->headers);
	curl_easy_setopt(t->curl, CURLOPT_USERPWD, in->s3_key);
	curl_easy_setopt(t->curl, CURLOPT_AWS_SIGV4, in->s3_key ? "aws:amz" : NULL);
	if (secure && (in->authorization || in->s3_key))
		http_redirects(t->curl, "https");
	else
		http_redirects(t->curl, "http,https");
}

void transfer_begin(struct transfer *t)
{
	char range[32];

	t->ranged = t->part.size > 0;
	t->accepted = t->has_range = t->whole = false;
	t->refused = VERDICT_NONE;
	t->retry_after_ms = 0;
	t->text[0] = '\0';
	url_show(t->part.in->url, t->where, sizeof(t->where));
	snprintf(range, sizeof(range), "%" PRIu64 "-", t->part.size);
	authorize(t);
	curl_easy_setopt(t->curl, CURLOPT_URL, t->part.in->url);
	/* RANGE, not RESUME_FROM: that one takes a 200 for an error */
	curl_easy_setopt(t->curl, CURLOPT_RANGE, t->ranged ? range : NULL);
}

/* ---- the verdict ---- */

static enum verdict judge_status(struct transfer *t)
{
	const struct input *in = t->part.in;
	curl_off_t after = 0;
	long status = 0;

	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &after);
	if (status == 404 || status == 410) {
		err_set(&t->e, ERR_NOT_FOUND, "%s: %s: HTTP status %ld", in->name, t->where,
			status);
		err_hint(&t->e, "the mirror no longer has it: run `svrun image lock`");
		return VERDICT_FAILED;
	}
	if (status == 401 || status == 403 || status == 407) {
		err_set(&t->e, ERR_DENIED, "%s: %s: HTTP status %ld", in->name, t->where, status);
		return VERDICT_FAILED;
	}
	err_set(&t->e, ERR_NETWORK, "%s: %s: HTTP status %ld", in->name, t->where, status);
	if (status == 416 && t->ranged) { /* what is here is not the beginning of what is there */
		restart(t, VERDICT_RETRY);
		return t->refused;
	}
	if (after > (curl_off_t)t->limits->retry_after_s)
		after = (curl_off_t)t->limits->retry_after_s;
	t->retry_after_ms = after > 0 ? (double)after * 1e3 : 0;
	return status == 429 || status == 408 || status == 425 || status >= 500 ? VERDICT_RETRY
										: VERDICT_FAILED;
}

/* Errors that another try, or another day, would not mend. All others are the network's. */
static const struct {
	CURLcode code;
	enum err_kind kind;
	const char *hint;
} fatal[] = {
	{CURLE_URL_MALFORMAT, ERR_USAGE, NULL},
	{CURLE_UNSUPPORTED_PROTOCOL, ERR_UNSUPPORTED, "only http, https and file addresses work"},
	{CURLE_FILE_COULDNT_READ_FILE, ERR_NOT_FOUND, NULL},
	{CURLE_TOO_MANY_REDIRECTS, ERR_NETWORK, NULL},
	{CURLE_PEER_FAILED_VERIFICATION, ERR_DENIED,
		"set $SSL_CERT_FILE to the certificates to trust"},
	{CURLE_SSL_CACERT_BADFILE, ERR_SYSTEM, "correct $CURL_CA_BUNDLE or $SSL_CERT_FILE"},
	{CURLE_OUT_OF_MEMORY, ERR_SYSTEM, NULL},
};

static enum verdict judge_code(struct transfer *t, CURLcode code)
{
	const char *text = t->text[0] ? t->text : curl_easy_strerror(code);

	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		if (fatal[i].code == code) {
			err_set(&t->e, fatal[i].kind, "%s: %s: %s", t->part.in->name, t->where,
				text);
			if (fatal[i].hint)
				err_hint(&t->e, "%s", fatal[i].hint);
			return VERDICT_FAILED;
		}
	err_set(&t->e, ERR_NETWORK, "%s: %s: %s", t->part.in->name, t->where, text);
	if (code == CURLE_RANGE_ERROR || code == CURLE_BAD_DOWNLOAD_RESUME) {
		restart(t, VERDICT_RETRY); /* a file:// that is shorter than what is here */
		return t->refused;
	}
	return VERDICT_RETRY;
}

/* All bytes are here. A wrong digest is final only when they came in one whole answer: a file that
 * was resumed may be the beginning of something else. */
static enum verdict judge_content(struct transfer *t)
{
	const struct input *in = t->part.in;

	if (t->part.size < in->size) {
		err_set(&t->e, ERR_NETWORK, "%s: %s: ended after %" PRIu64 " of %" PRIu64 " bytes",
			in->name, t->where, t->part.size, in->size);
		return VERDICT_RETRY;
	}
	if (partial_publish(&t->part, t->where, &t->e) == 0)
		return VERDICT_DONE;
	if (t->e.kind != ERR_CORRUPT)
		return VERDICT_FAILED;
	err_hint(&t->e, "what arrived was deleted; the mirror or a proxy in between altered it");
	restart(t, t->whole ? VERDICT_FAILED : VERDICT_RETRY);
	return t->refused;
}

enum verdict transfer_end(struct transfer *t, CURLcode code)
{
	if (t->refused != VERDICT_NONE)
		return t->refused;
	if (code == CURLE_HTTP_RETURNED_ERROR)
		return judge_status(t);
	if (code != CURLE_OK)
		return judge_code(t, code);
	if (!t->accepted && accept_answer(t) < 0) /* an empty body */
		return t->refused;
	return judge_content(t);
}
