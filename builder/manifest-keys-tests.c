/* Tests. */
#include "builder/manifest-keys.h"

#include <stddef.h>

#include "builder/rules.h"

static const struct choice stages[] = {
	{"plan", STAGE_PLAN}, {"image", STAGE_IMAGE}, {"run", STAGE_RUN}, {0}};
static const struct choice types[] = {{"file", TEST_FILE}, {"metadata", TEST_METADATA},
	{"lint", TEST_LINT}, {"elf", TEST_ELF}, {"python-guard", TEST_PYTHON_GUARD},
	{"exec", TEST_EXEC}, {"http", TEST_HTTP}, {"port", TEST_PORT}, {"size", TEST_SIZE}, {0}};
static const struct choice needs[] = {{"none", 0}, {"gpu", 1}, {0}};
static const struct choice afters[] = {{"readiness", 1}, {"start", 0}, {0}};
static const struct choice methods[] = {
	{"GET", 0}, {"HEAD", 0}, {"POST", 0}, {"PUT", 0}, {"PATCH", 0}, {"DELETE", 0}, {0}};
static const struct choice file_types[] = {
	{"file", 0}, {"dir", 0}, {"link", 0}, {"symlink", 0}, {0}};

static const struct key stdout_keys[] = {
	{"equals", V_STRING, .rule = &rule_expected_text, SCHEMA_FIELD(struct test_expect, equals)},
	{"contains", V_STRINGS, .one = true, .rule = &rule_expected_text,
		SCHEMA_FIELD(struct test_expect, contains)},
	{"matches", V_STRING, .rule = &rule_regex, SCHEMA_FIELD(struct test_expect, matches)},
	{"numberAtLeast", V_NUMBER, .present = offsetof(struct test_expect, has_number_at_least),
		SCHEMA_FIELD(struct test_expect, number_at_least)},
	{0},
};
static const struct schema stdout_schema = {.keys = stdout_keys};

static const struct key json_keys[] = {
	{"pointer", V_STRING, .required = true, .rule = &rule_pointer,
		SCHEMA_FIELD(struct test_json, pointer)},
	{"equals", V_JSON, SCHEMA_FIELD(struct test_json, equals)},
	{"minimum", V_NUMBER, .present = offsetof(struct test_json, has_minimum),
		SCHEMA_FIELD(struct test_json, minimum)},
	{"minLength", V_INTEGER, .max = 1 << 30,
		.present = offsetof(struct test_json, has_min_length),
		SCHEMA_FIELD(struct test_json, min_length)},
	{0},
};
static const struct schema json_schema = {.keys = json_keys, .size = sizeof(struct test_json)};

static const struct key expect_keys[] = {
	{"exit", V_INTEGER, .max = 255, SCHEMA_FIELD(struct test_expect, exit)},
	{"stdout", V_OBJECT, .of = &stdout_schema},
	{"status", V_INTEGERS, .min = 100, .max = 599,
		.count = offsetof(struct test_expect, nstatus),
		SCHEMA_FIELD(struct test_expect, status)},
	{"json", V_OBJECTS, .max = 1000, .of = &json_schema,
		.count = offsetof(struct test_expect, njson),
		SCHEMA_FIELD(struct test_expect, json)},
	{"unresolved", V_STRINGS, .set = true, .rule = &rule_line,
		SCHEMA_FIELD(struct test_expect, unresolved)},
	{"allowUnresolved", V_STRINGS, .set = true, .rule = &rule_line,
		SCHEMA_FIELD(struct test_expect, allow_unresolved)},
	{"maxBytes", V_INTEGER, .min = 1, .max = 1ull << 50,
		SCHEMA_FIELD(struct test_expect, max_bytes)},
	{"maxLayers", V_INTEGER, .min = 1, .max = 1000,
		SCHEMA_FIELD(struct test_expect, max_layers)},
	{"absent", V_BOOL, SCHEMA_FIELD(struct test_expect, absent)},
	{"type", V_WORD, .choices = file_types, SCHEMA_FIELD(struct test_expect, type)},
	{"target", V_STRING, .rule = &rule_target, SCHEMA_FIELD(struct test_expect, target)},
	{"mode", V_STRING, .rule = &rule_octal, SCHEMA_FIELD(struct test_expect, mode)},
	{"owner", V_STRING, .rule = &rule_owner, SCHEMA_FIELD(struct test_expect, owner)},
	{"sha256", V_SHA256, .present = offsetof(struct test_expect, has_sha256),
		SCHEMA_FIELD(struct test_expect, sha256)},
	{"env", V_PAIRS, .rule = &rule_env_value, .name_rule = &rule_env_name,
		SCHEMA_FIELD(struct test_expect, env)},
	{"labels", V_PAIRS, .rule = &rule_label_value, .name_rule = &rule_label_name,
		SCHEMA_FIELD(struct test_expect, labels)},
	{"entrypoint", V_STRINGS, .rule = &rule_arg, SCHEMA_FIELD(struct test_expect, entrypoint)},
	{"cmd", V_STRINGS, .rule = &rule_arg, SCHEMA_FIELD(struct test_expect, cmd)},
	{"ports", V_STRINGS, .set = true, .rule = &rule_port_key,
		SCHEMA_FIELD(struct test_expect, ports)},
	{"user", V_STRING, .rule = &rule_user, SCHEMA_FIELD(struct test_expect, user)},
	{"workdir", V_STRING, .rule = &rule_abs_or_root, SCHEMA_FIELD(struct test_expect, workdir)},
	{0},
};
static const struct schema expect_schema = {.keys = expect_keys};

