#include "images/pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>

#include "base/file.h"
#include "base/log.h"
#include "base/sys.h"
#include "images/pool-db.h"
#include "images/pool-pending.h"
#include "images/pool-space.h"

enum {
	CHUNK_RECORD = 16, /* u64 block, u32 length, u32 check */
	TWIN_RECORD = DIGEST_SIZE + 4,
	NOTE_CHECK = 4,
	NOTE_MAX = 64 << 10,
	SMALL = 32 << 10, /* below: copying costs less than another system call */
};
static const char data_magic[16] = "svrun-pool/1\n";

struct pool {
	int dir, fd;
	bool write;
	struct pool_db db;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t settled;
	struct pending pending;
	struct pool_space space;
	uint64_t dirty; /* blocks handed out since writing to disk was last started */
};

/* ---- the data file ---- */

/* Make the data file with its header. It gets its name complete. */
static int make_data(struct pool *p, struct err *e)
{
	char header[POOL_BLOCK] = {0}, tmp[64];
	auto_fd int fd = -1;

	memcpy(header, data_magic, sizeof(data_magic));
	if (getrandom(header + sizeof(data_magic), POOL_IDENTITY, 0) != POOL_IDENTITY)
		return err_sys(e, "getrandom");
	fd = file_tmp(p->dir, tmp, 0600, e);
	if (fd < 0)
		return -1;
	if (sys_write_all(fd, header, sizeof(header)) < 0) {
		err_sys(e, "write pool/data");
		sys_hint_space(e, fd, sizeof(header));
		if (tmp[0])
			sys_unlinkat(p->dir, tmp, 0);
		return -1;
	}
	return file_publish(p->dir, fd, tmp, "data", e);
}

