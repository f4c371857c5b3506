#include "runtime/spec.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/str.h"

static const char *const ns_names[NS_KINDS] = {
	[NS_MOUNT] = "mount",
	[NS_PID] = "pid",
	[NS_NETWORK] = "network",
	[NS_IPC] = "ipc",
	[NS_UTS] = "uts",
	[NS_CGROUP] = "cgroup",
};

struct ns_reading {
	const char *type;
	const char *path;
};

static int read_namespace(const struct at *a, struct spec *s, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"type", FIELD_STR, offsetof(struct ns_reading, type), true, NULL},
		{"path", FIELD_REFUSE, 0, false, NULL},
		{0},
	};
	struct ns_reading r = {0};

	if (fields_read(a, fields, &r, mem, e) < 0)
		return -1;
	for (int k = 0; k < NS_KINDS; k++) {
		if (!str_eq(ns_names[k], r.type))
			continue;
		if (s->namespaces[k])
			return at_error(a, e, "%s namespace is there twice", r.type);
		s->namespaces[k] = true;
		return 0;
	}
	if (str_eq(r.type, "user") || str_eq(r.type, "time"))
		return at_unsupported(
			a, e, "%s namespaces are not supported by this version", r.type);
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

/* ---- devices ---- */

struct device_reading {
	struct spec_device d;
	const char *type;
	struct opt_i64 major, minor;
};

static int device_number(
	const struct at *a, const struct opt_i64 *n, bool needed, uint32_t *out, struct err *e)
{
	if (needed && (!n->set || n->v < 0 || n->v > UINT32_MAX))
		return at_error(a, e, "major and minor are needed");
	*out = needed ? (uint32_t)n->v : 0;
	return 0;
}

static int read_device(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"path", FIELD_PATH, offsetof(struct device_reading, d.path), true, NULL},
		{"type", FIELD_STR, offsetof(struct device_reading, type), true, NULL},
		{"major", FIELD_OPT_I64, offsetof(struct device_reading, major), false, NULL},
		{"minor", FIELD_OPT_I64, offsetof(struct device_reading, minor), false, NULL},
		{"fileMode", FIELD_OPT_I64, offsetof(struct device_reading, d.mode), false, NULL},
		{"uid", FIELD_U32, offsetof(struct device_reading, d.uid), false, NULL},
		{"gid", FIELD_U32, offsetof(struct device_reading, d.gid), false, NULL},
		{0},
	};
	struct device_reading r = {0};
	bool numbered;

	if (fields_read(a, fields, &r, mem, e) < 0)
		return -1;
	if (str_eq(r.type, "c") || str_eq(r.type, "u"))
		r.d.type = S_IFCHR;
	else if (str_eq(r.type, "b"))
		r.d.type = S_IFBLK;
	else if (str_eq(r.type, "p"))
		r.d.type = S_IFIFO;
	else
		return at_error(a, e, "type: expected c, b, u or p, got '%.20s'", r.type);
	numbered = r.d.type != S_IFIFO;
	if (device_number(a, &r.major, numbered, &r.d.major, e) < 0 ||
		device_number(a, &r.minor, numbered, &r.d.minor, e) < 0)
		return -1;
	if (r.d.mode.set && (r.d.mode.v < 0 || r.d.mode.v > 0777))
		return at_error(a, e, "fileMode must be at most 0777 (octal)");
	*(struct spec_device *)out = r.d;
	return 0;
}

static int read_devices(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;

	return fields_read_array(
		a, sizeof(*s->devices), &s->devices, &s->ndevices, read_device, mem, e);
}

/* ---- resources ---- */

struct rule_reading {
	struct spec_device_rule rule;
	const char *type, *access;
};

static int read_access(const struct at *a, const char *s, unsigned *out, struct err *e)
{
	*out = 0;
	for (; s && *s; s++) {
		if (*s == 'r')
			*out |= DEVICE_READ;
		else if (*s == 'w')
			*out |= DEVICE_WRITE;
		else if (*s == 'm')
			*out |= DEVICE_MKNOD;
		else
			return at_error(a, e, "access: expected r, w and m");
	}
	if (!*out) /* absent: all, as for the other members */
		*out = DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD;
	return 0;
}

