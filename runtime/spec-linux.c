#include "runtime/spec.h"

#include <limits.h>
#include <linux/mempolicy.h>
#include <net/if.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/stat.h>

#include "base/str.h"
#include "runtime/ns.h"

#define MEMBER(kind, name, member, ...) FIELD(kind, name, struct spec, member, __VA_ARGS__)

/* ---- namespaces and ids ---- */

struct ns_reading {
	const char *type, *path;
};
static const struct field ns_fields[] = {
	FIELD(STR, "type", struct ns_reading, type, .required = true),
	FIELD(OPT_PATH, "path", struct ns_reading, path),
	{0},
};

static int read_namespace(const struct at *a, void *out, struct err *e)
{
	struct spec_namespace *all = out;
	struct ns_reading r = {0};

	if (fields_read(a, ns_fields, &r, e) < 0)
		return -1;
	for (enum ns_kind k = 0; k < NS_KINDS; k++) {
		if (!str_eq(ns_name(k), r.type))
			continue;
		if (all[k].given)
			return at_error(a, e, "%s namespace is there twice", r.type);
		all[k] = (struct spec_namespace){true, r.path};
		return 0;
	}
	return at_error(a, e, "unknown namespace '%.40s'", r.type);
}

static int check_idmap(const struct at *a, void *out, struct err *e)
{
	const struct spec_idmap *m = out;

	if (m->size == 0)
		return at_error(a, e, "size: 0");
	/* The last id, 2^32 - 1, is none. */
	if (m->size > UINT32_MAX - m->container || m->size > UINT32_MAX - m->host)
		return at_error(a, e, "ids beyond %u", UINT32_MAX - 1);
	return 0;
}

static const struct field idmap_list = FIELD_LIST(ARRAY, NULL, struct spec_idmaps, v,
	ROWS(FIELD(U32, "containerID", struct spec_idmap, container, .required = true),
		FIELD(U32, "hostID", struct spec_idmap, host, .required = true),
		FIELD(U32, "size", struct spec_idmap, size, .required = true)),
	.each = check_idmap, .max = SPEC_IDMAPS_MAX);

static bool overlap(uint32_t a, uint32_t na, uint32_t b, uint32_t nb)
{
	return a < b ? na > b - a : nb > a - b;
}

int spec_idmaps(const struct at *a, void *out, struct err *e)
{
	const struct spec_idmaps *m = out;

	if (field_read(a, &idmap_list, out, e) < 0)
		return -1;
	for (size_t i = 0; i < m->n; i++)
		for (size_t k = 0; k < i; k++) {
			const struct spec_idmap *x = &m->v[k], *y = &m->v[i];

			if (overlap(x->container, x->size, y->container, y->size) ||
				overlap(x->host, x->size, y->host, y->size))
				return at_error(a, e, "%zu and %zu overlap", k, i);
		}
	return 0;
}

static const struct field time_fields[] = {
	FIELD(I64, "secs", struct spec_time_offset, secs),
	FIELD(U32, "nanosecs", struct spec_time_offset, nanosecs, .max = 999999999),
	{0},
};

static int check_clocks(const struct at *a, void *out, struct err *e)
{
	const char *key;
	json_t *v;

	(void)out;
	json_object_foreach (a->v, key, v)
		if (!str_eq(key, "monotonic") && !str_eq(key, "boottime"))
			return at_error(a, e, "unknown clock '%.40s'", key);
	return 0;
}

/* ---- devices ---- */

static const struct fields_word device_types[] = {
	{"c", S_IFCHR}, {"u", S_IFCHR}, {"b", S_IFBLK}, {"p", S_IFIFO}, {0}};

static int check_device(const struct at *a, void *out, struct err *e)
{
	struct spec_device *d = out;

	if (d->type != S_IFIFO &&
		(!json_object_get(a->v, "major") || !json_object_get(a->v, "minor")))
		return at_error(a, e, "major and minor are needed");
	d->mode.v &= ALLPERMS; /* engines leave what stat(2) says of the type in it */
	return 0;
}

static bool is_interface(const char *s)
{
	return *s && strlen(s) < IFNAMSIZ && !str_eq(s, ".") && !str_eq(s, "..") &&
	       !strpbrk(s, "/: \t\n\v\f\r%");
}

static int check_net_device(const struct at *a, void *out, struct err *e)
{
	const struct spec_net_device *d = out;

	if (!is_interface(d->name))
		return at_error(a, e, "no name of an interface");
	if (d->new_name && !is_interface(d->new_name))
		return at_error(a, e, "name: no name of an interface");
	return 0;
}

static const char *name_inside(const struct spec_net_device *d)
{
	return d->new_name ? d->new_name : d->name;
}

