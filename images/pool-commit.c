/* Recording what was put: after a sync, or before it with a mark that says so. */
#include <errno.h>

#include "base/sys.h"
#include "images/pool-private.h"

static int sync_data(struct pool *p, struct err *e)
{
	if (sys_fdatasync(p->fd) == 0)
		return 0;
	err_sys(e, "sync %s/data", p->db.dir);
	sys_hint_space(e, p->fd, 0);
	pool_mark_fail(p->dir); /* the kernel says it once; what failed may be another's data */
	return -1;
}

/* Another process may have recorded the same chunk meanwhile. Its record stays; ours, which our
 * caller's tree refers to, is kept as a twin: it lives as long as the record does. */
static int record(struct pool *p, MDB_txn *t, const struct pending_chunk *x, struct err *e)
{
	uint8_t r[POOL_CHUNK_RECORD], twin[POOL_TWIN_RECORD], key[8];
	struct chunk c = {.digest = x->digest, .length = x->length, .block = x->block};
	MDB_val k = {DIGEST_SIZE, c.digest.b}, v = {sizeof(r), r};
	int rc;

	pool_record_encode(&c, r);
	rc = mdb_put(t, p->db.chunks, &k, &v, MDB_NOOVERWRITE);
	if (rc == 0)
		return 0;
	if (rc != MDB_KEYEXIST)
		return pool_db_error(&p->db, rc, "record a chunk", e);
	pool_key_encode(key, (uint64_t)x->block);
	pool_twin_encode(&c, twin);
	return pool_db_put(&p->db, t, p->db.twins, key, sizeof(key), twin, sizeof(twin), e);
}

static int record_all(struct pool *p, MDB_txn *t, struct pending_chunk *const *v, struct err *e)
{
	struct pool_state s;

	if (pool_space_release(&p->space, t, e) < 0 || pool_state_get(&p->db, t, &s, e) < 0)
		return -1;
	for (; *v; v++) {
		uint64_t end = (uint64_t)(*v)->block + pool_blocks_of((*v)->length);

		if (record(p, t, *v, e) < 0)
			return -1;
		if (end > s.recorded)
			s.recorded = end;
	}
	return pool_state_put(&p->db, t, &s, e);
}

/* The lock is held, nobody is writing. synced: ranges that need no mark any more. */
static int commit(
	struct pool *p, bool soon, const struct pool_range *synced, size_t n, struct err *e)
{
	struct pending_chunk *const *v = pending_sorted(&p->pending);
	MDB_txn *t = pool_db_begin(&p->db, true, e);

	if (!t)
		return -1;
	if ((soon && *v &&
		    (pool_mark_set(&p->db, p->dir, &p->mark, e) < 0 ||
			    pool_unsynced_add(&p->db, t, v, e) < 0)) ||
		(*v && record_all(p, t, v, e) < 0) ||
		(n && pool_unsynced_clear(&p->db, p->dir, t, synced, n, e) < 0)) {
		mdb_txn_abort(t);
		return sys_hint_space(e, p->fd, 0);
	}
	if (pool_db_commit(&p->db, t, e) < 0)
		return sys_hint_space(e, p->fd, 0);
	if (*v)
		pool_space_released(&p->space);
	pending_recorded(&p->pending);
	return 0;
}

static void wait_for_writers(struct pool *p)
{
	while (p->pending.busy)
		pthread_cond_wait(&p->settled, &p->lock);
}

static int list_unsynced(struct pool *p, struct pool_range **v, size_t *n, struct err *e)
{
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	int rc;

	if (!t)
		return -1;
	rc = pool_unsynced_list(&p->db, t, v, n, e);
	mdb_txn_abort(t);
	return rc;
}

/* What others recorded without a sync, this session may have found and relied on. So a commit
 * settles it, too. */
int pool_commit(struct pool *p, struct err *e)
{
	auto_free struct pool_range *synced = NULL;
	size_t n;
	int rc;

	pthread_mutex_lock(&p->lock);
	wait_for_writers(p);
	rc = list_unsynced(p, &synced, &n, e);
	if (rc == 0 && (p->pending.written || n))
		rc = sync_data(p, e) < 0 ? -1 : commit(p, false, synced, n, e);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int pool_commit_soon(struct pool *p, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	wait_for_writers(p);
	if (p->pending.written)
		rc = commit(p, true, NULL, 0, e);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* Other threads may put meanwhile: the lock is not held while the disk works. */
int pool_settle(struct pool *p, struct err *e)
{
	auto_free struct pool_range *synced = NULL;
	MDB_txn *t;
	size_t n;

	if (list_unsynced(p, &synced, &n, e) < 0)
		return -1;
	if (n == 0)
		return 0;
	if (sync_data(p, e) < 0)
		return -1;
	t = pool_db_begin(&p->db, true, e);
	if (!t)
		return -1;
	if (pool_unsynced_clear(&p->db, p->dir, t, synced, n, e) < 0) {
		mdb_txn_abort(t);
		return -1;
	}
	return pool_db_commit(&p->db, t, e);
}
