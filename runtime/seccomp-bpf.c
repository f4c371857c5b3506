#include "runtime/seccomp-bpf.h"

#include <assert.h>
#include <endian.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/seccomp.h>

#include "base/mem.h"

/* The program:
 *
 *	arch == A ? section of A : arch == B ? section of B : foreign
 *
 * A section is a binary tree over the ranges of numbers that are treated alike. Leaves return an
 * action, or hold the argument checks of one number:
 *
 *	jge MID, 0, 1        (true: on to the long jump; false: over it)
 *	ja  RIGHT            conditional jumps reach only 255 instructions
 *	left...
 *	right...
 */
struct gen {
	struct sock_filter *code;
	size_t n, cap;
	bool narrow; /* the section's programs have registers of 32 bits */
};

static size_t emit(struct gen *g, uint16_t op, uint32_t k, uint8_t jt, uint8_t jf)
{
	mem_grow(&g->code, &g->cap, g->n);
	g->code[g->n] = (struct sock_filter){op, jt, jf, k};
	return g->n++;
}

static void emit_return(struct gen *g, uint32_t action)
{
	emit(g, BPF_RET | BPF_K, action, 0, 0);
}

static void load(struct gen *g, size_t off)
{
	emit(g, BPF_LD | BPF_W | BPF_ABS, (uint32_t)off, 0, 0);
}

/* A half of argument i: classic BPF computes with 32 bits. A program of 64 bits can make system
 * calls of 32: the kernel shows filters all of its registers, and takes the low half of them. */
static void load_arg(struct gen *g, uint32_t i, bool high)
{
	bool second = high == (__BYTE_ORDER == __LITTLE_ENDIAN);

	if (high && g->narrow)
		emit(g, BPF_LD | BPF_IMM, 0, 0, 0);
	else
		load(g, offsetof(struct seccomp_data, args) + i * sizeof(uint64_t) +
				(second ? 4 : 0));
}

/* A condition as far as the registers reach: -1 equals 0xffffffff there. A bound stays what it is:
 * nothing is above one that does not fit. */
static struct seccomp_arg fitted(const struct gen *g, struct seccomp_arg a)
{
	if (g->narrow && (a.op == OP_EQ || a.op == OP_NE || a.op == OP_MASKED_EQ)) {
		a.value = (uint32_t)a.value;
		a.value2 = (uint32_t)a.value2;
	}
	return a;
}

/* Jumps to "the next rule" that are not placed yet. At most four for each argument. */
struct fails {
	size_t at[SECCOMP_ARGS * 4];
	bool when_true[SECCOMP_ARGS * 4];
	size_t n;
};

static void jump_fail(struct gen *g, struct fails *f, uint16_t op, uint32_t k, bool when_true)
{
	assert(f->n < sizeof(f->at) / sizeof(f->at[0]));
	f->when_true[f->n] = when_true;
	f->at[f->n++] = emit(g, BPF_JMP | op | BPF_K, k, 0, 0);
}

static void place_fails(struct gen *g, const struct fails *f)
{
	for (size_t i = 0; i < f->n; i++) {
		size_t dist = g->n - f->at[i] - 1;

		assert(dist <= UINT8_MAX);
		if (f->when_true[i])
			g->code[f->at[i]].jt = (uint8_t)dist;
		else
			g->code[f->at[i]].jf = (uint8_t)dist;
	}
}

/* Go on when arg (64 bits) op value, else to the next rule. */
static void check_arg(struct gen *g, struct fails *f, const struct seccomp_arg *written)
{
	const struct seccomp_arg fit = fitted(g, *written), *a = &fit;
	uint32_t hi = (uint32_t)(a->value >> 32), lo = (uint32_t)a->value;
	size_t skip;

	load_arg(g, a->index, true);
	switch (a->op) {
	case OP_EQ:
		jump_fail(g, f, BPF_JEQ, hi, false);
		load_arg(g, a->index, false);
		jump_fail(g, f, BPF_JEQ, lo, false);
		return;
	case OP_NE: /* high words differ: done, over the check of the low ones */
		emit(g, BPF_JMP | BPF_JEQ | BPF_K, hi, 0, 2);
		load_arg(g, a->index, false);
		jump_fail(g, f, BPF_JEQ, lo, true);
		return;
	case OP_MASKED_EQ:
		emit(g, BPF_ALU | BPF_AND | BPF_K, hi, 0, 0);
		jump_fail(g, f, BPF_JEQ, (uint32_t)(a->value2 >> 32), false);
		load_arg(g, a->index, false);
		emit(g, BPF_ALU | BPF_AND | BPF_K, lo, 0, 0);
		jump_fail(g, f, BPF_JEQ, (uint32_t)a->value2, false);
		return;
	case OP_GT:
	case OP_GE:
		skip = emit(g, BPF_JMP | BPF_JGT | BPF_K, hi, 3, 0);
		jump_fail(g, f, BPF_JEQ, hi, false);
		load_arg(g, a->index, false);
		jump_fail(g, f, a->op == OP_GT ? BPF_JGT : BPF_JGE, lo, false);
		assert(g->n == skip + 4);
		return;
	case OP_LT:
	case OP_LE: /* the opposite of GE and GT */
		jump_fail(g, f, BPF_JGT, hi, true);
		emit(g, BPF_JMP | BPF_JEQ | BPF_K, hi, 0, 2);
		load_arg(g, a->index, false);
		jump_fail(g, f, a->op == OP_LT ? BPF_JGE : BPF_JGT, lo, true);
		return;
	}
}

