#include "svrun/gpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/image.h"
#include "svrun/device-node.h"
#include "svrun/gpus-private.h"
#include "svrun/instance.h"

/* ---- what was asked for ---- */

static int bad_label(struct err *e)
{
	return err_set(e, ERR_CORRUPT, "label " IMAGE_GPU_LABEL ": expected an object");
}

static int read_label(struct gpus *g, const json_t *config, struct err *e)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(config, "Labels"), IMAGE_GPU_LABEL));

	if (!text)
		return 0;
	g->label = json_parse(text, strlen(text), e);
	if (!g->label)
		return err_ctx(e, "label " IMAGE_GPU_LABEL);
	return json_is_object(g->label) ? 0 : bad_label(e);
}

/* What the image says, then what the caller says. Borrowed from the two documents. */
static void read_env(struct gpus *g, const json_t *image, const json_t *given)
{
	const json_t *lists[] = {json_object_get(image, "Env"), given}, *v;
	size_t i;

	g->env.v = arena_alloc(&g->mem,
		(json_array_size(lists[0]) + json_array_size(lists[1]) + 1) * sizeof(*g->env.v));
	for (size_t k = 0; k < 2; k++)
		json_array_foreach (lists[k], i, v)
			if (json_is_string(v))
				g->env.v[g->env.n++] = json_string_value(v);
}

static int read_device(struct gpus *g, const char *word, struct err *e)
{
	struct edit_node node;

	if (*word == '/') {
		if (device_node_parse(&node, word, &g->mem, e) < 0)
			return -1;
		gpu_edits_node(&g->edits, &node);
		return 0;
	}
	if (strchr(word, '/')) {
		g->cdi_names.v[g->cdi_names.n++] = word;
		return 0;
	}
	g->has_extras = true;
	return gpu_extras_parse(&g->extras, word, e);
}

static int read_options(struct gpus *g, const struct run_options *o, struct err *e)
{
	g->cdi_names.v = arena_alloc(&g->mem, (o->devices.n + 1) * sizeof(*g->cdi_names.v));
	g->request.shared = o->gpus_shared;
	for (size_t i = 0; i < o->gpus.n; i++)
		if (gpu_request_parse(&g->request, o->gpus.v[i], e) < 0)
			return err_ctx(e, "--gpus");
	for (size_t i = 0; i < o->devices.n; i++)
		if (read_device(g, o->devices.v[i], e) < 0)
			return -1;
	return 0;
}

static bool wants_gpus(const struct gpus *g)
{
	return g->request.all || g->request.count || g->request.names.n;
}

/* An image that cannot do without them, where nobody has said that it has to. */
static int check_required(const struct gpus *g, struct err *e)
{
	const char *vendor = json_string_value(json_object_get(g->label, "vendor"));
	uint32_t n = gpus_required(g->label);

	if (!n || g->request.given || g->cdi_names.n)
		return 0;
	err_set(e, ERR_USAGE, "the image needs GPUs, and was given none");
	if (vendor && str_eq(vendor, "intel"))
		return err_hint(e, "one of Intel comes by a CDI spec alone: --device; --mode cpu "
				   "starts it without");
	return err_hint(e, "--gpus %u gives it what it asks for; --mode cpu starts it without", n);
}

/* ---- devices of CDI specs ---- */

static int load_cdi(struct gpus *g, const struct run_options *o, struct err *e)
{
	static const char *const usual[] = {CDI_DIRS};
	const struct cdi_policy policy = {{o->cdi_hooks.v, o->cdi_hooks.n}};
	const size_t n = sizeof(usual) / sizeof(usual[0]);
	struct strings dirs = {o->cdi_dirs.v, o->cdi_dirs.n};

	if (!dirs.n) {
		dirs.v = arena_alloc(&g->mem, n * sizeof(*dirs.v));
		for (; dirs.n < n; dirs.n++)
			dirs.v[dirs.n] =
				arena_printf(&g->mem, "%s%s", g->host.prefix, usual[dirs.n]);
	}
	if (cdi_load_for(&g->cdi, &dirs, &g->cdi_names, e) < 0)
		return -1;
	g->has_cdi = true;
	return cdi_resolve(&g->cdi, &g->cdi_names, &policy, &g->edits, e);
}

