#include "tests/unit/test.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include "base/json.h"
#include "base/str.h"
#include "runtime/seccomp.h"
#include "tests/unit/bpf-run.h"

enum { ALLOW = SECCOMP_RET_ALLOW, ERR = SECCOMP_RET_ERRNO };

/* A document, which has ' for ". */
static json_t *parse(const char *text)
{
	char *copy = mem_strdup(text);
	struct err e = {0};
	json_t *json;

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	json = json_parse(copy, strlen(copy), &e);
	if (!json)
		fail_msg("%s: %s", text, e.text);
	free(copy);
	return json;
}

static struct seccomp_prog compile(const char *text)
{
	struct arena mem = {0};
	const struct at at = {NULL, "c", 0, parse(text), &mem};
	struct spec_seccomp s;
	struct seccomp_prog p;
	struct err e = {0};

	if (seccomp_read(&at, &s, &e) < 0 || seccomp_compile(&p, &s, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	json_decref(at.v);
	arena_fini(&mem);
	return p;
}

static uint32_t ask(
	const struct seccomp_prog *p, uint32_t arch, const char *name, uint64_t a0, uint64_t a1)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, name);
	struct seccomp_data d = {.nr = nr, .arch = arch, .args = {a0, a1}};

	if (nr < 0)
		fail_msg("no system call '%s'", name);
	return bpf_run(p->code, p->n, &d);
}

static uint32_t native(const struct seccomp_prog *p, const char *name, uint64_t a0, uint64_t a1)
{
	return ask(p, seccomp_arch_native(), name, a0, a1);
}

#define RULE(names, action, rest) "{'names': [" names "], 'action': 'SCMP_ACT_" action "'" rest "}"
#define ONE(default_action, rules)                                                                 \
	"{'defaultAction': 'SCMP_ACT_" default_action "', 'syscalls': [" rules "]}"

