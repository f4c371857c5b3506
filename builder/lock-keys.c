#include "builder/lock-keys.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/npm.h"
#include "builder/rules.h"

enum {
	DEBS_MAX = 20000,
	NPMS_MAX = 20000,
	WHEELS_MAX = 20000,
	FILES_MAX = 20000,
};
#define DEB_BYTES (4ull << 30)
#define WHEEL_BYTES (8ull << 30)
#define FILE_BYTES (1ull << 46)

/* ---- tables ---- */

static const struct key index_keys[] = {
	{"uri", V_STRING, .required = true, .rule = &rule_mirror_uri,
		SCHEMA_FIELD(struct lock_index, uri)},
	{"suite", V_STRING, .required = true, .rule = &rule_suite,
		SCHEMA_FIELD(struct lock_index, suite)},
	{"date", V_STRING, .required = true, .rule = &rule_date,
		SCHEMA_FIELD(struct lock_index, date)},
	{"signedBy", V_STRINGS, .required = true, .rule = &rule_fingerprint, .max = 64,
		SCHEMA_FIELD(struct lock_index, signed_by)},
	{"sha256", V_SHA256, .required = true, SCHEMA_FIELD(struct lock_index, release)},
	{0},
};
static const struct schema index_schema = {.keys = index_keys, .size = sizeof(struct lock_index)};

static const struct key deb_keys[] = {
	{"name", V_STRING, .required = true, .rule = &rule_deb_name,
		SCHEMA_FIELD(struct lock_deb, name)},
	{"version", V_STRING, .required = true, .rule = &rule_deb_version,
		SCHEMA_FIELD(struct lock_deb, version)},
	{"arch", V_STRING, .required = true, .rule = &rule_deb_arch,
		SCHEMA_FIELD(struct lock_deb, arch)},
	{"url", V_STRING, .required = true, .rule = &rule_address,
		SCHEMA_FIELD(struct lock_deb, url)},
	{"source", V_STRING, .required = true, .rule = &rule_deb_name,
		SCHEMA_FIELD(struct lock_deb, source)},
	{"sha256", V_SHA256, .required = true, SCHEMA_FIELD(struct lock_deb, sha256)},
	{"size", V_INTEGER, .required = true, .min = 1, .max = DEB_BYTES,
		SCHEMA_FIELD(struct lock_deb, size)},
	{"essential", V_BOOL, SCHEMA_FIELD(struct lock_deb, essential)},
	{"why", V_STRINGS, .required = true, .rule = &rule_line, .max = DEBS_MAX,
		SCHEMA_FIELD(struct lock_deb, why)},
	{0},
};
static const struct schema deb_schema = {.keys = deb_keys, .size = sizeof(struct lock_deb)};

static const struct key npm_keys[] = {
	{"path", V_STRING, .required = true, .rule = &rule_npm_path,
		SCHEMA_FIELD(struct lock_npm, path)},
	{"name", V_STRING, .required = true, .rule = &rule_npm_name,
		SCHEMA_FIELD(struct lock_npm, name)},
	{"version", V_STRING, .required = true, .rule = &rule_npm_version,
		SCHEMA_FIELD(struct lock_npm, version)},
	{"url", V_STRING, .required = true, .rule = &rule_address,
		SCHEMA_FIELD(struct lock_npm, url)},
	{"integrity", V_STRING, .required = true, .rule = &rule_integrity,
		SCHEMA_FIELD(struct lock_npm, integrity)},
	{"bin", V_PAIRS, .name_rule = &rule_npm_command, .rule = &rule_npm_bin, .max = NPM_BINS_MAX,
		SCHEMA_FIELD(struct lock_npm, bin)},
	{0},
};
static const struct schema npm_schema = {.keys = npm_keys, .size = sizeof(struct lock_npm)};

static const struct key file_keys[] = {
	{"path", V_STRING, .required = true, .rule = &rule_local,
		SCHEMA_FIELD(struct lock_file, path)},
	{"sha256", V_SHA256, .required = true, SCHEMA_FIELD(struct lock_file, sha256)},
	{"size", V_INTEGER, .required = true, .max = FILE_BYTES,
		SCHEMA_FIELD(struct lock_file, size)},
	{0},
};
static const struct schema file_schema = {.keys = file_keys, .size = sizeof(struct lock_file)};

static const struct key apt_keys[] = {
	{"indexes", V_OBJECTS, .required = true, .max = 1000, .of = &index_schema,
		.count = offsetof(struct lock, nindexes), SCHEMA_FIELD(struct lock, indexes)},
	{"packages", V_OBJECTS, .required = true, .max = DEBS_MAX, .of = &deb_schema,
		.count = offsetof(struct lock, ndebs), SCHEMA_FIELD(struct lock, debs)},
	{0},
};
static const struct schema debs_schema = {.keys = apt_keys};

