/* LMDB layout: docs/pool-format.md. */
#include "images/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/str.h"
#include "base/sys.h"

enum {
	EXTENT_BLOCKS = 16384, /* 64 MiB reserved at a time */
	CHUNK_BLOCKS = CHUNK_SIZE / POOL_BLOCK,
	PENDING_SLOTS = 1 << 15,
};
static const size_t map_size = (size_t)64 << 30; /* address space, not memory */
static const char version[] = "svrun-pool/1";

/* A chunk of this session that is not recorded yet. */
struct pending {
	struct pending *next;
	struct digest digest;
	uint32_t length;
	int64_t block;
};

struct pool {
	MDB_env *env;
	MDB_dbi chunks, notes, meta;
	int fd, dirfd;
	bool write;
	pthread_mutex_t lock; /* of all below */
	struct arena arena;   /* owns the pending ones */
	struct pending **slots;
	size_t npending;
	struct extent {
		uint64_t start, next, end; /* blocks; [start, next) is used, not yet recorded */
	} * owned;                         /* the last one is being filled */
	size_t nowned, cap;
};

/* Values of the records, little-endian as in memory on every supported machine. */
struct chunk_record {
	uint64_t block;
	uint32_t length, reserved;
};

struct extent_record {
	uint64_t end;
	uint64_t started; /* of the owner, clock ticks after boot; 0 in a free extent */
	uint32_t pid, reserved;
};

static int mdb_error(int rc, const char *what, struct err *e)
{
	if (rc == ENOSPC || rc == EIO || rc == EACCES || rc == ENOMEM) {
		errno = rc;
		return err_sys(e, "pool/db: %s", what);
	}
	err_set(e, ERR_CORRUPT, "pool/db/data.mdb: %s: %s", what, mdb_strerror(rc));
	return err_hint(e, "move the folder pool aside, then: svrun image verify --repair --all");
}

/* ---- owners of extents ---- */

/* Start time of a process, field 22 of proc(5) stat; 0 when there is none. */
static uint64_t start_of(uint32_t pid)
{
	char path[64], *p;
	unsigned long long ticks = 0;
	auto_buf struct buf b = BUF_INIT(4096);
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0 || buf_reserve(&b, 4000, NULL) < 0)
		return 0;
	n = sys_read(fd, b.data, 4000);
	if (n <= 0)
		return 0;
	b.data[n] = '\0';
	p = strrchr(b.data, ')'); /* the name may hold anything */
	if (!p || sscanf(p + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			  "%*d %*d %llu",
			  &ticks) != 1)
		return 0;
	return ticks;
}

static void extent_key(uint8_t key[9], char kind, uint64_t start)
{
	key[0] = (uint8_t)kind;
	for (int i = 0; i < 8; i++)
		key[1 + i] = (uint8_t)(start >> (56 - 8 * i));
}

static uint64_t extent_start(const MDB_val *k)
{
	const uint8_t *p = k->mv_data;
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[1 + i];
	return v;
}

static int put_extent(struct pool *p, MDB_txn *t, char kind, uint64_t start, uint64_t end)
{
	struct extent_record r = {.end = end};
	uint8_t key[9];
	MDB_val k = {9, key}, v = {sizeof(r), &r};

	if (start >= end)
		return 0;
	if (kind == 'E') {
		r.pid = (uint32_t)getpid();
		r.started = start_of(r.pid);
	}
	extent_key(key, kind, start);
	return mdb_put(t, p->meta, &k, &v, 0);
}

static int del_extent(struct pool *p, MDB_txn *t, char kind, uint64_t start)
{
	uint8_t key[9];
	MDB_val k = {9, key};
	int rc;

	extent_key(key, kind, start);
	rc = mdb_del(t, p->meta, &k, NULL);
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static void punch(struct pool *p, uint64_t start, uint64_t end)
{
	/* only saves space: reuse writes every byte, so failing is harmless */
	(void)!fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)(start * POOL_BLOCK), (off_t)((end - start) * POOL_BLOCK));
}

