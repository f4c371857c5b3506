/* What is known of a model by its name alone, for hosts where nobody asked the driver yet. */
#ifndef GPU_MODELS_H
#define GPU_MODELS_H

#include <stdbool.h>
#include <stdint.h>

struct gpu_model {
	const char *name;  /* as the driver prints it */
	uint32_t vram_mib; /* as nvidia-smi has it; of variants with one name the smallest */
	uint32_t cc;
	const char *brand; /* NVML's, in the words of NVIDIA_REQUIRE_* */
	bool datacenter;   /* forward compatibility works on it */
	bool nvlink;       /* has the links; not whether they are wired */
};

/* NULL: not in the table. "NVIDIA " before the name is not compared: older drivers leave it out. */
const struct gpu_model *gpu_model_find(const char *name);

/* The greatest CUDA version of a driver's branch: "13.0" for 580; NULL: older than the table.
 * *newer: than the table's last, whose version is returned. Source: CUDA's release notes, table 3.
 */
const char *gpu_model_cuda(uint32_t branch, bool *newer);

#endif