static const struct key node_keys[] = {
	{"packages", V_OBJECTS, .required = true, .max = NPMS_MAX, .of = &npm_schema,
		.count = offsetof(struct lock, nnpms), SCHEMA_FIELD(struct lock, npms)},
	{0},
};
static const struct schema npms_schema = {.keys = node_keys};

static const struct key wheel_keys[] = {
	{"name", V_STRING, .required = true, .rule = &rule_dist_name,
		SCHEMA_FIELD(struct lock_wheel, name)},
	{"version", V_STRING, .required = true, .rule = &rule_dist_version,
		SCHEMA_FIELD(struct lock_wheel, version)},
	{"file", V_STRING, .required = true, .rule = &rule_wheel_file,
		SCHEMA_FIELD(struct lock_wheel, file)},
	{"url", V_STRING, .required = true, .rule = &rule_locked_url,
		SCHEMA_FIELD(struct lock_wheel, url)},
	{"sha256", V_SHA256, .required = true, SCHEMA_FIELD(struct lock_wheel, sha256)},
	{"size", V_INTEGER, .required = true, .min = 1, .max = WHEEL_BYTES,
		SCHEMA_FIELD(struct lock_wheel, size)},
	{"why", V_STRINGS, .required = true, .rule = &rule_line, .max = WHEELS_MAX,
		SCHEMA_FIELD(struct lock_wheel, why)},
	{"extras", V_STRINGS, .rule = &rule_dist_name, .max = 1000,
		SCHEMA_FIELD(struct lock_wheel, extras)},
	{0},
};
static const struct schema wheel_schema = {.keys = wheel_keys, .size = sizeof(struct lock_wheel)};

static const struct key python_keys[] = {
	{"version", V_STRING, .rule = &rule_dist_version, SCHEMA_FIELD(struct lock, python)},
	{"wheels", V_OBJECTS, .required = true, .max = WHEELS_MAX, .of = &wheel_schema,
		.count = offsetof(struct lock, nwheels), SCHEMA_FIELD(struct lock, wheels)},
	{0},
};
static const struct schema python_schema = {.keys = python_keys};

static const struct key source_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id, SCHEMA_FIELD(struct lock_source, id)},
	{"url", V_STRING, .rule = &rule_source_url, SCHEMA_FIELD(struct lock_source, url)},
	{"commit", V_STRING, .rule = &rule_commit, SCHEMA_FIELD(struct lock_source, commit)},
	{"treeSha256", V_SHA256, .present = offsetof(struct lock_source, has_tree),
		SCHEMA_FIELD(struct lock_source, tree_sha256)},
	{"sha256", V_SHA256, SCHEMA_FIELD(struct lock_source, sha256)},
	{"size", V_INTEGER, .max = FILE_BYTES, SCHEMA_FIELD(struct lock_source, size)},
	{0},
};
static const struct schema source_schema = {
	.keys = source_keys, .size = sizeof(struct lock_source)};

static const struct key model_file_keys[] = {
	{"path", V_STRING, .required = true, .rule = &rule_rel,
		SCHEMA_FIELD(struct model_file, path)},
	{"sha256", V_SHA256, .required = true, SCHEMA_FIELD(struct model_file, sha256)},
	{"size", V_INTEGER, .required = true, .max = FILE_BYTES,
		SCHEMA_FIELD(struct model_file, size)},
	{0},
};
static const struct schema model_file_schema = {
	.keys = model_file_keys, .size = sizeof(struct model_file)};

static const struct key model_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id, SCHEMA_FIELD(struct lock_model, id)},
	{"setSha256", V_SHA256, .required = true, SCHEMA_FIELD(struct lock_model, set)},
	{"files", V_OBJECTS, .required = true, .min = 1, .max = FILES_MAX, .of = &model_file_schema,
		.count = offsetof(struct lock_model, nfiles),
		SCHEMA_FIELD(struct lock_model, files)},
	{0},
};
static const struct schema model_schema = {.keys = model_keys, .size = sizeof(struct lock_model)};

static const struct key layer_keys[] = {
	{"digest", V_DIGEST, .required = true, SCHEMA_FIELD(struct lock_layer, digest)},
	{"diffId", V_DIGEST, .required = true, SCHEMA_FIELD(struct lock_layer, diff_id)},
	{"size", V_INTEGER, .required = true, .min = 1, .max = FILE_BYTES,
		SCHEMA_FIELD(struct lock_layer, size)},
	{0},
};
static const struct schema layer_schema = {.keys = layer_keys, .size = sizeof(struct lock_layer)};

static const struct key base_keys[] = {
	{"ref", V_STRING, .required = true, .rule = &rule_reference,
		SCHEMA_FIELD(struct lock_base, ref)},
	{"manifest", V_DIGEST, .required = true, SCHEMA_FIELD(struct lock_base, manifest)},
	{"config", V_DIGEST, .required = true, SCHEMA_FIELD(struct lock_base, config)},
	{"layers", V_OBJECTS, .required = true, .min = 1, .max = 1000, .of = &layer_schema,
		.count = offsetof(struct lock_base, nlayers),
		SCHEMA_FIELD(struct lock_base, layers)},
	{0},
};
static const struct schema base_of_lock_schema = {.keys = base_keys};

