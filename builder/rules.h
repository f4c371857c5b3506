/* What strings in manifests and locks must look like. Every rule is plain data for
 * builder/schema.h. */
#ifndef BUILDER_RULES_H
#define BUILDER_RULES_H

#include "builder/schema.h"

/* Names and texts. */
extern const struct rule rule_name, rule_id, rule_version, rule_line, rule_text, rule_spdx,
	rule_territory, rule_link, rule_inline;
/* Paths: absolute and clean, the same or "/", relative and clean, a symlink's target. */
extern const struct rule rule_abs, rule_abs_or_root, rule_rel, rule_target;
/* Packages. */
extern const struct rule rule_mirror_uri, rule_suite, rule_component, rule_signed_by, rule_package,
	rule_alternative, rule_prune, rule_omit;
/* A whole address: "mirror:NAME/path" or https://HOST/path. */
extern const struct rule rule_address;
/* The OCI config. */
extern const struct rule rule_env_name, rule_env_value, rule_arg, rule_user, rule_signal,
	rule_label_name, rule_label_value;
/* build.layers.groups[].match. */
extern const struct rule rule_match;
/* The lock. */
extern const struct rule rule_date, rule_deb_name, rule_deb_version, rule_deb_arch,
	rule_fingerprint, rule_npm_name, rule_npm_version, rule_integrity, rule_npm_bin,
	rule_npm_command, rule_npm_path, rule_digest, rule_platform;

#endif
