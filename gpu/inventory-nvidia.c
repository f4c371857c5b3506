/* NVIDIA's half of the inventory. */
#include "gpu/inventory-parts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "gpu/host-files.h"
#include "gpu/nvidia-proc.h"

enum { TEXT_MAX = 16 << 10, MINORS_TEXT_MAX = 1 << 20, INSTANCES_MAX = 64 };

/* ---- capabilities ---- */

struct caps {
	uint32_t major;
	struct buf mig_minors; /* read when a capability's own file lacks its number */
};

/* The node behind a file of capabilities: 1, 0: there is no such file. `table` and `name`: where
 * its minor stands too. */
static int cap_node(struct inventory_reader *r, struct caps *c, const char *file, const char *table,
	const char *name, struct gpu_nodes *to, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	uint32_t minor, mode = 0444, was = r->mode;
	char path[64];
	int rc = host_text(r->h, file, &text, e);

	if (rc <= 0)
		return rc;
	rc = nvidia_key_number(
		file, text.data, "DeviceFileMinor", NVIDIA_CAPS_MINORS - 1, &minor, e);
	if (rc == 0) {
		if (!c->mig_minors.len && host_text(r->h, table, &c->mig_minors, e) < 0)
			return -1;
		rc = nvidia_cap_minor(
			table, c->mig_minors.data ? c->mig_minors.data : "", name, &minor, e);
	}
	if (rc == 0)
		return err_set(e, ERR_CORRUPT, "%s/%s: no DeviceFileMinor, and no %s in %s",
			r->h->prefix, file, name, table);
	if (rc < 0 || nvidia_key_number(file, text.data, "DeviceFileMode", 0777, &mode, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%u", minor);
	r->mode = mode;
	rc = inventory_node(r, to, path, c->major, minor, e) < 0 ? -1 : 1;
	r->mode = was;
	return rc;
}

#define MIG_TABLE "proc/driver/nvidia-caps/mig-minors"
#define CAPS "proc/driver/nvidia/capabilities"

/* One compute instance of GPU instance gi, whose own node is cap. */
static int read_ci(struct inventory_reader *r, struct caps *c, struct gpu_device *d, uint32_t gi,
	const struct gpu_node *cap, uint32_t ci, struct err *e)
{
	struct gpu_nodes node = {0};
	char file[PATH_MAX], name[96];
	struct gpu_mig *m;
	int rc;

	snprintf(name, sizeof(name), "gpu%u/gi%u/ci%u/access", d->minor, gi, ci);
	snprintf(file, sizeof(file), CAPS "/gpu%u/mig/gi%u/ci%u/access", d->minor, gi, ci);
	rc = cap_node(r, c, file, MIG_TABLE, name, &node, e);
	if (rc <= 0)
		return rc;
	if (d->nmigs == INSTANCES_MAX)
		return err_set(e, ERR_CORRUPT, "GPU %s has more than %d MIG devices", d->bus,
			INSTANCES_MAX);
	if (!d->migs)
		d->migs = arena_alloc(&r->i->mem, INSTANCES_MAX * sizeof(*d->migs));
	m = &d->migs[d->nmigs];
	*m = (struct gpu_mig){.gi = gi, .ci = ci, .index = (uint32_t)d->nmigs};
	m->caps[0] = *cap;
	m->caps[1] = node.v[0];
	d->nmigs++;
	return 0;
}

static int read_gi(struct inventory_reader *r, struct caps *c, struct gpu_device *d, uint32_t gi,
	struct err *e)
{
	struct gpu_nodes node = {0};
	char file[PATH_MAX], name[96];
	struct strings names;
	uint32_t ci;
	int rc;

	snprintf(name, sizeof(name), "gpu%u/gi%u/access", d->minor, gi);
	snprintf(file, sizeof(file), CAPS "/gpu%u/mig/gi%u/access", d->minor, gi);
	rc = cap_node(r, c, file, MIG_TABLE, name, &node, e);
	if (rc <= 0)
		return rc;
	snprintf(file, sizeof(file), CAPS "/gpu%u/mig/gi%u", d->minor, gi);
	rc = host_names(r->h, file, 2 * INSTANCES_MAX, &names, &r->i->mem, e);
	for (size_t k = 0; rc >= 0 && k < names.n; k++)
		if (numbered_name(names.v[k], "ci", 4095, &ci))
			rc = read_ci(r, c, d, gi, &node.v[0], ci, e);
	return rc < 0 ? -1 : 0;
}

/* The MIG devices of a GPU, in the order of their GPU and compute instances, as NVML has them. */
static int read_migs(
	struct inventory_reader *r, struct caps *c, struct gpu_device *d, struct err *e)
{
	char folder[PATH_MAX];
	struct strings names;
	uint32_t gi;
	int rc;

	snprintf(folder, sizeof(folder), CAPS "/gpu%u/mig", d->minor);
	rc = host_names(r->h, folder, 2 * INSTANCES_MAX, &names, &r->i->mem, e);
	for (size_t k = 0; rc >= 0 && k < names.n; k++)
		if (numbered_name(names.v[k], "gi", 4095, &gi))
			rc = read_gi(r, c, d, gi, e);
	return rc < 0 ? -1 : 0;
}

static int read_caps(struct inventory_reader *r, struct err *e)
{
	struct caps c = {.mig_minors = BUF_INIT(MINORS_TEXT_MAX)};
	struct gpu_inventory *i = r->i;
	int rc = inventory_major(r, "nvidia-caps", &c.major, e);

	if (rc <= 0)
		return rc;
	if (cap_node(r, &c, CAPS "/mig/config", MIG_TABLE, "config", &i->mig_config, e) < 0 ||
		cap_node(r, &c, CAPS "/mig/monitor", MIG_TABLE, "monitor", &i->mig_monitor, e) < 0)
		rc = -1;
	for (size_t k = 0; rc >= 0 && k < i->n; k++)
		rc = read_migs(r, &c, &i->v[k], e);
	buf_fini(&c.mig_minors);
	c.mig_minors = BUF_INIT(MINORS_TEXT_MAX); /* the other tables are read into it */
	if (rc >= 0)
		rc = cap_node(r, &c, "proc/driver/nvidia-nvlink/capabilities/fabric-mgmt",
			"proc/driver/nvidia-caps/nvlink-minors", "fabric-mgmt", &i->fabric_mgmt, e);
	buf_fini(&c.mig_minors);
	c.mig_minors = BUF_INIT(MINORS_TEXT_MAX);
	if (rc >= 0)
		rc = cap_node(r, &c, CAPS "/fabric-imex-mgmt", "proc/driver/nvidia-caps/sys-minors",
			"fabric-imex-mgmt", &i->fabric_mgmt, e);
	buf_fini(&c.mig_minors);
	return rc < 0 ? -1 : 0;
}

/* ---- GPUs ---- */

static int read_gpu(struct inventory_reader *r, const char *folder, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	struct nvidia_information info;
	struct pci_bus named;
	char file[PATH_MAX], bus[PCI_BUS_TEXT], node[32];
	struct gpu_device *d;
	int rc;

	if (pci_bus_parse(&named, folder, false) < 0)
		return 0;
	snprintf(file, sizeof(file), "proc/driver/nvidia/gpus/%s/information", folder);
	rc = host_text(r->h, file, &text, e);
	if (rc <= 0)
		return rc;
	if (nvidia_information_parse(&info, file, text.data ? text.data : "", &r->i->mem, e) < 0)
		return -1;
	if (pci_bus_compare(&named, &info.bus) != 0)
		return err_set(e, ERR_CORRUPT, "%s/%s is of another GPU: %s", r->h->prefix, file,
			pci_bus_text(&info.bus, bus));
	d = inventory_device(r, GPU_MAKER_NVIDIA, pci_bus_text(&info.bus, bus), e);
	if (!d)
		return -1;
	d->minor = info.minor;
	d->uuid = info.uuid;
	d->model = info.model;
	d->firmware = info.firmware;
	d->excluded = info.excluded;
	snprintf(node, sizeof(node), "/dev/nvidia%u", d->minor);
	return inventory_node(r, &d->nodes, node, NVIDIA_MAJOR, d->minor, e);
}

static int read_gpus(struct inventory_reader *r, struct err *e)
{
	struct strings names;
	int rc = host_names(r->h, "proc/driver/nvidia/gpus", 2 * GPUS_MAX, &names, &r->i->mem, e);

	for (size_t k = 0; rc >= 0 && k < names.n; k++)
		rc = read_gpu(r, names.v[k], e);
	return rc < 0 ? -1 : 0;
}

/* ---- what is not of one GPU ---- */

/* One node of a driver with a major of its own, if that is loaded. */
static int one_node(struct inventory_reader *r, const char *driver, const char *path,
	uint32_t minor, struct gpu_nodes *to, struct err *e)
{
	uint32_t major;
	int rc = inventory_major(r, driver, &major, e);

	return rc <= 0 ? rc : inventory_node(r, to, path, major, minor, e);
}

static int numbered(struct inventory_reader *r, const char *driver, const char *folder,
	const char *prefix, struct gpu_nodes *to, struct err *e)
{
	uint32_t major;
	int rc = inventory_major(r, driver, &major, e);

	return rc <= 0 ? rc : inventory_numbered(r, to, folder, prefix, major, e);
}

static int read_common(struct inventory_reader *r, struct err *e)
{
	struct gpu_inventory *i = r->i;
	uint32_t major;
	int modeset;

	if (inventory_node(r, &i->ctl, "/dev/nvidiactl", NVIDIA_MAJOR, NVIDIA_CTL_MINOR, e) < 0 ||
		one_node(r, "nvidia-uvm", "/dev/nvidia-uvm", 0, &i->uvm, e) < 0 ||
		one_node(r, "nvidia-uvm", "/dev/nvidia-uvm-tools", 1, &i->uvm_tools, e) < 0 ||
		one_node(r, "nvidia-nvlink", "/dev/nvidia-nvlink", 0, &i->nvlink, e) < 0 ||
		one_node(r, "gdrdrv", "/dev/gdrdrv", 0, &i->gdrcopy, e) < 0 ||
		numbered(r, "nvidia-fs", "dev", "nvidia-fs", &i->gds, e) < 0 ||
		numbered(r, "nvidia-caps-imex-channels", "dev/nvidia-caps-imex-channels", "channel",
			&i->imex, e) < 0 ||
		one_node(r, "nvidia-nvswitch", "/dev/nvidia-nvswitchctl", NVIDIA_CTL_MINOR,
			&i->nvswitch, e) < 0 ||
		numbered(r, "nvidia-nvswitch", "dev", "nvidia-nvswitch", &i->nvswitch, e) < 0)
		return -1;
	/* Channels are made by whoever wants them: the first tells that there could be any. */
	if (!i->imex.n && one_node(r, "nvidia-caps-imex-channels",
				  "/dev/nvidia-caps-imex-channels/channel0", 0, &i->imex, e) < 0)
		return -1;
	modeset = inventory_major(r, "nvidia-modeset", &major, e);
	if (modeset == 0) /* drivers before 550 have no such name: the node tells */
		modeset = host_stat(r->h, "dev/nvidia-modeset", &(struct stat){0}, e);
	return modeset <= 0 ? modeset
			    : inventory_node(r, &i->modeset, "/dev/nvidia-modeset", NVIDIA_MAJOR,
				      NVIDIA_MODESET_MINOR, e);
}

/* Owner and mode that the driver wants its nodes to have. */
static int read_params(struct inventory_reader *r, struct err *e)
{
	static const char file[] = "proc/driver/nvidia/params";
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	int rc = host_text(r->h, file, &text, e);

	if (rc <= 0)
		return rc;
	if (nvidia_key_number(file, text.data, "DeviceFileUID", UINT32_MAX, &r->uid, e) < 0 ||
		nvidia_key_number(file, text.data, "DeviceFileGID", UINT32_MAX, &r->gid, e) < 0 ||
		nvidia_key_number(file, text.data, "DeviceFileMode", 0777, &r->mode, e) < 0)
		return -1;
	return 0;
}

int inventory_nvidia(struct inventory_reader *r, struct err *e)
{
	static const char file[] = "proc/driver/nvidia/version";
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	char version[32];
	int rc = host_text(r->h, file, &text, e);

	if (rc <= 0) /* no driver: what else may lie about belongs to none */
		return rc;
	if (nvidia_version_parse(
		    file, text.data ? text.data : "", version, &r->i->open_modules, e) < 0)
		return -1;
	r->i->driver = arena_strdup(&r->i->mem, version);
	rc = read_params(r, e) < 0 || read_gpus(r, e) < 0 || read_common(r, e) < 0 ||
			     read_caps(r, e) < 0
		     ? -1
		     : 0;
	r->uid = r->gid = 0;
	r->mode = 0666;
	return rc;
}
