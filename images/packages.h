/* What is installed in an image, as its package managers tell: dpkg (var/lib/dpkg/status, and
 * status.d of images without dpkg), npm (package.json in node_modules), Python (names of .dist-info
 * and .egg-info folders). */
#ifndef IMAGES_PACKAGES_H
#define IMAGES_PACKAGES_H

#include "images/pool.h"

struct package {
	const char *kind; /* "deb", "npm", "python" */
	const char *name;
	const char *where; /* deb: the architecture; else the folder that it is in */
	const char *version;
	const char *source; /* deb: "NAME" or "NAME (VERSION)" of its source, where that is said */
};

struct packages {
	struct arena arena;
	struct package *v; /* sorted by all members */
	size_t n, cap;
};

/* Reads these few files from the pool, hashed. What is malformed in an image is left out: it is not
 * ours to judge. Errors: CORRUPT (the pool), SYSTEM. */
int packages_list(struct packages *l, struct tree *t, struct pool *p, struct err *e) must_check;
void packages_fini(struct packages *l);
/* By kind, name and where: -1, 0, 1. */
int package_compare(const struct package *a, const struct package *b);

#endif
