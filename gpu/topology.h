/* How GPUs and RDMA cards are connected, from their places in /sys/bus/pci: the words of
 * `nvidia-smi topo -m`. Links beside PCIe are told only where a file says so: NVLink through an
 * NVSwitch (its driver lists them), XGMI (KFD's io_links). */
#ifndef GPU_TOPOLOGY_H
#define GPU_TOPOLOGY_H

#include "gpu/inventory.h"

enum gpu_path {
	GPU_PATH_SELF,
	GPU_PATH_NVLINK,
	GPU_PATH_XGMI,
	GPU_PATH_PIX,  /* at most one PCIe switch between them */
	GPU_PATH_PXB,  /* several, no host bridge */
	GPU_PATH_PHB,  /* the host bridge */
	GPU_PATH_NODE, /* several host bridges of one NUMA node */
	GPU_PATH_SYS,  /* NUMA nodes */
	GPU_PATH_UNKNOWN,
};
/* "PIX", and what it means. */
const char *gpu_path_name(enum gpu_path p);
const char *gpu_path_meaning(enum gpu_path p);

struct gpu_place {
	const char *name;                /* "GPU0", "mlx5_0" */
	const struct gpu_device *device; /* NULL: a network card */
	const char *path; /* "devices/pci0000:00/0000:00:01.0/0000:01:00.0"; NULL: not in sysfs */
	const char *cpus; /* "0-31", those near it; NULL: not known */
	int numa;
	uint32_t kfd; /* its node in KFD's topology, 0: none */
};
struct gpu_topology {
	struct arena mem;
	struct gpu_place *v; /* GPUs in the inventory's order (not excluded ones), then cards */
	size_t n, ngpus;
	bool nvswitch;
	bool *xgmi; /* ngpus x ngpus */
};

int gpu_topology_read(struct gpu_topology *t, const struct gpu_host *h,
	const struct gpu_inventory *i, struct err *e) must_check;
void gpu_topology_fini(struct gpu_topology *t);
enum gpu_path gpu_topology_path(const struct gpu_topology *t, size_t a, size_t b);

/* Between two places in sysfs, by their paths and NUMA nodes alone. */
enum gpu_path gpu_pci_path(const char *a, int numa_a, const char *b, int numa_b);

#endif
