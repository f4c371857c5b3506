/* Ask NVIDIA's driver about its GPUs, through svrun-gpu-probe: a process of its own, with a
 * deadline, an environment of what it needs and no descriptor of ours, of which nothing is left
 * afterwards. */
#ifndef SVRUN_GPU_ASK_H
#define SVRUN_GPU_ASK_H

#include <jansson.h>

#include "gpu/inventory.h"

enum { GPU_ASK_SECONDS = 30 }; /* eight GPUs without persistence take some ten */

/* The answer (gpu-answer.h), in which calls may have failed: to json_decref(). library: a path, or
 * NULL: the libcuda that the host's loader or the driver view would take. Errors: NOT_FOUND (no
 * driver files; no probe program), SYSTEM (it hung, crashed: names the call), CORRUPT (what it said
 * cannot be). */
json_t *gpu_ask(const struct gpu_host *h, const struct gpu_inventory *i, const char *library,
	unsigned seconds, struct err *e) must_check;

#endif
