/* A registry of one repository ("team/app") with one manifest and one blob, for tests of clients:
 * authentication, redirects, uploads, and faults on order. Include once per test. */
#ifndef TESTS_FAKE_REGISTRY_H
#define TESTS_FAKE_REGISTRY_H

#include "base/mem.h"
#include "images/digest.h"
#include "tests/helpers/webd.h"

struct fake {
	struct webd w;
	char host[32]; /* "127.0.0.1:PORT" */

	const char *manifest, *type;
	const unsigned char *blob;
	size_t n;
	char digest[DIGEST_TEXT + 1]; /* of the blob */

	/* what it wants */
	const char *challenge;     /* WWW-Authenticate, or NULL: anybody may come */
	const char *authorization; /* the one value that is let in */
	char redirect[256];        /* "": none; else blobs are there */

	/* faults: of the first `times` requests that begin so, or of all when it is 0 */
	const char *fail_method, *fail_in; /* NULL: any; a part of the target */
	unsigned times, failed;
	int status; /* -1: close */
	const char *header, *words;

	/* uploads */
	unsigned char *up;
	size_t up_n, min_chunk, limit;
	unsigned sessions, patches, puts, deletes, generation;
	bool relative, no_patch, forget;

	/* what came */
	unsigned manifests, heads, blobs, refused, ranges;
	char last_authorization[8192], last_accept[1024];
	char log[65536];
};

static void fake_words(struct webd_reply *a, int status, const char *code)
{
	static _Thread_local char text[256];

	snprintf(text, sizeof(text), "{\"errors\":[{\"code\":\"%s\",\"message\":\"so it is\"}]}",
		code);
	a->status = status;
	a->body = text;
	a->n = strlen(text);
}

static bool fake_fault(struct fake *f, const struct webd_request *q, struct webd_reply *a)
{
	if (!f->status || (f->times && f->failed >= f->times))
		return false;
	if (f->fail_method && strcmp(q->method, f->fail_method) != 0)
		return false;
	if (f->fail_in && !strstr(q->target, f->fail_in))
		return false;
	f->failed++;
	a->status = f->status < 0 ? 0 : f->status;
	a->body = f->words ? f->words : "";
	a->n = strlen(a->body);
	if (f->header)
		webd_head(a, "%s", f->header);
	return true;
}

static bool fake_let_in(struct fake *f, const struct webd_request *q, struct webd_reply *a)
{
	snprintf(f->last_authorization, sizeof(f->last_authorization), "%s",
		webd_field(q, "Authorization"));
	if (!f->challenge || (f->authorization && f->last_authorization[0] &&
				     strcmp(f->last_authorization, f->authorization) == 0))
		return true;
	f->refused++;
	fake_words(a, 401, "UNAUTHORIZED");
	webd_head(a, "WWW-Authenticate: %s", f->challenge);
	return false;
}

static void fake_data(
	struct fake *f, const struct webd_request *q, struct webd_reply *a, const void *p, size_t n)
{
	const char *range = webd_field(q, "Range");
	unsigned long first, last;

	a->status = 200;
	a->body = p;
	a->n = n;
	if (sscanf(range, "bytes=%lu-%lu", &first, &last) == 2 && last < n) {
		f->ranges++;
		a->status = 206;
		a->body = (const char *)p + first;
		a->n = last - first + 1;
		webd_head(a, "Content-Range: bytes %lu-%lu/%zu", first, last, n);
	}
}

static void fake_location(struct fake *f, struct webd_reply *a)
{
	char where[128] = "";

	if (!f->relative)
		snprintf(where, sizeof(where), "http://%s", f->host);
	webd_head(a, "Location: %s/v2/team/app/blobs/uploads/s%u?_state=%u", where, f->sessions,
		++f->generation);
	if (f->up_n || !f->min_chunk)
		webd_head(a, "Range: 0-%zu", f->up_n ? f->up_n - 1 : 0);
	if (f->min_chunk)
		webd_head(a, "OCI-Chunk-Min-Length: %zu", f->min_chunk);
}

static void fake_add(struct fake *f, const struct webd_request *q)
{
	f->up = realloc(f->up, f->up_n + q->n + 1);
	if (!f->up)
		abort();
	memcpy(f->up + f->up_n, q->body, q->n);
	f->up_n += q->n;
}

