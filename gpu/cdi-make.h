/* A CDI spec of the host's GPUs, for engines other than us. It needs no hook: libraries are mounted
 * under each name that programs load them by, in the folders where the loaders of Debian's and of
 * Fedora's relatives look without a cache. Source: CDI 1.1 SPEC.md; gpu.md 1.1, 1.4, 2.1. */
#ifndef GPU_CDI_MAKE_H
#define GPU_CDI_MAKE_H

#include "gpu/inventory.h"
#include "gpu/view.h"

struct cdi_making {
	enum gpu_maker maker;
	const char *vendor, *class; /* "nvidia.com", "gpu" */
	unsigned caps;              /* nodes of graphics with those that have it */
	/* Out: nodes that the spec would have, were they there; in mem. */
	struct strings absent;
	struct arena mem;
};

/* f: the driver's files, NULL without (AMD's are in the image). Devices are named by index and by
 * UUID, MIG devices G:M, and "all". Nodes are given by path: their numbers are the next boot's
 * business; those with h->prefix by hostPath, too. The version is the least that its members need.
 * The caller owns the document. Errors: NOT_FOUND (no such GPU), UNSUPPORTED (WSL2), USAGE (vendor,
 * class). */
json_t *cdi_make(struct cdi_making *m, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct driver_files *f, struct err *e) must_check;
void cdi_making_fini(struct cdi_making *m);

#endif
