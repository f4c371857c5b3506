/* What the files of the pool (images/pool*.c) share. Nobody else includes this. */
#ifndef IMAGES_POOL_PRIVATE_H
#define IMAGES_POOL_PRIVATE_H

#include <pthread.h>

#include "images/pool-db.h"
#include "images/pool-pending.h"
#include "images/pool-space.h"
#include "images/pool-unsynced.h"
#include "images/pool.h"

struct pool {
	int dir, fd, users; /* users: a flock on ROOT/pool/users, with write */
	bool write;
	struct pool_db db;
	pthread_mutex_t writing; /* of the data file: see write_vector() */
	pthread_mutex_t lock;    /* of all below */
	pthread_cond_t settled;
	struct pending pending;
	struct pool_space space;
	struct pool_mark mark;
	uint64_t dirty; /* blocks handed out since writing to disk was last started */
};

static inline uint32_t pool_blocks_of(uint32_t length)
{
	return (length + POOL_BLOCK - 1) / POOL_BLOCK;
}

/* ---- records of chunks (pool-record.c) ---- */

enum {
	POOL_CHUNK_RECORD = 16, /* u64 block, u32 length, u32 check */
	POOL_TWIN_RECORD = DIGEST_SIZE + 4,
};

/* What a record says: d and v are its key and value. CORRUPT. */
int pool_record_decode(struct pool *p, const MDB_val *d, const MDB_val *v, struct chunk *c,
	struct err *e) must_check;
/* The same for a twin's. */
int pool_twin_decode(struct pool *p, const MDB_val *block, const MDB_val *v, struct chunk *c,
	struct err *e) must_check;
void pool_record_encode(const struct chunk *c, uint8_t out[POOL_CHUNK_RECORD]);
void pool_twin_encode(const struct chunk *c, uint8_t out[POOL_TWIN_RECORD]);
/* 1 and the block, 0 when there is no record, -1. c->length must agree. */
int pool_record_find(struct pool *p, MDB_txn *t, const struct chunk *c, int64_t *block,
	struct err *e) must_check;

/* Every record of a chunk, or of a twin, in the order of keys, from the first key of at least
 * `from` on (NULL: all): fn returns 1 to go on, 0 to stop, -1. */
enum pool_table { POOL_CHUNKS, POOL_TWINS };
int pool_record_each(struct pool *p, MDB_txn *t, enum pool_table table, const void *from, size_t n,
	int (*fn)(void *ctx, const struct chunk *c, struct err *e), void *ctx,
	struct err *e) must_check;

/* ---- writing data (pool-put.c) ---- */

/* In place, with zeros up to the end of its last block. */
int pool_write_chunk(
	struct pool *p, const void *data, uint32_t length, int64_t block, struct err *e) must_check;

/* ---- after a crash (pool-recover.c) ---- */

/* Hash what was recorded and not synced, forget what is wrong, remove all metadata images, take
 * the marks away. The caller is the only user. */
int pool_recover(struct pool *p, int rootfd, struct err *e) must_check;

#endif