static void fake_session(struct fake *f, const struct webd_request *q, struct webd_reply *a)
{
	char newest[64], range[64], text[DIGEST_TEXT + 1];
	const char *digest = strstr(q->target, "&digest=");
	struct digest d;

	snprintf(newest, sizeof(newest), "uploads/s%u?_state=%u", f->sessions, f->generation);
	snprintf(range, sizeof(range), "%zu-%zu", f->up_n, f->up_n + q->n - 1);
	if (!strstr(q->target, newest) || f->forget) {
		f->forget = false;
		fake_words(a, 404, "BLOB_UPLOAD_UNKNOWN");
	} else if (f->limit && q->n > f->limit) {
		a->status = 413;
	} else if (strcmp(q->method, "PATCH") == 0) {
		f->patches++;
		if (f->no_patch) {
			a->status = 405;
			return;
		}
		if (q->whole && strcmp(webd_field(q, "Content-Range"), range) != 0) {
			a->status = 416;
			return;
		}
		fake_add(f, q);
		a->status = 202;
		if (q->whole)
			fake_location(f, a);
	} else if (strcmp(q->method, "GET") == 0) {
		a->status = 204;
		fake_location(f, a);
	} else if (strcmp(q->method, "PUT") == 0 && digest) {
		f->puts++;
		fake_add(f, q);
		d = digest_of(f->up ? (const void *)f->up : "", f->up_n);
		if (strcmp(digest + 8, digest_text(&d, text)) == 0) {
			a->status = 201;
			f->blob = f->up;
			f->n = f->up_n;
			memcpy(f->digest, text, sizeof(text));
		} else {
			fake_words(a, 400, "DIGEST_INVALID");
		}
	} else if (strcmp(q->method, "DELETE") == 0) {
		f->deletes++;
		a->status = 204;
	} else {
		a->status = 400;
	}
}

static void fake_blob(struct fake *f, const struct webd_request *q, struct webd_reply *a)
{
	bool head = strcmp(q->method, "HEAD") == 0;

	f->heads += head;
	f->blobs += !head;
	if (!f->digest[0] || !strstr(q->target, f->digest)) {
		fake_words(a, 404, "BLOB_UNKNOWN");
	} else if (f->redirect[0]) {
		a->status = 307;
		webd_head(a, "Location: %s", f->redirect);
	} else {
		fake_data(f, q, a, f->blob, f->n);
	}
}

static void fake_manifest(struct fake *f, const struct webd_request *q, struct webd_reply *a)
{
	struct digest d = digest_of(f->manifest, strlen(f->manifest));
	char text[DIGEST_TEXT + 1];

	snprintf(f->last_accept, sizeof(f->last_accept), "%s", webd_field(q, "Accept"));
	f->manifests++;
	a->status = 200;
	a->body = f->manifest;
	a->n = strlen(f->manifest);
	webd_head(a, "Content-Type: %s", f->type);
	if (!f->header)
		webd_head(a, "Docker-Content-Digest: %s", digest_text(&d, text));
	else
		webd_head(a, "%s", f->header);
	if (strcmp(q->method, "PUT") == 0)
		a->status = 201;
}

static void fake_handle(struct webd *w, const struct webd_request *q, struct webd_reply *a)
{
	struct fake *f = w->ctx;
	size_t at = strlen(f->log);

	snprintf(f->log + at, sizeof(f->log) - at, "%s %s\n", q->method, q->target);
	if (fake_fault(f, q, a) || !fake_let_in(f, q, a))
		return;
	if (strcmp(q->target, "/v2/") == 0) {
		a->status = 200;
		a->body = "{}";
		a->n = 2;
	} else if (strncmp(q->target, "/v2/team/app/manifests/", 23) == 0) {
		fake_manifest(f, q, a);
	} else if (strstr(q->target, "?mount=")) {
		a->status = strstr(q->target, "from=team/base") ? 201 : 202;
		f->sessions++;
		f->up_n = 0;
		fake_location(f, a);
	} else if (strcmp(q->target, "/v2/team/app/blobs/uploads/") == 0) {
		a->status = 202;
		f->sessions++;
		f->up_n = 0;
		fake_location(f, a);
	} else if (strncmp(q->target, "/v2/team/app/blobs/uploads/", 27) == 0) {
		fake_session(f, q, a);
	} else if (strncmp(q->target, "/v2/team/app/blobs/", 19) == 0) {
		fake_blob(f, q, a);
	} else if (strncmp(q->target, "/storage/", 9) == 0) { /* where redirects lead */
		f->blobs++;
		fake_data(f, q, a, f->blob, f->n);
	} else {
		fake_words(a, 404, "NAME_UNKNOWN");
	}
}

static void fake_start(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	f->manifest = "{\"schemaVersion\":2}";
	f->type = "application/vnd.oci.image.manifest.v1+json";
	webd_start(&f->w, fake_handle, f);
	snprintf(f->host, sizeof(f->host), "127.0.0.1:%d", f->w.port);
}

static __attribute__((unused)) void fake_has(struct fake *f, const void *p, size_t n)
{
	struct digest d = digest_of(p, n);

	f->blob = p;
	f->n = n;
	digest_text(&d, f->digest);
}

static void fake_stop(struct fake *f)
{
	webd_stop(&f->w);
	free(f->up);
}

#endif
