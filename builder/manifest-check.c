#include "builder/manifest-check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/secrets.h"

void check_point(struct reader *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->pointer.len = 0;
	buf_printf(&r->pointer, "%s", text);
}

const char *check_taken(struct reader *r, json_t *seen, const char *key)
{
	const char *by;

	if (!key)
		return NULL;
	by = json_string_value(json_object_get(seen, key));
	if (!by)
		json_object_set_new(seen, key, json_string(r->pointer.data));
	return by;
}

void check_unique(struct reader *r, json_t *seen, const char *what, const char *key)
{
	const char *by = check_taken(r, seen, key);

	if (by)
		reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT}, "%s '%s' is taken by %s",
			what, key, by);
}

/* What pins an input is not any missing key. */
static int code_of_missing(const char *key)
{
	if (str_eq(key, "digest"))
		return SV_BASE_DIGEST;
	return str_eq(key, "sha256") || str_eq(key, "commit") || str_eq(key, "revision")
		       ? SV_DIGEST
		       : SV_MISSING;
}

void check_belongs(struct reader *r, const json_t *object, const char *key,
	const struct belongs *table, size_t n)
{
	const char *type = json_string_value(json_object_get(object, key));

	for (size_t i = 0; type && i < n; i++) {
		const char *const *k;

		if (!str_eq(type, table[i].type))
			continue;
		for (k = table[i].needs; *k; k++)
			if (!json_object_get(object, *k))
				reader_fault(r, *k, (struct fault){.code = code_of_missing(*k)},
					"missing key '%s'", *k);
		for (k = table[i].never; *k; k++)
			if (json_object_get(object, *k))
				reader_fault(r, *k,
					(struct fault){.code = SV_CONFLICT, .at_key = true},
					"key '%s' does not belong to the %s \"%s\"", *k, key, type);
	}
}

void check_either(struct reader *r, const json_t *object, const char *a, const char *b)
{
	bool both = json_object_get(object, a) && json_object_get(object, b);

	if (json_is_object(object) &&
		(both || (!json_object_get(object, a) && !json_object_get(object, b))))
		reader_fault(r, NULL,
			(struct fault){.code = both ? SV_CONFLICT : SV_MISSING,
				.expected = arena_printf(
					r->arena, "exactly one of '%s' and '%s'", a, b)},
			both ? "both of two alternatives" : "none of two alternatives");
}

/* ---- the OCI config ---- */

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
		reader_fault(r, NULL, f, "'%s' is filled in by svrun", name);
	for (size_t i = 0; i < sizeof(filled) / sizeof(filled[0]); i++)
		if (str_starts(name, oci) && str_eq(name + sizeof(oci) - 1, filled[i]))
			reader_fault(r, NULL, f, "'%s' is filled in by svrun", name);
}

static void check_pairs(struct reader *r, const char *key, const struct pairs *p, bool labels)
{
	for (size_t i = 0; i < p->n; i++) {
		check_point(r, "/%s/%s", key, p->v[i].name);
		if (labels) { /* names of labels may hold a slash */
			check_point(r, "/%s", key);
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

		check_point(r, "/%s/%zu", key, i);
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
	check_pairs(r, "env", &m->env, false);
	check_pairs(r, "labels", &m->labels, true);
	check_pairs(r, "annotations", &m->annotations, true);
	for (size_t i = 0; i < m->nruns; i++)
		check_pairs(r, arena_printf(r->arena, "run/%zu/env", i), &m->runs[i].env, false);
	for (size_t i = 0; i < m->nservices; i++)
		check_pairs(r, arena_printf(r->arena, "services/%zu/env", i), &m->services[i].env,
			false);
	check_args(r, "entrypoint", json_object_get(root, "entrypoint"), true);
	check_args(r, "cmd", json_object_get(root, "cmd"), m->entrypoint.n == 0);
	for (size_t i = 0; i < m->nfiles; i++) {
		check_point(r, "/files/%zu/inline", i);
		if (m->files[i].inline_text)
			check_secret(r, NULL, m->files[i].inline_text);
	}
}

/* ---- layers ---- */

/* Is there a model, source or step for this match? Others match what comes, and a mode may have
 * other models. */
static bool match_has_object(const struct manifest *m, const char *s, const char **what)
{
	const char *id = strchr(s, ':') + 1;
	bool found = str_eq(id, "*");

	*what = str_starts(s, "model:") ? "model" : str_starts(s, "source:") ? "source" : "step";
	for (size_t i = 0; str_starts(s, "model:") && i < m->nmodels; i++)
		found = found || (m->models[i].id && str_eq(m->models[i].id, id));
	for (size_t i = 0; str_starts(s, "source:") && i < m->nsources; i++)
		found = found || (m->sources[i].id && str_eq(m->sources[i].id, id));
	for (size_t i = 0; str_starts(s, "run:") && i < m->nruns; i++)
		found = found || (m->runs[i].id && str_eq(m->runs[i].id, id));
	return found ||
	       !(str_starts(s, "model:") || str_starts(s, "source:") || str_starts(s, "run:"));
}

static void check_layers(struct reader *r, const struct manifest *m, const json_t *root)
{
	const json_t *layers = json_object_get(json_object_get(root, "build"), "layers");
	const json_t *groups = json_object_get(layers, "groups");
	auto_json json_t *ids = json_object();

	check_point(r, "/build/layers");
	if (m->build.ngroups && m->build.strategy != LAYERS_GROUPS)
		reader_fault(r, "groups", (struct fault){.code = SV_CONFLICT, .at_key = true},
			"groups are only for the strategy \"groups\"");
	for (size_t i = 0; i < m->build.ngroups; i++) {
		const json_t *match = json_object_get(json_array_get(groups, i), "match");

		check_point(r, "/build/layers/groups/%zu/id", i);
		check_unique(r, ids, "id", m->build.groups[i].id);
		for (size_t k = 0; k < json_array_size(match) && k < SCHEMA_ITEMS; k++) {
			const char *s = json_string_value(json_array_get(match, k)), *what;

			check_point(r, "/build/layers/groups/%zu/match/%zu", i, k);
			if (s && strchr(s, ':') && !m->mode && !match_has_object(m, s, &what))
				reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT},
					"no %s has the id '%s'", what, strchr(s, ':') + 1);
		}
	}
}

void manifest_check(struct reader *r, const struct manifest *m)
{
	const json_t *root = m->doc.root;

	check_inputs(r, m, root);
	check_config(r, m, root);
	check_serve(r, m, root);
	check_tests(r, m, root);
	check_layers(r, m, root);
}
