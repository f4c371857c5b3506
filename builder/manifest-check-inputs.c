/* Rules between the keys of what goes into an image. */
#include "builder/manifest-check.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/rules.h"

/* ---- places in the image ---- */

static void check_places(struct reader *r, const struct manifest *m)
{
	auto_json json_t *seen = json_object();

	for (size_t i = 0; i < m->ndirs; i++) {
		check_point(r, "/dirs/%zu/path", i);
		check_unique(r, seen, "path", m->dirs[i].path);
	}
	for (size_t i = 0; i < m->nmodels; i++)
		for (size_t k = 0; k < m->models[i].nfiles; k++) {
			const char *target = m->models[i].target;
			const char *path = m->models[i].files[k].path;

			check_point(r, "/models/%zu/files/%zu/path", i, k);
			if (target && path)
				check_unique(r, seen, "path",
					arena_printf(r->arena, "%s/%s", target, path));
		}
	for (size_t i = 0; i < m->nfiles; i++) {
		check_point(r, "/files/%zu/dest", i);
		check_unique(r, seen, "path", m->files[i].dest);
	}
	for (size_t i = 0; i < m->nlinks; i++) {
		check_point(r, "/links/%zu/path", i);
		check_unique(r, seen, "path", m->links[i].path);
	}
}

/* Files and sources share their ids: steps name them. */
static void check_contents(struct reader *r, const struct manifest *m, const json_t *root)
{
	static const struct belongs types[] = {
		{"git", {"url", "commit"}, {"sha256", "size", "inline", "mode"}},
		{"archive", {"url", "sha256", "size"}, {"commit", "treeSha256", "inline", "mode"}},
		{"file", {"url", "sha256", "size"},
			{"commit", "treeSha256", "inline", "strip", "include", "exclude"}},
		{"inline", {"inline"},
			{"url", "commit", "treeSha256", "sha256", "size", "strip", "include",
				"exclude"}},
		{"oci", {"url", "sha256"}, {"commit", "treeSha256", "size", "inline", "mode"}},
	};
	auto_json json_t *ids = json_object();
	const json_t *files = json_object_get(root, "files");
	const json_t *sources = json_object_get(root, "sources");

	for (size_t i = 0; i < m->nfiles; i++) {
		check_point(r, "/files/%zu", i);
		check_either(r, json_array_get(files, i), "inline", "from");
		check_point(r, "/files/%zu/id", i);
		check_unique(r, ids, "id", m->files[i].id);
	}
	for (size_t i = 0; i < m->nsources; i++) {
		const struct manifest_source *s = &m->sources[i];

		check_point(r, "/sources/%zu", i);
		check_belongs(r, json_array_get(sources, i), "type", types,
			sizeof(types) / sizeof(types[0]));
		check_point(r, "/sources/%zu/url", i);
		if (s->url &&
			!(s->type == SOURCE_OCI ? rule_reference : rule_locked_url).ok(s->url))
			reader_fault(r, NULL,
				(struct fault){.code = SV_VALUE,
					.expected = s->type == SOURCE_OCI
							    ? rule_reference.expected
							    : rule_locked_url.expected},
				"not an address of this type");
		check_point(r, "/sources/%zu/id", i);
		check_unique(r, ids, "id", s->id);
	}
}

static void check_packages(struct reader *r, const json_t *root)
{
	const json_t *list = json_object_get(json_object_get(root, "apt"), "packages");
	auto_json json_t *seen = json_object();

	for (size_t i = 0; i < json_array_size(list) && i < SCHEMA_ITEMS; i++) {
		const char *p = json_string_value(json_array_get(list, i));
		auto_free char *name = p ? mem_strdup(p) : NULL;

		if (name)
			name[strcspn(name, "=/")] = '\0';
		check_point(r, "/apt/packages/%zu", i);
		check_unique(r, seen, "package", name);
	}
}

/* ---- models ---- */

/* Formats and names of files that hold Python objects, which run code when they are loaded. */
static bool is_pickle(const struct manifest_model *m)
{
	static const char *const endings[] = {".ckpt", ".pt", ".pth", ".pkl", ".pickle"};

	for (size_t i = 0; i < m->nfiles; i++)
		for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++)
			if (m->files[i].path && str_ends(m->files[i].path, endings[k]))
				return true;
	return m->format == FORMAT_CKPT;
}

static void check_model(struct reader *r, const struct manifest_model *m, const json_t *model)
{
	static const struct belongs types[] = {
		{"file", {"path"}, {"url", "repo", "revision", "secret"}},
		{"https", {"url"}, {"path", "repo", "revision"}},
		{"s3", {"url"}, {"path", "repo", "revision"}},
		{"oci", {"url"}, {"path", "repo", "revision"}},
		{"hf", {"repo", "revision"}, {"path", "url"}},
	};
	const json_t *license = json_object_get(model, "license");
	size_t len = r->pointer.len;

	pointer_push(&r->pointer, "source");
	check_belongs(r, json_object_get(model, "source"), "type", types,
		sizeof(types) / sizeof(types[0]));
	if (m->source_url &&
		!(m->source == MODEL_OCI ? rule_reference : rule_address).ok(m->source_url))
		reader_fault(r, "url",
			(struct fault){.code = SV_VALUE,
				.expected = m->source == MODEL_OCI ? rule_reference.expected
								   : rule_address.expected},
			"not an address of this type");
	pointer_pop(&r->pointer, len);
	/* others are listed when they are locked */
	if (json_is_object(model) && !json_object_get(model, "files") &&
		m->delivery != DELIVERY_VOLUME && (m->include.n || m->exclude.n) &&
		(m->source == MODEL_HTTPS || m->source == MODEL_S3))
		reader_fault(r, "files", (struct fault){.code = SV_MISSING}, "missing key 'files'");
	if (is_pickle(m) && !m->allow_pickle)
		reader_fault(r, "format",
			(struct fault){.code = SV_PICKLE,
				.hint = "use safetensors, or say \"allowPickle\": true"},
			"pickled weights run code when they are loaded");
	pointer_push(&r->pointer, "license");
	if (json_is_object(license) && !json_object_get(license, "spdx") &&
		!json_object_get(license, "name"))
		reader_fault(r, NULL,
			(struct fault){.code = SV_MISSING, .expected = "'spdx' or 'name'"},
			"a licence without a name");
	pointer_pop(&r->pointer, len);
}

