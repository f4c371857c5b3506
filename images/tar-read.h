/* Reading a tar as it streams by: one member after the other, file data in spans that are not
 * copied. ustar, PAX, GNU long names and numbers, star, v7.
 *
 * Attributes mean what they mean to the engines that made most images (Go's archive/tar): links,
 * folders and devices have no data whatever their size field says; global extended headers (type g)
 * are checked and have no effect; of two extended headers for one member the last counts. Names are
 * bytes and are handed on as they stand: tree_clean_path() is the caller's.
 * Source: POSIX pax(1); GNU tar manual, "Basic Tar Format"; formats.md 3.3. */
#ifndef IMAGES_TAR_READ_H
#define IMAGES_TAR_READ_H

#include "images/source.h"
#include "images/tree.h"

enum {
	TAR_EXTENDED_MAX = 1 << 20,    /* bytes of one extended header, or long name */
	TAR_RAW_MAX = 4 << 20,         /* of all headers of one member */
	TAR_RECORDS_XATTRS_MAX = 1024, /* xattr records of one member */
};

/* Valid until the next tar_reader_next(). */
struct tar_member {
	char type;          /* '0' to '6' as POSIX has them; '0' is also for v7's NUL and for '7'.
			     * Others ('A', ...) as they stand: they have data as '0' has */
	const char *name;   /* not empty */
	const char *target; /* of '1' and '2'; else "" */
	uint32_t mode;      /* 07777 */
	uint32_t uid, gid;
	int64_t mtime;              /* fractions are cut off downwards */
	uint32_t major, minor;      /* '3' and '4' */
	uint64_t size;              /* of its data in the tar */
	const struct xattr *xattrs; /* of SCHILY.xattr records, sorted by name, each once */
	uint32_t nxattrs;
	/* Where it lies in the tar: raw_at <= header_at < data_at, and data_at + size. */
	uint64_t raw_at;    /* end of the data before: here its padding begins */
	uint64_t header_at; /* the first header that belongs to it, extended ones included */
	uint64_t data_at;   /* end of its headers */
	const void *raw;    /* the bytes from raw_at to data_at */
};

struct tar_reader;

/* src and name must stay. */
struct tar_reader *tar_reader_new(struct source *src, const char *name)
	__attribute__((returns_nonnull));
void tar_reader_free(struct tar_reader *r);

/* The next member, skipping what was not read of this one's data: 1; 0 at the end of the archive
 * (two zero blocks, or the end of src); -1. Errors: CORRUPT ("name: tar: byte N: ..."), UNSUPPORTED
 * (sparse files), those of src. */
int tar_reader_next(struct tar_reader *r, const struct tar_member **m, struct err *e) must_check;
/* Data of the member: 1 and some bytes (n > 0, valid until the next call of anything here); 0 and
 * n = 0 when there are no more; -1. */
int tar_reader_data(struct tar_reader *r, const void **p, size_t *n, struct err *e) must_check;
/* The same, at most max bytes. */
int tar_reader_take(
	struct tar_reader *r, uint64_t max, const void **p, size_t *n, struct err *e) must_check;
/* After the last member: all bytes from the end of the last data to the end of src, in spans as
 * above. They are part of the DiffID, so whoever wants to know it reads them. */
int tar_reader_rest(struct tar_reader *r, const void **p, size_t *n, struct err *e) must_check;
/* Bytes of src so far. */
uint64_t tar_reader_offset(const struct tar_reader *r);

#endif
