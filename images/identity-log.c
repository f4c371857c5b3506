/* What a transparency log has signed about a signature. */
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

#include "base/str.h"
#include "images/base64.h"
#include "images/identity.h"

static int deny(struct err *e, const char *why)
{
	return err_set(e, ERR_DENIED, "%s", why);
}

static const char *text_at(const json_t *o, const char *a, const char *b)
{
	const json_t *v = json_object_get(o, a);

	return json_string_value(b ? json_object_get(v, b) : v);
}

/* The log signs these four members, as canonical JSON (RFC 8785). */
static int check_timestamp(
	const struct sign_key *log, const struct signature_entry *x, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(4 * SIGNATURE_PAYLOAD_MAX);
	auto_json json_t *doc = json_pack("{s:s, s:I, s:I, s:s}", "body", x->body, "integratedTime",
		(json_int_t)x->time, "logIndex", (json_int_t)x->index, "logID", x->id);
	char id[DIGEST_HEX + 1];

	if (!doc)
		return deny(e, "its log entry is no JSON");
	sign_key_id(log, id);
	if (!str_eq(x->id, id))
		return err_set(e, ERR_DENIED,
			"its log entry is of another log (%.16s, expected %.16s)", x->id, id);
	json_text(doc, true, &text);
	if (sign_check(log, text.data, text.len, x->set, x->nset, NULL) < 0)
		return deny(e, "its log entry is not signed by the log's key");
	return 0;
}

/* Is text base64 of exactly these bytes? */
static bool is_base64_of(const char *text, const void *p, size_t n)
{
	size_t len = 0;
	auto_free char *bytes = text ? base64_decode(text, &len) : NULL;

	return bytes && len == n && memcmp(bytes, p, n) == 0;
}

/* Is text base64 of a certificate in PEM that has this DER? */
static bool is_certificate(const char *text, const void *der, size_t n)
{
	size_t len = 0;
	auto_free char *pem = text && strlen(text) <= 2 * SIGNATURE_CERTIFICATES_MAX
				      ? base64_decode(text, &len)
				      : NULL;
	BIO *in = pem ? BIO_new_mem_buf(pem, (int)len) : NULL;
	X509 *x = in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
	unsigned char *bytes = NULL;
	int got = x ? i2d_X509(x, &bytes) : -1;
	bool same = got > 0 && (size_t)got == n && memcmp(bytes, der, n) == 0;

	OPENSSL_free(bytes);
	X509_free(x);
	BIO_free(in);
	return same;
}

/* {"algorithm": "sha256", "value": HEX} of these bytes? */
static bool is_hash_of(const json_t *hash, const void *p, size_t n)
{
	const char *algorithm = text_at(hash, "algorithm", NULL),
		   *value = text_at(hash, "value", NULL);
	struct digest d = digest_of(p, n);
	char hex[DIGEST_HEX + 1];

	return algorithm && value && str_eq(algorithm, "sha256") &&
	       str_eq(value, digest_hex(&d, hex));
}

/* What the two kinds of entries say, of the same three things. */
struct entry {
	const json_t *hash;
	const char *signature, *certificate;
};

static bool read_entry(const json_t *body, struct entry *out)
{
	const char *kind = text_at(body, "kind", NULL);
	const json_t *spec = json_object_get(body, "spec"), *s;

	if (kind && str_eq(kind, "hashedrekord")) {
		s = json_object_get(spec, "signature");
		*out = (struct entry){json_object_get(json_object_get(spec, "data"), "hash"),
			text_at(s, "content", NULL), text_at(s, "publicKey", "content")};
		return true;
	}
	if (kind && str_eq(kind, "dsse")) {
		s = json_array_get(json_object_get(spec, "signatures"), 0);
		*out = (struct entry){json_object_get(spec, "payloadHash"),
			text_at(s, "signature", NULL), text_at(s, "verifier", NULL)};
		return true;
	}
	return false;
}

static int check_body(const struct signature *x, const void *der, size_t nder, struct err *e)
{
	size_t n = 0;
	auto_free char *text = base64_decode(x->entry->body, &n);
	auto_json json_t *body = text ? json_parse(text, n, NULL) : NULL;
	struct entry entry;

	if (!body || !read_entry(body, &entry))
		return deny(e, "its log entry is neither a hashedrekord nor a dsse");
	if (!is_hash_of(entry.hash, x->payload, x->npayload))
		return deny(e, "its log entry is over another digest");
	if (!is_base64_of(entry.signature, x->der, x->nder))
		return deny(e, "its log entry is of another signature");
	if (!is_certificate(entry.certificate, der, nder))
		return deny(e, "its log entry is of another certificate");
	return 0;
}

int identity_log_check(const struct sign_key *log, const struct signature *x, const void *der,
	size_t nder, int64_t *time, struct err *e)
{
	if (!x->entry)
		return deny(e, "it has no signed entry of a transparency log, so that nobody knows "
			       "when it was made");
	if (check_timestamp(log, x->entry, e) < 0 || check_body(x, der, nder, e) < 0)
		return -1;
	*time = x->entry->time;
	return 0;
}