TEST(every_action_has_its_return_value)
{
	static const struct {
		const char *name;
		uint32_t want;
	} cases[] = {
		{"KILL", SECCOMP_RET_KILL_THREAD},
		{"KILL_THREAD", SECCOMP_RET_KILL_THREAD},
		{"KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
		{"TRAP", SECCOMP_RET_TRAP},
		{"ERRNO", SECCOMP_RET_ERRNO | EPERM},
		{"TRACE", SECCOMP_RET_TRACE | EPERM},
		{"LOG", SECCOMP_RET_LOG},
		{"ALLOW", SECCOMP_RET_ALLOW},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seccomp_prog p;
		char text[256];

		snprintf(text, sizeof(text),
			"{'defaultAction': 'SCMP_ACT_TRAP', 'syscalls': [{'names': ['read', "
			"'exit_group'], 'action': 'SCMP_ACT_%s'}]}",
			cases[i].name);
		p = compile(text);
		assert_int_equal(native(&p, "read", 0, 0), cases[i].want);
		assert_int_equal(native(&p, "write", 0, 0), SECCOMP_RET_TRAP);
		assert_false(p.notifies);
		seccomp_prog_fini(&p);
	}
}

TEST(an_errno_goes_with_its_action)
{
	struct seccomp_prog p = compile(
		"{'defaultAction': 'SCMP_ACT_ERRNO', 'defaultErrnoRet': 38, 'syscalls': [" RULE(
			"'read'", "ERRNO", ", 'errnoRet': 13") "," RULE("'write', 'exit_group'",
			"TRACE", ", 'errnoRet': 7") "]}");

	assert_int_equal(native(&p, "read", 0, 0), ERR | EACCES);
	assert_int_equal(native(&p, "write", 0, 0), SECCOMP_RET_TRACE | 7);
	assert_int_equal(native(&p, "close", 0, 0), ERR | ENOSYS);
	seccomp_prog_fini(&p);
}

TEST(notifications_are_marked_and_need_somebody_who_listens)
{
	struct seccomp_prog p = compile(
		"{'defaultAction': 'SCMP_ACT_ALLOW', 'listenerPath': '/run/agent', "
		"'listenerMetadata': 'x', 'flags': ['SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV', "
		"'SECCOMP_FILTER_FLAG_LOG'], 'syscalls': [" RULE("'mkdir'", "NOTIFY", "") "]}");

	assert_true(p.notifies);
	assert_int_equal(p.flags, SECCOMP_FILTER_FLAG_LOG | 1u << 5);
	assert_int_equal(native(&p, "mkdir", 0, 0), SECCOMP_RET_USER_NOTIF);
	seccomp_prog_fini(&p);
}

TEST(the_first_rule_that_fits_decides)
{
	struct seccomp_prog p =
		compile(ONE("ERRNO", RULE("'ioctl'", "TRAP",
					     ", 'args': [{'index': 1, 'value': 5, 'op': "
					     "'SCMP_CMP_EQ'}]") "," RULE("'ioctl', 'exit_group'",
					     "ALLOW", ", 'args': null")));

	assert_int_equal(native(&p, "ioctl", 0, 5), SECCOMP_RET_TRAP);
	assert_int_equal(native(&p, "ioctl", 0, 6), ALLOW);
	seccomp_prog_fini(&p);
}

#define EQ(i, v) "{'index': " i ", 'value': " v ", 'op': 'SCMP_CMP_EQ'}"

TEST(conditions_hold_together_unless_two_are_on_one_argument)
{
	struct seccomp_prog p = compile(ONE("ERRNO",
		RULE("'dup2'", "ALLOW", ", 'args': [" EQ("0", "1") "," EQ("1", "2") "]") "," RULE(
			"'dup3', 'exit_group'", "ALLOW",
			", 'args': [" EQ("0", "1") "," EQ("0", "3") "," EQ("1", "2") "]")));

	assert_int_equal(native(&p, "dup2", 1, 2), ALLOW);
	assert_int_equal(native(&p, "dup2", 1, 3), ERR | EPERM);
	assert_int_equal(native(&p, "dup3", 1, 9), ALLOW);
	assert_int_equal(native(&p, "dup3", 3, 9), ALLOW);
	assert_int_equal(native(&p, "dup3", 9, 2), ALLOW);
	assert_int_equal(native(&p, "dup3", 2, 9), ERR | EPERM);
	seccomp_prog_fini(&p);
}

TEST(a_list_of_what_is_forbidden_cannot_be_passed_by)
{
	struct seccomp_prog p = compile(ONE("ALLOW", RULE("'mkdir'", "ERRNO", "")));
	int nr = seccomp_syscall_resolve_name("mkdir");
	struct seccomp_data d = {.nr = nr, .arch = seccomp_arch_native()};

	if (seccomp_arch_native() != SCMP_ARCH_X86_64)
		skip();
	assert_int_equal(bpf_run(p.code, p.n, &d), ERR | EPERM);
	d.nr = nr + 1;
	assert_int_equal(bpf_run(p.code, p.n, &d), ALLOW);
	d.nr = 600; /* newer than the list */
	assert_int_equal(bpf_run(p.code, p.n, &d), ALLOW);
	d.nr = nr | 0x40000000; /* by x32's number for the same call */
	assert_int_equal(bpf_run(p.code, p.n, &d), ERR | ENOSYS);
	assert_int_equal(ask(&p, SCMP_ARCH_X86, "mkdir", 0, 0), ERR | ENOSYS);
	seccomp_prog_fini(&p);
}

TEST(an_architecture_of_the_list_has_the_same_rules)
{
	struct seccomp_prog p =
		compile("{'defaultAction': 'SCMP_ACT_ALLOW', 'architectures': ['SCMP_ARCH_X32', "
			"'SCMP_ARCH_X86', 'SCMP_ARCH_ARM'], 'syscalls': [" RULE(
				"'mkdir'", "ERRNO", "") "]}");

	if (seccomp_arch_native() != SCMP_ARCH_X86_64)
		skip();
	assert_int_equal(native(&p, "mkdir", 0, 0), ERR | EPERM);
	assert_int_equal(ask(&p, SCMP_ARCH_X86, "mkdir", 0, 0), ERR | EPERM);
	assert_int_equal(ask(&p, SCMP_ARCH_X86, "rmdir", 0, 0), ALLOW);
	seccomp_prog_fini(&p);
}

/* socket and shmget as i386 has them: each by its own number and by the call of many. */
static const struct {
	int direct, mux;
	uint64_t call;
} ways[] = {{359, 102, 1}, {395, 117, 23}};

static void expect_ways(const char *text, uint64_t a0, uint32_t direct, uint32_t many)
{
	struct seccomp_prog p = compile(text);

	for (size_t i = 0; i < 2; i++) {
		struct seccomp_data d = {.arch = SCMP_ARCH_X86, .nr = ways[i].direct};

		d.args[0] = a0;
		if (bpf_run(p.code, p.n, &d) != direct)
			fail_msg("%s: %d", text, d.nr);
		d.args[0] = a0 | UINT64_C(0xabc00000000); /* a 64-bit program's registers */
		if (bpf_run(p.code, p.n, &d) != direct)
			fail_msg("%s: %d with high bits", text, d.nr);
		d.nr = ways[i].mux;
		d.args[0] = ways[i].call;
		if (bpf_run(p.code, p.n, &d) != many)
			fail_msg("%s: %d", text, d.nr);
		d.args[0] |= UINT64_C(0xabc00000000) | (d.nr == 117 ? 0x10000 : 0);
		if (bpf_run(p.code, p.n, &d) != many)
			fail_msg("%s: %d with high bits", text, d.nr);
	}
	seccomp_prog_fini(&p);
}

TEST(a_rule_holds_for_a_call_that_comes_by_a_call_of_many)
{
#define X86(default_action, rules)                                                                 \
	"{'defaultAction': 'SCMP_ACT_" default_action                                              \
	"', 'architectures': ['SCMP_ARCH_X86'], 'syscalls': [" rules "]}"
#define BOTH "'socket', 'shmget'"
#define TWO ", 'args': [" EQ("0", "2") "]"
#define NOT_TWO ", 'args': [{'index': 0, 'value': 2, 'op': 'SCMP_CMP_NE'}]"
	static const struct {
		const char *text;
		uint32_t two, three, many;
	} cases[] = {
		{X86("ALLOW", RULE(BOTH, "ERRNO", "")), ERR | EPERM, ERR | EPERM, ERR | EPERM},
		{X86("ERRNO", RULE(BOTH, "ALLOW", "")), ALLOW, ALLOW, ALLOW},
		/* Arguments that cannot be seen: what is stricter. */
		{X86("ALLOW", RULE(BOTH, "ERRNO", TWO)), ERR | EPERM, ALLOW, ERR | EPERM},
		{X86("ERRNO", RULE(BOTH, "ALLOW", TWO)), ALLOW, ERR | EPERM, ERR | EPERM},
		{X86("ERRNO", RULE(BOTH, "ALLOW", NOT_TWO)), ERR | EPERM, ALLOW, ERR | EPERM},
		{X86("ERRNO", RULE(BOTH, "TRAP", TWO) "," RULE(BOTH, "ALLOW", "")),
			SECCOMP_RET_TRAP, ALLOW, SECCOMP_RET_TRAP},
		{X86("ALLOW", RULE(BOTH, "LOG", NOT_TWO) "," RULE(BOTH, "KILL_PROCESS", TWO)),
			SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_LOG, SECCOMP_RET_KILL_PROCESS},
		/* The first that fits decides. */
		{X86("ERRNO", RULE(BOTH, "ALLOW", "") "," RULE(BOTH, "TRAP", "")), ALLOW, ALLOW,
			ALLOW},
		{X86("ALLOW", RULE(BOTH ", 'socketcall', 'ipc'", "ERRNO", "") "," RULE(
				      "'socketcall', 'ipc'", "ALLOW", "")),
			ERR | EPERM, ERR | EPERM, ERR | EPERM},
		{X86("ALLOW", RULE("'socketcall', 'ipc'", "ALLOW", "") "," RULE(BOTH, "ERRNO", "")),
			ERR | EPERM, ERR | EPERM, ALLOW},
		{X86("ERRNO", RULE(BOTH, "TRAP", TWO) "," RULE("'socketcall', 'ipc'", "ALLOW", "")),
			SECCOMP_RET_TRAP, ERR | EPERM, SECCOMP_RET_TRAP},
		{X86("ERRNO",
			 RULE(BOTH, "ALLOW", TWO) "," RULE("'socketcall', 'ipc'", "ALLOW", "")),
			ALLOW, ERR | EPERM, ALLOW},
	};

	if (seccomp_arch_native() != SCMP_ARCH_X86_64)
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		expect_ways(cases[i].text, 2, cases[i].two, cases[i].many);
		expect_ways(cases[i].text, 3, cases[i].three, cases[i].many);
	}
}

