#include "images/pool-db.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "base/sys.h"
#include "images/lmdb-check.h"

enum {
	TABLES = 7,
	READERS = 1024,
	LOCK_BYTES = READERS * 64 + 4096, /* LMDB has a cache line for each reader, and a head */
	STATE_SIZE = 48
};
static const size_t map_size = (size_t)64 << 30; /* addresses, not memory: 500 million chunks */
static const char state_key[] = "state", state_magic[] = "svrunpl1";

/* ---- numbers ---- */

void pool_key_encode(uint8_t key[8], uint64_t v)
{
	v = htobe64(v);
	memcpy(key, &v, sizeof(v));
}

uint64_t pool_key_decode(const void *key)
{
	uint64_t v;

	memcpy(&v, key, sizeof(v));
	return be64toh(v);
}

void pool_u64_encode(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

uint64_t pool_u64_decode(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

void pool_u32_encode(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

uint32_t pool_u32_decode(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

/* ---- errors ---- */

int pool_db_hint(const struct pool_db *db, struct err *e)
{
	return err_hint(e,
		"move %s aside, then run: svrun image fsck --repair (it takes the data from the "
		"images' layers, or from where they came)",
		db->dir);
}

/* LMDB takes a short write for EIO: where no room is left, that is what it was. */
static int system_error(const struct pool_db *db, int rc, const char *what, struct err *e)
{
	struct statvfs fs;
	auto_fd int dir = sys_open(db->dir, O_RDONLY | O_DIRECTORY, 0);

	if (rc == EIO && dir >= 0 && fstatvfs(dir, &fs) == 0 && fs.f_bavail == 0)
		rc = ENOSPC;
	errno = rc;
	err_sys(e, "%s: %s", db->name, what);
	errno = rc;
	return sys_hint_space(e, dir, 0);
}

int pool_db_error(const struct pool_db *db, int rc, const char *what, struct err *e)
{
	if (rc == MDB_MAP_FULL || rc == MDB_DBS_FULL || rc == MDB_READERS_FULL ||
		rc == MDB_TXN_FULL)
		return err_set(e, ERR_SYSTEM, "%s: %s: %s", db->name, what, mdb_strerror(rc));
	if (rc < 0) {
		err_set(e, ERR_CORRUPT, "%s: %s: %s", db->name, what, mdb_strerror(rc));
		return pool_db_hint(db, e);
	}
	return system_error(db, rc, what, e);
}

/* ---- transactions ---- */

static MDB_txn *begin(struct pool_db *db, unsigned flags, struct err *e)
{
	MDB_txn *t;
	int rc = mdb_txn_begin(db->env, NULL, flags, &t);

	if (rc == 0)
		return t;
	pool_db_error(db, rc, "begin a transaction", e);
	return NULL;
}

MDB_txn *pool_db_begin(struct pool_db *db, bool write, struct err *e)
{
	return begin(db, write ? 0 : MDB_RDONLY, e);
}

MDB_txn *pool_db_begin_lazy(struct pool_db *db, struct err *e)
{
	return begin(db, MDB_NOMETASYNC, e);
}

int pool_db_commit(struct pool_db *db, MDB_txn *t, struct err *e)
{
	int rc = mdb_txn_commit(t);

	return rc ? pool_db_error(db, rc, "commit", e) : 0;
}

static MDB_val value(const void *p, size_t n)
{
	return (MDB_val){n, (void *)(uintptr_t)p}; /* LMDB only reads it */
}

int pool_db_get(struct pool_db *db, MDB_txn *t, MDB_dbi table, const void *key, size_t n,
	MDB_val *v, struct err *e)
{
	MDB_val k = value(key, n);
	int rc = mdb_get(t, table, &k, v);

	if (rc == MDB_NOTFOUND)
		return 0;
	return rc ? pool_db_error(db, rc, "look up", e) : 1;
}

int pool_db_put(struct pool_db *db, MDB_txn *t, MDB_dbi table, const void *key, size_t n,
	const void *val, size_t len, struct err *e)
{
	MDB_val k = value(key, n), v = value(val, len);
	int rc = mdb_put(t, table, &k, &v, 0);

	return rc ? pool_db_error(db, rc, "record", e) : 0;
}

/* ---- the pool's own record ---- */

int pool_state_get(struct pool_db *db, MDB_txn *t, struct pool_state *s, struct err *e)
{
	MDB_val v;
	const uint8_t *p;
	int rc = pool_db_get(db, t, db->state, state_key, sizeof(state_key) - 1, &v, e);

	if (rc < 0)
		return -1;
	p = v.mv_data;
	if (rc == 0 || v.mv_size != STATE_SIZE || memcmp(p, state_magic, 8) != 0) {
		err_set(e, ERR_CORRUPT, "%s: not the records of a pool of version %s", db->name,
			state_magic);
		return pool_db_hint(db, e);
	}
	memcpy(s->id, p + 8, POOL_IDENTITY);
	s->end = pool_u64_decode(p + 24);
	s->recorded = pool_u64_decode(p + 32);
	s->session = pool_u64_decode(p + 40);
	return 0;
}

int pool_state_put(struct pool_db *db, MDB_txn *t, const struct pool_state *s, struct err *e)
{
	uint8_t p[STATE_SIZE];

	memcpy(p, state_magic, 8);
	memcpy(p + 8, s->id, POOL_IDENTITY);
	pool_u64_encode(p + 24, s->end);
	pool_u64_encode(p + 32, s->recorded);
	pool_u64_encode(p + 40, s->session);
	return pool_db_put(db, t, db->state, state_key, sizeof(state_key) - 1, p, sizeof(p), e);
}

/* ---- opening ---- */

/* Before anything but the two first pages is looked at by LMDB. */
static int check_pages(struct pool_db *db, int pooldir, struct err *e)
{
	auto_fd int fd = sys_openat(pooldir, "db/data.mdb", O_RDONLY, 0);
	MDB_txn *t = fd < 0 ? NULL : pool_db_begin(db, false, e);
	MDB_stat st;
	int rc;

	if (fd < 0)
		return err_sys(e, "open %s", db->name);
	if (!t)
		return -1;
	rc = mdb_env_stat(db->env, &st);
	if (rc)
		pool_db_error(db, rc, "stat", e);
	else
		rc = lmdb_check(fd, db->name, st.ms_psize, mdb_txn_id(t), e);
	mdb_txn_abort(t);
	return rc ? pool_db_hint(db, e) : 0;
}

static int open_tables(struct pool_db *db, MDB_txn *t, bool create)
{
	const struct {
		const char *name;
		MDB_dbi *table;
	} tables[] = {{"state", &db->state}, {"chunks", &db->chunks}, {"twins", &db->twins},
		{"extents", &db->extents}, {"free", &db->free}, {"notes", &db->notes}};
	int rc = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && rc == 0; i++)
		rc = mdb_dbi_open(t, tables[i].name, create ? MDB_CREATE : 0, tables[i].table);
	return rc;
}

static int no_records(const struct pool_db *db, struct err *e)
{
	err_set(e, ERR_CORRUPT, "%s: expected the records of %s/data, found none", db->name,
		db->dir);
	return pool_db_hint(db, e);
}

static int use_tables(struct pool_db *db, MDB_txn *t, bool write, const uint8_t id[POOL_IDENTITY],
	bool empty, struct err *e)
{
	struct pool_state s = {.end = 1, .recorded = 1}; /* block 0 is the data file's header */
	int rc = open_tables(db, t, false);

	if (rc == MDB_NOTFOUND && !empty) {
		err_set(e, ERR_CORRUPT, "%s: expected the records of %s/data, found none", db->name,
			db->dir);
		return pool_db_hint(db, e);
	}
	if (rc == MDB_NOTFOUND && !write)
		return err_set(e, ERR_NOT_FOUND, "%s: no records yet", db->name);
	if (rc == MDB_NOTFOUND) {
		rc = open_tables(db, t, true);
		memcpy(s.id, id, POOL_IDENTITY);
		if (rc == 0 && pool_state_put(db, t, &s, e) < 0)
			return -1;
	}
	if (rc == 0 && write) /* pools that were made before there was this table get it now */
		rc = mdb_dbi_open(t, "unsynced", MDB_CREATE, &db->unsynced);
	if (rc)
		return pool_db_error(db, rc, "open tables", e);
	if (pool_state_get(db, t, &s, e) < 0)
		return -1;
	if (memcmp(s.id, id, POOL_IDENTITY) == 0)
		return 0;
	err_set(e, ERR_CORRUPT, "%s: the records of another data file than %s/data", db->name,
		db->dir);
	return pool_db_hint(db, e);
}

/* Before LMDB looks at the file at all. */
static int check_head(struct pool_db *db, int pooldir, bool remake, struct err *e)
{
	struct err fault = {0};
	auto_fd int fd = sys_openat(pooldir, "db/data.mdb", O_RDONLY, 0);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s", db->name);
	if (lmdb_check_head(fd, db->name, &fault) == 0)
		return 0;
	if (remake && fault.kind == ERR_CORRUPT) {
		/* A kill or a full disk left the file half made: of an empty pool nothing is lost.
		 */
		if (sys_unlinkat(pooldir, "db/data.mdb", 0) == 0)
			return 0;
		return err_sys(e, "remove %s", db->name);
	}
	if (e)
		*e = fault;
	return pool_db_hint(db, e);
}

/* LMDB maps its lock file, which is sparse: with no room left, touching it would be a SIGBUS. */
static int reserve_lock(const struct pool_db *db, int pooldir, struct err *e)
{
	auto_fd int fd = sys_openat(pooldir, "db/lock.mdb", O_RDWR | O_CREAT, 0600);

	if (fd < 0 && errno != ENOSPC && errno != EDQUOT)
		return 0; /* read-only, say: LMDB knows what to do */
	if (fd >= 0 && (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOCK_BYTES) == 0 ||
			       (errno != ENOSPC && errno != EDQUOT)))
		return 0;
	return system_error(db, errno, "reserve the lock file", e);
}

static int open_env(struct pool_db *db, int pooldir, bool write, bool empty, struct err *e)
{
	char path[64];
	int rc = mdb_env_create(&db->env);

	if (rc)
		return pool_db_error(db, rc, "create", e);
	mdb_env_set_maxdbs(db->env, TABLES);
	mdb_env_set_maxreaders(db->env, READERS);
	mdb_env_set_mapsize(db->env, map_size);
	if (reserve_lock(db, pooldir, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/db", pooldir);
	rc = mdb_env_open(db->env, path, MDB_NOTLS | (write ? 0 : MDB_RDONLY), 0600);
	if (rc == ENOENT && !empty)
		return no_records(db, e);
	if (rc)
		return pool_db_error(db, rc, "open", e);
	mdb_reader_check(db->env, NULL); /* slots of dead readers would keep old pages alive */
	return 0;
}

int pool_db_open(struct pool_db *db, int pooldir, bool write, const uint8_t id[POOL_IDENTITY],
	bool empty, struct err *e)
{
	char proc[64], dir[PATH_MAX];
	ssize_t n;
	MDB_txn *t;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", pooldir);
	n = readlink(proc, dir, sizeof(dir) - 1);
	*db = (struct pool_db){.dir = mem_printf("%.*s", n < 0 ? 4 : (int)n, n < 0 ? "pool" : dir)};
	db->name = mem_printf("%s/db/data.mdb", db->dir);
	if (write && sys_mkdirat(pooldir, "db", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s/db", db->dir);
	if (check_head(db, pooldir, write && empty, e) < 0 ||
		open_env(db, pooldir, write, empty, e) < 0 || check_pages(db, pooldir, e) < 0)
		return -1;
	t = pool_db_begin(db, write, e);
	if (!t)
		return -1;
	if (use_tables(db, t, write, id, empty, e) < 0) {
		mdb_txn_abort(t);
		return -1;
	}
	return pool_db_commit(db, t, e);
}

void pool_db_close(struct pool_db *db)
{
	if (db->env)
		mdb_env_close(db->env);
	free(db->dir);
	free(db->name);
	*db = (struct pool_db){0};
}
