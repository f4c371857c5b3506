#include "builder/manifest-keys.h"

#include <stddef.h>

#include "builder/rules.h"

#define IDS_MAX (UINT32_MAX - 1) /* the last uid means "leave as it is" */

/* ---- apt ---- */

static const struct key apt_source_keys[] = {
	{"uri", V_STRING, .required = true, .rule = &rule_mirror_uri,
		SCHEMA_FIELD(struct apt_source, uri)},
	{"suites", V_STRINGS, .required = true, .rule = &rule_suite, .min = 1,
		SCHEMA_FIELD(struct apt_source, suites)},
	{"components", V_STRINGS, .required = true, .rule = &rule_component, .min = 1,
		SCHEMA_FIELD(struct apt_source, components)},
	{"signedBy", V_STRING, .required = true, .rule = &rule_signed_by,
		SCHEMA_FIELD(struct apt_source, signed_by)},
	{"checkValidUntil", V_BOOL, SCHEMA_FIELD(struct apt_source, check_valid_until)},
	{0},
};
static const char *const apt_source_later[] = {"snapshot", NULL};
static const struct apt_source apt_source_defaults = {.check_valid_until = true};
static const struct schema apt_source_schema = {.keys = apt_source_keys,
	.later = apt_source_later,
	.size = sizeof(struct apt_source),
	.defaults = &apt_source_defaults};

static const struct choice configures[] = {
	{"builtin", APT_BUILTIN, false}, {"none", APT_NONE, false}, {"dpkg", 0, true}, {0}};
static const struct choice merges[] = {{"usr", 1, false}, {0}};
static const struct choice databases[] = {
	{"dpkg", 0, false}, {"status.d", 0, true}, {"none", 0, true}, {0}};

static const struct key apt_keys[] = {
	{"sources", V_OBJECTS, .required = true, .min = 1, .max = 64, .of = &apt_source_schema,
		.count = offsetof(struct manifest_apt, nsources),
		SCHEMA_FIELD(struct manifest_apt, sources)},
	{"packages", V_STRINGS, .required = true, .rule = &rule_package, .min = 1,
		SCHEMA_FIELD(struct manifest_apt, packages)},
	{"recommends", V_BOOL, SCHEMA_FIELD(struct manifest_apt, recommends)},
	{"configure", V_ENUM, .choices = configures, SCHEMA_FIELD(struct manifest_apt, configure)},
	{"merge", V_WORD, .choices = merges},
	{"alternatives", V_PAIRS, .name_rule = &rule_alternative, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_apt, alternatives)},
	{"prune", V_STRINGS, .rule = &rule_prune, SCHEMA_FIELD(struct manifest_apt, prune)},
	{"database", V_WORD, .choices = databases},
	{0},
};
static const char *const apt_later[] = {"holds", "pins", NULL};
static const struct schema apt_schema = {.keys = apt_keys, .later = apt_later};

/* ---- node ---- */

static const struct choice script_choices[] = {{"none", 0, false}, {0}};

static const struct key node_keys[] = {
	{"lock", V_STRING, .required = true, .rule = &rule_rel,
		SCHEMA_FIELD(struct manifest_node, lock)},
	{"prefix", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_node, prefix)},
	{"omit", V_STRINGS, .rule = &rule_omit, SCHEMA_FIELD(struct manifest_node, omit)},
	{"scripts", V_WORD, .choices = script_choices},
	{0},
};
static const struct schema node_schema = {.keys = node_keys};

/* ---- files, dirs, links ---- */

static const struct key file_keys[] = {
	{"id", V_STRING, .rule = &rule_id, SCHEMA_FIELD(struct manifest_file, id)},
	{"dest", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_file, dest)},
	{"mode", V_MODE, SCHEMA_FIELD(struct manifest_file, mode)},
	{"inline", V_STRING, .rule = &rule_inline, SCHEMA_FIELD(struct manifest_file, inline_text)},
	{"from", V_STRING, .rule = &rule_rel, SCHEMA_FIELD(struct manifest_file, from)},
	{"uid", V_INTEGER, .max = IDS_MAX, SCHEMA_FIELD(struct manifest_file, uid)},
	{"gid", V_INTEGER, .max = IDS_MAX, SCHEMA_FIELD(struct manifest_file, gid)},
	{0},
};
static const struct manifest_file file_defaults = {.mode = 0644};
static const struct schema file_schema = {
	.keys = file_keys, .size = sizeof(struct manifest_file), .defaults = &file_defaults};

