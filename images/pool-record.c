/* Records of chunks in LMDB: what they say, and whether it can be true. */
#include <inttypes.h>
#include <string.h>

#include "images/pool-private.h"

/* LMDB has no checksums. This one makes a flipped bit in a record an error instead of wrong file
 * data: a mix of all that the record says. */
static uint32_t record_check(const struct digest *d, uint64_t block, uint32_t length)
{
	uint64_t x =
		pool_u64_decode(d->b) ^ block * 0x9e3779b97f4a7c15u ^ length * 0xd6e8feb86659fd93u;

	x = (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
	return (uint32_t)((x ^ x >> 29) >> 32);
}

void pool_record_encode(const struct chunk *c, uint8_t out[POOL_CHUNK_RECORD])
{
	pool_u64_encode(out, (uint64_t)c->block);
	pool_u32_encode(out + 8, c->length);
	pool_u32_encode(out + 12, record_check(&c->digest, (uint64_t)c->block, c->length));
}

void pool_twin_encode(const struct chunk *c, uint8_t out[POOL_TWIN_RECORD])
{
	memcpy(out, c->digest.b, DIGEST_SIZE);
	pool_u32_encode(out + DIGEST_SIZE, c->length);
}

static int damaged(struct pool *p, const struct digest *d, struct err *e)
{
	char text[DIGEST_TEXT + 1];

	err_set(e, ERR_CORRUPT, "%s: record of %s is damaged", p->db.name, digest_text(d, text));
	return pool_db_hint(&p->db, e);
}

static bool possible(const struct chunk *c)
{
	return c->block >= 1 && c->block <= UINT32_MAX && c->length >= 1 && c->length <= CHUNK_SIZE;
}

int pool_record_decode(
	struct pool *p, const MDB_val *d, const MDB_val *v, struct chunk *c, struct err *e)
{
	const uint8_t *r = v->mv_data;
	char text[DIGEST_TEXT + 1];

	*c = (struct chunk){.block = CHUNK_NO_BLOCK};
	if (d->mv_size != DIGEST_SIZE)
		return damaged(p, &c->digest, e);
	memcpy(c->digest.b, d->mv_data, DIGEST_SIZE);
	if (v->mv_size != POOL_CHUNK_RECORD)
		return err_set(e, ERR_CORRUPT, "%s: record of %s: expected %d bytes, found %zu",
			p->db.name, digest_text(&c->digest, text), POOL_CHUNK_RECORD, v->mv_size);
	c->block = (int64_t)pool_u64_decode(r);
	c->length = pool_u32_decode(r + 8);
	if (!possible(c) ||
		pool_u32_decode(r + 12) != record_check(&c->digest, (uint64_t)c->block, c->length))
		return damaged(p, &c->digest, e);
	return 0;
}

int pool_twin_decode(
	struct pool *p, const MDB_val *block, const MDB_val *v, struct chunk *c, struct err *e)
{
	const uint8_t *r = v->mv_data;

	*c = (struct chunk){.block = CHUNK_NO_BLOCK};
	if (block->mv_size == sizeof(uint64_t) && v->mv_size == POOL_TWIN_RECORD) {
		memcpy(c->digest.b, r, DIGEST_SIZE);
		c->block = (int64_t)pool_key_decode(block->mv_data);
		c->length = pool_u32_decode(r + DIGEST_SIZE);
	}
	return possible(c) ? 0 : damaged(p, &c->digest, e);
}

int pool_record_find(
	struct pool *p, MDB_txn *t, const struct chunk *c, int64_t *block, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	MDB_val k = {DIGEST_SIZE, (void *)(uintptr_t)c->digest.b}, v;
	struct chunk found;
	int rc = pool_db_get(&p->db, t, p->db.chunks, c->digest.b, DIGEST_SIZE, &v, e);

	if (rc <= 0)
		return rc;
	if (pool_record_decode(p, &k, &v, &found, e) < 0)
		return -1;
	if (found.length != c->length)
		return err_set(e, ERR_CORRUPT,
			"chunk %s: expected %" PRIu32 " bytes, found %" PRIu32 " in the pool",
			digest_text(&c->digest, text), c->length, found.length);
	*block = found.block;
	return 1;
}

int pool_record_each(struct pool *p, MDB_txn *t, enum pool_table table, const void *from, size_t n,
	int (*fn)(void *ctx, const struct chunk *c, struct err *e), void *ctx, struct err *e)
{
	MDB_val k = {n, (void *)(uintptr_t)from}, v;
	MDB_cursor *cursor;
	int rc = mdb_cursor_open(t, table == POOL_CHUNKS ? p->db.chunks : p->db.twins, &cursor),
	    go = 1;

	if (rc)
		return pool_db_error(&p->db, rc, "read the chunks", e);
	rc = mdb_cursor_get(cursor, &k, &v, from ? MDB_SET_RANGE : MDB_FIRST);
	while (rc == 0 && go > 0) {
		struct chunk c;

		go = (table == POOL_CHUNKS ? pool_record_decode : pool_twin_decode)(
			p, &k, &v, &c, e);
		if (go == 0)
			go = fn(ctx, &c, e);
		if (go > 0)
			rc = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
	}
	mdb_cursor_close(cursor);
	if (rc && rc != MDB_NOTFOUND)
		return pool_db_error(&p->db, rc, "read the chunks", e);
	return go < 0 ? -1 : 0;
}

/* ---- finding ---- */

/* What this session knows: 1 or 0. The lock is held. */
static int find_pending(struct pool *p, struct chunk *c)
{
	const struct pending_chunk *x = pending_find(&p->pending, &c->digest);

	if (!x || (x->state != PENDING_WRITTEN && x->state != PENDING_RECORDED) ||
		x->length != c->length)
		return 0;
	c->block = x->block;
	return 1;
}

int pool_find(struct pool *p, struct chunk *c, struct err *e)
{
	MDB_txn *t;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = find_pending(p, c);
	pthread_mutex_unlock(&p->lock);
	if (rc)
		return 1;
	t = pool_db_begin(&p->db, false, e);
	if (!t)
		return -1;
	rc = pool_record_find(p, t, c, &c->block, e);
	mdb_txn_abort(t);
	return rc;
}

int pool_find_all(struct pool *p, struct chunk *const *v, size_t n, struct err *e)
{
	MDB_txn *t;
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < n; i++)
		if (!find_pending(p, v[i]))
			v[i]->block = CHUNK_NO_BLOCK;
	pthread_mutex_unlock(&p->lock);
	t = pool_db_begin(&p->db, false, e);
	if (!t)
		return -1;
	for (size_t i = 0; i < n && rc >= 0; i++)
		if (v[i]->block == CHUNK_NO_BLOCK)
			rc = pool_record_find(p, t, v[i], &v[i]->block, e);
	mdb_txn_abort(t);
	return rc < 0 ? -1 : 0;
}
