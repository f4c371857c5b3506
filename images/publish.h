/* Writing an image's documents: the pieces that image_publish() and image_convert() share. */
#ifndef IMAGES_PUBLISH_H
#define IMAGES_PUBLISH_H

#include "images/image.h"

/* {mediaType, digest, size} of a new reference. */
json_t *publish_descriptor(const char *type, const struct digest *d, uint64_t size);

/* Serialise j as images have it (sorted, compact) and store it. */
int publish_document(struct store *s, const json_t *j, struct digest *d, uint64_t *size,
	struct err *e) must_check;

/* Write the layer that carries the index of tree: zstd when any layer is, else gzip, because an
 * engine that reads the layers must be able to read this one. */
int publish_index(struct store *s, struct tree *tree, const struct layer *layers, size_t nlayers,
	struct layer *index, struct index_place *place, struct err *e) must_check;

#endif
