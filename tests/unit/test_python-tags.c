#include "tests/unit/test.h"

#include "base/str.h"
#include "builder/python-scheme.h"
#include "builder/python-tags.h"
#include "tests/unit/oracle.h"

static int rank(const struct python_platform *p, const char *file)
{
	struct arena a = {0};
	struct strings tags = python_tags(p, &a);
	struct wheel_name w;
	int n;

	assert_int_equal(wheel_name_parse(&w, &a, file, NULL), 0);
	n = python_tags_rank(&tags, &w);
	arena_fini(&a);
	return n;
}

static const struct python_platform bookworm = {
	.major = 3, .minor = 11, .glibc_major = 2, .glibc_minor = 36, .machine = "x86_64"};

TEST(wheels_fit_by_interpreter_abi_and_libc)
{
	static const struct {
		const char *file;
		bool fits;
	} cases[] = {{"a-1-py3-none-any.whl", true}, {"a-1-py2.py3-none-any.whl", true},
		{"a-1-py2-none-any.whl", false}, {"a-1-cp311-cp311-linux_x86_64.whl", true},
		{"a-1-cp310-cp310-linux_x86_64.whl", false},
		{"a-1-cp38-abi3-manylinux1_x86_64.whl", true},
		{"a-1-cp312-abi3-manylinux1_x86_64.whl", false},
		{"a-1-cp311-cp311-manylinux_2_36_x86_64.whl", true},
		{"a-1-cp311-cp311-manylinux_2_37_x86_64.whl", false},
		{"a-1-cp311-cp311-manylinux_2_37_x86_64.manylinux2014_x86_64.whl", true},
		{"a-1-cp311-cp311-manylinux2014_aarch64.whl", false},
		{"a-1-cp311-cp311-musllinux_1_1_x86_64.whl", false},
		{"a-1-pp39-pypy39_pp73-manylinux2014_x86_64.whl", false},
		{"a-1-cp311-cp311-win_amd64.whl", false}, {"a-1-cp311-none-any.whl", true},
		{"a-1-py310-none-any.whl", true}, {"a-1-py312-none-any.whl", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if ((rank(&bookworm, cases[i].file) >= 0) != cases[i].fits)
			fail_msg("%s", cases[i].file);
}

TEST(the_closest_wheel_is_the_best)
{
	static const char *const sorted[] = {"a-1-cp311-cp311-manylinux_2_28_x86_64.whl",
		"a-1-cp311-cp311-manylinux2014_x86_64.whl", "a-1-cp311-cp311-linux_x86_64.whl",
		"a-1-cp311-abi3-manylinux2014_x86_64.whl", "a-1-cp38-abi3-manylinux2014_x86_64.whl",
		"a-1-py3-none-manylinux2014_x86_64.whl", "a-1-py3-none-any.whl"};

	for (size_t i = 1; i < sizeof(sorted) / sizeof(sorted[0]); i++)
		if (rank(&bookworm, sorted[i - 1]) >= rank(&bookworm, sorted[i]))
			fail_msg("%s is not before %s", sorted[i - 1], sorted[i]);
}

TEST(musl_takes_its_own_wheels)
{
	struct python_platform alpine = {
		.major = 3, .minor = 12, .musl_major = 1, .musl_minor = 2, .machine = "x86_64"};

	assert_true(rank(&alpine, "a-1-cp312-cp312-musllinux_1_2_x86_64.whl") == 0);
	assert_true(rank(&alpine, "a-1-cp312-cp312-musllinux_1_3_x86_64.whl") < 0);
	assert_true(rank(&alpine, "a-1-cp312-cp312-manylinux1_x86_64.whl") < 0);
}

TEST(names_of_wheels_are_read)
{
	struct arena a = {0};
	struct wheel_name w;

	assert_int_equal(
		wheel_name_parse(&w, &a, "Foo_Bar.x-1.0.0_1-2abc-py3-none-any.whl", NULL), 0);
	assert_string_equal(w.name, "foo-bar-x");
	assert_string_equal(w.version, "1.0.0.post1");
	assert_string_equal(w.build, "2abc");
	assert_string_equal(w.python, "py3");
	assert_string_equal(w.platform, "any");
	assert_int_equal(wheel_name_parse(&w, &a, "torch-2.7.1+cu128-cp311-cp311-x.whl", NULL), 0);
	assert_string_equal(w.version, "2.7.1+cu128");
	arena_fini(&a);
}

TEST(what_is_no_name_of_a_wheel_is_refused)
{
	static const char *const cases[] = {"", ".whl", "a.whl", "a-1.whl", "a-1-py3-none-any.zip",
		"a-1-py3-none.whl", "a-1-b-py3-none-any.whl", "a-1-2-3-py3-none-any.whl",
		"-1-py3-none-any.whl", "a--py3-none-any.whl", "a-x-py3-none-any.whl",
		"a-1-py3--any.whl", "a-1-py3-none-a/b.whl", "a-1 -py3-none-any.whl",
		"../a-1-py3-none-any.whl", "a\n-1-py3-none-any.whl"};
	struct arena a = {0};
	struct wheel_name w;
	struct err e = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (wheel_name_parse(&w, &a, cases[i], &e) == 0)
			fail_msg("'%s' was taken", cases[i]);
	assert_non_null(strstr(e.text, "SV174"));
	arena_fini(&a);
}

static void check_tags(char *const field[])
{
	struct python_platform p = {.machine = "x86_64"};
	struct arena a = {0};
	struct strings ours;
	char *s = field[3];

	assert_int_equal(python_version_parts(field[1], &p.major, &p.minor), 0);
	assert_int_equal(python_version_parts(field[2], &p.glibc_major, &p.glibc_minor), 0);
	ours = python_tags(&p, &a);
	for (size_t i = 0; i < ours.n; i++) {
		size_t n = strcspn(s, " ");

		if (strlen(ours.v[i]) != n || strncmp(s, ours.v[i], n) != 0)
			fail_msg("%s %s: tag %zu is %s, not %.*s", field[1], field[2], i, ours.v[i],
				(int)n, s);
		s += n + (s[n] == ' ');
	}
	assert_int_equal(*s, 0);
	arena_fini(&a);
}

TEST(tags_are_in_the_order_of_the_packaging_library)
{
	assert_int_equal(oracle_ask("tags", check_tags), 9);
}

RUN_TESTS(cmocka_unit_test(wheels_fit_by_interpreter_abi_and_libc),
	cmocka_unit_test(the_closest_wheel_is_the_best),
	cmocka_unit_test(musl_takes_its_own_wheels), cmocka_unit_test(names_of_wheels_are_read),
	cmocka_unit_test(what_is_no_name_of_a_wheel_is_refused),
	cmocka_unit_test(tags_are_in_the_order_of_the_packaging_library))
