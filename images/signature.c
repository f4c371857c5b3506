#include "images/signature.h"

#include <string.h>

#include "base/str.h"
#include "images/base64.h"

static const char *text_at(const json_t *o, const char *a, const char *b)
{
	const json_t *v = json_object_get(o, a);

	return json_string_value(b ? json_object_get(v, b) : v);
}

static struct signature *add(struct signatures *l, const char *form)
{
	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n] = (struct signature){.form = form};
	return &l->v[l->n++];
}

/* What is only shown is cut, and made harmless. */
static const char *shown(struct signatures *l, const char *text)
{
	char *copy = text ? arena_strndup(&l->arena, text, strnlen(text, 300)) : NULL;

	if (copy)
		str_plain(copy, "");
	return copy;
}

static const char *of_digest(struct signatures *l, const char *text)
{
	struct digest d;

	if (!text || digest_parse(&d, text, NULL) < 0)
		return "names no sha256 digest";
	return arena_printf(&l->arena, "is over %s", text);
}

/* The bytes of base64 in the arena; false when it is none, or empty, or longer than max. */
static bool take_base64(
	struct signatures *l, const char *text, size_t max, const void **p, size_t *n)
{
	auto_free char *bytes =
		text && strlen(text) <= max / 3 * 4 + 4 ? base64_decode(text, n) : NULL;

	if (!bytes || *n == 0 || *n > max)
		return false;
	*p = arena_dup(&l->arena, bytes, *n);
	return true;
}

/* ---- certificates and logs ---- */

/* A text in the arena, unless it is too long. */
static const char *bounded(struct signatures *l, const char *text, size_t max)
{
	return text && strlen(text) <= max ? arena_strdup(&l->arena, text) : NULL;
}

/* What a log signed, out of the two ways of writing it down. NULL: something is missing. */
static const struct signature_entry *keep_entry(struct signatures *l, const char *body,
	const char *set, const char *id, int64_t time, int64_t index)
{
	struct signature_entry x = {.time = time, .index = index};

	x.body = bounded(l, body, 2 * SIGNATURE_PAYLOAD_MAX);
	if (!x.body || !id || str_copy(x.id, sizeof(x.id), id) < 0 || time <= 0 || index < 0 ||
		!take_base64(l, set, SIGN_DER_MAX, &x.set, &x.nset))
		return NULL;
	return arena_dup(&l->arena, &x, sizeof(x));
}

/* cosign's: {"SignedEntryTimestamp", "Payload": {"body", "integratedTime", "logIndex", "logID"}} */
static const struct signature_entry *annotated_entry(struct signatures *l, const char *text)
{
	auto_json json_t *doc = text && strlen(text) <= 2 * SIGNATURE_PAYLOAD_MAX
					? json_parse(text, strlen(text), NULL)
					: NULL;
	const json_t *o = json_object_get(doc, "Payload");

	return keep_entry(l, text_at(o, "body", NULL), text_at(doc, "SignedEntryTimestamp", NULL),
		text_at(o, "logID", NULL), json_integer_value(json_object_get(o, "integratedTime")),
		json_integer_value(json_object_get(o, "logIndex")));
}

/* Protocol buffers write 64-bit numbers as strings. */
static int64_t number_at(const json_t *o, const char *key)
{
	const char *text = text_at(o, key, NULL);
	uint64_t v;

	return text && str_u64(text, INT64_MAX, &v) == 0 ? (int64_t)v : -1;
}

/* Sigstore's: verificationMaterial.tlogEntries[0] */
static const struct signature_entry *bundled_entry(struct signatures *l, const json_t *material)
{
	const json_t *o = json_array_get(json_object_get(material, "tlogEntries"), 0);
	const char *key = text_at(o, "logId", "keyId");
	char hex[DIGEST_HEX + 1];
	size_t n = 0;
	auto_free char *id = key && strlen(key) < 64 ? base64_decode(key, &n) : NULL;

	if (!id || n != DIGEST_SIZE)
		return NULL;
	hex_encode((const uint8_t *)id, n, hex);
	return keep_entry(l, text_at(o, "canonicalizedBody", NULL),
		text_at(o, "inclusionPromise", "signedEntryTimestamp"), hex,
		number_at(o, "integratedTime"), number_at(o, "logIndex"));
}

/* DER in base64 is PEM without its lines; to the end of b. */
static void put_pem(struct buf *b, const char *base64)
{
	buf_printf(b, "-----BEGIN CERTIFICATE-----\n");
	for (size_t n = strlen(base64), at = 0; at < n; at += 64)
		buf_printf(b, "%.64s\n", base64 + at);
	buf_printf(b, "-----END CERTIFICATE-----\n");
}

