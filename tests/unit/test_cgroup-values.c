#include "tests/unit/test.h"

#include "base/str.h"
#include "runtime/cgroup-values.h"

TEST(shares_become_weights_by_the_curve_that_other_runtimes_use)
{
	/* Computed from the formula that crun and runc document. */
	static const struct {
		int64_t shares, weight;
	} cases[] = {{-5, 1}, {1, 1}, {2, 1}, {3, 2}, {10, 4}, {100, 17}, {256, 35}, {512, 59},
		{1000, 99}, {1024, 100}, {1025, 101}, {2048, 174}, {4096, 303}, {8192, 532},
		{100000, 4340}, {262143, 10000}, {262144, 10000}, {INT64_MAX, 10000}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (cgroup_weight(cases[i].shares) != cases[i].weight)
			fail_msg("%jd: %jd, expected %jd", (intmax_t)cases[i].shares,
				(intmax_t)cgroup_weight(cases[i].shares),
				(intmax_t)cases[i].weight);
	for (int64_t s = 2; s < 262144; s += 7)
		assert_true(cgroup_weight(s) <= cgroup_weight(s + 7));
}

TEST(weights_of_disks_cover_the_whole_range)
{
	assert_int_equal(cgroup_io_weight(1), 1);
	assert_int_equal(cgroup_io_weight(10), 1);
	assert_int_equal(cgroup_io_weight(11), 11);
	assert_int_equal(cgroup_io_weight(500), 4950);
	assert_int_equal(cgroup_io_weight(1000), 10000);
	assert_int_equal(cgroup_io_weight(INT64_MAX), 10000);
}

TEST(swap_is_what_is_left_of_memory_and_swap)
{
	static const struct {
		int64_t both, limit, swap;
		bool ok;
	} cases[] = {{-1, 5, -1, true}, {-1, -1, -1, true}, {5, 5, 0, true}, {9, 5, 4, true},
		{INT64_MAX, 1, INT64_MAX - 1, true}, {4, 5, 0, false}, {9, -1, 0, false},
		{9, INT64_MAX, 0, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		int64_t swap = 0;
		int rc = cgroup_swap(cases[i].both, cases[i].limit, &swap, &e);

		assert_int_equal(rc, cases[i].ok ? 0 : -1);
		if (cases[i].ok)
			assert_int_equal(swap, cases[i].swap);
		else
			assert_true(strstr(e.text, "memory/swap") != NULL);
	}
}

TEST(the_half_of_cpu_max_that_is_not_given_stays)
{
	static const struct {
		const char *old;
		int64_t quota, period;
		const char *text;
	} cases[] = {
		{"max 100000\n", 50000, 0, "50000 100000"},
		{"max 100000\n", 50000, 20000, "50000 20000"},
		{"50000 20000\n", 0, 40000, "50000 40000"},
		{"50000 20000\n", -1, 0, "max 20000"},
		{"50000 20000\n", 7000, 0, "7000 20000"},
		{"", 7000, 0, "7000 100000"},
		{"", -1, 0, "max 100000"},
		{"", 0, 5000, "max 5000"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[64];

		cgroup_cpu_max(out, cases[i].old, cases[i].quota, cases[i].period);
		assert_string_equal(out, cases[i].text);
	}
}

TEST(lists_of_cpus_become_bits)
{
	static const struct {
		const char *list;
		size_t n;
		uint8_t bits[3];
	} good[] = {
		{"0", 1, {1}},
		{"0-3,5\n", 1, {0x2f}},
		{"9", 2, {0, 2}},
		{"7-8,16", 3, {0x80, 1, 1}},
		{"3,3", 1, {8}},
	};
	static const char *const bad[] = {"", "-", "1-", "3-1", "a", "1,", ",1", "1 2", "24",
		"0-24", "99999999999999999999", "-1"};
	uint8_t bits[3];
	size_t n;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(cgroup_bit_set(good[i].list, bits, sizeof(bits), &n), 0);
		assert_int_equal(n, good[i].n);
		assert_memory_equal(bits, good[i].bits, n);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (cgroup_bit_set(bad[i], bits, sizeof(bits), &n) == 0)
			fail_msg("'%s' is taken for a list", bad[i]);
}

RUN_TESTS(cmocka_unit_test(shares_become_weights_by_the_curve_that_other_runtimes_use),
	cmocka_unit_test(weights_of_disks_cover_the_whole_range),
	cmocka_unit_test(swap_is_what_is_left_of_memory_and_swap),
	cmocka_unit_test(the_half_of_cpu_max_that_is_not_given_stays),
	cmocka_unit_test(lists_of_cpus_become_bits))
