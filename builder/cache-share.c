#include "builder/cache-share-private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/bill.h"
#include "images/attached.h"
#include "images/bills.h"
#include "images/image.h"
#include "images/pool.h"
#include "images/pull.h"
#include "images/push.h"
#include "images/registry.h"
#include "images/workers.h"

enum { DOCUMENT_MAX = 64 << 10, BILL_MAX = 64 << 20, AT_ONCE = 8 };

char *share_tag(const struct digest *key, char out[SHARE_TAG])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, SHARE_TAG, "action-%s", digest_hex(key, hex));
	return out;
}

/* A repository: a reference without tag and digest. */
int share_repository(struct reference *r, const char *text, const char *option, struct err *e)
{
	const char *slash = strrchr(text, '/');

	if (reference_parse(r, text, e) < 0)
		return err_ctx(e, "%s", option);
	if (r->has_digest || (slash && strchr(slash, ':')))
		return err_set(e, ERR_USAGE, "%s: '%s' has a tag or digest: a repository is wanted",
			option, text);
	return 0;
}

struct registry *share_open_registry(
	const struct cache_share_site *c, const struct reference *r, bool push, struct err *e)
{
	struct registry_options o = {.config = c->config,
		.host = r->host,
		.path = r->path,
		.push = push,
		.plain_http = c->plain_http};

	return registry_open(&o, e);
}

/* ---- import ---- */

struct action {
	struct share_action a;
	struct digest manifest;
};

static int read_blob(
	const struct share_action *a, size_t i, struct registry *r, struct buf *b, struct err *e)
{
	struct descriptor d;

	if (descriptor_read(&d, json_array_get(json_object_get(a->artifact, "layers"), i), e) < 0)
		return -1;
	if (d.size > b->max)
		return err_set(e, ERR_CORRUPT, "a blob of %" PRIu64 " bytes, the limit is %zu",
			d.size, b->max);
	return registry_blob(r, &d.digest, d.size, b, e);
}

int share_blob(
	const struct share_action *a, size_t i, struct registry *r, struct buf *b, struct err *e)
{
	if (i >= json_array_size(json_object_get(a->artifact, "layers")))
		return err_set(e, ERR_CORRUPT, "an action without its blob %zu", i);
	return read_blob(a, i, r, b, e);
}

static int read_document(struct share_action *a, struct registry *r, const struct digest *key,
	const char *kind, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(DOCUMENT_MAX);
	char hex[DIGEST_HEX + 1];
	const char *found_key, *found_kind;

	if (share_blob(a, 0, r, &text, e) < 0)
		return -1;
	a->doc = json_parse(text.data, text.len, e);
	found_key = a->doc ? json_str(a->doc, "key", e) : NULL;
	found_kind = found_key ? json_str(a->doc, "kind", e) : NULL;
	if (!found_kind)
		return -1;
	if (!str_eq(found_key, digest_hex(key, hex)) || !str_eq(found_kind, kind))
		return err_set(e, ERR_CORRUPT, "the action is one of another key or kind");
	return 0;
}

int share_read(struct share_action *a, struct registry *r, const struct digest *key,
	const char *kind, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(REGISTRY_MANIFEST_MAX);
	char type[REGISTRY_TYPE], tag[SHARE_TAG];
	struct digest d;
	struct err fault = {0};

	*a = (struct share_action){0};
	if (registry_manifest(r, share_tag(key, tag), &text, type, &d, &fault) < 0) {
		if (fault.kind == ERR_NOT_FOUND)
			return 0;
		if (e)
			*e = fault;
		return -1;
	}
	a->artifact = json_parse(text.data, text.len, e);
	if (a->artifact && read_document(a, r, key, kind, e) == 0)
		return 1;
	share_action_fini(a);
	return -1;
}

void share_action_fini(struct share_action *a)
{
	json_decref(a->artifact);
	json_decref(a->doc);
	*a = (struct share_action){0};
}

static int read_image(struct action *a, struct registry *r, const struct digest *key, struct err *e)
{
	int rc = share_read(&a->a, r, key, "image", e);
	const char *manifest = rc > 0 ? json_str(a->a.doc, "manifest", e) : NULL;

	if (rc <= 0)
		return rc;
	return !manifest || digest_parse(&a->manifest, manifest, e) < 0 ? -1 : 1;
}

