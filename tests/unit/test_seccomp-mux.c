#include "tests/unit/test.h"

#include <linux/audit.h>
#include <seccomp.h>
#include <stdlib.h>

#include "base/str.h"
#include "runtime/seccomp-mux.h"

/* libseccomp knows which call a number is, but not which number a call has. */
TEST(numbers_are_those_of_the_calls_that_are_named)
{
	size_t n;
	const struct seccomp_mux *v = seccomp_muxes(AUDIT_ARCH_I386, &n);

	assert_int_equal(n, 32);
	assert_true(n <= SECCOMP_MUXES_MAX);
	for (size_t i = 0; i < n; i++) {
		char *name = seccomp_syscall_resolve_num_arch(AUDIT_ARCH_I386, (int)v[i].mux);

		assert_string_equal(name, v[i].arg.value == 0xffff ? "ipc" : "socketcall");
		free(name);
		if (v[i].direct < 0)
			continue;
		name = seccomp_syscall_resolve_num_arch(AUDIT_ARCH_I386, v[i].direct);
		assert_string_equal(name, v[i].name);
		free(name);
	}
}

/* Its numbers for these calls are -100 or -200, less the first argument of the call of many. */
TEST(first_arguments_are_those_that_libseccomp_counts_by)
{
	size_t n;
	const struct seccomp_mux *v = seccomp_muxes(AUDIT_ARCH_I386, &n);

	for (size_t i = 0; i < n; i++) {
		int base = v[i].mux == 117 ? 200 : 100;

		assert_int_equal(seccomp_syscall_resolve_name_arch(AUDIT_ARCH_I386, v[i].name),
			-base - (int)v[i].arg.value2);
		assert_int_equal(v[i].arg.index, 0);
		assert_int_equal(v[i].arg.op, OP_MASKED_EQ);
	}
}

TEST(no_call_of_many_is_missing)
{
	/* Every name that libseccomp has by such a number, it has by one of these. */
	for (int nr = -101; nr >= -224; nr--) {
		char *name = seccomp_syscall_resolve_num_arch(AUDIT_ARCH_I386, nr);

		if (name && !seccomp_mux(AUDIT_ARCH_I386, name))
			fail_msg("%d: %s", nr, name);
		free(name);
	}
	assert_null(seccomp_mux(AUDIT_ARCH_I386, "read"));
	assert_null(seccomp_mux(AUDIT_ARCH_I386, "socketcall"));
	assert_null(seccomp_mux(AUDIT_ARCH_X86_64, "socket"));
}

RUN_TESTS(cmocka_unit_test(numbers_are_those_of_the_calls_that_are_named),
	cmocka_unit_test(first_arguments_are_those_that_libseccomp_counts_by),
	cmocka_unit_test(no_call_of_many_is_missing))
