/* What is attached to a manifest, on its way from and to registries: by the referrers API
 * (OCI 1.1), where a registry has none by the tag sha256-HEX with an index, and cosign's tag
 * sha256-HEX.sig. Source: distribution-spec "Listing Referrers", "Pushing Manifests with Subject";
 * cosign SIGNATURE_SPEC. */
#ifndef IMAGES_REFERRERS_H
#define IMAGES_REFERRERS_H

#include "images/push-blobs.h"
#include "images/registry.h"
#include "images/store.h"

/* Fetch the signatures of a manifest into the store, and list them (attached.h). Fine when there
 * are none. The caller holds the pool. Nothing is verified but digests. */
int referrers_fetch(struct registry *r, struct store *s, const struct digest *subject,
	struct err *e) must_check;

/* The same of an image index (its document) that names the manifest: its signatures count for the
 * manifest, and it stays with it as the proof (signatures_load()). */
int referrers_fetch_index(struct registry *r, struct store *s, const struct digest *subject,
	const void *index, size_t n, struct err *e) must_check;

/* Have all that is attached to a manifest in the repository; what others attached to it there
 * stays. The manifest itself is there. */
int referrers_push(struct push_target *t, const struct digest *subject, struct err *e) must_check;

#endif
