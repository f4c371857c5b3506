/* A layer's tar, as it is, in frames of another codec. The tar's bytes, and so the DiffID, stay
 * what they are. Source: formats.md 1.3; POSIX pax(1). */
#ifndef IMAGES_REFRAME_H
#define IMAGES_REFRAME_H

#include "images/layer.h"
#include "images/source.h"

/* Where the data of a layer's files went: chunks in the order of the tar, as files are cut
 * (CHUNK_SIZE). layer is CHUNK_NO_LAYER, block CHUNK_NO_BLOCK. */
struct chunk_list {
	struct chunk *v;
	size_t n, cap;
};
void chunk_list_fini(struct chunk_list *l);

/* Read a tar from `tar` to its end and write it as a blob of l->codec and l->level: headers in
 * frames of their own, each chunk of file data in one frame, on all cores (layer.h). NONE keeps the
 * tar as it is; chunks are then where they happen to lie. l->diff_id is what the tar must have:
 * CORRUPT otherwise, and no blob. Fills l->digest, size, tar_size. Progress counts file data.
 * Errors: CORRUPT (a header that is none, and where), UNSUPPORTED (sparse members), SYSTEM, those
 * of tar. */
int reframe(struct layer *l, struct source *tar, struct store *s, struct chunk_list *chunks,
	struct progress *p, struct err *e) must_check;

#endif
