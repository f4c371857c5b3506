/* What one header block and one extended header of a tar say. tar-read.c's own. */
#ifndef IMAGES_TAR_FIELDS_H
#define IMAGES_TAR_FIELDS_H

#include "images/tar-read.h"

/* POSIX ustar header block; GNU, star and v7 have the same fields up to link. */
struct tar_block {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};

enum { TAR_NAME_TEXT = 155 + 1 + 100 + 1 };

/* The checksum. CORRUPT. */
int tar_block_check(const struct tar_block *b, struct err *e) must_check;
int tar_block_size(const struct tar_block *b, uint64_t *size, struct err *e) must_check;
/* Both return out. */
char *tar_block_name(const struct tar_block *b, char out[TAR_NAME_TEXT]);
char *tar_block_link(const struct tar_block *b, char out[TAR_NAME_TEXT]);

/* What an extended header says. Strings are the buffer's that was parsed. */
struct tar_records {
	const char *path, *linkpath; /* NULL: not said, as of all below */
	const char *size, *uid, *gid, *mtime;
	struct xattr *xattrs; /* sorted by name, each once */
	uint32_t nxattrs;
	size_t cap;
};
void tar_records_reset(struct tar_records *x);
void tar_records_fini(struct tar_records *x);
/* Parse text, cutting it into strings, in place of what x held. CORRUPT, UNSUPPORTED (sparse). */
int tar_records_parse(struct tar_records *x, struct buf *text, struct err *e) must_check;
/* Only that it could be parsed. */
int tar_records_check(struct buf *text, struct err *e) must_check;

/* Mode, owner, time, size and device of m; what the records say wins. */
int tar_block_numbers(const struct tar_block *b, const struct tar_records *x, struct tar_member *m,
	struct err *e) must_check;

#endif
