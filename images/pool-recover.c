/* After a crash of the machine: what was recorded before it was synced is hashed again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/pool-private.h"
#include "images/workers.h"

struct suspect {
	struct digest digest;
	int64_t block;
	uint32_t length;
	bool bad;
};

struct recovery {
	struct pool *p;
	struct pool_range *ranges; /* not synced, as far as is known */
	size_t nranges;
	struct suspect *v; /* chunks in them, then twins in them */
	size_t n, cap, nchunks;
	struct chunk *heirs; /* twins that are right */
	size_t nheirs, heirs_cap;
};

/* ---- metadata images ---- */

/* They may name blocks of lost chunks. Nothing is mounted after a boot; where something is (a sync
 * failed), the mount has its image open and does not need the name. */
static int remove_images(int rootfd, struct err *e)
{
	int fd = sys_openat(rootfd, "erofs", O_RDONLY | O_DIRECTORY, 0), rc = 0;
	DIR *dir;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open erofs");
	dir = fdopendir(fd);
	if (!dir) {
		err_sys(e, "read erofs");
		sys_close_ref(&fd);
		return -1;
	}
	for (struct dirent *d; rc == 0 && (d = readdir(dir));)
		if (str_ends(d->d_name, ".img") && sys_unlinkat(fd, d->d_name, 0) < 0)
			rc = err_sys(e, "remove erofs/%s", d->d_name);
	if (rc == 0 && sys_fsync(fd) < 0)
		rc = err_sys(e, "sync erofs");
	closedir(dir);
	return rc;
}

/* ---- suspects ---- */

static int overlap(const void *key, const void *element)
{
	const struct pool_range *a = key, *b = element;

	if (a->start + a->blocks <= b->start)
		return -1;
	return a->start >= b->start + b->blocks;
}

static int suspect(void *ctx, const struct chunk *c, struct err *e)
{
	struct recovery *r = ctx;
	struct pool_range x = {(uint64_t)c->block, pool_blocks_of(c->length)};

	(void)e;
	if (!bsearch(&x, r->ranges, r->nranges, sizeof(*r->ranges), overlap))
		return 1;
	mem_grow(&r->v, &r->cap, r->n);
	r->v[r->n++] = (struct suspect){c->digest, c->block, c->length, false};
	return 1;
}

static int list_suspects(struct recovery *r, struct err *e)
{
	struct pool *p = r->p;
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	int rc;

	if (!t)
		return -1;
	rc = pool_unsynced_list(&p->db, t, &r->ranges, &r->nranges, e);
	if (rc == 0 && r->nranges) {
		rc = pool_record_each(p, t, POOL_CHUNKS, NULL, 0, suspect, r, e);
		r->nchunks = r->n;
		if (rc == 0)
			rc = pool_record_each(p, t, POOL_TWINS, NULL, 0, suspect, r, e);
	}
	mdb_txn_abort(t);
	return rc;
}

enum { BATCH = 64 };

static int hash_batch(void *ctx, size_t i, struct err *e)
{
	struct recovery *r = ctx;
	auto_free void *data = mem_alloc(CHUNK_SIZE);

	(void)e;
	for (size_t k = i * BATCH; k < r->n && k < (i + 1) * BATCH; k++) {
		struct suspect *s = &r->v[k];
		struct chunk c = {.digest = s->digest, .length = s->length, .block = s->block};

		/* unreadable is as bad as wrong */
		s->bad = pool_check(r->p, &c, data, NULL) < 0;
	}
	return 0;
}

/* What is read must come from the disk, not from a cache that could not be written there. */
static int hash_suspects(struct recovery *r, struct err *e)
{
	if (sys_fdatasync(r->p->fd) < 0)
		return err_sys(e, "sync %s/data", r->p->db.dir);
	for (size_t i = 0; i < r->nranges; i++)
		posix_fadvise(r->p->fd, (off_t)(r->ranges[i].start * POOL_BLOCK),
			(off_t)(r->ranges[i].blocks * POOL_BLOCK), POSIX_FADV_DONTNEED);
	return workers_each((r->n + BATCH - 1) / BATCH, 0, hash_batch, r, e);
}

/* ---- forgetting ---- */

