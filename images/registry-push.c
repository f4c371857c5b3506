/* What changes a registry: blobs, in sessions that survive broken connections, and manifests.
 *
 *   POST uploads/ -> Location;  PATCH Location (a chunk) -> Location, Range  (again and again)
 *   PUT Location?digest=  ends it; GET Location says how much is there; DELETE Location gives up
 *
 * Source: distribution-spec "Push"; formats.md 4.2. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "images/registry-call.h"
#include "images/url.h"

enum { CHUNK_LEAST = 256 << 10 /* proxies that take less than this are beyond help */ };

/* ---- what is there ---- */

/* HEAD of an address that storage signed for GET is refused by some: one byte says the same. */
static int has_elsewhere(
	struct registry *r, struct endpoint *p, const char *what, const char *url, struct err *e)
{
	static const char *const fields[] = {"Range: bytes=0-0", NULL};
	const struct call c = {.method = "GET",
		.what = what,
		.url = url,
		.fields = fields,
		.content = true,
		.once = true};
	auto_exchange struct exchange x;

	exchange_init(&x, "GET", 1);
	if (call_send(r, p, &c, &x, e) < 0)
		return -1;
	if (x.status == 200 || x.status == 206) /* the whole of it was not waited for */
		return 1;
	return x.status == 404 ? 0 : call_failed(p, what, &x, e);
}

int registry_has_blob(struct registry *r, const struct digest *d, struct err *e)
{
	struct endpoint *p = &r->v[r->n - 1];
	char text[DIGEST_TEXT + 1];
	auto_free char *url = mem_printf("%s/blobs/%s", p->base, digest_text(d, text));
	auto_free char *what = mem_printf("blob %s", text);
	const struct call c = {.method = "HEAD", .what = what, .url = url, .stay = true};
	auto_exchange struct exchange x;

	exchange_init(&x, "HEAD", EXCHANGE_ERROR_MAX);
	if (call_send(r, p, &c, &x, e) < 0)
		return -1;
	if (x.status == 200)
		return 1;
	if (x.status >= 300 && x.status <= 399)
		return has_elsewhere(r, p, what, url, e);
	return x.status == 404 ? 0 : call_failed(p, what, &x, e);
}

/* ---- an upload ---- */

struct upload {
	struct registry *r;
	struct endpoint *p;
	const struct digest *d;
	int fd;
	uint64_t size;
	struct progress *progress;
	char what[DIGEST_TEXT + 16];

	char *location;          /* of the session; NULL: there is none */
	uint64_t at;             /* bytes that the registry holds */
	uint64_t chunk, largest; /* bytes a request; the most that proxies were found to take */
	unsigned tries;          /* since it last got further */
	uint64_t from, told;     /* where the request began; bytes that progress knows of */
};

/* What a step came to, beside 0 and -1. */
enum {
	STEP_LOST = 1, /* the session is gone */
	STEP_WHOLE,    /* chunks are not taken */
	STEP_SMALLER,  /* so much at once is not taken */
	STEP_AGAIN,
};

static void on_sent(void *ctx, uint64_t at)
{
	struct upload *u = ctx;

	if (u->from + at <= u->told) /* sent before, and not arrived */
		return;
	progress_add(u->progress, u->from + at - u->told);
	u->told = u->from + at;
}

/* The session's newest address. */
static int take_location(
	struct upload *u, const char *base, const struct exchange *x, struct err *e)
{
	const char *text = exchange_field(x, "Location", 0);
	char *url;

	if (!text && u->location)
		return 0;
	if (!text)
		return err_set(e, ERR_CORRUPT, "%s: %s: the answer says nowhere to upload to",
			u->p->name, u->what);
	url = url_resolve(base, text, e);
	if (!url)
		return err_ctx(e, "%s: %s", u->p->name, u->what);
	free(u->location);
	u->location = url;
	return 0;
}