static const struct key dir_keys[] = {
	{"path", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_dir, path)},
	{"mode", V_MODE, SCHEMA_FIELD(struct manifest_dir, mode)},
	{"uid", V_INTEGER, .max = IDS_MAX, SCHEMA_FIELD(struct manifest_dir, uid)},
	{"gid", V_INTEGER, .max = IDS_MAX, SCHEMA_FIELD(struct manifest_dir, gid)},
	{0},
};
static const struct manifest_dir dir_defaults = {.mode = 0755};
static const struct schema dir_schema = {
	.keys = dir_keys, .size = sizeof(struct manifest_dir), .defaults = &dir_defaults};

static const struct key link_keys[] = {
	{"path", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_link, path)},
	{"target", V_STRING, .required = true, .rule = &rule_target,
		SCHEMA_FIELD(struct manifest_link, target)},
	{0},
};
static const struct schema link_schema = {.keys = link_keys, .size = sizeof(struct manifest_link)};

/* ---- models ---- */

static const struct choice formats[] = {{"safetensors", 0, false}, {"gguf", 0, false},
	{"onnx", 0, false}, {"other", 0, false}, {"ckpt", 0, true}, {0}};
static const struct choice deliveries[] = {
	{"layer", 0, false}, {"artifact", 0, true}, {"runtime", 0, true}, {"volume", 0, true}, {0}};
static const struct choice model_sources[] = {{"file", MODEL_FILE, false},
	{"https", MODEL_HTTPS, false}, {"hf", 0, true}, {"s3", 0, true}, {"oci", 0, true}, {0}};
static const struct choice acceptances[] = {
	{"none", 0, false}, {"user", 0, false}, {"org", 0, false}, {0}};
static const struct choice redistributions[] = {
	{"yes", 0, false}, {"no", 0, false}, {"with-notice", 0, false}, {0}};

static const struct key model_source_keys[] = {
	{"type", V_ENUM, .required = true, .choices = model_sources,
		SCHEMA_FIELD(struct manifest_model, source)},
	{"path", V_STRING, .rule = &rule_rel, SCHEMA_FIELD(struct manifest_model, source_path)},
	{"url", V_STRING, .rule = &rule_address, SCHEMA_FIELD(struct manifest_model, source_url)},
	{0},
};
static const char *const model_source_later[] = {
	"repo", "revision", "include", "exclude", "secret", NULL};
static const struct schema model_source_schema = {
	.keys = model_source_keys, .later = model_source_later};

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

/* Facts about the weights' licence, for whoever offers the image; nothing here acts on them. */
static const struct key license_keys[] = {
	{"spdx", V_STRING, .rule = &rule_spdx},
	{"name", V_STRING, .rule = &rule_line},
	{"url", V_STRING, .rule = &rule_link},
	{.name = "gated", .kind = V_BOOL},
	{"acceptance", V_WORD, .choices = acceptances},
	{"redistribute", V_WORD, .choices = redistributions},
	{.name = "nonCommercial", .kind = V_BOOL},
	{"excludedTerritories", V_STRINGS, .rule = &rule_territory},
	{"maxMonthlyUsers", V_INTEGER, .min = 1, .max = INT64_MAX},
	{"notice", V_STRING, .rule = &rule_abs},
	{0},
};
static const struct schema license_schema = {.keys = license_keys};

static const struct key model_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_model, id)},
	{"target", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_model, target)},
	{"format", V_WORD, .required = true, .choices = formats,
		SCHEMA_FIELD(struct manifest_model, format)},
	{"delivery", V_WORD, .choices = deliveries},
	{"source", V_OBJECT, .required = true, .of = &model_source_schema},
	{"files", V_OBJECTS, .required = true, .min = 1, .of = &model_file_schema,
		.count = offsetof(struct manifest_model, nfiles),
		SCHEMA_FIELD(struct manifest_model, files)},
	{"license", V_OBJECT, .of = &license_schema},
	{0},
};
static const char *const model_later[] = {
	"optional", "parameters", "quantization", "vramGiB", "links", "allowPickle", NULL};
