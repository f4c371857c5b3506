/* What inputs unpack to, kept by key: ROOT/cache/unpacked/HEX holds the list of objects, and of a
 * package its control files; file data are chunks of the pool. An input whose list is there, and
 * whose chunks the pool has, is neither read nor decompressed again.
 *
 * A list is only good together with its chunks, so it is written after they were recorded, and read
 * with a look for each: garbage collection may have taken them. A file that a crash left empty or
 * torn has another sum, and counts as missing. */
#ifndef BUILDER_UNPACKED_H
#define BUILDER_UNPACKED_H

#include <pthread.h>

#include "builder/deb.h"
#include "images/entries.h"
#include "images/pool.h"
#include "images/store.h"

/* 1: out holds the list, every chunk with its block; d (unless NULL) the rest of a package, whose
 * data are out == &d->data. 0: there is none, or not all of it. */
int unpacked_load(struct store *s, struct pool *p, const struct digest *key, struct deb *d,
	struct entries *out, struct err *e) must_check;
/* Is there a list of that key? A look, no more. */
bool unpacked_has(struct store *s, const struct digest *key);

/* Lists on their way to the disk: each waits until its chunks are recorded, which is done for many
 * at once. Thread-safe. */
struct unpacked_queue {
	struct store *s;
	struct pool *pool;
	pthread_mutex_t lock;
	struct unpacked_item *items;
	uint64_t bytes; /* of file data that nothing has recorded yet */
};
void unpacked_queue_init(struct unpacked_queue *q, struct store *s, struct pool *pool);
void unpacked_queue_fini(struct unpacked_queue *q);
/* The list is encoded here and now: what it points to may change afterwards. */
int unpacked_add(struct unpacked_queue *q, const struct digest *key, const struct deb *d,
	const struct entries *l, struct err *e) must_check;
int unpacked_flush(struct unpacked_queue *q, struct err *e) must_check;

/* A list of another machine (entries_encode()): read and checked, and kept under a key once its
 * chunks are in the pool and recorded. */
int unpacked_parse(const struct buf *list, struct entries *out, struct err *e) must_check;
int unpacked_keep(struct store *s, const struct digest *key, const struct buf *list,
	struct err *e) must_check;

/* Bytes of file data of a list. */
uint64_t unpacked_bytes(const struct entries *l);

/* Write a small file of a cache below the store, without waiting for the disk: who reads it checks
 * a sum. */
int cache_file_put(struct store *s, const char *dir, const struct digest *key, const void *p,
	size_t n, struct err *e) must_check;
/* Append such a file to b: 1, 0 when there is none, -1. */
int cache_file_get(struct store *s, const char *dir, const struct digest *key, struct buf *b,
	struct err *e) must_check;

#endif
