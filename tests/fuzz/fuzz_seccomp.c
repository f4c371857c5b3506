/* Any seccomp object: refused with a place, or compiled into a program that the kernel would take
 * and that decides as its rules say, read one after the other. */
#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "runtime/seccomp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As the kernel runs it. */
static uint32_t run(const struct seccomp_prog *p, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = 0;; pc++) {
		const struct sock_filter *i = &p->code[pc];

		assert(pc < p->n);
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert(i->k <= sizeof(*d) - 4 && i->k % 4 == 0);
			memcpy(&a, (const char *)d + i->k, 4);
			break;
		case BPF_LD | BPF_IMM:
			a = i->k;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			abort();
		}
	}
}

static bool holds(const struct seccomp_arg *a, uint64_t v)
{
	switch (a->op) {
	case OP_NE:
		return v != a->value;
	case OP_LT:
		return v < a->value;
	case OP_LE:
		return v <= a->value;
	case OP_EQ:
		return v == a->value;
	case OP_GE:
		return v >= a->value;
	case OP_GT:
		return v > a->value;
	case OP_MASKED_EQ:
		return (v & a->value) == a->value2;
	}
	abort();
}

static bool fits(const struct seccomp_rule *r, const struct seccomp_data *d)
{
	bool all = true, any = r->nargs == 0, twice = false;

	for (size_t i = 0; i < r->nargs; i++) {
		bool one = holds(&r->args[i], d->args[r->args[i].index]);

		all &= one;
		any |= one;
		for (size_t k = 0; k < i; k++)
			twice |= r->args[k].index == r->args[i].index;
	}
	return twice ? any : all;
}

/* Is the call the first that some rule decides? *action receives what it says. */
static bool decided(const struct spec_seccomp *s, const struct seccomp_data *d, uint32_t *action)
{
	for (size_t i = 0; i < s->nrules; i++)
		for (size_t k = 0; k < s->rules[i].names.n; k++)
			if (seccomp_syscall_resolve_name(s->rules[i].names.v[k]) == d->nr &&
				fits(&s->rules[i], d)) {
				*action = s->rules[i].action;
				return true;
			}
	return false;
}

static void compare(const struct spec_seccomp *s, const struct seccomp_prog *p)
{
	size_t asked = 0;

	for (size_t i = 0; i < s->nrules; i++)
		for (size_t k = 0; k < s->rules[i].names.n && asked++ < 16; k++) {
			struct seccomp_data d = {.arch = seccomp_arch_native(),
				.nr = seccomp_syscall_resolve_name(s->rules[i].names.v[k])};
			uint32_t want;

			if (d.nr < 0)
				continue;
			for (size_t n = 0; n < s->rules[i].nargs; n++) {
				const struct seccomp_arg *a = &s->rules[i].args[n];

				d.args[a->index] = a->op == OP_MASKED_EQ ? a->value2 : a->value;
			}
			for (uint64_t more = 0; more < 3; more++, d.args[0] += more) {
				if (decided(s, &d, &want))
					assert(run(p, &d) == want);
				else
					assert(run(p, &d) == s->default_action);
			}
		}
}

static bool named(const struct spec_seccomp *s, const char *name)
{
	for (size_t i = 0; i < s->nrules; i++)
		for (size_t k = 0; k < s->rules[i].names.n; k++)
			if (str_eq(s->rules[i].names.v[k], name))
				return true;
	return false;
}

/* The number that i386 has for a call itself, or -1. */
static int own_number(const char *name)
{
	for (int nr = 337; nr <= 402; nr++) {
		char *found = seccomp_syscall_resolve_num_arch(AUDIT_ARCH_I386, nr);
		bool same = found && str_eq(found, name);

		free(found);
		if (same)
			return nr;
	}
	return -1;
}

/* i386 gets nothing by a call of many that it does not get by the call itself, unless a rule names
 * that one. */
static void compare_mux(const struct spec_seccomp *s, const struct seccomp_prog *p, int theirs)
{
	char *name = seccomp_syscall_resolve_num_arch(AUDIT_ARCH_I386, theirs);
	struct seccomp_data d = {.arch = AUDIT_ARCH_I386};
	struct seccomp_data many = {.arch = AUDIT_ARCH_I386, .nr = theirs < -200 ? 117 : 102};

	many.args[0] = (unsigned)(-theirs % 100) | UINT64_C(0x500000000);
	if (name && named(s, name)) {
		d.nr = own_number(name);
		for (uint64_t a = 0; d.nr >= 0 && a < 5; a++) {
			d.args[0] = d.args[1] = a;
			assert((int32_t)(run(p, &many) & SECCOMP_RET_ACTION_FULL) <=
				(int32_t)(run(p, &d) & SECCOMP_RET_ACTION_FULL));
		}
	}
	free(name);
}

static void compare_muxes(const struct spec_seccomp *s, const struct seccomp_prog *p)
{
	bool listed = false, many_named = named(s, "socketcall") || named(s, "ipc");

	for (size_t i = 0; i < s->narchs; i++)
		listed |= s->archs[i] == AUDIT_ARCH_I386;
	for (int nr = -101; listed && !many_named && nr >= -224; nr--)
		compare_mux(s, p, nr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	struct arena mem = {0};
	struct at at = {NULL, "c", 0, json_parse(data, size, &e), &mem};
	struct spec_seccomp s;
	struct seccomp_prog p;

	if (!at.v)
		return 0;
	if (seccomp_read(&at, &s, &e) < 0) {
		assert(e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
		assert(strncmp(e.text, "c: ", 3) == 0);
	} else if (seccomp_compile(&p, &s, &e) == 0) {
		assert(p.n > 0 && p.n <= BPF_MAXINSNS);
		assert(p.code[p.n - 1].code == (BPF_RET | BPF_K));
		compare(&s, &p);
		compare_muxes(&s, &p);
		seccomp_prog_fini(&p);
	} else {
		assert(e.kind == ERR_CORRUPT);
	}
	json_decref(at.v);
	arena_fini(&mem);
	return 0;
}
