/* Unpacking an archive with libarchive, straight into the pool: no files on disk in between.
 *
 * Member names are bytes: readers run in the C locale, where libarchive hands them through as they
 * are (in a UTF-8 locale it composes accents, and two names may become one). */
#ifndef BUILDER_ARCHIVE_H
#define BUILDER_ARCHIVE_H

#include "builder/content.h"
#include "builder/prune.h"
#include "images/entries.h"

struct archive;

/* How to read one archive. Hostile input: names with "..", absolute names and link targets of hard
 * links, device nodes, duplicate names, sizes beyond the limits, more output than max_bytes, more
 * than max_entries are refused as CORRUPT by member name and limit. Absolute symlink targets are
 * fine: they are data, only ever resolved inside the image. */
struct archive_rules {
	const char *name;   /* of the archive, for errors */
	const char *prefix; /* put before every path: "opt/app/node_modules/x"; NULL: none */
	unsigned strip;     /* leading components to drop (npm: 1); what has no more is left out */
	bool keep_owner;    /* uid and gid as in the archive, else 0 */
	bool plain_modes;   /* 0755 for folders and what is executable, else 0644 (npm) */
	bool no_links;      /* refuse everything but files and folders (npm) */
	bool same_twice;    /* a file may come again with the same mode and bytes (npm has such) */
	const struct prune *prune; /* do not keep the data of what it names; NULL: all is kept */
	/* What of it is wanted, by the path that it gets; the rest is left out. NULL: all. */
	bool (*keep)(const void *ctx, const char *path);
	const void *keep_ctx;
	uint64_t max_bytes; /* of all file data */
	uint64_t max_file;         /* of one file */
	size_t max_entries;
	int64_t mtime; /* >= 0: for every entry, instead of the archive's */
};

/* A reader of the tar in `length` bytes of fd from `offset` on, in exactly this one compression
 * (libarchive's ARCHIVE_FILTER_NONE, _GZIP, _BZIP2, _XZ, _LZMA, _ZSTD). fd must stay open. */
struct archive *archive_open_fd(int fd, uint64_t offset, uint64_t length, int filter,
	const char *name, struct err *e) must_check;
/* The same for bytes in memory, which must stay. */
struct archive *archive_open_mem(
	const void *data, size_t n, int filter, const char *name, struct err *e) must_check;

#define auto_archive __attribute__((cleanup(archive_close_ref)))
void archive_close_ref(struct archive **a);

/* Read all entries of an opened libarchive reader and append them to out. File data go to the pool
 * in chunks. Of the extended attributes only security.capability is kept. */
int archive_unpack(struct archive *a, const struct archive_rules *r, struct pool *p,
	struct entries *out, struct err *e) must_check;

#endif
