/* Many downloads at once, in one thread (libcurl's multi interface), into the cache. */
#ifndef BUILDER_FETCH_H
#define BUILDER_FETCH_H

#include "builder/cache.h"

struct fetch_limits {
	unsigned parallel;      /* transfers at a time */
	unsigned tries;         /* of one input without progress in between */
	unsigned backoff_ms;    /* before the second try; doubles */
	unsigned retry_after_s; /* the longest Retry-After that is waited for */
	unsigned connect_s;     /* to connect */
	unsigned stall_s;       /* slower than stall_bytes per second for so long: the next try */
	unsigned stall_bytes;
};

extern const struct fetch_limits fetch_defaults;

/* cache_fetch() with limits of one's own (tests). */
int fetch_all(struct store *s, const struct input *in, size_t n, const struct fetch_limits *l,
	struct progress *p, struct err *e) must_check;

#endif
