/* Layer blobs written again from the pool. An image's own index says which objects a layer has and
 * how long each frame was; what a level of compression makes of the chunks says which one it was.
 * The result is the same blob, by its digest, or none. */
#ifndef IMAGES_REBUILD_H
#define IMAGES_REBUILD_H

#include "images/image.h"

struct progress;
struct rebuild;

/* Opens the pool, which must not be open in this process. Errors: UNSUPPORTED (the image brought no
 * index), those of the index and the pool. */
struct rebuild *rebuild_open(struct image *im, struct store *s, struct err *e) must_check;
void rebuild_close(struct rebuild *r); /* NULL is fine */

/* Write layer i of the image again: w is begun here, holds what the layer's digest says, and is the
 * caller's to commit or abort; after an error there is nothing to do. Errors: NOT_FOUND (the pool
 * lacks some of its data, or the bytes come out otherwise: another version of a compressor, or a
 * folder in the layer that the index does not tell of), SYSTEM. */
int rebuild_layer(struct rebuild *r, size_t i, struct blob_writer *w, struct progress *p,
	struct err *e) must_check;

#endif
