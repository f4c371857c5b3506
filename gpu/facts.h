/* What a GPU is capable of, which the kernel's files do not say: from a probe that ran since the
 * boot with this driver (RUN/probe.json, written by `svrun doctor` and `svrun gpu hold`), else from
 * a table of models by name. Never by loading the driver's library. */
#ifndef GPU_FACTS_H
#define GPU_FACTS_H

#include <jansson.h>

#include "gpu/inventory.h"

struct gpu_facts {
	uint32_t vram_mib;  /* 0: unknown */
	uint32_t cc;        /* compute capability, 90 for 9.0; 0: unknown */
	const char *brand;  /* "tesla", "geforce", "nvidiartx", ... as NVIDIA_REQUIRE_* has them; or
			       NULL */
	bool datacenter;    /* may use forward compatibility */
	bool nvlink;        /* the model has it; whether it is wired: topology */
	const char *source; /* "probe", "model", "sysfs": for messages */
};
struct gpu_probe {
	json_t *doc; /* NULL: none of this boot and driver */
};
/* The kept answer of the last probe of this boot and driver version; a stale one counts as none. */
int gpu_probe_load(struct gpu_probe *p, const struct gpu_host *h, const struct gpu_inventory *i,
	struct err *e) must_check;
void gpu_probe_free(struct gpu_probe *p);
/* The UUIDs of MIG devices, which /proc does not have, where the probe leaves no doubt. */
void gpu_probe_name_migs(struct gpu_inventory *i, const struct gpu_probe *p);
void gpu_facts_of(const struct gpu_device *d, const struct gpu_mig *mig, const struct gpu_probe *p,
	struct gpu_facts *f);
/* The greatest CUDA version that a driver serves: "13.0" for 580; the probe's when there is one.
 * NULL: a driver that is older than the table. *at_least: it is newer than the table's last, and
 * serves that version or a newer one. */
const char *gpu_driver_cuda(const char *driver, const struct gpu_probe *p, bool *at_least);

#endif
