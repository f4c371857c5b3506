#include "images/packages.h"

#include "base/str.h"
#include "tests/unit/fixture.h"

static void put_text(struct fixture *f, const char *path, const char *text)
{
	struct chunk c;
	struct attr a = {.type = NODE_FILE,
		.mode = 0644,
		.size = strlen(text),
		.nchunks = text[0] != 0,
		.chunks = &c};

	if (text[0])
		need(pool_put(f->p, text, (uint32_t)strlen(text), &c, &f->e));
	put_node(f, path, &a);
}

/* "KIND NAME WHERE VERSION" lines. */
static void assert_packages(struct fixture *f, const char *want)
{
	struct packages l;
	auto_buf struct buf b = BUF_INIT(1 << 20);

	tree_sort(f->t);
	need(pool_commit(f->p, &f->e));
	need(packages_list(&l, f->t, f->p, &f->e));
	buf_printf(&b, "%s", "");
	for (size_t i = 0; i < l.n; i++)
		buf_printf(&b, "%s %s %s %s\n", l.v[i].kind, l.v[i].name, l.v[i].where,
			l.v[i].version);
	assert_string_equal(b.data, want);
	packages_fini(&l);
}

TEST(an_empty_image_has_no_packages)
{
	struct fixture fix, *f = &fix;

	fixture_init(f);
	assert_packages(f, "");
	fixture_fini(f);
}

TEST(dpkg_lists_what_is_installed)
{
	struct fixture fix, *f = &fix;

	fixture_init(f);
	put_text(f, "var/lib/dpkg/status",
		"Package: zlib1g\nStatus: install ok installed\nArchitecture: amd64\n"
		"Description: x\n Package: no\nVersion: 1:1.2-3\n\n"
		"Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n\n"
		"Package: half\nStatus: install ok half-installed\nVersion: 1\n\n"
		"Package: nameless-version\nStatus: install ok installed\n\n"
		"Package: last\nStatus: hold ok installed\nArchitecture: all\nVersion: 2");
	put_text(f, "var/lib/dpkg/status.d/base", "Package: base\nVersion: 3\n");
	put_text(f, "var/lib/dpkg/status.d/base.md5sums", "Package: no\nVersion: 3\n");
	put_text(f, "var/lib/dpkg/status.d/empty", "");
	assert_packages(f, "deb base  3\ndeb last all 2\ndeb zlib1g amd64 1:1.2-3\n");
	fixture_fini(f);
}

TEST(dpkg_says_of_what_source_a_package_is)
{
	struct fixture fix, *f = &fix;
	struct packages l;

	fixture_init(f);
	put_text(f, "var/lib/dpkg/status",
		"Package: libssl3\nsource:  openssl (3.0-1) \nVersion: 3.0-1+b1\t\nSource: no\n "
		"\t\n"
		"Package: plain\nVersion: 1\r\n");
	tree_sort(f->t);
	need(pool_commit(f->p, &f->e));
	need(packages_list(&l, f->t, f->p, &f->e));
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[0].source, "openssl (3.0-1)");
	assert_string_equal(l.v[0].version, "3.0-1+b1");
	assert_null(l.v[1].source);
	assert_string_equal(l.v[1].version, "1");
	packages_fini(&l);
	fixture_fini(f);
}

TEST(npm_packages_are_what_node_modules_holds)
{
	struct fixture fix, *f = &fix;

	fixture_init(f);
	put_text(f, "a/node_modules/x/package.json", "{\"name\":\"x\",\"version\":\"1\"}");
	put_text(f, "a/node_modules/x/node_modules/x/package.json",
		"{\"name\":\"x\",\"version\":\"0\"}");
	put_text(f, "a/node_modules/@s/y/package.json", "{\"name\":\"@s/y\",\"version\":\"2\"}");
	put_text(f, "a/node_modules/x/lib/package.json", "{\"name\":\"no\",\"version\":\"1\"}");
	put_text(f, "a/node_modules/bad/package.json", "{");
	put_text(f, "a/node_modules/odd/package.json", "{\"name\":1,\"version\":[]}");
	put_text(f, "package.json", "{\"name\":\"no\",\"version\":\"1\"}");
	assert_packages(f, "npm @s/y a/node_modules/@s/y 2\nnpm x a/node_modules/x 1\n"
			   "npm x a/node_modules/x/node_modules/x 0\n");
	fixture_fini(f);
}

TEST(python_packages_are_told_by_their_folders)
{
	struct fixture fix, *f = &fix;
	const struct attr dir = {.type = NODE_DIR, .mode = 0755};

	fixture_init(f);
	put_node(f, "lib/foo-1.2.dist-info", &dir);
	put_node(f, "lib/bar-2-py3.11.egg-info", &dir);
	put_node(f, "lib/noversion.dist-info", &dir);
	put_node(f, "lib/-1.dist-info", &dir);
	put_text(f, "lib/file-1.dist-info", "x");
	assert_packages(f, "python bar lib 2\npython foo lib 1.2\n");
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(an_empty_image_has_no_packages),
	cmocka_unit_test(dpkg_lists_what_is_installed),
	cmocka_unit_test(dpkg_says_of_what_source_a_package_is),
	cmocka_unit_test(npm_packages_are_what_node_modules_holds),
	cmocka_unit_test(python_packages_are_told_by_their_folders))