/* Extents whose owner died become free ones. */
static int take_back(struct pool *p, struct err *e)
{
	MDB_txn *t;
	MDB_cursor *c = NULL;
	uint8_t from[9];
	MDB_val k = {9, from}, v;
	int rc = mdb_txn_begin(p->env, NULL, 0, &t);

	if (rc)
		return mdb_error(rc, "begin", e);
	extent_key(from, 'E', 0);
	rc = mdb_cursor_open(t, p->meta, &c);
	if (rc == 0)
		rc = mdb_cursor_get(c, &k, &v, MDB_SET_RANGE);
	while (rc == 0 && k.mv_size == 9 && *(uint8_t *)k.mv_data == 'E') {
		struct extent_record r;
		uint64_t start = extent_start(&k);

		if (v.mv_size != sizeof(r)) {
			rc = MDB_CORRUPTED;
			break;
		}
		memcpy(&r, v.mv_data, sizeof(r));
		if (start_of(r.pid) != r.started || r.started == 0) {
			punch(p, start, r.end);
			rc = mdb_cursor_del(c, 0);
			if (rc == 0)
				rc = put_extent(p, t, 'F', start, r.end);
		}
		if (rc == 0) {
			extent_key(from, 'E', start + 1);
			k = (MDB_val){9, from};
			rc = mdb_cursor_get(c, &k, &v, MDB_SET_RANGE);
		}
	}
	if (c)
		mdb_cursor_close(c);
	if (rc && rc != MDB_NOTFOUND) {
		mdb_txn_abort(t);
		return mdb_error(rc, "read extents", e);
	}
	rc = mdb_txn_commit(t);
	return rc ? mdb_error(rc, "take back extents", e) : 0;
}

static int read_end(struct pool *p, MDB_txn *t, uint64_t *end)
{
	char name[] = "end";
	MDB_val k = {3, name}, v;
	int rc = mdb_get(t, p->meta, &k, &v);

	*end = 0;
	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc == 0 && v.mv_size != sizeof(*end))
		return MDB_CORRUPTED;
	if (rc == 0)
		memcpy(end, v.mv_data, sizeof(*end));
	return rc;
}

static int write_end(struct pool *p, MDB_txn *t, uint64_t end)
{
	char name[] = "end";
	MDB_val k = {3, name}, v = {sizeof(end), &end};

	return mdb_put(t, p->meta, &k, &v, 0);
}

/* A free extent that holds at least one whole chunk. MDB_NOTFOUND when there is none. */
static int find_free(struct pool *p, MDB_txn *t, uint64_t *start, uint64_t *end)
{
	MDB_cursor *c;
	uint8_t from[9];
	MDB_val k = {9, from}, v;
	int rc = mdb_cursor_open(t, p->meta, &c);

	if (rc)
		return rc;
	extent_key(from, 'F', 0);
	for (rc = mdb_cursor_get(c, &k, &v, MDB_SET_RANGE); rc == 0;
		rc = mdb_cursor_get(c, &k, &v, MDB_NEXT)) {
		struct extent_record r;

		if (k.mv_size != 9 || *(uint8_t *)k.mv_data != 'F') {
			rc = MDB_NOTFOUND;
			break;
		}
		if (v.mv_size != sizeof(r)) {
			rc = MDB_CORRUPTED;
			break;
		}
		memcpy(&r, v.mv_data, sizeof(r));
		*start = extent_start(&k);
		*end = r.end;
		if (*end - *start >= CHUNK_BLOCKS)
			break;
	}
	mdb_cursor_close(c);
	return rc;
}

/* Give an extent's blocks from `from` on back, inside a transaction. */
static int release(struct pool *p, MDB_txn *t, const struct extent *x, uint64_t from)
{
	uint64_t end;
	int rc = del_extent(p, t, 'E', x->start);

	if (rc == 0)
		rc = read_end(p, t, &end);
	if (rc || from == x->end)
		return rc;
	return end == x->end ? write_end(p, t, from) : put_extent(p, t, 'F', from, x->end);
}

/* One more extent to fill. Called with the lock held. */
static int reserve(struct pool *p, struct err *e)
{
	MDB_txn *t;
	uint64_t start = 0, end = 0;
	int rc = mdb_txn_begin(p->env, NULL, 0, &t);

	if (rc)
		return mdb_error(rc, "begin", e);
	rc = find_free(p, t, &start, &end);
	if (rc == 0) {
		rc = del_extent(p, t, 'F', start);
	} else if (rc == MDB_NOTFOUND) {
		rc = read_end(p, t, &start);
		end = start + EXTENT_BLOCKS;
		if (rc == 0)
			rc = write_end(p, t, end);
	}
	if (rc == 0)
		rc = put_extent(p, t, 'E', start, end);
	if (rc) {
		mdb_txn_abort(t);
		return mdb_error(rc, "reserve space", e);
	}
	rc = mdb_txn_commit(t);
	if (rc)
		return mdb_error(rc, "reserve space", e);
	mem_grow(&p->owned, &p->cap, p->nowned);
	p->owned[p->nowned++] = (struct extent){start, start, end};
	return 0;
}

