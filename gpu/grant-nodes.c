#include "gpu/grant-nodes.h"

/* One who is neither the owner nor everybody gets in by the node's group, as on the host. */
static bool needs_group(const struct gpu_node *n)
{
	return (n->mode & 0006) != 0006 && (n->mode & 0060) == 0060;
}

int grant_nodes(
	struct gpu_edits *x, const struct gpu_host *h, const struct gpu_nodes *nodes, struct err *e)
{
	for (size_t i = 0; i < nodes->n; i++) {
		const struct gpu_node *n = &nodes->v[i];
		const struct edit_node node = {.path = arena_strdup(&x->mem, n->path),
			.type = 'c',
			.has_number = true,
			.major = n->major,
			.minor = n->minor,
			.has_mode = true,
			.mode = n->mode,
			.has_uid = true,
			.uid = n->uid,
			.has_gid = true,
			.gid = n->gid,
			.access = "rw"};

		if (gpu_node_check(h, n, e) < 0)
			return -1;
		gpu_edits_node(x, &node);
		if (needs_group(n))
			gpu_edits_gid(x, n->gid);
	}
	return 0;
}

int grant_dri(
	struct gpu_edits *x, const struct gpu_host *h, const struct gpu_device *d, struct err *e)
{
	if (grant_nodes(x, h, &d->dri, e) < 0)
		return -1;
	for (size_t i = 0; i < d->dri.n; i++) {
		const char *name = strrchr(d->dri.v[i].path, '/') + 1;

		gpu_edits_link(x,
			arena_printf(&x->mem, "/dev/dri/by-path/pci-%s-%s", d->bus,
				str_starts(name, "render") ? "render" : "card"),
			arena_printf(&x->mem, "../%s", name));
	}
	return 0;
}
