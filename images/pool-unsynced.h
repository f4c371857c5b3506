/* What is recorded and perhaps not on disk: ranges of blocks in LMDB's table `unsynced`, and the
 * mark, ROOT/pool/unsynced, a file with the boot id of the kernel whose page cache has the data.
 * The mark is on disk before any record that relies on it. docs/pool-format.md, "Commit without
 * sync". Only the pool's own files use this. */
#ifndef IMAGES_POOL_UNSYNCED_H
#define IMAGES_POOL_UNSYNCED_H

#include <time.h>

#include "images/pool-db.h"
#include "images/pool-pending.h"
#include "images/pool-space.h"

/* Which mark this session knows to be on disk. */
struct pool_mark {
	ino_t ino;
	struct timespec ctime;
};

/* Within a transaction that writes (so one process at a time): have the mark on disk. */
int pool_mark_set(struct pool_db *db, int pooldir, struct pool_mark *m, struct err *e) must_check;
/* It goes, within the transaction that empties the table. */
int pool_mark_remove(struct pool_db *db, int pooldir, struct err *e) must_check;
/* Syncing failed, so that the page cache cannot be trusted to be what is on disk: the marked chunks
 * are doubtful from now on. */
void pool_mark_fail(int pooldir);
/* Is the mark there, and not of this boot? 1, 0, -1. */
int pool_mark_doubtful(int pooldir, const char *name, struct err *e) must_check;

/* Note the ranges of chunks that t records: sorted by block by this function. */
int pool_unsynced_add(
	struct pool_db *db, MDB_txn *t, struct pending_chunk *const *v, struct err *e) must_check;
/* All of them, in the order of blocks; *v is to free(). */
int pool_unsynced_list(
	struct pool_db *db, MDB_txn *t, struct pool_range **v, size_t *n, struct err *e) must_check;
/* Take these out, and the mark when none are left. */
int pool_unsynced_clear(struct pool_db *db, int pooldir, MDB_txn *t, const struct pool_range *v,
	size_t n, struct err *e) must_check;

#endif
