#include "runtime/spec.h"

#include <limits.h>
#include <linux/ioprio.h>
#include <linux/sched.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/str.h"

enum { UMASK_MAX = 0777, IO_LEVEL_MAX = 7, NICE_MIN = -20, NICE_MAX = 19 };

/* ---- user ---- */

static int read_groups(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_user *u = out;
	size_t n = json_array_size(a->v);

	if (!json_is_array(a->v) || n > FIELDS_ELEMENTS_MAX)
		return at_error(a, e, "expected an array of at most %d", FIELDS_ELEMENTS_MAX);
	u->groups = arena_alloc(mem, n ? n * sizeof(*u->groups) : 1);
	for (size_t i = 0; i < n; i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};

		if (!json_is_integer(el.v) || json_integer_value(el.v) < 0 ||
			json_integer_value(el.v) >= UINT32_MAX)
			return at_error(&el, e, "expected a group id");
		u->groups[u->ngroups++] = (uint32_t)json_integer_value(el.v);
	}
	return 0;
}

static int read_user(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"uid", FIELD_U32, offsetof(struct spec_user, uid), false, NULL},
		{"gid", FIELD_U32, offsetof(struct spec_user, gid), false, NULL},
		{"umask", FIELD_OPT_U32, offsetof(struct spec_user, umask), false, NULL},
		{"additionalGids", FIELD_READ, 0, false, read_groups},
		{0},
	};
	struct spec_user *u = out;

	if (fields_read(a, fields, u, mem, e) < 0)
		return -1;
	/* -1 means "leave it as it is" to setresuid(2): root would stay root (CVE-2024-40635). */
	if (u->uid == UINT32_MAX || u->gid == UINT32_MAX)
		return at_error(a, e, "uid and gid must be less than %u", UINT32_MAX);
	if (u->umask.set && u->umask.v > UMASK_MAX)
		return at_error(a, e, "umask must be at most 0777 (octal)");
	return 0;
}

static int read_console_size(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"height", FIELD_U32, offsetof(struct spec_process, rows), true, NULL},
		{"width", FIELD_U32, offsetof(struct spec_process, columns), true, NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

/* ---- capabilities ---- */

/* config.md: a capability that cannot be mapped to the kernel's is a warning, not an error, so that
 * one configuration serves kernels of several ages. */
static int read_cap_set(const struct at *a, uint64_t *set, const char **unknown, struct err *e)
{
	if (!json_is_array(a->v) || json_array_size(a->v) > FIELDS_ELEMENTS_MAX)
		return at_error(a, e, "expected an array of capability names");
	for (size_t i = 0; i < json_array_size(a->v); i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};
		const char *name = at_string(&el, e);
		int cap = name ? caps_number(name) : -1;

		if (!name)
			return -1;
		if (cap < 0)
			*unknown = name;
		else
			*set |= UINT64_C(1) << cap;
	}
	return 0;
}

static int read_caps(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct {
		const char *name;
		size_t off;
	} sets[] = {
		{"bounding", offsetof(struct caps, bounding)},
		{"permitted", offsetof(struct caps, permitted)},
		{"effective", offsetof(struct caps, effective)},
		{"inheritable", offsetof(struct caps, inheritable)},
		{"ambient", offsetof(struct caps, ambient)},
	};
	const char *unknown = NULL;
	char shown[STR_SHOWN];

	(void)mem;
	if (!json_is_object(a->v))
		return at_error(a, e, "expected an object");
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		const struct at set = {a, sets[i].name, 0, json_object_get(a->v, sets[i].name)};
		uint64_t *bits = (uint64_t *)(void *)((char *)out + sets[i].off);

		if (set.v && !json_is_null(set.v) && read_cap_set(&set, bits, &unknown, e) < 0)
			return -1;
	}
	if (unknown)
		warn("capability '%s' is not known and ignored", str_shown(unknown, shown));
	return 0;
}

/* ---- limits ---- */

