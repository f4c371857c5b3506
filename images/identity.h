/* Who signed an image without a key of his own ("keyless", as cosign does it), checked offline.
 *
 *   certificate   of a key that lived for minutes, made for a person or a job whom an issuer had
 *                 recognised; chained to certificates that the site trusts ("roots" of its
 *                 configuration): nobody else's are built in
 *   log entry     a transparency log's signed word (signed entry timestamp) that it saw this
 *                 signature by this certificate at a time at which the certificate was good
 *
 * Without the second the first proves nothing: the certificate is long over. Whether the log holds
 * the entry is not asked, nor are logs of certificates. Source: cosign SIGNATURE_SPEC and
 * BUNDLE_SPEC; Fulcio "Certificate Specification" (1.3.6.1.4.1.57264.1); Rekor's signed entry
 * timestamp, hashedrekord and dsse 0.0.1; RFC 5280. */
#ifndef IMAGES_IDENTITY_H
#define IMAGES_IDENTITY_H

#include "base/json.h"
#include "images/signature.h"

/* Whom the site trusts: certificates and a log's key. */
struct identity_root;
/* By its name in an object {NAME: {certificates, log}} of absolute paths, as the configuration has
 * it; NULL: the only one there is. USAGE: there is none, or several; a file of it will not do. */
int identity_root_load(
	struct identity_root **r, const json_t *roots, const char *name, struct err *e) must_check;
void identity_root_free(struct identity_root *r);

/* All borrowed. */
struct identity {
	const struct identity_root *root;
	const char *issuer;  /* the whole of it */
	const char *subject; /* an e-mail address or a URI: a pattern (glob.h) */
};

/* 0 when the signature is by this identity, over this image; DENIED says what is not so. *subject
 * (unless NULL; to free()) is who it was. */
int identity_check(const struct identity *who, const struct signature *x, char **subject,
	struct err *e) must_check;

/* ---- identity-log.c ---- */

/* Is the entry the log's, of this signature by this certificate (DER)? *time is when. DENIED. */
int identity_log_check(const struct sign_key *log, const struct signature *x, const void *der,
	size_t nder, int64_t *time, struct err *e) must_check;

#endif
