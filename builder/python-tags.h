/* Which wheels fit an interpreter and a platform, and which fits best.
 * Source: PEP 425; PEP 600 (manylinux), 656 (musllinux), 384 (abi3); PyPA "Platform compatibility
 * tags". The order is that of the packaging library. */
#ifndef BUILDER_PYTHON_TAGS_H
#define BUILDER_PYTHON_TAGS_H

#include "builder/python-name.h"

struct python_platform {
	unsigned major, minor;             /* of CPython */
	unsigned glibc_major, glibc_minor; /* 0.0: none */
	unsigned musl_major, musl_minor;   /* 0.0: none */
	const char *machine;               /* "x86_64", "aarch64" */
};

/* Best first, all of them in the arena: "cp311-cp311-manylinux_2_36_x86_64". */
struct strings python_tags(const struct python_platform *p, struct arena *a);

/* The place of the wheel's best tag among them, 0 the best; -1: it does not fit. */
int python_tags_rank(const struct strings *tags, const struct wheel_name *w);

#endif
