/* One entry of a table of contents, as its JSON says. toc-parse.c's own. */
#ifndef IMAGES_TOC_RECORD_H
#define IMAGES_TOC_RECORD_H

#include "images/digest.h"
#include "images/toc-json.h"
#include "images/tree.h"

/* Absent fields are 0. */
struct toc_record {
	uint32_t seen; /* bits of the fields that stood there: none may come twice */
	char type[16];
	struct buf name, link;
	int64_t mtime;
	uint64_t mode, size, uid, gid, major, minor;
	uint64_t offset, end_offset, inner;
	uint64_t chunk_size, chunk_offset;
	struct digest digest, chunk_digest;
	bool has_digest, has_chunk_digest, zeros;
	struct arena arena; /* of this entry's xattrs; sorted by name, each once */
	struct xattr xattrs[TREE_XATTRS_MAX];
	uint32_t nxattrs;
	struct buf text; /* scratch */
};

void toc_record_init(struct toc_record *r);
void toc_record_fini(struct toc_record *r);
/* Read the next object into r, over what it held. Names of fields in any case; unknown ones are
 * passed over. */
int toc_record_read(struct toc_record *r, struct toc_json *j, struct err *e) must_check;

/* RFC 3339 to seconds, fractions cut off; Go's zero time (year 1) is 0. */
int toc_time(const char *text, int64_t *t) must_check;

#endif
