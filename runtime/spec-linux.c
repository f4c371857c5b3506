#include "runtime/spec.h"

#include <linux/mempolicy.h>
#include <net/if.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/stat.h>

#include "base/str.h"
#include "runtime/ns.h"

enum { CGROUP_PATH_BYTES = 512, NANOSECONDS = 1000 * 1000 * 1000 };

/* ---- namespaces and ids ---- */

struct ns_reading {
	const char *type, *path;
};

static int read_namespace(const struct at *a, struct spec *s, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"type", FIELD_STR, offsetof(struct ns_reading, type), true, NULL},
		{"path", FIELD_OPT_STR, offsetof(struct ns_reading, path), false, NULL},
		{0},
	};
	struct ns_reading r = {0};

	if (fields_read(a, fields, &r, mem, e) < 0)
		return -1;
	for (enum ns_kind k = 0; k < NS_KINDS; k++) {
		if (!str_eq(ns_name(k), r.type))
			continue;
		if (s->namespaces[k].given)
			return at_error(a, e, "%s namespace is there twice", r.type);
		if (r.path && r.path[0] != '/')
			return at_error(
				a, e, "path: expected an absolute path, got '%.200s'", r.path);
		s->namespaces[k] = (struct spec_namespace){true, r.path};
		return 0;
	}
	return at_error(a, e, "unknown namespace '%.40s'", r.type);
}

static int read_namespaces(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	if (!json_is_array(a->v))
		return at_error(a, e, "expected an array");
	for (size_t i = 0; i < json_array_size(a->v); i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};

		if (read_namespace(&el, out, mem, e) < 0)
			return -1;
	}
	return 0;
}

static int read_idmap(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"containerID", FIELD_U32, offsetof(struct spec_idmap, container), true, NULL},
		{"hostID", FIELD_U32, offsetof(struct spec_idmap, host), true, NULL},
		{"size", FIELD_U32, offsetof(struct spec_idmap, size), true, NULL},
		{0},
	};
	const struct spec_idmap *m = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	if (m->size == 0)
		return at_error(a, e, "size: 0");
	/* The last id, 2^32 - 1, is none. */
	if (m->size > UINT32_MAX - m->container || m->size > UINT32_MAX - m->host)
		return at_error(a, e, "ids beyond %u", UINT32_MAX - 1);
	return 0;
}

static bool overlap(uint32_t a, uint32_t na, uint32_t b, uint32_t nb)
{
	return a < b ? na > b - a : nb > a - b;
}

int spec_idmaps(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_idmaps *m = out;

	if (json_array_size(a->v) > SPEC_IDMAPS_MAX)
		return at_error(a, e, "more than %d ranges", SPEC_IDMAPS_MAX);
	if (fields_read_array(a, sizeof(*m->v), &m->v, &m->n, read_idmap, mem, e) < 0)
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

static int read_time_offset(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"secs", FIELD_OPT_I64, 0, false, NULL},
		{"nanosecs", FIELD_OPT_U32, sizeof(struct opt_i64), false, NULL},
		{0},
	};
	struct opt_i64 r[2] = {0};

	if (fields_read(a, fields, r, mem, e) < 0)
		return -1;
	if (r[1].v >= NANOSECONDS)
		return at_error(a, e, "nanosecs: expected less than 10^9");
	*(struct spec_time_offset *)out = (struct spec_time_offset){true, r[0].v, (uint32_t)r[1].v};
	return 0;
}

static int read_time_offsets(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"monotonic", FIELD_READ, offsetof(struct spec, monotonic), false,
			read_time_offset},
		{"boottime", FIELD_READ, offsetof(struct spec, boottime), false, read_time_offset},
		{0},
	};
	const char *key;
	json_t *v;

	json_object_foreach (a->v, key, v)
		if (!str_eq(key, "monotonic") && !str_eq(key, "boottime"))
			return at_error(a, e, "unknown clock '%.40s'", key);
	return fields_read(a, fields, out, mem, e);
}

/* ---- devices ---- */

struct device_reading {
	struct spec_device d;
	const char *type;
	struct opt_i64 major, minor;
};

static const struct fields_word device_types[] = {
	{"c", S_IFCHR},
	{"u", S_IFCHR},
	{"b", S_IFBLK},
	{"p", S_IFIFO},
	{0},
};

