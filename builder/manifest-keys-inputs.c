/* What goes into an image. */
#include "builder/manifest-keys.h"

#include <stddef.h>

#include "builder/rules.h"

#define IDS_MAX (UINT32_MAX - 1) /* the last uid means "leave as it is" */

/* ---- base ---- */

static const struct choice base_types[] = {{"scratch", BASE_SCRATCH}, {"oci", BASE_OCI}, {0}};
static const struct key identity_keys[] = {
	{"issuer", V_STRING, .required = true, .rule = &rule_line,
		SCHEMA_FIELD(struct manifest_base, issuer)},
	{"subject", V_STRING, .required = true, .rule = &rule_line,
		SCHEMA_FIELD(struct manifest_base, subject)},
	{"root", V_STRING, .rule = &rule_line, SCHEMA_FIELD(struct manifest_base, root)},
	{0},
};
static const struct schema identity_schema = {.keys = identity_keys};

static const struct key verify_keys[] = {
	{"key", V_STRING, .rule = &rule_local, SCHEMA_FIELD(struct manifest_base, key)},
	{"identity", V_OBJECT, .of = &identity_schema,
		.present = offsetof(struct manifest_base, identity)},
	{0},
};
static const struct schema verify_schema = {.keys = verify_keys};

static const struct key base_keys[] = {
	{"type", V_ENUM, .required = true, .choices = base_types,
		SCHEMA_FIELD(struct manifest_base, type)},
	{"ref", V_STRING, .rule = &rule_reference, SCHEMA_FIELD(struct manifest_base, ref)},
	{"digest", V_DIGEST, SCHEMA_FIELD(struct manifest_base, digest)},
	{"verify", V_OBJECT, .of = &verify_schema},
	{0},
};
const struct schema base_schema = {.keys = base_keys};

/* ---- apt ---- */

static const struct key apt_source_keys[] = {
	{"uri", V_STRING, .required = true, .rule = &rule_mirror_uri,
		SCHEMA_FIELD(struct apt_source, uri)},
	{"suites", V_STRINGS, .required = true, .set = true, .rule = &rule_suite, .min = 1,
		SCHEMA_FIELD(struct apt_source, suites)},
	{"components", V_STRINGS, .required = true, .set = true, .rule = &rule_component, .min = 1,
		SCHEMA_FIELD(struct apt_source, components)},
	{"signedBy", V_STRING, .required = true, .rule = &rule_signed_by,
		SCHEMA_FIELD(struct apt_source, signed_by)},
	{"snapshot", V_STRING, .rule = &rule_snapshot, SCHEMA_FIELD(struct apt_source, snapshot)},
	{"checkValidUntil", V_BOOL, SCHEMA_FIELD(struct apt_source, check_valid_until)},
	{0},
};
static const struct apt_source apt_source_defaults = {.check_valid_until = true};
static const struct schema apt_source_schema = {.keys = apt_source_keys,
	.size = sizeof(struct apt_source),
	.defaults = &apt_source_defaults};

static const struct choice configures[] = {
	{"builtin", APT_BUILTIN}, {"dpkg", APT_DPKG}, {"none", APT_NONE}, {0}};
static const struct choice merges[] = {{"usr", 1}, {0}};
static const struct choice databases[] = {
	{"dpkg", DATABASE_DPKG}, {"status.d", DATABASE_STATUS_D}, {"none", DATABASE_NONE}, {0}};

static const struct key apt_keys[] = {
	{"sources", V_OBJECTS, .required = true, .min = 1, .max = 64, .of = &apt_source_schema,
		.count = offsetof(struct manifest_apt, nsources),
		SCHEMA_FIELD(struct manifest_apt, sources)},
	{"packages", V_STRINGS, .required = true, .set = true, .rule = &rule_package, .min = 1,
		SCHEMA_FIELD(struct manifest_apt, packages)},
	{"holds", V_STRINGS, .set = true, .rule = &rule_deb_name,
		SCHEMA_FIELD(struct manifest_apt, holds)},
	{"pins", V_PAIRS, .rule = &rule_version_pattern, .name_rule = &rule_deb_name,
		SCHEMA_FIELD(struct manifest_apt, pins)},
	{"recommends", V_BOOL, SCHEMA_FIELD(struct manifest_apt, recommends)},
	{"configure", V_ENUM, .choices = configures, SCHEMA_FIELD(struct manifest_apt, configure)},
	{"database", V_ENUM, .choices = databases, SCHEMA_FIELD(struct manifest_apt, database)},
	{"merge", V_ENUM, .choices = merges, SCHEMA_FIELD(struct manifest_apt, merge_usr)},
	{"alternatives", V_PAIRS, .rule = &rule_abs, .name_rule = &rule_alternative,
		SCHEMA_FIELD(struct manifest_apt, alternatives)},
	{"prune", V_STRINGS, .set = true, .rule = &rule_prune,
		SCHEMA_FIELD(struct manifest_apt, prune)},
	{0},
};
const struct schema apt_schema = {.keys = apt_keys};

