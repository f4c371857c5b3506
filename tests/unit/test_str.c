#include "tests/unit/test.h"

#include "base/str.h"

TEST(a_decimal_is_digits_only_and_within_the_limit)
{
	static const struct {
		const char *s;
		uint64_t max;
		int rc;
		uint64_t v;
	} cases[] = {
		{"0", 10, 0, 0},
		{"10", 10, 0, 10},
		{"11", 10, -1, 0},
		{"", 10, -1, 0},
		{"-1", 10, -1, 0},
		{"+1", 10, -1, 0},
		{" 1", 10, -1, 0},
		{"1 ", 10, -1, 0},
		{"0x1", 10, -1, 0},
		{"18446744073709551615", UINT64_MAX, 0, UINT64_MAX},
		{"18446744073709551616", UINT64_MAX, -1, 0},
		{"99999999999999999999999", UINT64_MAX, -1, 0},
		{"7", 5, -1, 0},
		{"4294967296", UINT32_MAX, -1, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t v = 0;

		assert_int_equal(str_u64(cases[i].s, cases[i].max, &v), cases[i].rc);
		if (cases[i].rc == 0)
			assert_true(v == cases[i].v);
	}
}

TEST(a_list_of_ranges_is_taken_one_by_one)
{
	static const char *const bad[] = {"", ",", "1,", ",1", "3-1", "-1", "1-", "1-2-3", "8",
		"0-8", "1 ", "0x1", "99999999999999999999999", "1,x"};
	const char *s = "0-3,5,7-7";
	uint64_t first, last;
	int rc;

	assert_int_equal(str_range(&s, 7, &first, &last), 1);
	assert_int_equal(first, 0);
	assert_int_equal(last, 3);
	assert_int_equal(str_range(&s, 7, &first, &last), 1);
	assert_int_equal(last, 5);
	assert_int_equal(str_range(&s, 7, &first, &last), 1);
	assert_int_equal(first, 7);
	assert_int_equal(str_range(&s, 7, &first, &last), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		s = bad[i];
		while ((rc = str_range(&s, 7, &first, &last)) > 0)
			;
		if (rc == 0)
			fail_msg("'%s'", bad[i]);
	}
}

TEST(did_you_mean_needs_a_near_name)
{
	static const char *const names[] = {"entrypoint", "env", "cmd", "files", NULL};

	assert_string_equal(str_nearest("entripoint", names), "entrypoint");
	assert_string_equal(str_nearest("file", names), "files");
	assert_null(str_nearest("zzzzz", names));
	assert_null(str_nearest("x", names));
}

TEST(utf8_is_strict)
{
	assert_true(str_utf8("gr\xc3\xbc\xc3\x9f", 6));
	assert_false(str_utf8("\xc0\x80", 2));         /* overlong NUL */
	assert_false(str_utf8("\xed\xa0\x80", 3));     /* surrogate */
	assert_false(str_utf8("\xf4\x90\x80\x80", 4)); /* beyond U+10FFFF */
	assert_false(str_utf8("\xe2\x82", 2));         /* cut off */
	assert_false(str_utf8("a\0b", 3));
}

TEST(a_copy_that_does_not_fit_says_so)
{
	char b[4];

	assert_int_equal(str_copy(b, sizeof(b), "abc"), 0);
	assert_int_equal(str_copy(b, sizeof(b), "abcd"), -1);
	assert_string_equal(b, "abc");
}

TEST(versions_are_compared_by_their_numbers)
{
	assert_true(str_version_compare("12.10", "12.9") > 0);
	assert_int_equal(str_version_compare("12", "12.0.0"), 0);
	assert_int_equal(str_version_compare("012.08", "12.8"), 0);
	assert_true(str_version_compare("535.129.03", "535.129.3.1") < 0);
	assert_int_equal(str_version_compare("x", ""), 0); /* ends */
}

RUN_TESTS(cmocka_unit_test(a_decimal_is_digits_only_and_within_the_limit),
	cmocka_unit_test(a_list_of_ranges_is_taken_one_by_one),
	cmocka_unit_test(did_you_mean_needs_a_near_name), cmocka_unit_test(utf8_is_strict),
	cmocka_unit_test(a_copy_that_does_not_fit_says_so),
	cmocka_unit_test(versions_are_compared_by_their_numbers))
