/* What fsck.c, fsck-images.c and fsck-repair.c share. */
#ifndef IMAGES_FSCK_PRIVATE_H
#define IMAGES_FSCK_PRIVATE_H

#include "images/fsck.h"
#include "images/image.h"
#include "images/pool.h"

/* A chunk that is not as it should be. */
struct fault {
	struct chunk c; /* block: CHUNK_NO_BLOCK when the pool lacks it */
	bool twin;
	bool owned;             /* an image has it: */
	struct digest manifest; /* the first one that does */
};

struct check {
	struct store *s;
	struct fsck *f;
	struct pool *pool; /* NULL: there is none */
	struct chunk *chunks;
	size_t nchunks, cap, nrecords; /* records, then twins; each sorted by block */
	bool *bad;
	struct fault *v; /* sorted by digest */
	size_t n, vcap;
	const struct digest *owner; /* fsck-repair.c: the image that is looked at */
};

/* A line for the caller. */
void fsck_say(struct fsck *f, const char *fmt, ...) printf_like(2, 3);
/* A fault, said and counted. */
void fsck_fault(struct fsck *f, const char *fmt, ...) printf_like(2, 3);
/* Sort what was found by digest. */
void fsck_sort(struct check *k);

/* Every image: documents, index, that its chunks are there and right, its metadata image. */
int fsck_images(struct check *k, struct err *e) must_check;
/* Metadata images that are damaged. */
int fsck_metadata(struct check *k, struct err *e) must_check;

/* The pool is closed. */
int fsck_repair(struct check *k, struct err *e) must_check;

#endif
