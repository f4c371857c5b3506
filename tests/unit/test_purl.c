/* Package URLs. */
#include "builder/purl.h"

#include "tests/unit/test.h"

TEST(parts_are_encoded_where_they_have_to_be)
{
	static const struct {
		struct purl p;
		const char *want;
	} cases[] = {
		{{"deb", "debian", "libstdc++6", "12.2.0-14", {{"arch", "amd64"}}},
			"pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64"},
		{{"deb", "debian", "x", "1:2~3", {{"arch", "all"}, {"upstream", "y z"}}},
			"pkg:deb/debian/x@1:2~3?arch=all&upstream=y%20z"},
		{{"deb", "debian", "x", "1", {{"arch", NULL}, {"upstream", "y"}}},
			"pkg:deb/debian/x@1?upstream=y"},
		{{"pypi", NULL, "numpy", "1.24.2", {{0}}}, "pkg:pypi/numpy@1.24.2"},
		{{"generic", NULL, "a/b@c", NULL, {{0}}}, "pkg:generic/a%2Fb%40c"},
		{{"huggingface", "org", "m", "00ff", {{0}}}, "pkg:huggingface/org/m@00ff"},
	};
	struct arena a = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(purl_text(&a, &cases[i].p), cases[i].want);
	arena_fini(&a);
}

TEST(the_scope_of_npm_is_the_namespace)
{
	struct arena a = {0};

	assert_string_equal(purl_npm(&a, "@scope/name", "1.0.0"), "pkg:npm/%40scope/name@1.0.0");
	assert_string_equal(purl_npm(&a, "ms", "2.1.3"), "pkg:npm/ms@2.1.3");
	arena_fini(&a);
}

RUN_TESTS(cmocka_unit_test(parts_are_encoded_where_they_have_to_be),
	cmocka_unit_test(the_scope_of_npm_is_the_namespace))
