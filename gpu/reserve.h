/* Who has which GPU: one lock file a GPU (or MIG device) in RUN/locks/, held by a lock of an open
 * file description (fcntl(2), F_OFD_SETLK) for as long as whoever has it lives; the kernel drops it
 * however that ends. Exclusive, unless all who have it asked to share. The file's text says who
 * took it last, for people.
 *
 * Whoever has a GPU has its MIG devices, and whoever has one of these keeps others from the whole.
 *
 * An allocation (RUN/allocations/NAME/, `svrun gpu allocate`) is a reservation that others may take
 * parts of: it has the lock files of what it holds, once more, for those who run within it. */
#ifndef GPU_RESERVE_H
#define GPU_RESERVE_H

#include "gpu/request.h"

/* The allocation that a program runs within, in its environment. */
#define GPU_ALLOCATION_ENV "SVRUN_GPU_ALLOCATION"

struct gpu_reservation {
	int *fds; /* held locks, close-on-exec */
	size_t n;
};

struct gpu_reserve_terms {
	const char *who;    /* "instance NAME" */
	const char *within; /* the name of an allocation, whose GPUs alone can be had; NULL: none */
	/* Where a number is asked for: leave out those for which it returns false; NULL: none. */
	bool (*fits)(void *ctx, const struct gpu_grant *g);
	void *ctx;
};

/* Take what r asks for: by name, or r->count of those that are free (whole GPUs of one maker, else
 * MIG devices), best connected first (same NUMA node). All or nothing; who asks at once waits for
 * the other. g receives what was taken, by maker and index. Errors: EXISTS tells which are taken
 * and by whom; NOT_FOUND: the host, or the allocation, does not have that many; DENIED: not of the
 * allocation. */
int gpu_reserve(struct gpu_reservation *v, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct gpu_request *r, const struct gpu_reserve_terms *t, struct gpu_grants *g,
	struct err *e) must_check;
void gpu_release(struct gpu_reservation *v);
/* Let programs that we start hold the locks, too: they live on when only we are killed. */
int gpu_reservation_inherit(const struct gpu_reservation *v, struct err *e) must_check;

/* Make what g has, which v holds, an allocation: programs within find its name (to free()) in their
 * environment. It ends with the last of those that hold v. What ended before is cleaned up. */
int gpu_allocation_make(struct gpu_reservation *v, const struct gpu_host *h,
	const struct gpu_grants *g, char **name, struct err *e) must_check;

/* 1 taken, 0 free, and by whom (to free()); *shared: others may have it too. Takes no lock. */
int gpu_reserved(const struct gpu_host *h, const struct gpu_grant *g, char **who, bool *shared,
	struct err *e) must_check;

/* "GPU 0 (NVIDIA H200)", "MIG device 0:1 (NVIDIA H200)": to free(). */
char *gpu_grant_text(const struct gpu_grant *g);

#endif
