#include "tests/unit/test.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "runtime/seccomp-bpf.h"
#include "tests/unit/bpf-run.h"

enum { DENY = SECCOMP_RET_ERRNO | EPERM, NEWER = SECCOMP_RET_ERRNO | ENOSYS };

static const struct bpf_actions usual = {DENY, NEWER, NEWER};

static uint32_t random32(void)
{
	return (uint32_t)random() ^ (uint32_t)random() << 16;
}

/* Values around which comparisons change their minds. */
static uint64_t interesting(uint64_t value)
{
	switch (random() % 8) {
	case 0:
		return value;
	case 1:
		return value + 1;
	case 2:
		return value - 1;
	case 3:
		return value ^ UINT64_C(1) << 32;
	case 4:
		return value ^ UINT64_C(1) << (random() % 64);
	case 5:
		return value & UINT32_MAX;
	default:
		return (uint64_t)random32() << 32 | random32();
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
	return false;
}

static uint32_t by_hand(const struct bpf_arch *a, const struct seccomp_data *d)
{
	for (size_t i = 0; i < a->nrules; i++) {
		const struct bpf_rule *r = &a->rules[i];
		bool all = r->nr == (uint32_t)d->nr;

		for (size_t k = 0; all && k < r->nargs; k++)
			all = holds(&r->args[k], d->args[r->args[k].index]);
		if (all)
			return r->action;
	}
	return (uint32_t)d->nr >= a->first_newer ? NEWER : DENY;
}

static void random_arg(struct seccomp_arg *a)
{
	a->index = (uint32_t)random() % SECCOMP_ARGS;
	a->op = (enum seccomp_op)(random() % 7);
	a->value = random() % 2 ? random32() % 8 : interesting(random32());
	a->value2 = a->op == OP_MASKED_EQ ? random32() & a->value : 0;
}

TEST(what_the_program_decides_is_what_the_rules_say)
{
	enum { RULES = 150, ROUNDS = 200 };
	struct seccomp_arg args[RULES][2];
	struct bpf_rule rules[RULES];

	srandom(1);
	for (int round = 0; round < ROUNDS; round++) {
		struct bpf_arch a = {AUDIT_ARCH_X86_64, rules, RULES, 0};
		struct sock_filter *code;
		uint32_t nr = 0;
		size_t n;

		for (size_t i = 0; i < RULES; i++) {
			nr += (uint32_t)random() % 3; /* also several rules for one number */
			rules[i] = (struct bpf_rule){nr, i,
				SECCOMP_RET_ERRNO | (uint32_t)(round % 2 ? i : i % 3), args[i],
				(size_t)random() % 3};
			for (size_t k = 0; k < 2; k++)
				random_arg(&args[i][k]);
		}
		a.first_newer = nr + 1;
		assert_int_equal(seccomp_bpf(&a, 1, &usual, &code, &n, NULL), 0);
		for (int i = 0; i < 400; i++) {
			const struct bpf_rule *r = &rules[(size_t)random() % RULES];
			struct seccomp_data d = {.arch = AUDIT_ARCH_X86_64,
				.nr = (int)(random() % 4 ? r->nr : random32() % (nr + 5))};

			for (size_t k = 0; k < SECCOMP_ARGS; k++)
				d.args[k] = interesting(r->args[(size_t)random() % 2].value);
			assert_int_equal(bpf_run(code, n, &d), by_hand(&a, &d));
		}
		free(code);
	}
}

/* The kernel compiles each instruction at each start. */
TEST(all_that_end_alike_share_a_return)
{
	struct bpf_rule rules[] = {{1, 0, SECCOMP_RET_ALLOW, NULL, 0},
		{3, 0, SECCOMP_RET_ALLOW, NULL, 0}, {5, 0, SECCOMP_RET_ALLOW, NULL, 0}};
	struct bpf_arch a = {AUDIT_ARCH_I386, rules, 3, 6};
	enum { CHOICES = 6, LOADS = 2, ARCHS = 1, RETURNS = 3 };
	struct sock_filter *code;
	size_t n;

	assert_int_equal(seccomp_bpf(&a, 1, &usual, &code, &n, NULL), 0);
	assert_int_equal(n, LOADS + ARCHS + CHOICES + RETURNS);
	free(code);
}

TEST(each_architecture_has_its_own_numbers_and_others_are_turned_away)
{
	struct bpf_rule one = {1, 0, SECCOMP_RET_ALLOW, NULL, 0};
	struct bpf_rule two = {2, 0, SECCOMP_RET_ALLOW, NULL, 0};
	struct bpf_arch v[] = {{AUDIT_ARCH_X86_64, &one, 1, 2}, {AUDIT_ARCH_I386, &two, 1, 3}};
	static const struct {
		uint32_t arch, nr, want;
	} cases[] = {
		{AUDIT_ARCH_X86_64, 1, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 0, DENY},
		{AUDIT_ARCH_X86_64, 2, NEWER},
		{AUDIT_ARCH_X86_64, 0x3fffffff, NEWER},
		{AUDIT_ARCH_X86_64, 0x40000001, SECCOMP_RET_KILL_PROCESS}, /* x32 */
		{AUDIT_ARCH_I386, 0x40000001, NEWER},
		{AUDIT_ARCH_I386, 2, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_I386, 1, DENY},
		{AUDIT_ARCH_AARCH64, 1, SECCOMP_RET_KILL_PROCESS},
	};
	struct sock_filter *code;
	size_t n;

	assert_int_equal(
		seccomp_bpf(v, 2, &(struct bpf_actions){DENY, NEWER, SECCOMP_RET_KILL_PROCESS},
			&code, &n, NULL),
		0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seccomp_data d = {.arch = cases[i].arch, .nr = (int)cases[i].nr};

		assert_int_equal(bpf_run(code, n, &d), cases[i].want);
	}
	free(code);
}

/* The same rules through libseccomp; where its semantics are the same (rules that do not overlap).
 */
TEST(it_decides_as_libseccomp_does)
{
	static const int allowed[] = {0, 1, 2, 3, 5, 8, 9, 10, 11, 13, 14, 60, 100, 231, 257};
	struct seccomp_arg clone_arg = {0, OP_MASKED_EQ, 0x7e020000, 0};
	struct seccomp_arg socket_arg = {0, OP_NE, 40, 0};
	struct bpf_rule rules[32];
	size_t nrules = 0, n, bytes;
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	struct sock_filter *code, *theirs;
	int fd = memfd_create("bpf", MFD_CLOEXEC);

	assert_int_equal(seccomp_arch_native(), SCMP_ARCH_X86_64);
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (allowed[i] > 41 && nrules && rules[nrules - 1].nr < 41)
			rules[nrules++] =
				(struct bpf_rule){41, 0, SECCOMP_RET_ALLOW, &socket_arg, 1};
		if (allowed[i] > 56 && nrules && rules[nrules - 1].nr == 41)
			rules[nrules++] =
				(struct bpf_rule){56, 0, SECCOMP_RET_ALLOW, &clone_arg, 1};
		rules[nrules++] =
			(struct bpf_rule){(uint32_t)allowed[i], 0, SECCOMP_RET_ALLOW, NULL, 0};
		assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0), 0);
	}
	assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				 SCMP_A0(SCMP_CMP_MASKED_EQ, 0x7e020000, 0)),
		0);
	assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				 SCMP_A0(SCMP_CMP_NE, 40)),
		0);
	assert_int_equal(seccomp_export_bpf(ctx, fd), 0);
	bytes = (size_t)lseek(fd, 0, SEEK_END);
	theirs = mem_alloc(bytes);
	assert_int_equal(pread(fd, theirs, bytes, 0), bytes);

	struct bpf_arch a = {AUDIT_ARCH_X86_64, rules, nrules, 1000};
	const struct bpf_actions actions = {DENY, DENY, SECCOMP_RET_KILL_THREAD};

	assert_int_equal(seccomp_bpf(&a, 1, &actions, &code, &n, NULL), 0);
	for (uint32_t nr = 0; nr < 500; nr++)
		for (int i = 0; i < 20; i++) {
			struct seccomp_data d = {.arch = AUDIT_ARCH_X86_64,
				.nr = (int)(i == 19 ? nr | 0x40000000 : nr)};

			d.args[0] = interesting(nr == 56 ? 0x7e020000 : 40);
			assert_int_equal(
				bpf_run(code, n, &d), bpf_run(theirs, bytes / sizeof(*theirs), &d));
		}
	seccomp_release(ctx);
	free(theirs);
	free(code);
	close(fd);
}

TEST(a_program_that_the_kernel_would_not_take_is_an_error)
{
	enum { RULES = 3000 };
	struct seccomp_arg arg = {0, OP_EQ, 1, 0};
	struct bpf_rule *rules = mem_array(RULES, sizeof(*rules));
	struct bpf_arch a = {AUDIT_ARCH_X86_64, rules, RULES, 2};
	struct sock_filter *code;
	struct err e = {0};
	size_t n;

	for (size_t i = 0; i < RULES; i++)
		rules[i] = (struct bpf_rule){1, i, SECCOMP_RET_ALLOW, &arg, 1};
	assert_int_equal(seccomp_bpf(&a, 1, &usual, &code, &n, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_string_equal(e.text, "seccomp filter: more than 4096 instructions");
	free(rules);
}

RUN_TESTS(cmocka_unit_test(what_the_program_decides_is_what_the_rules_say),
	cmocka_unit_test(all_that_end_alike_share_a_return),
	cmocka_unit_test(each_architecture_has_its_own_numbers_and_others_are_turned_away),
	cmocka_unit_test(it_decides_as_libseccomp_does),
	cmocka_unit_test(a_program_that_the_kernel_would_not_take_is_an_error))
