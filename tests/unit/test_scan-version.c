#include "builder/scan-version.h"
#include "tests/unit/test.h"

TEST(versions_are_ordered_as_each_kind_of_package_has_it)
{
	static const struct {
		enum version_kind k;
		const char *a, *b;
		int order;
	} cases[] = {
		{VERSION_DEB, "1.0-1", "1.0-2", -1},
		{VERSION_DEB, "1.0~rc1-1", "1.0-1", -1},
		{VERSION_DEB, "1:0.1-1", "9.9-9", 1},
		{VERSION_DEB, "0:1.0", "1.0", 0},
		{VERSION_DEB, "1.0", "1.0-0", 0},
		{VERSION_DEB, "2.36-9+deb12u10", "2.36-9+deb12u9", 1},
		{VERSION_DEB, "1.0a", "1.0+", -1},
		{VERSION_DEB, "1.0~", "1.0", -1},
		{VERSION_DEB, "1.0~~a", "1.0~a", -1},
		{VERSION_DEB, "007", "7", 0},
		{VERSION_DEB, "1.2.3-4-5", "1.2.3-4-6", -1},
		{VERSION_DEB, "99999999999999999999999", "100000000000000000000000", -1},
		{VERSION_PYPI, "1.0rc1", "1.0", -1},
		{VERSION_PYPI, "1.0.post1", "1.0", 1},
		{VERSION_PYPI, "1.10", "1.9", 1},
		{VERSION_PYPI, "1.0+local", "1.0", 1},
		{VERSION_NPM, "1.0.0-alpha", "1.0.0-alpha.1", -1},
		{VERSION_NPM, "1.0.0-alpha.1", "1.0.0-alpha.beta", -1},
		{VERSION_NPM, "1.0.0-beta.2", "1.0.0-beta.11", -1},
		{VERSION_NPM, "1.0.0-rc.1", "1.0.0", -1},
		{VERSION_NPM, "1.0.0+a", "1.0.0+b", 0},
		{VERSION_NPM, "0", "0.0.0", 0},
		{VERSION_NPM, "2.0", "10.0.0", -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int order, back;

		print_message("%s %s\n", cases[i].a, cases[i].b);
		assert_int_equal(version_compare(cases[i].k, cases[i].a, cases[i].b, &order), 0);
		assert_int_equal(version_compare(cases[i].k, cases[i].b, cases[i].a, &back), 0);
		assert_int_equal((order > 0) - (order < 0), cases[i].order);
		assert_int_equal((back > 0) - (back < 0), -cases[i].order);
	}
}

TEST(what_is_no_version_is_told)
{
	static const struct {
		enum version_kind k;
		const char *text;
	} cases[] = {
		{VERSION_DEB, ""},
		{VERSION_DEB, "a:1"},
		{VERSION_DEB, ":1"},
		{VERSION_DEB, "1 2"},
		{VERSION_DEB, "-1"},
		{VERSION_DEB, "1_2"},
		{VERSION_PYPI, "x"},
		{VERSION_NPM, "1.2.3.4"},
		{VERSION_NPM, "x"},
		{VERSION_NPM, "1.2.3-"},
		{VERSION_NPM, "1..2"},
		{VERSION_NPM, "1.2.3 "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int order;

		print_message("'%s'\n", cases[i].text);
		assert_int_equal(version_compare(cases[i].k, cases[i].text, "1", &order), -1);
		assert_int_equal(version_compare(cases[i].k, "1", cases[i].text, &order), -1);
	}
}

RUN_TESTS(cmocka_unit_test(versions_are_ordered_as_each_kind_of_package_has_it),
	cmocka_unit_test(what_is_no_version_is_told))