/* ---- opening ---- */

/* A cut-off data.mdb would end the process with SIGBUS at the first missing page. */
static int check_length(struct pool *p, struct err *e)
{
	MDB_envinfo info;
	MDB_stat st;
	struct stat file;
	uint64_t want;

	if (mdb_env_info(p->env, &info) || mdb_env_stat(p->env, &st))
		return mdb_error(MDB_INVALID, "read", e);
	if (sys_fstatat(p->dirfd, "db/data.mdb", &file, 0) < 0)
		return err_sys(e, "stat pool/db/data.mdb");
	want = ((uint64_t)info.me_last_pgno + 1) * st.ms_psize;
	if ((uint64_t)file.st_size >= want)
		return 0;
	err_set(e, ERR_CORRUPT,
		"pool/db/data.mdb: expected at least %" PRIu64 " bytes, found %" PRIu64, want,
		(uint64_t)file.st_size);
	return err_hint(e, "move the folder pool aside, then: svrun image verify --repair --all");
}

static int check_version(struct pool *p, MDB_txn *t, struct err *e)
{
	char name[] = "version", text[sizeof(version)];
	MDB_val k = {sizeof(name) - 1, name}, v = {sizeof(version) - 1, text};
	struct stat st;
	int rc;

	memcpy(text, version, sizeof(version));
	rc = mdb_get(t, p->meta, &k, &v);
	if (rc == 0 && v.mv_size == sizeof(version) - 1 &&
		memcmp(v.mv_data, version, v.mv_size) == 0)
		return 0;
	if (rc == 0)
		return err_set(e, ERR_CORRUPT, "pool/db: expected %s, found '%.*s'", version,
			(int)(v.mv_size < 32 ? v.mv_size : 32), (const char *)v.mv_data);
	if (rc != MDB_NOTFOUND)
		return mdb_error(rc, "read the version", e);
	if (sys_fstat(p->fd, &st) == 0 && st.st_size > 0) {
		err_set(e, ERR_CORRUPT, "pool/db: no records, but pool/data holds %jd bytes",
			(intmax_t)st.st_size);
		return err_hint(
			e, "move the folder pool aside, then: svrun image verify --repair --all");
	}
	v = (MDB_val){sizeof(version) - 1, text};
	rc = p->write ? mdb_put(t, p->meta, &k, &v, 0) : 0;
	return rc ? mdb_error(rc, "write the version", e) : 0;
}

static int open_tables(struct pool *p, struct err *e)
{
	unsigned flags = p->write ? MDB_CREATE : 0;
	MDB_txn *t;
	int rc = mdb_txn_begin(p->env, NULL, p->write ? 0 : MDB_RDONLY, &t);

	if (rc)
		return mdb_error(rc, "begin", e);
	rc = mdb_dbi_open(t, "chunks", flags, &p->chunks);
	if (rc == 0)
		rc = mdb_dbi_open(t, "notes", flags, &p->notes);
	if (rc == 0)
		rc = mdb_dbi_open(t, "meta", flags, &p->meta);
	if (rc) {
		mdb_txn_abort(t);
		return mdb_error(rc, "open tables", e);
	}
	if (check_version(p, t, e) < 0) {
		mdb_txn_abort(t);
		return -1;
	}
	rc = mdb_txn_commit(t);
	return rc ? mdb_error(rc, "open tables", e) : 0;
}

static int open_env(struct pool *p, struct err *e)
{
	enum { TABLES = 3, READERS = 1024 };
	char path[64];
	int rc = mdb_env_create(&p->env);

	if (rc)
		return mdb_error(rc, "create", e);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/db", p->dirfd);
	mdb_env_set_maxdbs(p->env, TABLES);
	mdb_env_set_maxreaders(p->env, READERS);
	mdb_env_set_mapsize(p->env, map_size);
	rc = mdb_env_open(p->env, path, MDB_NOTLS | (p->write ? 0 : MDB_RDONLY), 0600);
	if (rc)
		return mdb_error(rc, "open", e);
	mdb_reader_check(p->env, NULL); /* slots of dead readers would keep old pages alive */
	return check_length(p, e) < 0 ? -1 : open_tables(p, e);
}

