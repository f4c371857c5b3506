/* Are two trees the same image? */
#ifndef IMAGES_TREE_EQUAL_H
#define IMAGES_TREE_EQUAL_H

#include "images/tree.h"

/* Both sorted. 0 when every object, attribute and chunk digest is equal, whichever layer it came
 * from; else CORRUPT with the first path that differs, and in what. */
int tree_equal(struct tree *a, struct tree *b, struct err *e) must_check;

#endif
