#include "gpu/topology.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "gpu/amd-sys.h"
#include "gpu/host-files.h"
#include "gpu/models.h"

enum { CARDS_MAX = 256, KFD_NODES_MAX = 4096, LINKS_MAX = 256, TEXT_MAX = 64 << 10, XGMI = 11 };

#define KFD "sys/class/kfd/kfd/topology/nodes"

static const struct {
	const char *name, *meaning;
} words[] = {
	[GPU_PATH_SELF] = {"X", "itself"},
	[GPU_PATH_NVLINK] = {"NVL", "NVLink through an NVSwitch"},
	[GPU_PATH_XGMI] = {"XGMI", "AMD's links between GPUs"},
	[GPU_PATH_PIX] = {"PIX", "at most one PCIe switch"},
	[GPU_PATH_PXB] = {"PXB", "several PCIe switches, no host bridge"},
	[GPU_PATH_PHB] = {"PHB", "a PCIe host bridge, that is the CPU"},
	[GPU_PATH_NODE] = {"NODE", "several host bridges of one NUMA node"},
	[GPU_PATH_SYS] = {"SYS", "the connection between NUMA nodes"},
	[GPU_PATH_UNKNOWN] = {"?", "not in /sys/bus/pci"},
};

const char *gpu_path_name(enum gpu_path p)
{
	return words[p].name;
}

const char *gpu_path_meaning(enum gpu_path p)
{
	return words[p].meaning;
}

/* ---- paths ---- */

static size_t parts(const char *s)
{
	size_t n = 1;

	for (; *s; s++)
		n += *s == '/';
	return n;
}

enum gpu_path gpu_pci_path(const char *a, int numa_a, const char *b, int numa_b)
{
	size_t common = 0, end = 0, rest_a, rest_b;

	if (!a || !b)
		return GPU_PATH_UNKNOWN;
	/* the parts that both begin with: "devices", the root complex, bridges */
	for (size_t i = 0; a[i] == b[i] || !a[i] || !b[i]; i++) {
		bool over_a = !a[i] || a[i] == '/', over_b = !b[i] || b[i] == '/';

		if (over_a && over_b) {
			common++;
			end = i;
		}
		if (!a[i] || !b[i])
			break;
	}
	if (common < 2)
		return numa_a == numa_b ? GPU_PATH_NODE : GPU_PATH_SYS;
	if (common == 2)
		return GPU_PATH_PHB;
	rest_a = a[end] ? parts(a + end + 1) : 0;
	rest_b = b[end] ? parts(b + end + 1) : 0;
	/* a switch's own port, and the device behind it */
	return rest_a <= 2 && rest_b <= 2 ? GPU_PATH_PIX : GPU_PATH_PXB;
}

enum gpu_path gpu_topology_path(const struct gpu_topology *t, size_t a, size_t b)
{
	const struct gpu_place *x = &t->v[a], *y = &t->v[b];

	if (a == b)
		return GPU_PATH_SELF;
	if (x->device && y->device) {
		const struct gpu_model *m = x->device->model ? gpu_model_find(x->device->model)
							     : NULL,
				       *k = y->device->model ? gpu_model_find(y->device->model)
							     : NULL;

		if (t->nvswitch && m && k && m->nvlink && k->nvlink)
			return GPU_PATH_NVLINK;
		if (t->xgmi[a * t->ngpus + b])
			return GPU_PATH_XGMI;
	}
	return gpu_pci_path(x->path, x->numa, y->path, y->numa);
}

/* ---- reading ---- */

static int read_place(
	struct gpu_topology *t, const struct gpu_host *h, struct gpu_place *p, struct err *e)
{
	const char *bus = p->device->bus;
	char path[PATH_MAX], real[PATH_MAX], cpus[1024];
	int rc;

	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", bus);
	rc = host_real(h, path, real, sizeof(real), e);
	if (rc > 0)
		p->path = arena_strdup(&t->mem, real);
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/local_cpulist", bus);
	if (rc >= 0)
		rc = host_line(h, path, cpus, sizeof(cpus), e);
	if (rc > 0 && cpus[0]) {
		str_plain(cpus, "");
		p->cpus = arena_strdup(&t->mem, cpus);
	}
	return rc < 0 ? -1 : 0;
}

/* sys/class/infiniband/mlx5_0 is .../0000:19:00.0/infiniband/mlx5_0 */
static int read_card(struct gpu_topology *t, const struct gpu_host *h, const char *name,
	struct gpu_place *p, struct err *e)
{
	char path[PATH_MAX], real[PATH_MAX], line[1024];
	char *cut;
	uint64_t numa;
	int rc;

	*p = (struct gpu_place){.name = name, .numa = -1};
	snprintf(path, sizeof(path), "sys/class/infiniband/%s", name);
	rc = host_real(h, path, real, sizeof(real), e);
	cut = rc > 0 ? strstr(real, "/infiniband/") : NULL;
	if (!cut)
		return rc < 0 ? -1 : 0;
	*cut = '\0';
	p->path = arena_strdup(&t->mem, real);
	snprintf(path, sizeof(path), "sys/%.*s/numa_node", 512, real);
	rc = host_line(h, path, line, sizeof(line), e);
	if (rc > 0 && str_u64(line, 4095, &numa) == 0)
		p->numa = (int)numa;
	snprintf(path, sizeof(path), "sys/%.*s/local_cpulist", 512, real);
	if (rc >= 0)
		rc = host_line(h, path, line, sizeof(line), e);
	if (rc > 0 && line[0]) {
		str_plain(line, "");
		p->cpus = arena_strdup(&t->mem, line);
	}
	return rc < 0 ? -1 : 0;
}

