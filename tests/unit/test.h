/* What every unit test includes, in the order that cmocka needs. */
#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* How failing tests call an error's kind. */
static inline const char *err_kind_name(enum err_kind kind)
{
	static const char *const names[] = {"none", "usage", "not found", "exists", "denied",
		"corrupt", "unsupported", "network", "system"};

	return names[kind];
}

#define TEST(name) static void name(void **state __attribute__((unused)))
#define RUN_TESTS(...)                                                                             \
	int main(void)                                                                             \
	{                                                                                          \
		const struct CMUnitTest tests[] = {__VA_ARGS__};                                   \
		return cmocka_run_group_tests(tests, NULL, NULL);                                  \
	}

#endif
