#include "builder/sign.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/base64.h"
#include "images/pool.h"

enum { DOCUMENT_MAX = 64 << 20 };

#define PROVENANCE_PREDICATE "https://slsa.dev/provenance/v1"
/* One of a kind is attached by each key: what tells them apart. */
#define SLOT "run.svrun.slot"

/* ---- the tag form ---- */

/* go-containerregistry, which cosign reads with, wants a config with the layers' DiffIDs; a payload
 * is not compressed, so that its digest is one. */
static json_t *tag_config(const json_t *layers)
{
	json_t *ids = json_array(), *o;
	size_t i;

	json_array_foreach (layers, i, o)
		json_array_append(ids, json_object_get(o, "digest"));
	return json_pack("{s:s, s:s, s:{}, s:{s:s, s:o}}", "architecture", "", "os", "", "config",
		"rootfs", "type", "layers", "diff_ids", ids);
}

static int put_json(
	struct store *s, const char *type, const json_t *j, json_t **descriptor, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(ATTACHED_DOCUMENT_MAX);
	char text[DIGEST_TEXT + 1];
	struct digest d;

	json_text(j, true, &b);
	if (store_blob_put(s, b.data, b.len, &d, e) < 0)
		return -1;
	*descriptor = json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest",
		digest_text(&d, text), "size", (json_int_t)b.len);
	return 0;
}

static int payload_layer(struct store *s, const char *ref, const struct digest *manifest,
	const struct sign_key *k, json_t **layer, struct err *e)
{
	auto_buf struct buf payload = BUF_INIT(SIGNATURE_PAYLOAD_MAX), der = BUF_INIT(SIGN_DER_MAX);
	auto_free char *sig = NULL;
	char text[DIGEST_TEXT + 1], id[DIGEST_HEX + 1];
	struct digest d;

	sign_payload(ref, manifest, &payload);
	if (sign_bytes(k, payload.data, payload.len, &der, e) < 0 ||
		store_blob_put(s, payload.data, payload.len, &d, e) < 0)
		return -1;
	sign_key_id(k, id);
	sig = base64_encode(der.data, der.len);
	*layer = json_pack("{s:s, s:s, s:I, s:{s:s, s:s}}", "mediaType", SIMPLE_SIGNING_TYPE,
		"digest", digest_text(&d, text), "size", (json_int_t)payload.len, "annotations",
		SIGNATURE_ANNOTATION, sig, SIGNATURE_KEY, id);
	return 0;
}

/* The layers of the tag's manifest that is attached; none: an empty list. */
static int old_layers(struct store *s, const struct digest *manifest, const char *tag,
	json_t **layers, struct err *e)
{
	auto_json json_t *list = attached_list(s, manifest, e);
	json_t *o;
	size_t i;

	*layers = json_array();
	json_array_foreach (list, i, o) {
		auto_buf struct buf b = {0};
		auto_json json_t *doc = NULL;
		const char *name = json_string_value(
			json_object_get(json_object_get(o, "annotations"), REF_NAME));
		struct descriptor d;

		if (!name || !str_eq(name, tag))
			continue;
		if (descriptor_read(&d, o, e) < 0 ||
			store_blob_read(s, &d.digest, ATTACHED_DOCUMENT_MAX, &b, e) < 0)
			return -1;
		doc = json_parse(b.data ? b.data : "", b.len, e);
		if (!doc)
			return -1;
		json_array_extend(*layers, json_object_get(doc, "layers"));
	}
	return list ? 0 : -1;
}

static bool is_by(const json_t *layer, const char *id)
{
	const char *said = json_string_value(
		json_object_get(json_object_get(layer, "annotations"), SIGNATURE_KEY));

	return said && str_eq(said, id);
}

static int attach_tag(struct store *s, const struct digest *manifest, const char *tag,
	json_t *layers, struct err *e)
{
	auto_json json_t *config = tag_config(layers), *config_at = NULL, *doc = NULL, *at = NULL;

	if (put_json(s, OCI_CONFIG_TYPE, config, &config_at, e) < 0)
		return -1;
	doc = json_pack("{s:i, s:s, s:O, s:O}", "schemaVersion", 2, "mediaType", OCI_MANIFEST_TYPE,
		"config", config_at, "layers", layers);
	if (put_json(s, OCI_MANIFEST_TYPE, doc, &at, e) < 0)
		return -1;
	json_object_set_new(at, "annotations", json_pack("{s:s}", REF_NAME, tag));
	return attached_add(s, manifest, at, e);
}