/* "certificate": {"rawBytes"}, or "x509CertificateChain": {"certificates": [{"rawBytes"}, ...]} */
static void take_bundled(struct signatures *l, struct signature *x, const json_t *material)
{
	const json_t *list =
		json_object_get(json_object_get(material, "x509CertificateChain"), "certificates");
	const char *raw = text_at(material, "certificate", "rawBytes");
	auto_buf struct buf leaf = BUF_INIT(2 * SIGNATURE_CERTIFICATES_MAX),
			    chain = BUF_INIT(4 * SIGNATURE_CERTIFICATES_MAX);

	raw = raw ? raw : text_at(json_array_get(list, 0), "rawBytes", NULL);
	x->entry = bundled_entry(l, material);
	if (!raw || strlen(raw) > SIGNATURE_CERTIFICATES_MAX)
		return;
	put_pem(&leaf, raw);
	for (size_t i = 1; i < json_array_size(list); i++) {
		const char *more = text_at(json_array_get(list, i), "rawBytes", NULL);

		if (more && chain.len + strlen(more) < SIGNATURE_CERTIFICATES_MAX)
			put_pem(&chain, more);
	}
	x->certificate = arena_strdup(&l->arena, leaf.data);
	x->chain = chain.len ? arena_strdup(&l->arena, chain.data) : NULL;
}

/* ---- the tag form ---- */

static const char *check_payload(
	struct signatures *l, struct signature *x, const struct digest *manifest)
{
	auto_json json_t *doc = json_parse(x->bytes, x->nbytes, NULL);
	const json_t *critical = json_object_get(doc, "critical");
	const char *type = text_at(critical, "type", NULL),
		   *said = text_at(critical, "image", "docker-manifest-digest");
	char text[DIGEST_TEXT + 1];

	if (!json_is_object(critical))
		return "has a payload that is not simple signing";
	x->reference = shown(l, text_at(critical, "identity", "docker-reference"));
	if (!type || !str_eq(type, "cosign container image signature"))
		return "has a payload of another type";
	if (!said || !str_eq(said, digest_text(manifest, text)))
		return of_digest(l, said);
	return NULL;
}

void signatures_add_simple(struct signatures *l, const char *form, const struct digest *manifest,
	const void *payload, size_t n, const json_t *annotations)
{
	struct signature *x = add(l, form);

	x->bytes = arena_dup(&l->arena, payload, n);
	x->nbytes = n;
	x->payload = x->bytes;
	x->npayload = n;
	x->key_hint = shown(l, text_at(annotations, SIGNATURE_KEY, NULL));
	x->certificate = bounded(
		l, text_at(annotations, CERTIFICATE_ANNOTATION, NULL), SIGNATURE_CERTIFICATES_MAX);
	x->chain = bounded(
		l, text_at(annotations, CHAIN_ANNOTATION, NULL), SIGNATURE_CERTIFICATES_MAX);
	x->entry = annotated_entry(l, text_at(annotations, LOG_ANNOTATION, NULL));
	if (!take_base64(l, text_at(annotations, SIGNATURE_ANNOTATION, NULL), SIGN_DER_MAX, &x->der,
		    &x->nder))
		x->fault = "has no signature in base64";
	else
		x->fault = check_payload(l, x, manifest);
}

/* ---- the bundle form ---- */

static const char *check_subject(
	struct signatures *l, const json_t *statement, const struct digest *manifest)
{
	const json_t *list = json_object_get(statement, "subject"), *o;
	const char *said = NULL;
	char hex[DIGEST_HEX + 1], text[DIGEST_TEXT + 1];
	size_t i;

	digest_hex(manifest, hex);
	json_array_foreach (list, i, o) {
		said = text_at(o, "digest", "sha256");
		if (said && str_eq(said, hex))
			return NULL;
	}
	if (!said || strlen(said) != DIGEST_HEX)
		return of_digest(l, NULL);
	snprintf(text, sizeof(text), "sha256:%s", said);
	return of_digest(l, text);
}

static const char *check_statement(struct signatures *l, struct signature *x,
	const json_t *statement, const struct digest *manifest)
{
	const char *type = text_at(statement, "_type", NULL);
	const json_t *subject = json_array_get(json_object_get(statement, "subject"), 0);

	x->reference = shown(l, text_at(subject, "name", NULL));
	if (!type || !(str_eq(type, IN_TOTO_STATEMENT) ||
			     str_eq(type, "https://in-toto.io/Statement/v0.1")))
		return "has a payload that is no in-toto statement";
	return check_subject(l, statement, manifest);
}

