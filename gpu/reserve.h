/* Who has which GPU: one lock file a GPU (or MIG device) in RUN/locks/, held by flock for as long
 * as whoever has it lives; the kernel drops it however that ends. Exclusive, unless all who have it
 * asked to share. The file's text says who took it last, for people. */
#ifndef GPU_RESERVE_H
#define GPU_RESERVE_H

#include "gpu/request.h"

struct gpu_reservation {
	int *fds; /* held locks, close-on-exec */
	size_t n;
};
/* Take what r asks for: by name, or r->count of those that are free (of MIG mode GPUs: MIG
 * devices), best connected first (same NUMA node). All or nothing, in one order, so that two who
 * ask at once cannot block each other. g receives what was taken. EXISTS: tells which are taken and
 * by whom. who: "instance NAME". fits: leave out those for which it returns false (requirements);
 * NULL. */
int gpu_reserve(struct gpu_reservation *v, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct gpu_request *r, const char *who,
	bool (*fits)(void *ctx, const struct gpu_grant *g), void *ctx, struct gpu_grants *g,
	struct err *e) must_check;
void gpu_release(struct gpu_reservation *v);

/* For `svrun gpu ls`: 1 taken, 0 free, and by whom (to free()); *shared. */
int gpu_reserved(const struct gpu_host *h, const struct gpu_grant *g, char **who, bool *shared,
	struct err *e) must_check;

#endif
