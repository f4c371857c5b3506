/* Images that others made: their layers are read once, into the pool and a list of objects each;
 * the lists are merged; the result is an index that is kept in the store, as if the image had
 * brought one. */
#ifndef IMAGES_ADOPT_H
#define IMAGES_ADOPT_H

#include "images/image.h"
#include "images/pool.h"

struct progress;

/* Adopt an image whose layer blobs are all in the store (svrun image load). The pool is open for
 * writing and is committed. The metadata image is made, too. DiffIDs are checked. The store's own
 * images (that have an index) are fine: their chunks are put into the pool from their layers. */
int image_adopt(struct image *im, struct store *s, struct pool *p, struct progress *pr,
	struct err *e) must_check;

#endif
