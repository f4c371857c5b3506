#include "runtime/spec.h"

#include <limits.h>
#include <linux/ioprio.h>
#include <linux/sched.h>
#include <sys/resource.h>

#include "base/str.h"

/* ---- user and rights ---- */

static int check_gid(const struct at *a, void *out, struct err *e)
{
	if (!json_is_integer(a->v) || json_integer_value(a->v) < 0 ||
		json_integer_value(a->v) >= UINT32_MAX)
		return at_error(a, e, "expected a group id");
	*(uint32_t *)out = (uint32_t)json_integer_value(a->v);
	return 0;
}

static int check_user(const struct at *a, void *out, struct err *e)
{
	const struct spec_user *u = out;

	/* -1 means "leave it as it is" to setresuid(2): root would stay root (CVE-2024-40635). */
	if (u->uid == UINT32_MAX || u->gid == UINT32_MAX)
		return at_error(a, e, "uid and gid must be less than %u", UINT32_MAX);
	return 0;
}

/* config.md: a capability that cannot be mapped to the kernel's is a warning, not an error, so that
 * one configuration serves kernels of several ages. */
static int read_cap(const struct at *a, void *out, struct err *e)
{
	const char *name = at_string(a, e);
	int cap = name ? caps_number(name) : -1;
	char shown[STR_SHOWN];

	if (!name)
		return -1;
	if (cap < 0)
		warn("capability '%s' is not known and ignored", str_shown(name, shown));
	else
		*(uint64_t *)out |= UINT64_C(1) << cap;
	return 0;
}

#define CAPS(name) FIELD(EACH, #name, struct caps, name, .each = read_cap)
/* ---- limits ---- */

static const struct fields_word rlimit_names[] = {FIELDS_WORD(RLIMIT_AS), FIELDS_WORD(RLIMIT_CORE),
	FIELDS_WORD(RLIMIT_CPU), FIELDS_WORD(RLIMIT_DATA), FIELDS_WORD(RLIMIT_FSIZE),
	FIELDS_WORD(RLIMIT_LOCKS), FIELDS_WORD(RLIMIT_MEMLOCK), FIELDS_WORD(RLIMIT_MSGQUEUE),
	FIELDS_WORD(RLIMIT_NICE), FIELDS_WORD(RLIMIT_NOFILE), FIELDS_WORD(RLIMIT_NPROC),
	FIELDS_WORD(RLIMIT_RSS), FIELDS_WORD(RLIMIT_RTPRIO), FIELDS_WORD(RLIMIT_RTTIME),
	FIELDS_WORD(RLIMIT_SIGPENDING), FIELDS_WORD(RLIMIT_STACK), {0}};

int spec_rlimit_resource(const char *name)
{
	const struct fields_word *w = fields_word(rlimit_names, name);

	return w ? (int)w->value : -1;
}