static int read_device_rule(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"allow", FIELD_BOOL, offsetof(struct rule_reading, rule.allow), true, NULL},
		{"type", FIELD_STR, offsetof(struct rule_reading, type), false, NULL},
		{"major", FIELD_OPT_I64, offsetof(struct rule_reading, rule.major), false, NULL},
		{"minor", FIELD_OPT_I64, offsetof(struct rule_reading, rule.minor), false, NULL},
		{"access", FIELD_STR, offsetof(struct rule_reading, access), false, NULL},
		{0},
	};
	struct rule_reading r = {.type = "a"};
	struct opt_i64 *numbers[] = {&r.rule.major, &r.rule.minor};

	if (fields_read(a, fields, &r, mem, e) < 0 ||
		read_access(a, r.access, &r.rule.access, e) < 0)
		return -1;
	if (strlen(r.type) != 1 || !strchr("abc", r.type[0]))
		return at_error(a, e, "type: expected a, b or c, got '%.20s'", r.type);
	r.rule.type = r.type[0];
	for (int i = 0; i < 2; i++) {
		if (numbers[i]->set && numbers[i]->v == -1) /* engines write -1 for all */
			numbers[i]->set = false;
		if (numbers[i]->set && (numbers[i]->v < 0 || numbers[i]->v > UINT32_MAX))
			return at_error(a, e, "major and minor: expected a device number");
	}
	*(struct spec_device_rule *)out = r.rule;
	return 0;
}

static int read_device_rules(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_resources *r = out;

	return fields_read_array(
		a, sizeof(*r->devices), &r->devices, &r->ndevices, read_device_rule, mem, e);
}

static int read_memory(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"limit", FIELD_OPT_I64, offsetof(struct spec_resources, memory_limit), false,
			NULL},
		{"reservation", FIELD_OPT_I64, offsetof(struct spec_resources, memory_reservation),
			false, NULL},
		{"swap", FIELD_OPT_I64, offsetof(struct spec_resources, memory_swap), false, NULL},
		{"kernel", FIELD_REFUSE, 0, false, NULL},
		{"kernelTCP", FIELD_REFUSE, 0, false, NULL},
		{"swappiness", FIELD_REFUSE, 0, false, NULL},
		{"disableOOMKiller", FIELD_REFUSE, 0, false, NULL},
		{"checkBeforeUpdate", FIELD_REFUSE, 0, false, NULL},
		{0},
	};
	const struct spec_resources *r = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	if (r->memory_limit.v < -1 || r->memory_reservation.v < -1 || r->memory_swap.v < -1)
		return at_error(a, e, "expected bytes, or -1 for no limit");
	if (r->memory_swap.set && r->memory_swap.v >= 0 &&
		(!r->memory_limit.set || r->memory_swap.v < r->memory_limit.v))
		return at_error(a, e, "swap is memory and swap together: at least the limit");
	return 0;
}

