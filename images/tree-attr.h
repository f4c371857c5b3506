/* What a tree takes of the attributes it is offered. */
#ifndef IMAGES_TREE_ATTR_H
#define IMAGES_TREE_ATTR_H

#include "images/tree.h"

/* Is it an extended attribute's name that an image can hold? */
bool attr_xattr_ok(const char *name);
/* Within the limits of tree.h? CORRUPT. */
int attr_check(const struct attr *a, struct err *e) must_check;
/* The same bytes, by the digests of their chunks; the same extended attributes. */
bool attr_same_data(const struct attr *a, const struct attr *b);
bool attr_same_xattrs(const struct attr *a, const struct attr *b);
/* A copy that owns everything, without what its type does not have. */
struct attr attr_copy(struct arena *m, const struct attr *a);

#endif