static int keep_bill(const struct action *a, struct registry *r, struct store *s, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(BILL_MAX);

	if (json_array_size(json_object_get(a->a.artifact, "layers")) < 2)
		return 0;
	return share_blob(&a->a, 1, r, &b, e) < 0 ? -1
						  : bills_merge(s, &a->manifest, b.data, b.len, e);
}

static int pull(const struct action *a, struct store *s, const struct cache_share_site *c,
	const struct reference *from, struct progress *p, char **name, struct err *e)
{
	struct pull_options o = {.plain_http = c->plain_http};
	struct pull_result r;
	struct reference ref = *from;
	char text[REFERENCE_TEXT];

	ref.tag[0] = '\0';
	ref.has_digest = true;
	ref.digest = a->manifest;
	if (image_pull(s, c->config, reference_text(&ref, text), &o, p, &r, e) < 0)
		return -1;
	*name = mem_strdup(r.name);
	return 0;
}

static int import(struct store *s, const struct cache_share_site *c, const char *from,
	const struct digest *key, struct progress *p, struct action *a, char **name, struct err *e)
{
	struct reference ref;
	struct registry *r;
	int rc;

	if (share_repository(&ref, from, "--cache-from", e) < 0)
		return -1;
	r = share_open_registry(c, &ref, false, e);
	if (!r)
		return -1;
	rc = read_image(a, r, key, e);
	if (rc > 0 && (pull(a, s, c, &ref, p, name, e) < 0 || keep_bill(a, r, s, e) < 0))
		rc = -1;
	registry_close(r);
	return rc;
}

int cache_share_import(struct store *s, const struct cache_share_site *c, const char *from,
	const struct digest *key, struct progress *p, struct digest *manifest, char **name,
	struct err *e)
{
	struct action a = {0};
	struct err fault = {0};
	int rc = import(s, c, from, key, p, &a, name, &fault);

	share_action_fini(&a.a);
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

/* The blobs of an artifact, sent side by side. */
struct sending {
	struct share_to *to;
	struct share_out *v;
};

static int send_one(void *ctx, size_t i, struct err *e)
{
	struct sending *x = ctx;
	struct share_out *o = &x->v[i];
	int there = o->there ? 1 : registry_has_blob(x->to->r, &o->digest, e);

	if (there < 0)
		return -1;
	o->there = there > 0;
	if (there)
		return 0;

	auto_fd int fd = store_blob_open(x->to->s, &o->digest, NULL, e);

	return fd < 0 ? -1 : registry_upload(x->to->r, &o->digest, fd, o->size, x->to->p, e);
}

static json_t *describe(const struct share_out *b)
{
	char text[DIGEST_TEXT + 1];

	return json_pack("{s:s, s:s, s:I}", "mediaType", b->type, "digest",
		digest_text(&b->digest, text), "size", (json_int_t)b->size);
}

static int put_artifact(struct registry *r, const struct digest *key, const struct share_out *v,
	size_t n, struct err *e)
{
	auto_json json_t *m = json_object();
	json_t *layers = json_array();
	auto_buf struct buf text = BUF_INIT(REGISTRY_MANIFEST_MAX);
	char tag[SHARE_TAG];

	for (size_t i = 1; i < n; i++)
		json_array_append_new(layers, describe(&v[i]));
	json_object_set_new(m, "schemaVersion", json_integer(2));
	json_object_set_new(m, "mediaType", json_string(OCI_MANIFEST_TYPE));
	json_object_set_new(m, "artifactType", json_string(ACTION_TYPE));
	json_object_set_new(m, "config", describe(&v[0]));
	json_object_set_new(m, "layers", layers);
	json_text(m, true, &text);
	return registry_put_manifest(
		r, share_tag(key, tag), OCI_MANIFEST_TYPE, text.data, text.len, e);
}

int share_add(struct share_out *v, size_t *n, struct store *s, const char *type, const void *p,
	size_t size, struct err *e)
{
	struct share_out *x = &v[(*n)++];

	*x = (struct share_out){.type = type, .size = size};
	return store_blob_put(s, p, size, &x->digest, e);
}

int share_send(
	struct share_to *to, const struct digest *key, struct share_out *v, size_t n, struct err *e)
{
	struct sending x = {.to = to, .v = v};

