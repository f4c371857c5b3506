#include "images/pool-sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/sys.h"
#include "images/pool-private.h"

enum { BATCH = 4096 }; /* chunks of one transaction */

/* What one transaction takes away. */
struct batch {
	struct pool_sweep *w;
	enum pool_table table;
	struct chunk v[BATCH];
	size_t n;
	struct digest last; /* key of the last record that was looked at */
	uint64_t last_block;
	bool more, started;
};

static int collect(void *ctx, const struct chunk *c, struct err *e)
{
	struct batch *b = ctx;

	(void)e;
	if (b->n == BATCH) {
		b->more = true;
		return 0;
	}
	if (b->started && digest_eq(&b->last, &c->digest) && b->last_block == (uint64_t)c->block)
		return 1; /* where the batch before ended */
	b->started = true;
	b->last = c->digest;
	b->last_block = (uint64_t)c->block;
	if (!b->w->keep(b->w->ctx, &c->digest))
		b->v[b->n++] = *c;
	return 1;
}

/* The next chunks that nobody wants, from where the batch before ended. */
static int fill(struct pool *p, struct batch *b, struct err *e)
{
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	uint8_t key[8];
	int rc;

	if (!t)
		return -1;
	b->n = 0;
	b->more = false;
	pool_key_encode(key, b->last_block);
	if (!b->started)
		rc = pool_record_each(p, t, b->table, NULL, 0, collect, b, e);
	else if (b->table == POOL_CHUNKS)
		rc = pool_record_each(p, t, b->table, b->last.b, DIGEST_SIZE, collect, b, e);
	else
		rc = pool_record_each(p, t, b->table, key, sizeof(key), collect, b, e);
	mdb_txn_abort(t);
	return rc;
}

static int delete_one(
	struct pool *p, MDB_txn *t, enum pool_table table, const struct chunk *c, struct err *e)
{
	uint8_t key[8];
	MDB_val k = {DIGEST_SIZE, (void *)(uintptr_t)c->digest.b};
	int rc;

	if (table == POOL_TWINS) {
		pool_key_encode(key, (uint64_t)c->block);
		k = (MDB_val){sizeof(key), key};
	}
	rc = mdb_del(t, table == POOL_TWINS ? p->db.twins : p->db.chunks, &k, NULL);
	if (rc)
		return pool_db_error(&p->db, rc, "forget a chunk", e);
	return pool_space_free(&p->space, t, (uint64_t)c->block, pool_blocks_of(c->length), e);
}

static int delete_all(
	struct pool *p, enum pool_table table, const struct chunk *v, size_t n, struct err *e)
{
	MDB_txn *t = n ? pool_db_begin(&p->db, true, e) : NULL;

	if (n == 0)
		return 0;
	if (!t)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (delete_one(p, t, table, &v[i], e) < 0) {
			mdb_txn_abort(t);
			return -1;
		}
	return pool_db_commit(&p->db, t, e);
}

static int sweep_table(struct pool *p, struct batch *b, struct err *e)
{
	b->started = false;
	do {
		if (fill(p, b, e) < 0)
			return -1;
		b->w->chunks += b->n;
		for (size_t i = 0; b->w->dry && i < b->n; i++)
			b->w->bytes += (uint64_t)pool_blocks_of(b->v[i].length) * POOL_BLOCK;
		if (!b->w->dry && delete_all(p, b->table, b->v, b->n, e) < 0)
			return -1;
	} while (b->more);
	return 0;
}

/* ---- giving space back ---- */

/* Holes where the range has data: asking first leaves alone what is a hole already, which is most
 * of it. A file system that cannot have holes keeps its space. */
static int punch(struct pool *p, off_t from, off_t to, struct err *e)
{
	while (from < to) {
		off_t data = lseek(p->fd, from, SEEK_DATA), hole;

		if (data < 0 || data >= to) /* ENXIO: nothing but a hole */
			return data < 0 && errno != ENXIO && errno != EINVAL
				       ? err_sys(e, "seek in %s/data", p->db.dir)
				       : 0;
		hole = lseek(p->fd, data, SEEK_HOLE);
		if (hole < 0 || hole > to)
			hole = to;
		if (fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, data,
			    hole - data) < 0)
			return errno == EOPNOTSUPP ? 0 : err_sys(e, "punch %s/data", p->db.dir);
		from = hole;
	}
	return 0;
}