/* ---- Python ---- */

static const struct key wheel_keys[] = {
	{"name", V_STRING, .required = true, .rule = &rule_dist_name,
		SCHEMA_FIELD(struct wheel_pin, name)},
	{"version", V_STRING, .required = true, .rule = &rule_dist_version,
		SCHEMA_FIELD(struct wheel_pin, version)},
	{"file", V_STRING, .required = true, .rule = &rule_wheel_file,
		SCHEMA_FIELD(struct wheel_pin, file)},
	{"path", V_STRING, .rule = &rule_local, SCHEMA_FIELD(struct wheel_pin, path)},
	{"url", V_STRING, .rule = &rule_address, SCHEMA_FIELD(struct wheel_pin, url)},
	{"sha256", V_SHA256, .required = true, SCHEMA_FIELD(struct wheel_pin, sha256)},
	{"size", V_INTEGER, .required = true, .min = 1, .max = 8ull << 30,
		SCHEMA_FIELD(struct wheel_pin, size)},
	{0},
};
static const struct schema wheel_schema = {.keys = wheel_keys, .size = sizeof(struct wheel_pin)};

static const struct choice bytecodes[] = {
	{"none", BYTECODE_NONE}, {"unchecked-hash", BYTECODE_UNCHECKED_HASH}, {0}};

static const struct key python_keys[] = {
	{"interpreter", V_STRING, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_python, interpreter)},
	{"prefix", V_STRING, .rule = &rule_abs, SCHEMA_FIELD(struct manifest_python, prefix)},
	{"lock", V_STRING, .rule = &rule_local, SCHEMA_FIELD(struct manifest_python, lock)},
	{"wheels", V_OBJECTS, .of = &wheel_schema,
		.count = offsetof(struct manifest_python, nwheels),
		SCHEMA_FIELD(struct manifest_python, wheels)},
	{"bytecode", V_ENUM, .choices = bytecodes, SCHEMA_FIELD(struct manifest_python, bytecode)},
	{"guard", V_PAIRS, .rule = &rule_specifier, .name_rule = &rule_dist_name,
		SCHEMA_FIELD(struct manifest_python, guard)},
	{0},
};
const struct schema python_schema = {.keys = python_keys};

/* ---- npm ---- */

static const struct choice no_scripts[] = {{"none", 0}, {0}};

static const struct key node_keys[] = {
	{"lock", V_STRING, .required = true, .rule = &rule_local,
		SCHEMA_FIELD(struct manifest_node, lock)},
	{"prefix", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_node, prefix)},
	{"omit", V_STRINGS, .set = true, .rule = &rule_omit,
		SCHEMA_FIELD(struct manifest_node, omit)},
	{"scripts", V_STRINGS, .set = true, .rule = &rule_npm_name, .choices = no_scripts,
		SCHEMA_FIELD(struct manifest_node, scripts)},
	{0},
};
const struct schema node_schema = {.keys = node_keys};

/* ---- sources ---- */

static const struct choice source_types[] = {{"git", SOURCE_GIT}, {"archive", SOURCE_ARCHIVE},
	{"file", SOURCE_FILE}, {"inline", SOURCE_INLINE}, {"oci", SOURCE_OCI}, {0}};

