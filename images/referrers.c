#include "images/referrers.h"

#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/models.h"
#include "images/signature.h"

enum {
	LAYERS_MAX = 64,
	FETCH_MAX = 64 << 20, /* bytes of signatures that one image is worth */
};

/* ---- fetching ---- */

static bool is_signature(const char *type)
{
	return type && (str_starts(type, "application/vnd.dev.sigstore.bundle.") ||
			       str_eq(type, COSIGN_REFERRER_TYPE));
}

/* A fetch of all signatures of one manifest. */
struct fetching {
	struct registry *r;
	struct store *s;
	const struct digest *subject;
	uint64_t left; /* bytes */
};

static int spend(struct fetching *f, uint64_t n, struct err *e)
{
	if (n > f->left)
		return err_set(e, ERR_CORRUPT, "more than %d MiB of signatures", FETCH_MAX >> 20);
	f->left -= n;
	return 0;
}

static int fetch_blob(struct fetching *f, const json_t *o, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(SIGNATURE_PAYLOAD_MAX);
	struct descriptor d;
	struct digest digest;

	if (descriptor_read(&d, o, e) < 0)
		return -1;
	if (store_has(f->s, &d.digest))
		return 0;
	if (spend(f, d.size, e) < 0 || registry_blob(f->r, &d.digest, d.size, &b, e) < 0)
		return -1;
	return store_blob_put(f->s, b.data ? b.data : "", b.len, &digest, e);
}

