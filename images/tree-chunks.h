/* All chunks of a tree, each digest once. */
#ifndef IMAGES_TREE_CHUNKS_H
#define IMAGES_TREE_CHUNKS_H

#include "images/tree.h"

struct tree_chunks {
	struct chunk **all; /* of all files, sorted by digest */
	size_t nall;
	struct chunk **v; /* one of each digest */
	size_t n;
};

/* The chunks are the tree's. Free with tree_chunks_fini(), before the tree. */
void tree_chunks_init(struct tree_chunks *c, struct tree *t);
void tree_chunks_fini(struct tree_chunks *c);
/* Give the others of each digest the block that v's has. CORRUPT when one of them claims another
 * length: read at that length, it would show what lies behind the chunk in the pool. */
int tree_chunks_spread(struct tree_chunks *c, struct err *e) must_check;

#endif
