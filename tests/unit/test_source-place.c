#include "tests/unit/test.h"

#include "base/str.h"
#include "builder/source-type.h"

static const struct {
	const char *include, *exclude, *path; /* one pattern each; NULL: none */
	bool kept;
} cases[] = {
	{NULL, NULL, "a/b", true},
	{"a", NULL, "a/b/c", true}, /* a folder means what is in it */
	{"a", NULL, "ab", false},
	{"a/*", NULL, "a/b/c", true}, /* so does each folder that * names */
	{"*.md", NULL, "x.md", true},
	{"*.md", NULL, "d/x.md", false},
	{"**.md", NULL, "d/x.md", true},
	{NULL, "d", "d", false},
	{NULL, "d", "d/x", false},
	{NULL, "d/x", "d", true},
	{"d", "d/x", "d/x", false}, /* what is excluded stays out */
	{"d", "d/x", "d/y", true},
};

TEST(patterns_mean_what_they_name_and_all_that_is_in_it)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *in[] = {cases[i].include}, *ex[] = {cases[i].exclude};
		struct manifest_source ms = {
			.include = {in, in[0] != NULL}, .exclude = {ex, ex[0] != NULL}};

		if (source_keeps(&ms, cases[i].path) != cases[i].kept)
			fail_msg("case %zu: %s", i, cases[i].path);
	}
}

TEST(strip_takes_leading_components)
{
	struct manifest_source ms = {.strip = 2};

	assert_string_equal(source_strip(&ms, "a/b/c/d"), "c/d");
	assert_null(source_strip(&ms, "a/b"));
	ms.strip = 0;
	assert_string_equal(source_strip(&ms, "a/b"), "a/b");
}

TEST(paths_go_below_dest)
{
	struct manifest_source ms = {.dest = "/opt/x"};
	char out[TREE_PATH_MAX + 1];
	auto_free char *lang = mem_alloc(TREE_PATH_MAX + 1);
	struct err e = {0};

	assert_int_equal(source_path(&ms, "a/b", out, &e), 0);
	assert_string_equal(out, "opt/x/a/b");
	assert_int_equal(source_path(&ms, "", out, &e), 0);
	assert_string_equal(out, "opt/x");
	assert_int_equal(source_path(&ms, "../b", out, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	memset(lang, 'a', TREE_PATH_MAX);
	e = (struct err){0};
	assert_int_equal(source_path(&ms, lang, out, &e), -1);
	assert_non_null(strstr(e.text, "longer than the limit"));
}

TEST(owner_is_the_manifests_and_setuid_is_nobodys)
{
	struct manifest_source ms = {.dest = "/opt", .uid = 7, .gid = 8};
	struct entries out = {0};
	struct source_unpack u = {.ms = &ms, .out = &out};
	struct attr a = {.type = NODE_FILE, .mode = 06755, .uid = 1};
	struct err e = {0};
	struct entry *en = source_put(&u, "a", &a, &e);

	assert_non_null(en);
	assert_int_equal(en->a.mode, 0755);
	assert_int_equal(en->a.uid, 7);
	assert_int_equal(en->a.gid, 8);
	entries_fini(&out);
}

RUN_TESTS(cmocka_unit_test(patterns_mean_what_they_name_and_all_that_is_in_it),
	cmocka_unit_test(strip_takes_leading_components), cmocka_unit_test(paths_go_below_dest),
	cmocka_unit_test(owner_is_the_manifests_and_setuid_is_nobodys))