TEST(calls_without_a_number_of_their_own_have_rules_too)
{
	struct seccomp_prog p;
	struct seccomp_data d = {.arch = SCMP_ARCH_X86, .nr = 117, .args = {1}};

	if (seccomp_arch_native() != SCMP_ARCH_X86_64)
		skip();
	p = compile(X86("ERRNO", RULE("'semop'", "ALLOW", "")));
	assert_int_equal(bpf_run(p.code, p.n, &d), ALLOW);
	d.args[0] = 2;
	assert_int_equal(bpf_run(p.code, p.n, &d), ERR | EPERM);
	d.nr = 118;
	assert_int_equal(bpf_run(p.code, p.n, &d), ERR | ENOSYS);
	seccomp_prog_fini(&p);
}

/* By the numbers that libseccomp has for them: -100 or -200, less the first argument of the call of
 * many. It knows which call a number is, but not which number a call has. */
TEST(all_calls_of_a_call_of_many_have_rules_both_ways)
{
	size_t calls = 0, direct = 0;

	if (seccomp_arch_native() != SCMP_ARCH_X86_64)
		skip();
	for (int theirs = -101; theirs >= -224; theirs--) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, theirs), text[256];
		struct seccomp_data d = {.arch = SCMP_ARCH_X86, .nr = theirs < -200 ? 117 : 102};
		struct seccomp_prog p;

		if (!name)
			continue;
		snprintf(text, sizeof(text),
			"{'defaultAction': 'SCMP_ACT_ALLOW', 'architectures': ['SCMP_ARCH_X86'], "
			"'syscalls': [{'names': ['%s'], 'action': 'SCMP_ACT_ERRNO'}]}",
			name);
		p = compile(text);
		d.args[0] = (unsigned)(-theirs % 100);
		assert_int_equal(bpf_run(p.code, p.n, &d), ERR | EPERM);
		d.args[0]++;
		assert_int_equal(bpf_run(p.code, p.n, &d), ALLOW);
		for (d.nr = 0; d.nr < 450; d.nr++) {
			char *own = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, d.nr);
			bool same = own && str_eq(own, name);

			if (bpf_run(p.code, p.n, &d) != (same ? ERR | EPERM : ALLOW))
				fail_msg("%s: %d", name, d.nr);
			direct += same;
			free(own);
		}
		calls++;
		seccomp_prog_fini(&p);
		free(name);
	}
	assert_int_equal(calls, 32);
	assert_int_equal(direct, 27);
}

