/* A chunk's data out of the layer blob that carries it. */
#ifndef IMAGES_CHUNK_SOURCE_H
#define IMAGES_CHUNK_SOURCE_H

#include "images/layer.h"

/* c->length bytes into data, decoded and checked. layers: what c->layer counts in (index_decode()).
 * Errors: NOT_FOUND (it is in no layer, or the blob is not in the store), CORRUPT. */
int chunk_from_layer(struct store *s, const struct layer *layers, size_t n, const struct chunk *c,
	void *data, struct err *e) must_check;

#endif