static const struct {
	const char *name;
	int resource;
} rlimit_names[] = {
	{"RLIMIT_AS", RLIMIT_AS},
	{"RLIMIT_CORE", RLIMIT_CORE},
	{"RLIMIT_CPU", RLIMIT_CPU},
	{"RLIMIT_DATA", RLIMIT_DATA},
	{"RLIMIT_FSIZE", RLIMIT_FSIZE},
	{"RLIMIT_LOCKS", RLIMIT_LOCKS},
	{"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
	{"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
	{"RLIMIT_NICE", RLIMIT_NICE},
	{"RLIMIT_NOFILE", RLIMIT_NOFILE},
	{"RLIMIT_NPROC", RLIMIT_NPROC},
	{"RLIMIT_RSS", RLIMIT_RSS},
	{"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
	{"RLIMIT_RTTIME", RLIMIT_RTTIME},
	{"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
	{"RLIMIT_STACK", RLIMIT_STACK},
};

int spec_rlimit_resource(const char *name)
{
	for (size_t i = 0; i < sizeof(rlimit_names) / sizeof(rlimit_names[0]); i++)
		if (str_eq(rlimit_names[i].name, name))
			return rlimit_names[i].resource;
	return -1;
}

static int read_rlimit(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"type", FIELD_STR, offsetof(struct spec_rlimit, name), true, NULL},
		{"soft", FIELD_U64, offsetof(struct spec_rlimit, soft), true, NULL},
		{"hard", FIELD_U64, offsetof(struct spec_rlimit, hard), true, NULL},
		{0},
	};
	struct spec_rlimit *r = out;

	if (fields_read(a, fields, r, mem, e) < 0)
		return -1;
	r->resource = spec_rlimit_resource(r->name);
	if (r->resource < 0)
		return at_error(a, e, "unknown rlimit '%.100s'", r->name);
	if (r->soft == SPEC_RLIM_INFINITY)
		r->soft = RLIM_INFINITY;
	if (r->hard == SPEC_RLIM_INFINITY)
		r->hard = RLIM_INFINITY;
	if (r->soft > r->hard)
		return at_error(a, e, "soft limit is greater than the hard limit");
	return 0;
}

static int read_rlimits(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_process *p = out;
	unsigned seen = 0;

	if (fields_read_array(
		    a, sizeof(*p->rlimits), &p->rlimits, &p->nrlimits, read_rlimit, mem, e) < 0)
		return -1;
	for (size_t i = 0; i < p->nrlimits; i++) {
		if (seen >> p->rlimits[i].resource & 1)
			return at_error(a, e, "%s is there twice", p->rlimits[i].name);
		seen |= 1u << p->rlimits[i].resource;
	}
	return 0;
}

/* ---- scheduling ---- */

static const struct fields_word policies[] = {
	{"SCHED_OTHER", SCHED_NORMAL}, {"SCHED_FIFO", SCHED_FIFO}, {"SCHED_RR", SCHED_RR},
	{"SCHED_BATCH", SCHED_BATCH}, {"SCHED_IDLE", SCHED_IDLE},
	{"SCHED_DEADLINE", SCHED_DEADLINE},
	{0}, /* SCHED_ISO is reserved by the kernel and not implemented */
};

static const struct fields_word policy_flags[] = {
	{"SCHED_FLAG_RESET_ON_FORK", SCHED_FLAG_RESET_ON_FORK},
	{"SCHED_FLAG_RECLAIM", SCHED_FLAG_RECLAIM},
	{"SCHED_FLAG_DL_OVERRUN", SCHED_FLAG_DL_OVERRUN},
	{"SCHED_FLAG_KEEP_POLICY", SCHED_FLAG_KEEP_POLICY},
	{"SCHED_FLAG_KEEP_PARAMS", SCHED_FLAG_KEEP_PARAMS},
	{"SCHED_FLAG_UTIL_CLAMP_MIN", SCHED_FLAG_UTIL_CLAMP_MIN},
	{"SCHED_FLAG_UTIL_CLAMP_MAX", SCHED_FLAG_UTIL_CLAMP_MAX},
	{0},
};

static int read_policy(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	uint64_t v;

	(void)mem;
	if (at_word(a, policies, &v, e) < 0)
		return -1;
	*(uint32_t *)out = (uint32_t)v;
	return 0;
}

static int read_policy_flags(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	(void)mem;
	return at_words(a, policy_flags, out, e);
}

struct scheduler_reading {
	struct spec_scheduler s;
	struct opt_i64 nice, priority;
};

static int check_scheduler(const struct at *a, const struct scheduler_reading *r,
	const struct spec_scheduler *s, struct err *e)
{
	bool realtime = s->policy == SCHED_FIFO || s->policy == SCHED_RR;

	if (r->nice.v < NICE_MIN || r->nice.v > NICE_MAX)
		return at_error(a, e, "nice: expected %d to %d", NICE_MIN, NICE_MAX);
	if (r->priority.v && !realtime)
		return at_error(a, e, "priority is for SCHED_FIFO and SCHED_RR only");
	if (r->priority.v < 0 || r->priority.v > 99 || (realtime && r->priority.v == 0))
		return at_error(a, e, "priority: expected 1 to 99");
	if ((s->runtime || s->deadline || s->period) && s->policy != SCHED_DEADLINE)
		return at_error(a, e, "runtime, deadline and period are for SCHED_DEADLINE only");
	if (s->policy == SCHED_DEADLINE &&
		(!s->runtime || s->runtime > s->deadline || (s->period && s->deadline > s->period)))
		return at_error(a, e, "expected 0 < runtime <= deadline <= period");
	return 0;
}

static int read_scheduler(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"policy", FIELD_READ, offsetof(struct scheduler_reading, s.policy), true,
			read_policy},
		{"nice", FIELD_OPT_I64, offsetof(struct scheduler_reading, nice), false, NULL},
		{"priority", FIELD_OPT_I64, offsetof(struct scheduler_reading, priority), false,
			NULL},
		{"flags", FIELD_READ, offsetof(struct scheduler_reading, s.flags), false,
			read_policy_flags},
		{"runtime", FIELD_U64, offsetof(struct scheduler_reading, s.runtime), false, NULL},
		{"deadline", FIELD_U64, offsetof(struct scheduler_reading, s.deadline), false,
			NULL},
		{"period", FIELD_U64, offsetof(struct scheduler_reading, s.period), false, NULL},
		{0},
	};
	struct scheduler_reading r = {.s.given = true};

	if (fields_read(a, fields, &r, mem, e) < 0 || check_scheduler(a, &r, &r.s, e) < 0)
		return -1;
	r.s.nice = (int32_t)r.nice.v;
	r.s.priority = (uint32_t)r.priority.v;
	*(struct spec_scheduler *)out = r.s;
	return 0;
}