TEST(thirty_two_bits_are_compared_where_there_are_no_more)
{
#define OP(op, v)                                                                                  \
	X86("ALLOW", RULE("'mkdir'", "TRAP",                                                       \
			     ", 'args': [{'index': 1, 'value': " v ", 'op': 'SCMP_CMP_" op "'}]"))
	static const struct {
		const char *text;
		uint64_t arg;
		bool fits;
	} cases[] = {
		{OP("EQ", "7"), 0x500000007, true},
		{OP("EQ", "9223372036854775807"), 0xffffffff, true},
		{OP("NE", "7"), 0x500000007, false},
		{OP("NE", "7"), 0x500000008, true},
		{OP("GT", "7"), 0x500000007, false},
		{OP("GE", "7"), 0x500000007, true},
		{OP("GE", "4294967296"), 0x500000007, false},
		{OP("LT", "7"), 0x500000006, true},
		{OP("LT", "7"), 0x500000007, false},
		{OP("LE", "7"), 0x500000007, true},
		{OP("LE", "4294967296"), 0x5ffffffff, true},
		{OP("MASKED_EQ", "9223372036854775807, 'valueTwo': 8"), 0x500000008, true},
		{OP("MASKED_EQ", "9223372036854775807, 'valueTwo': 8"), 0x500000009, false},
	};

	if (seccomp_arch_native() != SCMP_ARCH_X86_64)
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seccomp_prog p = compile(cases[i].text);
		bool trapped = ask(&p, SCMP_ARCH_X86, "mkdir", 0, cases[i].arg) == SECCOMP_RET_TRAP;

		if (trapped != cases[i].fits)
			fail_msg("%zu: %s", i, cases[i].text);
		seccomp_prog_fini(&p);
	}
}

