#include "builder/cache-share.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/attached.h"
#include "images/bills.h"
#include "images/image.h"
#include "images/pool.h"
#include "images/pull.h"
#include "images/push.h"
#include "images/registry.h"
#include "images/workers.h"

enum { DOCUMENT_MAX = 64 << 10, BILL_MAX = 64 << 20, AT_ONCE = 8, TAG = 8 + DIGEST_HEX };

static char *tag_of(const struct digest *key, char out[TAG])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, TAG, "action-%s", digest_hex(key, hex));
	return out;
}

/* A repository: a reference without tag and digest. */
static int parse_repository(
	struct reference *r, const char *text, const char *option, struct err *e)
{
	const char *slash = strrchr(text, '/');

	if (reference_parse(r, text, e) < 0)
		return err_ctx(e, "%s", option);
	if (r->has_digest || (slash && strchr(slash, ':')))
		return err_set(e, ERR_USAGE, "%s: '%s' has a tag or digest: a repository is wanted",
			option, text);
	return 0;
}

static struct registry *open_repository(
	const struct config *c, const struct reference *r, bool push, struct err *e)
{
	struct registry_options o = {.config = c, .host = r->host, .path = r->path, .push = push};

	return registry_open(&o, e);
}

/* ---- import ---- */

/* The action's document, checked: the manifest that it says and, when there is one, the bill. */
struct action {
	json_t *artifact;
	struct digest manifest;
	struct descriptor bill;
	bool has_bill;
};

static int read_document(
	struct action *a, struct registry *r, const struct digest *key, struct err *e)
{
	const json_t *layers = json_object_get(a->artifact, "layers"), *first;
	auto_buf struct buf text = BUF_INIT(DOCUMENT_MAX);
	auto_json json_t *doc = NULL;
	struct descriptor d;
	char hex[DIGEST_HEX + 1];
	const char *found, *kind, *manifest;

	first = json_array_get(layers, 0);
	if (!first || descriptor_read(&d, first, e) < 0)
		return err_set(e, ERR_CORRUPT, "an action without a document");
	if (d.size > DOCUMENT_MAX || registry_blob(r, &d.digest, d.size, &text, e) < 0)
		return -1;
	doc = json_parse(text.data, text.len, e);
	if (!doc)
		return -1;
	found = json_str(doc, "key", e);
	kind = found ? json_str(doc, "kind", e) : NULL;
	manifest = kind ? json_str(doc, "manifest", e) : NULL;
	if (!manifest || digest_parse(&a->manifest, manifest, e) < 0)
		return -1;
	if (!str_eq(found, digest_hex(key, hex)) || !str_eq(kind, "image"))
		return err_set(e, ERR_CORRUPT, "the action is one of another key or kind");
	a->has_bill = json_array_size(layers) > 1;
	return a->has_bill ? descriptor_read(&a->bill, json_array_get(layers, 1), e) : 0;
}

/* 1, 0 when there is no such action. */
static int read_action(
	struct action *a, struct registry *r, const struct digest *key, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(REGISTRY_MANIFEST_MAX);
	char type[REGISTRY_TYPE], tag[TAG];
	struct digest d;
	struct err fault = {0};

	if (registry_manifest(r, tag_of(key, tag), &text, type, &d, &fault) < 0) {
		if (fault.kind == ERR_NOT_FOUND)
			return 0;
		if (e)
			*e = fault;
		return -1;
	}
	a->artifact = json_parse(text.data, text.len, e);
	return !a->artifact || read_document(a, r, key, e) < 0 ? -1 : 1;
}

static int keep_bill(const struct action *a, struct registry *r, struct store *s, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(BILL_MAX);

	if (!a->has_bill)
		return 0;
	return registry_blob(r, &a->bill.digest, a->bill.size, &b, e) < 0
		       ? -1
		       : bills_put(s, &a->manifest, b.data, b.len, e);
}

static int pull(const struct action *a, struct store *s, const struct config *c,
	const struct reference *from, struct progress *p, char **name, struct err *e)
{
	struct pull_options o = {0};
	struct pull_result r;
	struct reference ref = *from;
	char text[REFERENCE_TEXT];

	ref.tag[0] = '\0';
	ref.has_digest = true;
	ref.digest = a->manifest;
	if (image_pull(s, c, reference_text(&ref, text), &o, p, &r, e) < 0)
		return -1;
	*name = mem_strdup(r.name);
	return 0;
}

static int import(struct store *s, const struct config *c, const char *from,
	const struct digest *key, struct progress *p, struct action *a, char **name, struct err *e)
{
	struct reference ref;
	struct registry *r;
	int rc;

	if (parse_repository(&ref, from, "--cache-from", e) < 0)
		return -1;
	r = open_repository(c, &ref, false, e);
	if (!r)
		return -1;
	rc = read_action(a, r, key, e);
	if (rc > 0 && (pull(a, s, c, &ref, p, name, e) < 0 || keep_bill(a, r, s, e) < 0))
		rc = -1;
	registry_close(r);
	return rc;
}

int cache_share_import(struct store *s, const struct config *c, const char *from,
	const struct digest *key, struct progress *p, struct digest *manifest, char **name,
	struct err *e)
{
	struct action a = {0};
	struct err fault = {0};
	int rc = import(s, c, from, key, p, &a, name, &fault);

	json_decref(a.artifact);
	*manifest = a.manifest;
	if (rc >= 0)
		return rc;
	if (fault.kind == ERR_USAGE || fault.kind == ERR_SYSTEM) {
		if (e)
			*e = fault;
		return -1;
	}
	progress_note(p, "the shared cache was no help: %s", fault.text);
	return 0;
}

