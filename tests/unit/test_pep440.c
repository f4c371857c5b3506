#include "tests/unit/test.h"

#include "base/str.h"
#include "builder/pep440.h"
#include "tests/unit/oracle.h"

static int sign(int n)
{
	return n < 0 ? -1 : n > 0;
}

static int compare(const char *a, const char *b)
{
	struct pep440 x, y;

	assert_int_equal(pep440_parse(&x, a, strlen(a)), 0);
	assert_int_equal(pep440_parse(&y, b, strlen(b)), 0);
	return sign(pep440_compare(&x, &y));
}

TEST(versions_have_one_normal_form)
{
	static const char *const cases[][2] = {{"1.0", "1.0"}, {" v1.0RC-2 ", "1.0rc2"},
		{"1.0alpha", "1.0a0"}, {"1.0.preview_3", "1.0rc3"}, {"1-2", "1.post2"},
		{"1.0.rev4", "1.0.post4"}, {"2!01.007.DEV", "2!1.7.dev0"},
		{"1.0+Ubuntu-01.x", "1.0+ubuntu.1.x"}, {"1.0a-.post1.dev-", "1.0a0.post1.dev0"},
		{"123456789012345678901234567890.1", "123456789012345678901234567890.1"}};
	char out[PEP440_TEXT];
	struct pep440 v;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(pep440_parse(&v, cases[i][0], strlen(cases[i][0])), 0);
		assert_string_equal(pep440_text(&v, out), cases[i][1]);
	}
}

TEST(what_is_no_version_is_refused)
{
	static const char *const cases[] = {"", " ", "v", "a", "1..2", "1.0.", "1.0+", "1.0+a..b",
		"1.0+a+b", "1!", "!1", "1.0-1-1", "1.0 1", "1.0.x", "1.0a1b1", "1.0dev1.post1",
		"1.0\n2", "1.0+\xc3\xa9"};
	char longest[PEP440_MAX + 2];
	struct pep440 v;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (pep440_parse(&v, cases[i], strlen(cases[i])) == 0)
			fail_msg("'%s' was taken", cases[i]);
	memset(longest, '1', sizeof(longest));
	assert_int_equal(pep440_parse(&v, longest, PEP440_MAX), 0);
	assert_int_equal(pep440_parse(&v, longest, PEP440_MAX + 1), -1);
	for (size_t i = 1; i < sizeof(longest); i += 2)
		longest[i] = '.';
	assert_int_equal(pep440_parse(&v, longest, 2 * PEP440_PARTS - 1), 0);
	assert_int_equal(pep440_parse(&v, longest, 2 * PEP440_PARTS + 1), -1);
}

TEST(versions_are_in_the_order_of_pep_440)
{
	static const char *const sorted[] = {"0.9", "1.0.dev0", "1.0a0.dev1", "1.0a0", "1.0a1",
		"1.0a1.post0", "1.0b0", "1.0rc9", "1.0rc10", "1.0", "1.0+a", "1.0+a.1", "1.0+b",
		"1.0+2", "1.0+10", "1.0.post0.dev0", "1.0.post0", "1.0.1", "1.10", "10", "1!0.1"};
	size_t n = sizeof(sorted) / sizeof(sorted[0]);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			if (compare(sorted[i], sorted[k]) != sign((int)i - (int)k))
				fail_msg("%s and %s", sorted[i], sorted[k]);
	assert_int_equal(compare("1", "1.0.0"), 0);
}

TEST(specifiers_mean_what_pep_440_says)
{
	static const struct {
		const char *version, *specifiers;
		int fits;
	} cases[] = {{"1.0", "", 1}, {"1.0", " >=1 , <2 ", 1}, {"1.5.3", "!=1.5.*", 0},
		{"1.0+cu118", "==1.0", 1}, {"1.0", "==1.0+cu118", 0}, {"1.0+a", "===1.0+A", 1},
		{"2.0rc1", "<2", 0}, {"2.0rc1", "<2rc2", 1}, {"2.0.post1", ">2", 0},
		{"2.0+x", ">2", 0}, {"2.0.1", ">2", 1}, {"1.4.5", "~=1.4.2", 1},
		{"1.5", "~=1.4.2", 0}, {"2.3rc1", "~=2.2.post3", 1}, {"1!1.5", "==1!1.*", 1},
		{"1!1.5", "==1.*", 0}, {"1!1", "==1!1.0.*", 1}, {"1.0a1", "==1.0.*", 1},
		{"1.0", "1.0", -1}, {"1.0", "~=1", -1}, {"1.0", ">=1.*", -1},
		{"1.0", "==1.0.dev1.*", -1}, {"1.0", ">=1.0+local", -1}, {"x", ">=1", -1},
		{"1.0", "==", -1}, {"1.0", ">1,<", -1}, {"1.0", "==1 .*", -1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (pep440_fits(cases[i].version, cases[i].specifiers) != cases[i].fits)
			fail_msg("%s %s", cases[i].version, cases[i].specifiers);
}

/* ---- the packaging library ---- */

static void check_version(char *const field[])
{
	struct pep440 v;
	char out[PEP440_TEXT];

	if (str_eq(field[0], "cmp")) {
		int want = field[3][0] == '-' ? -1 : field[3][0] - '0';

		if (compare(field[1], field[2]) != want)
			fail_msg("%s and %s: expected %d", field[1], field[2], want);
		return;
	}
	if (pep440_parse(&v, field[1], strlen(field[1])) < 0)
		assert_string_equal(field[2], "-");
	else
		assert_string_equal(pep440_text(&v, out), field[2]);
}

static void check_fit(char *const field[])
{
	int want = field[3][0] == '-' ? -1 : field[3][0] - '0';

	if (pep440_fits(field[1], field[2]) != want)
		fail_msg("'%s' with '%s': expected %d", field[1], field[2], want);
}

TEST(versions_are_read_and_ordered_as_the_packaging_library_does)
{
	assert_true(oracle_ask("versions", check_version) > 2000);
}

TEST(specifiers_take_what_the_packaging_library_takes)
{
	assert_true(oracle_ask("specifiers", check_fit) > 2000);
}

RUN_TESTS(cmocka_unit_test(versions_have_one_normal_form),
	cmocka_unit_test(what_is_no_version_is_refused),
	cmocka_unit_test(versions_are_in_the_order_of_pep_440),
	cmocka_unit_test(specifiers_mean_what_pep_440_says),
	cmocka_unit_test(versions_are_read_and_ordered_as_the_packaging_library_does),
	cmocka_unit_test(specifiers_take_what_the_packaging_library_takes))
