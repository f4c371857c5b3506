/* Weights, and steps that run code. */
#include "builder/manifest-keys.h"

#include <stddef.h>

#include "builder/rules.h"

/* ---- models ---- */

static const struct choice formats[] = {{"safetensors", FORMAT_SAFETENSORS}, {"gguf", FORMAT_GGUF},
	{"onnx", FORMAT_ONNX}, {"ckpt", FORMAT_CKPT}, {"other", FORMAT_OTHER}, {0}};
static const struct choice deliveries[] = {{"layer", DELIVERY_LAYER},
	{"artifact", DELIVERY_ARTIFACT}, {"runtime", DELIVERY_RUNTIME}, {"volume", DELIVERY_VOLUME},
	{0}};
static const struct choice model_sources[] = {{"file", MODEL_FILE}, {"https", MODEL_HTTPS},
	{"hf", MODEL_HF}, {"s3", MODEL_S3}, {"oci", MODEL_OCI}, {0}};
static const struct choice acceptances[] = {
	{"none", ACCEPT_NONE}, {"user", ACCEPT_USER}, {"org", ACCEPT_ORG}, {0}};
static const struct choice redistributions[] = {{"yes", REDISTRIBUTE_YES}, {"no", REDISTRIBUTE_NO},
	{"with-notice", REDISTRIBUTE_WITH_NOTICE}, {0}};

static const struct key model_source_keys[] = {
	{"type", V_ENUM, .required = true, .choices = model_sources,
		SCHEMA_FIELD(struct manifest_model, source)},
	{"path", V_STRING, .rule = &rule_local, SCHEMA_FIELD(struct manifest_model, source_path)},
	{"url", V_STRING, .rule = &rule_model_url, SCHEMA_FIELD(struct manifest_model, source_url)},
	{"repo", V_STRING, .rule = &rule_repo, SCHEMA_FIELD(struct manifest_model, repo)},
	{"revision", V_STRING, .rule = &rule_commit, SCHEMA_FIELD(struct manifest_model, revision)},
	{"include", V_STRINGS, .set = true, .rule = &rule_glob, .max = 1000,
		SCHEMA_FIELD(struct manifest_model, include)},
	{"exclude", V_STRINGS, .set = true, .rule = &rule_glob, .max = 1000,
		SCHEMA_FIELD(struct manifest_model, exclude)},
	{"secret", V_STRING, .rule = &rule_id, SCHEMA_FIELD(struct manifest_model, secret)},
	{0},
};
static const struct schema model_source_schema = {.keys = model_source_keys};

static const struct key model_file_keys[] = {
	{"path", V_STRING, .required = true, .rule = &rule_rel,
		SCHEMA_FIELD(struct model_file, path)},
	{"sha256", V_SHA256, .required = true, SCHEMA_FIELD(struct model_file, sha256)},
	{"size", V_INTEGER, .required = true, .min = 1, .max = 1ull << 46,
		SCHEMA_FIELD(struct model_file, size)},
	{0},
};
static const struct schema model_file_schema = {
	.keys = model_file_keys, .size = sizeof(struct model_file)};

static const struct key license_keys[] = {
	{"spdx", V_STRING, .rule = &rule_spdx, SCHEMA_FIELD(struct model_license, spdx)},
	{"name", V_STRING, .rule = &rule_line, SCHEMA_FIELD(struct model_license, name)},
	{"url", V_STRING, .rule = &rule_link, SCHEMA_FIELD(struct model_license, url)},
	{"gated", V_BOOL, SCHEMA_FIELD(struct model_license, gated)},
	{"acceptance", V_ENUM, .choices = acceptances,
		SCHEMA_FIELD(struct model_license, acceptance)},
	{"redistribute", V_ENUM, .choices = redistributions,
		SCHEMA_FIELD(struct model_license, redistribute)},
	{"nonCommercial", V_BOOL, SCHEMA_FIELD(struct model_license, non_commercial)},
	{"excludedTerritories", V_STRINGS, .set = true, .rule = &rule_territory,
		SCHEMA_FIELD(struct model_license, excluded_territories)},
	{"maxMonthlyUsers", V_INTEGER, .min = 1, .max = INT64_MAX,
		SCHEMA_FIELD(struct model_license, max_monthly_users)},
	{"notice", V_STRING, .rule = &rule_abs, SCHEMA_FIELD(struct model_license, notice)},
	{0},
};
static const struct schema license_schema = {.keys = license_keys};