/* "0-99", "bytes=0-99": bytes held. A registry that holds none says "0-0", too. */
static int take_range(struct upload *u, const struct exchange *x, uint64_t otherwise, struct err *e)
{
	const char *text = exchange_field(x, "Range", 0);
	uint64_t last = 0;

	if (!text) {
		u->at = otherwise;
		return 0;
	}
	if (str_starts(text, "bytes="))
		text += 6;
	if (!str_starts(text, "0-") || str_u64(text + 2, INT64_MAX, &last) < 0 ||
		(last && last >= u->size))
		return err_set(e, ERR_CORRUPT, "%s: %s: a range that was not uploaded: %.40s",
			u->p->name, u->what, text);
	u->at = last ? last + 1 : 0;
	return 0;
}

static int start(struct upload *u, struct err *e)
{
	auto_free char *url = mem_printf("%s/blobs/uploads/", u->p->base);
	const struct call c = {.method = "POST", .what = u->what, .url = url};
	auto_exchange struct exchange x;
	const char *min;
	uint64_t n;

	free(u->location);
	u->location = NULL;
	u->at = 0;
	u->chunk = u->largest;
	exchange_init(&x, "POST", EXCHANGE_ERROR_MAX);
	if (call_send(u->r, u->p, &c, &x, e) < 0)
		return -1;
	if (x.status != 202)
		return call_failed(u->p, u->what, &x, e);
	min = exchange_field(&x, "OCI-Chunk-Min-Length", 0);
	if (min && str_u64(min, INT64_MAX, &n) == 0 && n > u->chunk)
		u->chunk = n;
	return take_location(u, url, &x, e);
}

/* One request to the session, once; its answer is in x. */
static int send_to(struct upload *u, const char *method, const char *url, const char *const *fields,
	struct exchange_body *b, struct exchange *x, struct err *e)
{
	const struct call c = {.method = method,
		.what = u->what,
		.url = url,
		.fields = fields,
		.body = b,
		.deadline_s = b ? CALL_NO_DEADLINE : 0,
		.content = true,
		.once = true};

	if (b) {
		u->from = b->offset;
		b->sent = on_sent;
		b->ctx = u;
	}
	return call_send(u->r, u->p, &c, x, e);
}

static char *with_digest(const struct upload *u)
{
	char text[DIGEST_TEXT + 1];

	return mem_printf("%s%cdigest=%s", u->location, strchr(u->location, '?') ? '&' : '?',
		digest_text(u->d, text));
}

static void cancel(struct upload *u)
{
	auto_exchange struct exchange x;

	exchange_init(&x, "DELETE", EXCHANGE_ERROR_MAX);
	/* what it says changes nothing: registries clean up by themselves, later */
	if (u->location && send_to(u, "DELETE", u->location, NULL, NULL, &x, NULL) < 0)
		return;
}

/* Did it fail in a way that may pass, and is there another try? Waits. */
static bool passed(struct upload *u, const struct exchange *x)
{
	enum err_kind kind;
	const char *hint;
	bool passes = x->code != CURLE_OK ? exchange_code_passes(x->code, &kind, &hint)
					  : exchange_status_passes(x->status) || x->status == 416;

	if (!passes || ++u->tries >= EXCHANGE_TRIES)
		return false;
	exchange_sleep(exchange_wait_ms(x->retry_after_s, u->r->backoff_ms, u->tries));
	return true;
}

/* A proxy has a limit of its own (413): it may take less. */
static bool shrink(struct upload *u, const struct exchange *x, uint64_t n)
{
	if (x->code != CURLE_OK || x->status != 413 || n / 4 < CHUNK_LEAST)
		return false;
	u->largest = n / 4;
	return true;
}

/* How much arrived? */
static int resync(struct upload *u, struct err *e)
{
	uint64_t before = u->at;
	auto_exchange struct exchange x;

	exchange_init(&x, "GET", EXCHANGE_ERROR_MAX);
	for (;;) {
		if (send_to(u, "GET", u->location, NULL, NULL, &x, e) < 0)
			return -1;
		if (x.code == CURLE_OK && x.status >= 200 && x.status <= 299)
			break;
		if (x.code == CURLE_OK && (x.status == 404 || x.status == 405 || x.status == 410))
			return STEP_LOST;
		if (!passed(u, &x))
			return call_failed(u->p, u->what, &x, e);
	}
	if (take_location(u, u->location, &x, e) < 0 || take_range(u, &x, 0, e) < 0)
		return -1;
	if (u->at > before)
		u->tries = 0;
	return 0;
}

