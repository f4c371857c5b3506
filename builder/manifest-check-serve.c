/* Rules between the keys of what runs. */
#include "builder/manifest-check.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/rules.h"
#include "builder/services.h"

/* ---- ports, volumes, services ---- */

static void check_ports(struct reader *r, const struct manifest *m)
{
	auto_json json_t *seen = json_object(), *names = json_object(), *primary = json_object();

	for (size_t i = 0; i < m->nports; i++) {
		const struct manifest_port *p = &m->ports[i];
		char key[32];
		const char *by;

		snprintf(key, sizeof(key), "%u/%s", p->port,
			str_eq(p->protocol, "udp") ? "udp" : "tcp");
		check_point(r, "/ports/%zu/port", i);
		by = p->port ? check_taken(r, seen, key) : NULL;
		if (by)
			reader_fault(r, NULL, (struct fault){.code = SV_PORT},
				"port %s is taken by %s", key, by);
		check_point(r, "/ports/%zu/name", i);
		check_unique(r, names, "name", p->name);
		check_point(r, "/ports/%zu/primary", i);
		if (p->primary)
			check_unique(r, primary, "primary port", "yes");
	}
}

static void check_volumes(struct reader *r, const struct manifest *m)
{
	auto_json json_t *paths = json_object();

	for (size_t i = 0; i < m->nvolumes; i++) {
		check_point(r, "/volumes/%zu/path", i);
		check_unique(r, paths, "volume", m->volumes[i].path);
	}
}

static void check_services(struct reader *r, const struct manifest *m)
{
	auto_json json_t *ids = json_object();

	for (size_t i = 0; i < m->nservices; i++) {
		const struct manifest_service *s = &m->services[i];

		check_point(r, "/services/%zu/id", i);
		check_unique(r, ids, "id", s->id);
		for (size_t k = 0; k < s->after.n; k++) {
			bool before = false;

			for (size_t x = 0; x < i && !before; x++)
				before = m->services[x].id &&
					 str_eq(m->services[x].id, s->after.v[k]);
			check_point(r, "/services/%zu/after/%zu", i, k);
			if (!before)
				reader_fault(r, NULL,
					(struct fault){.code = SV_CONFLICT,
						.hint = "services start in the order of the list"},
					"no service before this one has the id '%s'",
					s->after.v[k]);
		}
	}
	check_point(r, m->nservices ? "/services" : "/init");
	if ((m->nservices || m->init) && !services_can_run(m))
		reader_fault(r, NULL,
			(struct fault){.code = SV_CONFLICT,
				.at_key = true,
				.expected = "\"?essential\" or \"perl-base\" in apt.packages, or a "
					    "base image that has it"},
			"the first process needs perl-base");
	if (m->init && !m->nservices && !m->has_entrypoint && !m->has_cmd)
		reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT, .at_key = true},
			"there is no entrypoint or cmd to be started");
	if (m->nservices && (m->has_entrypoint || m->has_cmd))
		reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT, .at_key = true},
			"services are what the container runs: there is no entrypoint or cmd "
			"beside them");
}

/* ---- GPUs, resources ---- */

static void check_order(struct reader *r, const char *pointer, const char *least, uint32_t a,
	const char *most, uint32_t b)
{
	check_point(r, "%s", pointer);
	if (a && b && a > b)
		reader_fault(r, least, (struct fault){.code = SV_CONFLICT}, "'%s' is above '%s'",
			least, most);
}

/* Dotted numbers: is a above b? */
static bool above(const char *a, const char *b)
{
	while (a && b) {
		unsigned long x = strtoul(a, NULL, 10), y = strtoul(b, NULL, 10);

		if (x != y)
			return x > y;
		a = strchr(a, '.') ? strchr(a, '.') + 1 : NULL;
		b = strchr(b, '.') ? strchr(b, '.') + 1 : NULL;
	}
	return false;
}

