/* Which folders a layer names without having anything in them: an index tells of a folder only
 * which layer has it first. Where chunks lie in the blob tells the rest: up to the first folder
 * that is missing, frames come out at the offsets that the index says, after it they do not. So the
 * folders between two files are tried, until the next offset is right, and so on. */
#ifndef IMAGES_FOLDER_SEARCH_H
#define IMAGES_FOLDER_SEARCH_H

#include "images/tree.h"

struct folder_search {
	struct tree *tree;
	int32_t number; /* of the layer */
	uint64_t mark;  /* node->scratch of what is known to be in it; no other node has it */
	size_t missing; /* at most so many folders are */
	size_t tries;   /* bound of calls of attempt() */
	/* Write the layer of these nodes, which gives chunks that are in no layer their place. 1:
	 * it is what it should be; 0; -1. */
	int (*attempt)(void *ctx, struct node *const *v, size_t n, struct err *e);
	void *ctx;
};

/* 1 found, and attempt() was called with it last; 0 not; -1. All chunks are afterwards where the
 * index says. */
int folder_search(struct folder_search *s, struct err *e) must_check;

#endif
