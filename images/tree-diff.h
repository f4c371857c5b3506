/* What two trees differ in. */
#ifndef IMAGES_TREE_DIFF_H
#define IMAGES_TREE_DIFF_H

#include "images/tree.h"

/* What of an object changed; bits. */
enum {
	DIFF_TYPE = 1, /* then nothing else is said */
	DIFF_CONTENT = 2,
	DIFF_MODE = 4,
	DIFF_OWNER = 8,
	DIFF_TARGET = 16, /* of a symbolic link */
	DIFF_DEVICE = 32,
	DIFF_XATTRS = 64,
	DIFF_MTIME = 128,
	DIFF_ALL = 255,
};

/* The bits' names, in their order. */
extern const char *const diff_names[8];

struct tree_diff {
	unsigned mask; /* what counts */
	/* One path; a NULL: only b has it; b NULL: only a has it. a and b are objects: what a hard
	 * link is another name of. The path is valid during the call. */
	int (*found)(void *ctx, const char *path, const struct node *a, const struct node *b,
		unsigned what, struct err *e);
	void *ctx;
};

/* Both trees are sorted. All paths in order, folders before what is in them. Which names are hard
 * links of one another does not count. */
int tree_diff(const struct tree_diff *d, struct tree *a, struct tree *b, struct err *e) must_check;

#endif