static bool is_given(const struct gpus *g, const char *path)
{
	for (size_t i = 0; i < g->edits.nnodes; i++)
		if (str_eq(g->edits.nodes[i].path, path))
			return true;
	return false;
}

/* Names of what the specs gave of d: the whole GPU, or MIG devices of it. */
static void name_given(struct gpus *g, const struct gpu_device *d, struct gpu_request *r)
{
	bool whole = d->nodes.n > 0;

	for (size_t i = 0; i < d->nodes.n; i++)
		whole = whole && is_given(g, d->nodes.v[i].path);
	if (!whole || d->excluded)
		return;
	for (size_t i = 0; i < d->nmigs; i++) {
		const struct gpu_mig *m = &d->migs[i];

		if (!is_given(g, m->caps[0].path) || !is_given(g, m->caps[1].path))
			continue;
		r->names.v[r->names.n++] = arena_printf(&g->mem, "%u:%u", d->index, m->index);
		whole = false;
	}
	if (whole)
		r->names.v[r->names.n++] = d->bus;
}

/* A GPU is nobody else's, whichever way it came. */
static int reserve_cdi(struct gpus *g, struct err *e)
{
	const char *within = getenv(GPU_ALLOCATION_ENV);
	struct gpu_reserve_terms terms = {
		.who = g->who, .within = within && *within ? within : NULL};
	struct gpu_request r = {.given = true, .shared = g->request.shared};
	struct gpu_grants unused = {0};
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < g->inventory.n; i++)
		n += g->inventory.v[i].nmigs + 1;
	r.names.v = arena_alloc(&g->mem, (n + 1) * sizeof(*r.names.v));
	for (size_t i = 0; i < g->inventory.n; i++)
		name_given(g, &g->inventory.v[i], &r);
	if (r.names.n)
		rc = gpu_reserve(&g->held_cdi, &g->host, &g->inventory, &r, &terms, &unused, e);
	free(unused.v);
	return rc;
}

/* ---- together ---- */

static bool has_maker(const struct gpus *g, enum gpu_maker maker)
{
	for (size_t i = 0; i < g->grants.n; i++)
		if (g->grants.v[i].device->maker == maker)
			return true;
	return false;
}

static int make_edits(struct gpus *g, struct err *e)
{
	/* none of them: the image wants the driver's files alone */
	bool files = g->has_wishes && g->wishes.none;

	if ((files || gpus_of_windows(g) || g->has_extras || has_maker(g, GPU_MAKER_NVIDIA)) &&
		gpu_nvidia_edits(&g->edits, &g->host, &g->inventory, &g->grants,
			g->has_wishes ? g->wishes.caps : 0, &g->extras, e) < 0)
		return -1;
	if (has_maker(g, GPU_MAKER_AMD) &&
		gpu_amd_edits(&g->edits, &g->host, &g->inventory, &g->grants, e) < 0)
		return -1;
	return 0;
}

static int find(struct gpus *g, const struct gpus_ask *a, struct err *e)
{
	if (gpu_host_open(&g->host, e) < 0)
		return -1;
	g->has_host = true;
	if (!wants_gpus(g) && !g->cdi_names.n && !g->has_extras)
		return 0; /* plain devices alone */
	if (gpu_inventory_read(&g->inventory, &g->host, e) < 0)
		return -1;
	g->has_inventory = true;
	/* first: whose nodes are already there when the GPUs' own are added */
	if (g->cdi_names.n && (load_cdi(g, a->o, e) < 0 || reserve_cdi(g, e) < 0))
		return -1;
	if (wants_gpus(g)) {
		if (gpu_probe_load(&g->probe, &g->host, &g->inventory, e) < 0)
			return -1;
		g->has_probe = true;
		if (gpu_wishes_read(&g->wishes, &g->env, e) < 0)
			return -1;
		g->has_wishes = true;
		if (gpus_take(g, e) < 0)
			return -1;
	}
	return make_edits(g, e);
}

int gpus_open(struct gpus **out, const struct gpus_ask *a, struct err *e)
{
	struct gpus *g = mem_alloc(sizeof(*g));
	const json_t *config = json_object_get(a->image, "config");

	gpu_edits_init(&g->edits);
	g->who = mem_printf("instance %s", a->who);
	read_env(g, config, a->env);
	if (read_label(g, config, e) == 0 && read_options(g, a->o, e) == 0 &&
		check_required(g, e) == 0 &&
		((!a->o->devices.n && !wants_gpus(g)) || find(g, a, e) == 0)) {
		if (g->edits.nnodes)
			g->edits.no_mknod = true;
		*out = g;
		return 0;
	}
	gpus_close(g);
	return -1;
}

