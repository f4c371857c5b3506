/* Keeping GPUs awake: who has /dev/nvidiaN open, so that the driver does not let the GPU go and
 * start it again (1 to 3 s) for whoever comes next. One lock file a GPU, RUN/held/BUS. */
#ifndef SVRUN_GPU_HOLD_H
#define SVRUN_GPU_HOLD_H

#include "gpu/inventory.h"

/* Open the GPU's node and take its lock; the descriptors are *node and *lock, close-on-exec.
 * EXISTS: somebody holds it, and who. Errors: DENIED (the node is not the GPU's), SYSTEM (the
 * driver does not answer). */
int gpu_hold(const struct gpu_host *h, const struct gpu_device *g, int *node, int *lock,
	struct err *e) must_check;
/* Does somebody? */
bool gpu_hold_is(const struct gpu_host *h, const struct gpu_device *g);

/* Tell systemd (or whoever gave $NOTIFY_SOCKET) one line: "READY=1". Nothing without that.
 * Source: sd_notify(3). */
int notify_manager(const char *line, struct err *e) must_check;

#endif
