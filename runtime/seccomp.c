#include "runtime/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "runtime/seccomp-bpf.h"

struct word {
	const char *name;
	uint32_t value;
};

static const struct word actions[] = {
	{"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
	{"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD},
	{"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
	{"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},
	{"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO},
	{"SCMP_ACT_TRACE", SECCOMP_RET_TRACE},
	{"SCMP_ACT_LOG", SECCOMP_RET_LOG},
	{"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},
	{0},
};

/* x32 shares the audit number of x86-64, with a bit in the system call's number: it is accepted in
 * a list and gets ENOSYS, which is what most kernels say to it. */
static const struct word archs[] = {
	{"SCMP_ARCH_X86_64", SCMP_ARCH_X86_64},
	{"SCMP_ARCH_X86", SCMP_ARCH_X86},
	{"SCMP_ARCH_X32", SCMP_ARCH_X32},
	{"SCMP_ARCH_AARCH64", SCMP_ARCH_AARCH64},
	{"SCMP_ARCH_ARM", SCMP_ARCH_ARM},
	{0},
};

static const struct word ops[] = {
	{"SCMP_CMP_NE", OP_NE},
	{"SCMP_CMP_LT", OP_LT},
	{"SCMP_CMP_LE", OP_LE},
	{"SCMP_CMP_EQ", OP_EQ},
	{"SCMP_CMP_GE", OP_GE},
	{"SCMP_CMP_GT", OP_GT},
	{"SCMP_CMP_MASKED_EQ", OP_MASKED_EQ},
	{0},
};

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static const struct word flag_words[] = {
	{"SECCOMP_FILTER_FLAG_TSYNC", SECCOMP_FILTER_FLAG_TSYNC},
	{"SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG},
	{"SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW},
	{0},
};

/* System calls that libseccomp 2.5.4 does not know yet; from 424 on all architectures agree. */
static const struct word new_calls[] = {
	{"cachestat", 451},
	{"fchmodat2", 452},
	{"map_shadow_stack", 453},
	{"futex_wake", 454},
	{"futex_wait", 455},
	{"futex_requeue", 456},
	{"statmount", 457},
	{"listmount", 458},
	{"lsm_get_self_attr", 459},
	{"lsm_set_self_attr", 460},
	{"lsm_list_modules", 461},
	{"mseal", 462},
	{"setxattrat", 463},
	{"getxattrat", 464},
	{"listxattrat", 465},
	{"removexattrat", 466},
	{"open_tree_attr", 467},
	{"file_getattr", 468},
	{"file_setattr", 469},
	{0},
};

static const struct word *find(const struct word *t, const char *name)
{
	for (; t->name; t++)
		if (str_eq(t->name, name))
			return t;
	return NULL;
}

static int read_word(const struct at *a, const struct word *t, uint32_t *out, struct err *e)
{
	const char *s = at_string(a, e);
	const struct word *w = s ? find(t, s) : NULL;

	if (!s)
		return -1;
	if (!w)
		return at_unsupported(a, e, "unknown value '%.100s'", s);
	*out = w->value;
	return 0;
}

static int read_action(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	(void)mem;
	return read_word(a, actions, out, e);
}

static int read_op(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	uint32_t op;

	(void)mem;
	if (read_word(a, ops, &op, e) < 0)
		return -1;
	*(enum seccomp_op *)out = (enum seccomp_op)op;
	return 0;
}

static int read_arg(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"index", FIELD_U32, offsetof(struct seccomp_arg, index), true, NULL},
		{"op", FIELD_READ, offsetof(struct seccomp_arg, op), true, read_op},
		{"value", FIELD_U64, offsetof(struct seccomp_arg, value), true, NULL},
		{"valueTwo", FIELD_U64, offsetof(struct seccomp_arg, value2), false, NULL},
		{0},
	};
	const struct seccomp_arg *arg = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	if (arg->index >= SECCOMP_ARGS)
		return at_error(
			a, e, "index %u: a system call has %d arguments", arg->index, SECCOMP_ARGS);
	return 0;
}

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

struct rule_reading {
	struct seccomp_rule rule;
	struct opt_i64 ret;
};

static int read_args(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct seccomp_rule *r = out;

	if (fields_read_array(a, sizeof(*r->args), &r->args, &r->nargs, read_arg, mem, e) < 0)
		return -1;
	if (r->nargs > SECCOMP_ARGS)
		return at_error(a, e, "more than %d conditions", SECCOMP_ARGS);
	return 0;
}

static int read_rule(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"names", FIELD_STRS, offsetof(struct rule_reading, rule.names), true, NULL},
		{"action", FIELD_READ, offsetof(struct rule_reading, rule.action), true,
			read_action},
		{"errnoRet", FIELD_OPT_I64, offsetof(struct rule_reading, ret), false, NULL},
		{"args", FIELD_READ, offsetof(struct rule_reading, rule), false, read_args},
		{0},
	};
	struct rule_reading r = {0};

	if (fields_read(a, fields, &r, mem, e) < 0)
		return -1;
	if (r.rule.names.n == 0)
		return at_error(a, e, "names: empty");
	if (with_errno(a, &r.rule.action, &r.ret, e) < 0)
		return -1;
	*(struct seccomp_rule *)out = r.rule;
	return 0;
}

static int read_rules(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_seccomp *s = out;

	return fields_read_array(a, sizeof(*s->rules), &s->rules, &s->nrules, read_rule, mem, e);
}

static int read_archs(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_seccomp *s = out;

	(void)mem;
	if (!json_is_array(a->v) || json_array_size(a->v) > SECCOMP_ARCHS_MAX)
		return at_error(a, e, "expected an array of at most %d", SECCOMP_ARCHS_MAX);
	for (size_t i = 0; i < json_array_size(a->v); i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};

		if (read_word(&el, archs, &s->archs[s->narchs++], e) < 0)
			return -1;
	}
	return 0;
}

static int read_flags(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_seccomp *s = out;

	(void)mem;
	if (!json_is_array(a->v))
		return at_error(a, e, "expected an array");
	for (size_t i = 0; i < json_array_size(a->v); i++) {
		const struct at el = {a, NULL, i, json_array_get(a->v, i)};
		uint32_t flag;

		if (read_word(&el, flag_words, &flag, e) < 0)
			return -1;
		s->flags |= flag;
	}
	return 0;
}

struct seccomp_reading {
	struct spec_seccomp s;
	struct opt_i64 ret;
};

int seccomp_read(const struct at *a, void *spec_seccomp, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"defaultAction", FIELD_READ, offsetof(struct seccomp_reading, s.default_action),
			true, read_action},
		{"defaultErrnoRet", FIELD_OPT_I64, offsetof(struct seccomp_reading, ret), false,
			NULL},
		{"architectures", FIELD_READ, offsetof(struct seccomp_reading, s), false,
			read_archs},
		{"flags", FIELD_READ, offsetof(struct seccomp_reading, s), false, read_flags},
		{"syscalls", FIELD_READ, offsetof(struct seccomp_reading, s), false, read_rules},
		{"listenerPath", FIELD_REFUSE, 0, false, NULL},
		{"listenerMetadata", FIELD_REFUSE, 0, false, NULL},
		{0},
	};
	struct seccomp_reading r = {0};

	if (fields_read(a, fields, &r, mem, e) < 0)
		return -1;
	if (with_errno(a, &r.s.default_action, &r.ret, e) < 0)
		return -1;
	*(struct spec_seccomp *)spec_seccomp = r.s;
	return 0;
}

/* Number of a system call, or -1 when the architecture has none of that name. */
static int number_of(uint32_t arch, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, name);
	const struct word *w;

	if (nr != __NR_SCMP_ERROR)
		return nr < 0 ? -1 : nr; /* libseccomp's negative numbers: another architecture's */
	w = find(new_calls, name);
	return w ? (int)w->value : -1;
}

