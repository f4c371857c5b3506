/* Unpacking an archive with libarchive, straight into the pool: no files on disk in between. */
#ifndef BUILDER_ARCHIVE_H
#define BUILDER_ARCHIVE_H

#include "builder/entries.h"
#include "images/pool.h"

struct archive;

/* How to read one archive. Hostile input: names with "..", absolute names and link targets of hard links,
 * device nodes, duplicate names, sizes beyond the limits, more output than max_bytes, more than max_entries are refused
 * as CORRUPT by member name and limit. Absolute symlink targets are fine: they are data, only ever
 * resolved inside the image. */
struct archive_rules {
	const char *name;       /* of the archive, for errors */
	const char *prefix;     /* put before every path: "opt/app/node_modules/x"; NULL: none */
	unsigned strip;         /* leading components to drop (npm: 1) */
	bool keep_owner;        /* uid and gid as in the archive, else 0 */
	bool plain_modes;       /* 0755 for folders and what is executable, else 0644 (npm) */
	bool no_links;          /* refuse links (npm) */
	uint64_t max_bytes;     /* of all file data */
	uint64_t max_file;      /* of one file */
	size_t max_entries;
	int64_t mtime; /* >= 0: for every entry, instead of the archive's */
};

/* Read all entries of an opened libarchive reader. File data go to the pool in chunks. */
int archive_unpack(struct archive *a, const struct archive_rules *r, struct pool *p, struct entries *out,
	struct err *e) must_check;

/* Put a whole open file (a model, files.from) into the pool: fills size and chunks of a, hashing the
 * whole into *sha256. Streams; memory is one chunk. */
int content_from_fd(int fd, const char *name, struct pool *p, struct arena *arena, struct attr *a,
	struct digest *sha256, struct err *e) must_check;
/* The same for bytes in memory (inline files, generated state). */
int content_from_mem(const void *data, size_t n, struct pool *p, struct arena *arena, struct attr *a,
	struct err *e) must_check;

#endif