static int delete (struct pool *p, MDB_txn *t, MDB_dbi table, const void *key, size_t n,
	const struct chunk *c, struct err *e)
{
	MDB_val k = {n, (void *)(uintptr_t)key};
	int rc = mdb_del(t, table, &k, NULL);

	if (rc)
		return pool_db_error(&p->db, rc, "forget a chunk", e);
	return pool_space_free(&p->space, t, (uint64_t)c->block, pool_blocks_of(c->length), e);
}

static int forget_twin(struct pool *p, MDB_txn *t, const struct chunk *c, struct err *e)
{
	uint8_t key[8];

	pool_key_encode(key, (uint64_t)c->block);
	return delete (p, t, p->db.twins, key, sizeof(key), c, e);
}

static int add_heir(void *ctx, const struct chunk *c, struct err *e)
{
	struct recovery *r = ctx;

	(void)e;
	mem_grow(&r->heirs, &r->heirs_cap, r->nheirs);
	r->heirs[r->nheirs++] = *c;
	return 1;
}

static int by_digest(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	return memcmp(x->digest.b, y->digest.b, DIGEST_SIZE);
}

/* A twin that is right takes the place of the record: somebody may have synced it. */
static int forget_chunk(struct recovery *r, MDB_txn *t, const struct chunk *c, struct err *e)
{
	struct pool *p = r->p;
	const struct chunk *heir =
		r->nheirs ? bsearch(c, r->heirs, r->nheirs, sizeof(*heir), by_digest) : NULL;
	uint8_t key[8], value[POOL_CHUNK_RECORD];
	MDB_val k = {sizeof(key), key};
	int rc;

	if (delete (p, t, p->db.chunks, c->digest.b, DIGEST_SIZE, c, e) < 0)
		return -1;
	if (!heir)
		return 0;
	pool_key_encode(key, (uint64_t)heir->block);
	rc = mdb_del(t, p->db.twins, &k, NULL);
	if (rc)
		return pool_db_error(&p->db, rc, "forget a twin", e);
	pool_record_encode(heir, value);
	return pool_db_put(
		&p->db, t, p->db.chunks, c->digest.b, DIGEST_SIZE, value, sizeof(value), e);
}

static int forget_suspects(
	struct recovery *r, MDB_txn *t, size_t from, size_t to, bool twins, struct err *e)
{
	for (size_t i = from; i < to; i++) {
		const struct suspect *s = &r->v[i];
		struct chunk c = {.digest = s->digest, .length = s->length, .block = s->block};

		if (s->bad && (twins ? forget_twin(r->p, t, &c, e) : forget_chunk(r, t, &c, e)) < 0)
			return -1;
	}
	return 0;
}

/* Bad twins first, so that none inherits. */
static int forget_bad(struct recovery *r, MDB_txn *t, struct err *e)
{
	if (forget_suspects(r, t, r->nchunks, r->n, true, e) < 0 ||
		pool_record_each(r->p, t, POOL_TWINS, NULL, 0, add_heir, r, e) < 0)
		return -1;
	if (r->nheirs)
		qsort(r->heirs, r->nheirs, sizeof(*r->heirs), by_digest);
	return forget_suspects(r, t, 0, r->nchunks, false, e);
}

/* One transaction: killed before it, all is done again; after it, nothing is doubtful. */
static int forget(struct recovery *r, struct err *e)
{
	struct pool *p = r->p;
	MDB_txn *t = pool_db_begin(&p->db, true, e);
	int rc;

	if (!t)
		return -1;
	rc = forget_bad(r, t, e);
	if (rc == 0 && (rc = mdb_drop(t, p->db.unsynced, 0)) != 0)
		rc = pool_db_error(&p->db, rc, "clear the unsynced ranges", e);
	if (rc < 0) {
		mdb_txn_abort(t);
		return -1;
	}
	if (pool_db_commit(&p->db, t, e) < 0)
		return -1;
	return pool_mark_remove(&p->db, p->dir, e);
}

int pool_recover(struct pool *p, int rootfd, struct err *e)
{
	struct recovery r = {.p = p};
	int rc = 0;

	if (remove_images(rootfd, e) < 0 || list_suspects(&r, e) < 0 ||
		(r.n && hash_suspects(&r, e) < 0) || forget(&r, e) < 0)
		rc = err_ctx(e, "look at what was not synced before the last boot");
	free(r.ranges);
	free(r.v);
	free(r.heirs);
	return rc;
}
