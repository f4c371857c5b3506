/* What the makers' halves of the inventory share. */
#ifndef GPU_INVENTORY_PARTS_H
#define GPU_INVENTORY_PARTS_H

#include "gpu/inventory.h"

enum { NODES_MAX = 4096 }; /* of one kind: IMEX has 2048 channels */

struct inventory_reader {
	struct gpu_inventory *i;
	const struct gpu_host *h;
	const char *devices; /* the text of /proc/devices; "" */
	size_t cap;          /* of i->v while it grows, on the heap */
	/* What a node gets where there is none yet. */
	uint32_t uid, gid, mode;
};

/* One more device, zeroed but for what its place in PCI tells (NUMA, DRI nodes). bus: as in sysfs.
 * The pointer is good until the next one. Errors: CORRUPT (too many). */
struct gpu_device *inventory_device(struct inventory_reader *r, enum gpu_maker maker,
	const char *bus, struct err *e) must_check;

/* Add the node at path ("/dev/nvidia0"), whether it is there or not; what is there tells mode and
 * owner. */
int inventory_node(struct inventory_reader *r, struct gpu_nodes *to, const char *path,
	uint32_t major, uint32_t minor, struct err *e) must_check;

/* The major of a name in /proc/devices: 1, 0. */
int inventory_major(
	struct inventory_reader *r, const char *name, uint32_t *major, struct err *e) must_check;

/* The nodes in folder ("dev", "dev/infiniband") called prefix and a number: those that are of this
 * major. */
int inventory_numbered(struct inventory_reader *r, struct gpu_nodes *to, const char *folder,
	const char *prefix, uint32_t major, struct err *e) must_check;

int inventory_nvidia(struct inventory_reader *r, struct err *e) must_check;
int inventory_amd(struct inventory_reader *r, struct err *e) must_check;

#endif
