/* One blob out of a registry, byte after byte, for what is kept whole: layers to be passed on,
 * model artifacts. Chunks of images go another way (chunk-fetch.h). */
#ifndef IMAGES_BLOB_FETCH_H
#define IMAGES_BLOB_FETCH_H

#include "images/download.h"
#include "images/store.h"

struct progress;

/* Append what w lacks of the blob: w->size bytes of it are there already. */
int blob_fetch_rest(struct download *d, const struct digest *blob, uint64_t size,
	struct blob_writer *w, struct progress *p, struct err *e) must_check;

/* Fetch a blob into blobs/. One that is not small goes on where an earlier try ended, whatever
 * ended it: what has arrived is kept in ROOT/cache/partial/sha256-HEX, as the builder's inputs are,
 * hashed again, and has no other name before its digest matched. What turns out to be wrong at the
 * end is fetched from the beginning once, if some of it came from an earlier try. CORRUPT, NETWORK,
 * SYSTEM. */
int blob_fetch(struct download *d, struct store *s, const struct digest *blob, uint64_t size,
	struct progress *p, struct err *e) must_check;

#endif