static int read_places(struct gpu_topology *t, const struct gpu_host *h,
	const struct gpu_inventory *i, struct err *e)
{
	struct strings cards;
	int rc = host_names(h, "sys/class/infiniband", CARDS_MAX, &cards, &t->mem, e);

	if (rc < 0)
		return -1;
	t->v = arena_alloc(&t->mem, (i->n + cards.n + 1) * sizeof(*t->v));
	for (size_t k = 0; k < i->n; k++) {
		struct gpu_place *p = &t->v[t->n];

		if (i->v[k].excluded)
			continue;
		p->device = &i->v[k];
		p->numa = i->v[k].numa;
		p->name = arena_printf(&t->mem, "%s%u",
			i->v[k].maker == GPU_MAKER_AMD ? "AMD" : "GPU", i->v[k].index);
		t->n++;
		if (read_place(t, h, p, e) < 0)
			return -1;
	}
	t->ngpus = t->n;
	for (size_t k = 0; k < cards.n; k++)
		if (read_card(t, h, cards.v[k], &t->v[t->n++], e) < 0)
			return -1;
	return 0;
}

/* ---- XGMI ---- */

static struct gpu_place *place_of_kfd(struct gpu_topology *t, uint32_t node)
{
	for (size_t k = 0; node && k < t->ngpus; k++)
		if (t->v[k].kfd == node)
			return &t->v[k];
	return NULL;
}

static int read_links(struct gpu_topology *t, const struct gpu_host *h, size_t from, struct err *e)
{
	char folder[PATH_MAX], file[PATH_MAX];
	struct strings links;
	int rc;

	snprintf(folder, sizeof(folder), KFD "/%u/io_links", t->v[from].kfd);
	rc = host_names(h, folder, LINKS_MAX, &links, &t->mem, e);
	for (size_t k = 0; rc > 0 && k < links.n; k++) {
		auto_buf struct buf text = BUF_INIT(TEXT_MAX);
		uint64_t type = 0, to = 0;
		const struct gpu_place *other;

		snprintf(file, sizeof(file), KFD "/%u/io_links/%s/properties", t->v[from].kfd,
			links.v[k]);
		rc = host_text(h, file, &text, e);
		if (rc <= 0)
			break;
		if (kfd_number(file, text.data, "type", UINT32_MAX, &type, e) < 0 ||
			kfd_number(file, text.data, "node_to", UINT32_MAX, &to, e) < 0)
			return -1;
		other = type == XGMI ? place_of_kfd(t, (uint32_t)to) : NULL;
		if (other)
			t->xgmi[from * t->ngpus + (size_t)(other - t->v)] = true;
	}
	return rc < 0 ? -1 : 0;
}

/* Which node of KFD is which GPU: by the render node. */
static int name_nodes(struct gpu_topology *t, const struct gpu_host *h, struct err *e)
{
	struct strings nodes;
	char file[PATH_MAX];
	int rc = host_names(h, KFD, KFD_NODES_MAX, &nodes, &t->mem, e);

	for (size_t k = 0; rc > 0 && k < nodes.n; k++) {
		auto_buf struct buf text = BUF_INIT(TEXT_MAX);
		struct kfd_properties p;
		uint64_t node;

		snprintf(file, sizeof(file), KFD "/%s/properties", nodes.v[k]);
		if (str_u64(nodes.v[k], UINT32_MAX, &node) < 0)
			continue;
		rc = host_text(h, file, &text, e);
		if (rc <= 0)
			break;
		if (kfd_properties_parse(&p, file, text.data ? text.data : "", e) < 0)
			return -1;
		for (size_t g = 0; p.gfx && g < t->ngpus; g++)
			if (t->v[g].device->maker == GPU_MAKER_AMD &&
				t->v[g].device->minor == p.render_minor)
				t->v[g].kfd = (uint32_t)node;
	}
	return rc < 0 ? -1 : 0;
}

int gpu_topology_read(struct gpu_topology *t, const struct gpu_host *h,
	const struct gpu_inventory *i, struct err *e)
{
	int rc;

	*t = (struct gpu_topology){0};
	rc = read_places(t, h, i, e);
	t->nvswitch = i->nvswitch.n > 0;
	t->xgmi = arena_alloc(&t->mem, t->ngpus * t->ngpus + 1);
	if (rc == 0 && i->kfd.n)
		rc = name_nodes(t, h, e);
	for (size_t k = 0; rc == 0 && k < t->ngpus; k++)
		if (t->v[k].kfd)
			rc = read_links(t, h, k, e);
	if (rc < 0)
		gpu_topology_fini(t);
	return rc;
}

void gpu_topology_fini(struct gpu_topology *t)
{
	arena_fini(&t->mem);
	*t = (struct gpu_topology){0};
}