static int read_device(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"path", FIELD_PATH, offsetof(struct device_reading, d.path), true, NULL},
		{"type", FIELD_STR, offsetof(struct device_reading, type), true, NULL},
		{"major", FIELD_OPT_I64, offsetof(struct device_reading, major), false, NULL},
		{"minor", FIELD_OPT_I64, offsetof(struct device_reading, minor), false, NULL},
		{"fileMode", FIELD_OPT_U32, offsetof(struct device_reading, d.mode), false, NULL},
		{"uid", FIELD_U32, offsetof(struct device_reading, d.uid), false, NULL},
		{"gid", FIELD_U32, offsetof(struct device_reading, d.gid), false, NULL},
		{0},
	};
	struct device_reading r = {0};
	const struct fields_word *type;

	if (fields_read(a, fields, &r, mem, e) < 0)
		return -1;
	type = fields_word(device_types, r.type);
	if (!type)
		return at_error(a, e, "type: expected c, b, u or p, got '%.20s'", r.type);
	r.d.type = (mode_t)type->value;
	if (r.d.type != S_IFIFO) {
		if (!r.major.set || r.major.v < 0 || r.major.v > UINT32_MAX || !r.minor.set ||
			r.minor.v < 0 || r.minor.v > UINT32_MAX)
			return at_error(a, e, "major and minor are needed");
		r.d.major = (uint32_t)r.major.v;
		r.d.minor = (uint32_t)r.minor.v;
	}
	if (r.d.mode.v > (S_IFMT | ALLPERMS))
		return at_error(a, e, "fileMode: no mode of a file");
	r.d.mode.v &= ALLPERMS; /* engines leave what stat(2) says of the type in it */
	*(struct spec_device *)out = r.d;
	return 0;
}

static int read_devices(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;

	return fields_read_array(
		a, sizeof(*s->devices), &s->devices, &s->ndevices, read_device, mem, e);
}

static bool is_interface(const char *s)
{
	return *s && strlen(s) < IFNAMSIZ && !str_eq(s, ".") && !str_eq(s, "..") &&
	       !strpbrk(s, "/: \t\n\v\f\r%");
}

static int read_net_device(
	const struct at *a, struct spec_net_device *d, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"name", FIELD_OPT_STR, offsetof(struct spec_net_device, new_name), false, NULL},
		{0},
	};

	if (fields_read(a, fields, d, mem, e) < 0)
		return -1;
	if (!is_interface(d->name))
		return at_error(a, e, "no name of an interface");
	if (d->new_name && !is_interface(d->new_name))
		return at_error(a, e, "name: no name of an interface");
	return 0;
}

static int read_net_devices(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;
	size_t n = json_object_size(a->v);
	const char *key;
	json_t *v;

	if (!json_is_object(a->v) || n > FIELDS_ELEMENTS_MAX / 8)
		return at_error(a, e, "expected an object of at most %d", FIELDS_ELEMENTS_MAX / 8);
	s->net_devices = arena_alloc(mem, n ? n * sizeof(*s->net_devices) : 1);
	json_object_foreach (a->v, key, v) {
		const struct at member = {a, key, 0, v};
		struct spec_net_device *d = &s->net_devices[s->nnet_devices];
		const char *inside;

		d->name = key;
		if (read_net_device(&member, d, mem, e) < 0)
			return -1;
		inside = d->new_name ? d->new_name : d->name;
		for (size_t i = 0; i < s->nnet_devices; i++) {
			const struct spec_net_device *o = &s->net_devices[i];

			if (str_eq(o->new_name ? o->new_name : o->name, inside))
				return at_error(
					&member, e, "another one is called '%s' too", inside);
		}
		s->nnet_devices++;
	}
	return 0;
}

/* ---- the rest ---- */