/* Config, layers, and the manifest itself. */
static int keep(struct fetching *f, const struct buf *text, struct err *e)
{
	auto_json json_t *doc = json_parse(text->data ? text->data : "", text->len, e);
	const json_t *layers = doc ? json_array_of(doc, "layers", e) : NULL, *o;
	struct digest digest;
	size_t i;

	if (!layers || spend(f, text->len, e) < 0)
		return -1;
	if (json_array_size(layers) > LAYERS_MAX)
		return err_set(e, ERR_CORRUPT, "more than %d layers", LAYERS_MAX);
	if (fetch_blob(f, json_object_get(doc, "config"), e) < 0)
		return err_ctx(e, "/config");
	json_array_foreach (layers, i, o)
		if (fetch_blob(f, o, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
	return store_blob_put(f->s, text->data, text->len, &digest, e);
}

/* What has no right form is not an image's fault: it is left out, so that anybody's rubbish does
 * not keep a good signature from being seen. What the network did is told. */
static int leave_out(const struct err *fault, struct err *e)
{
	if (fault->kind == ERR_CORRUPT || fault->kind == ERR_NOT_FOUND ||
		fault->kind == ERR_UNSUPPORTED)
		return 0;
	if (e)
		*e = *fault;
	return -1;
}

static int fetch_tagged(struct fetching *f, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(ATTACHED_DOCUMENT_MAX);
	char tag[ATTACHED_TAG], type[REGISTRY_TYPE], text[DIGEST_TEXT + 1];
	auto_json json_t *descriptor = NULL;
	struct err fault = {0};
	struct digest d;

	attached_tag(f->subject, ".sig", tag);
	if (registry_manifest(f->r, tag, &b, type, &d, &fault) < 0 || keep(f, &b, &fault) < 0)
		return leave_out(&fault, e);
	descriptor = json_pack("{s:s, s:s, s:I, s:{s:s}}", "mediaType", OCI_MANIFEST_TYPE, "digest",
		digest_text(&d, text), "size", (json_int_t)b.len, "annotations", REF_NAME, tag);
	return attached_add(f->s, f->subject, descriptor, e);
}

static int fetch_one(struct fetching *f, const json_t *descriptor, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(ATTACHED_DOCUMENT_MAX);
	char text[DIGEST_TEXT + 1], type[REGISTRY_TYPE];
	struct descriptor d;
	struct err fault = {0};
	struct digest found;

	if (descriptor_read(&d, descriptor, &fault) < 0 ||
		registry_manifest(f->r, digest_text(&d.digest, text), &b, type, &found, &fault) <
			0 ||
		keep(f, &b, &fault) < 0)
		return leave_out(&fault, e);
	return attached_add(f->s, f->subject, descriptor, e);
}

/* The index under the tag sha256-HEX: 1, 0, -1. */
static int fallback(struct registry *r, const struct digest *subject, json_t **list, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(REGISTRY_MANIFEST_MAX);
	char tag[ATTACHED_TAG], type[REGISTRY_TYPE];
	auto_json json_t *doc = NULL;
	struct err fault = {0};
	struct digest d;

	if (registry_manifest(r, attached_tag(subject, "", tag), &b, type, &d, &fault) < 0)
		return leave_out(&fault, e);
	doc = json_parse(b.data ? b.data : "", b.len, NULL);
	*list = json_incref(json_object_get(doc, "manifests"));
	return json_is_array(*list);
}

int referrers_fetch(
	struct registry *r, struct store *s, const struct digest *subject, struct err *e)
{
	struct fetching f = {r, s, subject, FETCH_MAX};
	auto_json json_t *list = NULL;
	const json_t *o;
	size_t i, taken = 0;
	int rc = fetch_tagged(&f, e);

	if (rc == 0)
		rc = registry_referrers(r, subject, &list, e);
	if (rc == 0)
		rc = fallback(r, subject, &list, e);
	if (rc < 0)
		return err_ctx(e, "signatures");
	json_array_foreach (list, i, o) {
		const char *type = json_string_value(json_object_get(o, "artifactType"));

		if (is_signature(type) && taken++ < LAYERS_MAX && fetch_one(&f, o, e) < 0)
			return err_ctx(e, "signatures");
	}
	return 0;
}

int referrers_fetch_index(struct registry *r, struct store *s, const struct digest *subject,
	const void *index, size_t n, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	auto_json json_t *descriptor = NULL;
	struct digest d;

	if (store_blob_put(s, index, n, &d, e) < 0 || referrers_fetch(r, s, &d, e) < 0)
		return -1;
	descriptor = json_pack("{s:s, s:s, s:I}", "mediaType", OCI_INDEX_TYPE, "digest",
		digest_text(&d, text), "size", (json_int_t)n);
	return attached_add(s, subject, descriptor, e);
}

/* ---- pushing: cosign's tag ---- */

static bool same_layer(const json_t *a, const json_t *b)
{
	const char *x = json_string_value(json_object_get(a, "digest")),
		   *y = json_string_value(json_object_get(b, "digest"));
	const char *s = json_string_value(json_object_get(
			   json_object_get(a, "annotations"), SIGNATURE_ANNOTATION)),
		   *t = json_string_value(json_object_get(
			   json_object_get(b, "annotations"), SIGNATURE_ANNOTATION));

	return x && y && s && t && str_eq(x, y) && str_eq(s, t);
}

static bool has_layer(const json_t *list, const json_t *layer)
{
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o)
		if (same_layer(o, layer))
			return true;
	return false;
}

/* theirs, with those of ours that it lacks; how many these were. */
static size_t add_layers(json_t *theirs, const json_t *ours)
{
	json_t *list = json_object_get(theirs, "layers"), *o;
	size_t i, n = 0;

	json_array_foreach (json_object_get(ours, "layers"), i, o)
		if (!has_layer(list, o)) {
			json_array_append(list, o);
			n++;
		}
	return n;
}

static json_t *read_document(
	struct store *s, const json_t *descriptor, struct buf *b, struct err *e)
{
	struct descriptor d;

	if (descriptor_read(&d, descriptor, e) < 0 ||
		store_blob_read(s, &d.digest, ATTACHED_DOCUMENT_MAX, b, e) < 0)
		return NULL;
	return json_parse(b->data ? b->data : "", b->len, e);
}

/* What the registry has under the tag; NULL: nothing, or nothing that could be added to. */
static json_t *their_signatures(struct registry *r, const char *tag)
{
	auto_buf struct buf b = BUF_INIT(ATTACHED_DOCUMENT_MAX);
	char type[REGISTRY_TYPE];
	auto_json json_t *doc = NULL;
	struct digest d;

	if (registry_manifest(r, tag, &b, type, &d, NULL) < 0)
		return NULL;
	doc = json_parse(b.data ? b.data : "", b.len, NULL);
	return json_is_array(json_object_get(doc, "layers")) ? json_incref(doc) : NULL;
}

static int push_tagged(
	struct push_target *t, const char *tag, const json_t *descriptor, struct err *e)
{
	auto_buf struct buf b = {0}, merged = BUF_INIT(ATTACHED_DOCUMENT_MAX);
	auto_json json_t *ours = read_document(t->s, descriptor, &b, e), *theirs = NULL;
	struct descriptor d;

	if (!ours || descriptor_read(&d, descriptor, e) < 0)
		return -1;
	theirs = their_signatures(t->r, tag);
	if (theirs && add_layers(theirs, ours) == 0)
		return 0;
	if (push_blobs(t, &d.digest, ours, e) < 0)
		return -1;
	t->result->present = false;
	if (!theirs)
		return registry_put_manifest(t->r, tag, OCI_MANIFEST_TYPE, b.data, b.len, e);
	if (json_text_bounded(theirs, &merged, e) < 0)
		return err_ctx(e, "%s", tag);
	return registry_put_manifest(t->r, tag, OCI_MANIFEST_TYPE, merged.data, merged.len, e);
}

/* ---- pushing: manifests with a subject ---- */

static bool is_listed(const json_t *list, const json_t *descriptor)
{
	const char *want = json_string_value(json_object_get(descriptor, "digest"));
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o) {
		const char *d = json_string_value(json_object_get(o, "digest"));

		if (d && want && str_eq(d, want))
			return true;
	}
	return false;
}