static const struct schema model_schema = {
	.keys = model_keys, .later = model_later, .size = sizeof(struct manifest_model)};

/* ---- ports ---- */

static const struct choice protocols[] = {
	{"tcp", 0, false}, {"udp", 0, false}, {"http", 0, false}, {"https", 0, false}, {0}};

static const struct key port_keys[] = {
	{"port", V_INTEGER, .required = true, .min = 1, .max = 65535,
		SCHEMA_FIELD(struct manifest_port, port)},
	{"name", V_STRING, .rule = &rule_id, SCHEMA_FIELD(struct manifest_port, name)},
	{"protocol", V_WORD, .choices = protocols, SCHEMA_FIELD(struct manifest_port, protocol)},
	{0},
};
static const char *const port_later[] = {"path", "primary", "auth", "label", NULL};
static const struct manifest_port port_defaults = {.protocol = "tcp"};
static const struct schema port_schema = {.keys = port_keys,
	.later = port_later,
	.size = sizeof(struct manifest_port),
	.defaults = &port_defaults};

/* ---- build ---- */

static const struct choice strategies[] = {{"groups", LAYERS_GROUPS, false},
	{"origin", LAYERS_ORIGIN, false}, {"single", LAYERS_SINGLE, false}, {0}};
static const struct choice codecs[] = {
	{"zstd", CODEC_ZSTD, false}, {"gzip", CODEC_GZIP, false}, {"none", CODEC_NONE, false}, {0}};

static const struct key group_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id, SCHEMA_FIELD(struct layer_group, id)},
	{"match", V_STRINGS, .required = true, .rule = &rule_match, .min = 1, .max = 1000,
		SCHEMA_FIELD(struct layer_group, match)},
	{0},
};
static const struct schema group_schema = {.keys = group_keys, .size = sizeof(struct layer_group)};

static const struct key layers_keys[] = {
	{"strategy", V_ENUM, .choices = strategies, SCHEMA_FIELD(struct manifest_build, strategy)},
	{"max", V_INTEGER, .min = 1, .max = 100, SCHEMA_FIELD(struct manifest_build, max_layers)},
	{"groups", V_OBJECTS, .max = 100, .of = &group_schema,
		.count = offsetof(struct manifest_build, ngroups),
		SCHEMA_FIELD(struct manifest_build, groups)},
	{0},
};
static const struct schema layers_schema = {.keys = layers_keys};

static const struct key compression_keys[] = {
	{"default", V_ENUM, .choices = codecs, SCHEMA_FIELD(struct manifest_build, codec)},
	{"level", V_INTEGER, .min = 1, .max = 19, SCHEMA_FIELD(struct manifest_build, level)},
	{"models", V_ENUM, .choices = codecs, SCHEMA_FIELD(struct manifest_build, models_codec)},
	{0},
};
static const struct schema compression_schema = {.keys = compression_keys};

static const struct key build_keys[] = {
	{"epoch", V_INTEGER, .max = 253402300799, SCHEMA_FIELD(struct manifest_build, epoch)},
	{"layers", V_OBJECT, .of = &layers_schema},
	{"compression", V_OBJECT, .of = &compression_schema},
	{0},
};
static const char *const build_later[] = {"sbom", "provenance", "scan", "squash", "volatile", NULL};
static const struct schema build_schema = {.keys = build_keys, .later = build_later};

/* ---- the document ---- */

static const struct choice schemas[] = {{"svrun.image/1", 0, false}, {0}};
static const struct choice categories[] = {{"base", 0, false}, {"notebook", 0, false},
	{"desktop", 0, false}, {"llm", 0, false}, {"image", 0, false}, {"video", 0, false},
	{"audio", 0, false}, {"3d", 0, false}, {"vision", 0, false}, {"embedding", 0, false},
	{"training", 0, false}, {"agent", 0, false}, {"nlp", 0, false}, {0}};

