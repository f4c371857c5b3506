#include "runtime/seccomp-bpf.h"

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
 * action, or hold the argument checks of one number.
 *
 * It is made from its last instruction to its first, so that whatever can be jumped to is there
 * already, and is turned round in the end: the kernel compiles every instruction at each start, and
 * so one return serves all jumps that reach it. Each function returns where its code begins: the
 * index in `code`. */
struct gen {
	struct sock_filter *code; /* the last instruction first */
	size_t n, cap;
	bool narrow; /* the section's programs have registers of 32 bits */
};

/* How far a conditional jump may go: to 255 behind the next instruction, less those that reach()
 * may put between. */
enum { REACH = 250 };

static size_t emit(struct gen *g, uint16_t op, uint32_t k, size_t jt, size_t jf)
{
	mem_grow(&g->code, &g->cap, g->n);
	g->code[g->n] = (struct sock_filter){op, (uint8_t)jt, (uint8_t)jf, k};
	return g->n++;
}

static size_t emit_return(struct gen *g, uint32_t action)
{
	for (size_t i = g->n; i > 0 && g->n - i < REACH; i--)
		if (g->code[i - 1].code == (BPF_RET | BPF_K) && g->code[i - 1].k == action)
			return i - 1;
	return emit(g, BPF_RET | BPF_K, action, 0, 0);
}

static size_t go_to(struct gen *g, size_t to)
{
	return emit(g, BPF_JMP | BPF_JA, (uint32_t)(g->n - to - 1), 0, 0);
}

static size_t reach(struct gen *g, size_t to)
{
	return g->n - to <= REACH ? to : go_to(g, to);
}

static size_t branch(struct gen *g, uint16_t op, uint32_t k, size_t yes, size_t no)
{
	yes = reach(g, yes);
	no = reach(g, no);
	return emit(g, BPF_JMP | op | BPF_K, k, g->n - yes - 1, g->n - no - 1);
}

/* One that does not jump. */
static size_t before(struct gen *g, uint16_t op, uint32_t k, size_t next)
{
	if (next + 1 != g->n)
		go_to(g, next);
	return emit(g, op, k, 0, 0);
}

static size_t load(struct gen *g, size_t off, size_t next)
{
	return before(g, BPF_LD | BPF_W | BPF_ABS, (uint32_t)off, next);
}

/* A half of an argument, of which only the bits of `mask` count: classic BPF computes with 32 bits.
 * A program of 64 bits can make system calls of 32: the kernel shows filters all of its registers,
 * and takes the low half of them. */
static size_t load_half(
	struct gen *g, const struct seccomp_arg *a, bool high, uint64_t mask, size_t next)
{
	bool second = high == (__BYTE_ORDER == __LITTLE_ENDIAN);

	if (a->op == OP_MASKED_EQ)
		next = before(
			g, BPF_ALU | BPF_AND | BPF_K, (uint32_t)(high ? mask >> 32 : mask), next);
	if (high && g->narrow)
		return before(g, BPF_LD | BPF_IMM, 0, next);
	return load(g,
		offsetof(struct seccomp_data, args) + a->index * sizeof(uint64_t) +
			(second ? 4 : 0),
		next);
}

/* Whether the argument (64 bits) is as the condition has it. */
static size_t check_arg(struct gen *g, const struct seccomp_arg *a, size_t yes, size_t no)
{
	uint16_t op = a->op == OP_GE || a->op == OP_LT   ? BPF_JGE
		      : a->op == OP_GT || a->op == OP_LE ? BPF_JGT
							 : BPF_JEQ;
	uint64_t mask = a->value, value = a->op == OP_MASKED_EQ ? a->value2 : a->value;
	size_t at;

	/* NE, LT and LE are what EQ, GE and GT are not. */
	if (a->op == OP_NE || a->op == OP_LT || a->op == OP_LE) {
		at = yes;
		yes = no;
		no = at;
	}
	/* -1 equals 0xffffffff in short registers. A bound stays: nothing is above one that does
	 * not fit. */
	if (g->narrow && op == BPF_JEQ) {
		mask = (uint32_t)mask;
		value = (uint32_t)value;
	}
	at = load_half(g, a, false, mask, branch(g, op, (uint32_t)value, yes, no));
	at = branch(g, BPF_JEQ, (uint32_t)(value >> 32), at, no);
	if (op != BPF_JEQ)
		at = branch(g, BPF_JGT, (uint32_t)(value >> 32), yes, at);
	return load_half(g, a, true, mask, at);
}

/* The checks of one number; a rule without arguments ends them. */
static size_t rules_of_number(struct gen *g, const struct bpf_rule *r, size_t n, uint32_t fallback)
{
	size_t i = 0, next;

	while (i < n && r[i].nargs)
		i++;
	next = emit_return(g, i < n ? r[i].action : fallback);
	while (i-- > 0 && g->n <= BPF_MAXINSNS) {
		size_t yes = emit_return(g, r[i].action);

		for (size_t k = r[i].nargs; k-- > 0;)
			yes = check_arg(g, &r[i].args[k], yes, next);
		next = yes;
	}
	return next;
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
		add_range(rs, (struct range){r->nr, r->action, r, r->nargs ? next - i : 0});
		add_range(rs, (struct range){r->nr + 1, actions->fallback, NULL, 0});
	}
	add_range(rs, (struct range){a->first_newer, actions->newer, NULL, 0});
	if (a->audit == AUDIT_ARCH_X86_64)
		add_range(rs, (struct range){X32_BIT, actions->foreign, NULL, 0});
}

static size_t tree(struct gen *g, const struct range *r, size_t n, uint32_t fallback)
{
	size_t left, right, mid = n / 2;

	if (g->n > BPF_MAXINSNS) /* refused anyway: no use in a long way there */
		return 0;
	if (n == 1)
		return r->nrules ? rules_of_number(g, r->rules, r->nrules, fallback)
				 : emit_return(g, r->action);
	right = tree(g, r + mid, n - mid, fallback);
	left = tree(g, r, mid, fallback);
	return branch(g, BPF_JGE, r[mid].first, right, left);
}

static void turn_round(struct gen *g)
{
	for (size_t i = 0; i < g->n / 2; i++) {
		struct sock_filter last = g->code[g->n - 1 - i];

		g->code[g->n - 1 - i] = g->code[i];
		g->code[i] = last;
	}
}

int seccomp_bpf(const struct bpf_arch *archs, size_t narchs, const struct bpf_actions *actions,
	struct sock_filter **code, size_t *n, struct err *e)
{
	struct gen g = {0};
	size_t next = emit_return(&g, actions->foreign);

	for (size_t i = narchs; i-- > 0;) {
		struct ranges rs = {0};
		size_t section;

		g.narrow = !(archs[i].audit & __AUDIT_ARCH_64BIT);
		make_ranges(&rs, &archs[i], actions);
		section = tree(&g, rs.v, rs.n, actions->fallback);
		section = load(&g, offsetof(struct seccomp_data, nr), section);
		next = branch(&g, BPF_JEQ, archs[i].audit, section, next);
		free(rs.v);
	}
	load(&g, offsetof(struct seccomp_data, arch), next);
	if (g.n > BPF_MAXINSNS) {
		free(g.code);
		return err_set(
			e, ERR_CORRUPT, "seccomp filter: more than %d instructions", BPF_MAXINSNS);
	}
	turn_round(&g);
	*code = g.code;
	*n = g.n;
	return 0;
}