static int send_chunk(struct upload *u, struct err *e)
{
	uint64_t n = u->size - u->at < u->chunk ? u->size - u->at : u->chunk, before = u->at;
	auto_free char *range =
		mem_printf("Content-Range: %" PRIu64 "-%" PRIu64, u->at, u->at + n - 1);
	const char *const fields[] = {"Content-Type: application/octet-stream", range, NULL};
	struct exchange_body b = {.fd = u->fd, .offset = u->at, .n = n};
	auto_exchange struct exchange x;

	exchange_init(&x, "PATCH", EXCHANGE_ERROR_MAX);
	if (send_to(u, "PATCH", u->location, fields, &b, &x, e) < 0)
		return -1;
	if (b.error)
		return err_set(e, ERR_SYSTEM, "%s: read what is to be uploaded: %s", u->what,
			strerror(b.error));
	if (x.code == CURLE_OK && x.status >= 200 && x.status <= 299) {
		if (take_location(u, u->location, &x, e) < 0 ||
			take_range(u, &x, before + n, e) < 0)
			return -1;
		if (u->at > before)
			u->tries = 0;
		return u->at > before || ++u->tries < EXCHANGE_TRIES ? 0 : STEP_LOST;
	}
	if (x.code == CURLE_OK && x.status == 404)
		return STEP_LOST;
	if (x.code == CURLE_OK && u->at == 0 && (x.status == 405 || x.status == 501))
		return STEP_WHOLE;
	if (shrink(u, &x, n))
		return STEP_SMALLER;
	return passed(u, &x) ? resync(u, e) : call_failed(u->p, u->what, &x, e);
}

static int finish_failed(struct upload *u, const struct exchange *x, struct err *e)
{
	char words[EXCHANGE_WORDS];

	call_failed(u->p, u->what, x, e);
	if (e && x->code == CURLE_OK && strstr(exchange_words(x, words), "DIGEST_INVALID"))
		e->kind = ERR_CORRUPT;
	return -1;
}

/* PUT what is not there yet, and the digest. A connection that breaks just then may have done its
 * work: whether the blob is there counts. */
static int finish(struct upload *u, struct err *e)
{
	static const char *const fields[] = {"Content-Type: application/octet-stream", NULL};
	auto_free char *url = with_digest(u);
	struct exchange_body b = {.fd = u->fd, .offset = u->at, .n = u->size - u->at};
	auto_exchange struct exchange x;
	int there, rc;

	exchange_init(&x, "PUT", EXCHANGE_ERROR_MAX);
	if (send_to(u, "PUT", url, fields, &b, &x, e) < 0)
		return -1;
	if (b.error)
		return err_set(e, ERR_SYSTEM, "%s: read what is to be uploaded: %s", u->what,
			strerror(b.error));
	if (x.code == CURLE_OK && x.status >= 200 && x.status <= 299)
		return 0;
	if (shrink(u, &x, b.n))
		return STEP_SMALLER;
	if ((x.code != CURLE_OK || x.status != 404) && !passed(u, &x))
		return finish_failed(u, &x, e);
	there = registry_has_blob(u->r, u->d, e);
	if (there)
		return there < 0 ? -1 : 0;
	if (b.n || (x.code == CURLE_OK && x.status == 404)) /* begun anew: it is small */
		return STEP_LOST;
	rc = resync(u, e);
	return rc == 0 ? STEP_AGAIN : rc;
}

/* One session. 0, -1, or a step that ends it. */
static int session(struct upload *u, bool whole, struct err *e)
{
	int rc = start(u, e);

	while (rc == 0 || rc == STEP_AGAIN) {
		if (!whole && u->size > u->chunk && u->at < u->size)
			rc = send_chunk(u, e);
		else if ((rc = finish(u, e)) == 0)
			return 0;
	}
	return rc;
}