static int open_files(struct pool *p, int rootfd, struct err *e)
{
	if (p->write && (sys_mkdirat(rootfd, "pool", 0700) < 0 && errno != EEXIST))
		return err_sys(e, "create pool");
	p->dirfd = sys_openat(rootfd, "pool", O_RDONLY | O_DIRECTORY, 0);
	if (p->dirfd < 0)
		return err_sys(e, "open pool");
	if (p->write && (sys_mkdirat(p->dirfd, "db", 0700) < 0 && errno != EEXIST))
		return err_sys(e, "create pool/db");
	p->fd = sys_openat(p->dirfd, "data", p->write ? O_RDWR | O_CREAT : O_RDONLY, 0600);
	return p->fd < 0 ? err_sys(e, "open pool/data") : 0;
}

struct pool *pool_open(int rootfd, bool write, struct err *e)
{
	struct pool *p = mem_alloc(sizeof(*p));

	*p = (struct pool){.fd = -1, .dirfd = -1, .write = write};
	pthread_mutex_init(&p->lock, NULL);
	if (open_files(p, rootfd, e) < 0 || open_env(p, e) < 0 || (write && take_back(p, e) < 0)) {
		if (write)
			sys_hint_space(e, rootfd, 0);
		pool_close(p);
		return NULL;
	}
	p->slots = mem_array(PENDING_SLOTS, sizeof(struct pending *));
	return p;
}

/* Best effort: what stays is taken back when the next process sees that we are gone. */
static void give_back(struct pool *p)
{
	MDB_txn *t;
	int rc = 0;

	if (!p->nowned || mdb_txn_begin(p->env, NULL, 0, &t))
		return;
	for (size_t i = p->nowned; i-- > 0 && rc == 0;) {
		const struct extent *x = &p->owned[i];

		if (x->next > x->start)
			punch(p, x->start, x->next);
		rc = release(p, t, x, x->start);
	}
	if (rc)
		mdb_txn_abort(t);
	else
		(void)!mdb_txn_commit(t);
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	if (p->write && p->env)
		give_back(p);
	if (p->env)
		mdb_env_close(p->env);
	sys_close_ref(&p->fd);
	sys_close_ref(&p->dirfd);
	pthread_mutex_destroy(&p->lock);
	free(p->slots);
	free(p->owned);
	arena_fini(&p->arena);
	free(p);
}

int pool_fd(const struct pool *p)
{
	return p->fd;
}

/* ---- looking up ---- */

static int get(
	struct pool *p, MDB_dbi table, const struct digest *d, void *out, size_t n, struct err *e)
{
	MDB_txn *t;
	struct digest key = *d;
	MDB_val k = {DIGEST_SIZE, key.b}, v;
	int rc = mdb_txn_begin(p->env, NULL, MDB_RDONLY, &t);

	if (rc)
		return mdb_error(rc, "begin", e);
	rc = mdb_get(t, table, &k, &v);
	if (rc == 0 && v.mv_size != n)
		rc = MDB_CORRUPTED;
	if (rc == 0)
		memcpy(out, v.mv_data, n);
	mdb_txn_abort(t);
	if (rc == MDB_NOTFOUND)
		return 0;
	return rc ? mdb_error(rc, "look up a chunk", e) : 1;
}

static int found(struct pool *p, struct chunk *c, const struct chunk_record *r, struct err *e)
{
	char hex[DIGEST_HEX + 1];

	(void)p;
	if (r->length != c->length || r->block > UINT32_MAX)
		return err_set(e, ERR_CORRUPT,
			"pool/db: chunk %s: expected %" PRIu32 " bytes, found a record of %" PRIu32
			" at block %" PRIu64,
			digest_hex(&c->digest, hex), c->length, r->length, r->block);
	c->block = (int64_t)r->block;
	return 1;
}

static struct pending **slot_of(struct pool *p, const struct digest *d)
{
	uint32_t h;

	memcpy(&h, d->b, sizeof(h)); /* a sha256 is as good a hash as any */
	return &p->slots[h % PENDING_SLOTS];
}

static struct pending *find_pending(struct pool *p, const struct digest *d)
{
	struct pending *x = *slot_of(p, d);

