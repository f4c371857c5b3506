/* Is an LMDB file sound? LMDB trusts what it maps: a cut-off file ends the process with SIGBUS, an
 * altered page with worse. These functions look at every page that a snapshot can reach, with
 * pread(), before LMDB is let at it. Linear in the file's size: about 20 ms for a million records.
 *
 * Knows what the pool uses: plain tables with unique keys. Source: liblmdb 0.9 mdb.c, "Internals"
 * (MDB_meta, MDB_db, MDB_page, MDB_node). */
#ifndef IMAGES_LMDB_CHECK_H
#define IMAGES_LMDB_CHECK_H

#include <stdint.h>

#include "base/err.h"

/* The two meta pages, which mdb_env_open() works with: before it is called. An empty file is fine:
 * LMDB makes a new one of it. Errors: CORRUPT, SYSTEM. */
int lmdb_check_head(int fd, const char *name, struct err *e) must_check;

/* The rest. fd: data.mdb, called `name` in errors; page_size: as mdb_env_stat() says; snapshot:
 * mdb_txn_id() of a read transaction that the caller holds, so that its pages are not reused
 * meanwhile. Errors: CORRUPT (page and what is wrong with it), SYSTEM. */
int lmdb_check(
	int fd, const char *name, uint32_t page_size, uint64_t snapshot, struct err *e) must_check;

#endif
