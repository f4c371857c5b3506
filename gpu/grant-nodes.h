/* Device nodes of what was granted, of any maker. Private to gpu/{nvidia,amd}.c. */
#ifndef GPU_GRANT_NODES_H
#define GPU_GRANT_NODES_H

#include "gpu/edits.h"
#include "gpu/inventory.h"

/* Add nodes with "rw" and the groups that may open them; DENIED: something else stands there on the
 * host. Strings are copied. */
int grant_nodes(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_nodes *nodes,
	struct err *e) must_check;
/* card*, renderD* of a GPU, and their links by PCI address. */
int grant_dri(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_device *d,
	struct err *e) must_check;

#endif
