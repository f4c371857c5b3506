/* Adding chunks: claim the digest, look it up, take space, write. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/uio.h>

#include "base/sys.h"
#include "images/pool-private.h"

enum {
	SMALL = 32 << 10, /* below: copying costs less than another system call */
	VECTOR = 1024,    /* pieces of one write: IOV_MAX */
};
static_assert(VECTOR <= IOV_MAX, "the kernel takes as many");

int pool_write_chunk(
	struct pool *p, const void *data, uint32_t length, int64_t block, struct err *e)
{
	char small[SMALL];
	uint32_t whole = length <= SMALL ? 0 : length / POOL_BLOCK * POOL_BLOCK;
	uint32_t rest = length - whole, padded = pool_blocks_of(rest) * POOL_BLOCK;
	off_t at = (off_t)block * POOL_BLOCK;

	memcpy(small, (const char *)data + whole, rest);
	memset(small + rest, 0, padded - rest);
	if (sys_pwrite_all(p->fd, data, whole, at) == 0 &&
		sys_pwrite_all(p->fd, small, padded, at + (off_t)whole) == 0)
		return 0;
	err_sys(e, "write %s/data", p->db.dir);
	return sys_hint_space(e, p->fd, length);
}

/* ---- one ---- */

/* Find the chunk among those of this session, or claim it for this thread: 1 found, 0 claimed. */
static int claim(struct pool *p, struct chunk *c)
{
	struct pending_chunk *x;
	int found = 0;

	pthread_mutex_lock(&p->lock);
	while ((x = pending_find(&p->pending, &c->digest)) && x->state == PENDING_BUSY)
		pthread_cond_wait(&p->settled, &p->lock);
	if (x && x->state != PENDING_FAILED) {
		c->block = x->block;
		found = 1;
	} else {
		pending_claim(&p->pending, c);
	}
	pthread_mutex_unlock(&p->lock);
	return found;
}

static int take_space(struct pool *p, struct chunk *c, struct err *e)
{
	enum { WRITEBACK_BLOCKS = 32 << 20 >> 12 };
	uint64_t start;
	bool kick = false;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = pool_space_take(&p->space, pool_blocks_of(c->length), &start, e);
	p->dirty += pool_blocks_of(c->length);
	if (p->dirty >= WRITEBACK_BLOCKS) {
		p->dirty = 0;
		kick = true;
	}
	pthread_mutex_unlock(&p->lock);
	if (kick) /* the disk works while we compute; pool_commit() waits for the rest */
		sys_start_writeback(p->fd);
	if (rc == 0)
		c->block = (int64_t)start;
	return rc;
}

static void settle(struct pool *p, const struct chunk *c, enum pending_state state, bool took_space)
{
	pthread_mutex_lock(&p->lock);
	pending_settle(&p->pending, c, state);
	if (state == PENDING_FAILED && took_space)
		pool_space_give(&p->space, (uint64_t)c->block, pool_blocks_of(c->length));
	pthread_cond_broadcast(&p->settled);
	pthread_mutex_unlock(&p->lock);
}

static int look_up(struct pool *p, struct chunk *c, struct err *e)
{
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	int rc;

	if (!t)
		return -1;
	rc = pool_record_find(p, t, c, &c->block, e);
	mdb_txn_abort(t);
	return rc;
}

void pool_expect(struct pool *p, uint64_t bytes)
{
	pthread_mutex_lock(&p->lock);
	pool_space_expect(&p->space, (bytes + POOL_BLOCK - 1) / POOL_BLOCK);
	pthread_mutex_unlock(&p->lock);
}

int pool_put(struct pool *p, const void *data, uint32_t len, struct chunk *c, struct err *e)
{
	int rc;

	assert(p->write && len >= 1 && len <= CHUNK_SIZE);
	c->digest = digest_of(data, len);
	c->length = len;
	if (claim(p, c))
		return 0;
	rc = look_up(p, c, e);
	if (rc > 0) {
		settle(p, c, PENDING_RECORDED, false);
		return 0;
	}
	if (rc < 0 || take_space(p, c, e) < 0) {
		settle(p, c, PENDING_FAILED, false);
		return -1;
	}
	rc = pool_write_chunk(p, data, len, c->block, e);
	settle(p, c, rc < 0 ? PENDING_FAILED : PENDING_WRITTEN, true);
	return rc;
}

