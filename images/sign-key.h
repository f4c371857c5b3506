/* Keys that sign: ECDSA on P-256 with SHA-256, which is what cosign's keys are. Source: RFC 5958
 * (PKCS#8), RFC 8018 (PBES2), RFC 7914 (scrypt), RFC 5480 (SubjectPublicKeyInfo). Functions are
 * thread-safe. */
#ifndef IMAGES_SIGN_KEY_H
#define IMAGES_SIGN_KEY_H

#include "images/digest.h"
#include "base/err.h"
#include "base/mem.h"

struct sign_key; /* EVP_PKEY, ECDSA P-256 */

enum { SIGN_DER_MAX = 72 }; /* bytes of a signature */

/* A new pair: NAME.key (PKCS#8, encrypted when password is not NULL: PBES2, scrypt) and NAME.pub
 * (SubjectPublicKeyInfo), both PEM; 0600 and 0644, never over what is there (EXISTS). */
int sign_key_make(const char *name, const char *password, struct err *e) must_check;

/* Does the PEM at path want a password? 1, 0, -1. */
int sign_key_is_encrypted(const char *path, struct err *e) must_check;
/* Of a PEM: private (cosign's own "ENCRYPTED SIGSTORE PRIVATE KEY" is refused with what to do).
 * DENIED: wrong password, or none. */
int sign_key_load(
	struct sign_key **k, const char *path, const char *password, struct err *e) must_check;
int sign_key_load_public(struct sign_key **k, const char *path, struct err *e) must_check;
/* A public key from PEM text; name is what errors call it. */
int sign_key_parse_public(
	struct sign_key **k, const char *name, const void *p, size_t n, struct err *e) must_check;
/* The public key of a certificate, an X509 of libcrypto's. */
int sign_key_of_certificate(
	struct sign_key **k, const char *name, void *x509, struct err *e) must_check;
void sign_key_free(struct sign_key *k);

/* sha256 of the SubjectPublicKeyInfo's DER, hex: what policies and messages name. */
void sign_key_id(const struct sign_key *k, char hex[DIGEST_HEX + 1]);

/* ASN.1 DER signature over sha256(p). */
int sign_bytes(const struct sign_key *k, const void *p, size_t n, struct buf *der,
	struct err *e) must_check;
/* DENIED: it is no signature of this key over these bytes. */
int sign_check(const struct sign_key *k, const void *p, size_t n, const void *der, size_t len,
	struct err *e) must_check;

#endif