TEST(every_word_of_the_tables_is_accepted)
{
	static const struct {
		const struct fields_word *words;
		const char *format;
	} places[] = {
		{seccomp_actions,
			"{'defaultAction': 'SCMP_ACT_LOG', 'listenerPath': '/x', 'syscalls': "
			"[{'names': ['mkdir'], 'action': '%s'}]}"},
		{seccomp_archs, "{'defaultAction': 'SCMP_ACT_LOG', 'architectures': ['%s']}"},
		{seccomp_ops,
			"{'defaultAction': 'SCMP_ACT_LOG', 'syscalls': [{'names': ['read'], "
			"'action': "
			"'SCMP_ACT_ALLOW', 'args': [{'index': 0, 'value': 1, 'op': '%s'}]}]}"},
		{seccomp_flags,
			"{'defaultAction': 'SCMP_ACT_LOG', 'listenerPath': '/x', 'flags': ['%s'], "
			"'syscalls': [{'names': ['mkdir'], 'action': 'SCMP_ACT_NOTIFY'}]}"},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (const struct fields_word *w = places[i].words; w->name; w++) {
			struct seccomp_prog p;
			char text[512];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(text, sizeof(text), places[i].format, w->name);
#pragma GCC diagnostic pop
			p = compile(text);
			assert_true(p.n > 0);
			seccomp_prog_fini(&p);
		}
	assert_true(seccomp_flag_works(SECCOMP_FILTER_FLAG_LOG));
	assert_false(seccomp_flag_works(1u << 30));
}

TEST(errors_name_the_place)
{
#define D "'defaultAction': 'SCMP_ACT_ERRNO'"
	static const struct {
		const char *text;
		enum err_kind kind;
		const char *message;
	} cases[] = {
		{"{}", ERR_CORRUPT, "c: /seccomp: missing key 'defaultAction'"},
		{"{'defaultAction': 'SCMP_ACT_X'}", ERR_UNSUPPORTED,
			"c: /seccomp/defaultAction: unknown value 'SCMP_ACT_X'"},
		{"{'defaultAction': 'SCMP_ACT_NOTIFY', 'listenerPath': '/x'}", ERR_UNSUPPORTED,
			"c: /seccomp: defaultAction: SCMP_ACT_NOTIFY is for single calls"},
		{"{" D ", 'defaultErrnoRet': 70000}", ERR_CORRUPT,
			"c: /seccomp: errnoRet 70000 does not fit the action"},
		{"{'defaultAction': 'SCMP_ACT_KILL', 'defaultErrnoRet': 1}", ERR_CORRUPT,
			"c: /seccomp: errnoRet 1 does not fit the action"},
		{"{" D ", 'architectures': ['SCMP_ARCH_VAX']}", ERR_UNSUPPORTED,
			"c: /seccomp/architectures/0: unknown value 'SCMP_ARCH_VAX'"},
		{"{" D ", 'flags': ['X']}", ERR_UNSUPPORTED,
			"c: /seccomp/flags/0: unknown value 'X'"},
		{"{" D ", 'flags': ['SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV']}", ERR_CORRUPT,
			"c: /seccomp: flags: SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV needs "
			"SCMP_ACT_NOTIFY"},
		{"{" D ", 'listenerMetadata': 'x'}", ERR_CORRUPT,
			"c: /seccomp: listenerMetadata needs a listenerPath"},
		{"{" D ", 'syscalls': [" RULE("'mkdir'", "NOTIFY", "") "]}", ERR_CORRUPT,
			"c: /seccomp: SCMP_ACT_NOTIFY needs a listenerPath"},
		{"{" D ", 'listenerPath': '/x', 'syscalls': [" RULE("'read'", "ALLOW", "") "," RULE(
			 "'mkdir', 'sendmsg'", "NOTIFY", "") "]}",
			ERR_UNSUPPORTED,
			"c: /seccomp: syscalls/1: SCMP_ACT_NOTIFY cannot be used for sendmsg"},
		{"{" D ", 'syscalls': [" RULE("", "ALLOW", "") "]}", ERR_CORRUPT,
			"c: /seccomp/syscalls/0/names: empty"},
		{"{" D ", 'syscalls': [" RULE("'read'", "ALLOW", ", 'errnoRet': 1") "]}",
			ERR_CORRUPT, "c: /seccomp/syscalls/0: errnoRet 1 does not fit the action"},
		{"{" D
		 ", 'syscalls': [" RULE("'read'", "ALLOW", ", 'args': [" EQ("6", "0") "]") "]}",
			ERR_CORRUPT,
			"c: /seccomp/syscalls/0/args/0: index 6: a system call has 6 arguments"},
		{"{" D
		 ", 'syscalls': [" RULE("'read'", "ALLOW", ", 'args': [" EQ("0", "-1") "]") "]}",
			ERR_CORRUPT,
			"c: /seccomp/syscalls/0/args/0/value: expected a non-negative integer"},
		{"{" D ", 'syscalls': [" RULE("'read', 7", "ALLOW", "") "]}", ERR_CORRUPT,
			"c: /seccomp/syscalls/0/names/1: expected a string"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct arena mem = {0};
		const struct at top = {NULL, "c", 0, NULL, NULL};
		const struct at at = {&top, "seccomp", 0, parse(cases[i].text), &mem};
		struct spec_seccomp s;
		struct err e = {0};

		if (seccomp_read(&at, &s, &e) == 0)
			fail_msg("accepted: %s", cases[i].text);
		assert_string_equal(e.text, cases[i].message);
		assert_int_equal(e.kind, cases[i].kind);
		json_decref(at.v);
		arena_fini(&mem);
	}
}

RUN_TESTS(cmocka_unit_test(every_action_has_its_return_value),
	cmocka_unit_test(an_errno_goes_with_its_action),
	cmocka_unit_test(notifications_are_marked_and_need_somebody_who_listens),
	cmocka_unit_test(the_first_rule_that_fits_decides),
	cmocka_unit_test(conditions_hold_together_unless_two_are_on_one_argument),
	cmocka_unit_test(a_list_of_what_is_forbidden_cannot_be_passed_by),
	cmocka_unit_test(an_architecture_of_the_list_has_the_same_rules),
	cmocka_unit_test(a_rule_holds_for_a_call_that_comes_by_a_call_of_many),
	cmocka_unit_test(calls_without_a_number_of_their_own_have_rules_too),
	cmocka_unit_test(all_calls_of_a_call_of_many_have_rules_both_ways),
	cmocka_unit_test(thirty_two_bits_are_compared_where_there_are_no_more),
	cmocka_unit_test(every_word_of_the_tables_is_accepted),
	cmocka_unit_test(errors_name_the_place))
