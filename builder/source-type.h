/* Inside of sources: what each type does, and where a member of one goes. Only builder/source*.c
 * include this. */
#ifndef BUILDER_SOURCE_TYPE_H
#define BUILDER_SOURCE_TYPE_H

#include "builder/source.h"
#include "images/config.h"

enum { SOURCE_ENTRIES_MAX = 1 << 20 };

/* What locking and fetching have at hand. Messages name the field: pointer is "/sources/3". */
struct source_job {
	const char *dir; /* the manifest's */
	struct mirrors *mirrors;
	struct store *s;
	struct progress *p;
	char pointer[32];
};

/* What unpacking has. Thread-safe for different `out`. */
struct source_unpack {
	const struct manifest_source *ms;
	const struct lock_source *ls;
	const char *dir;
	struct store *s;
	struct pool *pool;
	int64_t epoch;
	struct entries *out;
};

struct source_ops {
	/* ls has the id, and strings of l's arena */
	int (*lock)(const struct source_job *j, const struct manifest_source *ms,
		struct lock_source *ls, struct arena *a, struct err *e);
	int (*fetch)(const struct source_job *j, const struct manifest_source *ms,
		const struct lock_source *ls, struct err *e);
	int (*unpack)(const struct source_unpack *u, struct err *e);
};

extern const struct source_ops source_git, source_oci;
/* source-archive.c: unpack an open archive, whatever its format. */
int source_archive(const struct source_unpack *u, int fd, struct err *e) must_check;

/* ---- members (source-place.c) ---- */

/* Is the member at a path (after strip) wanted? A pattern means what it names and all that is in
 * it. */
bool source_keeps(const struct manifest_source *ms, const char *path);
/* The path after `strip`, in name, or NULL when nothing is left. */
const char *source_strip(const struct manifest_source *ms, const char *name);
/* Path in the image of a kept member. CORRUPT: too long, or not one that a tree may hold. */
int source_path(const struct manifest_source *ms, const char *path, char out[TREE_PATH_MAX + 1],
	struct err *e) must_check;
/* A new entry of `out` for a kept member; owner, and modes without setuid. */
struct entry *source_put(const struct source_unpack *u, const char *path, const struct attr *a,
	struct err *e) must_check;

/* "file:PATH": the path beside the manifest; NULL for another address. */
const char *source_local(const struct manifest_source *ms);

#endif