	while (x && !digest_eq(&x->digest, d))
		x = x->next;
	return x;
}

int pool_find(struct pool *p, struct chunk *c, struct err *e)
{
	struct chunk_record r;
	struct pending *x;
	int rc;

	pthread_mutex_lock(&p->lock);
	x = find_pending(p, &c->digest);
	if (x)
		r = (struct chunk_record){.block = (uint64_t)x->block, .length = x->length};
	pthread_mutex_unlock(&p->lock);
	rc = x ? 1 : get(p, p->chunks, &c->digest, &r, sizeof(r), e);
	return rc == 1 ? found(p, c, &r, e) : rc;
}

/* ---- adding ---- */

static int write_padded(
	struct pool *p, const void *data, uint32_t len, int64_t block, struct err *e)
{
	static const char zeros[POOL_BLOCK];
	off_t at = (off_t)block * POOL_BLOCK;
	size_t pad = (POOL_BLOCK - len % POOL_BLOCK) % POOL_BLOCK;
	struct iovec v[2] = {{(void *)(uintptr_t)data, len}, {(void *)(uintptr_t)zeros, pad}};

	if (pwritev(p->fd, v, pad ? 2 : 1, at) == (ssize_t)(len + pad))
		return 0;
	/* interrupted or short: once more, piece by piece, for the real error */
	if (sys_pwrite_all(p->fd, data, len, at) == 0 &&
		sys_pwrite_all(p->fd, zeros, pad, at + (off_t)len) == 0)
		return 0;
	err_sys(e, "write pool/data");
	return sys_hint_space(e, p->fd, len);
}

/* Take blocks and note the chunk. 1: another thread was faster, 0: ours to write. */
static int claim(struct pool *p, struct chunk *c, struct err *e)
{
	uint32_t blocks = (c->length + POOL_BLOCK - 1) / POOL_BLOCK;
	struct pending *x;
	int rc = 1;

	pthread_mutex_lock(&p->lock);
	x = find_pending(p, &c->digest);
	if (!x) {
		struct extent *last = p->nowned ? &p->owned[p->nowned - 1] : NULL;

		rc = 0;
		if (!last || last->end - last->next < blocks) {
			rc = reserve(p, e);
			last = rc < 0 ? NULL : &p->owned[p->nowned - 1];
		}
		if (last) {
			struct pending **slot = slot_of(p, &c->digest);

			x = arena_alloc(&p->arena, sizeof(*x));
			*x = (struct pending){*slot, c->digest, c->length, (int64_t)last->next};
			*slot = x;
			last->next += blocks;
			p->npending++;
		}
	}
	if (x)
		c->block = x->block;
	pthread_mutex_unlock(&p->lock);
	if (rc == 0 && c->block > (int64_t)UINT32_MAX - CHUNK_BLOCKS)
		return err_set(e, ERR_SYSTEM, "pool/data: full at 16 TiB");
	return rc;
}

