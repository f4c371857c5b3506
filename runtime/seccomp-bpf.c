#include "runtime/seccomp-bpf.h"

#include <assert.h>
#include <endian.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/seccomp.h>
#include <string.h>

#include "base/mem.h"

/* The program:
 *
 *	arch == A ? section of A : arch == B ? section of B : foreign
 *
 * A section is a binary tree over the ranges of numbers that are treated alike. Leaves return an
 * action, or hold the argument checks of one number:
 *
 *	jge MID, RIGHT, 0
 *	left...
 *	right...
 *
 * or, where RIGHT is farther than the 255 instructions that conditional jumps reach,
 *
 *	jge MID, 0, 1        (true: on to the long jump; false: over it)
 *	ja  RIGHT
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

/* From the long jump at `ja` to here. */
static void land(struct gen *g, size_t ja)
{
	g->code[ja].k = (uint32_t)(g->n - ja - 1);
}

/* The same, for one behind a conditional jump that is there for its sake: that one jumps itself if
 * it reaches. The kernel compiles each instruction at each start. (What lies between only jumps
 * within itself: it can be moved.) */
static void land_short(struct gen *g, size_t ja)
{
	size_t dist = g->n - ja - 1;

	if (dist > UINT8_MAX) {
		land(g, ja);
		return;
	}
	memmove(&g->code[ja], &g->code[ja + 1], dist * sizeof(*g->code));
	g->n--;
	g->code[ja - 1].jt = (uint8_t)dist;
	g->code[ja - 1].jf = 0;
}

/* A half of an argument, of which only the bits of `mask` count: classic BPF computes with 32 bits.
 * A program of 64 bits can make system calls of 32: the kernel shows filters all of its registers,
 * and takes the low half of them. */
static void load_half(struct gen *g, const struct seccomp_arg *a, bool high, uint64_t mask)
{
	bool second = high == (__BYTE_ORDER == __LITTLE_ENDIAN);

	if (high && g->narrow)
		emit(g, BPF_LD | BPF_IMM, 0, 0, 0);
	else
		load(g, offsetof(struct seccomp_data, args) + a->index * sizeof(uint64_t) +
				(second ? 4 : 0));
	if (a->op == OP_MASKED_EQ)
		emit(g, BPF_ALU | BPF_AND | BPF_K, (uint32_t)(high ? mask >> 32 : mask), 0, 0);
}

/* Jumps to a place that is not there yet. At most three for each argument. */
struct jumps {
	struct {
		size_t from;
		bool when_true;
	} v[SECCOMP_ARGS * 3];
	size_t n;
};

/* NULL: on to the next instruction. */
static void jump(
	struct gen *g, uint16_t op, uint32_t k, struct jumps *if_true, struct jumps *if_false)
{
	size_t from = emit(g, BPF_JMP | op | BPF_K, k, 0, 0);

	for (int i = 0; i < 2; i++) {
		struct jumps *j = i ? if_true : if_false;

		if (!j)
			continue;
		assert(j->n < sizeof(j->v) / sizeof(j->v[0]));
		j->v[j->n].from = from;
		j->v[j->n++].when_true = i;
	}
}

static void place(struct gen *g, const struct jumps *j)
{
	for (size_t i = 0; i < j->n; i++) {
		struct sock_filter *from = &g->code[j->v[i].from];
		size_t dist = g->n - j->v[i].from - 1;

		assert(dist <= UINT8_MAX);
		*(j->v[i].when_true ? &from->jt : &from->jf) = (uint8_t)dist;
	}
}

/* Go on when the argument (64 bits) is as the condition has it, else to the next rule. */
static void check_arg(struct gen *g, const struct seccomp_arg *a, struct jumps *next_rule)
{
	uint16_t op = a->op == OP_GE || a->op == OP_LT   ? BPF_JGE
		      : a->op == OP_GT || a->op == OP_LE ? BPF_JGT
							 : BPF_JEQ;
	/* NE, LT and LE are what EQ, GE and GT are not. */
	bool opposite = a->op == OP_NE || a->op == OP_LT || a->op == OP_LE;
	uint64_t mask = a->value, value = a->op == OP_MASKED_EQ ? a->value2 : a->value;
	struct jumps end = {.n = 0};
	struct jumps *yes = opposite ? next_rule : &end, *no = opposite ? &end : next_rule;

	/* -1 equals 0xffffffff in short registers. A bound stays: nothing is above one that does
	 * not fit. */
	if (g->narrow && op == BPF_JEQ) {
		mask = (uint32_t)mask;
		value = (uint32_t)value;
	}
	load_half(g, a, true, mask);
	if (op != BPF_JEQ)
		jump(g, BPF_JGT, (uint32_t)(value >> 32), yes, NULL);
	jump(g, BPF_JEQ, (uint32_t)(value >> 32), NULL, no);
	load_half(g, a, false, mask);
	jump(g, op, (uint32_t)value, yes, no);
	place(g, &end);
}

/* The checks of one number; a rule without arguments ends them. */
static void rules_of_number(struct gen *g, const struct bpf_rule *r, size_t n, uint32_t fallback)
{
	for (size_t i = 0; i < n && g->n <= BPF_MAXINSNS; i++) {
		struct jumps next_rule = {.n = 0};

		for (size_t k = 0; k < r[i].nargs; k++)
			check_arg(g, &r[i].args[k], &next_rule);
		emit_return(g, r[i].action);
		if (r[i].nargs == 0)
			return;
		place(g, &next_rule);
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
		add_range(rs, (struct range){r->nr, r->action, r, r->nargs ? next - i : 0});
		add_range(rs, (struct range){r->nr + 1, actions->fallback, NULL, 0});
	}
	add_range(rs, (struct range){a->first_newer, actions->newer, NULL, 0});
	if (a->audit == AUDIT_ARCH_X86_64)
		add_range(rs, (struct range){X32_BIT, actions->foreign, NULL, 0});
}

static void tree(struct gen *g, const struct range *r, size_t n, uint32_t fallback)
{
	size_t ja, mid = n / 2;

	if (g->n > BPF_MAXINSNS) /* refused anyway: no use in a long way there */
		return;
	if (n > 1) {
		emit(g, BPF_JMP | BPF_JGE | BPF_K, r[mid].first, 0, 1);
		ja = emit(g, BPF_JMP | BPF_JA, 0, 0, 0);
		tree(g, r, mid, fallback);
		land_short(g, ja);
		tree(g, r + mid, n - mid, fallback);
	} else if (r->nrules) {
		rules_of_number(g, r->rules, r->nrules, fallback);
	} else {
		emit_return(g, r->action);
	}
}

int seccomp_bpf(const struct bpf_arch *archs, size_t narchs, const struct bpf_actions *actions,
	struct sock_filter **code, size_t *n, struct err *e)
{
	struct gen g = {0};

	load(&g, offsetof(struct seccomp_data, arch));
	for (size_t i = 0; i < narchs; i++) {
		struct ranges rs = {0};
		size_t ja;

		emit(&g, BPF_JMP | BPF_JEQ | BPF_K, archs[i].audit, 1, 0);
		ja = emit(&g, BPF_JMP | BPF_JA, 0, 0, 0);
		g.narrow = !(archs[i].audit & __AUDIT_ARCH_64BIT);
		load(&g, offsetof(struct seccomp_data, nr));
		make_ranges(&rs, &archs[i], actions);
		tree(&g, rs.v, rs.n, actions->fallback);
		free(rs.v);
		land(&g, ja);
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