void gpus_close(struct gpus *g)
{
	if (!g)
		return;
	gpu_release(&g->held);
	gpu_release(&g->held_cdi);
	gpu_edits_fini(&g->edits);
	if (g->has_cdi)
		cdi_fini(&g->cdi);
	if (g->has_wishes)
		gpu_wishes_fini(&g->wishes);
	if (g->has_probe)
		gpu_probe_free(&g->probe);
	if (g->has_inventory)
		gpu_inventory_fini(&g->inventory);
	if (g->has_host)
		gpu_host_close(&g->host);
	gpu_request_fini(&g->request);
	free(g->grants.v);
	free(g->who);
	json_decref(g->label);
	arena_fini(&g->mem);
	free(g);
}

/* ---- in the container ---- */

static bool is_gpu(const char *name)
{
	const char *class = strchr(name, '/');

	return class && str_starts(class, "/gpu=");
}

size_t gpus_count(const struct gpus *g)
{
	size_t n = gpus_of_windows(g) ? 1 : g->grants.n;

	for (size_t i = 0; i < g->cdi_names.n; i++)
		n += is_gpu(g->cdi_names.v[i]);
	return n;
}

bool gpus_has_any(const struct gpus *g)
{
	return !gpu_edits_empty(&g->edits);
}

int gpus_layer(struct gpus *g, const struct gpus_layer_image *image, int *fd, struct err *e)
{
	*fd = -1;
	if (!gpus_has_any(g))
		return 0;
	if (gpus_layer_open(&g->edits, &g->host, image, fd, e) < 0)
		return -1;
	g->has_layer = *fd >= 0;
	return 0;
}

/* For `svrun ps`. */
static void annotate(const struct gpus *g, json_t *config)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);

	if (gpus_of_windows(g))
		buf_printf(&text, "dxg");
	for (size_t i = 0; i < g->grants.n; i++) {
		const struct gpu_grant *x = &g->grants.v[i];

		buf_printf(&text, "%s%s%u", text.len ? "," : "",
			x->device->maker == GPU_MAKER_AMD ? "amd:" : "", x->device->index);
		if (x->mig)
			buf_printf(&text, ":%u", x->mig->index);
	}
	for (size_t i = 0; i < g->cdi_names.n; i++)
		if (is_gpu(g->cdi_names.v[i]))
			buf_printf(&text, "%s%s", text.len ? "," : "", g->cdi_names.v[i]);
	if (text.len)
		json_object_set_new(json_object_get(config, "annotations"), INSTANCE_GPUS,
			json_string(text.data));
}

/* One that went after it was looked at would be made by its number, and open to nobody. */
static int still_there(const struct gpus *g, struct err *e)
{
	for (size_t i = 0; i < g->grants.n; i++) {
		const struct gpu_nodes *nodes = &g->grants.v[i].device->nodes;

		for (size_t k = 0; k < nodes->n; k++) {
			auto_free char *what = gpu_grant_text(&g->grants.v[i]);
			const char *path = nodes->v[k].path + strlen("/dev/");

			if (nodes->v[k].exists &&
				faccessat(g->host.dev, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
				return err_set(e, ERR_NOT_FOUND,
					"%s has gone since it was chosen: %s is no longer there",
					what, nodes->v[k].path);
		}
	}
	return 0;
}

int gpus_apply(const struct gpus *g, json_t *config, struct err *e)
{
	if (!gpus_has_any(g))
		return 0;
	annotate(g, config);
	if (still_there(g, e) < 0)
		return -1;
	return gpu_edits_apply(&g->edits, &g->host, config, e);
}

void gpus_untouched(struct gpus *g)
{
	g->untouched = true;
}

int gpus_fill(void *ctx, int root, const uint64_t *own, size_t nown, struct err *e)
{
	const struct gpus *g = ctx;

	return g->has_layer && g->untouched ? gpu_edits_fill_new(&g->edits, root, own, nown, e)
					    : gpu_edits_fill(&g->edits, root, own, nown, e);
}
