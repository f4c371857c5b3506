/* Keys and signatures over image manifests, as cosign makes and reads them. Source: manifest.md
 * 3.9; cosign's SIGNATURE_SPEC and BUNDLE_SPEC; RFC 5958 (PKCS#8); DSSE.
 *
 * Keys and checking are images/sign-key.h and images/signature.h: pull needs them. */
#ifndef BUILDER_SIGN_H
#define BUILDER_SIGN_H

#include "images/sign-key.h"
#include "images/signature.h"
#include "images/store.h"

/* Sign an image of the store: both forms, the tag form (sha256-HEX.sig) and an OCI 1.1 referrer
 * (subject), attached to the image (images/attached.h), so that push takes them along. An earlier
 * signature by the same key is replaced. What the build attached as provenance is signed, too. */
int sign_image(struct store *s, const char *ref, const struct digest *manifest,
	const struct sign_key *k, struct err *e) must_check;

#endif
