#include "tests/unit/fixture.h"

#include "base/str.h"
#include "builder/python-base.h"
#include "builder/python.h"

static void put(struct fixture *f, const char *path, const char *text)
{
	const struct rootfs r = {.tree = f->t, .pool = f->p};

	need(rootfs_file(&r, path, text, strlen(text), (struct owner){.mode = 0644}, &f->e));
}

/* Debian's packages, and a virtual environment. */
static void put_all(struct fixture *f)
{
	put(f, "usr/bin/python3.11", "");
	put(f, "usr/lib/python3/dist-packages/PyYAML-6.0.egg-info/PKG-INFO",
		"Name: PyYAML\nVersion: 6.0\n");
	put(f, "usr/lib/python3/dist-packages/six-1.16.0.egg-info", "Name: six\nVersion: 1.16.0\n");
	put(f, "usr/lib/python3/dist-packages/no_version.egg-info/top_level.txt", "x");
	put(f, "usr/lib/python3/dist-packages/broken-3.1-py3.11.egg-info/SOURCES.txt", "x");
	put(f, "opt/venv/lib/python3.11/site-packages/torch-2.1.0.dist-info/METADATA",
		"Name: torch\nVersion: 2.1.0\nRequires-Dist: numpy >=1\nRequires-Dist: six ; "
		"extra == 'x'\nRequires-Dist: Six>=2\nRequires-Dist: win ; os_name == 'nt'\n");
	put(f, "opt/venv/lib/python3.11/site-packages/x/_vendor/inner-1.dist-info/METADATA",
		"Name: inner\nVersion: 1\n");
	put(f, "opt/venv/lib/python3.11/site-packages/evil-1.dist-info/METADATA",
		"Name: evil\nVersion: 1\x1b[2J\n");
	put(f, "usr/share/demo-1.dist-info/METADATA", "Name: demo\nVersion: 1\n");
	tree_sort(f->t);
}

TEST(what_is_installed_is_what_interpreters_look_for)
{
	struct fixture fx, *f = &fx;
	const struct rootfs r = {.tree = NULL};
	struct rootfs here = r;
	struct arena a = {0};
	auto_buf struct buf text = BUF_INIT(1 << 20);
	struct python_dist *v;
	size_t n;

	fixture_init(f);
	put_all(f);
	here.tree = f->t;
	here.pool = f->p;
	v = python_installed(&here, &a, &n);
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s %s %s\n", v[i].name, v[i].version, v[i].path);
	assert_string_equal(text.data,
		"broken 3.1 usr/lib/python3/dist-packages/broken-3.1-py3.11.egg-info\n"
		"evil 1 opt/venv/lib/python3.11/site-packages/evil-1.dist-info\n"
		"pyyaml 6.0 usr/lib/python3/dist-packages/PyYAML-6.0.egg-info\n"
		"six 1.16.0 usr/lib/python3/dist-packages/six-1.16.0.egg-info\n"
		"torch 2.1.0 opt/venv/lib/python3.11/site-packages/torch-2.1.0.dist-info\n");
	arena_fini(&a);
	fixture_fini(f);
}

static int guard(struct fixture *f, struct pair *pairs, size_t n)
{
	const struct rootfs r = {.tree = f->t, .pool = f->p};
	const struct manifest_python p = {
		.present = true, .interpreter = "/usr/bin/python3.11", .guard = {pairs, n}};

	f->e = (struct err){0};
	return python_guard(&r, &p, &f->e);
}

TEST(a_guard_names_all_that_is_not_as_it_says)
{
	struct pair good[] = {{"PyYAML", ">=5,<7"}, {"six", "1.16.*"}};
	struct pair bad[] = {{"numpy", ">=1"}, {"six", "<1.16"}, {"torch", "==2.1.*"}};
	struct pair compatible[] = {{"torch", "compatible"}};
	struct fixture fx, *f = &fx;

	fixture_init(f);
	put_all(f);
	if (guard(f, good, 2) < 0)
		fail_msg("%s", f->e.text);
	assert_int_equal(guard(f, bad, 3), -1);
	assert_int_equal(f->e.kind, ERR_USAGE);
	assert_string_equal(f->e.text,
		"SV050: /python/guard: numpy is not installed; six is 1.16.0 "
		"(/usr/lib/python3/dist-packages/six-1.16.0.egg-info), not <1.16");
	assert_int_equal(guard(f, compatible, 1), -1);
	assert_string_equal(f->e.text,
		"SV050: /python/guard: torch 2.1.0 needs numpy>=1, and nothing is installed; "
		"torch 2.1.0 needs six>=2, and 1.16.0 is installed");
	fixture_fini(f);
}

