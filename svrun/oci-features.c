/* svrun-oci features: what the tables of runtime/ know, as the features document of runtime-spec
 * features.md and features-linux.md. */
#include <seccomp.h>
#include <stdio.h>

#include "base/str.h"
#include "runtime/hooks.h"
#include "runtime/mount-options.h"
#include "runtime/ns.h"
#include "svrun/oci.h"

static json_t *hooks(void)
{
	json_t *list = json_array();

	for (enum hook_kind k = 0; k < HOOK_KINDS; k++)
		json_array_append_new(list, json_string(hook_name(k)));
	return list;
}

static json_t *mount_options(void)
{
	json_t *list = json_array();
	char name[32];

	for (size_t i = 0; mount_options_name(i, name); i++)
		json_array_append_new(list, json_string(name));
	return list;
}

static json_t *namespaces(void)
{
	json_t *list = json_array();

	for (enum ns_kind k = 0; k < NS_KINDS; k++)
		json_array_append_new(list, json_string(ns_name(k)));
	return list;
}

static json_t *capabilities(void)
{
	json_t *list = json_array();

	for (int cap = 0; caps_name(cap); cap++)
		json_array_append_new(list, json_string(caps_name(cap)));
	return list;
}

static json_t *words(const struct fields_word *w)
{
	json_t *list = json_array();

	for (; w->name; w++)
		json_array_append_new(list, json_string(w->name));
	return list;
}

static json_t *working_flags(void)
{
	json_t *list = json_array();

	for (const struct fields_word *w = seccomp_flags; w->name; w++)
		if (seccomp_flag_works((unsigned)w->value))
			json_array_append_new(list, json_string(w->name));
	return list;
}

static json_t *seccomp(void)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o}", "enabled", 1, "actions",
		words(seccomp_actions), "operators",
		words(seccomp_ops), "archs", words(seccomp_archs),
		"knownFlags", words(seccomp_flags), "supportedFlags",
		working_flags());
}

static json_t *linux_features(void)
{
	return json_pack("{s:o, s:o, s:{s:b, s:b, s:b, s:b, s:b}, s:o, s:{s:b}, s:{s:b}, "
			 "s:{s:b, s:b, s:b}, s:{s:o, s:o}, s:{s:{s:b}}, s:{s:b}}",
		"namespaces", namespaces(), "capabilities", capabilities(), "cgroup", "v1", 1, "v2",
		1, "systemd", 1, "systemdUser", 1, "rdma", 1, "seccomp", seccomp(), "apparmor",
		"enabled", 1, "selinux", "enabled", 1, "intelRdt", "enabled", 1, "schemata", 1,
		"monitoring", 1, "memoryPolicy", "modes", words(spec_memory_modes), "flags",
		words(spec_memory_flags), "mountExtensions", "idmap", "enabled", 1, "netDevices",
		"enabled", 1);
}

static json_t *features(void)
{
	const struct scmp_version *v = seccomp_version();
	char version[32];

	snprintf(version, sizeof(version), "%u.%u.%u", v->major, v->minor, v->micro);
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:{s:s, s:s, s:s}, s:[]}", "ociVersionMin",
		"1.0.0", "ociVersionMax", SPEC_VERSION, "hooks", hooks(), "mountOptions",
		mount_options(), "linux", linux_features(), "annotations", "org.svrun.version",
		SVRUN_VERSION, "org.opencontainers.runc.checkpoint.enabled", "true",
		"io.github.seccomp.libseccomp.version", version,
		"potentiallyUnsafeConfigAnnotations");
}

int oci_features(
	const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};
	json_t *j;

	(void)o;
	if (options_parse(self, options, argc, argv, false, e) < 0)
		return -1;
	j = features();
	json_dumpf(j, stdout, JSON_INDENT(4));
	putchar('\n');
	json_decref(j);
	return 0;
}
