/* What a tree takes of the attributes it is offered. tree.c's own. */
#ifndef IMAGES_TREE_ATTR_H
#define IMAGES_TREE_ATTR_H

#include "images/tree.h"

/* Within the limits of tree.h? CORRUPT. */
int attr_check(const struct attr *a, struct err *e) must_check;
/* A copy that owns everything, without what its type does not have. */
struct attr attr_copy(struct arena *m, const struct attr *a);

#endif
