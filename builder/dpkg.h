/* The dpkg database and the built-in configuration of a tree of unpacked packages: what maintainer
 * scripts would leave behind, without running any. */
#ifndef BUILDER_DPKG_H
#define BUILDER_DPKG_H

#include "builder/deb.h"
#include "builder/manifest.h"
#include "images/pool.h"
#include "images/tree.h"

/* Before the packages are merged: the links of merged /usr (bin, sbin, lib, lib64, lib32, libx32 -> usr/...) when asked. */
int dpkg_prepare(struct tree *t, const struct manifest_apt *apt, struct err *e) must_check;

/* Merge one package's entries into the tree with `origin`. Two packages that ship one file (not folder)
 * are an error that names both, unless one Replaces the other (deb-control Replaces) or the contents are equal. */
int dpkg_merge(struct tree *t, const struct deb *d, uint32_t origin, const struct deb *const *all,
	size_t n, struct err *e) must_check;

/* After all are merged: /var/lib/dpkg (status with "install ok installed", info files, available, diversions, statoverride, arch, triggers),
 * alternatives, prune. With APT_BUILTIN also what known postinsts make: passwd, group, shadow, gshadow from
 * base-passwd, nsswitch.conf, /root files and folders of base-files, the CA bundle and its links, awk and the like through
 * alternatives (every `update-alternatives --install` of the packages' own postinsts, by priority, the manifest's choice wins), shells, ld.so.cache is left out.
 * New objects have origin `origin` and mtime epoch. */
int dpkg_finish(struct tree *t, const struct manifest_apt *apt, const struct deb *const *debs, size_t n,
	struct pool *p, int64_t epoch, uint32_t origin, struct err *e) must_check;

#endif