static int check_net_devices(const struct at *a, const struct spec *s, struct err *e)
{
	for (size_t i = 0; i < s->nnet_devices; i++)
		for (size_t k = 0; k < i; k++)
			if (str_eq(name_inside(&s->net_devices[i]),
				    name_inside(&s->net_devices[k])))
				return at_error(a, e, "netDevices: two are called '%s'",
					name_inside(&s->net_devices[i]));
	return 0;
}

/* ---- the rest ---- */

static int check_sysctl(const struct at *a, void *out, struct err *e)
{
	const char *s = a->key;

	if (spec_pair(a, out, e) < 0)
		return -1;
	/* It becomes a path below /proc/sys: dots are slashes, and slashes may stand for the dots
	 * in the name of an interface. */
	if (s[0] == '.' || s[0] == '/' || strstr(s, "..") || strstr(s, "//") || strstr(s, "./") ||
		strstr(s, "/.") ||
		s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789._-/@")])
		return at_error(a, e, "no name of a sysctl");
	return 0;
}

static const struct fields_word propagations[] = {{"shared", MS_SHARED}, {"slave", MS_SLAVE},
	{"private", MS_PRIVATE}, {"unbindable", MS_UNBINDABLE}, {"rshared", MS_SHARED | MS_REC},
	{"rslave", MS_SLAVE | MS_REC}, {"rprivate", MS_PRIVATE | MS_REC},
	{"runbindable", MS_UNBINDABLE | MS_REC}, {"", 0}, {0}};

static int check_cgroups_path(const struct at *a, void *out, struct err *e)
{
	const char *s = *(const char **)out;

	/* Joined to a path below /sys/fs/cgroup: no component may lead out of it. */
	for (const char *p = s; p && *p; p++)
		if (p[0] == '.' && p[1] == '.' && (p == s || p[-1] == '/') &&
			(p[2] == '/' || !p[2]))
			return at_error(a, e, "'..' in a cgroup path");
	return 0;
}

static int read_seccomp(const struct at *a, void *out, struct err *e)
{
	struct spec *s = out;

	s->has_seccomp = true;
	return seccomp_read(a, &s->seccomp, e);
}

static const struct fields_word domains[] = {{"LINUX", PER_LINUX}, {"LINUX32", PER_LINUX32}, {0}};

static int check_rdt(const struct at *a, void *out, struct err *e)
{
	const struct spec_intel_rdt *r = out;

	/* A folder below that of resctrl. */
	if (r->clos && (str_eq(r->clos, ".") || str_eq(r->clos, "..") || strpbrk(r->clos, "/\n")))
		return at_error(a, e, "closID: no name of a folder");
	if (r->membw && (!str_starts(r->membw, "MB:") || strchr(r->membw, '\n')))
		return at_error(a, e, "memBwSchema: expected one line that starts with MB:");
	return 0;
}

const struct fields_word spec_memory_modes[] = {FIELDS_WORD(MPOL_DEFAULT),
	FIELDS_WORD(MPOL_PREFERRED), FIELDS_WORD(MPOL_BIND), FIELDS_WORD(MPOL_INTERLEAVE),
	FIELDS_WORD(MPOL_LOCAL), FIELDS_WORD(MPOL_PREFERRED_MANY),
	{"MPOL_WEIGHTED_INTERLEAVE", MPOL_PREFERRED_MANY + 1}, {0}};

const struct fields_word spec_memory_flags[] = {FIELDS_WORD(MPOL_F_STATIC_NODES),
	FIELDS_WORD(MPOL_F_RELATIVE_NODES), FIELDS_WORD(MPOL_F_NUMA_BALANCING), {0}};

/* The combinations are the kernel's: set_mempolicy(2). */
static int check_memory_policy(const struct at *a, void *out, struct err *e)
{
	const struct spec_memory_policy *p = out;
	unsigned both = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES;
	bool plain = p->mode == MPOL_DEFAULT || p->mode == MPOL_LOCAL;

	if (plain && (p->nodes || p->flags))
		return at_error(a, e, "MPOL_DEFAULT and MPOL_LOCAL take no nodes and no flags");
	if (!p->nodes && !plain && p->mode != MPOL_PREFERRED)
		return at_error(a, e, "nodes: missing");
	if ((p->flags & both) == both)
		return at_error(a, e, "flags: static and relative nodes exclude each other");
	if (p->flags & MPOL_F_NUMA_BALANCING && p->mode != MPOL_BIND)
		return at_error(a, e, "flags: MPOL_F_NUMA_BALANCING is for MPOL_BIND");
	return 0;
}

const struct field spec_linux_fields[] = {
	MEMBER(EACH, "namespaces", namespaces, .each = read_namespace),
	MEMBER(READ, "uidMappings", uids, .check = spec_idmaps),
	MEMBER(READ, "gidMappings", gids, .check = spec_idmaps),
	FIELD_PART("timeOffsets",
		ROWS(MEMBER(OBJECT, "monotonic", monotonic, .given = true, .rows = time_fields),
			MEMBER(OBJECT, "boottime", boottime, .given = true, .rows = time_fields)),
		.check = check_clocks),
	FIELD_LIST(ARRAY, "devices", struct spec, devices,
		ROWS(FIELD(PATH, "path", struct spec_device, path, .required = true),
			FIELD(WORD, "type", struct spec_device, type, .required = true,
				.words = device_types),
			FIELD(U32, "major", struct spec_device, major),
			FIELD(U32, "minor", struct spec_device, minor),
			FIELD(OPT, "fileMode", struct spec_device, mode, .max = S_IFMT | ALLPERMS),
			FIELD(U32, "uid", struct spec_device, uid),
			FIELD(U32, "gid", struct spec_device, gid)),
		.each = check_device),
	FIELD_LIST(MAP, "netDevices", struct spec, net_devices,
		ROWS(FIELD(OPT_STR, "name", struct spec_net_device, new_name)),
		.each = check_net_device, .max = 512),
	MEMBER(OPT_STR, "cgroupsPath", cgroups_path, .check = check_cgroups_path, .max = 512),
	MEMBER(OBJECT, "resources", resources, .rows = spec_resources_fields),
	{.name = "seccomp", .kind = FIELD_READ, .check = read_seccomp},
	MEMBER(PATHS, "maskedPaths", masked),
	MEMBER(PATHS, "readonlyPaths", readonly),
	FIELD_LIST(MAP, "sysctl", struct spec, sysctls.v, .each = check_sysctl),
	MEMBER(WORD, "rootfsPropagation", propagation, .words = propagations),
	MEMBER(OPT_STR, "mountLabel", mount_label),
	MEMBER(OBJECT, "intelRdt", rdt, .given = true,
		ROWS(FIELD(OPT_STR, "closID", struct spec_intel_rdt, clos, .max = NAME_MAX),
			FIELD(OPT_STR, "l3CacheSchema", struct spec_intel_rdt, l3),
			FIELD(OPT_STR, "memBwSchema", struct spec_intel_rdt, membw),
			FIELD(STRS, "schemata", struct spec_intel_rdt, schemata),
			FIELD(BOOL, "enableMonitoring", struct spec_intel_rdt, monitoring),
			FIELD(BOOL, "enableCMT", struct spec_intel_rdt, monitoring),
			FIELD(BOOL, "enableMBM", struct spec_intel_rdt, monitoring)),
		.check = check_rdt),
	FIELD_PART("personality",
		ROWS(MEMBER(WORD, "domain", personality.v, .words = domains, .required = true),
			/* the specification has none yet */
			{.name = "flags", .kind = FIELD_REFUSE})),
	MEMBER(OBJECT, "memoryPolicy", memory_policy, .given = true,
		ROWS(FIELD(WORD, "mode", struct spec_memory_policy, mode, .required = true,
			     .words = spec_memory_modes),
			FIELD(RANGES, "nodes", struct spec_memory_policy, nodes),
			FIELD(WORDS, "flags", struct spec_memory_policy, flags,
				.words = spec_memory_flags)),
		.check = check_memory_policy),
	{0},
};

/* What no member can see alone. */
int spec_linux_check(const struct at *a, void *spec, struct err *e)
{
	struct spec *s = spec;

	s->personality.set = json_object_get(a->v, "personality") != NULL;
	s->propagation_all = s->propagation & MS_REC;
	s->propagation &= ~(uint32_t)MS_REC;
	if (check_net_devices(a, s, e) < 0)
		return -1;
	if (!s->uids.n != !s->gids.n)
		return at_error(a, e, "uidMappings and gidMappings need each other");
	if (s->uids.n && !spec_has_ns(s, NS_USER))
		return at_error(a, e, "uidMappings and gidMappings need a user namespace");
	if (!s->uids.n && spec_new_ns(s, NS_USER))
		return at_error(a, e, "a new user namespace needs uidMappings and gidMappings");
	if ((s->monotonic.set || s->boottime.set) && !spec_new_ns(s, NS_TIME))
		return at_error(a, e, "timeOffsets need a new time namespace");
	if (s->nnet_devices && !spec_has_ns(s, NS_NETWORK))
		return at_error(a, e, "netDevices need a network namespace");
	return 0;
}
