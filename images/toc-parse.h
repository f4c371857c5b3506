/* The text of a table of contents, of either format, as it streams by: objects go into struct
 * entries by the rules of members_add(), file data into a list of where they lie in the blob.
 * Nothing is believed: what the list says is inside of the blob, ascending, and complete.
 * Source: formats.md 1.4, 2.3; docs/toc.md has every rule and limit. */
#ifndef IMAGES_TOC_PARSE_H
#define IMAGES_TOC_PARSE_H

#include "images/entries.h"
#include "images/layer.h"
#include "images/source.h"

enum {
	TOC_BYTES_MAX = 150 << 20, /* of a table, packed or not: the limit of containers/storage */
	TOC_ENTRIES_MAX = 1 << 20, /* objects and chunks; an honest one takes over 143 bytes */
	TOC_STRING_MAX = 96 << 10, /* the base64 of TREE_XATTR_VALUE_MAX is the longest */
};

/* A piece of a file as the table has it: boundaries are its writer's. */
struct toc_chunk {
	uint64_t offset, end; /* its frame in the blob lies between; what follows may be more */
	uint64_t inner; /* bytes of other data that the frame unpacks to before (eStargz only) */
	uint64_t at;    /* in the file */
	uint64_t size;  /* unpacked, never 0 */
	struct digest digest;
	uint32_t file; /* of toc->files */
	bool has_digest, zeros;
	bool known; /* for toc.c: the pool has it */
};

struct toc_file {
	size_t entry; /* in the entries */
	size_t first, n;
	uint64_t size;
	struct digest digest;
	bool has_digest;
	bool whole; /* chunks have no digests of their own: only the file as a whole has */
};

struct toc {
	struct toc_chunk *chunks; /* in the order of the blob, and of each file */
	struct toc_file *files;   /* those that have data */
	size_t nchunks, nfiles, chunks_cap, files_cap;
	uint64_t bytes; /* of all files */
};

struct toc_rules {
	const char *name; /* for errors */
	enum codec codec;
	uint64_t blob_size;
	uint64_t data_end;  /* file data lie before it in the blob */
	uint64_t max_bytes; /* of all files, unpacked */
};

/* Reads src to its end, which is the closing brace. Chunks of entries (attr.chunks) are made, with
 * lengths, but without digests. Errors: CORRUPT (names, byte of the table), UNSUPPORTED: a table
 * that may be right, but cannot be used (another version, no digests, names that JSON could not
 * hold, an object twice, too many), those of src. */
int toc_parse(struct toc *t, struct source *src, const struct toc_rules *r, struct entries *out,
	struct err *e) must_check;
void toc_fini(struct toc *t);

/* Chunk i is exactly chunk *k of its file as we cut it: its digest is ours. */
bool toc_chunk_is_ours(const struct toc *t, const struct toc_chunk *c, uint32_t *k);

#endif
