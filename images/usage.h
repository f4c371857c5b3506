/* Space that a store takes on disk, and whose it is. */
#ifndef IMAGES_USAGE_H
#define IMAGES_USAGE_H

#include "images/store.h"

/* One image, or image index with its images: a manifest in index.json, or one that is only mounted
 * any more. Bytes on disk. */
struct usage_image {
	struct digest manifest;
	uint64_t total;  /* of blobs, chunks, indexes, lists and the metadata image that it uses */
	uint64_t unique; /* of these, what no other image uses: `rm` and `gc` give it back */
	size_t chunks;
};

struct usage {
	struct usage_image
		*images; /* in the order of index.json, each manifest once; mounted ones */
	size_t n;
	/* everything once; each is the sum of what images use alone, of what they share, and of
	 * what is unused */
	uint64_t pool, blobs, others; /* others: metadata images, indexes, lists of layers */
	uint64_t shared;              /* used by more than one image */
	uint64_t unused;              /* garbage: `gc` gives it back */
	uint64_t records;             /* the pool's LMDB */
	uint64_t cache;               /* the builder's inputs */
};

/* A snapshot, while others may go on working. Errors: CORRUPT, NOT_FOUND (an image that cannot be
 * read: its name is said). */
int usage_read(struct store *s, struct usage *u, struct err *e) must_check;
void usage_fini(struct usage *u);

#endif
