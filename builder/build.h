/* `svrun image lock` and `svrun image build`. */
#ifndef BUILDER_BUILD_H
#define BUILDER_BUILD_H

#include "builder/lock.h"
#include "builder/mirror.h"
#include "images/progress.h"
#include "images/store.h"

/* Resolve every input of m and write lock.json beside it. */
int build_lock(const struct manifest *m, struct mirrors *mirrors, struct progress *p,
	struct err *e) must_check;

/* Renew only the digests of local inputs in an existing lock: no package changes. */
int build_lock_files(const struct manifest *m, struct err *e) must_check;

struct build_options {
	bool no_cache;           /* build even when nothing changed */
	const enum codec *codec; /* instead of the manifest's; NULL: the manifest's */
};

/* Build the image of a locked manifest into the store and give it its names NAME:VERSION and NAME.
 * *cached tells that nothing had to be done. */
int build_run(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, const struct build_options *o, struct progress *p, struct digest *manifest,
	bool *cached, struct err *e) must_check;

#endif
