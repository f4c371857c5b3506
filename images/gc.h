/* What the store holds that nothing uses: unnamed images, blobs, metadata images, lists of layers,
 * and chunks of the pool. Safe beside pulls, builds and runs: pool.h says how they are kept apart.
 */
#ifndef IMAGES_GC_H
#define IMAGES_GC_H

#include "images/store.h"

struct progress;

struct gc_report {
	size_t blobs, chunks, others;    /* removed (or that would be) */
	uint64_t blob_bytes, pool_bytes; /* given back to the file system */
	size_t kept_images;
};

/* Mark from all manifests of index.json and from every image that a running instance uses, sweep
 * the rest, punch holes. dry: only count. Waits for pulls and builds under way, and they for it.
 * Errors: CORRUPT (an image whose documents cannot be read: nothing is removed then, and its name
 * is said). */
int gc_run(struct store *s, bool dry, struct gc_report *r, struct progress *p,
	struct err *e) must_check;

#endif