static const struct key request_keys[] = {
	{"method", V_WORD, .choices = methods, SCHEMA_FIELD(struct manifest_test, method)},
	{"port", V_INTEGER, .required = true, .min = 1, .max = 65535,
		SCHEMA_FIELD(struct manifest_test, port)},
	{"path", V_STRING, .rule = &rule_http_path, SCHEMA_FIELD(struct manifest_test, path)},
	{"headers", V_PAIRS, .rule = &rule_header_value, .name_rule = &rule_header_name, .max = 100,
		SCHEMA_FIELD(struct manifest_test, headers)},
	{"body", V_STRING, .rule = &rule_expected_text, SCHEMA_FIELD(struct manifest_test, body)},
	{"json", V_JSON, SCHEMA_FIELD(struct manifest_test, json)},
	{0},
};
static const struct schema request_schema = {.keys = request_keys};

static const struct key test_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_test, id)},
	{"stage", V_ENUM, .required = true, .choices = stages,
		SCHEMA_FIELD(struct manifest_test, stage)},
	{"type", V_ENUM, .required = true, .choices = types,
		SCHEMA_FIELD(struct manifest_test, type)},
	{"mode", V_STRING, .rule = &rule_mode_name, SCHEMA_FIELD(struct manifest_test, mode)},
	{"needs", V_ENUM, .choices = needs, SCHEMA_FIELD(struct manifest_test, needs_gpu)},
	{"required", V_BOOL, SCHEMA_FIELD(struct manifest_test, required)},
	{"disabled", V_BOOL, SCHEMA_FIELD(struct manifest_test, disabled)},
	{"path", V_STRINGS, .one = true, .rule = &rule_abs_glob,
		SCHEMA_FIELD(struct manifest_test, paths)},
	{"paths", V_STRINGS, .set = true, .rule = &rule_abs_glob, .max = 1000,
		SCHEMA_FIELD(struct manifest_test, paths)},
	{"rules", V_STRINGS, .set = true, .rule = &rule_code,
		SCHEMA_FIELD(struct manifest_test, rules)},
	{"argv", V_STRINGS, .rule = &rule_arg, .min = 1, SCHEMA_FIELD(struct manifest_test, argv)},
	{"env", V_PAIRS, .rule = &rule_env_value, .name_rule = &rule_env_name,
		SCHEMA_FIELD(struct manifest_test, env)},
	{"user", V_STRING, .rule = &rule_user, SCHEMA_FIELD(struct manifest_test, user)},
	{"workdir", V_STRING, .rule = &rule_abs_or_root,
		SCHEMA_FIELD(struct manifest_test, workdir)},
	{"request", V_OBJECT, .of = &request_schema},
	{"port", V_INTEGER, .min = 1, .max = 65535, SCHEMA_FIELD(struct manifest_test, port)},
	{"after", V_ENUM, .choices = afters, SCHEMA_FIELD(struct manifest_test, after_readiness)},
	{"timeoutMs", V_INTEGER, .min = 1, .max = 86400000,
		SCHEMA_FIELD(struct manifest_test, timeout_ms)},
	{"expect", V_OBJECT, .of = &expect_schema, .at = offsetof(struct manifest_test, expect)},
	{0},
};
static const struct manifest_test test_defaults = {
	.required = true, .timeout_ms = 30000, .method = "GET", .path = "/"};
const struct schema test_schema = {
	.keys = test_keys, .size = sizeof(struct manifest_test), .defaults = &test_defaults};
