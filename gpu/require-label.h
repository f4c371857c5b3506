/* A manifest's `gpu`, as an image's label run.svrun.gpu has it. Anybody may have written the label.
 */
#ifndef GPU_REQUIRE_LABEL_H
#define GPU_REQUIRE_LABEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

struct gpu_label {
	const char *mode,
		*vendor; /* "none", "optional", "required"; "any", "nvidia", "amd", "intel" */
	uint32_t count_min, count_max, count_default;                   /* 0: not said */
	uint32_t vram_min;                                              /* GiB */
	bool vram_total;                                                /* of all together */
	const char *cc_min, *cc_max, *cuda_min, *cuda_max, *driver_min; /* or NULL */
	struct strings archs, brands;
	bool forward_compat, no_mig;
	const char *interconnect; /* "none", "nvlink", "rdma" */
};

/* label NULL: mode "none". What it refers to lives in mem or in label. CORRUPT: "run.svrun.gpu:
 * MEMBER: ...". Members that are not known are of a newer builder: left alone. */
int gpu_label_read(
	struct gpu_label *l, const json_t *label, struct arena *mem, struct err *e) must_check;

#endif