TEST(what_an_extra_needs_is_installed)
{
	const char *x[] = {"x", "y"};
	struct lock_wheel wheels[] = {{.name = "torch", .extras = {x, 2}}, {.name = "six"}};
	const struct lock l = {.wheels = wheels, .nwheels = 2};
	const struct manifest_python p = {.present = true, .interpreter = "/usr/bin/python3.11"};
	struct fixture fx, *f = &fx;
	struct rootfs r = {0};

	fixture_init(f);
	put_all(f);
	r.tree = f->t;
	r.pool = f->p;
	need(python_extras(&r, &p, &l, &f->e));
	put(f, "opt/venv/lib/python3.11/site-packages/torch-2.1.0.dist-info/METADATA",
		"Name: torch\nVersion: 2.1.0\nRequires-Dist: numpy >=1\n"
		"Requires-Dist: none>1; extra == 'Y' and os_name == 'posix'\n"
		"Requires-Dist: six>7; extra == 'x'\nRequires-Dist: other; extra == 'z'\n");
	assert_int_equal(python_extras(&r, &p, &l, &f->e), -1);
	assert_string_equal(f->e.text,
		"SV053: torch 2.1.0 [x] needs six>7, and 1.16.0 is installed; "
		"torch 2.1.0 [y] needs none>1, and nothing is installed");
	fixture_fini(f);
}