static int read_cpu(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"shares", FIELD_OPT_I64, offsetof(struct spec_resources, cpu_shares), false, NULL},
		{"quota", FIELD_OPT_I64, offsetof(struct spec_resources, cpu_quota), false, NULL},
		{"period", FIELD_OPT_I64, offsetof(struct spec_resources, cpu_period), false, NULL},
		{"cpus", FIELD_STR, offsetof(struct spec_resources, cpus), false, NULL},
		{"mems", FIELD_STR, offsetof(struct spec_resources, mems), false, NULL},
		{"realtimeRuntime", FIELD_REFUSE, 0, false, NULL},
		{"realtimePeriod", FIELD_REFUSE, 0, false, NULL},
		{"burst", FIELD_REFUSE, 0, false, NULL},
		{"idle", FIELD_REFUSE, 0, false, NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

static int read_pids(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"limit", FIELD_OPT_I64, offsetof(struct spec_resources, pids), true, NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

static int read_resources(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"devices", FIELD_READ, 0, false, read_device_rules},
		{"memory", FIELD_READ, 0, false, read_memory},
		{"cpu", FIELD_READ, 0, false, read_cpu},
		{"pids", FIELD_READ, 0, false, read_pids},
		{"blockIO", FIELD_REFUSE, 0, false, NULL},
		{"hugepageLimits", FIELD_REFUSE, 0, false, NULL},
		{"network", FIELD_REFUSE, 0, false, NULL},
		{"rdma", FIELD_REFUSE, 0, false, NULL},
		{"unified", FIELD_REFUSE, 0, false, NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

/* ---- the rest ---- */

static int read_sysctls(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;
	const char *key;
	json_t *v;

	if (!json_is_object(a->v) || json_object_size(a->v) > FIELDS_ELEMENTS_MAX)
		return at_error(a, e, "expected an object");
	s->sysctls = arena_alloc(mem, (json_object_size(a->v) + 1) * sizeof(*s->sysctls));
	json_object_foreach (a->v, key, v) {
		const struct at member = {a, key, 0, v};
		const char *value = at_string(&member, e);

		if (!value)
			return -1;
		s->sysctls[s->nsysctls++] = (struct spec_sysctl){key, value};
	}
	return 0;
}

static int read_propagation(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	const char *s = at_string(a, e);

	(void)out;
	(void)mem;
	if (!s)
		return -1;
	/* A new root is private and its binds are slaves unless they say otherwise. */
	if (*s && !str_eq(s, "private") && !str_eq(s, "rprivate") && !str_eq(s, "slave") &&
		!str_eq(s, "rslave"))
		return at_unsupported(a, e, "'%.40s' is not supported by this version", s);
	return 0;
}

static int read_cgroup_path(const struct at *a, void *out, struct arena *mem, struct err *e)
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
	if (strlen(s) > 512)
		return at_error(a, e, "longer than 512 bytes");
	*(const char **)out = *s ? s : NULL;
	return 0;
}

static int read_seccomp(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec *s = out;

	s->has_seccomp = true;
	return seccomp_read(a, &s->seccomp, mem, e);
}

int spec_read_linux(const struct at *a, void *spec, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"namespaces", FIELD_READ, 0, true, read_namespaces},
		{"devices", FIELD_READ, 0, false, read_devices},
		{"cgroupsPath", FIELD_READ, offsetof(struct spec, cgroup_path), false,
			read_cgroup_path},
		{"resources", FIELD_READ, offsetof(struct spec, resources), false, read_resources},
		{"seccomp", FIELD_READ, 0, false, read_seccomp},
		{"maskedPaths", FIELD_STRS, offsetof(struct spec, masked), false, NULL},
		{"readonlyPaths", FIELD_STRS, offsetof(struct spec, readonly), false, NULL},
		{"sysctl", FIELD_READ, 0, false, read_sysctls},
		{"rootfsPropagation", FIELD_READ, 0, false, read_propagation},
		{"uidMappings", FIELD_REFUSE, 0, false, NULL},
		{"gidMappings", FIELD_REFUSE, 0, false, NULL},
		{"timeOffsets", FIELD_REFUSE, 0, false, NULL},
		{"mountLabel", FIELD_REFUSE, 0, false, NULL},
		{"intelRdt", FIELD_REFUSE, 0, false, NULL},
		{"personality", FIELD_REFUSE, 0, false, NULL},
		{"netDevices", FIELD_REFUSE, 0, false, NULL},
		{"memoryPolicy", FIELD_REFUSE, 0, false, NULL},
		{0},
	};
	struct spec *s = spec;

	if (fields_read(a, fields, s, mem, e) < 0)
		return -1;
	/* Without these two the steps in child.c would change the host. */
	if (!s->namespaces[NS_MOUNT] || !s->namespaces[NS_PID])
		return at_unsupported(a, e,
			"namespaces: a new mount and a new pid namespace are "
			"needed");
	return 0;
}
