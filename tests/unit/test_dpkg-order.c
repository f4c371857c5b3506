#include "tests/unit/fixture.h"

#include "base/str.h"
#include "builder/preinst.h"

struct world {
	struct fixture f;
	struct rootfs r;
	struct dpkg_order order;
	struct buf status, out;
};

static void setup(struct world *w)
{
	*w = (struct world){.status = BUF_INIT(1 << 20), .out = BUF_INIT(1 << 20)};
	fixture_init(&w->f);
	w->r = (struct rootfs){.tree = w->f.t, .pool = w->f.p};
}

static void teardown(struct world *w)
{
	buf_fini(&w->status);
	buf_fini(&w->out);
	dpkg_order_fini(&w->order);
	fixture_fini(&w->f);
}

static void put(struct world *w, const char *path, const char *text)
{
	struct fixture *f = &w->f;

	need(rootfs_file(&w->r, path, text, strlen(text), (struct owner){.mode = 0755}, &f->e));
}

/* A package with a preinst script: NAME, or NAME:ARCH of one that is Multi-Arch: same. */
static void package(struct world *w, const char *file, const char *fields)
{
	auto_free char *path = mem_printf("var/lib/dpkg/info/%s.preinst", file);
	const char *colon = strchr(file, ':');

	buf_printf(&w->status, "Package: %.*s\nArchitecture: amd64\n%s%s\n",
		(int)(colon ? colon - file : (long)strlen(file)), file,
		colon ? "Multi-Arch: same\n" : "", fields);
	put(w, path, "#!/bin/sh\n");
}

/* The packages in the order of their scripts, with a space behind each. */
static void expect_order(struct world *w, const char *want)
{
	struct fixture *f = &w->f;
	auto_buf struct buf got = BUF_INIT(1 << 16);
	const char *p;

	put(w, "var/lib/dpkg/status", w->status.data ? w->status.data : "");
	need(dpkg_order_read(&w->order, &w->r, &f->e));
	preinst_text(&w->order, &w->out);
	for (p = w->out.data; p && (p = strstr(p, "\npreinst ")); p++)
		buf_printf(&got, "%.*s ", (int)strcspn(p + 9, " "), p + 9);
	assert_string_equal(got.data ? got.data : "", want);
}

TEST(scripts_come_after_those_of_what_a_package_needs)
{
	struct world w;

	setup(&w);
	package(&w, "a", "Depends: c (>= 1), gone | b:any\n");
	package(&w, "b", "Pre-Depends: virtual\n");
	package(&w, "base-passwd", "Depends: d\n");
	package(&w, "c", "");
	package(&w, "d:amd64", "");
	package(&w, "e", "Essential: yes\nDepends: f\n");
	package(&w, "f", "Depends: e\n"); /* a circle */
	package(&w, "real", "Provides: other (= 1), virtual\n");
	expect_order(&w, "d:amd64 base-passwd f e c real b a ");
	teardown(&w);
}

TEST(packages_without_a_script_are_gone_through_but_not_listed)
{
	struct world w;

	setup(&w);
	package(&w, "a", "Depends: b\n");
	buf_printf(&w.status, "Package: b\nArchitecture: all\nDepends: c\n\n");
	package(&w, "c", "");
	expect_order(&w, "c a ");
	teardown(&w);
	setup(&w);
	buf_printf(&w.status, "Package: b\nArchitecture: all\n\n");
	expect_order(&w, "");
	assert_int_equal(w.out.len, 0);
	teardown(&w);
}

TEST(a_name_that_the_shell_would_read_is_refused)
{
	static const char *const bad[] = {"Package: a;b\nArchitecture: all\n",
		"Package: a\nArchitecture: $(x)\n", "Architecture: all\n"};

	for (size_t i = 0; i < 3; i++) {
		struct world w;

		setup(&w);
		put(&w, "var/lib/dpkg/status", bad[i]);
		assert_int_equal(dpkg_order_read(&w.order, &w.r, &w.f.e), -1);
		assert_int_equal(w.f.e.kind, ERR_CORRUPT);
		teardown(&w);
	}
}

/* Those that may be configured while Python compiles. */
TEST(what_runs_python_or_needs_what_does_is_marked)
{
	struct world w;
	struct fixture *f = &w.f;
	auto_buf struct buf got = BUF_INIT(1 << 16);

	setup(&w);
	package(&w, "alternative", "Depends: lib | provided\n"); /* dpkg may take either */
	package(&w, "app", "Depends: module\n");
	package(&w, "circle", "Pre-Depends: loop\n");
	package(&w, "interpreter", "Depends: lib\n");
	package(&w, "lib:amd64", "");
	package(&w, "loop", "Depends: circle, app\n");
	package(&w, "module", "Depends: gone\nProvides: provided\n");
	package(&w, "tool", "Depends: lib, gone | tool\nRecommends: module\n");
	put(&w, "var/lib/dpkg/info/interpreter.postinst", "#!/bin/sh\n/usr/bin/python3.11 -V\n");
	put(&w, "var/lib/dpkg/info/lib:amd64.postinst", "#!/bin/sh\ncopy\n");
	put(&w, "var/lib/dpkg/info/module.postinst", "#!/bin/sh\npy3compile -p module\n");
	put(&w, "var/lib/dpkg/status", w.status.data);
	need(dpkg_order_read(&w.order, &w.r, &f->e));
	for (size_t i = 0; i < w.order.n; i++)
		if (!w.order.v[i].python)
			buf_printf(&got, "%s ", w.order.v[i].file);
	assert_string_equal(got.data, "lib:amd64 tool ");
	teardown(&w);
}

RUN_TESTS(cmocka_unit_test(scripts_come_after_those_of_what_a_package_needs),
	cmocka_unit_test(packages_without_a_script_are_gone_through_but_not_listed),
	cmocka_unit_test(a_name_that_the_shell_would_read_is_refused),
	cmocka_unit_test(what_runs_python_or_needs_what_does_is_marked))