TEST(a_base_image_tells_its_interpreter)
{
	static const struct {
		const char *files[3], *links[2][2], *interpreter, *version;
	} cases[] = {
		{{"usr/bin/python3.9"}, {{"usr/bin/python3", "python3.9"}}, "/usr/bin/python3",
			"3.9"},
		{{"usr/local/bin/python3.12", "usr/local/bin/python3.12-config"},
			{{"usr/local/bin/python3", "python3.12"},
				{"usr/local/bin/python", "python3"}},
			"/usr/local/bin/python", "3.12"},
		{{"opt/p/bin/python", "opt/p/lib/python3.10/os.py"}, {{0}}, "/opt/p/bin/python",
			"3.10"},
		{{"opt/p/bin/python3", "opt/p/bin/python3.8", "opt/p/bin/python3.13"}, {{0}},
			"/opt/p/bin/python3", ""},
		{{"usr/bin/python3.11"}, {{0}}, "/usr/bin/python3", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture fx, *f = &fx;
		struct rootfs r = {0};
		struct python_base b;

		fixture_init(f);
		r.tree = f->t;
		r.pool = f->p;
		for (size_t k = 0; k < 3 && cases[i].files[k]; k++)
			put(f, cases[i].files[k], "x");
		for (size_t k = 0; k < 2 && cases[i].links[k][0]; k++)
			need(rootfs_link(&r, cases[i].links[k][0], cases[i].links[k][1], &f->e));
		python_base_find(&b, &r, "x86_64", cases[i].interpreter);
		assert_string_equal(b.python, cases[i].version);
		fixture_fini(f);
	}
}

static void is_link(struct fixture *f, const char *path, const char *target)
{
	const struct node *n = tree_find(f->t, path);

	assert_non_null(n);
	assert_int_equal(n->a.type, NODE_SYMLINK);
	assert_string_equal(n->a.target, target);
}

TEST(a_virtual_environment_is_made_where_there_is_none)
{
	const struct manifest_python p = {
		.present = true, .interpreter = "/usr/bin/python3.11", .prefix = "/opt/venv"};
	struct fixture fx, *f = &fx;
	struct rootfs r = {.epoch = 7};
	auto_buf struct buf text = BUF_INIT(4096);

	fixture_init(f);
	r.tree = f->t;
	r.pool = f->p;
	put(f, "usr/bin/python3.11", "");
	need(python_prepare(&r, &p, "3.11", &f->e));
	is_link(f, "opt/venv/bin/python", "python3");
	is_link(f, "opt/venv/bin/python3", "/usr/bin/python3.11");
	is_link(f, "opt/venv/bin/python3.11", "python3");
	is_link(f, "opt/venv/lib64", "lib");
	assert_int_equal(rootfs_read(&r, "opt/venv/pyvenv.cfg", &text, &f->e), 1);
	assert_string_equal(text.data, "home = /usr/bin\ninclude-system-site-packages = false\n"
				       "version = 3.11\nexecutable = /usr/bin/python3.11\n");
	assert_int_equal(
		tree_find(f->t, "opt/venv/lib/python3.11/site-packages")->a.type, NODE_DIR);
	fixture_fini(f);
}

TEST(the_interpreter_must_be_there_and_of_that_version)
{
	struct manifest_python p = {
		.present = true, .interpreter = "/usr/bin/python3", .prefix = "/opt/venv"};
	struct fixture fx, *f = &fx;
	struct rootfs r = {0};

	fixture_init(f);
	r.tree = f->t;
	r.pool = f->p;
	assert_int_equal(python_prepare(&r, &p, "3.11", &f->e), -1);
	assert_string_equal(f->e.text, "/python/interpreter: the image has no /usr/bin/python3");
	put(f, "usr/bin/python3.11", "");
	need(rootfs_link(&r, "usr/bin/python3", "python3.11", &f->e));
	f->e = (struct err){0};
	assert_int_equal(python_prepare(&r, &p, "3.12", &f->e), -1);
	assert_string_equal(
		f->e.text, "/python/interpreter: /usr/bin/python3 is Python 3.11, not 3.12");
	need(python_prepare(&r, &p, "3.11", &f->e));
	p.prefix = "/opt/a'b";
	f->e = (struct err){0};
	assert_int_equal(python_prepare(&r, &p, "3.11", &f->e), -1);
	assert_non_null(strstr(f->e.text, "quotes"));
	fixture_fini(f);
}

TEST(the_c_library_of_a_base_image_is_found)
{
	static const struct {
		const char *path, *text, *apk;
		struct python_base want;
	} cases[] = {{"usr/lib/x86_64-linux-gnu/libc.so.6",
			     "\177ELF GNU C Library (Debian GLIBC 2.36-9) stable release version "
			     "2.36.\n",
			     NULL, {.glibc_major = 2, .glibc_minor = 36}},
		{"usr/lib64/libc.so.6", "GNU C Library (GNU libc) stable release version 2.28.",
			NULL, {.glibc_major = 2, .glibc_minor = 28}},
		{"lib/ld-musl-x86_64.so.1", "x", "P:a\nV:9.9\n\nP:musl\nV:1.2.4-r2\n",
			{.musl_major = 1, .musl_minor = 2}},
		{"lib/ld-musl-x86_64.so.1", "x", "", {.musl_major = 1, .musl_minor = 1}},
		{"usr/lib/libc.so.6", "GNU C Library (x) version x", NULL, {0}}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture fx, *f = &fx;
		struct python_base b;
		struct rootfs r = {0};

		fixture_init(f);
		r.tree = f->t;
		r.pool = f->p;
		put(f, cases[i].path, cases[i].text);
		if (cases[i].apk)
			put(f, "lib/apk/db/installed", cases[i].apk);
		python_base_find(&b, &r, "x86_64", NULL);
		assert_memory_equal(&b, &cases[i].want, sizeof(b));
		fixture_fini(f);
	}
}

RUN_TESTS(cmocka_unit_test(the_c_library_of_a_base_image_is_found),
	cmocka_unit_test(what_is_installed_is_what_interpreters_look_for),
	cmocka_unit_test(a_guard_names_all_that_is_not_as_it_says),
	cmocka_unit_test(what_an_extra_needs_is_installed),
	cmocka_unit_test(a_base_image_tells_its_interpreter),
	cmocka_unit_test(a_virtual_environment_is_made_where_there_is_none),
	cmocka_unit_test(the_interpreter_must_be_there_and_of_that_version))