static const struct choice base_types[] = {{"scratch", 0, false}, {"oci", 0, true}, {0}};
static const struct key base_keys[] = {
	{"type", V_WORD, .required = true, .choices = base_types}, {0}};
static const char *const base_later[] = {"ref", "digest", "verify", NULL};
static const struct schema base_schema = {.keys = base_keys, .later = base_later};

static const struct key manifest_keys[] = {
	{"schema", V_WORD, .required = true, .choices = schemas},
	{"name", V_STRING, .required = true, .rule = &rule_name,
		SCHEMA_FIELD(struct manifest, name)},
	{"version", V_STRING, .required = true, .rule = &rule_version,
		SCHEMA_FIELD(struct manifest, version)},
	{"title", V_STRING, .rule = &rule_line, SCHEMA_FIELD(struct manifest, title)},
	{"description", V_STRING, .rule = &rule_text, SCHEMA_FIELD(struct manifest, description)},
	{"category", V_WORD, .choices = categories},
	{"licenses", V_STRINGS, .rule = &rule_spdx, .max = 100,
		SCHEMA_FIELD(struct manifest, licenses)},
	{"platforms", V_STRINGS, .rule = &rule_platform, .min = 1, .max = 16},
	{"base", V_OBJECT, .of = &base_schema},
	{"apt", V_OBJECT, .of = &apt_schema, .at = offsetof(struct manifest, apt),
		.present = offsetof(struct manifest, apt.present)},
	{"node", V_OBJECT, .of = &node_schema, .at = offsetof(struct manifest, node),
		.present = offsetof(struct manifest, node.present)},
	{"files", V_OBJECTS, .of = &file_schema, .count = offsetof(struct manifest, nfiles),
		SCHEMA_FIELD(struct manifest, files)},
	{"dirs", V_OBJECTS, .of = &dir_schema, .count = offsetof(struct manifest, ndirs),
		SCHEMA_FIELD(struct manifest, dirs)},
	{"links", V_OBJECTS, .of = &link_schema, .count = offsetof(struct manifest, nlinks),
		SCHEMA_FIELD(struct manifest, links)},
	{"models", V_OBJECTS, .of = &model_schema, .max = 1000,
		.count = offsetof(struct manifest, nmodels), SCHEMA_FIELD(struct manifest, models)},
	{"env", V_PAIRS, .name_rule = &rule_env_name, .rule = &rule_env_value,
		SCHEMA_FIELD(struct manifest, env)},
	{"user", V_STRING, .rule = &rule_user, SCHEMA_FIELD(struct manifest, user)},
	{"workdir", V_STRING, .rule = &rule_abs_or_root, SCHEMA_FIELD(struct manifest, workdir)},
	{"entrypoint", V_STRINGS, .rule = &rule_arg,
		.present = offsetof(struct manifest, has_entrypoint),
		SCHEMA_FIELD(struct manifest, entrypoint)},
	{"cmd", V_STRINGS, .rule = &rule_arg, .present = offsetof(struct manifest, has_cmd),
		SCHEMA_FIELD(struct manifest, cmd)},
	{"stopSignal", V_STRING, .rule = &rule_signal, SCHEMA_FIELD(struct manifest, stop_signal)},
	{"ports", V_OBJECTS, .of = &port_schema, .max = 1000,
		.count = offsetof(struct manifest, nports), SCHEMA_FIELD(struct manifest, ports)},
	{"labels", V_PAIRS, .name_rule = &rule_label_name, .rule = &rule_label_value,
		SCHEMA_FIELD(struct manifest, labels)},
	{"build", V_OBJECT, .of = &build_schema, .at = offsetof(struct manifest, build)},
	{0},
};
static const char *const manifest_later[] = {"from", "vars", "matrix", "python", "sources", "run",
	"users", "groups", "stopTimeoutMs", "init", "services", "volumes", "gpu", "modes",
	"resources", "health", "tests", "inputs", "presets", "icon", "readme", "annotations", NULL};
const struct schema manifest_schema = {
	.keys = manifest_keys, .later = manifest_later, .size = sizeof(struct manifest)};