	for (size_t i = 0; i < n; i++)
		v[i].there = digest_map_find(&to->known, &v[i].digest) != NULL;
	if (workers_each(n, AT_ONCE, send_one, &x, e) < 0 || put_artifact(to->r, key, v, n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		digest_map_add(&to->known, &v[i].digest);
		to->result->there += v[i].there;
		to->result->sent += !v[i].there;
		to->result->bytes += v[i].there ? 0 : v[i].size;
	}
	return 0;
}

static int send_action(
	struct share_to *to, const struct digest *key, const struct digest *manifest, struct err *e)
{
	struct store *s = to->s;
	auto_buf struct buf bill = BUF_INIT(BILL_MAX);
	char hex[DIGEST_HEX + 1], text[DIGEST_TEXT + 1];
	auto_free char *doc = mem_printf("{\"key\":\"%s\",\"kind\":\"image\",\"manifest\":\"%s\"}",
		digest_hex(key, hex), digest_text(manifest, text));
	struct share_out v[3];
	size_t n = 0;
	int rc = bills_get(s, manifest, &bill, e);

	if (rc < 0 || share_add(v, &n, s, EMPTY_TYPE, "{}", 2, e) < 0 ||
		share_add(v, &n, s, ACTION_TYPE, doc, strlen(doc), e) < 0)
		return -1;
	if (rc > 0 &&
		share_add(v, &n, s, "application/vnd.svrun.bill.v1", bill.data, bill.len, e) < 0)
		return -1;
	return share_send(to, key, v, n, e);
}

static int send_image(struct store *s, const struct cache_share_site *c, const struct reference *to,
	const struct digest *manifest, struct progress *p, struct cache_share_result *result,
	struct err *e)
{
	struct reference ref = *to;
	char where[REFERENCE_TEXT], what[DIGEST_TEXT + 1];
	struct push_options o = {.ref = where,
		.plain_http = c->plain_http,
		.accepted = c->accepted.v,
		.naccepted = c->accepted.n};
	struct push_result r;

	ref.tag[0] = '\0';
	ref.has_digest = true;
	ref.digest = *manifest;
	reference_text(&ref, where);
	if (image_push(s, c->config, digest_text(manifest, what), &o, p, &r, e) < 0)
		return -1;
	result->there += r.there + r.mounted;
	result->sent += r.sent;
	result->bytes += r.bytes;
	return 0;
}

static int export_image(struct share_to *to, const struct cache_share_site *c,
	const struct reference *ref, const struct digest *key, const struct digest *manifest,
	struct err *e)
{
	char tag[SHARE_TAG];
	int rc = registry_has_manifest(to->r, share_tag(key, tag), e);

	to->result->present = rc > 0;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (send_image(to->s, c, ref, manifest, to->p, to->result, e) < 0)
		return -1;

	/* nothing names these blobs here: garbage collection takes them again, later */
	auto_fd int hold = pool_hold(to->s->fd, e);

	return hold < 0 ? -1 : send_action(to, key, manifest, e);
}

int cache_share_export(struct store *s, const struct cache_share_site *c, const char *to,
	const struct digest *key, const struct digest *manifest, const struct digest *steps,
	size_t nsteps, struct progress *p, struct cache_share_result *result, struct err *e)
{
	struct share_to x = {.s = s, .site = c, .p = p, .result = result};
	struct reference ref;
	int rc;

	*result = (struct cache_share_result){0};
	if (share_repository(&ref, to, "--cache-to", e) < 0)
		return -1;
	x.r = share_open_registry(c, &ref, true, e);
	if (!x.r)
		return -1;
	rc = export_image(&x, c, &ref, key, manifest, e);
	for (size_t i = 0; rc == 0 && i < nsteps; i++)
		rc = share_send_step(&x, &steps[i], e);
	registry_close(x.r);
	digest_map_fini(&x.known);
	return rc < 0 ? err_ctx(e, "--cache-to %s", to) : 0;
}
