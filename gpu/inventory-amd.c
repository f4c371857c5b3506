/* AMD's half of the inventory: GPUs that can compute, as KFD lists them. */
#include "gpu/inventory-parts.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "gpu/amd-sys.h"
#include "gpu/host-files.h"
#include "gpu/nvidia-proc.h"

enum { TEXT_MAX = 64 << 10, KFD_NODES_MAX = 4096, BANKS_MAX = 64, AMD = 0x1002 };

#define NODES "sys/class/kfd/kfd/topology/nodes"

/* The GPU's own memory: banks of heap type 1 (public) and 2 (private). */
static int read_vram(struct inventory_reader *r, const char *node, uint64_t *vram, struct err *e)
{
	char folder[PATH_MAX], file[PATH_MAX];
	struct strings banks;
	int rc;

	snprintf(folder, sizeof(folder), NODES "/%s/mem_banks", node);
	rc = host_names(r->h, folder, BANKS_MAX, &banks, &r->i->mem, e);
	for (size_t k = 0; rc > 0 && k < banks.n; k++) {
		auto_buf struct buf text = BUF_INIT(TEXT_MAX);
		uint64_t heap = 0, size = 0;

		snprintf(file, sizeof(file), NODES "/%s/mem_banks/%s/properties", node, banks.v[k]);
		rc = host_text(r->h, file, &text, e);
		if (rc <= 0)
			break;
		if (kfd_number(file, text.data, "heap_type", 100, &heap, e) < 0 ||
			kfd_number(file, text.data, "size_in_bytes", UINT64_MAX / BANKS_MAX, &size,
				e) < 0)
			return -1;
		if (heap == 1 || heap == 2)
			*vram += size;
	}
	return rc < 0 ? -1 : 0;
}

static int read_model(struct inventory_reader *r, struct gpu_device *d, struct err *e)
{
	char file[PATH_MAX], name[128];
	int rc;

	snprintf(file, sizeof(file), "sys/bus/pci/devices/%s/product_name", d->bus);
	rc = host_line(r->h, file, name, sizeof(name), e);
	if (rc < 0)
		return -1;
	if (rc > 0)
		str_plain(name, "");
	if (rc > 0 && name[0] && str_utf8(name, strlen(name)))
		d->model = arena_strdup(&r->i->mem, name);
	else /* consumer cards do not have the file */
		d->model = arena_printf(&r->i->mem, "AMD %s", d->arch);
	return 0;
}

static int add_gpu(
	struct inventory_reader *r, const char *node, const struct kfd_properties *p, struct err *e)
{
	/* location_id: bus and devfn; a part of a partitioned GPU has its number above them. */
	const struct pci_bus at = {
		p->domain, (uint8_t)(p->location >> 8), (p->location >> 3) & 31, p->location & 7};
	char bus[PCI_BUS_TEXT], gfx[16], path[32];
	struct gpu_device *d = inventory_device(r, GPU_MAKER_AMD, pci_bus_text(&at, bus), e);
	uint32_t drm;
	int rc;

	if (!d)
		return -1;
	d->minor = p->render_minor;
	d->arch = arena_strdup(&r->i->mem, kfd_gfx_name(p->gfx, gfx));
	if (p->unique_id)
		d->uuid = arena_printf(&r->i->mem, "GPU-%016" PRIx64, p->unique_id);
	if (read_model(r, d, e) < 0 || read_vram(r, node, &d->vram, e) < 0)
		return -1;
	rc = inventory_major(r, "drm", &drm, e);
	if (rc <= 0)
		return rc;
	snprintf(path, sizeof(path), "/dev/dri/renderD%u", d->minor);
	return inventory_node(r, &d->nodes, path, drm, d->minor, e);
}

static int read_node(struct inventory_reader *r, const char *node, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	struct kfd_properties p;
	char file[PATH_MAX];
	int rc;

	snprintf(file, sizeof(file), NODES "/%s/properties", node);
	rc = host_text(r->h, file, &text, e);
	if (rc <= 0)
		return rc;
	if (kfd_properties_parse(&p, file, text.data ? text.data : "", e) < 0)
		return -1;
	return p.vendor == AMD && p.gfx && p.render_minor ? add_gpu(r, node, &p, e) : 0;
}

int inventory_amd(struct inventory_reader *r, struct err *e)
{
	struct strings names;
	uint32_t major;
	int rc = inventory_major(r, "kfd", &major, e);

	if (rc <= 0)
		return rc;
	if (inventory_node(r, &r->i->kfd, "/dev/kfd", major, 0, e) < 0)
		return -1;
	rc = host_names(r->h, NODES, KFD_NODES_MAX, &names, &r->i->mem, e);
	for (size_t k = 0; rc >= 0 && k < names.n; k++)
		rc = read_node(r, names.v[k], e);
	return rc < 0 ? -1 : 0;
}
