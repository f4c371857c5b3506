/* Models of an image made ready for a start: artifacts and what is fetched at run time, in
 * ROOT/models/HEX, or in a folder of the host that a volume brings. */
#ifndef BUILDER_MODEL_PLACE_H
#define BUILDER_MODEL_PLACE_H

#include "builder/model.h"

struct model_place {
	struct store *s;
	struct mirrors *mirrors;
	const struct build_secret *secrets;
	size_t nsecrets;
	struct progress *p;
};

/* Have an artifact's, or a runtime model's, files in ROOT/models/HEX, each by its digest; nothing
 * to do when they are. The folder gets its name when all of it is there. Files are hard links to
 * blobs and to the cache, mode 0444. Errors: NOT_FOUND (an artifact that is not in the store),
 * CORRUPT, those of fetching, DENIED (a pickle). */
int model_place(
	const struct model_place *j, const struct models_entry *x, struct err *e) must_check;

/* Have a runtime model's files in `below`, a path in the folder dirfd, which a container may write
 * to: no link in it is followed. Files that are there with the right digest stay. A file
 * .svrun-HEX (of the set) says that all was there. */
int model_place_in(const struct model_place *j, const struct models_entry *x, int dirfd,
	const char *below, struct err *e) must_check;

#endif
