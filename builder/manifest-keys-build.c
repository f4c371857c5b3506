/* Variables, the form of the marketplace, and the build. */
#include "builder/manifest-keys.h"

#include <stddef.h>

#include "builder/rules.h"

/* ---- vars, matrix ---- */

static const struct choice var_types[] = {
	{"string", VAR_STRING}, {"integer", VAR_INTEGER}, {"boolean", VAR_BOOLEAN}, {0}};

static const struct key var_keys[] = {
	{"type", V_ENUM, .choices = var_types, SCHEMA_FIELD(struct manifest_var, type)},
	{"default", V_JSON, SCHEMA_FIELD(struct manifest_var, value)},
	{"title", V_STRING, .rule = &rule_line, SCHEMA_FIELD(struct manifest_var, title)},
	{"enum", V_STRINGS, .set = true, .scalars = true, .rule = &rule_expected_text, .min = 1,
		SCHEMA_FIELD(struct manifest_var, choices)},
	{"pattern", V_STRING, .rule = &rule_regex, SCHEMA_FIELD(struct manifest_var, pattern)},
	{"min", V_SIGNED, .present = offsetof(struct manifest_var, has_min),
		SCHEMA_FIELD(struct manifest_var, min)},
	{"max", V_SIGNED, .present = offsetof(struct manifest_var, has_max),
		SCHEMA_FIELD(struct manifest_var, max)},
	{0},
};
const struct schema var_schema = {.keys = var_keys, .size = sizeof(struct manifest_var)};

/* resolve.c takes the values; here they only have a form. */
static const struct key matrix_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_entry, id)},
	{"vars", V_PAIRS, .required = true, .scalars = true, .rule = &rule_expected_text,
		.name_rule = &rule_var_name},
	{0},
};
const struct schema matrix_schema = {.keys = matrix_keys, .size = sizeof(struct manifest_entry)};

/* ---- inputs, presets ---- */

static const struct choice input_types[] = {{"string", INPUT_STRING}, {"integer", INPUT_INTEGER},
	{"boolean", INPUT_BOOLEAN}, {"select", INPUT_SELECT}, {"secret", INPUT_SECRET},
	{"model", INPUT_MODEL}, {0}};

static const struct key input_keys[] = {
	{"env", V_STRING, .rule = &rule_env_name, SCHEMA_FIELD(struct manifest_input, env)},
	{"var", V_STRING, .rule = &rule_var_name, SCHEMA_FIELD(struct manifest_input, var)},
	{"type", V_ENUM, .required = true, .choices = input_types,
		SCHEMA_FIELD(struct manifest_input, type)},
	{"title", V_STRING, .rule = &rule_line, SCHEMA_FIELD(struct manifest_input, title)},
	{"description", V_STRING, .rule = &rule_text,
		SCHEMA_FIELD(struct manifest_input, description)},
	{"min", V_SIGNED, .present = offsetof(struct manifest_input, has_min),
		SCHEMA_FIELD(struct manifest_input, min)},
	{"max", V_SIGNED, .present = offsetof(struct manifest_input, has_max),
		SCHEMA_FIELD(struct manifest_input, max)},
	{"required", V_BOOL, SCHEMA_FIELD(struct manifest_input, required)},
	{"advanced", V_BOOL, SCHEMA_FIELD(struct manifest_input, advanced)},
	{"options", V_STRINGS, .scalars = true, .rule = &rule_expected_text, .min = 1, .max = 1000,
		SCHEMA_FIELD(struct manifest_input, options)},
	{0},
};
const struct schema input_schema = {.keys = input_keys, .size = sizeof(struct manifest_input)};

static const struct key preset_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_preset, id)},
	{"title", V_STRING, .rule = &rule_line, SCHEMA_FIELD(struct manifest_preset, title)},
	{"values", V_PAIRS, .required = true, .scalars = true, .rule = &rule_expected_text,
		.name_rule = &rule_env_name, SCHEMA_FIELD(struct manifest_preset, values)},
	{0},
};
const struct schema preset_schema = {.keys = preset_keys, .size = sizeof(struct manifest_preset)};

/* ---- build ---- */

static const struct choice strategies[] = {
	{"groups", LAYERS_GROUPS}, {"origin", LAYERS_ORIGIN}, {"single", LAYERS_SINGLE}, {0}};
static const struct choice codecs[] = {
	{"zstd", CODEC_ZSTD}, {"gzip", CODEC_GZIP}, {"none", CODEC_NONE}, {0}};
static const struct choice provenances[] = {{"slsa-v1", 1}, {"none", 0}, {0}};
static const struct choice severities[] = {
	{"low", 0}, {"medium", 0}, {"high", 0}, {"critical", 0}, {0}};

static const struct key layer_group_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id, SCHEMA_FIELD(struct layer_group, id)},
	{"match", V_STRINGS, .required = true, .rule = &rule_match, .min = 1, .max = 1000,
		SCHEMA_FIELD(struct layer_group, match)},
	{0},
};
static const struct schema layer_group_schema = {
	.keys = layer_group_keys, .size = sizeof(struct layer_group)};

static const struct key layers_keys[] = {
	{"strategy", V_ENUM, .choices = strategies, SCHEMA_FIELD(struct manifest_build, strategy)},
	{"max", V_INTEGER, .min = 1, .max = 100, SCHEMA_FIELD(struct manifest_build, max_layers)},
	{"groups", V_OBJECTS, .max = 100, .of = &layer_group_schema,
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

static const struct key allow_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_line, SCHEMA_FIELD(struct scan_allow, id)},
	{"until", V_STRING, .required = true, .rule = &rule_iso_date,
		SCHEMA_FIELD(struct scan_allow, until)},
	{"reason", V_STRING, .required = true, .rule = &rule_line,
		SCHEMA_FIELD(struct scan_allow, reason)},
	{0},
};
static const struct schema allow_schema = {.keys = allow_keys, .size = sizeof(struct scan_allow)};

static const struct key scan_keys[] = {
	{"failOn", V_WORD, .choices = severities,
		SCHEMA_FIELD(struct manifest_build, scan_fail_on)},
	{"ignoreUnfixed", V_BOOL, SCHEMA_FIELD(struct manifest_build, scan_ignore_unfixed)},
	{"allow", V_OBJECTS, .max = 1000, .of = &allow_schema,
		.count = offsetof(struct manifest_build, nallow),
		SCHEMA_FIELD(struct manifest_build, allow)},
	{0},
};
static const struct schema scan_schema = {.keys = scan_keys};

static const struct key build_keys[] = {
	{"epoch", V_INTEGER, .max = 253402300799, SCHEMA_FIELD(struct manifest_build, epoch)},
	{"layers", V_OBJECT, .of = &layers_schema},
	{"compression", V_OBJECT, .of = &compression_schema},
	{"sbom", V_STRINGS, .set = true, .rule = &rule_sbom,
		SCHEMA_FIELD(struct manifest_build, sbom)},
	{"provenance", V_ENUM, .choices = provenances,
		SCHEMA_FIELD(struct manifest_build, provenance)},
	{"scan", V_OBJECT, .of = &scan_schema, .present = offsetof(struct manifest_build, scan)},
	{"squash", V_BOOL, SCHEMA_FIELD(struct manifest_build, squash)},
	{"volatile", V_STRINGS, .set = true, .rule = &rule_abs_glob, .max = 1000,
		SCHEMA_FIELD(struct manifest_build, volatiles)},
	{0},
};
const struct schema build_schema = {.keys = build_keys};