static const struct key source_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_source, id)},
	{"type", V_ENUM, .required = true, .choices = source_types,
		SCHEMA_FIELD(struct manifest_source, type)},
	{"url", V_STRING, .rule = &rule_source_url, SCHEMA_FIELD(struct manifest_source, url)},
	{"inline", V_STRING, .rule = &rule_program,
		SCHEMA_FIELD(struct manifest_source, inline_text)},
	{"commit", V_STRING, .rule = &rule_commit, SCHEMA_FIELD(struct manifest_source, commit)},
	{"sha256", V_SHA256, SCHEMA_FIELD(struct manifest_source, sha256)},
	{"size", V_INTEGER, .max = 1ull << 46, SCHEMA_FIELD(struct manifest_source, size)},
	{"treeSha256", V_SHA256, .present = offsetof(struct manifest_source, has_tree),
		SCHEMA_FIELD(struct manifest_source, tree_sha256)},
	{"strip", V_INTEGER, .max = 64, SCHEMA_FIELD(struct manifest_source, strip)},
	{"include", V_STRINGS, .set = true, .rule = &rule_glob, .max = 1000,
		SCHEMA_FIELD(struct manifest_source, include)},
	{"exclude", V_STRINGS, .set = true, .rule = &rule_glob, .max = 1000,
		SCHEMA_FIELD(struct manifest_source, exclude)},
	{"dest", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_source, dest)},
	{"mode", V_MODE, SCHEMA_FIELD(struct manifest_source, mode)},
	{"uid", V_INTEGER, .max = IDS_MAX, SCHEMA_FIELD(struct manifest_source, uid)},
	{"gid", V_INTEGER, .max = IDS_MAX, SCHEMA_FIELD(struct manifest_source, gid)},
	{0},
};
static const struct manifest_source source_defaults = {.mode = 0644};
const struct schema source_schema = {
	.keys = source_keys, .size = sizeof(struct manifest_source), .defaults = &source_defaults};

/* ---- files, dirs, links ---- */

static const struct key file_keys[] = {
	{"id", V_STRING, .rule = &rule_id, SCHEMA_FIELD(struct manifest_file, id)},
	{"dest", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_file, dest)},
	{"mode", V_MODE, SCHEMA_FIELD(struct manifest_file, mode)},
	{"inline", V_STRING, .rule = &rule_program,
		SCHEMA_FIELD(struct manifest_file, inline_text)},
	{"from", V_STRING, .rule = &rule_local, SCHEMA_FIELD(struct manifest_file, from)},
	{"uid", V_INTEGER, .max = IDS_MAX, SCHEMA_FIELD(struct manifest_file, uid)},
	{"gid", V_INTEGER, .max = IDS_MAX, SCHEMA_FIELD(struct manifest_file, gid)},
	{0},
};
static const struct manifest_file file_defaults = {.mode = 0644};
const struct schema file_schema = {
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
const struct schema dir_schema = {
	.keys = dir_keys, .size = sizeof(struct manifest_dir), .defaults = &dir_defaults};

static const struct key link_keys[] = {
	{"path", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_link, path)},
	{"target", V_STRING, .required = true, .rule = &rule_target,
		SCHEMA_FIELD(struct manifest_link, target)},
	{0},
};
const struct schema link_schema = {.keys = link_keys, .size = sizeof(struct manifest_link)};

/* ---- users ---- */

static const struct key user_keys[] = {
	{"name", V_STRING, .required = true, .rule = &rule_account,
		SCHEMA_FIELD(struct manifest_user, name)},
	{"uid", V_INTEGER, .required = true, .max = IDS_MAX,
		SCHEMA_FIELD(struct manifest_user, uid)},
	{"gid", V_INTEGER, .required = true, .max = IDS_MAX,
		SCHEMA_FIELD(struct manifest_user, gid)},
	{"home", V_STRING, .rule = &rule_abs_or_root, SCHEMA_FIELD(struct manifest_user, home)},
	{"shell", V_STRING, .rule = &rule_abs, SCHEMA_FIELD(struct manifest_user, shell)},
	{"groups", V_STRINGS, .set = true, .rule = &rule_account,
		SCHEMA_FIELD(struct manifest_user, groups)},
	{0},
};
static const struct manifest_user user_defaults = {.shell = "/bin/sh"};
const struct schema user_schema = {
	.keys = user_keys, .size = sizeof(struct manifest_user), .defaults = &user_defaults};

static const struct key user_group_keys[] = {
	{"name", V_STRING, .required = true, .rule = &rule_account,
		SCHEMA_FIELD(struct manifest_group, name)},
	{"gid", V_INTEGER, .required = true, .max = IDS_MAX,
		SCHEMA_FIELD(struct manifest_group, gid)},
	{0},
};
const struct schema user_group_schema = {
	.keys = user_group_keys, .size = sizeof(struct manifest_group)};
