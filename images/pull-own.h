/* Pulling an image that has an index of ours: only what the pool lacks travels. */
#ifndef IMAGES_PULL_OWN_H
#define IMAGES_PULL_OWN_H

#include "images/download.h"
#include "images/image.h"
#include "images/pool.h"

struct progress;

/* The index layer is in the store already. Commits the pool (pool_commit_soon()) and makes the
 * metadata image. *fetched: the pool lacked something. 1: its index does not say where all is that
 * the pool lacks (it is on a base of others, or was rebased): the layers must be read (adopt.h).
 * Errors: CORRUPT (the index speaks of other
 * layers than the manifest), those of chunk_fetch(). */
int pull_own(struct image *im, struct store *s, struct pool *pool, struct download *d,
	struct progress *p, bool *fetched, struct err *e) must_check;

#endif
