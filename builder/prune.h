/* What the manifest's apt.prune leaves out of the image: documentation, translations, byte code. */
#ifndef BUILDER_PRUNE_H
#define BUILDER_PRUNE_H

#include <stdbool.h>

#include "builder/manifest.h"

struct prune;
struct rootfs;

/* USAGE: unknown name. Thread-safe after that. */
struct prune *prune_new(const struct strings *what, struct err *e) must_check;
void prune_free(struct prune *p);

/* Is the object at path (relative to the root) to be left out? */
bool prune_matches(const struct prune *p, const char *path);

/* Remove from the tree what matches, with the folders that get empty, and tell dpkg to leave it out
 * of what is installed later. */
int prune_tree(const struct rootfs *r, const struct prune *p, struct err *e) must_check;

#endif
