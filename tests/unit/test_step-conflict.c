#include "tests/unit/test.h"

#include "base/str.h"
#include "builder/step-conflict.h"

/* "f" file, "d" folder, "D" the same with another mode, "w" whiteout, "o" opaque; then the path. */
static void put(struct entries *l, const char *what)
{
	struct entry *en = entries_add(l, what + 1);

	en->kind = what[0] == 'w' ? ENTRY_WHITEOUT : what[0] == 'o' ? ENTRY_OPAQUE : ENTRY_PUT;
	en->a.type = what[0] == 'f' ? NODE_FILE : NODE_DIR;
	en->a.mode = what[0] == 'D' ? 0700 : 0755;
}

static void fill(struct entries *l, const char *const *v, size_t max)
{
	for (size_t i = 0; i < max && v[i]; i++)
		put(l, v[i]);
}

TEST(two_lists_meet_where_both_change_something)
{
	static const struct {
		const char *a[4], *b[4], *path; /* path NULL: they do not meet */
	} cases[] = {
		{{NULL}, {NULL}, NULL},
		{{"fa"}, {NULL}, NULL},
		{{"fa"}, {"fb"}, NULL},
		{{"fa"}, {"fa"}, "a"},
		{{"da", "fa/x"}, {"da", "fa/y"}, NULL},
		{{"da", "fa/x"}, {"da", "fa/y", "fa/x"}, "a/x"},
		{{"da"}, {"Da"}, "a"},
		{{"da"}, {"fa"}, "a"},
		{{"wa"}, {"fa/x"}, "a/x"},
		{{"fa/x"}, {"wa"}, "a"},
		{{"oa"}, {"fa/x/y"}, "a/x/y"},
		{{"fa/x/y"}, {"oa"}, "a"},
		{{"wa"}, {"wa"}, "a"},
		{{"fa"}, {"fa-b", "fa.c"}, NULL},
		{{"wa"}, {"fa-b", "fab/x"}, NULL},
		{{"fa-b", "fa/x"}, {"wa"}, "a"},
		{{"oa", "Da"}, {"Da"}, "a"},
		{{"d"}, {"d", "fx"}, NULL},
		{{"D"}, {"fx"}, NULL},
		{{"w"}, {"fx"}, "x"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct entries a = {0}, b = {0};
		const char *path;

		fill(&a, cases[i].a, 4);
		fill(&b, cases[i].b, 4);
		path = step_conflict(&a, &b);
		if (!path != !cases[i].path || (path && !str_eq(path, cases[i].path)))
			fail_msg("case %zu: %s", i, path ? path : "none");
		entries_fini(&a);
		entries_fini(&b);
	}
}

RUN_TESTS(cmocka_unit_test(two_lists_meet_where_both_change_something))