static int read_sysctls(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	const struct spec_pairs *p = out;

	if (spec_pairs(a, out, mem, e) < 0)
		return -1;
	for (size_t i = 0; i < p->n; i++) {
		const char *s = p->v[i].name;
		const struct at member = {a, s, 0, NULL};

		/* It becomes a path below /proc/sys: dots are slashes, and slashes may stand for
		 * the dots in the name of an interface. */
		if (s[0] == '.' || s[0] == '/' || strstr(s, "..") || strstr(s, "//") ||
			strstr(s, "./") || strstr(s, "/.") ||
			s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-/@")])
			return at_error(&member, e, "no name of a sysctl");
	}
	return 0;
}

static const struct fields_word propagations[] = {
	{"shared", MS_SHARED},
	{"slave", MS_SLAVE},
	{"private", MS_PRIVATE},
	{"unbindable", MS_UNBINDABLE},
	{"rshared", MS_SHARED | MS_REC},
	{"rslave", MS_SLAVE | MS_REC},
	{"rprivate", MS_PRIVATE | MS_REC},
	{"runbindable", MS_UNBINDABLE | MS_REC},
	{"", 0},
	{0},
};

static int read_propagation(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;

	(void)mem;
	if (at_word(a, propagations, &s->propagation, e) < 0)
		return -1;
	s->propagation_all = s->propagation & MS_REC;
	s->propagation &= ~(uint64_t)MS_REC;
	return 0;
}

static int read_cgroups_path(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	const char *s = at_string(a, e), *p;

	(void)mem;
	if (!s)
		return -1;
	/* Joined to a path below /sys/fs/cgroup: no component may lead out of it. */
	for (p = s; *p; p++)
		if (p[0] == '.' && p[1] == '.' && (p == s || p[-1] == '/') &&
			(p[2] == '/' || !p[2]))
			return at_error(a, e, "'..' in a cgroup path");
	if (strlen(s) > CGROUP_PATH_BYTES)
		return at_error(a, e, "longer than %d bytes", CGROUP_PATH_BYTES);
	*(const char **)out = *s ? s : NULL;
	return 0;
}

static int read_seccomp(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;

	s->has_seccomp = true;
	return seccomp_read(a, &s->seccomp, mem, e);
}

static const struct fields_word domains[] = {
	{"LINUX", PER_LINUX},
	{"LINUX32", PER_LINUX32},
	{0},
};

static int read_domain(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	uint64_t v;

	(void)mem;
	if (at_word(a, domains, &v, e) < 0)
		return -1;
	*(struct opt_i64 *)out = (struct opt_i64){true, (int64_t)v};
	return 0;
}

static int read_personality(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"domain", FIELD_READ, 0, true, read_domain},
		{"flags", FIELD_REFUSE, 0, false, NULL}, /* the specification has none yet */
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

struct rdt_reading {
	struct spec_intel_rdt r;
	bool cmt, mbm; /* how the specification called it before 1.3 */
};

static int read_rdt(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"closID", FIELD_OPT_STR, offsetof(struct rdt_reading, r.clos), false, NULL},
		{"l3CacheSchema", FIELD_OPT_STR, offsetof(struct rdt_reading, r.l3), false, NULL},
		{"memBwSchema", FIELD_OPT_STR, offsetof(struct rdt_reading, r.membw), false, NULL},
		{"schemata", FIELD_STRS, offsetof(struct rdt_reading, r.schemata), false, NULL},
		{"enableMonitoring", FIELD_BOOL, offsetof(struct rdt_reading, r.monitoring), false,
			NULL},
		{"enableCMT", FIELD_BOOL, offsetof(struct rdt_reading, cmt), false, NULL},
		{"enableMBM", FIELD_BOOL, offsetof(struct rdt_reading, mbm), false, NULL},
		{0},
	};
	struct rdt_reading r = {.r.given = true};

	if (fields_read(a, fields, &r, mem, e) < 0)
		return -1;
	/* A folder below that of resctrl. */
	if (r.r.clos && (str_eq(r.r.clos, ".") || str_eq(r.r.clos, "..") ||
				strpbrk(r.r.clos, "/\n") || strlen(r.r.clos) > 255))
		return at_error(a, e, "closID: no name of a folder");
	if (r.r.membw && (!str_starts(r.r.membw, "MB:") || strchr(r.r.membw, '\n')))
		return at_error(a, e, "memBwSchema: expected one line that starts with MB:");
	r.r.monitoring |= r.cmt | r.mbm;
	*(struct spec_intel_rdt *)out = r.r;
	return 0;
}

static const struct fields_word memory_modes[] = {
	{"MPOL_DEFAULT", MPOL_DEFAULT},
	{"MPOL_PREFERRED", MPOL_PREFERRED},
	{"MPOL_BIND", MPOL_BIND},
	{"MPOL_INTERLEAVE", MPOL_INTERLEAVE},
	{"MPOL_LOCAL", MPOL_LOCAL},
	{"MPOL_PREFERRED_MANY", MPOL_PREFERRED_MANY},
	{"MPOL_WEIGHTED_INTERLEAVE", MPOL_PREFERRED_MANY + 1},
	{0},
};

