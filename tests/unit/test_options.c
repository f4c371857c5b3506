#include "tests/unit/test.h"

#include "svrun/options.h"

TEST(bytes_take_binary_units)
{
	static const struct {
		const char *s;
		int rc;
		uint64_t v;
	} cases[] = {
		{"512", 0, 512},
		{"512b", 0, 512},
		{"1k", 0, 1024},
		{"2g", 0, 2147483648},
		{"1.5GiB", 0, 1610612736},
		{"4MB", 0, 4194304},
		{"", -1, 0},
		{"-1", -1, 0},
		{"1x", -1, 0},
		{"1kk", -1, 0},
		{"nan", -1, 0},
		{"1e300", -1, 0},
		{"1e3", -1, 0},
		{"0x10", -1, 0},
		{"1 ", -1, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t v = 0;

		assert_int_equal(option_bytes(cases[i].s, &v), cases[i].rc);
		if (cases[i].rc == 0)
			assert_true(v == cases[i].v);
	}
}

RUN_TESTS(cmocka_unit_test(bytes_take_binary_units))