/* *listed: the registry lists it by itself. */
static int push_referrer(
	struct push_target *t, const json_t *descriptor, bool *listed, struct err *e)
{
	auto_buf struct buf b = {0};
	auto_json json_t *doc = read_document(t->s, descriptor, &b, e);
	char text[DIGEST_TEXT + 1];
	struct descriptor d;

	if (!doc || descriptor_read(&d, descriptor, e) < 0 || push_blobs(t, &d.digest, doc, e) < 0)
		return -1;
	t->result->present = false;
	return registry_put_referrer(
		t->r, digest_text(&d.digest, text), OCI_MANIFEST_TYPE, b.data, b.len, listed, e);
}

/* Of a registry without the API: the index under the tag gets those of ours that it lacks. */
static int push_fallback(
	struct push_target *t, const struct digest *subject, const json_t *ours, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(ATTACHED_DOCUMENT_MAX);
	auto_json json_t *list = NULL, *doc = NULL;
	char tag[ATTACHED_TAG];
	json_t *o;
	size_t i, added = 0;
	int rc = fallback(t->r, subject, &list, e);

	if (rc < 0)
		return -1;
	if (rc == 0) {
		json_decref(list);
		list = json_array();
	}
	json_array_foreach (ours, i, o)
		if (!is_listed(list, o)) {
			json_array_append(list, o);
			added++;
		}
	if (added == 0)
		return 0;
	doc = json_pack("{s:i, s:s, s:O}", "schemaVersion", 2, "mediaType", OCI_INDEX_TYPE,
		"manifests", list);
	if (json_text_bounded(doc, &b, e) < 0)
		return err_ctx(e, "%s", attached_tag(subject, "", tag));
	return registry_put_manifest(
		t->r, attached_tag(subject, "", tag), OCI_INDEX_TYPE, b.data, b.len, e);
}

static const char *tag_of(const json_t *descriptor)
{
	return json_string_value(
		json_object_get(json_object_get(descriptor, "annotations"), REF_NAME));
}

int referrers_push(struct push_target *t, const struct digest *subject, struct err *e)
{
	auto_json json_t *list = attached_list(t->s, subject, e), *theirs = NULL,
			 *unlisted = json_array();
	json_t *o;
	size_t i;
	int api;

	if (!list)
		return -1;
	if (json_array_size(list) == 0)
		return 0;
	api = registry_referrers(t->r, subject, &theirs, e);
	if (api < 0 || (api == 0 && fallback(t->r, subject, &theirs, e) < 0))
		return err_ctx(e, "what is attached");
	json_array_foreach (list, i, o) {
		const char *tag = tag_of(o),
			   *type = json_string_value(json_object_get(o, "artifactType"));
		bool listed = true;
		int rc = 0;

		if (type && str_eq(type, MODEL_TYPE)) /* models_push() */
			continue;
		if (tag)
			rc = push_tagged(t, tag, o, e);
		else if (type && !is_listed(theirs, o))
			rc = push_referrer(t, o, &listed, e);
		if (rc < 0)
			return err_ctx(e, "what is attached");
		if (!listed && api == 0)
			json_array_append(unlisted, o);
	}
	return json_array_size(unlisted) ? push_fallback(t, subject, unlisted, e) : 0;
}