static const struct key model_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_model, id)},
	{"target", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_model, target)},
	{"format", V_ENUM, .required = true, .choices = formats,
		SCHEMA_FIELD(struct manifest_model, format)},
	{"delivery", V_ENUM, .choices = deliveries, SCHEMA_FIELD(struct manifest_model, delivery)},
	{"optional", V_BOOL, SCHEMA_FIELD(struct manifest_model, optional)},
	{"allowPickle", V_BOOL, SCHEMA_FIELD(struct manifest_model, allow_pickle)},
	{"parameters", V_STRING, .rule = &rule_line,
		SCHEMA_FIELD(struct manifest_model, parameters)},
	{"quantization", V_STRING, .rule = &rule_line,
		SCHEMA_FIELD(struct manifest_model, quantization)},
	{"vramGiB", V_INTEGER, .max = 65536, SCHEMA_FIELD(struct manifest_model, vram_gib)},
	{"source", V_OBJECT, .required = true, .of = &model_source_schema},
	{"files", V_OBJECTS, .min = 1, .of = &model_file_schema,
		.count = offsetof(struct manifest_model, nfiles),
		SCHEMA_FIELD(struct manifest_model, files)},
	{"links", V_PAIRS, .rule = &rule_target, .name_rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_model, links)},
	{"license", V_OBJECT, .of = &license_schema,
		.present = offsetof(struct manifest_model, license.present),
		.at = offsetof(struct manifest_model, license)},
	{0},
};
const struct schema model_schema = {.keys = model_keys, .size = sizeof(struct manifest_model)};

/* ---- run ---- */

static const struct key run_secret_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id, SCHEMA_FIELD(struct run_secret, id)},
	{"target", V_STRING, .rule = &rule_abs, SCHEMA_FIELD(struct run_secret, target)},
	{"required", V_BOOL, SCHEMA_FIELD(struct run_secret, required)},
	{0},
};
static const struct run_secret run_secret_defaults = {.required = true};
static const struct schema run_secret_schema = {.keys = run_secret_keys,
	.size = sizeof(struct run_secret),
	.defaults = &run_secret_defaults};

static const struct key run_cache_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id, SCHEMA_FIELD(struct run_cache, id)},
	{"target", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct run_cache, target)},
	{0},
};
static const struct schema run_cache_schema = {
	.keys = run_cache_keys, .size = sizeof(struct run_cache)};

static const struct key run_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id, SCHEMA_FIELD(struct manifest_run, id)},
	{"argv", V_STRINGS, .rule = &rule_build_text, .min = 1,
		SCHEMA_FIELD(struct manifest_run, argv)},
	{"script", V_STRING, .rule = &rule_program, SCHEMA_FIELD(struct manifest_run, script)},
	{"interpreter", V_STRING, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_run, interpreter)},
	{"inputs", V_STRINGS, .set = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_run, inputs)},
	{"env", V_PAIRS, .rule = &rule_build_text, .name_rule = &rule_env_name,
		SCHEMA_FIELD(struct manifest_run, env)},
	{"network", V_BOOL, SCHEMA_FIELD(struct manifest_run, network)},
	{"secrets", V_OBJECTS, .max = 100, .of = &run_secret_schema,
		.count = offsetof(struct manifest_run, nsecrets),
		SCHEMA_FIELD(struct manifest_run, secrets)},
	{"cache", V_OBJECTS, .max = 100, .of = &run_cache_schema,
		.count = offsetof(struct manifest_run, ncaches),
		SCHEMA_FIELD(struct manifest_run, caches)},
	{"writes", V_STRINGS, .required = true, .set = true, .rule = &rule_abs_glob, .max = 1000,
		SCHEMA_FIELD(struct manifest_run, writes)},
	{"user", V_STRING, .rule = &rule_user, SCHEMA_FIELD(struct manifest_run, user)},
	{"workdir", V_STRING, .rule = &rule_abs_or_root,
		SCHEMA_FIELD(struct manifest_run, workdir)},
	{"timeoutMs", V_INTEGER, .min = 1, .max = 86400000,
		SCHEMA_FIELD(struct manifest_run, timeout_ms)},
	{"memoryMiB", V_INTEGER, .min = 16, .max = 1 << 24,
		SCHEMA_FIELD(struct manifest_run, memory_mib)},
	{"cpus", V_INTEGER, .min = 1, .max = 1024, SCHEMA_FIELD(struct manifest_run, cpus)},
	{"diskMiB", V_INTEGER, .min = 1, .max = 1 << 24,
		SCHEMA_FIELD(struct manifest_run, disk_mib)},
	{0},
};
static const struct manifest_run run_defaults = {.interpreter = "/bin/sh", .timeout_ms = 600000};
const struct schema run_schema = {
	.keys = run_keys, .size = sizeof(struct manifest_run), .defaults = &run_defaults};
