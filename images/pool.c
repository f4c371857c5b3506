#include "images/pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>

#include "base/file.h"
#include "base/sys.h"
#include "images/pool-private.h"

static const char data_magic[16] = "svrun-pool/1\n";

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
	return file_publish(p->dir, fd, tmp, "data", false, e);
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

static int check_length(struct pool *p, bool recover, struct err *e)
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
	/* The end of what was not synced is lost: reading zeros, pool_recover() forgets it. */
	if (recover)
		return sys_ftruncate(p->fd, (off_t)(s.recorded * POOL_BLOCK)) < 0
			       ? err_sys(e, "extend %s/data", p->db.dir)
			       : 0;
	err_set(e, ERR_CORRUPT, "%s/data: expected at least %" PRIu64 " bytes, found %jd",
		p->db.dir, s.recorded * POOL_BLOCK, (intmax_t)st.st_size);
	return pool_db_hint(&p->db, e);
}

static int open_db(struct pool *p, bool recover, struct err *e)
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
			"move the store's folder pool aside, then run: svrun image fsck --repair");
	}
	if (pool_db_open(&p->db, p->dir, p->write, header + sizeof(data_magic),
		    st.st_size == POOL_BLOCK, e) < 0)
		return -1;
	return check_length(p, recover, e);
}

/* Locks, in this order: ROOT/pool/users, shared by all who write, alone for who sweeps or
 * recovers; ROOT/pool/sessions, held while files may be made, so that nobody looks at what another
 * process is just making. Whether there is something to recover can only be known for sure with
 * both. */
static int lock_files(struct pool *p, bool alone, bool *recover, int *turn, struct err *e)
{
	bool want = alone;

	p->users = sys_openat(p->dir, "users", O_RDWR | O_CREAT, 0600);
	*turn = sys_openat(p->dir, "sessions", O_RDWR | O_CREAT, 0600);
	if (p->users < 0 || *turn < 0)
		return err_sys(e, "open the locks of the pool");
	for (;;) {
		int doubtful;

		if (sys_flock(p->users, want ? LOCK_EX : LOCK_SH) < 0)
			return err_sys(e, "lock pool/users");
		if (sys_flock(*turn, LOCK_EX) < 0)
			return err_sys(e, "lock pool/sessions");
		doubtful = pool_mark_doubtful(p->dir, "unsynced", e);
		if (doubtful < 0)
			return -1;
		*recover = doubtful;
		if (!doubtful || want)
			return 0;
		want = true;
		if (sys_flock(*turn, LOCK_UN) < 0)
			return err_sys(e, "unlock pool/sessions");
	}
}

static int open_to_write(struct pool *p, int rootfd, bool alone, struct err *e)
{
	bool recover = false;
	auto_fd int turn = -1;

	if (open_folder(p, rootfd, e) < 0 || lock_files(p, alone, &recover, &turn, e) < 0 ||
		open_data(p, e) < 0 || open_db(p, recover, e) < 0 ||
		pool_space_init(&p->space, &p->db, p->dir, p->fd, e) < 0 ||
		pool_space_sweep(&p->space, e) < 0 || (recover && pool_recover(p, rootfd, e) < 0))
		return -1;
	if (!alone && sys_flock(p->users, LOCK_SH) < 0)
		return err_sys(e, "lock pool/users");
	return 0;
}

static int put_right(int rootfd, struct err *e)
{
	struct pool *p = pool_open(rootfd, true, e);

	pool_close(p);
	return p ? 0 : -1;
}

/* Who only reads must not see what a crash left: the records are put right first. */
static int open_to_read(struct pool *p, int rootfd, struct err *e)
{
	int doubtful = pool_doubtful(rootfd, e);

	if (doubtful < 0 || (doubtful && put_right(rootfd, e) < 0))
		return -1;
	return open_folder(p, rootfd, e) < 0 || open_data(p, e) < 0 ? -1 : open_db(p, false, e);
}

static struct pool *open_any(int rootfd, bool write, bool alone, struct err *e)
{
	struct pool *p = mem_alloc(sizeof(*p));

	*p = (struct pool){.dir = -1, .fd = -1, .users = -1, .write = write};
	pthread_mutex_init(&p->writing, NULL);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->settled, NULL);
	pending_init(&p->pending);
	if ((write ? open_to_write(p, rootfd, alone, e) : open_to_read(p, rootfd, e)) == 0)
		return p;
	if (write)
		sys_hint_space(e, rootfd, 0);
	pool_close(p);
	return NULL;
}

struct pool *pool_open(int rootfd, bool write, struct err *e)
{
	return open_any(rootfd, write, false, e);
}

struct pool *pool_open_alone(int rootfd, struct err *e)
{
	return open_any(rootfd, true, true, e);
}

int pool_hold(int rootfd, struct err *e)
{
	auto_fd int users = -1;
	int doubtful;

	if (sys_mkdirat(rootfd, "pool", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create pool");
	users = sys_openat(rootfd, "pool/users", O_RDWR | O_CREAT, 0600);
	if (users < 0)
		return err_sys(e, "open pool/users");
	for (;;) {
		if (sys_flock(users, LOCK_SH) < 0)
			return err_sys(e, "lock pool/users");
		doubtful = pool_doubtful(rootfd, e);
		if (doubtful <= 0)
			return doubtful < 0 ? -1 : steal_fd(&users);
		/* who opens the pool while it is held would wait for itself to recover it */
		if (sys_flock(users, LOCK_UN) < 0)
			return err_sys(e, "unlock pool/users");
		if (put_right(rootfd, e) < 0)
			return -1;
	}
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
	pthread_mutex_destroy(&p->writing);
	sys_close_ref(&p->fd);
	sys_close_ref(&p->users);
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

/* Is c recorded where it says, as a chunk or as a twin? 1, 0, -1. */
static int is_recorded(struct pool *p, const struct chunk *c, struct err *e)
{
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	MDB_val k, v;
	uint8_t key[8];
	struct chunk twin;
	int64_t block = CHUNK_NO_BLOCK;
	int rc;

	if (!t)
		return -1;
	rc = pool_record_find(p, t, c, &block, e);
	if (rc >= 0 && block != c->block) {
		pool_key_encode(key, (uint64_t)c->block);
		k = (MDB_val){sizeof(key), key};
		rc = pool_db_get(&p->db, t, p->db.twins, key, sizeof(key), &v, e);
		if (rc > 0 && pool_twin_decode(p, &k, &v, &twin, e) < 0)
			rc = -1;
		if (rc > 0)
			rc = digest_eq(&twin.digest, &c->digest) && twin.length == c->length;
	}
	mdb_txn_abort(t);
	return rc;
}

int pool_repair(struct pool *p, const struct chunk *c, const void *data, struct err *e)
{
	struct digest d = digest_of(data, c->length);
	int rc;

	assert(p->write);
	if (!digest_eq(&d, &c->digest))
		return err_set(e, ERR_CORRUPT, "the data to repair a chunk with are not its own");
	rc = is_recorded(p, c, e);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(e, ERR_NOT_FOUND,
			"a chunk to repair is not recorded at block %" PRId64, c->block);
	if (pool_write_chunk(p, data, c->length, c->block, e) < 0)
		return -1;
	return sys_fdatasync(p->fd) < 0 ? err_sys(e, "sync %s/data", p->db.dir) : 0;
}
