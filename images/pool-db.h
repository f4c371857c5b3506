/* The pool's records in LMDB: opening, checking, and the one record that describes the pool.
 * Layout, byte by byte: docs/pool-format.md. Only the pool's own files use this. */
#ifndef IMAGES_POOL_DB_H
#define IMAGES_POOL_DB_H

#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "images/digest.h"
#include "images/pool.h"

struct pool_db {
	MDB_env *env;
	MDB_dbi state, chunks, twins, extents, free, notes;
	MDB_dbi unsynced; /* only when open for writing */
	char *dir;        /* ROOT/pool, for errors */
	char *name;       /* ROOT/pool/db/data.mdb */
};

/* The pool as a whole. */
struct pool_state {
	uint8_t id[POOL_IDENTITY]; /* the same as in pool/data: the two belong together */
	uint64_t end;              /* first block that was never handed out */
	uint64_t recorded;         /* blocks that pool/data must have at least */
	uint64_t session;          /* number of the last session that reserved space */
};

/* pooldir: ROOT/pool. With write, missing records are made, but only when the data file is `empty`.
 * Every page is checked before LMDB trusts it. Errors: NOT_FOUND, CORRUPT, SYSTEM. */
int pool_db_open(struct pool_db *db, int pooldir, bool write, const uint8_t id[POOL_IDENTITY],
	bool empty, struct err *e) must_check;
void pool_db_close(struct pool_db *db);

/* One transaction; reading ones may run beside each other and beside one that writes. After an
 * error the transaction must be aborted. */
MDB_txn *pool_db_begin(struct pool_db *db, bool write, struct err *e) must_check;
/* lazy: what it did may be lost in a power cut, in whole; half the syncs. */
MDB_txn *pool_db_begin_lazy(struct pool_db *db, struct err *e) must_check;
int pool_db_commit(struct pool_db *db, MDB_txn *t, struct err *e) must_check;

/* v is copied; its bytes live until the transaction ends. 1, 0 when there is none, -1. */
int pool_db_get(struct pool_db *db, MDB_txn *t, MDB_dbi table, const void *key, size_t n,
	MDB_val *v, struct err *e) must_check;
int pool_db_put(struct pool_db *db, MDB_txn *t, MDB_dbi table, const void *key, size_t n,
	const void *value, size_t len, struct err *e) must_check;

int pool_state_get(struct pool_db *db, MDB_txn *t, struct pool_state *s, struct err *e) must_check;
int pool_state_put(
	struct pool_db *db, MDB_txn *t, const struct pool_state *s, struct err *e) must_check;

/* Turn a return code of LMDB into an error; "what" was being done. Returns -1. */
int pool_db_error(const struct pool_db *db, int rc, const char *what, struct err *e);
/* Say what to do with a damaged pool. Returns -1. */
int pool_db_hint(const struct pool_db *db, struct err *e);

/* Numbers as they lie in keys (big-endian, so that they sort) and in values (little-endian). */
void pool_key_encode(uint8_t key[8], uint64_t v);
uint64_t pool_key_decode(const void *key);
void pool_u64_encode(uint8_t *p, uint64_t v);
uint64_t pool_u64_decode(const uint8_t *p);
void pool_u32_encode(uint8_t *p, uint32_t v);
uint32_t pool_u32_decode(const uint8_t *p);

#endif
