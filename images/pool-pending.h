/* The chunks that one session of the pool met: a hash table by digest. Not thread-safe: pool.c
 * holds its lock. Only pool.c uses this. */
#ifndef IMAGES_POOL_PENDING_H
#define IMAGES_POOL_PENDING_H

#include "images/tree.h"

enum pending_state {
	PENDING_BUSY,     /* a thread is looking it up or writing it: the others wait */
	PENDING_WRITTEN,  /* to be recorded */
	PENDING_RECORDED, /* in LMDB */
	PENDING_FAILED,   /* could not be written: the next one may try */
};

struct pending_chunk {
	struct digest digest;
	uint32_t length;
	enum pending_state state;
	int64_t block;
};

struct pending {
	struct arena arena;
	struct pending_chunk **slots;  /* open addressing; a power of two */
	struct pending_chunk **sorted; /* of pending_sorted() */
	size_t nslots, n, busy, written;
};

void pending_init(struct pending *p);
void pending_fini(struct pending *p);

/* NULL when there is none. Valid until pending_fini(). */
struct pending_chunk *pending_find(const struct pending *p, const struct digest *d);
/* Make c's chunk BUSY; there is none, or it FAILED. */
void pending_claim(struct pending *p, const struct chunk *c);
/* What became of a BUSY one: c->block is its place. */
void pending_settle(struct pending *p, const struct chunk *c, enum pending_state state);

/* The WRITTEN ones in the order of their digests, then NULL. Valid until the next call. */
struct pending_chunk *const *pending_sorted(struct pending *p);
/* They are RECORDED now. */
void pending_recorded(struct pending *p);

#endif
