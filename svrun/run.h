/* One start of a container, in the foreground: what `svrun run`, `restart` and `start` do. */
#ifndef SVRUN_RUN_H
#define SVRUN_RUN_H

#include "svrun/run-options.h"

/* again: the id of an instance that has ended, which starts again with all it wrote, from the image
 * that o->digest says; NULL: a new one. *status is that of the container's program; when it could
 * not be started, 126 or 127 for the reasons that scripts look for. */
int run_start(
	const struct run_options *o, const char *again, int *status, struct err *e) must_check;

#endif