static const struct choice schemas[] = {{"svrun.lock/1", 0}, {0}};

/* What came after the first version is not required: an older lock pins none of it. */
static const struct key lock_keys[] = {
	{"schema", V_WORD, .required = true, .choices = schemas},
	{"manifestDigest", V_DIGEST, .required = true, SCHEMA_FIELD(struct lock, manifest)},
	{"envelope", V_DIGEST, SCHEMA_FIELD(struct lock, envelope)},
	{"platform", V_STRING, .required = true, .rule = &rule_platform,
		SCHEMA_FIELD(struct lock, platform)},
	{"base", V_OBJECT, .of = &base_of_lock_schema, .at = offsetof(struct lock, base),
		.present = offsetof(struct lock, base.present)},
	{"apt", V_OBJECT, .required = true, .of = &debs_schema},
	{"python", V_OBJECT, .of = &python_schema},
	{"node", V_OBJECT, .required = true, .of = &npms_schema},
	{"sources", V_OBJECTS, .max = 1000, .of = &source_schema,
		.count = offsetof(struct lock, nsources), SCHEMA_FIELD(struct lock, sources)},
	{"models", V_OBJECTS, .max = 1000, .of = &model_schema,
		.count = offsetof(struct lock, nmodels), SCHEMA_FIELD(struct lock, models)},
	{"files", V_OBJECTS, .required = true, .max = FILES_MAX, .of = &file_schema,
		.count = offsetof(struct lock, nfiles), SCHEMA_FIELD(struct lock, files)},
	{0},
};
const struct schema lock_schema = {.keys = lock_keys};

/* ---- order ---- */

/* NULL, which the tables refused, is before everything. */
static int compare(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

int lock_index_compare(const void *a, const void *b)
{
	const struct lock_index *x = a, *y = b;
	int c = compare(x->uri, y->uri);

	return c ? c : compare(x->suite, y->suite);
}

int lock_deb_compare(const void *a, const void *b)
{
	const struct lock_deb *x = a, *y = b;
	int c = compare(x->name, y->name);

	return c ? c : compare(x->arch, y->arch);
}

int lock_npm_compare(const void *a, const void *b)
{
	return compare(((const struct lock_npm *)a)->path, ((const struct lock_npm *)b)->path);
}

int lock_wheel_compare(const void *a, const void *b)
{
	return compare(((const struct lock_wheel *)a)->name, ((const struct lock_wheel *)b)->name);
}

int lock_source_compare(const void *a, const void *b)
{
	return compare(((const struct lock_source *)a)->id, ((const struct lock_source *)b)->id);
}

int lock_model_compare(const void *a, const void *b)
{
	return compare(((const struct lock_model *)a)->id, ((const struct lock_model *)b)->id);
}

int lock_model_file_compare(const void *a, const void *b)
{
	return compare(((const struct model_file *)a)->path, ((const struct model_file *)b)->path);
}

int lock_file_compare(const void *a, const void *b)
{
	return compare(((const struct lock_file *)a)->path, ((const struct lock_file *)b)->path);
}

static void check_list(struct reader *r, const char *pointer, const void *v, size_t n, size_t size,
	int (*order)(const void *, const void *))
{
	for (size_t i = 1; i < n; i++) {
		const char *item = (const char *)v + i * size;
		int c = order(item - size, item);

		if (c < 0)
			continue;
		r->pointer.len = 0;
		buf_printf(&r->pointer, "%s/%zu", pointer, i);
		reader_fault(r, NULL, (struct fault){.code = SV_CONFLICT},
			c == 0 ? "the same as the one before" : "not in order");
		return;
	}
}

void lock_check_order(struct reader *r, const struct lock *l)
{
	check_list(r, "/apt/indexes", l->indexes, l->nindexes, sizeof(*l->indexes),
		lock_index_compare);
	check_list(r, "/apt/packages", l->debs, l->ndebs, sizeof(*l->debs), lock_deb_compare);
	check_list(r, "/node/packages", l->npms, l->nnpms, sizeof(*l->npms), lock_npm_compare);
	check_list(
		r, "/python/wheels", l->wheels, l->nwheels, sizeof(*l->wheels), lock_wheel_compare);
	check_list(
		r, "/sources", l->sources, l->nsources, sizeof(*l->sources), lock_source_compare);
	check_list(r, "/models", l->models, l->nmodels, sizeof(*l->models), lock_model_compare);
	for (size_t i = 0; i < l->nmodels; i++) {
		char pointer[64];

		snprintf(pointer, sizeof(pointer), "/models/%zu/files", i);
		check_list(r, pointer, l->models[i].files, l->models[i].nfiles,
			sizeof(*l->models[i].files), lock_model_file_compare);
	}
	check_list(r, "/files", l->files, l->nfiles, sizeof(*l->files), lock_file_compare);
}
