/* Signatures over image manifests, as cosign makes and reads them, in the store.
 *
 *   tag form     manifest sha256-HEX.sig: each layer is a simple-signing payload that names the
 *                image's digest; the layer's annotation has the signature over these bytes
 *   bundle form  OCI 1.1 referrer (`subject`): a Sigstore bundle with a DSSE envelope, whose
 *                payload is an in-toto statement about the image's digest
 *   referrer     of cosign 2 (application/vnd.dev.cosign.artifact.sig.v1+json): the layers of the
 *                tag form in a manifest with a subject
 *
 * Everything here came from outside: it is bounded, and what is malformed is found as such, so that
 * it can neither pass nor hide what is right beside it. Source: cosign SIGNATURE_SPEC, BUNDLE_SPEC;
 * DSSE protocol; in-toto attestation framework. */
#ifndef IMAGES_SIGNATURE_H
#define IMAGES_SIGNATURE_H

#include "images/attached.h"
#include "images/sign-key.h"

#define SIMPLE_SIGNING_TYPE "application/vnd.dev.cosign.simplesigning.v1+json"
#define SIGNATURE_ANNOTATION "dev.cosignproject.cosign/signature"
#define COSIGN_REFERRER_TYPE "application/vnd.dev.cosign.artifact.sig.v1+json"
#define BUNDLE_TYPE "application/vnd.dev.sigstore.bundle.v0.3+json"
#define BUNDLE_CONTENT "dev.sigstore.bundle.content"
#define BUNDLE_PREDICATE "dev.sigstore.bundle.predicateType"
#define SIGN_PREDICATE "https://sigstore.dev/cosign/sign/v1"
#define IN_TOTO_TYPE "application/vnd.in-toto+json"
#define IN_TOTO_STATEMENT "https://in-toto.io/Statement/v1"
#define CERTIFICATE_ANNOTATION "dev.sigstore.cosign/certificate"
#define CHAIN_ANNOTATION "dev.sigstore.cosign/chain"
#define LOG_ANNOTATION "dev.sigstore.cosign/bundle"
#define SIGNATURE_KEY "run.svrun.key" /* annotation: id of the key; a hint, nothing more */

enum {
	SIGNATURES_MAX = 128,            /* of one image */
	SIGNATURE_PAYLOAD_MAX = 1 << 20, /* payload, or bundle */
	SIGNATURE_CERTIFICATES_MAX = 64 << 10,
};

/* An entry of a transparency log, as the signature brings it. Unchecked: identity.h. */
struct signature_entry {
	const char *body; /* base64 of its JSON */
	int64_t time, index;
	char id[DIGEST_HEX + 1]; /* of the log's key */
	const void *set;         /* signed entry timestamp */
	size_t nset;
};

struct signature {
	const char *form;      /* "tag", "bundle", "referrer" */
	const char *fault;     /* why it cannot be one of this image; NULL: only keys can tell */
	const char *key_hint;  /* the key's id, as it says; NULL */
	const char *reference; /* the image's name that was signed; NULL */
	const void *bytes;     /* what is signed */
	size_t nbytes;
	const void
		*payload; /* within, or the same as, what is signed: what a log's entry is about */
	size_t npayload;
	const void *der;
	size_t nder;
	/* Of one made without a key that anybody keeps ("keyless"): */
	const char *certificate, *chain;     /* PEM; NULL: none */
	const struct signature_entry *entry; /* NULL: none, or malformed */
};

struct signatures {
	struct arena arena;
	struct signature *v;
	size_t n, cap;
};

/* All of a manifest in the store, and those of image indexes that were pulled with it and name it.
 * Errors: CORRUPT (the store's own list), SYSTEM. */
int signatures_load(struct signatures *out, struct store *s, const struct digest *manifest,
	struct err *e) must_check;
void signatures_fini(struct signatures *l);
/* One layer of the tag form, as signatures_load() adds it: for tests and fuzzing. */
void signatures_add_simple(struct signatures *l, const char *form, const struct digest *manifest,
	const void *payload, size_t n, const json_t *annotations);
/* One bundle, likewise. One that is about something else (provenance) is not added. */
void signatures_add_bundle(
	struct signatures *l, const struct digest *manifest, const void *text, size_t n);

/* Is it one of this key, over this image? */
bool signature_is_by(const struct signature *x, const struct sign_key *k);
/* "2 signatures: one over sha256:..., one by key 12ab..." for errors; to free(). */
char *signatures_describe(const struct signatures *l);

/* Is the image signed by one of these keys? Either form, from the store. DENIED: says what was
 * found; a signature over another digest is named. */
int sign_verify_image(struct store *s, const struct digest *manifest, struct sign_key *const *keys,
	size_t n, struct err *e) must_check;

/* Is it signed, without a key, by this identity (identity.h)? DENIED: says what was found, and what
 * is wrong with it. */
struct identity;
int sign_verify_identity(struct store *s, const struct digest *manifest, const struct identity *who,
	struct err *e) must_check;

/* The simple-signing payload of an image: its JSON text, appended. */
void sign_payload(const char *ref, const struct digest *manifest, struct buf *out);
/* What a DSSE signature is over (pre-authentication encoding), appended. */
void dsse_encode(const char *type, const void *p, size_t n, struct buf *out);

#endif