/* ---- export ---- */

struct blob {
	struct digest digest;
	uint64_t size;
	bool there;
};

struct sending {
	struct registry *r;
	struct store *s;
	struct blob v[3];
	struct progress *p;
};

static int send_one(void *ctx, size_t i, struct err *e)
{
	struct sending *x = ctx;
	int there = registry_has_blob(x->r, &x->v[i].digest, e);

	if (there < 0)
		return -1;
	x->v[i].there = there > 0;
	if (there)
		return 0;

	auto_fd int fd = store_blob_open(x->s, &x->v[i].digest, NULL, e);

	return fd < 0 ? -1 : registry_upload(x->r, &x->v[i].digest, fd, x->v[i].size, x->p, e);
}

static int put_blob(struct sending *x, size_t i, const void *p, size_t n, struct err *e)
{
	x->v[i].size = n;
	return store_blob_put(x->s, p, n, &x->v[i].digest, e);
}

static json_t *describe(const struct blob *b, const char *type)
{
	char text[DIGEST_TEXT + 1];

	return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest",
		digest_text(&b->digest, text), "size", (json_int_t)b->size);
}

static int put_artifact(struct sending *x, const struct digest *key, size_t n, struct err *e)
{
	auto_json json_t *m = json_object();
	json_t *layers = json_array();
	auto_buf struct buf text = BUF_INIT(REGISTRY_MANIFEST_MAX);
	char tag[TAG];

	json_array_append_new(layers, describe(&x->v[1], ACTION_TYPE));
	if (n > 2)
		json_array_append_new(layers, describe(&x->v[2], "application/vnd.svrun.bill.v1"));
	json_object_set_new(m, "schemaVersion", json_integer(2));
	json_object_set_new(m, "mediaType", json_string(OCI_MANIFEST_TYPE));
	json_object_set_new(m, "artifactType", json_string(ACTION_TYPE));
	json_object_set_new(m, "config", describe(&x->v[0], EMPTY_TYPE));
	json_object_set_new(m, "layers", layers);
	json_text(m, true, &text);
	return registry_put_manifest(
		x->r, tag_of(key, tag), OCI_MANIFEST_TYPE, text.data, text.len, e);
}

/* The blobs of the artifact are few and small; those of the image went before. */
static int send_action(struct sending *x, const struct digest *key, const struct digest *manifest,
	struct cache_share_result *result, struct err *e)
{
	auto_buf struct buf bill = BUF_INIT(BILL_MAX);
	char hex[DIGEST_HEX + 1], text[DIGEST_TEXT + 1];
	auto_free char *doc = mem_printf("{\"key\":\"%s\",\"kind\":\"image\",\"manifest\":\"%s\"}",
		digest_hex(key, hex), digest_text(manifest, text));
	size_t n = 2;
	int rc = bills_get(x->s, manifest, &bill, e);

	if (rc < 0 || put_blob(x, 0, "{}", 2, e) < 0 || put_blob(x, 1, doc, strlen(doc), e) < 0)
		return -1;
	if (rc > 0 && put_blob(x, n++, bill.data, bill.len, e) < 0)
		return -1;
	if (workers_each(n, AT_ONCE, send_one, x, e) < 0 || put_artifact(x, key, n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		result->there += x->v[i].there;
		result->sent += !x->v[i].there;
		result->bytes += x->v[i].there ? 0 : x->v[i].size;
	}
	return 0;
}

static int send_image(struct store *s, const struct config *c, const struct reference *to,
	const struct digest *manifest, struct progress *p, struct cache_share_result *result,
	struct err *e)
{
	struct reference ref = *to;
	char where[REFERENCE_TEXT], what[DIGEST_TEXT + 1];
	struct push_options o = {.ref = where};
	struct push_result r;

	ref.tag[0] = '\0';
	ref.has_digest = true;
	ref.digest = *manifest;
	reference_text(&ref, where);
	if (image_push(s, c, digest_text(manifest, what), &o, p, &r, e) < 0)
		return -1;
	result->there += r.there + r.mounted;
	result->sent += r.sent;
	result->bytes += r.bytes;
	return 0;
}

static int export(struct sending *x, const struct config *c, const struct reference *to,
	const struct digest *key, const struct digest *manifest, struct cache_share_result *result,
	struct err *e)
{
	char tag[TAG];
	int rc = registry_has_manifest(x->r, tag_of(key, tag), e);

	result->present = rc > 0;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (send_image(x->s, c, to, manifest, x->p, result, e) < 0)
		return -1;

	/* nothing names these blobs here: garbage collection takes them again, later */
	auto_fd int hold = pool_hold(x->s->fd, e);

	return hold < 0 ? -1 : send_action(x, key, manifest, result, e);
}

int cache_share_export(struct store *s, const struct config *c, const char *to,
	const struct digest *key, const struct digest *manifest, struct progress *p,
	struct cache_share_result *result, struct err *e)
{
	struct sending x = {.s = s, .p = p};
	struct reference ref;
	int rc;

	*result = (struct cache_share_result){0};
	if (parse_repository(&ref, to, "--cache-to", e) < 0)
		return -1;
	x.r = open_repository(c, &ref, true, e);
	if (!x.r)
		return -1;
	rc = export(&x, c, &ref, key, manifest, result, e);
	registry_close(x.r);
	return rc < 0 ? err_ctx(e, "--cache-to %s", to) : 0;
}
