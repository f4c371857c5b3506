#include "builder/manifest-keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/secrets.h"

/* The pointer of the next fault. */
static void point(struct reader *r, const char *fmt, ...) printf_like(2, 3);
static void point(struct reader *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->pointer.len = 0;
	buf_printf(&r->pointer, "%s", text);
}

/* Remember in `seen` that key is used at the current pointer; who has it already, or NULL. */
static const char *taken(struct reader *r, json_t *seen, const char *key)
{
	const char *by;

	if (!key)
		return NULL;
	by = json_string_value(json_object_get(seen, key));
	if (!by)
		json_object_set_new(seen, key, json_string(r->pointer.data));
	return by;
}

static void unique(struct reader *r, json_t *seen, const char *what, const char *key)
{
	const char *by = taken(r, seen, key);

	if (by)
		reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT}, "%s '%s' is taken by %s",
			what, key, by);
}

/* ---- places in the image ---- */

static void check_places(struct reader *r, const struct manifest *m)
{
	auto_json json_t *seen = json_object();

	for (size_t i = 0; i < m->ndirs; i++) {
		point(r, "/dirs/%zu/path", i);
		unique(r, seen, "path", m->dirs[i].path);
	}
	for (size_t i = 0; i < m->nmodels; i++)
		for (size_t k = 0; k < m->models[i].nfiles; k++) {
			const char *target = m->models[i].target;
			const char *path = m->models[i].files[k].path;

			point(r, "/models/%zu/files/%zu/path", i, k);
			if (target && path)
				unique(r, seen, "path",
					arena_printf(r->arena, "%s/%s", target, path));
		}
	for (size_t i = 0; i < m->nfiles; i++) {
		point(r, "/files/%zu/dest", i);
		unique(r, seen, "path", m->files[i].dest);
	}
	for (size_t i = 0; i < m->nlinks; i++) {
		point(r, "/links/%zu/path", i);
		unique(r, seen, "path", m->links[i].path);
	}
}

static void check_files(struct reader *r, const struct manifest *m, const json_t *root)
{
	auto_json json_t *ids = json_object();
	const json_t *files = json_object_get(root, "files");

	for (size_t i = 0; i < m->nfiles; i++) {
		const json_t *f = json_array_get(files, i);
		bool text = json_object_get(f, "inline"), from = json_object_get(f, "from");

		point(r, "/files/%zu", i);
		if (json_is_object(f) && text == from)
			reader_fault(r, NULL,
				(struct fault){.code = text ? SV_CONFLICT : SV_MISSING,
					.expected = "exactly one of 'inline' and 'from'"},
				text ? "two sources" : "no content");
		point(r, "/files/%zu/id", i);
		unique(r, ids, "id", m->files[i].id);
	}
}

static void check_packages(struct reader *r, const struct manifest *m, const json_t *root)
{
	const json_t *list = json_object_get(json_object_get(root, "apt"), "packages");
	auto_json json_t *seen = json_object();

	(void)m;
	for (size_t i = 0; i < json_array_size(list) && i < SCHEMA_ITEMS; i++) {
		const char *p = json_string_value(json_array_get(list, i));
		auto_free char *name = p ? mem_strdup(p) : NULL;

		if (name)
			name[strcspn(name, "=/")] = '\0';
		point(r, "/apt/packages/%zu", i);
		unique(r, seen, "package", name);
	}
}

/* ---- models ---- */

/* A source of one type must have its key, and not the other's. */
static void check_source(struct reader *r, const json_t *source)
{
	static const struct {
		const char *type, *needs, *never;
	} table[] = {{"file", "path", "url"}, {"https", "url", "path"}};
	const char *type = json_string_value(json_object_get(source, "type"));

	for (size_t i = 0; type && i < sizeof(table) / sizeof(table[0]); i++) {
		if (!str_eq(type, table[i].type))
			continue;
		if (!json_object_get(source, table[i].needs))
			reader_fault(r, table[i].needs, (struct fault){.code = SV_MISSING},
				"missing key '%s'", table[i].needs);
		if (json_object_get(source, table[i].never))
			reader_fault(r, table[i].never,
				(struct fault){.code = SV_CONFLICT, .at_key = true},
				"key '%s' does not belong to the type \"%s\"", table[i].never,
				type);
	}
}

static void check_models(struct reader *r, const struct manifest *m, const json_t *root)
{
	const json_t *models = json_object_get(root, "models");
	auto_json json_t *ids = json_object();

	for (size_t i = 0; i < m->nmodels; i++) {
		const json_t *model = json_array_get(models, i);
		const json_t *license = json_object_get(model, "license");

		point(r, "/models/%zu/id", i);
		unique(r, ids, "id", m->models[i].id);
		point(r, "/models/%zu/source", i);
		check_source(r, json_object_get(model, "source"));
		point(r, "/models/%zu/license", i);
		if (json_is_object(license) && !json_object_get(license, "spdx") &&
			!json_object_get(license, "name"))
			reader_fault(r, NULL,
				(struct fault){.code = SV_MISSING, .expected = "'spdx' or 'name'"},
				"a licence without a name");
	}
}

/* ---- the OCI config ---- */

