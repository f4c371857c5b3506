/* AMD's KFD topology: /sys/class/kfd/kfd/topology/nodes/N/properties, "NAME NUMBER" lines. Buffers
 * in, values out. Source: drivers/gpu/drm/amd/amdkfd/kfd_topology.c. */
#ifndef GPU_AMD_SYS_H
#define GPU_AMD_SYS_H

#include "base/mem.h"

struct kfd_properties {
	uint32_t vendor, location, domain, render_minor;
	uint32_t gfx; /* 90402 is gfx942 */
	uint64_t unique_id;
};
/* CORRUPT: a number of these that is none. What is missing is 0. */
int kfd_properties_parse(
	struct kfd_properties *p, const char *name, const char *text, struct err *e) must_check;

/* "gfx942" into out, which is returned. */
const char *kfd_gfx_name(uint32_t gfx, char out[16]);

/* One number of such a text: 1, 0. */
int kfd_number(const char *name, const char *text, const char *key, uint64_t max, uint64_t *v,
	struct err *e) must_check;

#endif
