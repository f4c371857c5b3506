/* Whatever the bytes of data.mdb: what lmdb_check_head() and lmdb_check() let pass, LMDB can read
 * to the last entry and write to, without a crash. The corpus is a small pool's file
 * (tests/data/fuzz/lmdb).
 *
 *   make fuzz */
#include "images/lmdb-check.h"

#include <assert.h>
#include <lmdb.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sys.h"
#include "images/digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { NAMES_MAX = 64, PUTS = 100 };

/* Touch every byte of every entry of a table. */
static unsigned read_table(MDB_txn *t, MDB_dbi table)
{
	MDB_cursor *c;
	MDB_val k, v;
	unsigned sum = 0;

	if (mdb_cursor_open(t, table, &c))
		return 0;
	for (int rc = mdb_cursor_get(c, &k, &v, MDB_FIRST); rc == 0;
		rc = mdb_cursor_get(c, &k, &v, MDB_NEXT)) {
		for (size_t i = 0; i < k.mv_size; i++)
			sum += ((const uint8_t *)k.mv_data)[i];
		for (size_t i = 0; i < v.mv_size; i++)
			sum += ((const uint8_t *)v.mv_data)[i];
	}
	mdb_cursor_close(c);
	return sum;
}

static void write_table(MDB_txn *t, MDB_dbi table)
{
	for (unsigned i = 0; i < PUTS; i++) {
		struct digest d = digest_of(&i, sizeof(i));
		MDB_val k = {DIGEST_SIZE, d.b}, v = {16, d.b};

		if (mdb_put(t, table, &k, &v, 0))
			return;
	}
}

/* The names of the tables, read before anything is changed. */
static size_t list_names(MDB_txn *t, MDB_dbi main_table, char names[NAMES_MAX][512])
{
	MDB_cursor *c;
	MDB_val k, v;
	size_t n = 0;

	if (mdb_cursor_open(t, main_table, &c))
		return 0;
	for (int rc = mdb_cursor_get(c, &k, &v, MDB_FIRST); rc == 0 && n < NAMES_MAX;
		rc = mdb_cursor_get(c, &k, &v, MDB_NEXT)) {
		assert(k.mv_size < 512);
		memcpy(names[n], k.mv_data, k.mv_size);
		names[n++][k.mv_size] = '\0';
	}
	mdb_cursor_close(c);
	return n;
}

static void use(MDB_env *env)
{
	static char names[NAMES_MAX][512];
	static volatile unsigned sink __attribute__((unused));
	MDB_txn *t;
	MDB_dbi table;
	size_t n;

	if (mdb_txn_begin(env, NULL, 0, &t))
		return;
	if (mdb_dbi_open(t, NULL, 0, &table) == 0) {
		n = list_names(t, table, names);
		for (size_t i = 0; i < n; i++)
			if (mdb_dbi_open(t, names[i], 0, &table) == 0) {
				sink += read_table(t, table);
				write_table(t, table);
				sink += read_table(t, table);
			}
	}
	(void)!mdb_txn_commit(t);
}

static void check_and_use(MDB_env *env, int fd)
{
	struct err e = {0};
	MDB_txn *t;
	MDB_stat st;
	int rc;

	if (mdb_txn_begin(env, NULL, MDB_RDONLY, &t))
		return;
	rc = mdb_env_stat(env, &st);
	assert(rc == 0);
	rc = lmdb_check(fd, "data.mdb", st.ms_psize, mdb_txn_id(t), &e);
	mdb_txn_abort(t);
	if (rc == 0)
		use(env);
	else
		assert(e.kind == ERR_CORRUPT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char path[64];
	MDB_env *env;
	int fd = memfd_create("data.mdb", MFD_CLOEXEC);

	assert(fd >= 0 && sys_write_all(fd, data, n) == 0 && mdb_env_create(&env) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	mdb_env_set_maxdbs(env, NAMES_MAX);
	mdb_env_set_mapsize(env, 64 << 20);
	if (n > 0 && lmdb_check_head(fd, "data.mdb", NULL) == 0 &&
		mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0600) == 0)
		check_and_use(env, fd);
	mdb_env_close(env);
	close(fd);
	return 0;
}