static int sign_tag(struct store *s, const char *ref, const struct digest *manifest,
	const struct sign_key *k, struct err *e)
{
	auto_json json_t *layers = NULL, *layer = NULL;
	char tag[ATTACHED_TAG], id[DIGEST_HEX + 1];

	attached_tag(manifest, ".sig", tag);
	sign_key_id(k, id);
	if (payload_layer(s, ref, manifest, k, &layer, e) < 0 ||
		old_layers(s, manifest, tag, &layers, e) < 0)
		return -1;
	for (size_t i = json_array_size(layers); i > 0; i--)
		if (is_by(json_array_get(layers, i - 1), id))
			json_array_remove(layers, i - 1);
	json_array_append(layers, layer);
	return attach_tag(s, manifest, tag, layers, e);
}

/* ---- DSSE, and bundles ---- */

static json_t *envelope(
	const struct sign_key *k, const char *type, const void *p, size_t n, struct err *e)
{
	auto_buf struct buf pae = BUF_INIT(DOCUMENT_MAX), der = BUF_INIT(SIGN_DER_MAX);
	auto_free char *payload = NULL, *sig = NULL;
	char id[DIGEST_HEX + 1];

	if (n > DOCUMENT_MAX / 2) {
		err_set(e, ERR_USAGE, "a statement of %zu bytes is too long to be signed", n);
		return NULL;
	}
	dsse_encode(type, p, n, &pae);
	if (sign_bytes(k, pae.data, pae.len, &der, e) < 0)
		return NULL;
	sign_key_id(k, id);
	payload = base64_encode(p, n);
	sig = base64_encode(der.data, der.len);
	return json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "payloadType", type, "payload", payload,
		"signatures", "sig", sig, "keyid", id);
}

/* Attach an in-toto statement about the manifest, signed, as a Sigstore bundle. */
static int sign_statement(struct store *s, const struct digest *manifest, const struct sign_key *k,
	const char *predicate, const void *statement, size_t n, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(DOCUMENT_MAX);
	auto_json json_t *dsse = envelope(k, IN_TOTO_TYPE, statement, n, e), *bundle = NULL,
			 *annotations = NULL;
	auto_free char *slot = NULL;
	char id[DIGEST_HEX + 1];
	struct attachment a = {.type = BUNDLE_TYPE};

	if (!dsse)
		return -1;
	sign_key_id(k, id);
	slot = mem_printf("%s %s", predicate, id);
	bundle = json_pack("{s:s, s:{s:{s:s}}, s:O}", "mediaType", BUNDLE_TYPE,
		"verificationMaterial", "publicKey", "hint", id, "dsseEnvelope", dsse);
	annotations = json_pack("{s:s, s:s, s:s}", BUNDLE_CONTENT, "dsse-envelope",
		BUNDLE_PREDICATE, predicate, SLOT, slot);
	json_text(bundle, true, &b);
	a.annotations = annotations;
	a.data = b.data;
	a.n = b.len;
	return attached_put(s, manifest, &a, SLOT, e);
}

/* cosign 3's: an in-toto statement that says no more than which image is meant. */
static int sign_referrer(struct store *s, const char *ref, const struct digest *manifest,
	const struct sign_key *k, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(64 << 10);
	char hex[DIGEST_HEX + 1];
	auto_json json_t *statement = json_pack("{s:s, s:s, s:[{s:s, s:{s:s}}], s:{}}", "_type",
		IN_TOTO_STATEMENT, "predicateType", SIGN_PREDICATE, "subject", "name", ref,
		"digest", "sha256", digest_hex(manifest, hex), "predicate");

	json_text(statement, true, &b);
	return sign_statement(s, manifest, k, SIGN_PREDICATE, b.data, b.len, e);
}

static int sign_provenance(
	struct store *s, const struct digest *manifest, const struct sign_key *k, struct err *e)
{
	auto_buf struct buf b = {0};
	int rc = attached_blob(s, manifest, IN_TOTO_TYPE, NULL, NULL, &b, e);

	if (rc <= 0)
		return rc;
	return sign_statement(s, manifest, k, PROVENANCE_PREDICATE, b.data, b.len, e);
}

int sign_image(struct store *s, const char *ref, const struct digest *manifest,
	const struct sign_key *k, struct err *e)
{
	/* blobs that nothing leads to yet */
	auto_fd int hold = pool_hold(s->fd, e);

	if (hold < 0 || sign_tag(s, ref, manifest, k, e) < 0 ||
		sign_referrer(s, ref, manifest, k, e) < 0)
		return -1;
	return sign_provenance(s, manifest, k, e);
}