/* The checks of one number; a rule without arguments ends them. */
static void rules_of_number(struct gen *g, const struct bpf_rule *r, size_t n, uint32_t fallback)
{
	for (size_t i = 0; i < n && g->n <= BPF_MAXINSNS; i++) {
		struct fails f = {.n = 0};

		for (size_t k = 0; k < r[i].nargs; k++)
			check_arg(g, &f, &r[i].args[k]);
		emit_return(g, r[i].action);
		if (r[i].nargs == 0)
			return;
		place_fails(g, &f);
	}
	emit_return(g, fallback);
}

/* Numbers from `first` up to the next range's that end in the same way. */
struct range {
	uint32_t first;
	uint32_t action;              /* when nrules is 0 */
	const struct bpf_rule *rules; /* else its argument checks */
	size_t nrules;
};

struct ranges {
	struct range *v;
	size_t n, cap;
};

static void add_range(struct ranges *rs, struct range r)
{
	const struct range *last;

	if (rs->n && rs->v[rs->n - 1].first == r.first)
		rs->n--; /* that one was empty */
	last = rs->n ? &rs->v[rs->n - 1] : NULL;
	if (last && !last->nrules && !r.nrules && last->action == r.action)
		return;
	mem_grow(&rs->v, &rs->cap, rs->n);
	rs->v[rs->n++] = r;
}

/* The bit in the numbers of x32, which has the audit number of x86-64. */
enum { X32_BIT = 0x40000000 };

static void make_ranges(
	struct ranges *rs, const struct bpf_arch *a, const struct bpf_actions *actions)
{
	add_range(rs, (struct range){0, actions->fallback, NULL, 0});
	for (size_t i = 0, next; i < a->nrules; i = next) {
		const struct bpf_rule *r = &a->rules[i];

		for (next = i + 1; next < a->nrules && a->rules[next].nr == r->nr; next++)
			;
		if (r->nargs)
			add_range(rs, (struct range){r->nr, 0, r, next - i});
		else
			add_range(rs, (struct range){r->nr, r->action, NULL, 0});
		add_range(rs, (struct range){r->nr + 1, actions->fallback, NULL, 0});
	}
	add_range(rs, (struct range){a->first_newer, actions->newer, NULL, 0});
	if (a->audit == AUDIT_ARCH_X86_64)
		add_range(rs, (struct range){X32_BIT, actions->foreign, NULL, 0});
}

static void tree(struct gen *g, const struct range *r, size_t n, uint32_t default_action)
{
	size_t ja, mid = n / 2;

	if (g->n > BPF_MAXINSNS) /* refused anyway: no use in a long way there */
		return;
	if (n == 1) {
		if (r->nrules)
			rules_of_number(g, r->rules, r->nrules, default_action);
		else
			emit_return(g, r->action);
		return;
	}
	emit(g, BPF_JMP | BPF_JGE | BPF_K, r[mid].first, 0, 1);
	ja = emit(g, BPF_JMP | BPF_JA, 0, 0, 0);
	tree(g, r, mid, default_action);
	g->code[ja].k = (uint32_t)(g->n - ja - 1);
	tree(g, r + mid, n - mid, default_action);
}

static void section(struct gen *g, const struct bpf_arch *a, const struct bpf_actions *actions)
{
	struct ranges rs = {0};

	g->narrow = !(a->audit & __AUDIT_ARCH_64BIT);
	load(g, offsetof(struct seccomp_data, nr));
	make_ranges(&rs, a, actions);
	tree(g, rs.v, rs.n, actions->fallback);
	free(rs.v);
}

int seccomp_bpf(const struct bpf_arch *archs, size_t narchs, const struct bpf_actions *actions,
	struct sock_filter **code, size_t *n, struct err *e)
{
	struct gen g = {0};

	load(&g, offsetof(struct seccomp_data, arch));
	for (size_t i = 0; i < narchs; i++) {
		size_t ja;

		emit(&g, BPF_JMP | BPF_JEQ | BPF_K, archs[i].audit, 1, 0);
		ja = emit(&g, BPF_JMP | BPF_JA, 0, 0, 0);
		section(&g, &archs[i], actions);
		g.code[ja].k = (uint32_t)(g.n - ja - 1);
	}
	emit_return(&g, actions->foreign);
	if (g.n > BPF_MAXINSNS) {
		free(g.code);
		return err_set(
			e, ERR_CORRUPT, "seccomp filter: more than %d instructions", BPF_MAXINSNS);
	}
	*code = g.code;
	*n = g.n;
	return 0;
}
