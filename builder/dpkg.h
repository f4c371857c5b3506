/* The dpkg database and the built-in configuration of a tree of unpacked packages: what maintainer
 * scripts would leave behind, without running any. */
#ifndef BUILDER_DPKG_H
#define BUILDER_DPKG_H

#include "builder/deb.h"
#include "builder/manifest.h"
#include "images/pool.h"
#include "images/tree.h"

/* Before the packages are merged: the links of merged /usr (bin, sbin, lib, lib64, lib32, libx32 ->
 * usr/...) when asked. */
int dpkg_prepare(struct tree *t, const struct manifest_apt *apt, struct err *e) must_check;

/* Merge one package's entries into the tree with `origin` (not 0). As with dpkg, a folder that is
 * there stays as it is, and a link does not take a folder's place. Two packages that ship one file
 * are an error that names both (CORRUPT), unless one Replaces the other (deb-control Replaces) or
 * the contents are equal. Objects go where d->places says (diversions.h). */
int dpkg_merge(struct tree *t, const struct deb *d, uint32_t origin, const struct deb *const *all,
	size_t n, struct err *e) must_check;

/* After all are merged: unless apt.database says otherwise /var/lib/dpkg (status, info files,
 * available, diversions, statoverride,
 * triggers), apt's list of what was installed automatically, prune. With APT_BUILTIN also what
 * known maintainer scripts make (configure.h) and the alternatives, the manifest's choice first;
 * packages are then "installed", else "unpacked", and `dpkg --configure -a` is still to be run. New
 * objects have origin `origin` and mtime epoch. */
int dpkg_finish(struct tree *t, const struct manifest_apt *apt, const struct deb *const *debs,
	size_t n, struct pool *p, int64_t epoch, uint32_t origin, struct err *e) must_check;

#endif
