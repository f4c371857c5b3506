/* svrun doctor: GPUs that are there, whether a driver has them, their nodes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "svrun/doctor.h"

/* ---- the PCI bus: what is there, whoever drives it ---- */

struct card {
	char driver[64]; /* "": none */
	bool nvidia;
};

/* A GPU of NVIDIA or AMD: class 03, or 12 (AMD's accelerators). */
static bool is_gpu(struct doctor *d, int dir, const char *name, struct card *c)
{
	auto_free char *base = mem_printf("bus/pci/devices/%s", name);
	auto_free char *vendor_path = mem_printf("%s/vendor", base);
	auto_free char *class_path = mem_printf("%s/class", base);
	auto_free char *driver_path = mem_printf("%s/driver", base);
	const char *vendor = look_text(d, dir, vendor_path), *class = look_text(d, dir, class_path);
	char link[PATH_MAX / 4];
	ssize_t n;

	if (!vendor || !class || (!str_starts(class, "0x03") && !str_starts(class, "0x12")))
		return false;
	c->nvidia = str_eq(vendor, "0x10de");
	if (!c->nvidia && !str_eq(vendor, "0x1002"))
		return false;
	n = readlinkat(dir, driver_path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	c->driver[0] = '\0';
	if (n > 0) {
		const char *slash = strrchr(link, '/');

		snprintf(c->driver, sizeof(c->driver), "%.63s", slash ? slash + 1 : link);
	}
	return true;
}

static const struct {
	const char *driver;
	bool nvidia;
	enum finding_level level;
	const char *what, *advice;
} drivers[] = {
	{"nvidia", true, FINDING_OK, NULL, NULL},
	{"amdgpu", false, FINDING_OK, NULL, NULL},
	{"nouveau", true, FINDING_ERROR, "nouveau has it, with which CUDA does not work",
		"blacklist nouveau (modprobe.d: blacklist nouveau, options nouveau modeset=0), "
		"install "
		"NVIDIA's driver, and boot again"},
	{"vfio-pci", true, FINDING_NOTE, "kept for virtual machines (vfio-pci)", NULL},
	{"vfio-pci", false, FINDING_NOTE, "kept for virtual machines (vfio-pci)", NULL},
	{"radeon", false, FINDING_WARNING, "radeon has it, which cannot compute",
		"use amdgpu, where it knows this GPU"},
};

static void check_card(struct doctor *d, const char *bus, const struct card *c)
{
	const char *maker = c->nvidia ? "NVIDIA" : "AMD";

	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (!str_eq(c->driver, drivers[i].driver) || c->nvidia != drivers[i].nvidia)
			continue;
		if (drivers[i].level != FINDING_OK) /* the inventory tells the good ones */
			found(d, "gpu.driver", drivers[i].level, drivers[i].advice,
				"%s's GPU %s: %s", maker, bus, drivers[i].what);
		return;
	}
	found(d, "gpu.driver", c->nvidia ? FINDING_ERROR : FINDING_WARNING,
		c->nvidia ? "install NVIDIA's driver, or load it: modprobe nvidia (dmesg tells why "
			    "that fails)"
			  : "modprobe amdgpu",
		"%s's GPU %s: %s%s", maker, bus,
		c->driver[0] ? "its driver is " : "no driver has it", c->driver);
}

/* Returns how many GPUs there are. */
static size_t check_cards(struct doctor *d, bool have_nvidia, bool have_amd)
{
	struct dirent **list = NULL;
	int dir = d->host->sys,
	    n = dir < 0 ? 0 : scandirat(dir, "bus/pci/devices", &list, NULL, alphasort);
	size_t cards = 0;

	for (int i = 0; i < n; i++) {
		struct card c;

		if (is_gpu(d, dir, list[i]->d_name, &c)) {
			cards++;
			/* A maker's GPUs are in the inventory: its driver has them. */
			if (c.driver[0] || !(c.nvidia ? have_nvidia : have_amd))
				check_card(d, list[i]->d_name, &c);
		}
		free(list[i]);
	}
	free(list);
	return cards;
}

/* ---- the inventory ---- */