static int by_number(const void *a, const void *b)
{
	const struct bpf_rule *x = a, *y = b;

	if (x->nr != y->nr)
		return x->nr < y->nr ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static void collect(struct bpf_arch *a, const struct spec_seccomp *s)
{
	size_t cap = 0;

	for (size_t i = 0; i < s->nrules; i++) {
		const struct seccomp_rule *r = &s->rules[i];

		for (size_t k = 0; k < r->names.n; k++) {
			int nr = number_of(a->audit, r->names.v[k]);

			if (nr < 0)
				continue;
			mem_grow(&a->rules, &cap, a->nrules);
			a->rules[a->nrules] = (struct bpf_rule){
				(uint32_t)nr, a->nrules, r->action, r->args, r->nargs};
			a->nrules++;
			if ((uint32_t)nr >= a->first_newer)
				a->first_newer = (uint32_t)nr + 1;
		}
	}
	if (a->nrules)
		qsort(a->rules, a->nrules, sizeof(*a->rules), by_number);
}

static void add_arch(struct bpf_arch *v, size_t *n, uint32_t token)
{
	if (token == SCMP_ARCH_X32)
		return;
	for (size_t i = 0; i < *n; i++)
		if (v[i].audit == token)
			return;
	v[(*n)++] = (struct bpf_arch){.audit = token};
}

int seccomp_compile(struct seccomp_prog *p, const struct spec_seccomp *s, struct err *e)
{
	struct bpf_arch v[SECCOMP_ARCHS_MAX + 1];
	uint32_t kind = s->default_action & SECCOMP_RET_ACTION_FULL;
	uint32_t newer = kind == SECCOMP_RET_ERRNO ? SECCOMP_RET_ERRNO | ENOSYS : s->default_action;
	size_t n = 0;
	int rc;

	*p = (struct seccomp_prog){.flags = s->flags};
	add_arch(v, &n, seccomp_arch_native());
	for (size_t i = 0; i < s->narchs; i++)
		add_arch(v, &n, s->archs[i]);
	for (size_t i = 0; i < n; i++) {
		v[i].newer = newer;
		collect(&v[i], s);
	}
	rc = seccomp_bpf(v, n, s->default_action, newer, &p->code, &p->n, e);
	for (size_t i = 0; i < n; i++)
		free(v[i].rules);
	return rc;
}

void seccomp_prog_fini(struct seccomp_prog *p)
{
	free(p->code);
	*p = (struct seccomp_prog){0};
}

int seccomp_install(const struct seccomp_prog *p, struct err *e)
{
	struct sock_fprog prog = {(unsigned short)p->n, p->code};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, p->flags, &prog) != 0)
		return err_sys(e, "install the seccomp filter (%zu instructions)", p->n);
	return 0;
}
