#include "gpu/cdi-make.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/str.h"
#include "gpu/cdi-spec.h"

#ifdef __aarch64__
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif
/* NVIDIA's first nodes; the majors of the others change with every boot. */
enum { NVIDIA_MAJOR = 195 };

struct work {
	struct cdi_making *m;
	const struct gpu_host *h;
	bool has_gids;
};

/* ---- nodes ---- */

static void say_absent(struct cdi_making *m, const char *path)
{
	const char **v = arena_alloc(&m->mem, (m->absent.n + 1) * sizeof(*v));

	if (m->absent.n)
		memcpy(v, m->absent.v, m->absent.n * sizeof(*v));
	v[m->absent.n++] = path;
	m->absent.v = v;
}

static void add_gid(struct work *w, json_t *edits, uint32_t gid)
{
	json_t *gids = json_object_get(edits, "additionalGids");
	size_t i = 0;

	if (gid == 0)
		return;
	if (!gids) {
		gids = json_array();
		json_object_set_new(edits, "additionalGids", gids);
	}
	while (i < json_array_size(gids) && json_integer_value(json_array_get(gids, i)) != gid)
		i++;
	if (i == json_array_size(gids))
		json_array_append_new(gids, json_integer(gid));
	w->has_gids = true;
}

/* MIG devices of one GPU have its node; AMD's render nodes are among those of /dev/dri, too. */
static bool has_node(const json_t *nodes, const char *path)
{
	const json_t *o;
	size_t i;

	json_array_foreach (nodes, i, o)
		if (str_eq(json_string_value(json_object_get(o, "path")), path))
			return true;
	return false;
}

static void add_node(struct work *w, json_t *edits, const struct gpu_node *n)
{
	json_t *nodes = json_object_get(edits, "deviceNodes"), *o;

	if (has_node(nodes, n->path))
		return;
	if (!n->exists && n->major != NVIDIA_MAJOR) {
		say_absent(w->m, n->path);
		return;
	}
	if (!nodes) {
		nodes = json_array();
		json_object_set_new(edits, "deviceNodes", nodes);
	}
	o = json_pack("{s:s}", "path", n->path);
	if (!n->exists) {
		json_object_set_new(o, "type", json_string("c"));
		json_object_set_new(o, "major", json_integer(n->major));
		json_object_set_new(o, "minor", json_integer(n->minor));
		json_object_set_new(o, "fileMode", json_integer(n->mode));
	} else if (*w->h->prefix) {
		json_object_set_new(o, "hostPath", json_sprintf("%s%s", w->h->prefix, n->path));
	}
	json_object_set_new(o, "permissions", json_string("rw"));
	json_array_append_new(nodes, o);
	if (w->m->maker == GPU_MAKER_AMD) /* theirs are of the groups video and render */
		add_gid(w, edits, n->gid);
}

static void add_nodes(struct work *w, json_t *edits, const struct gpu_nodes *n)
{
	for (size_t i = 0; i < n->n; i++)
		add_node(w, edits, &n->v[i]);
}

static bool has_graphics(const struct cdi_making *m)
{
	return m->maker == GPU_MAKER_AMD || (m->caps & (GPU_CAP_GRAPHICS | GPU_CAP_DISPLAY));
}

static void add_gpu(struct work *w, json_t *edits, const struct gpu_device *d)
{
	add_nodes(w, edits, &d->nodes);
	if (has_graphics(w->m))
		add_nodes(w, edits, &d->dri);
}

static void add_mig(
	struct work *w, json_t *edits, const struct gpu_device *d, const struct gpu_mig *g)
{
	add_nodes(w, edits, &d->nodes);
	for (size_t i = 0; i < 2; i++)
		add_node(w, edits, &g->caps[i]);
}

/* ---- devices ---- */

static void add_device(json_t *devices, const char *name, json_t *edits)
{
	if (name && json_object_size(edits))
		json_array_append_new(
			devices, json_pack("{s:s, s:O}", "name", name, "containerEdits", edits));
}

/* The GPU, or each of its MIG devices; all gets the same. */
static void add_devices(struct work *w, json_t *devices, const struct gpu_device *d, json_t *all)
{
	char name[32];

	for (size_t i = 0; i < d->nmigs; i++) {
		auto_json json_t *edits = json_object();

		snprintf(name, sizeof(name), "%" PRIu32 ":%" PRIu32, d->index, d->migs[i].index);
		add_mig(w, edits, d, &d->migs[i]);
		add_device(devices, name, edits);
		add_device(devices, d->migs[i].uuid, edits);
		add_mig(w, all, d, &d->migs[i]);
	}
	if (d->nmigs)
		return;
	auto_json json_t *edits = json_object();
	snprintf(name, sizeof(name), "%" PRIu32, d->index);
	add_gpu(w, edits, d);
	add_device(devices, name, edits);
	add_device(devices, d->uuid, edits);
	add_gpu(w, all, d);
}

