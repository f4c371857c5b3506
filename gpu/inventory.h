/* The GPUs of the host, without any driver library: from /proc/devices, /proc/driver/nvidia*,
 * /sys/class/kfd, /sys/bus/pci and /dev. A few files a GPU are read: microseconds.
 *
 * index: position among the vendor's GPUs in order of PCI bus id: what NVML and nvidia-smi number.
 *        They leave out excluded GPUs, which have none: GPU_NO_INDEX.
 * minor: N of /dev/nvidiaN, order of the driver's probing; it need not be the index.
 * Source: gpu.md 1.1 to 1.3, 1.9, 1.11; the drivers' documentation of these files. */
#ifndef GPU_INVENTORY_H
#define GPU_INVENTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "gpu/host.h"

enum { GPUS_MAX = 248 };
#define GPU_NO_INDEX UINT32_MAX

enum gpu_maker { GPU_MAKER_NVIDIA, GPU_MAKER_AMD };

/* A device node: the same path on the host and in the container. */
struct gpu_node {
	const char *path; /* "/dev/nvidia0" */
	uint32_t major, minor;
	uint32_t mode; /* permission bits */
	uint32_t uid, gid;
	bool exists; /* on the host; numbers are known all the same */
};
struct gpu_nodes {
	struct gpu_node *v;
	size_t n;
};

struct gpu_mig {
	uint32_t gi, ci;
	uint32_t index;          /* among the GPU's MIG devices: "G:INDEX" */
	struct gpu_node caps[2]; /* of the GPU instance, of the compute instance */
	const char *uuid;        /* NULL: not in /proc; a probe may know it (facts.h) */
};

struct gpu_device {
	enum gpu_maker maker;
	uint32_t index, minor;
	const char *uuid; /* "GPU-..."; NULL: the driver does not tell */
	const char *bus; /* "0000:65:00.0", lower case, 4 digits of domain (8 when it needs them) */
	const char *model;    /* "NVIDIA H200" */
	const char *firmware; /* or NULL */
	const char *arch;     /* AMD: "gfx942"; NULL */
	uint64_t vram;        /* bytes, where a file says so (AMD); 0: unknown */
	bool excluded;        /* by the driver's configuration: not given to anybody */
	int numa;             /* node, or -1 */
	struct gpu_nodes
		nodes;        /* /dev/nvidiaN, or /dev/kfd's renderD*: what this GPU alone needs */
	struct gpu_nodes dri; /* card*, renderD*; the by-path links are made from bus */
	struct gpu_mig *migs;
	size_t nmigs;
};

struct gpu_inventory {
	struct arena mem;
	struct gpu_device *v; /* excluded ones too; sorted by maker, index */
	size_t n;
	const char *driver; /* NVIDIA's kernel module: "580.126.09"; NULL: not loaded */
	bool open_modules;  /* the open flavour */
	/* NVIDIA's nodes that are not of one GPU; n 0: the host has none. */
	struct gpu_nodes ctl, uvm, uvm_tools, modeset, nvswitch, nvlink, gds, gdrcopy;
	struct gpu_nodes imex; /* the channels that exist; channel 0 alone where none does yet */
	struct gpu_nodes infiniband;                           /* uverbs*, rdma_cm: any maker's */
	struct gpu_nodes mig_config, mig_monitor, fabric_mgmt; /* capabilities' nodes */
	struct gpu_nodes kfd;                                  /* AMD's /dev/kfd */
	bool dxg;                                              /* WSL2: /dev/dxg instead of all */
};

#define GPU_INVENTORY_HINT                                                                         \
	"the driver's files say what cannot be: load its module anew, or boot again"
/* A host without GPUs is an empty inventory. Files that cannot be understood are CORRUPT with their
 * path: half an inventory would give away the wrong GPU; the hint says what may help. */
int gpu_inventory_read(struct gpu_inventory *i, const struct gpu_host *h, struct err *e) must_check;
void gpu_inventory_fini(struct gpu_inventory *i);

/* Is what stands at n->path on the host (below h->dev) a character device of these numbers, not a
 * link? The node may be made by us in the container whether it exists or not; one that exists and
 * is something else is DENIED. */
int gpu_node_check(const struct gpu_host *h, const struct gpu_node *n, struct err *e) must_check;

#endif
