/* Hashing one layer again: its blob against the descriptor, and the tar inside against its DiffID,
 * in one pass. */
#ifndef IMAGES_VERIFY_LAYER_H
#define IMAGES_VERIFY_LAYER_H

#include "images/image.h"

struct progress;

/* tar_max: bytes that the tar may have at most. *damaged: the blob is missing, or not what its
 * digest says, so that it is good for nothing. Memory: 512 KiB and the decoder's window (128 MiB at
 * most). Errors: NOT_FOUND; CORRUPT with the file, what was expected and what was found; SYSTEM. */
int layer_verify(struct store *s, const struct image_layer *l, uint64_t tar_max,
	struct progress *pr, bool *damaged, struct err *e) must_check;

#endif