static const struct fields_word memory_flags[] = {
	{"MPOL_F_STATIC_NODES", MPOL_F_STATIC_NODES},
	{"MPOL_F_RELATIVE_NODES", MPOL_F_RELATIVE_NODES},
	{"MPOL_F_NUMA_BALANCING", MPOL_F_NUMA_BALANCING},
	{0},
};

const struct fields_word *spec_memory_modes(void)
{
	return memory_modes;
}

const struct fields_word *spec_memory_flags(void)
{
	return memory_flags;
}

static int read_memory_mode(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	uint64_t v;

	(void)mem;
	if (at_word(a, memory_modes, &v, e) < 0)
		return -1;
	*(int *)out = (int)v;
	return 0;
}

static int read_memory_flags(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	uint64_t v = 0;

	(void)mem;
	if (at_words(a, memory_flags, &v, e) < 0)
		return -1;
	*(unsigned *)out = (unsigned)v;
	return 0;
}

/* The combinations are the kernel's: set_mempolicy(2). */
static int read_memory_policy(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"mode", FIELD_READ, offsetof(struct spec_memory_policy, mode), true,
			read_memory_mode},
		{"nodes", FIELD_RANGES, offsetof(struct spec_memory_policy, nodes), false, NULL},
		{"flags", FIELD_READ, offsetof(struct spec_memory_policy, flags), false,
			read_memory_flags},
		{0},
	};
	struct spec_memory_policy *p = out;
	unsigned both = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES;

	if (fields_read(a, fields, p, mem, e) < 0)
		return -1;
	p->given = true;
	if ((p->mode == MPOL_DEFAULT || p->mode == MPOL_LOCAL) && (p->nodes || p->flags))
		return at_error(a, e, "MPOL_DEFAULT and MPOL_LOCAL take no nodes and no flags");
	if (!p->nodes && p->mode != MPOL_DEFAULT && p->mode != MPOL_LOCAL &&
		p->mode != MPOL_PREFERRED)
		return at_error(a, e, "nodes: missing");
	if ((p->flags & both) == both)
		return at_error(a, e, "flags: static and relative nodes exclude each other");
	if (p->flags & MPOL_F_NUMA_BALANCING && p->mode != MPOL_BIND)
		return at_error(a, e, "flags: MPOL_F_NUMA_BALANCING is for MPOL_BIND");
	return 0;
}

/* What needs which namespace. */
static int check_linux(const struct at *a, const struct spec *s, struct err *e)
{
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

int spec_linux(const struct at *a, void *spec, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"namespaces", FIELD_READ, 0, false, read_namespaces},
		{"uidMappings", FIELD_READ, offsetof(struct spec, uids), false, spec_idmaps},
		{"gidMappings", FIELD_READ, offsetof(struct spec, gids), false, spec_idmaps},
		{"timeOffsets", FIELD_READ, 0, false, read_time_offsets},
		{"devices", FIELD_READ, 0, false, read_devices},
		{"netDevices", FIELD_READ, 0, false, read_net_devices},
		{"cgroupsPath", FIELD_READ, offsetof(struct spec, cgroups_path), false,
			read_cgroups_path},
		{"resources", FIELD_READ, offsetof(struct spec, resources), false, spec_resources},
		{"seccomp", FIELD_READ, 0, false, read_seccomp},
		{"maskedPaths", FIELD_PATHS, offsetof(struct spec, masked), false, NULL},
		{"readonlyPaths", FIELD_PATHS, offsetof(struct spec, readonly), false, NULL},
		{"sysctl", FIELD_READ, offsetof(struct spec, sysctls), false, read_sysctls},
		{"rootfsPropagation", FIELD_READ, 0, false, read_propagation},
		{"mountLabel", FIELD_OPT_STR, offsetof(struct spec, mount_label), false, NULL},
		{"intelRdt", FIELD_READ, offsetof(struct spec, rdt), false, read_rdt},
		{"personality", FIELD_READ, offsetof(struct spec, personality), false,
			read_personality},
		{"memoryPolicy", FIELD_READ, offsetof(struct spec, memory_policy), false,
			read_memory_policy},
		{0},
	};

	if (fields_read(a, fields, spec, mem, e) < 0)
		return -1;
	return check_linux(a, spec, e);
}