static int check_rlimit(const struct at *a, void *out, struct err *e)
{
	struct spec_rlimit *r = out;

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

static int check_rlimits(const struct at *a, const struct spec_process *p, struct err *e)
{
	const struct at list = {a, "rlimits", 0, NULL, a->mem};
	unsigned seen = 0;

	for (size_t i = 0; i < p->nrlimits; i++) {
		if (seen >> p->rlimits[i].resource & 1)
			return at_error(&list, e, "%s is there twice", p->rlimits[i].name);
		seen |= 1u << p->rlimits[i].resource;
	}
	return 0;
}

/* ---- scheduling ---- */

/* SCHED_ISO is reserved by the kernel and not implemented. */
static const struct fields_word policies[] = {{"SCHED_OTHER", SCHED_NORMAL},
	FIELDS_WORD(SCHED_FIFO), FIELDS_WORD(SCHED_RR), FIELDS_WORD(SCHED_BATCH),
	FIELDS_WORD(SCHED_IDLE), FIELDS_WORD(SCHED_DEADLINE), {0}};

static const struct fields_word policy_flags[] = {FIELDS_WORD(SCHED_FLAG_RESET_ON_FORK),
	FIELDS_WORD(SCHED_FLAG_RECLAIM), FIELDS_WORD(SCHED_FLAG_DL_OVERRUN),
	FIELDS_WORD(SCHED_FLAG_KEEP_POLICY), FIELDS_WORD(SCHED_FLAG_KEEP_PARAMS),
	FIELDS_WORD(SCHED_FLAG_UTIL_CLAMP_MIN), FIELDS_WORD(SCHED_FLAG_UTIL_CLAMP_MAX), {0}};

static int check_scheduler(const struct at *a, void *out, struct err *e)
{
	const struct spec_scheduler *s = out;
	bool realtime = s->policy == SCHED_FIFO || s->policy == SCHED_RR;

	if (s->priority && !realtime)
		return at_error(a, e, "priority is for SCHED_FIFO and SCHED_RR only");
	if (realtime && !s->priority)
		return at_error(a, e, "priority: expected 1 to 99");
	if ((s->runtime || s->deadline || s->period) && s->policy != SCHED_DEADLINE)
		return at_error(a, e, "runtime, deadline and period are for SCHED_DEADLINE only");
	if (s->policy == SCHED_DEADLINE &&
		(!s->runtime || s->runtime > s->deadline || (s->period && s->deadline > s->period)))
		return at_error(a, e, "expected 0 < runtime <= deadline <= period");
	return 0;
}

static const struct fields_word io_classes[] = {FIELDS_WORD(IOPRIO_CLASS_RT),
	FIELDS_WORD(IOPRIO_CLASS_BE), FIELDS_WORD(IOPRIO_CLASS_IDLE), {0}};

/* ---- all of it ---- */

#define MEMBER(kind, name, member, ...) FIELD(kind, name, struct spec_process, member, __VA_ARGS__)
static const struct field process_fields[] = {
	MEMBER(BOOL, "terminal", terminal),
	FIELD_PART("consoleSize", ROWS(FIELD(U32, "height", struct spec_process, rows,
					       .required = true, .max = USHRT_MAX),
					  FIELD(U32, "width", struct spec_process, columns,
						  .required = true, .max = USHRT_MAX))),
	MEMBER(OBJECT, "user", user,
		ROWS(FIELD(U32, "uid", struct spec_user, uid),
			FIELD(U32, "gid", struct spec_user, gid),
			FIELD(OPT, "umask", struct spec_user, umask, .max = 0777),
			FIELD_LIST(ARRAY, "additionalGids", struct spec_user, groups,
				.each = check_gid)),
		.check = check_user),
	MEMBER(STRS, "args", args, .required = true, .min = 1),
	MEMBER(STRS, "env", env),
	MEMBER(PATH, "cwd", cwd, .required = true),
	MEMBER(OBJECT, "capabilities", caps,
		ROWS(CAPS(bounding), CAPS(permitted), CAPS(effective), CAPS(inheritable),
			CAPS(ambient))),
	FIELD_LIST(ARRAY, "rlimits", struct spec_process, rlimits,
		ROWS(FIELD(STR, "type", struct spec_rlimit, name, .required = true),
			FIELD(U64, "soft", struct spec_rlimit, soft, .required = true),
			FIELD(U64, "hard", struct spec_rlimit, hard, .required = true)),
		.each = check_rlimit),
	MEMBER(BOOL, "noNewPrivileges", no_new_privs),
	MEMBER(OPT, "oomScoreAdj", oom_score_adj, .min = -1000, .max = 1000),
	MEMBER(OPT_STR, "apparmorProfile", apparmor),
	MEMBER(OPT_STR, "selinuxLabel", selinux),
	MEMBER(OBJECT, "scheduler", scheduler, .given = true,
		ROWS(FIELD(WORD, "policy", struct spec_scheduler, policy, .words = policies,
			     .required = true),
			FIELD(INT, "nice", struct spec_scheduler, nice, .min = -20, .max = 19),
			FIELD(U32, "priority", struct spec_scheduler, priority, .max = 99),
			FIELD(WORDS, "flags", struct spec_scheduler, flags, .words = policy_flags),
			FIELD(U64, "runtime", struct spec_scheduler, runtime),
			FIELD(U64, "deadline", struct spec_scheduler, deadline),
			FIELD(U64, "period", struct spec_scheduler, period)),
		.check = check_scheduler),
	MEMBER(OBJECT, "ioPriority", io_priority, .given = true,
		ROWS(FIELD(WORD, "class", struct spec_io_priority, class, .words = io_classes,
			     .required = true),
			FIELD(U32, "priority", struct spec_io_priority, priority, .max = 7))),
	FIELD_PART("execCPUAffinity",
		ROWS(FIELD(RANGES, "initial", struct spec_process, exec_cpus_initial),
			FIELD(RANGES, "final", struct spec_process, exec_cpus_final))),
	{0},
};

int spec_process(const struct at *a, void *spec_process, struct err *e)
{
	struct spec_process *p = spec_process;

	if (fields_read(a, process_fields, p, e) < 0)
		return -1;
	p->given = true;
	for (size_t i = 0; i < p->env.n; i++)
		if (!strchr(p->env.v[i], '=') || p->env.v[i][0] == '=')
			return at_error(a, e, "env/%zu: expected NAME=VALUE", i);
	return check_rlimits(a, p, e);
}