/* Two MIG devices of one GPU need the GPU's node once. */
static void drop_repeated(json_t *edits)
{
	json_t *nodes = json_object_get(edits, "deviceNodes");

	for (size_t i = json_array_size(nodes); i-- > 0;)
		for (size_t k = 0; k < i; k++)
			if (json_equal(json_array_get(nodes, i), json_array_get(nodes, k))) {
				json_array_remove(nodes, i);
				break;
			}
}

static json_t *make_devices(struct work *w, const struct gpu_inventory *i)
{
	json_t *devices = json_array();
	auto_json json_t *all = json_object();

	for (size_t k = 0; k < i->n; k++)
		if (i->v[k].maker == w->m->maker && !i->v[k].excluded)
			add_devices(w, devices, &i->v[k], all);
	drop_repeated(all);
	add_device(devices, "all", all);
	return devices;
}

/* ---- files ---- */

static void add_mount(const struct work *w, json_t *mounts, const char *source, const char *fmt,
	...) printf_like(4, 5);
static void add_mount(
	const struct work *w, json_t *mounts, const char *source, const char *fmt, ...)
{
	auto_free char *path = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&path, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	json_array_append_new(
		mounts, json_pack("{s:o, s:s, s:[sssss]}", "hostPath",
				json_sprintf("%s%s", w->h->prefix, source), "containerPath", path,
				"options", "ro", "nosuid", "nodev", "rbind", "rprivate"));
}

static void add_library(const struct work *w, json_t *mounts, const struct driver_file *f)
{
	static const char *const dirs[] = {"/usr/lib/" MULTIARCH, "/usr/lib64"};
	static const char *const dirs32[] = {"/usr/lib/i386-linux-gnu", "/usr/lib"};
	const char *const *places = f->bits32 ? dirs32 : dirs;

	for (size_t i = 0; i < 2; i++) {
		add_mount(w, mounts, f->source, "%s/%s", places[i], strchr(f->name, '/') + 1);
		for (size_t k = 0; k < 3 && f->aliases[k]; k++)
			add_mount(w, mounts, f->source, "%s/%s", places[i], f->aliases[k]);
	}
}

static json_t *make_mounts(const struct work *w, const struct driver_files *f)
{
	json_t *mounts = json_array();

	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].soname)
			add_library(w, mounts, &f->v[i]);
		if (f->v[i].link)
			add_mount(w, mounts, f->v[i].source, "%s", f->v[i].link);
	}
	return mounts;
}

/* ---- all of it ---- */

/* What every device of the spec needs beside its own nodes. */
static json_t *make_common(
	struct work *w, const struct gpu_inventory *i, const struct driver_files *f)
{
	json_t *edits = json_object();

	if (w->m->maker == GPU_MAKER_AMD) {
		add_nodes(w, edits, &i->kfd);
		return edits;
	}
	/* An engine's own hook adds nothing to this, then. */
	json_object_set_new(edits, "env", json_pack("[s]", "NVIDIA_VISIBLE_DEVICES=void"));
	add_nodes(w, edits, &i->ctl);
	add_nodes(w, edits, &i->uvm);
	add_nodes(w, edits, &i->uvm_tools);
	if (has_graphics(w->m))
		add_nodes(w, edits, &i->modeset);
	if (f)
		json_object_set_new(edits, "mounts", make_mounts(w, f));
	return edits;
}

static int check_names(const struct cdi_making *m, struct err *e)
{
	const char *why = cdi_kind_fault(m->vendor, strlen(m->vendor));

	if (why)
		return err_set(e, ERR_USAGE, "--vendor %.100s %s", m->vendor, why);
	why = cdi_kind_fault(m->class, strlen(m->class));
	return why ? err_set(e, ERR_USAGE, "--class %.100s %s", m->class, why) : 0;
}

json_t *cdi_make(struct cdi_making *m, const struct gpu_host *h, const struct gpu_inventory *i,
	const struct driver_files *f, struct err *e)
{
	struct work w = {.m = m, .h = h};
	auto_json json_t *devices = NULL, *common = NULL;
	const char *version;

	if (check_names(m, e) < 0)
		return NULL;
	if (i->dxg && m->maker == GPU_MAKER_NVIDIA) {
		err_set(e, ERR_UNSUPPORTED, "on WSL2 a spec without hooks cannot be made");
		err_hint(e, "svrun run --gpus all gives the GPU without one");
		return NULL;
	}
	devices = make_devices(&w, i);
	if (json_array_size(devices) == 0) {
		err_set(e, ERR_NOT_FOUND, "no %s GPU is on this host",
			m->maker == GPU_MAKER_AMD ? "AMD" : "NVIDIA");
		err_hint(e, "svrun doctor looks for the reason");
		return NULL;
	}
	common = make_common(&w, i, f);
	version = w.has_gids ? "0.7.0" : strchr(m->class, '.') ? "0.6.0" : "0.5.0";
	return json_pack("{s:s, s:o, s:O, s:O}", "cdiVersion", version, "kind",
		json_sprintf("%s/%s", m->vendor, m->class), "devices", devices, "containerEdits",
		common);
}

void cdi_making_fini(struct cdi_making *m)
{
	arena_fini(&m->mem);
	m->absent = (struct strings){NULL, 0};
}