static void tell_gpu(struct doctor *d, const struct gpu_device *g)
{
	const char *model = g->model ? g->model : "of unknown model";
	const char *uuid = g->uuid ? g->uuid : "no UUID told";

	if (g->excluded) {
		found(d, "gpu.excluded", FINDING_NOTE, NULL,
			"%s, %s, %s: excluded by the driver's configuration", model, g->bus, uuid);
		return;
	}
	found(d, "gpu.device", FINDING_OK, NULL, "GPU %u: %s, %s, %s", g->index, model, g->bus,
		uuid);
	if (g->nmigs > 0)
		found(d, "gpu.mig", FINDING_OK, NULL, "GPU %u: in MIG mode, %zu MIG devices",
			g->index, g->nmigs);
}

/* svrun makes the nodes in containers by number; what the host lacks others may need, and the
 * driver's own tools. */
static void check_node(struct doctor *d, const struct gpu_node *n)
{
	struct err e = {0};

	if (!n->exists)
		found(d, "gpu.node", FINDING_WARNING,
			arena_printf(&d->mem,
				"nvidia-modprobe makes it, or: mknod -m %03o %s c %u %u", n->mode,
				n->path, n->major, n->minor),
			"%s is missing", n->path);
	else if (gpu_node_check(d->host, n, &e) < 0)
		found_err(d, "gpu.node", FINDING_ERROR, &e,
			arena_printf(&d->mem, "rm %s, then: mknod -m %03o %s c %u %u", n->path,
				n->mode, n->path, n->major, n->minor));
}

static size_t check_nodes(struct doctor *d, const struct gpu_nodes *v)
{
	for (size_t i = 0; i < v->n; i++)
		check_node(d, &v->v[i]);
	return v->n;
}

static void check_all_nodes(struct doctor *d, const struct gpu_inventory *i)
{
	const struct gpu_nodes *shared[] = {&i->ctl, &i->uvm, &i->uvm_tools, &i->kfd};
	size_t before = d->n, n = 0;

	for (size_t k = 0; k < sizeof(shared) / sizeof(shared[0]); k++)
		n += check_nodes(d, shared[k]);
	for (size_t k = 0; k < i->n; k++) {
		const struct gpu_device *g = &i->v[k];

		n += check_nodes(d, &g->nodes);
		for (size_t m = 0; m < g->nmigs; m++)
			for (size_t c = 0; c < 2; c++, n++)
				check_node(d, &g->migs[m].caps[c]);
	}
	if (d->n == before && n > 0)
		found(d, "gpu.node", FINDING_OK, NULL,
			"%zu device nodes: there, with the driver's numbers", n);
}

static size_t of_maker(const struct gpu_inventory *i, enum gpu_maker maker)
{
	size_t n = 0;

	for (size_t k = 0; k < i->n; k++)
		n += i->v[k].maker == maker;
	return n;
}

static void check_inventory(struct doctor *d, const struct gpu_inventory *i)
{
	size_t nvidia = of_maker(i, GPU_MAKER_NVIDIA), amd = of_maker(i, GPU_MAKER_AMD);
	size_t cards = check_cards(d, nvidia > 0, amd > 0);

	if (i->dxg)
		found(d, "gpu.wsl", FINDING_OK, NULL, "GPUs through /dev/dxg (WSL2)");
	if (i->n == 0 && cards == 0 && !i->dxg)
		found(d, "gpu.none", FINDING_OK, NULL, "no GPU on this host%s",
			d->cuda ? ": there is no driver to be asked" : "");
	for (size_t k = 0; k < i->n; k++)
		tell_gpu(d, &i->v[k]);
	check_all_nodes(d, i);
	if (nvidia > 0 || i->driver) {
		doctor_driver(d, i);
		doctor_fabric(d, i);
	}
	doctor_cdi(d);
	if (d->cuda && nvidia > 0)
		doctor_cuda(d, i);
}

void doctor_gpus(struct doctor *d)
{
	struct gpu_inventory i;
	struct err e = {0};

	if (gpu_inventory_read(&i, d->host, &e) < 0) {
		found_err(d, "gpu.inventory", FINDING_ERROR, &e, GPU_INVENTORY_HINT);
		check_cards(d, true, true);
		return;
	}
	check_inventory(d, &i);
	gpu_inventory_fini(&i);
}
