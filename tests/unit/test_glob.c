#include "tests/unit/test.h"

#include "images/glob.h"

TEST(a_star_stops_at_a_slash_and_two_do_not)
{
	static const struct {
		const char *p, *s;
		bool match;
	} cases[] = {
		{"*", "abc", true},
		{"*", "a/b", false},
		{"**", "a/b", true},
		{"/etc/**", "/etc/apt/sources.list", true},
		{"/etc/**", "/etcetera", false},
		{"/usr/**/*.so", "/usr/lib/x/y.so", true},
		{"/usr/**/*.so", "/usr/y.so", true},
		{"lib*-dev", "libfoo-dev", true},
		{"lib*-dev", "libfoo-devel", false},
		{"?at", "cat", true},
		{"?at", "/at", false},
		{"@node-llama-cpp/*cuda*", "@node-llama-cpp/linux-x64-cuda-ext", true},
		{"@node-llama-cpp/*cuda*", "@node-llama-cpp/linux-x64", false},
		{"", "", true},
		{"", "a", false},
		{"*a*b*c*d*e*f*g*h*i*j*", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (glob_matches(cases[i].p, cases[i].s) != cases[i].match)
			fail_msg("%s and %s", cases[i].p, cases[i].s);
}

RUN_TESTS(cmocka_unit_test(a_star_stops_at_a_slash_and_two_do_not))