static int open_folder(struct pool *p, int rootfd, struct err *e)
{
	if (p->write && sys_mkdirat(rootfd, "pool", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create pool");
	p->dir = sys_openat(rootfd, "pool", O_RDONLY | O_DIRECTORY, 0);
	return p->dir < 0 ? err_sys(e, "open pool") : 0;
}

static int open_data(struct pool *p, struct err *e)
{
	p->fd = sys_openat(p->dir, "data", p->write ? O_RDWR : O_RDONLY, 0);
	if (p->fd < 0 && errno == ENOENT && p->write) {
		if (make_data(p, e) < 0)
			return -1;
		p->fd = sys_openat(p->dir, "data", O_RDWR, 0);
	}
	return p->fd < 0 ? err_sys(e, "open pool/data") : 0;
}

static int check_length(struct pool *p, struct err *e)
{
	struct pool_state s;
	struct stat st;
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	int rc;

	if (!t)
		return -1;
	rc = pool_state_get(&p->db, t, &s, e);
	mdb_txn_abort(t);
	if (rc < 0)
		return -1;
	if (sys_fstat(p->fd, &st) < 0)
		return err_sys(e, "stat %s/data", p->db.dir);
	if (s.recorded <= (uint64_t)st.st_size / POOL_BLOCK)
		return 0;
	err_set(e, ERR_CORRUPT, "%s/data: expected at least %" PRIu64 " bytes, found %jd",
		p->db.dir, s.recorded * POOL_BLOCK, (intmax_t)st.st_size);
	return pool_db_hint(&p->db, e);
}

static int open_db(struct pool *p, struct err *e)
{
	uint8_t header[sizeof(data_magic) + POOL_IDENTITY];
	struct stat st;

	if (sys_fstat(p->fd, &st) < 0)
		return err_sys(e, "stat pool/data");
	if (sys_pread_all(p->fd, header, sizeof(header), 0) < 0 && errno != ENODATA)
		return err_sys(e, "read pool/data");
	if (st.st_size < POOL_BLOCK || memcmp(header, data_magic, sizeof(data_magic)) != 0) {
		err_set(e, ERR_CORRUPT,
			"pool/data: expected the header %.12s, found something else", data_magic);
		return err_hint(e,
			"move the store's folder pool aside, then run: svrun image verify "
			"--repair --all");
	}
	if (pool_db_open(&p->db, p->dir, p->write, header + sizeof(data_magic),
		    st.st_size == POOL_BLOCK, e) < 0)
		return -1;
	return check_length(p, e);
}

/* One at a time, so that nobody looks at files that another process is just making. */
static int open_files(struct pool *p, int rootfd, struct err *e)
{
	auto_fd int turn = -1;

	if (open_folder(p, rootfd, e) < 0)
		return -1;
	if (p->write) {
		turn = sys_openat(p->dir, "sessions", O_RDWR | O_CREAT, 0600);
		if (turn < 0 || sys_flock(turn, LOCK_EX) < 0)
			return err_sys(e, "lock pool/sessions");
	}
	return open_data(p, e) < 0 ? -1 : open_db(p, e);
}

struct pool *pool_open(int rootfd, bool write, struct err *e)
{
	struct pool *p = mem_alloc(sizeof(*p));

	*p = (struct pool){.dir = -1, .fd = -1, .write = write};
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->settled, NULL);
	pending_init(&p->pending);
	if (open_files(p, rootfd, e) == 0 &&
		(!write || (pool_space_init(&p->space, &p->db, p->dir, p->fd, e) == 0 &&
				   pool_space_sweep(&p->space, e) == 0)))
		return p;
	if (write)
		sys_hint_space(e, rootfd, 0);
	pool_close(p);
	return NULL;
}

void pool_close(struct pool *p)
{
	struct err e = {0};

	if (!p)
		return;
	/* if this fails, the next pool_open() sees a dead session and does it */
	if (pool_space_drop(&p->space, &e) < 0)
		warn("give back space of the pool: %s", e.text);
	pool_space_fini(&p->space);
	pool_db_close(&p->db);
	pending_fini(&p->pending);
	pthread_cond_destroy(&p->settled);
	pthread_mutex_destroy(&p->lock);
	sys_close_ref(&p->fd);
	sys_close_ref(&p->dir);
	free(p);
}

int pool_identity(int rootfd, uint8_t id[POOL_IDENTITY], struct err *e)
{
	uint8_t header[sizeof(data_magic) + POOL_IDENTITY];
	auto_fd int fd = sys_openat(rootfd, "pool/data", O_RDONLY, 0);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open pool/data");
	if (sys_pread_all(fd, header, sizeof(header), 0) < 0)
		return errno == ENODATA ? 0 : err_sys(e, "read pool/data");
	memcpy(id, header + sizeof(data_magic), POOL_IDENTITY);
	return 1;
}

int pool_fd(const struct pool *p)
{
	return p->fd;
}

/* ---- records of chunks ---- */

/* LMDB has no checksums. This one makes a flipped bit in a record an error instead of wrong file
 * data: a mix of all that the record says. */
static uint32_t record_check(const struct digest *d, uint64_t block, uint32_t length)
{
	uint64_t x =
		pool_u64_decode(d->b) ^ block * 0x9e3779b97f4a7c15u ^ length * 0xd6e8feb86659fd93u;

	x = (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
	return (uint32_t)((x ^ x >> 29) >> 32);
}

/* 1 and the block, 0 when there is no record, -1. */
static int find_record(
	struct pool *p, MDB_txn *t, const struct chunk *c, int64_t *block, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	MDB_val v;
	const uint8_t *r;
	uint64_t at;
	uint32_t length;
	int rc = pool_db_get(&p->db, t, p->db.chunks, c->digest.b, DIGEST_SIZE, &v, e);

	if (rc <= 0)
		return rc;
	r = v.mv_data;
	if (v.mv_size != CHUNK_RECORD)
		return err_set(e, ERR_CORRUPT, "%s: record of %s: expected %d bytes, found %zu",
			p->db.name, digest_text(&c->digest, text), CHUNK_RECORD, v.mv_size);
	at = pool_u64_decode(r);
	length = pool_u32_decode(r + 8);
	if (at < 1 || at > UINT32_MAX ||
		pool_u32_decode(r + 12) != record_check(&c->digest, at, length)) {
		err_set(e, ERR_CORRUPT, "%s: record of %s is damaged", p->db.name,
			digest_text(&c->digest, text));
		return pool_db_hint(&p->db, e);
	}
	if (length != c->length)
		return err_set(e, ERR_CORRUPT,
			"chunk %s: expected %" PRIu32 " bytes, found %" PRIu32 " in the pool",
			digest_text(&c->digest, text), c->length, length);
	*block = (int64_t)at;
	return 1;
}

static int look_up(struct pool *p, const struct chunk *c, int64_t *block, struct err *e)
{
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	int rc;

	if (!t)
		return -1;
	rc = find_record(p, t, c, block, e);
	mdb_txn_abort(t);
	return rc;
}

int pool_find(struct pool *p, struct chunk *c, struct err *e)
{
	const struct pending_chunk *x;
	bool here;

	pthread_mutex_lock(&p->lock);
	x = pending_find(&p->pending, &c->digest);
	here = x && (x->state == PENDING_WRITTEN || x->state == PENDING_RECORDED) &&
	       x->length == c->length;
	if (here)
		c->block = x->block;
	pthread_mutex_unlock(&p->lock);
	return here ? 1 : look_up(p, c, &c->block, e);
}

/* ---- adding ---- */

static uint32_t blocks_of(uint32_t length)
{
	return (length + POOL_BLOCK - 1) / POOL_BLOCK;
}

/* The rest of the last block becomes zero: mounts show it behind the end of a mapped file. */
static int write_chunk(
	struct pool *p, const void *data, uint32_t length, int64_t block, struct err *e)
{
	char small[SMALL];
	uint32_t whole = length <= SMALL ? 0 : length / POOL_BLOCK * POOL_BLOCK;
	uint32_t rest = length - whole, padded = blocks_of(rest) * POOL_BLOCK;
	off_t at = (off_t)block * POOL_BLOCK;

	memcpy(small, (const char *)data + whole, rest);
	memset(small + rest, 0, padded - rest);
	if (sys_pwrite_all(p->fd, data, whole, at) == 0 &&
		sys_pwrite_all(p->fd, small, padded, at + (off_t)whole) == 0)
		return 0;
	err_sys(e, "write %s/data", p->db.dir);
	return sys_hint_space(e, p->fd, length);
}

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
	rc = pool_space_take(&p->space, blocks_of(c->length), &start, e);
	p->dirty += blocks_of(c->length);
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
		pool_space_give(&p->space, (uint64_t)c->block, blocks_of(c->length));
	pthread_cond_broadcast(&p->settled);
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
	rc = look_up(p, c, &c->block, e);
	if (rc > 0) {
		settle(p, c, PENDING_RECORDED, false);
		return 0;
	}
	if (rc < 0 || take_space(p, c, e) < 0) {
		settle(p, c, PENDING_FAILED, false);
		return -1;
	}
	rc = write_chunk(p, data, len, c->block, e);
	settle(p, c, rc < 0 ? PENDING_FAILED : PENDING_WRITTEN, true);
	return rc;
}

/* ---- recording ---- */

/* Another process may have recorded the same chunk meanwhile. Its record stays; ours, which our
 * caller's tree refers to, is kept as a twin: it lives as long as the record does. */
static int record(struct pool *p, MDB_txn *t, const struct pending_chunk *x, struct err *e)
{
	uint8_t r[CHUNK_RECORD], twin[TWIN_RECORD], key[8];
	struct digest digest = x->digest;
	MDB_val k = {DIGEST_SIZE, digest.b}, v = {sizeof(r), r};
	int rc;

	pool_u64_encode(r, (uint64_t)x->block);
	pool_u32_encode(r + 8, x->length);
	pool_u32_encode(r + 12, record_check(&x->digest, (uint64_t)x->block, x->length));
	rc = mdb_put(t, p->db.chunks, &k, &v, MDB_NOOVERWRITE);
	if (rc == 0)
		return 0;
	if (rc != MDB_KEYEXIST)
		return pool_db_error(&p->db, rc, "record a chunk", e);
	pool_key_encode(key, (uint64_t)x->block);
	memcpy(twin, x->digest.b, DIGEST_SIZE);
	pool_u32_encode(twin + DIGEST_SIZE, x->length);
	return pool_db_put(&p->db, t, p->db.twins, key, sizeof(key), twin, sizeof(twin), e);
}

static int record_all(struct pool *p, MDB_txn *t, struct err *e)
{
	struct pool_state s;
	struct pending_chunk *const *v = pending_sorted(&p->pending);

	if (pool_space_release(&p->space, t, e) < 0 || pool_state_get(&p->db, t, &s, e) < 0)
		return -1;
	for (; *v; v++) {
		uint64_t end = (uint64_t)(*v)->block + blocks_of((*v)->length);

		if (record(p, t, *v, e) < 0)
			return -1;
		if (end > s.recorded)
			s.recorded = end;
	}
	return pool_state_put(&p->db, t, &s, e);
}

static int commit(struct pool *p, struct err *e)
{
	MDB_txn *t;

	if (sys_fdatasync(p->fd) < 0) {
		err_sys(e, "sync %s/data", p->db.dir);
		return sys_hint_space(e, p->fd, 0);
	}
	t = pool_db_begin(&p->db, true, e);
	if (!t)
		return -1;
	if (record_all(p, t, e) < 0) {
		mdb_txn_abort(t);
		return sys_hint_space(e, p->fd, 0);
	}
	if (pool_db_commit(&p->db, t, e) < 0)
		return sys_hint_space(e, p->fd, 0);
	pool_space_released(&p->space);
	pending_recorded(&p->pending);
	return 0;
}

int pool_commit(struct pool *p, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	while (p->pending.busy)
		pthread_cond_wait(&p->settled, &p->lock);
	if (p->pending.written)
		rc = commit(p, e);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* ---- reading, checking, repairing ---- */

int pool_read(struct pool *p, const struct chunk *c, void *out, struct err *e)
{
	off_t at = (off_t)c->block * POOL_BLOCK;
	struct stat st;

	if (c->block < 1 || c->block > UINT32_MAX || c->length > CHUNK_SIZE)
		return err_set(e, ERR_NOT_FOUND, "a chunk is not in the pool");
	if (sys_pread_all(p->fd, out, c->length, at) == 0)
		return 0;
	if (errno != ENODATA || sys_fstat(p->fd, &st) < 0)
		return err_sys(e, "read %s/data", p->db.dir);
	err_set(e, ERR_CORRUPT, "%s/data: expected at least %jd bytes, found %jd", p->db.dir,
		(intmax_t)at + c->length, (intmax_t)st.st_size);
	return pool_db_hint(&p->db, e);
}

int pool_check(struct pool *p, const struct chunk *c, void *scratch, struct err *e)
{
	struct digest d;

	if (pool_read(p, c, scratch, e) < 0)
		return -1;
	d = digest_of(scratch, c->length);
	if (digest_check(&c->digest, &d, e, "%s/data: %" PRIu32 " bytes at block %" PRId64,
		    p->db.dir, c->length, c->block) == 0)
		return 0;
	return err_hint(e, "svrun image verify --repair takes the data from the image's layers");
}

int pool_repair(struct pool *p, const struct chunk *c, const void *data, struct err *e)
{
	struct digest d = digest_of(data, c->length);
	int64_t block;
	int rc;

	assert(p->write);
	if (!digest_eq(&d, &c->digest))
		return err_set(e, ERR_CORRUPT, "the data to repair a chunk with are not its own");
	rc = look_up(p, c, &block, e);
	if (rc < 0)
		return -1;
	if (rc == 0 || block != c->block)
		return err_set(e, ERR_NOT_FOUND,
			"a chunk to repair is not recorded at block %" PRId64, c->block);
	if (write_chunk(p, data, c->length, c->block, e) < 0)
		return -1;
	return sys_fdatasync(p->fd) < 0 ? err_sys(e, "sync %s/data", p->db.dir) : 0;
}

/* ---- notes ---- */

static void note_check(
	const struct digest *key, const void *text, size_t n, uint8_t out[NOTE_CHECK])
{
	struct hash h;
	struct digest d;

	hash_init(&h, HASH_SHA256);
	hash_add(&h, key->b, DIGEST_SIZE);
	hash_add(&h, text, n);
	d = hash_digest(&h);
	memcpy(out, d.b, NOTE_CHECK);
}

int pool_note_put(struct pool *p, const struct digest *key, const char *val, struct err *e)
{
	size_t n = strlen(val);
	auto_free uint8_t *value = mem_alloc(NOTE_CHECK + n);
	MDB_txn *t;

	if (n > NOTE_MAX)
		return err_set(e, ERR_UNSUPPORTED, "a note of %zu bytes", n);
	note_check(key, val, n, value);
	memcpy(value + NOTE_CHECK, val, n);
	t = pool_db_begin(&p->db, true, e);
	if (!t)
		return -1;
	if (pool_db_put(&p->db, t, p->db.notes, key->b, DIGEST_SIZE, value, NOTE_CHECK + n, e) == 0)
		return pool_db_commit(&p->db, t, e) < 0 ? sys_hint_space(e, p->fd, 0) : 0;
	mdb_txn_abort(t);
	return sys_hint_space(e, p->fd, 0);
}

int pool_note_get(struct pool *p, const struct digest *key, char **val, struct err *e)
{
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	uint8_t check[NOTE_CHECK];
	MDB_val v;
	int rc;

	*val = NULL;
	if (!t)
		return -1;
	rc = pool_db_get(&p->db, t, p->db.notes, key->b, DIGEST_SIZE, &v, e);
	if (rc > 0 && v.mv_size >= NOTE_CHECK && v.mv_size <= NOTE_CHECK + NOTE_MAX) {
		const char *text = (char *)v.mv_data + NOTE_CHECK;
		size_t n = v.mv_size - NOTE_CHECK;

		note_check(key, text, n, check);
		if (memcmp(check, v.mv_data, NOTE_CHECK) == 0)
			*val = mem_printf("%.*s", (int)n, text);
	}
	mdb_txn_abort(t);
	if (rc <= 0 || *val)
		return rc;
	err_set(e, ERR_CORRUPT, "%s: a damaged note", p->db.name);
	return pool_db_hint(&p->db, e);
}
