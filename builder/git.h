/* Git repositories, read through the git program: one commit, its tree, its files. Nothing that a
 * repository brings is run or obeyed: no hooks, no filters, no configuration of system or user, no
 * checkout. A commit is kept in ROOT/cache/git/COMMIT, a bare repository that has it alone.
 * Functions are thread-safe. */
#ifndef BUILDER_GIT_H
#define BUILDER_GIT_H

#include "images/store.h"

enum { GIT_COMMIT = 40, GIT_FILES_MAX = 1 << 20 };

bool git_has(struct store *s, const char *commit);
/* Fetch one commit from an address (http, https) or the path of a repository. Servers that hand out
 * no single commit are asked for all branches and tags. Errors: NOT_FOUND (no such commit there),
 * NETWORK, SYSTEM (no git). */
int git_fetch(struct store *s, const char *url, const char *commit, struct err *e) must_check;

/* Is the commit still to be had there? Fetched again, into nothing. Errors: as above. */
int git_ask(struct store *s, const char *url, const char *commit, struct err *e) must_check;

struct git_file {
	uint32_t mode;    /* 0100644, 0100755, 0120000; 0160000: a submodule */
	const char *id;   /* of the blob: 40 hex */
	const char *path; /* tree_check_path() passed */
};
struct git_tree {
	struct arena arena;
	struct git_file *v;
	size_t n;
};
/* All files of a commit. CORRUPT names what an image cannot hold. */
int git_tree(struct git_tree *t, struct store *s, const char *commit, struct err *e) must_check;
void git_tree_fini(struct git_tree *t);

/* Read the data of all files (not of submodules), in the order of the tree. */
struct git_reader {
	int (*begin)(void *ctx, const struct git_file *f, uint64_t size, struct err *e);
	int (*data)(void *ctx, const void *p, size_t n, struct err *e);
	int (*end)(void *ctx, const struct git_file *f, struct err *e);
	void *ctx;
};
int git_read(struct store *s, const char *commit, const struct git_tree *t,
	const struct git_reader *r, struct err *e) must_check;

#endif
