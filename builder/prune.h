/* What the manifest's apt.prune leaves out of the image: documentation, translations, byte code. */
#ifndef BUILDER_PRUNE_H
#define BUILDER_PRUNE_H

#include "builder/rootfs.h"

/* Remove it from the tree, with the folders that get empty, and tell dpkg to leave it out of what
 * is installed later. USAGE: unknown name. */
int prune_tree(const struct rootfs *r, const struct strings *what, struct err *e) must_check;

#endif
