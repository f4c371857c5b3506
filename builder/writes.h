/* Did a step write only what its `writes` allows? */
#ifndef BUILDER_WRITES_H
#define BUILDER_WRITES_H

#include "images/entries.h"

/* A glob of absolute paths: "*" and "?" within a name, "**" across. "/x/" followed by "**" is /x
 * itself, too, and a new folder on the way to what a glob names is no offence. Returns the paths
 * outside, "/etc/x", in the order of the list, in the arena. */
struct strings writes_outside(
	const struct strings *globs, const struct entries *l, struct tree *below, struct arena *a);

#endif