static void check_models(struct reader *r, const struct manifest *m, const json_t *root)
{
	const json_t *models = json_object_get(root, "models");
	auto_json json_t *ids = json_object();

	for (size_t i = 0; i < m->nmodels; i++) {
		check_point(r, "/models/%zu/id", i);
		check_unique(r, ids, "id", m->models[i].id);
		check_point(r, "/models/%zu", i);
		check_model(r, &m->models[i], json_array_get(models, i));
	}
}

/* ---- base, Python, users, steps ---- */

static void check_base(struct reader *r, const json_t *root)
{
	static const struct belongs types[] = {
		{"scratch", {NULL}, {"ref", "digest", "verify"}},
		{"oci", {"ref", "digest"}, {NULL}},
	};
	const json_t *base = json_object_get(root, "base"),
		     *verify = json_object_get(base, "verify");

	check_point(r, "/base");
	check_belongs(r, base, "type", types, sizeof(types) / sizeof(types[0]));
	check_point(r, "/base/verify");
	if (verify)
		check_either(r, verify, "key", "identity");
}

static void check_python(struct reader *r, const struct manifest *m)
{
	auto_json json_t *names = json_object();

	for (size_t i = 0; i < m->python.nwheels; i++) {
		const struct wheel_pin *w = &m->python.wheels[i];

		check_point(r, "/python/wheels/%zu/name", i);
		check_unique(r, names, "distribution", w->name);
		check_point(r, "/python/wheels/%zu", i);
		if (w->path && w->url)
			reader_fault(r, "path", (struct fault){.code = SV_CONFLICT, .at_key = true},
				"'path' and 'url' of one wheel");
	}
}

static void check_users(struct reader *r, const struct manifest *m)
{
	auto_json json_t *names = json_object(), *uids = json_object(), *groups = json_object();
	char id[16];

	for (size_t i = 0; i < m->nusers; i++) {
		check_point(r, "/users/%zu/name", i);
		check_unique(r, names, "user", m->users[i].name);
		check_point(r, "/users/%zu/uid", i);
		snprintf(id, sizeof(id), "%u", m->users[i].uid);
		check_unique(r, uids, "uid", id);
	}
	for (size_t i = 0; i < m->ngroups; i++) {
		check_point(r, "/groups/%zu/name", i);
		check_unique(r, groups, "group", m->groups[i].name);
	}
}

static bool has_input(const struct manifest *m, const char *id)
{
	for (size_t i = 0; i < m->nfiles; i++)
		if (m->files[i].id && str_eq(m->files[i].id, id))
			return true;
	for (size_t i = 0; i < m->nsources; i++)
		if (m->sources[i].id && str_eq(m->sources[i].id, id))
			return true;
	return false;
}

/* Among the first n. */
static bool has_step(const struct manifest *m, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (m->runs[i].id && str_eq(m->runs[i].id, id))
			return true;
	return false;
}

static void check_step(struct reader *r, const struct manifest *m, size_t i, const json_t *step)
{
	const struct manifest_run *run = &m->runs[i];
	auto_json json_t *secrets = json_object();

	check_point(r, "/run/%zu", i);
	check_either(r, step, "argv", "script");
	if (json_object_get(step, "argv") && json_object_get(step, "interpreter"))
		reader_fault(r, "interpreter", (struct fault){.code = SV_CONFLICT, .at_key = true},
			"an interpreter is only for a script");
	for (size_t k = 0; k < run->inputs.n; k++) {
		check_point(r, "/run/%zu/inputs/%zu", i, k);
		if (!has_input(m, run->inputs.v[k]) && !has_step(m, i, run->inputs.v[k]))
			reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT},
				"no source, file or step before it has the id '%s'",
				run->inputs.v[k]);
	}
	for (size_t k = 0; k < run->nsecrets; k++) {
		check_point(r, "/run/%zu/secrets/%zu/id", i, k);
		check_unique(r, secrets, "secret", run->secrets[k].id);
	}
}

static void check_steps(struct reader *r, const struct manifest *m, const json_t *root)
{
	const json_t *steps = json_object_get(root, "run");
	auto_json json_t *ids = json_object();

	for (size_t i = 0; i < m->nruns; i++) {
		check_point(r, "/run/%zu/id", i);
		check_unique(r, ids, "id", m->runs[i].id);
		check_step(r, m, i, json_array_get(steps, i));
	}
}

void check_inputs(struct reader *r, const struct manifest *m, const json_t *root)
{
	check_base(r, root);
	check_packages(r, root);
	check_point(r, "/apt/database");
	if (m->apt.configure == APT_DPKG && m->apt.database != DATABASE_DPKG)
		reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT, .expected = "\"dpkg\""},
			"dpkg needs its own database to configure packages");
	check_point(r, "/apt/holds");
	if (m->apt.holds.n && m->apt.database == DATABASE_NONE)
		reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT, .at_key = true},
			"a hold is an entry of the database, and apt.database is none");
	check_python(r, m);
	check_contents(r, m, root);
	check_models(r, m, root);
	check_places(r, m);
	check_users(r, m);
	check_steps(r, m, root);
}
