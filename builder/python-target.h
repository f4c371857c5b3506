/* What an image's interpreter takes, and the choice among the wheels of one version. */
#ifndef BUILDER_PYTHON_TARGET_H
#define BUILDER_PYTHON_TARGET_H

#include "builder/lock.h"
#include "builder/marker.h"
#include "builder/python-tags.h"
#include "images/store.h"

struct python_target {
	struct arena *a;    /* the lock's: what is found lives there */
	const char *python; /* "3.11" */
	const char *libc;   /* "glibc 2.36", for people */
	struct marker_env env;
	struct strings tags; /* best first */
};

/* From the lock's debs, else from the interpreter's name and, for its C library, the base image in
 * s (NULL: not asked). USAGE when neither tells the version of the interpreter. */
int python_target_init(struct python_target *t, struct lock *l, const struct manifest *m,
	struct store *s, struct err *e) must_check;

/* A wheel that somebody offers. */
struct wheel_offer {
	const char *file, *url; /* url as in a lock */
	struct digest sha256;
	uint64_t size; /* 0: not said */
};

/* The offer that fits best: by tags, then by build number, then by name. who: "numpy 1.26.4", for
 * errors; version: NULL, or what the file must be of. Returns its number, or -1 with SV052 (none
 * fits: what there was, and what the image takes) or SV174. */
int python_target_pick(const struct python_target *t, const char *who, const char *version,
	const struct wheel_offer *v, size_t n, struct err *e) must_check;

#endif
