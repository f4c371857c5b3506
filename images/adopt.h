/* Images that others made: their layers are read once, into the pool and a list of objects each;
 * the lists are merged; the result is an index that is kept in the store, as if the image had
 * brought one. Lists are kept, too (ROOT/layers/HEX, by the layer's digest), so that a layer which
 * another image has already brought is neither fetched nor read again. */
#ifndef IMAGES_ADOPT_H
#define IMAGES_ADOPT_H

#include "images/download.h"
#include "images/image.h"
#include "images/pool.h"

struct progress;

struct adopt {
	struct image *im;
	struct store *s;
	struct pool *pool; /* open for writing */
	struct download
		*download; /* where layers come from; NULL: they are in the store's blobs/ */
	bool strict; /* read every layer whole, check its DiffID, and of an image that has an index
		      * of its own that it says what the layers say */
	struct progress *progress;
	/* out */
	bool fetched; /* a layer was not here */
};

/* Commits the pool (pool_commit_soon()), keeps the index, makes the metadata image. Errors: CORRUPT
 * (which layer), those of unpack_layer(), toc_layer() and entries_apply(). */
int adopt_image(struct adopt *a, struct err *e) must_check;

/* Adopt an image whose layer blobs are all in the store (svrun image load), strictly. */
int image_adopt(struct image *im, struct store *s, struct pool *p, struct progress *pr,
	struct err *e) must_check;

#endif
