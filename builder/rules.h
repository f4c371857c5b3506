/* What strings in manifests and locks must look like. Every rule is plain data for
 * builder/schema.h. */
#ifndef BUILDER_RULES_H
#define BUILDER_RULES_H

#include "builder/schema.h"

/* Names and texts. */
extern const struct rule rule_name, rule_id, rule_version, rule_line, rule_text, rule_spdx,
	rule_territory, rule_link, rule_program;
/* Paths: absolute and clean, the same or "/", relative and clean, a symlink's target. */
extern const struct rule rule_abs, rule_abs_or_root, rule_rel, rule_target;
/* Packages. */
extern const struct rule rule_mirror_uri, rule_suite, rule_component, rule_package,
	rule_alternative, rule_prune, rule_omit;
/* A whole address: "mirror:NAME/path" or https://HOST/path. */
extern const struct rule rule_address;
/* Files beside the manifest: a path, a keyring (or keyring:NAME), the address of a source (or
 * file:PATH), the lock's form of it. */
extern const struct rule rule_local, rule_signed_by, rule_source_url, rule_locked_url,
	rule_model_url;
/* Other inputs. */
extern const struct rule rule_from, rule_reference, rule_commit, rule_snapshot,
	rule_version_pattern, rule_dist_name, rule_dist_version, rule_wheel_file, rule_specifier,
	rule_glob, rule_abs_glob, rule_repo, rule_account;
/* What runs: steps, services, GPUs, probes. */
extern const struct rule rule_build_text, rule_capability, rule_gpu_arch, rule_compute, rule_cuda,
	rule_driver, rule_ulimit_name, rule_ulimit, rule_regex, rule_http_path, rule_header_name,
	rule_header_value;
/* Tests and the form. */
extern const struct rule rule_expected_text, rule_pointer, rule_code, rule_port_key, rule_owner,
	rule_octal, rule_var_name, rule_iso_date, rule_sbom, rule_mode_name;
/* The OCI config. */
extern const struct rule rule_env_name, rule_env_value, rule_arg, rule_user, rule_signal,
	rule_label_name, rule_label_value;
/* build.layers.groups[].match. */
extern const struct rule rule_match;
/* The lock. */
extern const struct rule rule_date, rule_deb_name, rule_deb_version, rule_deb_arch,
	rule_fingerprint, rule_npm_name, rule_npm_version, rule_integrity, rule_npm_bin,
	rule_npm_command, rule_npm_path, rule_digest, rule_platform;

/* What to do where a "${NAME}" stands that is no variable of the manifest; NULL: nothing more is
 * known. Environments are set without a shell. */
const char *rule_variable_hint(const struct rule *rule);

#endif
