/* The pool: every chunk of every image, once, uncompressed and 4 KiB-aligned in one sparse file,
 * ROOT/pool/data. LMDB (ROOT/pool/db) maps digest -> {first block, length}. docs/pool-format.md
 * has every byte.
 *
 * A chunk is visible to others only after pool_commit(), which syncs the data before it records
 * them. Space is reserved by extents, so several processes may add at the same time; an extent
 * whose owner died is taken back at the next pool_open() for writing.
 *
 * Whoever has the pool open for writing keeps garbage collection away from ROOT until it closes it
 * (a shared flock on ROOT/pool/users): so names are given to images before pool_close().
 *
 * All functions but pool_open() and pool_close() are thread-safe. One process has the pool of one
 * store open once at a time (LMDB's rule), and not across fork().
 */
#ifndef IMAGES_POOL_H
#define IMAGES_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "images/tree.h"

enum { POOL_BLOCK = 4096, POOL_IDENTITY = 16 };

struct pool;

/* rootfd: the store's root. With write, missing files are made. Errors: CORRUPT (not a pool of this
 * version, LMDB damaged; the hint says what to do), NOT_FOUND, SYSTEM. */
struct pool *pool_open(int rootfd, bool write, struct err *e) must_check;
/* The same for writing, once nobody else writes, and nobody may until pool_close(): for garbage
 * collection. */
struct pool *pool_open_alone(int rootfd, struct err *e) must_check;
/* Keep garbage collection away until the returned fd is closed: for who writes blobs that no
 * name leads to yet, and does not have the pool open. What a crash left is put right before. */
int pool_hold(int rootfd, struct err *e) must_check;
void pool_close(struct pool *p); /* what was not committed is given back */

/* What tells this pool from one that was made anew in its place: block numbers of the one mean
 * nothing in the other. Reads 32 bytes, not LMDB. 1, 0 when there is no pool, -1. */
int pool_identity(int rootfd, uint8_t id[POOL_IDENTITY], struct err *e) must_check;

/* Add len (1 to CHUNK_SIZE) bytes: fills c->digest, length and block. Data that the pool, or this
 * session's uncommitted part, has already are not written again. */
int pool_put(
	struct pool *p, const void *data, uint32_t len, struct chunk *c, struct err *e) must_check;

/* Add n chunks whose digests are known (c->digest, c->length): checks data against them (CORRUPT
 * names the digest), and writes those that the pool lacks side by side, in few calls. Fills block.
 */
struct pool_item {
	const void *data;
	struct chunk *c;
};
int pool_put_known(struct pool *p, const struct pool_item *v, size_t n, struct err *e) must_check;
/* The same for n chunks whose digests are to be found: c->length is set, digest and block are
 * filled. */
int pool_put_all(struct pool *p, const struct pool_item *v, size_t n, struct err *e) must_check;

/* So many bytes are about to be put: reserves space for them at once, instead of more and more. A
 * reservation is a transaction, and everybody waits for it. */
void pool_expect(struct pool *p, uint64_t bytes);

/* Sync, then record all that was put since the last commit. */
int pool_commit(struct pool *p, struct err *e) must_check;
/* Record without waiting for the disk, so that a pulled image can be run at once. Until
 * pool_settle() (any process) has synced, a mark says so; after a crash of the machine the marked
 * chunks are hashed again by the next pool_open() for writing, and those that did not make it to
 * the disk are forgotten, together with the metadata images. docs/pool-format.md, "Commit without
 * sync". */
int pool_commit_soon(struct pool *p, struct err *e) must_check;
/* Sync what pool_commit_soon() left and take the marks away. Nothing to do: cheap. */
int pool_settle(struct pool *p, struct err *e) must_check;
/* Are there marks of an earlier boot, so that metadata images may refer to lost chunks? Reads one
 * small file, not LMDB: 1, 0, -1. mount_open() asks before it trusts one. */
int pool_doubtful(int rootfd, struct err *e) must_check;

/* Fill c->block from c->digest; c->length must agree with the record (CORRUPT). 1 found, 0 not, -1.
 */
int pool_find(struct pool *p, struct chunk *c, struct err *e) must_check;
/* The same for many, in one transaction: fills block, or CHUNK_NO_BLOCK. */
int pool_find_all(struct pool *p, struct chunk *const *v, size_t n, struct err *e) must_check;

/* Read c->length bytes at c->block into out (no check of the digest). Short file: CORRUPT. */
int pool_read(struct pool *p, const struct chunk *c, void *out, struct err *e) must_check;
/* pool_read() into scratch (c->length bytes) and compare: CORRUPT names the pool's file, the
 * block, the expected and the found digest. */
int pool_check(struct pool *p, const struct chunk *c, void *scratch, struct err *e) must_check;
/* Write a recorded chunk's bytes again, in place, after their digest was compared with c's. */
int pool_repair(struct pool *p, const struct chunk *c, const void *data, struct err *e) must_check;

int pool_fd(const struct pool *p); /* the data file, borrowed */

/* Small records beside the chunks: the builder's results, by key. val is a NUL-terminated string.
 */
int pool_note_put(
	struct pool *p, const struct digest *key, const char *val, struct err *e) must_check;
/* 1 and a copy to free, 0 when there is none, -1. */
int pool_note_get(struct pool *p, const struct digest *key, char **val, struct err *e) must_check;

#endif
