#include "gpu/inventory.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "gpu/host-files.h"
#include "gpu/inventory-parts.h"
#include "gpu/nvidia-proc.h"

enum { DEVICES_TEXT_MAX = 256 << 10, DRI_MAX = 64 };

/* ---- nodes ---- */

static void add_node(struct arena *mem, struct gpu_nodes *to, const struct gpu_node *n)
{
	struct gpu_node *grown;

	/* A full block of a power of two is copied into one twice as large. */
	if ((to->n & (to->n - 1)) == 0) {
		grown = arena_alloc(mem, (to->n ? 2 * to->n : 1) * sizeof(*grown));
		if (to->n)
			memcpy(grown, to->v, to->n * sizeof(*grown));
		to->v = grown;
	}
	to->v[to->n++] = *n;
}

int inventory_node(struct inventory_reader *r, struct gpu_nodes *to, const char *path,
	uint32_t major, uint32_t minor, struct err *e)
{
	struct gpu_node n = {
		.major = major, .minor = minor, .mode = r->mode, .uid = r->uid, .gid = r->gid};
	struct stat st;
	int there = host_stat(r->h, path + 1, &st, e);

	if (there < 0)
		return -1;
	n.exists = there;
	if (there && S_ISCHR(st.st_mode) && st.st_rdev == makedev(major, minor)) {
		n.mode = st.st_mode & 07777;
		n.uid = st.st_uid;
		n.gid = st.st_gid;
	}
	n.path = arena_strdup(&r->i->mem, path);
	add_node(&r->i->mem, to, &n);
	return 0;
}

int inventory_major(struct inventory_reader *r, const char *name, uint32_t *major, struct err *e)
{
	return proc_devices_major("/proc/devices", r->devices, name, major, e);
}

int inventory_numbered(struct inventory_reader *r, struct gpu_nodes *to, const char *folder,
	const char *prefix, uint32_t major, struct err *e)
{
	struct strings names;
	int rc = host_names(r->h, folder, (size_t)1 << 20, &names, &r->i->mem, e);

	for (size_t k = 0; rc > 0 && k < names.n; k++) {
		char path[PATH_MAX];
		struct stat st;
		uint32_t n;

		if (!numbered_name(names.v[k], prefix, UINT32_MAX, &n))
			continue;
		snprintf(path, sizeof(path), "/%s/%s", folder, names.v[k]);
		if (to->n == NODES_MAX)
			return err_set(e, ERR_CORRUPT, "%s/%s: more than %d of %s", r->h->prefix,
				folder, NODES_MAX, prefix);
		rc = host_stat(r->h, path + 1, &st, e);
		if (rc <= 0 || !S_ISCHR(st.st_mode) || major(st.st_rdev) != major) {
			rc = rc < 0 ? -1 : 1; /* gone, or not this driver's */
			continue;
		}
		rc = inventory_node(r, to, path, major, minor(st.st_rdev), e) < 0 ? -1 : 1;
	}
	return rc < 0 ? -1 : 0;
}

int gpu_node_check(const struct gpu_host *h, const struct gpu_node *n, struct err *e)
{
	struct stat st;
	int there = host_stat(h, n->path + 1, &st, e);

	if (there <= 0)
		return there;
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(n->major, n->minor))
		return 0;
	err_set(e, ERR_DENIED, "%s%s is not the character device %u:%u", h->prefix, n->path,
		n->major, n->minor);
	return err_hint(e, "remove it: the driver's nvidia-modprobe, or a start, makes it anew");
}

/* ---- a device's place in PCI ---- */

static int read_numa(const struct gpu_host *h, const char *pci, int *numa, struct err *e)
{
	char path[PATH_MAX], line[32];
	int rc;
	uint64_t v;

	*numa = -1;
	snprintf(path, sizeof(path), "%s/numa_node", pci);
	rc = host_line(h, path, line, sizeof(line), e);
	if (rc > 0 && str_u64(line, 4095, &v) == 0)
		*numa = (int)v;
	return rc < 0 ? -1 : 0;
}

/* "drm/card1/dev" says "226:1". */
static int read_dri(
	struct inventory_reader *r, const char *pci, struct gpu_nodes *to, struct err *e)
{
	char path[PATH_MAX], line[32], node[80];
	struct strings names;
	uint32_t drm = 0, n;
	uint64_t minor;
	int rc;

	snprintf(path, sizeof(path), "%s/drm", pci);
	rc = host_names(r->h, path, DRI_MAX, &names, &r->i->mem, e);
	if (rc > 0)
		rc = inventory_major(r, "drm", &drm, e);
	for (size_t k = 0; rc > 0 && k < names.n; k++) {
		const char *colon;

		if (!numbered_name(names.v[k], "card", 4095, &n) &&
			!numbered_name(names.v[k], "renderD", 4095, &n))
			continue;
		snprintf(path, sizeof(path), "%s/drm/%s/dev", pci, names.v[k]);
		rc = host_line(r->h, path, line, sizeof(line), e);
		colon = rc > 0 ? strchr(line, ':') : NULL;
		if (rc < 0)
			return -1;
		if (!colon || str_u64(colon + 1, 1 << 20, &minor) < 0)
			return err_set(
				e, ERR_CORRUPT, "%s/%s has no device number", r->h->prefix, path);
		snprintf(node, sizeof(node), "/dev/dri/%s", names.v[k]);
		rc = inventory_node(r, to, node, drm, (uint32_t)minor, e) < 0 ? -1 : 1;
	}
	return rc < 0 ? -1 : 0;
}

