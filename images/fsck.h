/* The whole store, hashed again: every chunk of the pool, every blob, every metadata image; and
 * whether what the images need is there. */
#ifndef IMAGES_FSCK_H
#define IMAGES_FSCK_H

#include "images/config.h"
#include "images/store.h"

struct progress;

struct fsck {
	bool repair;
	const struct config *config; /* for fetching again */
	struct progress *progress;
	void (*say)(void *ctx, const char *text); /* each fault, and what became of it, as a line */
	void *ctx;
	/* out */
	size_t images, chunks, blobs; /* looked at */
	size_t faults, repaired;
};

/* On all cores, with a buffer of 1 MiB each and some 100 bytes a chunk. Garbage collection waits
 * meanwhile. With repair, a chunk that is wrong or missing is taken from its layer in the store, or
 * fetched from where the image came from; wrong ones that no image has are forgotten; metadata
 * images are made again; damaged layers that can be had elsewhere are removed. Faults are no
 * errors. Errors: what keeps it from looking (CORRUPT: the pool's records; SYSTEM). */
int fsck_run(struct store *s, struct fsck *f, struct err *e) must_check;

#endif