static void check_ports(struct reader *r, const struct manifest *m)
{
	auto_json json_t *seen = json_object(), *names = json_object();

	for (size_t i = 0; i < m->nports; i++) {
		const struct manifest_port *p = &m->ports[i];
		char key[32];
		const char *by;

		snprintf(key, sizeof(key), "%u/%s", p->port,
			str_eq(p->protocol, "udp") ? "udp" : "tcp");
		point(r, "/ports/%zu/port", i);
		by = p->port ? taken(r, seen, key) : NULL;
		if (by)
			reader_fault(r, NULL, (struct fault){.code = SV_PORT},
				"port %s is taken by %s", key, by);
		point(r, "/ports/%zu/name", i);
		unique(r, names, "name", p->name);
	}
}

static void check_secret(struct reader *r, const char *name, const char *value)
{
	const char *kind = secret_kind(name, value);

	if (kind)
		reader_fault(r, NULL,
			(struct fault){.code = SV_SECRET,
				.hint = "give it to the container when it starts: svrun run -e "
					"NAME"},
			"looks like %s", kind);
}

static void check_label(struct reader *r, const char *name)
{
	static const char oci[] = "org.opencontainers.image.";
	static const char *const filled[] = {"created", "revision", "version", "licenses", "title",
		"description", "base.name", "base.digest"};
	struct fault f = {
		.code = SV_CONFLICT, .at_key = true, .hint = "the manifest's own keys say this"};

	if (str_starts(name, "run.svrun."))
		reader_fault(r, NULL, f, "label '%s' is filled in by svrun", name);
	for (size_t i = 0; i < sizeof(filled) / sizeof(filled[0]); i++)
		if (str_starts(name, oci) && str_eq(name + sizeof(oci) - 1, filled[i]))
			reader_fault(r, NULL, f, "label '%s' is filled in by svrun", name);
}

static void check_pairs(struct reader *r, const char *key, const struct pairs *p, bool labels)
{
	for (size_t i = 0; i < p->n; i++) {
		point(r, "/%s/%s", key, p->v[i].name);
		if (labels) { /* names of labels may hold a slash */
			point(r, "/%s", key);
			pointer_push(&r->pointer, p->v[i].name);
			check_label(r, p->v[i].name);
		}
		check_secret(r, labels ? NULL : p->v[i].name, p->v[i].value);
	}
}

static void check_args(struct reader *r, const char *key, const json_t *list, bool program)
{
	for (size_t i = 0; i < json_array_size(list) && i < SCHEMA_ITEMS; i++) {
		const char *s = json_string_value(json_array_get(list, i));

		point(r, "/%s/%zu", key, i);
		if (s && i == 0 && program && !*s)
			reader_fault(r, NULL,
				(struct fault){.code = SV_VALUE, .expected = "a program"},
				"an empty string");
		if (s)
			check_secret(r, NULL, s);
	}
}

static void check_config(struct reader *r, const struct manifest *m, const json_t *root)
{
	check_ports(r, m);
	check_pairs(r, "env", &m->env, false);
	check_pairs(r, "labels", &m->labels, true);
	check_args(r, "entrypoint", json_object_get(root, "entrypoint"), true);
	check_args(r, "cmd", json_object_get(root, "cmd"), m->entrypoint.n == 0);
	for (size_t i = 0; i < m->nfiles; i++) {
		point(r, "/files/%zu/inline", i);
		if (m->files[i].inline_text)
			check_secret(r, NULL, m->files[i].inline_text);
	}
}

/* ---- platforms and layers ---- */

static bool has_model(const struct manifest *m, const char *id)
{
	for (size_t i = 0; i < m->nmodels; i++)
		if (m->models[i].id && str_eq(m->models[i].id, id))
			return true;
	return str_eq(id, "*");
}

static void check_layers(struct reader *r, const struct manifest *m, const json_t *root)
{
	const json_t *layers = json_object_get(json_object_get(root, "build"), "layers");
	const json_t *groups = json_object_get(layers, "groups");
	auto_json json_t *ids = json_object();

	point(r, "/build/layers");
	if (m->build.ngroups && m->build.strategy != LAYERS_GROUPS)
		reader_fault(r, "groups", (struct fault){.code = SV_CONFLICT, .at_key = true},
			"groups are only for the strategy \"groups\"");
	for (size_t i = 0; i < m->build.ngroups; i++) {
		const json_t *match = json_object_get(json_array_get(groups, i), "match");

		point(r, "/build/layers/groups/%zu/id", i);
		unique(r, ids, "id", m->build.groups[i].id);
		for (size_t k = 0; k < json_array_size(match) && k < SCHEMA_ITEMS; k++) {
			const char *s = json_string_value(json_array_get(match, k));

			point(r, "/build/layers/groups/%zu/match/%zu", i, k);
			if (s && str_starts(s, "model:") && !has_model(m, s + 6))
				reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT},
					"no model has the id '%s'", s + 6);
		}
	}
}

void manifest_check(struct reader *r, const struct manifest *m)
{
	const json_t *root = m->doc.root;

	check_packages(r, m, root);
	check_files(r, m, root);
	check_models(r, m, root);
	check_places(r, m);
	check_config(r, m, root);
	check_layers(r, m, root);
}
