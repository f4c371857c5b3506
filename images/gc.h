/* What the store holds that nothing uses: blobs, indexes, metadata images, lists of layers, chunks
 * of the pool, temporary files. Safe beside pulls, builds and runs: pool.h says how they are kept
 * apart, gc.c in which order things go. The builder's cache stays, unless it is asked for. */
#ifndef IMAGES_GC_H
#define IMAGES_GC_H

#include "images/store.h"

struct progress;

struct gc_report {
	size_t blobs, chunks, others;    /* removed (or that would be) */
	uint64_t blob_bytes, pool_bytes; /* given back to the file system */
	uint64_t other_bytes;
	size_t kept_images;
};

/* Mark from all manifests of index.json and from every image that a running instance or `svrun
 * image mount` uses, sweep the rest, punch holes. dry: only count. Waits for pulls and builds under
 * way, and they for it. Killed anywhere, the store is right; the next run takes the rest.
 * Errors: CORRUPT, NOT_FOUND (an image whose documents cannot be read: nothing is removed then, and
 * its name is said), EXISTS (an image that was just deleted is being started: run it again). */
int gc_run(struct store *s, bool dry, struct gc_report *r, struct progress *p,
	struct err *e) must_check;

/* The same for the builder's inputs, ROOT/cache: the next build fetches them again. */
int gc_cache(struct store *s, bool dry, struct gc_report *r, struct err *e) must_check;

#endif