static const struct fields_word io_classes[] = {
	{"IOPRIO_CLASS_RT", IOPRIO_CLASS_RT},
	{"IOPRIO_CLASS_BE", IOPRIO_CLASS_BE},
	{"IOPRIO_CLASS_IDLE", IOPRIO_CLASS_IDLE},
	{0},
};

static int read_io_class(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	uint64_t v;

	(void)mem;
	if (at_word(a, io_classes, &v, e) < 0)
		return -1;
	*(int *)out = (int)v;
	return 0;
}

struct io_reading {
	struct spec_io_priority p;
	struct opt_i64 level;
};

static int read_io_priority(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"class", FIELD_READ, offsetof(struct io_reading, p.class), true, read_io_class},
		{"priority", FIELD_OPT_U32, offsetof(struct io_reading, level), false, NULL},
		{0},
	};
	struct io_reading r = {.p.given = true};

	if (fields_read(a, fields, &r, mem, e) < 0)
		return -1;
	if (r.level.v > IO_LEVEL_MAX)
		return at_error(a, e, "priority: expected 0 to %d", IO_LEVEL_MAX);
	r.p.priority = (int)r.level.v;
	*(struct spec_io_priority *)out = r.p;
	return 0;
}

static int read_affinity(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"initial", FIELD_RANGES, offsetof(struct spec_process, exec_cpus_initial), false,
			NULL},
		{"final", FIELD_RANGES, offsetof(struct spec_process, exec_cpus_final), false,
			NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

/* ---- all of it ---- */

static int check_process(const struct at *a, const struct spec_process *p, struct err *e)
{
	if (p->args.n == 0)
		return at_error(a, e, "args: empty");
	for (size_t i = 0; i < p->env.n; i++)
		if (!strchr(p->env.v[i], '=') || p->env.v[i][0] == '=')
			return at_error(a, e, "env/%zu: expected NAME=VALUE", i);
	if (p->oom_score_adj.set && (p->oom_score_adj.v < -1000 || p->oom_score_adj.v > 1000))
		return at_error(a, e, "oomScoreAdj: expected -1000 to 1000");
	if ((p->rows | p->columns) > USHRT_MAX)
		return at_error(a, e, "consoleSize: at most %d", USHRT_MAX);
	return 0;
}

int spec_process(const struct at *a, void *spec_process, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"terminal", FIELD_BOOL, offsetof(struct spec_process, terminal), false, NULL},
		{"consoleSize", FIELD_READ, 0, false, read_console_size},
		{"user", FIELD_READ, offsetof(struct spec_process, user), false, read_user},
		{"args", FIELD_STRS, offsetof(struct spec_process, args), true, NULL},
		{"env", FIELD_STRS, offsetof(struct spec_process, env), false, NULL},
		{"cwd", FIELD_PATH, offsetof(struct spec_process, cwd), true, NULL},
		{"capabilities", FIELD_READ, offsetof(struct spec_process, caps), false, read_caps},
		{"rlimits", FIELD_READ, 0, false, read_rlimits},
		{"noNewPrivileges", FIELD_BOOL, offsetof(struct spec_process, no_new_privs), false,
			NULL},
		{"oomScoreAdj", FIELD_OPT_I64, offsetof(struct spec_process, oom_score_adj), false,
			NULL},
		{"apparmorProfile", FIELD_OPT_STR, offsetof(struct spec_process, apparmor), false,
			NULL},
		{"selinuxLabel", FIELD_OPT_STR, offsetof(struct spec_process, selinux), false,
			NULL},
		{"scheduler", FIELD_READ, offsetof(struct spec_process, scheduler), false,
			read_scheduler},
		{"ioPriority", FIELD_READ, offsetof(struct spec_process, io_priority), false,
			read_io_priority},
		{"execCPUAffinity", FIELD_READ, 0, false, read_affinity},
		{0},
	};
	struct spec_process *p = spec_process;

	if (fields_read(a, fields, p, mem, e) < 0)
		return -1;
	p->given = true;
	return check_process(a, p, e);
}
