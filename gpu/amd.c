#include "gpu/grant-nodes.h"
#include "gpu/nvidia.h"

/* No driver files and no environment: ROCm is in the image, and finds what it may open. */
int gpu_amd_edits(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct gpu_grants *g, struct err *e)
{
	bool any = false;

	for (size_t k = 0; k < g->n; k++) {
		const struct gpu_device *d = g->v[k].device;

		if (d->maker != GPU_MAKER_AMD)
			continue;
		if (grant_nodes(x, h, &d->nodes, e) < 0 || grant_dri(x, h, d, e) < 0)
			return -1;
		any = true;
	}
	if (!any)
		return 0;
	if (!i->kfd.n)
		return err_set(e, ERR_NOT_FOUND, "the host has no /dev/kfd");
	x->no_mknod = true;
	return grant_nodes(x, h, &i->kfd, e);
}
