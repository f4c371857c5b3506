#include "tests/unit/test.h"

#include "base/str.h"
#include "builder/diversions.h"

/* Two packages, "a" with a preinst script and "b"; each ships one file. */
struct pair_of_debs {
	struct deb v[2];
	struct deb_file script;
};

static void make(struct pair_of_debs *x, const char *script, const char *a, const char *b)
{
	static const char *const names[] = {"a", "b"};
	const char *paths[] = {a, b};

	*x = (struct pair_of_debs){.script = {"preinst", script, strlen(script), 0755}};
	for (size_t i = 0; i < 2; i++) {
		x->v[i].name = names[i];
		x->v[i].files = &x->script;
		x->v[i].nfiles = i == 0;
		entries_add(&x->v[i].data, "usr")->a.type = NODE_DIR;
		entries_add(&x->v[i].data, paths[i])->a.type = NODE_FILE;
	}
}

TEST(what_a_script_says_in_plain_words_is_found)
{
	static const struct {
		const char *script, *a, *b, *to; /* to NULL: nothing is diverted */
	} cases[] = {
		{"dpkg-divert --package a --rename --add --divert /usr/x.real /usr/x", "usr/x",
			"usr/x", "usr/x.real"},
		{"dpkg-divert --package=a --divert=/usr/x.real --rename /usr/x", "usr/x", "usr/x",
			"usr/x.real"},
		{"dpkg-divert --quiet --add /usr/x", "usr/x", "usr/x", "usr/x.distrib"},
		{"for f in w x; do dpkg-divert --divert /usr/${f}.real /usr/$f; done", "usr/x",
			"usr/x", "usr/x.real"},
		{"dpkg-divert --divert /bin/x.real /bin/x", "usr/bin/x", "bin/x", "bin/x.real"},
		/* of one package alone: it renames the file when it runs */
		{"dpkg-divert --divert /usr/x.real /usr/x", "usr/y", "usr/x", NULL},
		{"dpkg-divert --divert /usr/x.real /usr/x", "usr/x", "usr/y", NULL},
		{"dpkg-divert --package c --divert /usr/x.real /usr/x", "usr/x", "usr/x", NULL},
		{"dpkg-divert --remove /usr/x", "usr/x", "usr/x", NULL},
		{"dpkg-divert --divert $1 /usr/x", "usr/x", "usr/x", NULL},
		{"dpkg-divert --divert /usr/../x /usr/x", "usr/x", "usr/x", NULL},
		{"dpkg-divert --divert usr/y /usr/x", "usr/x", "usr/x", NULL},
		{"dpkg-divert --divert /usr/x /usr/x", "usr/x", "usr/x", NULL},
		{"dpkg-divert --divert '/usr/x\n/y' /usr/x", "usr/x", "usr/x", NULL},
		{"dpkg-divert --divert /usr/y '/usr/x\n'", "usr/x\n", "usr/x\n", NULL},
		{"dpkg-divert --divert", "usr/x", "usr/x", NULL},
		{"dpkg-divert /usr/x /usr/y", "usr/x", "usr/x", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair_of_debs x;
		struct arena arena = {0};

		make(&x, cases[i].script, cases[i].a, cases[i].b);
		diversions_place(x.v, 2, &arena);
		assert_null(x.v[0].places);
		if (!x.v[1].places != !cases[i].to)
			fail_msg("%s", cases[i].script);
		if (cases[i].to)
			assert_string_equal(deb_place(&x.v[1], 1), cases[i].to);
		assert_string_equal(deb_place(&x.v[1], 0), "usr");
		arena_fini(&arena);
		entries_fini(&x.v[0].data);
		entries_fini(&x.v[1].data);
	}
}

TEST(the_database_has_three_lines_for_each)
{
	static const struct diversion v[] = {{"usr/x", "usr/x.real", "a"}, {"y", "z", "b"}};
	auto_buf struct buf b = BUF_INIT(1 << 10);

	diversions_text(v, 2, &b);
	assert_string_equal(b.data, "/usr/x\n/usr/x.real\na\n/y\n/z\nb\n");
}

RUN_TESTS(cmocka_unit_test(what_a_script_says_in_plain_words_is_found),
	cmocka_unit_test(the_database_has_three_lines_for_each))
