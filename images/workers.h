/* Threads, used by builder/ and images/ only: runtime/ is single-threaded until exec. */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <stddef.h>

#include "base/err.h"

/* Cores this process may use (sched_getaffinity and the cgroup's CPU quota), at least 1. */
size_t workers_cores(void);

/* Call fn(ctx, i) for every i < n on at most `threads` threads (0: workers_cores()); indices are
 * handed out in order. Joins before it returns; the first error wins and stops the handing out. */
int workers_each(size_t n, size_t threads, int (*fn)(void *ctx, size_t i, struct err *e), void *ctx,
	struct err *e) must_check;

/* A pipeline: make(ctx, i, slot) runs on `threads` threads in any order, take(ctx, i, slot) on the
 * calling thread in the order of i. At most `slots` items are between the two, which bounds memory:
 * slot < slots names the caller's buffer for item i. make() returns 1 when there is no item i, and
 * so none after it: n is only a bound then. */
struct workers_pipe {
	size_t n, threads, slots;
	int (*make)(void *ctx, size_t i, size_t slot, struct err *e);
	int (*take)(void *ctx, size_t i, size_t slot, struct err *e);
	void *ctx;
};
int workers_ordered(const struct workers_pipe *p, struct err *e) must_check;

#endif
