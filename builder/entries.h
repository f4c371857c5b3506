/* What one input (a package, a tarball, a model) puts into the tree: a list of objects, made by one
 * thread without touching the tree, so that inputs can be unpacked in parallel and merged in the
 * lock's order. */
#ifndef BUILDER_ENTRIES_H
#define BUILDER_ENTRIES_H

#include "images/tree.h"

struct entry {
	const char *path; /* clean: tree_clean_path() */
	struct attr a;
	bool pruned; /* named by the input, but not to be put: its data were not kept */
};

struct entries {
	struct arena arena; /* owns all that v points to */
	struct entry *v;
	size_t n, cap;
};

void entries_fini(struct entries *l);
/* A new, zeroed entry at the end; path is copied. */
struct entry *entries_add(struct entries *l, const char *path);

#endif
