#include "runtime/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include "base/str.h"
#include "runtime/seccomp-bpf.h"

const struct fields_word seccomp_actions[] = {{"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},
	{"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO}, {"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
	{"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
	{"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD}, {"SCMP_ACT_LOG", SECCOMP_RET_LOG},
	{"SCMP_ACT_NOTIFY", SECCOMP_RET_USER_NOTIF}, {"SCMP_ACT_TRACE", SECCOMP_RET_TRACE},
	{"SCMP_ACT_TRAP", SECCOMP_RET_TRAP}, {0}};

/* Those whose programs the machine cannot run are accepted, and need no code (see runs()). x32
 * shares the audit number of x86-64, with a bit in the system call's number: it is accepted in a
 * list and gets what an architecture outside it gets, which is what most kernels say to it. */
const struct fields_word seccomp_archs[] = {{"SCMP_ARCH_AARCH64", AUDIT_ARCH_AARCH64},
	{"SCMP_ARCH_ARM", AUDIT_ARCH_ARM}, {"SCMP_ARCH_LOONGARCH64", AUDIT_ARCH_LOONGARCH64},
	{"SCMP_ARCH_M68K", AUDIT_ARCH_M68K}, {"SCMP_ARCH_MIPS", AUDIT_ARCH_MIPS},
	{"SCMP_ARCH_MIPS64", AUDIT_ARCH_MIPS64}, {"SCMP_ARCH_MIPS64N32", AUDIT_ARCH_MIPS64N32},
	{"SCMP_ARCH_MIPSEL", AUDIT_ARCH_MIPSEL}, {"SCMP_ARCH_MIPSEL64", AUDIT_ARCH_MIPSEL64},
	{"SCMP_ARCH_MIPSEL64N32", AUDIT_ARCH_MIPSEL64N32}, {"SCMP_ARCH_PARISC", AUDIT_ARCH_PARISC},
	{"SCMP_ARCH_PARISC64", AUDIT_ARCH_PARISC64}, {"SCMP_ARCH_PPC", AUDIT_ARCH_PPC},
	{"SCMP_ARCH_PPC64", AUDIT_ARCH_PPC64}, {"SCMP_ARCH_PPC64LE", AUDIT_ARCH_PPC64LE},
	{"SCMP_ARCH_RISCV64", AUDIT_ARCH_RISCV64}, {"SCMP_ARCH_S390", AUDIT_ARCH_S390},
	{"SCMP_ARCH_S390X", AUDIT_ARCH_S390X}, {"SCMP_ARCH_SH", AUDIT_ARCH_SHEL},
	{"SCMP_ARCH_SHEB", AUDIT_ARCH_SH}, FIELDS_WORD(SCMP_ARCH_X32),
	{"SCMP_ARCH_X86", AUDIT_ARCH_I386}, {"SCMP_ARCH_X86_64", AUDIT_ARCH_X86_64}, {0}};

const struct fields_word seccomp_ops[] = {{"SCMP_CMP_EQ", OP_EQ}, {"SCMP_CMP_GE", OP_GE},
	{"SCMP_CMP_GT", OP_GT}, {"SCMP_CMP_LE", OP_LE}, {"SCMP_CMP_LT", OP_LT},
	{"SCMP_CMP_MASKED_EQ", OP_MASKED_EQ}, {"SCMP_CMP_NE", OP_NE}, {0}};

const struct fields_word seccomp_flags[] = {FIELDS_WORD(SECCOMP_FILTER_FLAG_LOG),
	FIELDS_WORD(SECCOMP_FILTER_FLAG_SPEC_ALLOW), FIELDS_WORD(SECCOMP_FILTER_FLAG_TSYNC),
	FIELDS_WORD(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), {0}};

/* System calls that libseccomp 2.5.4 does not know yet; all architectures agree on their numbers.
 */
enum { FIRST_NEW_CALL = 451 };
static const char *const new_calls[] = {"cachestat", "fchmodat2", "map_shadow_stack", "futex_wake",
	"futex_wait", "futex_requeue", "statmount", "listmount", "lsm_get_self_attr",
	"lsm_set_self_attr", "lsm_list_modules", "mseal", "setxattrat", "getxattrat", "listxattrat",
	"removexattrat", "open_tree_attr", "file_getattr", "file_setattr"};

/* ---- reading ---- */

/* An action and its errno: the data of the return value, EPERM unless given. */
static int with_errno(
	const struct at *a, uint32_t *action, const struct opt_i64 *ret, struct err *e)
{
	bool takes = *action == SECCOMP_RET_ERRNO || *action == SECCOMP_RET_TRACE;

	if (ret->set && (!takes || ret->v < 0 || ret->v > SECCOMP_RET_DATA))
		return at_error(a, e, "errnoRet %lld does not fit the action", (long long)ret->v);
	if (takes)
		*action |= ret->set ? (uint32_t)ret->v : EPERM;
	return 0;
}

static int check_arg(const struct at *a, void *out, struct err *e)
{
	const struct seccomp_arg *arg = out;

	if (arg->index >= SECCOMP_ARGS)
		return at_error(
			a, e, "index %u: a system call has %d arguments", arg->index, SECCOMP_ARGS);
	return 0;
}

static const struct field arg_fields[] = {
	FIELD(U32, "index", struct seccomp_arg, index, .required = true),
	FIELD(WORD, "op", struct seccomp_arg, op, .required = true, .words = seccomp_ops),
	FIELD(U64, "value", struct seccomp_arg, value, .required = true),
	FIELD(U64, "valueTwo", struct seccomp_arg, value2),
	{0},
};

static int check_rule(const struct at *a, void *out, struct err *e)
{
	struct seccomp_rule *r = out;

	return with_errno(a, &r->action, &r->ret, e);
}

#define MEMBER(kind, name, type, member, ...) FIELD(kind, name, struct type, member, __VA_ARGS__)
static const struct field rule_fields[] = {
	MEMBER(STRS, "names", seccomp_rule, names, .required = true, .min = 1),
	MEMBER(WORD, "action", seccomp_rule, action, .required = true, .words = seccomp_actions),
	MEMBER(OPT, "errnoRet", seccomp_rule, ret),
	FIELD_LIST(ARRAY, "args", struct seccomp_rule, args, .rows = arg_fields, .each = check_arg,
		.max = SECCOMP_ARGS),
	{0},
};

static int read_arch(const struct at *a, void *out, struct err *e)
{
	return at_word(a, seccomp_archs, out, e);
}

/* The process hands its listener out after the filter is on: a call that it needs for that cannot
 * wait for somebody who has no listener yet. */
static const char handing_out[] = "sendmsg";

static int check_notify(const struct at *a, struct spec_seccomp *s, struct err *e)
{
	if (s->default_action == SECCOMP_RET_USER_NOTIF)
		return at_unsupported(a, e, "defaultAction: SCMP_ACT_NOTIFY is for single calls");
	for (size_t i = 0; i < s->nrules; i++) {
		if (s->rules[i].action != SECCOMP_RET_USER_NOTIF)
			continue;
		s->notifies = true;
		for (size_t k = 0; k < s->rules[i].names.n; k++)
			if (str_eq(s->rules[i].names.v[k], handing_out))
				return at_unsupported(a, e,
					"syscalls/%zu: SCMP_ACT_NOTIFY cannot be used for %s", i,
					handing_out);
	}
	if (s->notifies && !s->listener_path)
		return at_error(a, e, "SCMP_ACT_NOTIFY needs a listenerPath");
	if (s->listener_metadata && !s->listener_path)
		return at_error(a, e, "listenerMetadata needs a listenerPath");
	if (!s->notifies && s->flags & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
		return at_error(a, e,
			"flags: SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV needs SCMP_ACT_NOTIFY");
	return 0;
}

int seccomp_read(const struct at *a, struct spec_seccomp *s, struct err *e)
{
	static const struct field fields[] = {
		FIELD(WORD, "defaultAction", struct spec_seccomp, default_action, .required = true,
			.words = seccomp_actions),
		FIELD(OPT, "defaultErrnoRet", struct spec_seccomp, default_ret),
		FIELD_LIST(ARRAY, "architectures", struct spec_seccomp, archs, .each = read_arch),
		FIELD(WORDS, "flags", struct spec_seccomp, flags, .words = seccomp_flags),
		FIELD_LIST(ARRAY, "syscalls", struct spec_seccomp, rules, .rows = rule_fields,
			.each = check_rule),
		FIELD(OPT_STR, "listenerPath", struct spec_seccomp, listener_path),
		FIELD(OPT_STR, "listenerMetadata", struct spec_seccomp, listener_metadata),
		{0},
	};

	*s = (struct spec_seccomp){.source = a->v};
	if (fields_read(a, fields, s, e) < 0 ||
		with_errno(a, &s->default_action, &s->default_ret, e) < 0)
		return -1;
	return check_notify(a, s, e);
}

/* ---- compiling ---- */

/* i386 has the socket and System V IPC calls also by socketcall and ipc, calls of many, whose first
 * argument says which is meant. libseccomp's numbers of them are -100 and -200 (ipc) less that
 * argument, and not those of the calls that most have of their own: arch/x86/entry/syscalls/
 * syscall_32.tbl. A machine that we build for has no other architecture with such calls. */
enum { SOCKETCALL = 102, IPC = 117, MUXES = 125 }; /* at most */
static const struct {
	const char *name;
	int nr;
} own_numbers[] = {{"recvmmsg", 337}, {"sendmmsg", 345}, {"socket", 359}, {"socketpair", 360},
	{"bind", 361}, {"connect", 362}, {"listen", 363}, {"accept4", 364}, {"getsockopt", 365},
	{"setsockopt", 366}, {"getsockname", 367}, {"getpeername", 368}, {"sendto", 369},
	{"sendmsg", 370}, {"recvfrom", 371}, {"recvmsg", 372}, {"shutdown", 373}, {"semget", 393},
	{"semctl", 394}, {"shmget", 395}, {"shmctl", 396}, {"shmat", 397}, {"shmdt", 398},
	{"msgget", 399}, {"msgsnd", 400}, {"msgrcv", 401}, {"msgctl", 402}};

/* Which call of a call of many it is: 1 to 99 are socketcall's, from 101 on ipc's; 0: none. */
static size_t mux_of(uint32_t arch, int nr)
{
	return arch == AUDIT_ARCH_I386 && nr < -100 && nr > -100 - MUXES ? (size_t)(-100 - nr) : 0;
}

static uint32_t mux_number(size_t mux)
{
	return mux > 100 ? IPC : SOCKETCALL;
}

/* Number of a system call, or -1 when the architecture has none of that name. */
static int number_of(uint32_t arch, const char *name, int theirs)
{
	if (theirs >= 0)
		return theirs;
	for (size_t i = 0; mux_of(arch, theirs) && i < sizeof(own_numbers) / sizeof(own_numbers[0]);
		i++)
		if (str_eq(own_numbers[i].name, name))
			return own_numbers[i].nr;
	for (size_t i = 0;
		theirs == __NR_SCMP_ERROR && i < sizeof(new_calls) / sizeof(new_calls[0]); i++)
		if (str_eq(new_calls[i], name))
			return FIRST_NEW_CALL + (int)i;
	return -1; /* libseccomp's other negative numbers: another architecture's */
}

static int by_number(const void *a, const void *b)
{
	const struct bpf_rule *x = a, *y = b;

	if (x->nr != y->nr)
		return x->nr < y->nr ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* Two conditions on one argument are alternatives, and so are all of their rule: other runtimes
 * read it so, because libseccomp cannot say "both", and profiles rely on it. */
static bool has_alternatives(const struct seccomp_rule *r)
{
	unsigned seen = 0;

	for (size_t i = 0; i < r->nargs; i++) {
		if (seen >> r->args[i].index & 1)
			return true;
		seen |= 1u << r->args[i].index;
	}
	return false;
}

/* What is made of one architecture; rules are read from the last to the first. */
struct collecting {
	struct bpf_arch *a;
	size_t cap;
	/* Of each call that comes by a call of many: the condition, and what the rules read so far
	 * say of it; where that is not sure, the most lenient of it. */
	const struct seccomp_arg *muxes;
	uint32_t rest[MUXES];
};

static void add_rule(struct collecting *c, uint32_t nr, uint32_t action,
	const struct seccomp_arg *args, size_t nargs)
{
	struct bpf_arch *a = c->a;

	mem_grow(&a->rules, &c->cap, a->nrules);
	a->rules[a->nrules] = (struct bpf_rule){nr, SIZE_MAX - a->nrules, action, args, nargs};
	a->nrules++;
	if (nr >= a->first_newer)
		a->first_newer = nr + 1;
}

/* The kernel's order of actions, from KILL_PROCESS to ALLOW. */
static bool is_stricter(uint32_t a, uint32_t b)
{
	return (int32_t)(a & SECCOMP_RET_ACTION_FULL) < (int32_t)(b & SECCOMP_RET_ACTION_FULL);
}

/* A rule for a call by a call of many. Its own arguments cannot be looked at then, so it may or may
 * not fit: it is taken to fit when what would decide without it allows more. */
static void add_mux(struct collecting *c, const struct seccomp_rule *r, size_t mux)
{
	if (r->nargs && !is_stricter(r->action, c->rest[mux]))
		return;
	add_rule(c, mux_number(mux), r->action, &c->muxes[mux], 1);
	c->rest[mux] = r->action;
}

/* A rule by the number that the system call has itself, which may be a call of many. */
static void add_direct(struct collecting *c, const struct seccomp_rule *r, uint32_t nr)
{
	if (!has_alternatives(r))
		add_rule(c, nr, r->action, r->args, r->nargs);
	else
		for (size_t i = 0; i < r->nargs; i++)
			add_rule(c, nr, r->action, &r->args[i], 1);
	for (size_t i = 0; (nr == SOCKETCALL || nr == IPC) && i < MUXES; i++)
		if (mux_number(i) == nr && (!r->nargs || is_stricter(c->rest[i], r->action)))
			c->rest[i] = r->action;
}

static void collect(
	struct bpf_arch *a, const struct spec_seccomp *s, const struct seccomp_arg muxes[MUXES])
{
	struct collecting c = {.a = a, .muxes = muxes};

	for (size_t i = 0; i < MUXES; i++)
		c.rest[i] = s->default_action;
	for (size_t i = s->nrules; i-- > 0;) {
		const struct seccomp_rule *r = &s->rules[i];

		for (size_t k = 0; k < r->names.n; k++) {
			const char *name = r->names.v[k];
			int theirs = seccomp_syscall_resolve_name_arch(a->audit, name);
			int nr = number_of(a->audit, name, theirs);

			if (mux_of(a->audit, theirs))
				add_mux(&c, r, mux_of(a->audit, theirs));
			if (nr >= 0)
				add_direct(&c, r, (uint32_t)nr);
		}
	}
	if (a->nrules)
		qsort(a->rules, a->nrules, sizeof(*a->rules), by_number);
}

/* Can a machine of architecture `native` run programs of the other one? What no program can be
 * needs no code. */
static bool runs(uint32_t native, uint32_t other)
{
	return (native == AUDIT_ARCH_X86_64 && other == AUDIT_ARCH_I386) ||
	       (native == AUDIT_ARCH_AARCH64 && other == AUDIT_ARCH_ARM);
}

int seccomp_compile(struct seccomp_prog *p, const struct spec_seccomp *s, struct err *e)
{
	struct bpf_arch v[2] = {{.audit = seccomp_arch_native()}};
	struct bpf_actions actions_of = {.fallback = s->default_action};
	uint32_t kind = s->default_action & SECCOMP_RET_ACTION_FULL;
	struct seccomp_arg muxes[MUXES];
	size_t n = 1;
	int rc;

	/* Only the low bits of the argument count: of a register that has 64, and of ipc's, which
	 * has the version of the interface above them. */
	for (size_t i = 0; i < MUXES; i++)
		muxes[i] = (struct seccomp_arg){
			0, OP_MASKED_EQ, i > 100 ? 0xffff : UINT32_MAX, i % 100};
	*p = (struct seccomp_prog){.flags = s->flags, .notifies = s->notifies};
	for (size_t i = 0; i < s->narchs && n == 1; i++)
		if (runs(v[0].audit, s->archs[i]))
			v[n++].audit = s->archs[i];
	for (size_t i = 0; i < n; i++)
		collect(&v[i], s, muxes);
	actions_of.newer =
		kind == SECCOMP_RET_ERRNO ? SECCOMP_RET_ERRNO | ENOSYS : s->default_action;
	/* A list of what is forbidden must not be passed by with another architecture's numbers. */
	actions_of.foreign = kind == SECCOMP_RET_ALLOW || kind == SECCOMP_RET_LOG
				     ? SECCOMP_RET_ERRNO | ENOSYS
				     : actions_of.newer;
	rc = seccomp_bpf(v, n, &actions_of, &p->code, &p->n, e);
	for (size_t i = 0; i < n; i++)
		free(v[i].rules);
	return rc;
}

void seccomp_prog_fini(struct seccomp_prog *p)
{
	free(p->code);
	*p = (struct seccomp_prog){0};
}
