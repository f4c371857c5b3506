/* The pool as a whole: what nobody needs goes, what is there is listed and counted. For garbage
 * collection, du and fsck. */
#ifndef IMAGES_POOL_SWEEP_H
#define IMAGES_POOL_SWEEP_H

#include "images/pool.h"

/* Forget the chunks that keep() does not want, with their twins, and give their space back to the
 * file system. In transactions of bounded size, records before blocks: killed anywhere, the pool is
 * right, and the next sweep punches what this one did not. The pool was opened by
 * pool_open_alone(). With dry it may be open for reading only, and nothing is changed. */
struct pool_sweep {
	bool (*keep)(void *ctx, const struct digest *d);
	void *ctx;
	bool dry;
	size_t chunks;  /* out: forgotten; twins count */
	uint64_t bytes; /* out: that the data file is smaller on disk now (dry: would be) */
};
int pool_sweep(struct pool *p, struct pool_sweep *w, struct err *e) must_check;

/* Forget these chunks, whose data are wrong, so that they can be put again. Blocks of theirs become
 * free: whatever names them (metadata images) must be gone. */
int pool_forget(struct pool *p, struct chunk *const *v, size_t n, struct err *e) must_check;

/* fn for every recorded chunk (twin: for every twin), from one snapshot. fn returns 1 to go on, 0
 * to stop, -1. */
int pool_each(struct pool *p, bool twins,
	int (*fn)(void *ctx, const struct chunk *c, struct err *e), void *ctx,
	struct err *e) must_check;

/* Is every block below the end in exactly one place? CORRUPT names the first that is not. */
int pool_check_space(struct pool *p, struct err *e) must_check;

#endif
