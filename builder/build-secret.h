/* Secrets of a build (--secret ID=FILE): files for the steps that name them, whose bytes must never
 * reach a layer, a log or a cache key. */
#ifndef BUILDER_BUILD_SECRET_H
#define BUILDER_BUILD_SECRET_H

#include <stddef.h>

#include "base/err.h"

struct build_secret {
	const char *id;
	char *value; /* the file's bytes, in memory that is locked and wiped */
	size_t n;
};

enum {
	BUILD_SECRET_MIN = 6, /* shorter ones cannot be told from other text */
	BUILD_SECRET_MAX = 64 << 10
};

/* Read FILE of "ID=FILE". A final newline does not count. USAGE: no such option, or a value that is
 * too short or too long. build_secret_fini() is due in any case. */
int build_secret_load(struct build_secret *s, const char *option, struct err *e) must_check;
void build_secret_fini(struct build_secret *s);

#endif