/* ---- many ---- */

/* A batch on its way. The items are numbers into v. */
struct batch {
	struct pool *p;
	const struct pool_item *v;
	size_t *todo, ntodo;   /* not looked at, or claimed by another thread or another item */
	size_t *mine, nmine;   /* claimed */
	size_t *fresh, nfresh; /* of these, the ones that the pool lacks */
	size_t placed;         /* of these, the ones that have space, from the first on */
};

static int check_item(const struct pool_item *i, struct err *e)
{
	struct digest found;

	if (i->c->length < 1 || i->c->length > CHUNK_SIZE)
		return err_set(e, ERR_CORRUPT, "a chunk of %" PRIu32 " bytes", i->c->length);
	found = digest_of(i->data, i->c->length);
	return digest_check(&i->c->digest, &found, e, "chunk of %" PRIu32 " bytes", i->c->length);
}

/* Claim what is free and finish what is there. When all that is left is claimed by others, wait:
 * this thread holds no claim then, so nobody waits for it. */
static void claim_all(struct batch *b)
{
	struct pool *p = b->p;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		size_t left = 0, before = b->ntodo;

		for (size_t k = 0; k < before; k++) {
			struct chunk *c = b->v[b->todo[k]].c;
			const struct pending_chunk *x = pending_find(&p->pending, &c->digest);

			if (x && x->state == PENDING_BUSY) {
				b->todo[left++] = b->todo[k];
			} else if (x && x->state != PENDING_FAILED) {
				c->block = x->block;
			} else {
				pending_claim(&p->pending, c);
				b->mine[b->nmine++] = b->todo[k];
			}
		}
		b->ntodo = left;
		if (b->nmine || left < before || left == 0)
			break;
		pthread_cond_wait(&p->settled, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
}

static int find_mine(struct batch *b, struct err *e)
{
	MDB_txn *t = pool_db_begin(&b->p->db, false, e);
	int rc = 0;

	if (!t)
		return -1;
	for (size_t k = 0; k < b->nmine && rc >= 0; k++) {
		struct chunk *c = b->v[b->mine[k]].c;

		rc = pool_record_find(b->p, t, c, &c->block, e);
		if (rc == 0)
			b->fresh[b->nfresh++] = b->mine[k];
	}
	mdb_txn_abort(t);
	return rc < 0 ? -1 : 0;
}

/* Side by side, as far as the reserved ranges allow. Writing to disk is not started here: it would
 * take the cores from decoding, and nobody has to wait for it (pool_commit_soon()). */
static int place(struct batch *b, struct err *e)
{
	struct pool *p = b->p;
	auto_free uint32_t *blocks = mem_array(b->nfresh, sizeof(*blocks));
	int rc = 0;

	for (size_t k = 0; k < b->nfresh; k++)
		blocks[k] = pool_blocks_of(b->v[b->fresh[k]].c->length);
	pthread_mutex_lock(&p->lock);
	while (rc == 0 && b->placed < b->nfresh) {
		uint64_t start;
		size_t n;

		rc = pool_space_take_row(
			&p->space, blocks + b->placed, b->nfresh - b->placed, &start, &n, e);
		for (size_t k = 0; rc == 0 && k < n; k++) {
			b->v[b->fresh[b->placed]].c->block = (int64_t)start;
			start += blocks[b->placed++];
		}
	}
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* All pieces, one after the other; changes v. */
static int pwritev_all(int fd, struct iovec *v, int n, off_t at)
{
	while (n > 0) {
		ssize_t r = pwritev(fd, v, n, at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		at += r;
		for (; n > 0 && (size_t)r >= v->iov_len; v++, n--)
			r -= (ssize_t)v->iov_len;
		if (n > 0) {
			v->iov_base = (char *)v->iov_base + r;
			v->iov_len -= (size_t)r;
		}
	}
	return 0;
}

/* One thread at a time, which is how the kernel writes to a file anyway: but there, who waits
 * spins, and takes a core from who could decode. */
static int write_vector(struct pool *p, struct iovec *v, int n, uint64_t block, struct err *e)
{
	uint64_t bytes = 0;
	int rc;

	if (n == 0)
		return 0;
	for (int i = 0; i < n; i++)
		bytes += v[i].iov_len;
	pthread_mutex_lock(&p->writing);
	rc = pwritev_all(p->fd, v, n, (off_t)(block * POOL_BLOCK));
	if (rc < 0) { /* errno stays what it is */
		err_sys(e, "write %s/data", p->db.dir);
		sys_hint_space(e, p->fd, bytes);
	}
	pthread_mutex_unlock(&p->writing);
	return rc;
}

static int write_fresh(struct batch *b, struct err *e)
{
	static const char zeros[POOL_BLOCK];
	struct iovec v[VECTOR];
	uint64_t first = 0, next = 0;
	int n = 0;

	for (size_t k = 0; k < b->nfresh; k++) {
		const struct pool_item *i = &b->v[b->fresh[k]];
		uint64_t block = (uint64_t)i->c->block;
		uint32_t padding = pool_blocks_of(i->c->length) * POOL_BLOCK - i->c->length;

		if (n + 2 > VECTOR || block != next) {
			if (write_vector(b->p, v, n, first, e) < 0)
				return -1;
			n = 0;
			first = block;
		}
		v[n++] = (struct iovec){(void *)(uintptr_t)i->data, i->c->length};
		if (padding)
			v[n++] = (struct iovec){(void *)(uintptr_t)zeros, padding};
		next = block + pool_blocks_of(i->c->length);
	}
	return write_vector(b->p, v, n, first, e);
}

static void settle_all(struct batch *b, bool failed)
{
	struct pool *p = b->p;
	size_t f = 0;

	pthread_mutex_lock(&p->lock);
	for (size_t k = 0; k < b->nmine; k++) {
		struct chunk *c = b->v[b->mine[k]].c;
		bool is_fresh = f < b->nfresh && b->fresh[f] == b->mine[k];

		if (failed && is_fresh && f < b->placed)
			pool_space_give(&p->space, (uint64_t)c->block, pool_blocks_of(c->length));
		if (failed)
			c->block = CHUNK_NO_BLOCK;
		pending_settle(&p->pending, c,
			failed     ? PENDING_FAILED
			: is_fresh ? PENDING_WRITTEN
				   : PENDING_RECORDED);
		f += is_fresh;
	}
	pthread_cond_broadcast(&p->settled);
	pthread_mutex_unlock(&p->lock);
	b->nmine = b->nfresh = b->placed = 0;
}

/* Chunks whose digests and lengths are right. */
static int put_batch(struct pool *p, const struct pool_item *v, size_t n, struct err *e)
{
	auto_free size_t *numbers = mem_array(3 * n, sizeof(*numbers));
	struct batch b = {.p = p,
		.v = v,
		.todo = numbers,
		.ntodo = n,
		.mine = numbers + n,
		.fresh = numbers + 2 * n};

	assert(p->write);
	for (size_t i = 0; i < n; i++)
		b.todo[i] = i;
	while (b.ntodo) {
		int rc;

		claim_all(&b);
		rc = b.nmine == 0 ? 0 : find_mine(&b, e);
		if (rc == 0 && b.nfresh)
			rc = place(&b, e) < 0 ? -1 : write_fresh(&b, e);
		settle_all(&b, rc < 0);
		if (rc < 0)
			return -1;
	}
	return 0;
}

int pool_put_known(struct pool *p, const struct pool_item *v, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (check_item(&v[i], e) < 0)
			return -1;
	return put_batch(p, v, n, e);
}

int pool_put_all(struct pool *p, const struct pool_item *v, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		assert(v[i].c->length >= 1 && v[i].c->length <= CHUNK_SIZE);
		v[i].c->digest = digest_of(v[i].data, v[i].c->length);
	}
	return put_batch(p, v, n, e);
}