static void check_gpu(struct reader *r, const struct manifest *m)
{
	const struct manifest_gpu *g = &m->gpu;
	static const char *const words[] = {"/gpu/computeCapability", "/gpu/cuda"};
	const char *const least[] = {g->cc_min, g->cuda_min}, *const most[] = {
								      g->cc_max, g->cuda_max};

	check_order(r, "/gpu/count", "min", g->count_min, "max", g->count_max);
	check_order(r, "/gpu/count", "default", g->count_default, "max", g->count_max);
	check_order(r, "/gpu/count", "min", g->count_min, "default", g->count_default);
	check_order(r, "/gpu/vramGiB", "min", g->vram_min, "recommended", g->vram_recommended);
	for (size_t i = 0; i < 2; i++) {
		check_point(r, "%s", words[i]);
		if (least[i] && most[i] && above(least[i], most[i]))
			reader_fault(r, "min", (struct fault){.code = SV_CONFLICT},
				"'min' is above 'max'");
	}
	check_point(r, "/gpu/mode");
	if (m->mode && str_eq(m->mode, "cpu") && g->mode != GPU_NONE)
		reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT, .expected = "\"none\""},
			"the mode \"cpu\" runs without a GPU");
	check_order(r, "/resources/cpu", "min", m->resources.cpu_min, "recommended",
		m->resources.cpu_recommended);
	check_order(r, "/resources/memoryMiB", "min", m->resources.memory_min, "recommended",
		m->resources.memory_recommended);
}

/* ---- health ---- */

static void check_probe(struct reader *r, const json_t *root, const char *name)
{
	static const char *const kinds[] = {"http", "tcp", "exec"};
	const json_t *probe = json_object_get(json_object_get(root, "health"), name);
	size_t n = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		n += json_object_get(probe, kinds[i]) != NULL;
	check_point(r, "/health/%s", name);
	if (json_is_object(probe) && n != 1)
		reader_fault(r, NULL,
			(struct fault){.code = n ? SV_CONFLICT : SV_MISSING,
				.expected = "exactly one of 'http', 'tcp' and 'exec'"},
			n ? "several ways to ask" : "no way to ask");
}

/* ---- the form ---- */

static bool has_var(const struct manifest *m, const char *name)
{
	for (size_t i = 0; i < m->nvars; i++)
		if (str_eq(m->vars[i].name, name))
			return true;
	return false;
}

static void check_input(struct reader *r, const struct manifest *m, size_t i, const json_t *input)
{
	const struct manifest_input *in = &m->inputs[i];

	check_point(r, "/inputs/%zu", i);
	check_either(r, input, "env", "var");
	if (in->var && !has_var(m, in->var))
		reader_fault(r, "var", (struct fault){.code = SV_VARIABLE}, "unknown variable '%s'",
			in->var);
	if (in->options.n && in->type != INPUT_SELECT)
		reader_fault(r, "options", (struct fault){.code = SV_CONFLICT, .at_key = true},
			"options are only for the type \"select\"");
	if (in->env && !in->options.n && in->type == INPUT_SELECT)
		reader_fault(
			r, "options", (struct fault){.code = SV_MISSING}, "missing key 'options'");
	if (in->has_min && in->has_max && in->min > in->max)
		reader_fault(r, "min", (struct fault){.code = SV_CONFLICT}, "'min' is above 'max'");
}

static bool asked_for(const struct manifest *m, const char *name)
{
	for (size_t i = 0; i < m->ninputs; i++)
		if ((m->inputs[i].env && str_eq(m->inputs[i].env, name)) ||
			(m->inputs[i].var && str_eq(m->inputs[i].var, name)))
			return true;
	return false;
}

static void check_form(struct reader *r, const struct manifest *m, const json_t *root)
{
	auto_json json_t *names = json_object(), *ids = json_object();

	for (size_t i = 0; i < m->ninputs; i++) {
		const struct manifest_input *in = &m->inputs[i];

		check_input(r, m, i, json_array_get(json_object_get(root, "inputs"), i));
		check_unique(r, names, "input", in->env ? in->env : in->var);
	}
	for (size_t i = 0; i < m->npresets; i++) {
		const struct manifest_preset *p = &m->presets[i];

		check_point(r, "/presets/%zu/id", i);
		check_unique(r, ids, "id", p->id);
		check_point(r, "/presets/%zu/values", i);
		for (size_t k = 0; k < p->values.n; k++)
			if (!asked_for(m, p->values.v[k].name))
				reader_fault(r, p->values.v[k].name,
					(struct fault){.code = SV_CONFLICT, .at_key = true},
					"no input is called '%s'", p->values.v[k].name);
	}
}

void check_serve(struct reader *r, const struct manifest *m, const json_t *root)
{
	check_ports(r, m);
	check_volumes(r, m);
	check_services(r, m);
	check_gpu(r, m);
	check_probe(r, root, "startup");
	check_probe(r, root, "readiness");
	check_probe(r, root, "liveness");
	check_form(r, m, root);
}
