/* What a container sees of the driver in its /proc. A container without the driver's files there
 * needs nothing. Private to gpu_edits_fill(). Source: gpu.md 1.2. */
#ifndef GPU_FILL_PROC_H
#define GPU_FILL_PROC_H

#include "gpu/root-file.h"

/* Cover /proc/driver/nvidia/params by a copy that says ModifyDeviceFiles: 0: else the driver's
 * libraries, where they run as root, make and change nodes. */
int fill_proc_params(struct root_files *f, struct err *e) must_check;
/* Cover /proc/driver/nvidia/gpus, so that only GPUs at these PCI addresses are there. */
int fill_proc_gpus(
	struct root_files *f, const char *const *buses, size_t n, struct err *e) must_check;

#endif
