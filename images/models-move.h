/* The artifacts of an image's models, on their way to and from the image's repository (models.h).
 */
#ifndef IMAGES_MODELS_MOVE_H
#define IMAGES_MODELS_MOVE_H

#include "images/download.h"
#include "images/push-blobs.h"

/* Have the artifacts that an image's manifest names in the repository, each under the tag
 * sha256-HEX.model, which keeps it there. Models that may not be passed on (SV143: gated, or not to
 * be redistributed), in layers or artifacts, go only to a registry that the site's configuration
 * calls private; DENIED names the model. */
int models_push(
	struct push_target *t, const char *host, const json_t *manifest, struct err *e) must_check;

/* Fetch those that are not here, whole, into blobs/. The caller holds the pool. *fetched: something
 * was. */
int models_pull(struct registry *r, struct download *d, struct store *s, const json_t *manifest,
	struct progress *p, bool *fetched, struct err *e) must_check;
/* Fetch one artifact that a reference names by digest ("HOST/NAME@sha256:...", USAGE for another),
 * into blobs/. The caller holds the pool until something leads to it. */
int models_fetch(struct store *s, const struct config *c, const char *ref, struct digest *artifact,
	struct progress *p, struct err *e) must_check;
/* What the site's policy says of it, by the signatures that the store holds: nothing is fetched.
 * DENIED. */
int models_admitted(
	struct store *s, const struct config *c, const char *ref, struct err *e) must_check;
/* Is there anything to fetch? */
int models_missing(struct store *s, const json_t *manifest, struct err *e) must_check;

#endif
