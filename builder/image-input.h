/* Another image as an input: named by a reference, pinned by its digest. */
#ifndef BUILDER_IMAGE_INPUT_H
#define BUILDER_IMAGE_INPUT_H

#include "images/config.h"
#include "images/progress.h"
#include "images/store.h"

/* What the site's policy says of an image of the store, whoever wants to make something of it: 0,
 * or DENIED. ref is what it was asked for as; a name counts when it leads to this image. */
int image_input_admit(struct store *s, const struct config *c, const char *ref,
	const struct digest *manifest, struct err *e) must_check;

/* Have the image in the store that a digest names (a manifest's or an index's): from the store, or
 * pulled by that digest, as the site's configuration says; the policy is asked either way. ref:
 * "HOST/NAME[:TAG]", or "store:NAME", which is never pulled. *manifest is the image for this
 * machine. The pool must not be open in this process. */
int image_input(struct store *s, const char *ref, const struct digest *digest, struct progress *p,
	struct digest *manifest, struct err *e) must_check;

/* Is what that digest names signed by the public key in the file at path? Signatures are looked for
 * in the store, then in the registry of ref. DENIED says what was found. */
int image_input_verify(struct store *s, const char *ref, const struct digest *digest,
	const char *path, struct err *e) must_check;

/* Is it signed by somebody without a key of his own, as base.verify.identity says? */
struct manifest_base;
int image_input_verify_identity(
	struct store *s, const struct manifest_base *base, struct err *e) must_check;

/* Either of the two by what the store holds, and the site's policy of the image that the digest
 * led to: nothing is fetched. key: path of the public key, or NULL. DENIED. */
int image_input_recheck(struct store *s, const struct manifest_base *base, const char *key,
	const struct digest *manifest, struct err *e) must_check;

#endif
