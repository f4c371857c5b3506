/* `svrun image lock` for Debian packages: apt itself resolves, run with a state of its own (never
 * the host's) and the manifest's sources and keyring. */
#ifndef BUILDER_APT_H
#define BUILDER_APT_H

#include "builder/lock.h"
#include "builder/mirror.h"
#include "images/progress.h"

/* Fill l->debs and l->indexes for l->platform. tmpdir: an empty folder for apt's state, removed by
 * the caller. Errors quote apt's own explanation, with the manifest's position of the package when
 * apt names one: USAGE (unresolvable), NOT_FOUND (mirror, keyring, apt), NETWORK (mirror
 * unreachable), CORRUPT (bad signature). */
int apt_lock(struct lock *l, const struct manifest *m, struct mirrors *mirrors, const char *tmpdir,
	struct progress *p, struct err *e) must_check;

#endif
