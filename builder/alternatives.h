/* The alternatives system: links that several packages offer. What the packages' own scripts
 * register is read, the best choice (or the manifest's) is linked, and update-alternatives'
 * database is written, so that it goes on from here. Source: update-alternatives(1). */
#ifndef BUILDER_ALTERNATIVES_H
#define BUILDER_ALTERNATIVES_H

#include "builder/deb.h"
#include "builder/rootfs.h"

/* chosen: alternative's name or link path -> target. A choice whose target is not in the tree is
 * left out, as with update-alternatives. USAGE when the manifest chooses what nobody offers. */
int alternatives_make(const struct rootfs *r, const struct deb *const *debs, size_t n,
	const struct pairs *chosen, struct err *e) must_check;

#endif
