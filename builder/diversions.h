/* Files that two packages ship because one of them diverts the other's: dpkg-divert(1) in its
 * preinst script. Files are unpacked here before any script runs, so the script's text is read for
 * it. */
#ifndef BUILDER_DIVERSIONS_H
#define BUILDER_DIVERSIONS_H

#include "builder/deb.h"

struct diversion {
	const char *from, *to,
		*by; /* paths as in the package, without a leading slash; by: package */
};

/* Those of a file that both the package of the script and another ship, in the order of packages.
 * What a script says with words that are not known before it runs is not among them, nor what it
 * diverts without shipping it: that it renames itself when it runs. All in the arena. */
struct diversion *diversions_find(
	const struct deb *const *debs, size_t n, struct arena *a, size_t *count);

/* What dpkg keeps in /var/lib/dpkg/diversions. */
void diversions_text(const struct diversion *v, size_t n, struct buf *out);

/* Give each package the places of its diverted files: d->places. */
void diversions_place(struct deb *debs, size_t n, struct arena *a);

#endif
