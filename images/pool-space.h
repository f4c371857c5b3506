/* Space in the pool's data file: which blocks are free, which are reserved by whom.
 *
 * Every block of the file below pool_state.end is in exactly one place: the header (block 0), a
 * recorded chunk (or its twin), a free range, or an extent: blocks that a session reserved and has
 * not recorded yet. A session is one pool_open() for writing that put something. It holds a lock on
 * the byte of ROOT/pool/sessions that has its number; the kernel drops the lock when the process
 * dies, whatever kills it and whichever pid namespace it is in, and the next session takes the dead
 * one's extents back.
 *
 * Not thread-safe: pool.c holds its lock. Only pool.c uses this. */
#ifndef IMAGES_POOL_SPACE_H
#define IMAGES_POOL_SPACE_H

#include <stddef.h>

#include "images/pool-db.h"

struct pool_range {
	uint64_t start, blocks;
};

struct pool_space {
	struct pool_db *db;
	int data;                /* the data file, borrowed */
	int sessions;            /* ROOT/pool/sessions */
	uint64_t session;        /* 0: nothing reserved yet */
	uint64_t want;           /* blocks to reserve next time */
	struct pool_range *open; /* reserved, and not handed out */
	size_t n, cap;
};

int pool_space_init(
	struct pool_space *s, struct pool_db *db, int pooldir, int data, struct err *e) must_check;
void pool_space_fini(struct pool_space *s);

/* So many blocks will be taken: to reserve them at once. Less or more is fine. */
void pool_space_expect(struct pool_space *s, uint64_t blocks);
/* Blocks in a row for one chunk. */
int pool_space_take(
	struct pool_space *s, uint32_t blocks, uint64_t *start, struct err *e) must_check;
/* Blocks in a row for the first *n of `count` chunks: as many as one range has room for. */
int pool_space_take_row(struct pool_space *s, const uint32_t *blocks, size_t count, uint64_t *start,
	size_t *n, struct err *e) must_check;
/* They were not needed after all. */
void pool_space_give(struct pool_space *s, uint64_t start, uint32_t blocks);

/* Within t, which records what was handed out: give back what is open. Call pool_space_released()
 * when t is committed. */
int pool_space_release(struct pool_space *s, MDB_txn *t, struct err *e) must_check;
void pool_space_released(struct pool_space *s);

/* All ranges of the table free or extents, in their order; *v is to free(). */
int pool_space_list(struct pool_db *db, MDB_txn *t, MDB_dbi table, struct pool_range **v, size_t *n,
	struct err *e) must_check;
/* Within t, which forgets what was recorded there: these blocks are free. */
int pool_space_free(struct pool_space *s, MDB_txn *t, uint64_t start, uint64_t blocks,
	struct err *e) must_check;

/* Give back all of this session's extents, with what was put and never recorded. */
int pool_space_drop(struct pool_space *s, struct err *e) must_check;
/* The same for sessions that are dead. Cheap when there are none. */
int pool_space_sweep(struct pool_space *s, struct err *e) must_check;

#endif
