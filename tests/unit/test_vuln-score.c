#include "builder/vuln-score.h"
#include "tests/unit/test.h"

/* Scores as FIRST's calculators give them. */
TEST(base_scores_of_vectors)
{
	static const struct {
		const char *vector;
		int score;
		enum vuln_level level;
	} cases[] = {
		{"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 98, VULN_CRITICAL},
		{"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H", 100, VULN_CRITICAL},
		{"CVSS:3.0/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", 61, VULN_MEDIUM},
		{"CVSS:3.1/AV:L/AC:H/PR:H/UI:N/S:U/C:L/I:N/A:N", 19, VULN_LOW},
		{"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", 0, VULN_LOW},
		{"CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:L/I:L/A:N", 64, VULN_MEDIUM},
		{"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H", 75, VULN_HIGH},
		{"AV:N/AC:L/Au:N/C:C/I:C/A:C", 100, VULN_HIGH},
		{"AV:N/AC:M/Au:N/C:N/I:P/A:N", 43, VULN_MEDIUM},
		{"CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", -1,
			VULN_UNKNOWN},
		{"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H", -1, VULN_UNKNOWN},
		{"CVSS:3.1/AV:X/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", -1, VULN_UNKNOWN},
		{"", -1, VULN_UNKNOWN},
		{"///", -1, VULN_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].vector);
		assert_int_equal(vuln_score(cases[i].vector), cases[i].score);
		assert_int_equal(vuln_level_of_vector(cases[i].vector), cases[i].level);
	}
}

TEST(words_that_advisories_use)
{
	assert_int_equal(vuln_level_of_word("MODERATE"), VULN_MEDIUM);
	assert_int_equal(vuln_level_of_word("low**"), VULN_LOW);
	assert_int_equal(vuln_level_of_word("unimportant"), VULN_NEGLIGIBLE);
	assert_int_equal(vuln_level_of_word("not yet assigned"), VULN_UNKNOWN);
	assert_int_equal(vuln_level_of_word("highest"), VULN_UNKNOWN);
	assert_int_equal(vuln_level_of_word(""), VULN_UNKNOWN);
}

RUN_TESTS(cmocka_unit_test(base_scores_of_vectors), cmocka_unit_test(words_that_advisories_use))
