/* Layer blobs that the store does not have: a pulled image's data live in the pool. */
#ifndef IMAGES_COMPLETE_H
#define IMAGES_COMPLETE_H

#include "base/config.h"
#include "images/image.h"

struct progress;

/* Have all layer blobs of an image in the store, whole and verified: those that are missing are
 * fetched from the repository that the image came from (store_name.source), or written again from
 * the pool (images with an index of their own: the same bytes, or an error that says so). source
 * may be NULL. The pool must not be open in this process. Errors: NOT_FOUND (neither way is there:
 * which layer, what was tried), NETWORK, CORRUPT. */
int image_complete(struct image *im, struct store *s, const struct config *c, const char *source,
	struct progress *p, struct err *e) must_check;

/* The same for some layers only: which[i] says of layer i whether it is wanted, and afterwards
 * whether it was missing and has been added. */
int image_complete_some(struct image *im, struct store *s, const struct config *c,
	const char *source, bool *which, struct progress *p, struct err *e) must_check;

#endif
