#include "images/pool-unsynced.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/sys.h"
#include "images/pool-private.h"

enum {
	BOOT_ID = 36,
	MARK_MAX = 64,
	RANGE_SIZE = 8,
};
static const char mark_name[] = "unsynced";

/* ---- the mark ---- */

static int read_boot_id(char out[BOOT_ID + 1], struct err *e)
{
	auto_fd int fd = sys_open("/proc/sys/kernel/random/boot_id", O_RDONLY, 0);

	out[BOOT_ID] = '\0';
	if (fd < 0 || sys_read_all(fd, out, BOOT_ID) < 0)
		return err_sys(e, "read the boot id");
	return 0;
}

/* Has the file fd this boot's id? 1, 0, -1. */
static int is_ours(int fd, const char boot[BOOT_ID + 1], struct err *e)
{
	char text[MARK_MAX];
	ssize_t n = sys_pread(fd, text, sizeof(text), 0);

	if (n < 0)
		return err_sys(e, "read pool/%s", mark_name);
	return n == BOOT_ID + 1 && memcmp(text, boot, BOOT_ID) == 0;
}

int pool_mark_doubtful(int dir, const char *name, struct err *e)
{
	char boot[BOOT_ID + 1];
	auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_NOFOLLOW, 0);
	int ours;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open pool/%s", mark_name);
	if (read_boot_id(boot, e) < 0)
		return -1;
	ours = is_ours(fd, boot, e);
	return ours < 0 ? -1 : !ours;
}

int pool_doubtful(int rootfd, struct err *e)
{
	return pool_mark_doubtful(rootfd, "pool/unsynced", e);
}

static bool known(const struct pool_mark *m, const struct stat *st)
{
	return m->ino == st->st_ino && m->ctime.tv_sec == st->st_ctim.tv_sec &&
	       m->ctime.tv_nsec == st->st_ctim.tv_nsec;
}