struct gpu_device *inventory_device(
	struct inventory_reader *r, enum gpu_maker maker, const char *bus, struct err *e)
{
	struct gpu_device *d;
	char pci[64];

	if (r->i->n == GPUS_MAX) {
		err_set(e, ERR_CORRUPT, "more than %d GPUs", GPUS_MAX);
		return NULL;
	}
	mem_grow(&r->i->v, &r->cap, r->i->n);
	d = &r->i->v[r->i->n];
	*d = (struct gpu_device){.maker = maker, .bus = arena_strdup(&r->i->mem, bus)};
	snprintf(pci, sizeof(pci), "sys/bus/pci/devices/%s", bus);
	if (read_numa(r->h, pci, &d->numa, e) < 0 || read_dri(r, pci, &d->dri, e) < 0)
		return NULL;
	r->i->n++;
	return d;
}

/* ---- the whole ---- */

static int by_bus(const void *a, const void *b)
{
	const struct gpu_device *x = a, *y = b;
	struct pci_bus i = {0}, j = {0};
	int order;

	if (x->maker != y->maker)
		return x->maker < y->maker ? -1 : 1;
	if (pci_bus_parse(&i, x->bus, false) < 0 || pci_bus_parse(&j, y->bus, false) < 0)
		return strcmp(x->bus, y->bus);
	order = pci_bus_compare(&i, &j);
	return order ? order : (x->minor > y->minor) - (x->minor < y->minor);
}

static void set_indexes(struct gpu_inventory *i)
{
	uint32_t next[2] = {0};

	if (i->n)
		qsort(i->v, i->n, sizeof(*i->v), by_bus);
	for (size_t k = 0; k < i->n; k++)
		i->v[k].index = i->v[k].excluded ? GPU_NO_INDEX : next[i->v[k].maker]++;
}

/* Two GPUs of one minor, UUID or place: one of them would be given away twice. */
static int check_unique(const struct gpu_inventory *i, struct err *e)
{
	for (size_t a = 0; a < i->n; a++) {
		const struct gpu_device *x = &i->v[a];

		for (size_t b = a + 1; b < i->n && x->maker == GPU_MAKER_NVIDIA; b++) {
			const struct gpu_device *y = &i->v[b];
			const char *what = y->maker != GPU_MAKER_NVIDIA ? NULL
					   : x->minor == y->minor       ? "minor"
					   : str_eq(x->bus, y->bus)     ? "bus location"
					   : x->uuid && y->uuid && str_eq(x->uuid, y->uuid) ? "UUID"
											    : NULL;

			if (what)
				return err_set(e, ERR_CORRUPT,
					"the GPUs at %s and %s have the same %s", x->bus, y->bus,
					what);
		}
	}
	return 0;
}

static int read_shared(struct inventory_reader *r, struct err *e)
{
	struct gpu_inventory *i = r->i;
	uint32_t major;
	struct stat st;
	int rc = inventory_major(r, "infiniband_verbs", &major, e);

	if (rc > 0)
		rc = inventory_numbered(r, &i->infiniband, "dev/infiniband", "uverbs", major, e);
	if (rc == 0 && i->infiniband.n) { /* a misc device */
		rc = host_stat(r->h, "dev/infiniband/rdma_cm", &st, e);
		if (rc > 0 && S_ISCHR(st.st_mode) && major(st.st_rdev) == 10)
			rc = inventory_node(r, &i->infiniband, "/dev/infiniband/rdma_cm", 10,
				minor(st.st_rdev), e);
	}
	if (rc >= 0)
		rc = host_stat(r->h, "dev/dxg", &st, e);
	i->dxg = rc > 0 && S_ISCHR(st.st_mode);
	return rc < 0 ? -1 : 0;
}

int gpu_inventory_read(struct gpu_inventory *i, const struct gpu_host *h, struct err *e)
{
	auto_buf struct buf devices = BUF_INIT(DEVICES_TEXT_MAX);
	struct inventory_reader r = {.i = i, .h = h, .mode = 0666};
	int rc;

	*i = (struct gpu_inventory){0};
	rc = host_text(h, "proc/devices", &devices, e);
	r.devices = devices.data ? devices.data : "";
	if (rc < 0 || inventory_nvidia(&r, e) < 0 || inventory_amd(&r, e) < 0 ||
		read_shared(&r, e) < 0)
		rc = -1;
	set_indexes(i);
	if (rc < 0 || check_unique(i, e) < 0) {
		gpu_inventory_fini(i);
		return e && e->kind == ERR_CORRUPT ? err_hint(e, GPU_INVENTORY_HINT) : -1;
	}
	return 0;
}

void gpu_inventory_fini(struct gpu_inventory *i)
{
	free(i->v);
	arena_fini(&i->mem);
	*i = (struct gpu_inventory){0};
}