int pool_put(struct pool *p, const void *data, uint32_t len, struct chunk *c, struct err *e)
{
	int rc;

	c->digest = digest_of(data, len);
	c->length = len;
	rc = pool_find(p, c, e);
	if (rc == 0)
		rc = claim(p, c, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return write_padded(p, data, len, c->block, e);
}

static int record_all(struct pool *p, MDB_txn *t)
{
	int rc = 0;

	for (size_t i = 0; i < PENDING_SLOTS; i++)
		for (struct pending *x = p->slots[i]; x; x = x->next) {
			struct chunk_record r = {.block = (uint64_t)x->block, .length = x->length};
			MDB_val k = {DIGEST_SIZE, x->digest.b}, v = {sizeof(r), &r};

			/* another process may have recorded the same chunk meanwhile: either place
			 * is right */
			rc = mdb_put(t, p->chunks, &k, &v, 0);
			if (rc)
				return rc;
		}
	for (size_t i = 0; i < p->nowned && rc == 0; i++) {
		const struct extent *x = &p->owned[i];

		rc = i + 1 < p->nowned ? release(p, t, x, x->next)
				       : del_extent(p, t, 'E', x->start);
		if (rc == 0 && i + 1 == p->nowned)
			rc = put_extent(p, t, 'E', x->next, x->end);
	}
	return rc;
}

int pool_commit(struct pool *p, struct err *e)
{
	MDB_txn *t;
	int rc;

	if (!p->npending)
		return 0;
	if (sys_fdatasync(p->fd) < 0) {
		err_sys(e, "sync pool/data");
		return sys_hint_space(e, p->fd, 0);
	}
	rc = mdb_txn_begin(p->env, NULL, 0, &t);
	if (rc)
		return mdb_error(rc, "begin", e);
	rc = record_all(p, t);
	if (rc)
		mdb_txn_abort(t);
	else
		rc = mdb_txn_commit(t);
	if (rc) {
		mdb_error(rc, "record chunks", e);
		return sys_hint_space(e, p->fd, 0);
	}
	p->owned[0] = p->owned[p->nowned - 1];
	p->owned[0].start = p->owned[0].next;
	p->nowned = p->owned[0].next < p->owned[0].end;
	memset(p->slots, 0, PENDING_SLOTS * sizeof(struct pending *));
	p->npending = 0;
	arena_fini(&p->arena);
	return 0;
}

/* ---- reading, checking, repairing ---- */

int pool_read(struct pool *p, const struct chunk *c, void *out, struct err *e)
{
	struct stat st;
	off_t at = (off_t)c->block * POOL_BLOCK;

	if (c->block < 0)
		return err_set(e, ERR_NOT_FOUND, "a chunk is not in the pool");
	if (sys_pread_all(p->fd, out, c->length, at) == 0)
		return 0;
	if (errno != ENODATA || sys_fstat(p->fd, &st) < 0)
		return err_sys(e, "read pool/data");
	return err_set(e, ERR_CORRUPT, "pool/data: expected at least %jd bytes, found %jd",
		(intmax_t)at + c->length, (intmax_t)st.st_size);
}

int pool_check(struct pool *p, const struct chunk *c, void *scratch, struct err *e)
{
	char want[DIGEST_TEXT + 1], got[DIGEST_TEXT + 1];
	struct digest d;

	if (pool_read(p, c, scratch, e) < 0)
		return -1;
	d = digest_of(scratch, c->length);
	if (digest_eq(&d, &c->digest))
		return 0;
	return err_set(e, ERR_CORRUPT, "pool/data: block %jd: expected %s, found %s",
		(intmax_t)c->block, digest_text(&c->digest, want), digest_text(&d, got));
}

int pool_repair(struct pool *p, const struct chunk *c, const void *data, struct err *e)
{
	struct digest d = digest_of(data, c->length);

	if (!digest_eq(&d, &c->digest) || c->block < 0)
		return err_set(e, ERR_CORRUPT, "the data to repair a chunk with are not its own");
	if (write_padded(p, data, c->length, c->block, e) < 0)
		return -1;
	return sys_fdatasync(p->fd) < 0 ? err_sys(e, "sync pool/data") : 0;
}

/* ---- notes ---- */

int pool_note_put(struct pool *p, const struct digest *key, const char *val, struct err *e)
{
	MDB_txn *t;
	struct digest d = *key;
	auto_free char *text = mem_strdup(val);
	MDB_val k = {DIGEST_SIZE, d.b}, v = {strlen(val), text};
	int rc = mdb_txn_begin(p->env, NULL, 0, &t);

	if (rc)
		return mdb_error(rc, "begin", e);
	rc = mdb_put(t, p->notes, &k, &v, 0);
	if (rc)
		mdb_txn_abort(t);
	else
		rc = mdb_txn_commit(t);
	if (rc) {
		mdb_error(rc, "write a note", e);
		return sys_hint_space(e, p->fd, 0);
	}
	return 0;
}

int pool_note_get(struct pool *p, const struct digest *key, char **val, struct err *e)
{
	enum { NOTE_MAX = 1 << 16 };
	MDB_txn *t;
	struct digest d = *key;
	MDB_val k = {DIGEST_SIZE, d.b}, v;
	int rc = mdb_txn_begin(p->env, NULL, MDB_RDONLY, &t);

	if (rc)
		return mdb_error(rc, "begin", e);
	rc = mdb_get(t, p->notes, &k, &v);
	if (rc == 0 && v.mv_size > NOTE_MAX)
		rc = MDB_CORRUPTED;
	if (rc == 0) {
		*val = mem_alloc(v.mv_size + 1);
		memcpy(*val, v.mv_data, v.mv_size);
	}
	mdb_txn_abort(t);
	if (rc == MDB_NOTFOUND)
		return 0;
	return rc ? mdb_error(rc, "read a note", e) : 1;
}
