#include "tests/unit/test.h"

#include "base/str.h"
#include "builder/writes.h"

TEST(paths_outside_of_the_globs_are_listed)
{
	static const struct {
		const char *globs[3];
		const char *changed; /* "f" file, "d" folder, "w" whiteout, then the path */
		bool allowed;
	} cases[] = {
		{{"/opt/app/x"}, "fopt/app/x", true},
		{{"/opt/app/x"}, "wopt/app/x", true},
		{{"/opt/app/x"}, "fopt/app/xy", false},
		{{"/opt/app/x"}, "dopt/app/x", true},
		{{"/opt/app/*"}, "fopt/app/x", true},
		{{"/opt/app/*"}, "fopt/app/x/y", false},
		{{"/opt/app/**"}, "fopt/app/x/y", true},
		{{"/opt/app/**"}, "dopt/app", true},
		{{"/opt/app/**"}, "dopt", true},
		{{"/opt/app/**"}, "fopt", false},
		{{"/opt/app/**"}, "wopt", false},
		{{"/opt/**/x"}, "dopt/a/b", true},
		{{"/opt/**/x"}, "fopt/a/b", false},
		{{"/opt/*/x"}, "dopt/a", true},
		{{"/opt/*/x"}, "dopt/a/b", false},
		{{"/opt/a", "/etc/b"}, "fetc/b", true},
		{{"/opt/a", "/etc/b"}, "detc/there", false},
		{{NULL}, "fopt/a", false},
		{{"/opt/app"}, "f", false}, /* the root itself */
		{{"/**"}, "d", true},
	};
	struct tree *t = tree_new();
	struct attr dir = {.type = NODE_DIR, .mode = 0755};

	assert_non_null(tree_put(t, "etc/there", &dir, 0, NULL));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *globs[3], *what = cases[i].changed;
		struct strings g = {globs, 0}, out;
		struct entries l = {0};
		struct arena a = {0};
		struct entry *en = entries_add(&l, what + 1);

		while (g.n < 3 && cases[i].globs[g.n]) {
			globs[g.n] = cases[i].globs[g.n];
			g.n++;
		}
		en->kind = *what == 'w' ? ENTRY_WHITEOUT : ENTRY_PUT;
		en->a.type = *what == 'd' ? NODE_DIR : NODE_FILE;
		out = writes_outside(&g, &l, t, &a);
		if ((out.n == 0) != cases[i].allowed)
			fail_msg("%s with %s: %s", what, cases[i].globs[0],
				out.n ? "outside" : "allowed");
		if (out.n)
			assert_string_equal(out.v[0] + 1, what + 1);
		entries_fini(&l);
		arena_fini(&a);
	}
	tree_free(t);
}

RUN_TESTS(cmocka_unit_test(paths_outside_of_the_globs_are_listed))