int registry_upload(struct registry *r, const struct digest *d, int fd, uint64_t size,
	struct progress *p, struct err *e)
{
	struct upload u = {.r = r,
		.p = &r->v[r->n - 1],
		.d = d,
		.fd = fd,
		.size = size,
		.progress = p,
		.largest = r->chunk};
	char text[DIGEST_TEXT + 1];
	bool whole = false;
	int rc = -1;

	snprintf(u.what, sizeof(u.what), "blob %s", digest_text(d, text));
	for (unsigned n = 0;;) {
		rc = session(&u, whole, e);
		if (rc <= 0)
			break;
		cancel(&u);
		whole = whole || rc == STEP_WHOLE;
		if (rc == STEP_LOST && ++n >= EXCHANGE_TRIES) {
			rc = err_set(e, ERR_NETWORK,
				"%s: %s: the registry lost the upload %u times", u.p->name, u.what,
				n);
			break;
		}
	}
	if (rc < 0)
		cancel(&u);
	free(u.location);
	return rc;
}

/* ---- without the bytes ---- */

int registry_mount_blob(struct registry *r, const struct digest *d, struct err *e)
{
	struct upload u = {.r = r, .p = &r->v[r->n - 1], .d = d};
	char text[DIGEST_TEXT + 1];
	auto_free char *url = r->mount_from
				      ? mem_printf("%s/blobs/uploads/?mount=%s&from=%s", u.p->base,
						digest_text(d, text), r->mount_from)
				      : NULL;
	const struct call c = {
		.method = "POST", .what = u.what, .url = url, .scope = u.p->mount_scope};
	auto_exchange struct exchange x;
	struct err one = {0};

	exchange_init(&x, "POST", EXCHANGE_ERROR_MAX);
	if (!url)
		return 0;
	snprintf(u.what, sizeof(u.what), "blob %s", text);
	if (call_send(r, u.p, &c, &x, &one) < 0) {
		if (one.kind == ERR_DENIED) /* to read there: it may be uploaded all the same */
			return 0;
		if (e)
			*e = one;
		return -1;
	}
	if (x.status == 201)
		return 1;
	if (x.status == 202 && take_location(&u, url, &x, NULL) == 0)
		cancel(&u); /* an upload was begun instead */
	free(u.location);
	return 0;
}

int registry_put_referrer(struct registry *r, const char *target, const char *type,
	const void *data, size_t n, bool *listed, struct err *e)
{
	struct endpoint *p = &r->v[r->n - 1];
	auto_free char *url = mem_printf("%s/manifests/%s", p->base, target);
	auto_free char *what = mem_printf("manifest %s", target);
	auto_free char *content_type = mem_printf("Content-Type: %s", type);
	const char *const fields[] = {content_type, NULL};
	struct exchange_body b = {.data = data, .n = n};
	const struct call c = {
		.method = "PUT", .what = what, .url = url, .fields = fields, .body = &b};
	struct digest own = digest_of(data, n), theirs;
	auto_exchange struct exchange x;
	const char *said;

	exchange_init(&x, "PUT", EXCHANGE_ERROR_MAX);
	if (!token_usable(type)) /* it is from a document, and becomes part of a header */
		return err_set(e, ERR_CORRUPT, "%s: %s: a media type that is none", p->name, what);
	if (call_send(r, p, &c, &x, e) < 0)
		return -1;
	if (x.status < 200 || x.status > 299)
		return call_failed(p, what, &x, e);
	*listed = exchange_field(&x, "OCI-Subject", 0) != NULL;
	said = exchange_field(&x, "Docker-Content-Digest", 0);
	if (said && digest_parse(&theirs, said, NULL) == 0)
		return digest_check(
			&own, &theirs, e, "%s: %s, as the registry has it", p->name, what);
	return 0;
}

int registry_put_manifest(struct registry *r, const char *target, const char *type,
	const void *data, size_t n, struct err *e)
{
	bool listed;

	return registry_put_referrer(r, target, type, data, n, &listed, e);
}
