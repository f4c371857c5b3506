/* The site's data about vulnerabilities: a folder that somebody else fills (docs/scan.md). In it,
 * at any depth:
 *
 *   *.json                 an OSV record, or the document of Debian's security tracker
 *   *.zip *.tar *.tar.gz *.tgz *.tar.xz *.tar.zst *.tar.bz2     of OSV records
 *
 * It is read once: ROOT/cache/vuln/HEX is an index of it (vuln-index.h), by the digest of all the
 * files' names and bytes. */
#ifndef BUILDER_VULN_H
#define BUILDER_VULN_H

#include "builder/vuln-index.h"
#include "images/store.h"

enum {
	VULN_FILES_MAX = 1 << 20,
	VULN_DEPTH_MAX = 8,
	VULN_DOCUMENT_MAX = 512 << 20, /* bytes of the tracker's */
};
/* Bytes of all files, unpacked: twice what all ecosystems of OSV and Debian's tracker come to. */
#define VULN_DATA_MAX (UINT64_C(4) << 30)

struct vuln {
	struct buf index;
	struct digest digest; /* of the data */
	bool cached;          /* the index was there */
};

/* Errors: USAGE (there is no such folder, or nothing in it), CORRUPT (file, record and place),
 * SYSTEM. */
int vuln_open(struct vuln *v, struct store *s, const char *dir, struct err *e) must_check;
void vuln_close(struct vuln *v);

/* One file's bytes, by its name, into an index: for tests and fuzzing, too. fd is at its start;
 * *left is how many bytes it may unpack to, and gets less. CORRUPT: more than that, or an archive
 * that unpacks to more than 100 times its size. */
int vuln_read(struct vuln_index_maker *m, const char *name, int fd, uint64_t *left,
	struct err *e) must_check;

#endif
