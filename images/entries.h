/* What one input (a package, a tarball, a layer) puts into a tree: a list of objects, made by one
 * thread without touching the tree, so that inputs can be unpacked in parallel and merged in their
 * order. */
#ifndef IMAGES_ENTRIES_H
#define IMAGES_ENTRIES_H

#include "images/tree.h"

enum entry_kind {
	ENTRY_PUT,      /* the object a at path */
	ENTRY_WHITEOUT, /* delete path from the layers below */
	ENTRY_OPAQUE,   /* hide all that the layers below have in the folder path */
};

struct entry {
	const char *path; /* clean: tree_clean_path() */
	enum entry_kind kind;
	struct attr a;
	bool pruned; /* named by the input, but not to be put: its data were not kept */
};

struct entries {
	struct arena arena; /* owns all that v points to */
	struct entry *v;
	size_t n, cap;
};

void entries_fini(struct entries *l);
/* A new, zeroed entry at the end; path is copied. The pointer is valid until the next call. */
struct entry *entries_add(struct entries *l, const char *path);

/* ---- layers ---- (images/entries-layer.c) */

/* Lay one layer's objects over the tree of the layers below, as image-spec layer.md says: first
 * what hides (whiteouts and opaque folders, whatever their position), then the objects in their
 * order; a folder over a folder replaces its attributes, anything else replaces what stands there.
 * `layer` is the layer's number, for node->layer. Errors: CORRUPT (path, and why). */
int entries_apply(struct tree *t, const struct entries *l, int32_t layer, struct err *e) must_check;

/* A layer's list as bytes, to be kept beside the pool (ROOT/layers/HEX, by the layer's DiffID or
 * blob digest: the caller knows), so that another image with the same layer need not fetch it
 * again. Chunk data are not in it, only digests and lengths. The reader trusts nothing. */
int entries_encode(const struct entries *l, struct buf *b, struct err *e) must_check;
int entries_decode(struct entries *l, const void *p, size_t n, struct err *e) must_check;

#endif