/* false: it is about something else. */
static bool take_envelope(struct signatures *l, const json_t *envelope,
	const struct digest *manifest, struct signature *x)
{
	const char *type = text_at(envelope, "payloadType", NULL), *predicate;
	const json_t *sig = json_array_get(json_object_get(envelope, "signatures"), 0);
	auto_buf struct buf pae = BUF_INIT(2 * SIGNATURE_PAYLOAD_MAX);
	auto_json json_t *statement = NULL;
	const void *payload;
	size_t n;

	if (!type || !str_eq(type, IN_TOTO_TYPE) ||
		!take_base64(l, text_at(envelope, "payload", NULL), SIGNATURE_PAYLOAD_MAX, &payload,
			&n)) {
		x->fault = "has an envelope without a statement";
		return true;
	}
	statement = json_parse(payload, n, NULL);
	predicate = text_at(statement, "predicateType", NULL);
	if (statement && predicate && !str_eq(predicate, SIGN_PREDICATE))
		return false;
	x->fault = check_statement(l, x, statement, manifest);
	if (!take_base64(l, text_at(sig, "sig", NULL), SIGN_DER_MAX, &x->der, &x->nder))
		x->fault = "has no signature in base64";
	x->payload = payload;
	x->npayload = n;
	dsse_encode(type, payload, n, &pae);
	x->bytes = arena_dup(&l->arena, pae.data, pae.len);
	x->nbytes = pae.len;
	return true;
}

void signatures_add_bundle(
	struct signatures *l, const struct digest *manifest, const void *text, size_t n)
{
	auto_json json_t *doc = json_parse(text, n, NULL);
	const json_t *envelope = json_object_get(doc, "dsseEnvelope");
	struct signature x = {.form = "bundle"};

	x.key_hint = shown(l,
		json_string_value(json_object_get(
			json_object_get(json_object_get(doc, "verificationMaterial"), "publicKey"),
			"hint")));
	take_bundled(l, &x, json_object_get(doc, "verificationMaterial"));
	if (!json_is_object(envelope))
		x.fault = "is a bundle without a DSSE envelope";
	else if (!take_envelope(l, envelope, manifest, &x))
		return;
	*add(l, "bundle") = x;
}

/* ---- out of the store ---- */

/* What is attached, of one manifest. Its own list may name what is not here (yet): that is no
 * signature. */
struct loading {
	struct signatures *l;
	struct store *s;
	const struct digest *manifest;
};

static void add_fault(struct loading *g, const char *form, const struct err *fault)
{
	add(g->l, form)->fault = shown(g->l, fault->text);
}

static void take_layer(struct loading *g, const char *form, const json_t *o)
{
	auto_buf struct buf b = {0};
	struct err fault = {0};
	struct descriptor d;

	if (descriptor_read(&d, o, &fault) < 0 ||
		store_blob_read(g->s, &d.digest, SIGNATURE_PAYLOAD_MAX, &b, &fault) < 0)
		add_fault(g, form, &fault);
	else if (str_eq(form, "bundle"))
		signatures_add_bundle(g->l, g->manifest, b.data ? b.data : "", b.len);
	else
		signatures_add_simple(
			g->l, form, g->manifest, b.data ? b.data : "", b.len, d.annotations);
}

/* "bundle", "referrer", "tag", or NULL: it is no signature. */
static const char *form_of(const json_t *descriptor, const struct digest *of)
{
	const char *type = text_at(descriptor, "artifactType", NULL),
		   *name = text_at(descriptor, "annotations", REF_NAME),
		   *about = text_at(descriptor, "annotations", BUNDLE_PREDICATE);
	char tag[ATTACHED_TAG];

	if (name && str_eq(name, attached_tag(of, ".sig", tag)))
		return "tag";
	if (type && str_starts(type, "application/vnd.dev.sigstore.bundle."))
		return about && !str_eq(about, SIGN_PREDICATE) ? NULL : "bundle";
	return type && str_eq(type, COSIGN_REFERRER_TYPE) ? "referrer" : NULL;
}

