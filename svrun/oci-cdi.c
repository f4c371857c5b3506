/* Devices of CDI specs that a config's annotations ask for, and the hooks of NVIDIA's toolkit that
 * an engine has put into it: both become edits of the config and native work in the container's
 * root, before anything of it runs. */
#include "base/str.h"
#include "runtime/container.h"
#include "svrun/oci.h"

static bool has(const char *text, size_t n, const char *word)
{
	return memmem(text, n, word, strlen(word)) != NULL;
}

/* Asked of the text, so that most configs are not looked at any closer. */
static bool may_want(const char *text, size_t n)
{
	return has(text, n, "cdi.k8s.io") || has(text, n, "nvidia-cdi-hook") ||
	       has(text, n, "nvidia-ctk");
}

/* ---- hooks that are there ---- */

static struct strings texts(const json_t *list, struct arena *mem)
{
	struct strings s = {NULL, json_array_size(list)};

	s.v = arena_alloc(mem, (s.n + 1) * sizeof(*s.v));
	for (size_t i = 0; i < s.n; i++) {
		const char *word = json_string_value(json_array_get(list, i));

		s.v[i] = word ? word : "";
	}
	return s;
}

/* The toolkit's run in this stage alone. Those that are done natively go. */
static int take_hooks(struct oci_cdi *d, json_t *config, struct err *e)
{
	json_t *hooks = json_object_get(json_object_get(config, "hooks"), "createContainer");

	for (size_t i = 0; i < json_array_size(hooks);) {
		const json_t *h = json_array_get(hooks, i);
		const char *path = json_string_value(json_object_get(h, "path"));
		struct strings args = texts(json_object_get(h, "args"), &d->edits.mem);
		int native = path ? cdi_hook_native(&d->edits, path, &args, e) : 0;

		if (native < 0)
			return err_ctx(e, "createContainer hook %zu", i);
		if (native)
			json_array_remove(hooks, i);
		else
			i++;
	}
	return 0;
}

/* ---- annotations ---- */

/* What the engine has put into the config runs anyway: engines that resolve annotations themselves
 * leave them there for us to see again. */
static struct cdi_policy policy_of(const struct oci *o, const json_t *config, struct arena *mem)
{
	json_t *hooks = json_object_get(config, "hooks"), *list, *h;
	struct cdi_policy p = {{NULL, 0}};
	size_t i, max = o->cdi_hooks.n;
	const char *stage;

	json_object_foreach (hooks, stage, list)
		max += json_array_size(list);
	p.hooks.v = arena_alloc(mem, (max + 1) * sizeof(*p.hooks.v));
	for (i = 0; i < o->cdi_hooks.n; i++)
		p.hooks.v[p.hooks.n++] = o->cdi_hooks.v[i];
	json_object_foreach (hooks, stage, list)
		json_array_foreach (list, i, h) {
			const char *path = json_string_value(json_object_get(h, "path"));

			if (path)
				p.hooks.v[p.hooks.n++] = arena_strdup(mem, path);
		}
	return p;
}

static int add_devices(const struct oci *o, struct oci_cdi *d, json_t *config, struct err *e)
{
	static const char *usual[] = {CDI_DIRS};
	struct strings dirs = {usual, sizeof(usual) / sizeof(usual[0])}, names = {NULL, 0};
	struct arena *mem = &d->edits.mem;
	struct cdi_policy p;

	if (cdi_annotations(json_object_get(config, "annotations"), &names, mem, e) < 0)
		return -1;
	if (names.n == 0)
		return 0;
	if (o->cdi_dirs.n)
		dirs = (struct strings){o->cdi_dirs.v, o->cdi_dirs.n};
	d->edits.disks = true; /* they are what storage vendors have specs for */
	p = policy_of(o, config, mem);
	if (cdi_load_for(&d->cdi, &dirs, &names, e) < 0)
		return -1;
	return cdi_resolve(&d->cdi, &names, &p, &d->edits, e);
}

/* ---- the config ---- */

static int change(const struct oci *o, struct oci_cdi *d, json_t *config, struct err *e)
{
	if (take_hooks(d, config, e) < 0 || add_devices(o, d, config, e) < 0 ||
		gpu_edits_apply(&d->edits, NULL, config, e) < 0)
		return -1;
	cdi_profile(&d->edits, json_object_get(json_object_get(config, "linux"), "devices"));
	return 0;
}

int oci_cdi_parse(const struct oci *o, struct oci_cdi *d, struct spec *spec, const char *name,
	const char *text, size_t n, struct err *e)
{
	struct json_doc doc;
	int rc;

	if (o->no_cdi || !may_want(text, n))
		return spec_parse(spec, name, text, n, e);
	if (spec_doc_parse(&doc, name, text, n, e) < 0)
		return -1;
	rc = change(o, d, doc.root, e);
	rc = rc < 0 ? -1 : spec_read(spec, doc.root, name, e);
	json_doc_fini(&doc);
	if (rc < 0)
		oci_cdi_fini(d);
	return rc;
}

static int fill(void *ctx, int root, const uint64_t *own, size_t nown, struct err *e)
{
	const struct gpu_edits *x = ctx;

	return gpu_edits_fill(x, root, own, nown, e);
}

void oci_cdi_fill(struct oci_cdi *d, struct container_options *o)
{
	const struct gpu_edits *x = &d->edits;

	if (!x->nlinks && !x->nld_dirs && !x->compat_driver && !x->keep_device_files &&
		!x->visible_profile)
		return;
	o->fill = fill;
	o->fill_ctx = &d->edits;
}

void oci_cdi_fini(struct oci_cdi *d)
{
	gpu_edits_fini(&d->edits);
	cdi_fini(&d->cdi);
}
