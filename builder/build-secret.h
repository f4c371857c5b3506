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

/* Looks for all of them (as they are, in base64 wherever it begins in what was encoded, hex and
 * percent-encoding) in bytes that come piece by piece. The secrets stay borrowed. */
struct secret_scan;
struct secret_scan *secret_scan_new(const struct build_secret *v, size_t n);
void secret_scan_free(struct secret_scan *s);
void secret_scan_begin(struct secret_scan *s); /* the next file */
/* The id of one that was found, or NULL. */
const char *secret_scan_add(struct secret_scan *s, const void *p, size_t n);

#endif
