/* Built-in configuration: what the maintainer scripts of well-known packages leave behind, made
 * without running any code. What only programs can make (ld.so.cache, the MIME, icon, font, GLib
 * and gdk-pixbuf caches, byte code, debconf's database) is left out: all of it is optional at run
 * time. */
#ifndef BUILDER_CONFIGURE_H
#define BUILDER_CONFIGURE_H

#include "builder/deb.h"
#include "builder/rootfs.h"

/* Users, files, links, shells, certificates, PAM, stat overrides, diversions. Call it after all
 * packages are merged and before alternatives_make(). Errors: CORRUPT, SYSTEM. */
int configure_builtin(
	const struct rootfs *r, const struct deb *const *debs, size_t n, struct err *e) must_check;

/* The little that must be there before `dpkg --configure` can run: users and groups, awk. */
int configure_seed(
	const struct rootfs *r, const struct deb *const *debs, size_t n, struct err *e) must_check;

/* Is a package of that name among debs? */
const struct deb *configure_find(const struct deb *const *debs, size_t n, const char *name);

#endif
