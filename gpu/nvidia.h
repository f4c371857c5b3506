/* From granted GPUs to edits, without the vendor's toolkit: nodes by minor with "rw", the driver
 * view, /proc's view of the GPUs, NVIDIA_VISIBLE_DEVICES=void (so that an engine's own hook adds
 * nothing). CUDA's order of devices is left to the image: it only matters where GPUs differ, and
 * there some programs count on the fastest being first. Source: gpu.md 1.1 to 1.9. */
#ifndef GPU_NVIDIA_H
#define GPU_NVIDIA_H

#include "gpu/edits.h"
#include "gpu/request.h"

/* What the caller allows beside GPUs: --device names "gds", "gdrcopy", "imex", "nvswitch", "mps",
 * "dri", "infiniband", "modeset", "mig-config", "mig-monitor", "fabric-mgmt". */
struct gpu_extras {
	bool gds, gdrcopy, nvswitch, mps, dri, infiniband, modeset, mig_config, mig_monitor,
		fabric_mgmt;
	bool imex_all;
	uint32_t imex[64]; /* channels */
	size_t nimex;
	int compat; /* forward compatibility: 1 always, -1 never, 0 by the note's rule */
};
/* One word of --device that is not a CDI name: "imex=3", "imex=all". USAGE lists the words. */
int gpu_extras_parse(struct gpu_extras *x, const char *word, struct err *e) must_check;

/* g may be empty: then the driver's files alone (caps), or what extras name. caps 0: no files.
 * Strings are copied. Errors: NOT_FOUND (a node or driver that is not there), DENIED. */
int gpu_nvidia_edits(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct gpu_grants *g, unsigned caps, const struct gpu_extras *extras,
	struct err *e) must_check;
/* /dev/kfd, renderD*, card*, the groups of the nodes; AMD's user space is in the image. */
int gpu_amd_edits(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct gpu_grants *g, struct err *e) must_check;

#endif
