/* Keys and signatures over image manifests, as cosign makes and reads them. Source: manifest.md
 * 3.9; cosign's SIGNATURE_SPEC and BUNDLE_SPEC; RFC 5958 (PKCS#8); DSSE. */
#ifndef BUILDER_SIGN_H
#define BUILDER_SIGN_H

#include "images/store.h"

struct sign_key; /* EVP_PKEY, ECDSA P-256 */

/* A new pair: NAME.key (PKCS#8, encrypted when password is not NULL: PBES2, scrypt) and NAME.pub
 * (SubjectPublicKeyInfo), both PEM; 0600 and 0644, never over what is there. */
int sign_key_make(const char *name, const char *password, struct err *e) must_check;
/* Of a PEM: private (cosign's own "ENCRYPTED SIGSTORE PRIVATE KEY" is refused with what to do) or
 * public. DENIED: wrong password. */
int sign_key_load(
	struct sign_key **k, const char *path, const char *password, struct err *e) must_check;
int sign_key_load_public(struct sign_key **k, const char *path, struct err *e) must_check;
void sign_key_free(struct sign_key *k);
/* sha256 of the SubjectPublicKeyInfo's DER, hex: what policies and messages name. */
void sign_key_id(const struct sign_key *k, char hex[65]);

/* ASN.1 DER signature over sha256(p). */
int sign_bytes(const struct sign_key *k, const void *p, size_t n, struct buf *der,
	struct err *e) must_check;
/* DENIED: it is no signature of this key over these bytes. */
int sign_check(const struct sign_key *k, const void *p, size_t n, const void *der, size_t len,
	struct err *e) must_check;

/* The simple-signing payload of an image: its JSON text. */
void sign_payload(const char *ref, const struct digest *manifest, struct buf *out);

/* Sign an image of the store: both forms, the tag form (sha256-HEX.sig) and an OCI 1.1 referrer
 * (subject), kept in the store under names that push takes along. */
int sign_image(struct store *s, const char *ref, const struct digest *manifest,
	const struct sign_key *k, struct err *e) must_check;
/* Is the image signed by one of these keys? Either form, from the store. DENIED: says what was
 * found; a signature over another digest is named. */
int sign_verify_image(struct store *s, const struct digest *manifest, struct sign_key *const *keys,
	size_t n, struct err *e) must_check;

/* A DSSE envelope of a payload. */
int sign_dsse(const struct sign_key *k, const char *type, const void *p, size_t n, struct buf *out,
	struct err *e) must_check;

#endif