int pool_mark_set(struct pool_db *db, int pooldir, struct pool_mark *m, struct err *e)
{
	char boot[BOOT_ID + 2];
	struct stat st;

	if (sys_fstatat(pooldir, mark_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && known(m, &st))
		return 0;
	if (read_boot_id(boot, e) < 0)
		return -1;
	boot[BOOT_ID] = '\n';

	auto_fd int fd = sys_openat(pooldir, mark_name, O_RDONLY | O_NOFOLLOW, 0);

	if (fd < 0 && errno != ENOENT)
		return err_sys(e, "open %s/%s", db->dir, mark_name);
	/* One that says "doubtful" stays: it covers ours, too. */
	if (fd < 0 && file_write(pooldir, mark_name, boot, BOOT_ID + 1, 0600, e) < 0)
		return err_ctx(e, "%s", db->dir);
	/* One that another process wrote may not be on disk yet: it may just have been killed. */
	if ((fd >= 0 && sys_fsync(fd) < 0) || sys_fsync(pooldir) < 0)
		return err_sys(e, "sync %s/%s", db->dir, mark_name);
	if (sys_fstatat(pooldir, mark_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "stat %s/%s", db->dir, mark_name);
	*m = (struct pool_mark){st.st_ino, st.st_ctim};
	return 0;
}

int pool_mark_remove(struct pool_db *db, int pooldir, struct err *e)
{
	if (sys_unlinkat(pooldir, mark_name, 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove %s/%s", db->dir, mark_name);
	return 0;
}

void pool_mark_fail(int pooldir)
{
	static const char text[] = "sync failed\n";
	struct err e = {0};

	if (faccessat(pooldir, mark_name, F_OK, 0) < 0 && errno == ENOENT)
		return; /* nothing is recorded that was not synced before */
	if (file_write(pooldir, mark_name, text, sizeof(text) - 1, 0600, &e) < 0)
		warn("mark the pool as doubtful: %s", e.text);
}

/* ---- the ranges ---- */

static int by_block(const void *a, const void *b)
{
	const struct pending_chunk *const *x = a, *const *y = b;

	return ((*x)->block > (*y)->block) - ((*x)->block < (*y)->block);
}

static int put_range(struct pool_db *db, MDB_txn *t, const struct pool_range *r, struct err *e)
{
	uint8_t key[8], value[RANGE_SIZE];

	if (r->blocks == 0)
		return 0;
	pool_key_encode(key, r->start);
	pool_u64_encode(value, r->blocks);
	return pool_db_put(db, t, db->unsynced, key, sizeof(key), value, sizeof(value), e);
}

int pool_unsynced_add(struct pool_db *db, MDB_txn *t, struct pending_chunk *const *v, struct err *e)
{
	auto_free const struct pending_chunk **sorted = NULL;
	struct pool_range r = {0};
	size_t n = 0;

	while (v[n])
		n++;
	if (n == 0)
		return 0;
	sorted = mem_dup(v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), by_block);
	for (size_t i = 0; i < n; i++) {
		uint64_t start = (uint64_t)sorted[i]->block;

		if (r.start + r.blocks != start) {
			if (put_range(db, t, &r, e) < 0)
				return -1;
			r = (struct pool_range){.start = start};
		}
		r.blocks += pool_blocks_of(sorted[i]->length);
	}
	return put_range(db, t, &r, e);
}

int pool_unsynced_list(
	struct pool_db *db, MDB_txn *t, struct pool_range **v, size_t *n, struct err *e)
{
	size_t cap = 0;
	MDB_cursor *c;
	MDB_val key, value;
	int rc = mdb_cursor_open(t, db->unsynced, &c);

	*v = NULL;
	*n = 0;
	if (rc)
		return pool_db_error(db, rc, "read the unsynced ranges", e);
	while ((rc = mdb_cursor_get(c, &key, &value, MDB_NEXT)) == 0) {
		struct pool_range r;

		if (key.mv_size != 8 || value.mv_size != RANGE_SIZE)
			break;
		r.start = pool_key_decode(key.mv_data);
		r.blocks = pool_u64_decode(value.mv_data);
		if (r.start < 1 || r.start > UINT32_MAX || r.blocks < 1 || r.blocks > UINT32_MAX)
			break;
		mem_grow(v, &cap, *n);
		(*v)[(*n)++] = r;
	}
	mdb_cursor_close(c);
	if (rc == MDB_NOTFOUND)
		return 0;
	free(*v);
	*v = NULL;
	*n = 0;
	if (rc)
		return pool_db_error(db, rc, "read the unsynced ranges", e);
	err_set(e, ERR_CORRUPT, "%s: an impossible unsynced range", db->name);
	return pool_db_hint(db, e);
}

int pool_unsynced_clear(struct pool_db *db, int pooldir, MDB_txn *t, const struct pool_range *v,
	size_t n, struct err *e)
{
	MDB_stat st;
	int rc = pool_mark_doubtful(pooldir, mark_name, e);

	if (rc != 0) /* another process could not sync: pool_recover() has to look at all of it */
		return rc < 0 ? -1 : 0;
	for (size_t i = 0; i < n && (rc == 0 || rc == MDB_NOTFOUND); i++) {
		uint8_t key[8];
		MDB_val k = {sizeof(key), key};

		pool_key_encode(key, v[i].start);
		rc = mdb_del(t, db->unsynced, &k, NULL); /* NOTFOUND: another process was faster */
	}
	if (rc == 0 || rc == MDB_NOTFOUND)
		rc = mdb_stat(t, db->unsynced, &st);
	if (rc)
		return pool_db_error(db, rc, "clear the unsynced ranges", e);
	/* Before the commit: all that is in the table now was synced, whether or not this
	 * transaction makes it. */
	return st.ms_entries ? 0 : pool_mark_remove(db, pooldir, e);
}