static void take_manifest(struct loading *g, const char *form, const json_t *descriptor)
{
	auto_buf struct buf b = {0};
	auto_json json_t *doc = NULL;
	struct err fault = {0};
	struct descriptor d;
	const json_t *o;
	size_t i;

	if (descriptor_read(&d, descriptor, &fault) == 0 &&
		store_blob_read(g->s, &d.digest, ATTACHED_DOCUMENT_MAX, &b, &fault) == 0)
		doc = json_parse(b.data ? b.data : "", b.len, &fault);
	if (!doc) {
		add_fault(g, form, &fault);
		return;
	}
	json_array_foreach (json_object_get(doc, "layers"), i, o)
		if (g->l->n < SIGNATURES_MAX)
			take_layer(g, form, o);
}

/* Those of `of`, which is the manifest or an index that names it. */
static int load_of(
	struct signatures *l, struct store *s, const struct digest *of, bool indexes, struct err *e)
{
	struct loading g = {l, s, of};
	auto_json json_t *list = attached_list(s, of, e);
	const json_t *o;
	size_t i;

	if (!list)
		return -1;
	json_array_foreach (list, i, o) {
		const char *form = form_of(o, of), *type = text_at(o, "mediaType", NULL);
		struct descriptor d;

		if (form)
			take_manifest(&g, form, o);
		else if (indexes && type && str_eq(type, OCI_INDEX_TYPE) &&
			 descriptor_read(&d, o, NULL) == 0 &&
			 store_index_names(s, &d.digest, of, ATTACHED_DOCUMENT_MAX) &&
			 load_of(l, s, &d.digest, false, e) < 0)
			return -1;
	}
	return 0;
}

int signatures_load(
	struct signatures *out, struct store *s, const struct digest *manifest, struct err *e)
{
	*out = (struct signatures){0};
	if (load_of(out, s, manifest, true, e) == 0)
		return 0;
	signatures_fini(out);
	return -1;
}

void signatures_fini(struct signatures *l)
{
	arena_fini(&l->arena);
	free(l->v);
	*l = (struct signatures){0};
}

/* ---- judging ---- */

bool signature_is_by(const struct signature *x, const struct sign_key *k)
{
	return !x->fault && sign_check(k, x->bytes, x->nbytes, x->der, x->nder, NULL) == 0;
}

char *signatures_describe(const struct signatures *l)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	size_t most = l->n < 4 ? l->n : 4;

	if (l->n == 0)
		return mem_strdup("no signature");
	buf_printf(&b, "%zu signature%s: ", l->n, l->n == 1 ? "" : "s");
	for (size_t i = 0; i < most; i++) {
		const struct signature *x = &l->v[i];

		buf_printf(&b, "%sone (%s form) ", i ? ", " : "", x->form);
		if (x->fault)
			buf_printf(&b, "%.200s", x->fault);
		else if (x->certificate)
			buf_printf(&b, "by a certificate");
		else if (x->key_hint)
			buf_printf(&b, "by another key (%.16s, it says)", x->key_hint);
		else
			buf_printf(&b, "by another key");
	}
	if (l->n > most)
		buf_printf(&b, ", and %zu more", l->n - most);
	return steal_ptr(&b.data);
}

int sign_verify_image(struct store *s, const struct digest *manifest, struct sign_key *const *keys,
	size_t n, struct err *e)
{
	auto_free char *found = NULL;
	char text[DIGEST_TEXT + 1];
	struct signatures l;
	bool signed_by = false;

	if (signatures_load(&l, s, manifest, e) < 0)
		return -1;
	for (size_t i = 0; i < l.n && !signed_by; i++)
		for (size_t k = 0; k < n && !signed_by; k++)
			signed_by = signature_is_by(&l.v[i], keys[k]);
	found = signed_by ? NULL : signatures_describe(&l);
	signatures_fini(&l);
	if (signed_by)
		return 0;
	return err_set(e, ERR_DENIED, "%s is not signed by %s: found %s",
		digest_text(manifest, text), n == 1 ? "the key" : "one of the keys", found);
}

/* ---- what is signed ---- */

void sign_payload(const char *ref, const struct digest *manifest, struct buf *out)
{
	auto_buf struct buf b = BUF_INIT(64 << 10);
	char text[DIGEST_TEXT + 1];
	auto_json json_t *doc = json_pack("{s:{s:{s:s}, s:{s:s}, s:s}, s:n}", "critical",
		"identity", "docker-reference", ref, "image", "docker-manifest-digest",
		digest_text(manifest, text), "type", "cosign container image signature",
		"optional");

	json_text(doc, true, &b);
	buf_put(out, b.data, b.len);
}

void dsse_encode(const char *type, const void *p, size_t n, struct buf *out)
{
	buf_printf(out, "DSSEv1 %zu %s %zu ", strlen(type), type, n);
	buf_put(out, p, n);
}