static int punch_free(struct pool *p, struct err *e)
{
	struct pool_range *v = NULL;
	struct pool_state s;
	struct stat st;
	size_t n = 0;
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	int rc;

	if (!t)
		return -1;
	rc = pool_space_list(&p->db, t, p->db.free, &v, &n, e);
	if (rc == 0)
		rc = pool_state_get(&p->db, t, &s, e);
	mdb_txn_abort(t);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = punch(p, (off_t)(v[i].start * POOL_BLOCK),
			(off_t)((v[i].start + v[i].blocks) * POOL_BLOCK), e);
	free(v);
	if (rc == 0 && sys_fstat(p->fd, &st) < 0)
		rc = err_sys(e, "stat %s/data", p->db.dir);
	return rc < 0 ? -1 : punch(p, (off_t)(s.end * POOL_BLOCK), st.st_size, e);
}

static int disk_bytes(struct pool *p, uint64_t *bytes, struct err *e)
{
	struct stat st;

	if (sys_fstat(p->fd, &st) < 0)
		return err_sys(e, "stat %s/data", p->db.dir);
	*bytes = (uint64_t)st.st_blocks * 512;
	return 0;
}

int pool_sweep(struct pool *p, struct pool_sweep *w, struct err *e)
{
	auto_free struct batch *b = mem_alloc(sizeof(*b));
	uint64_t before = 0, after = 0;

	w->chunks = 0;
	w->bytes = 0;
	b->w = w;
	if (disk_bytes(p, &before, e) < 0)
		return -1;
	/* twins live as long as their chunk's record: so they go first */
	for (int i = 0; i < 2; i++) {
		b->table = i ? POOL_CHUNKS : POOL_TWINS;
		if (sweep_table(p, b, e) < 0)
			return -1;
	}
	if (w->dry)
		return 0;
	if (punch_free(p, e) < 0 || disk_bytes(p, &after, e) < 0)
		return -1;
	w->bytes = before > after ? before - after : 0;
	return 0;
}

int pool_forget(struct pool *p, struct chunk *const *v, size_t n, struct err *e)
{
	auto_free struct chunk *found = mem_array(n, sizeof(*found));
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		int rc;

		found[k] = *v[i];
		rc = pool_find(p, &found[k], e);
		if (rc < 0)
			return -1;
		k += rc > 0;
	}
	return delete_all(p, POOL_CHUNKS, found, k, e);
}

/* ---- looking ---- */

int pool_each(struct pool *p, bool twins,
	int (*fn)(void *ctx, const struct chunk *c, struct err *e), void *ctx, struct err *e)
{
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	int rc;

	if (!t)
		return -1;
	rc = pool_record_each(p, t, twins ? POOL_TWINS : POOL_CHUNKS, NULL, 0, fn, ctx, e);
	mdb_txn_abort(t);
	return rc;
}

/* Ranges of all kinds. */
struct ranges {
	struct pool_range *v;
	size_t n, cap;
};

static void add_range(struct ranges *r, uint64_t start, uint64_t blocks)
{
	mem_grow(&r->v, &r->cap, r->n);
	r->v[r->n++] = (struct pool_range){start, blocks};
}

static int add_chunk(void *ctx, const struct chunk *c, struct err *e)
{
	(void)e;
	add_range(ctx, (uint64_t)c->block, pool_blocks_of(c->length));
	return 1;
}

static int add_table(struct pool *p, MDB_txn *t, MDB_dbi table, struct ranges *r, struct err *e)
{
	struct pool_range *v;
	size_t n;

	if (pool_space_list(&p->db, t, table, &v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		add_range(r, v[i].start, v[i].blocks);
	free(v);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct pool_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int check_cover(struct pool *p, struct ranges *r, uint64_t end, struct err *e)
{
	size_t i = 0;
	uint64_t next = 1; /* block 0 is the header */

	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), by_start);
	while (i < r->n && r->v[i].start == next)
		next += r->v[i++].blocks;
	if (next == end && i == r->n)
		return 0;
	for (i = 0; i < r->n; i++)
		if (r->v[i].start < next && r->v[i].start + r->v[i].blocks > next) {
			next = r->v[i].start;
			break;
		}
	err_set(e, ERR_CORRUPT, "%s: block %" PRIu64 " of %" PRIu64 " is in no place, or in two",
		p->db.name, next, end);
	return pool_db_hint(&p->db, e);
}

int pool_check_space(struct pool *p, struct err *e)
{
	struct ranges r = {0};
	struct pool_state s;
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	int rc;

	if (!t)
		return -1;
	rc = pool_state_get(&p->db, t, &s, e) < 0 ||
			     pool_record_each(p, t, POOL_CHUNKS, NULL, 0, add_chunk, &r, e) < 0 ||
			     pool_record_each(p, t, POOL_TWINS, NULL, 0, add_chunk, &r, e) < 0 ||
			     add_table(p, t, p->db.extents, &r, e) < 0 ||
			     add_table(p, t, p->db.free, &r, e) < 0
		     ? -1
		     : check_cover(p, &r, s.end, e);
	mdb_txn_abort(t);
	free(r.v);
	return rc;
}
