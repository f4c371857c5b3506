#include "tests/unit/test.h"

#include "base/str.h"
#include "builder/marker.h"
#include "tests/unit/oracle.h"

static const char *const extra_names[] = {"Foo_Bar", "test"};
static const char *const group_names[] = {"dev"};

static struct marker_env env(void)
{
	static const char *extras[2], *groups[1];

	memcpy(extras, extra_names, sizeof(extras));
	memcpy(groups, group_names, sizeof(groups));
	return (struct marker_env){.python_version = "3.11",
		.python_full_version = "3.11.2",
		.machine = "x86_64",
		.extra = "",
		.extras = {extras, 2},
		.groups = {groups, 1}};
}

TEST(markers_hold_or_do_not)
{
	static const struct {
		const char *text;
		int holds;
	} cases[] = {{"os_name == 'posix'", 1}, {"python_version>'3.9'", 1},
		{"python_version < \"3.9\" or sys_platform == \"linux\"", 1},
		{"os_name == 'nt' or os_name == 'posix' and python_version < '3'", 0},
		{"(os_name == 'nt' or os_name == 'posix') and python_version > '3'", 1},
		{"'linux' in sys_platform", 1}, {"sys_platform not in 'win32 darwin'", 1},
		{"'3.11' == python_version", 1}, {"python_full_version ~= '3.11.0'", 1},
		{"platform_machine === 'x86_64'", 1}, {"extra == 'test'", 0},
		{"'foo-bar' in extras", 1}, {"'other' in extras", 0},
		{"'dev' in dependency_groups", 1}, {"'dev' not in dependency_groups", 0},
		{"python_version == '3.11.*'", 1}, {"implementation_name == 'cpython'", 1},
		{"os.name == 'posix' and platform.machine != 'arm'", 1}};
	struct marker_env v = env();
	struct err e = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (marker_holds(cases[i].text, &v, &e) != cases[i].holds)
			fail_msg("%s: %s", cases[i].text, e.text);
}

TEST(markers_that_are_malformed_are_refused_with_their_place)
{
	static const char *const cases[] = {"", "os_name", "os_name ==", "os_name == posix",
		"os_name == 'posix", "os_name = 'posix'", "os_name == 'a\\n'", "(os_name == 'a'",
		"os_name == 'a')", "os_name == 'a' and", "os_name == 'a' xor os_name == 'b'",
		"os_name not 'a'", "unknown == 'a'", "os_name ~= 'posix'", "extras == 'x'",
		"extras in 'x'", "os_name == 'a' os_name == 'b'"};
	struct marker_env v = env();
	char deep[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};

		if (marker_holds(cases[i], &v, &e) >= 0)
			fail_msg("'%s' was taken", cases[i]);
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_non_null(strstr(e.text, "SV054"));
		assert_non_null(strstr(e.text, "at byte"));
	}
	memset(deep, '(', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(marker_holds(deep, &v, NULL), -1);
}

TEST(markers_that_ask_for_the_running_kernel_are_not_supported)
{
	struct marker_env v = env();
	struct err e = {0};

	assert_int_equal(marker_holds("platform_release > '5'", &v, &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
	v.python_full_version = NULL;
	assert_int_equal(marker_holds("python_full_version > '3'", &v, &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
}

TEST(requirements_are_read)
{
	struct arena a = {0};
	struct requirement r;
	struct err e = {0};

	if (requirement_parse(&r, &a, "Foo.Bar [b, C_d] (>=1.0, <2) ; os_name == 'posix'", &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(r.name, "foo-bar");
	assert_int_equal(r.extras.n, 2);
	assert_string_equal(r.extras.v[1], "c-d");
	assert_string_equal(r.specifiers, ">=1.0, <2");
	assert_string_equal(r.marker, "os_name == 'posix'");
	assert_int_equal(requirement_parse(&r, &a, "a@ https://h/x.whl ; os_name=='a'", &e), 0);
	assert_string_equal(r.url, "https://h/x.whl");
	assert_int_equal(requirement_parse(&r, &a, "a", &e), 0);
	assert_string_equal(r.specifiers, "");
	arena_fini(&a);
}

TEST(requirements_that_are_malformed_are_refused)
{
	static const char *const cases[] = {"", "-a", "a b", "a ==", "a >=1 <2", "a[", "a[b",
		"a[b c]", "a (>=1", "a @", "a ;", "a;", "a >=1 x", "\xc3\xa9", "a[]]"};
	struct arena a = {0};
	struct requirement r;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (requirement_parse(&r, &a, cases[i], NULL) == 0)
			fail_msg("'%s' was taken", cases[i]);
	arena_fini(&a);
}

static void check_marker(char *const field[])
{
	struct marker_env v = env();
	struct err e = {0};
	int rc;

	v.extras.n = v.groups.n = 0;
	rc = marker_holds(field[1], &v, &e);
	if (rc != field[2][0] - '0')
		fail_msg("%s: expected %s, got %d %s", field[1], field[2], rc, e.text);
}

TEST(markers_hold_where_the_packaging_library_says_so)
{
	assert_true(oracle_ask("markers", check_marker) > 1000);
}

RUN_TESTS(cmocka_unit_test(markers_hold_or_do_not),
	cmocka_unit_test(markers_that_are_malformed_are_refused_with_their_place),
	cmocka_unit_test(markers_that_ask_for_the_running_kernel_are_not_supported),
	cmocka_unit_test(requirements_are_read),
	cmocka_unit_test(requirements_that_are_malformed_are_refused),
	cmocka_unit_test(markers_hold_where_the_packaging_library_says_so))
