#include "tests/unit/zip-make.h"

#include "base/str.h"
#include "builder/pylock.h"
#include "builder/python-index.h"
#include "builder/python.h"
#include "builder/requirements.h"

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HASH "hashes = {sha256 = '" SHA "'}"
#define HEAD "lock-version = '1.0'\ncreated-by = 'test'\n"

/* A Debian 12 image's lock, and a folder with a manifest. */
struct site {
	char dir[32];
	int fd;
	struct lock l;
	struct lock_deb debs[3];
	struct manifest m;
	struct config config;
	struct mirrors mirrors;
	struct err e;
};

static void setup(struct site *s)
{
	*s = (struct site){.dir = "/tmp/svrun-test-XXXXXX",
		.debs = {{.name = "libc6", .version = "2.36-9+deb12u10"},
			{.name = "python3", .version = "3.11.2-1+b1"},
			{.name = "python3.11-minimal", .version = "3.11.2-6+deb12u6"}},
		.m.python = {
			.present = true, .interpreter = "/usr/bin/python3", .prefix = "/opt/venv"}};
	assert_non_null(mkdtemp(s->dir));
	s->fd = sys_open(s->dir, O_RDONLY | O_DIRECTORY, 0);
	s->m.dir = s->dir;
	s->l.platform = "linux/amd64";
	s->l.debs = s->debs;
	s->l.ndebs = 3;
	s->config.path = mem_strdup("config.json");
	s->config.mirrors = json_object();
	mirrors_init(&s->mirrors, &s->config);
}

static void teardown(struct site *s)
{
	mirrors_fini(&s->mirrors);
	json_decref(s->config.mirrors);
	free(s->config.path);
	arena_fini(&s->l.arena);
	close(s->fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, s->dir), 0);
}

static void put(struct site *s, const char *path, const char *text)
{
	assert_int_equal(file_write(s->fd, path, text, strlen(text), 0644, NULL), 0);
}

static int lock(struct site *s, const char *file, const char *text)
{
	s->m.python.lock = file;
	put(s, file, text);
	return python_lock(&s->l, &s->m, &s->mirrors, NULL, &s->e);
}

static void locks(struct site *s, const char *file, const char *text)
{
	if (lock(s, file, text) < 0)
		fail_msg("%s", s->e.text);
}

static void refuses(const char *file, const char *text, const char *code, const char *why)
{
	struct site s;

	setup(&s);
	if (lock(&s, file, text) == 0)
		fail_msg("taken: %s", text);
	if (!strstr(s.e.text, code) || !strstr(s.e.text, why))
		fail_msg("expected %s: %s, got: %s", code, why, s.e.text);
	assert_int_not_equal(s.e.kind, ERR_SYSTEM);
	teardown(&s);
}

/* ---- the interpreter ---- */

TEST(the_interpreter_is_that_of_the_debs)
{
	struct site s;

	setup(&s);
	assert_string_equal(python_of_lock(&s.l), "3.11");
	assert_string_equal(glibc_of_lock(&s.l), "2.36");
	s.debs[1].name = "python3-six";
	assert_string_equal(python_of_lock(&s.l), "3.11");
	s.debs[2].name = "python3.11-dev";
	assert_null(python_of_lock(&s.l));
	s.debs[0].name = "libc6-dev";
	assert_null(glibc_of_lock(&s.l));
	teardown(&s);
}

/* ---- pylock.toml ---- */

TEST(the_best_wheel_of_each_package_is_locked)
{
	struct site s;

	setup(&s);
	locks(&s, "pylock.toml",
		HEAD
		"requires-python = '>=3.9'\nenvironments = [\"sys_platform == 'linux'\"]\n"
		"[[packages]]\nname = 'numpy'\nversion = '1.26.4'\n"
		"dependencies = [{name = 'tiny'}]\nwheels = [\n"
		"{url = 'https://h/numpy-1.26.4-cp310-cp310-manylinux_2_17_x86_64.whl', "
		"size = 5, " HASH "},\n"
		"{url = 'https://h/numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.whl', "
		"size = 6, " HASH "},\n"
		"{url = 'https://h/numpy-1.26.4-cp311-cp311-manylinux_2_40_x86_64.whl', "
		"size = 7, " HASH "},\n"
		"{url = 'https://h/numpy-1.26.4-cp311-cp311-win_amd64.whl', size = 8, " HASH "}]\n"
		"[[packages]]\nname = 'tiny'\nversion = '2.0.0'\nwheels = ["
		"{name = 'tiny-2.0.0-py3-none-any.whl', url = 'mirror:pypi/x?y', size = 9, " HASH
		"}]\n"
		"[[packages]]\nname = 'colorama'\nmarker = \"os_name == 'nt'\"\n"
		"sdist = {}\n");
	assert_int_equal(s.l.nwheels, 2);
	assert_string_equal(s.l.wheels[0].name, "numpy");
	assert_string_equal(
		s.l.wheels[0].file, "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.whl");
	assert_int_equal(s.l.wheels[0].size, 6);
	assert_string_equal(s.l.wheels[0].why.v[0], "pylock.toml");
	assert_string_equal(s.l.wheels[1].url, "mirror:pypi/x?y");
	assert_string_equal(s.l.wheels[1].why.v[0], "numpy");
	teardown(&s);
}

TEST(the_same_lock_in_json_is_taken)
{
	struct site s;

	setup(&s);
	locks(&s, "a.pylock.json",
		"{\"lock-version\": \"1.0\", \"created-by\": \"x\", \"packages\": [{\"name\": "
		"\"tiny\", \"wheels\": [{\"url\": \"https://h/tiny-2.0-py3-none-any.whl\", "
		"\"size\": 1, \"hashes\": {\"sha256\": \"" SHA "\"}}]}]}");
	assert_int_equal(s.l.nwheels, 1);
	assert_string_equal(s.l.wheels[0].version, "2.0");
	teardown(&s);
}

TEST(paths_in_a_lock_are_beside_it)
{
	struct site s;

	setup(&s);
	assert_int_equal(sys_mkdirat(s.fd, "deps", 0755), 0);
	put(&s, "tiny-2.0-py3-none-any.whl", "12345");
	locks(&s, "deps/pylock.toml",
		HEAD "[[packages]]\nname = 'tiny'\nwheels = [{path = "
		     "'../tiny-2.0-py3-none-any.whl', " HASH "}]\n");
	assert_string_equal(s.l.wheels[0].url, "file:tiny-2.0-py3-none-any.whl");
	assert_int_equal(s.l.wheels[0].size, 5);
	teardown(&s);
}

#define PACKAGE(rest) HEAD "[[packages]]\nname = 'a'\nversion = '1'\n" rest
#define WHEEL "wheels = [{url = 'https://h/a-1-py3-none-any.whl', size = 1, " HASH "}]\n"

TEST(locks_that_cannot_be_installed_are_refused_by_name)
{
	static const struct {
		const char *text, *code, *why;
	} cases[] = {{PACKAGE("sdist = {name = 'a-1.tar.gz'}\n"), "SV051",
			     "a 1 has no wheel, only sdist"},
		{PACKAGE("vcs = {}\n"), "SV051", "only vcs"},
		{PACKAGE("directory = {}\n"), "SV051", "only directory"},
		{PACKAGE(""), "SV052", "a 1"},
		{PACKAGE("wheels = [{url = 'https://h/a-1-cp39-cp39-win32.whl', size = 1, " HASH
			 "}]\n"),
			"SV052",
			"a 1: no wheel fits Python 3.11 on x86_64 with glibc 2.36; there are: "
			"a-1-cp39"},
		{PACKAGE("wheels = [{url = 'https://h/a-1-py3-none-any.whl'}]\n"), "SV053",
			"has no sha256"},
		{PACKAGE("wheels = [{url = 'https://h/a-1-py3-none-any.whl', hashes = {sha256 = "
			 "'12'}}]\n"),
			"SV054", "64 lower-case hex"},
		{PACKAGE("wheels = [{" HASH "}]\n"), "SV053", "without url and path"},
		{PACKAGE("wheels = [{url = 'ftp://h/a-1-py3-none-any.whl', " HASH "}]\n"), "SV053",
			"neither https:// nor mirror:"},
		{PACKAGE("wheels = [{path = '../../a-1-py3-none-any.whl', " HASH "}]\n"), "SV053",
			"leads out"},
		{PACKAGE("wheels = [{path = '/a-1-py3-none-any.whl', " HASH "}]\n"), "SV053",
			"leads out"},
		{PACKAGE("wheels = [{url = 'https://h/a-2-py3-none-any.whl', " HASH "}]\n"),
			"SV174", "is of version 2"},
		{PACKAGE("wheels = [{url = 'https://h/b-1-py3-none-any.whl', " HASH "}]\n"),
			"SV054", "of another package"},
		{PACKAGE("requires-python = '<3.9'\n" WHEEL), "SV052", "a needs Python <3.9"},
		{PACKAGE("marker = \"os_name = 'a'\"\n" WHEEL), "SV054", "expected an operator"},
		{PACKAGE(WHEEL) "[[packages]]\nname = 'a'\nwheels = [{url = "
				"'https://h/a-2-py3-none-any.whl', size = 1, hashes = {sha256 = "
				"'1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'"
				"}}]\n",
			"SV055", "a is there twice"},
		{HEAD "environments = [\"sys_platform == 'win32'\"]\npackages = []\n", "SV052",
			"none of its 1 environments"},
		{HEAD "requires-python = '>=3.12'\npackages = []\n", "SV052",
			"needs Python >=3.12"},
		{"lock-version = '2.0'\ncreated-by = 'x'\npackages = []\n", "SV054",
			"lock-version is '2.0'"},
		{"packages = []\n", "SV054", "expected lock-version"}, {HEAD, "SV054", "packages"},
		{HEAD "packages = 1\n", "SV054", "packages"},
		{HEAD "packages = [1]\n", "SV054", "expected tables"},
		{HEAD "[[packages]]\nname = 'A_b'\n" WHEEL, "SV054", "normal form"},
		{"a = [", "SV054", "pylock.toml:1:6"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refuses("pylock.toml", cases[i].text, cases[i].code, cases[i].why);
}

/* ---- requirements ---- */

/* A wheel beside the manifest; its digest in hex. */
static void put_wheel(struct site *s, const char *path, char hex[DIGEST_HEX + 1])
{
	struct digest d = digest_of(path, strlen(path));

	put(s, path, path);
	digest_hex(&d, hex);
}

TEST(requirements_are_found_in_folders_beside_them)
{
	char hex[DIGEST_HEX + 1], native[DIGEST_HEX + 1], other[DIGEST_HEX + 1];
	auto_free char *text = NULL;
	struct site s;

	setup(&s);
	assert_int_equal(sys_mkdirat(s.fd, "wheels", 0755), 0);
	put_wheel(&s, "wheels/Foo_Bar-1.0-py3-none-any.whl", hex);
	put_wheel(&s, "wheels/Foo_Bar-1.0-cp311-cp311-manylinux2014_x86_64.whl", native);
	put_wheel(&s, "wheels/foo_bar-2.0-py3-none-any.whl", other);
	put(&s, "wheels/README", "");
	text = mem_printf(
		"# made by hand\n--no-index\n--find-links ./wheels/\n"
		"foo.bar==1.0.0 ; python_version >= '3.8' \\\n"
		"    --hash=sha256:%s \\\n    --hash=sha256:%s\n    # via\n    #   Flask\n"
		"gone==1 ; os_name == 'nt' --hash=sha256:" SHA "\n    # via nothing\n",
		hex, native);
	locks(&s, "requirements.txt", text);
	assert_int_equal(s.l.nwheels, 1);
	assert_string_equal(
		s.l.wheels[0].url, "file:wheels/Foo_Bar-1.0-cp311-cp311-manylinux2014_x86_64.whl");
	assert_string_equal(s.l.wheels[0].name, "foo-bar");
	assert_int_equal(s.l.wheels[0].why.n, 1);
	assert_string_equal(s.l.wheels[0].why.v[0], "flask");
	teardown(&s);
}

TEST(requirements_may_be_paths_of_wheels)
{
	char hex[DIGEST_HEX + 1];
	auto_free char *text = NULL;
	struct site s;

	setup(&s);
	put_wheel(&s, "tiny-2.0-py3-none-any.whl", hex);
	text = mem_printf("./tiny-2.0-py3-none-any.whl --hash sha256:%s\n", hex);
	locks(&s, "requirements.txt", text);
	assert_string_equal(s.l.wheels[0].url, "file:tiny-2.0-py3-none-any.whl");
	assert_int_equal(s.l.wheels[0].extras.n, 0);

	/* the same as a name; its extras are kept for when it is known what they need */
	free(text);
	text = mem_printf("--no-index\n-f .\nTiny[socks, Big_One]==2.0 --hash sha256:%s\n", hex);
	locks(&s, "requirements.txt", text);
	assert_int_equal(s.l.wheels[0].extras.n, 2);
	assert_string_equal(s.l.wheels[0].extras.v[0], "big-one");
	assert_string_equal(s.l.wheels[0].extras.v[1], "socks");
	teardown(&s);
}

TEST(requirements_include_others_and_their_limits)
{
	char hex[DIGEST_HEX + 1];
	auto_free char *text = NULL;
	struct site s;

	setup(&s);
	assert_int_equal(sys_mkdirat(s.fd, "sub", 0755), 0);
	put_wheel(&s, "sub/tiny-2.0-py3-none-any.whl", hex);
	text = mem_printf("-r ../requirements.txt # once is enough\n--no-index\n-f .\n"
			  "-c limits.txt\ntiny==2 --hash=sha256:%s\n",
		hex);
	put(&s, "sub/base.txt", text);
	put(&s, "sub/limits.txt",
		"tiny<=2.0,>1 --hash=sha256:" SHA "\nother<1\ntiny<1 ; os_name == 'nt'\ntiny\n");
	locks(&s, "requirements.txt", "--requirement=sub/base.txt\n");
	assert_int_equal(s.l.nwheels, 1);
	assert_string_equal(s.l.wheels[0].url, "file:sub/tiny-2.0-py3-none-any.whl");
	assert_string_equal(s.l.wheels[0].why.v[0], "sub/base.txt");

	put(&s, "sub/limits.txt", "\ntiny!=2.0\n");
	assert_int_equal(lock(&s, "requirements.txt", "--requirement=sub/base.txt\n"), -1);
	assert_string_equal(s.e.text,
		"sub/base.txt:5: SV053: tiny 2.0 is not what sub/limits.txt:2 allows: !=2.0");
	teardown(&s);
}

TEST(requirements_that_are_not_pinned_are_refused_with_their_line)
{
	static const struct {
		const char *text, *code, *why;
	} cases[] = {{"\na==1\n", "SV053", "requirements.txt:2: no --hash=sha256"},
		{"a==1 --hash=md5:00\n", "SV053", "no --hash=sha256"},
		{"a>=1 --hash=sha256:" SHA "\n", "SV053", "not pinned to one version"},
		{"a==1.* --hash=sha256:" SHA "\n", "SV053", "not pinned to one version"},
		{"a --hash=sha256:" SHA "\n", "SV053", "not pinned"},
		{"a @ https://h/a-1-py3-none-any.whl --hash=sha256:" SHA "\n", "SV053", "address"},
		{"./a-1.tar.gz --hash=sha256:" SHA "\n", "SV051", "no wheel"},
		{"-e .\n", "SV054", "an option that is not taken: -e ."},
		{"\n-r other.txt\n", "other.txt: No such file", "requirements.txt:2: open "},
		{"-r ../other.txt\n", "SV054", "requirements.txt:1: "},
		{"-c limits\\\n.txt\n", "", "requirements.txt:1: "},
		{"--index-url https://h/simple\n", "SV054", "an option that is not taken"},
		{"--find-links https://h/\n", "SV054", "takes folders beside it"},
		{"a==1 --hash=sha256:12\n", "SV054", "64 hex digits"},
		{"a==1 --config-settings x=y\n", "SV054", "not taken: --config-settings"},
		{"a==${V}\n", "SV054", "variables are not expanded"},
		{"a==1 ; os_name = 'x' --hash=sha256:" SHA "\n", "SV054", "expected an operator"},
		{"\xff\n", "SV054", "UTF-8"},
		{"--no-index\na==1 --hash=sha256:" SHA "\n", "SV053", "no folder of --find-links"},
		{"./../a-1-py3-none-any.whl --hash=sha256:" SHA "\n", "SV053", "leads out"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refuses("requirements.txt", cases[i].text, cases[i].code, cases[i].why);
}

/* ---- the manifest's wheels ---- */

TEST(the_manifests_wheels_are_checked_and_locked)
{
	struct wheel_pin pin = {.name = "Tiny",
		.version = "2.0.0",
		.file = "tiny-2.0.0-py3-none-any.whl",
		.path = "tiny.whl",
		.size = 8};
	struct pair guard = {"tiny", "2.*"};
	struct site s;

	setup(&s);
	put(&s, "tiny.whl", "tiny.whl");
	pin.sha256 = digest_of("tiny.whl", 8);
	s.m.python.wheels = &pin;
	s.m.python.nwheels = 1;
	s.m.python.guard = (struct pairs){&guard, 1};
	if (python_lock(&s.l, &s.m, &s.mirrors, NULL, &s.e) < 0)
		fail_msg("%s", s.e.text);
	assert_string_equal(s.l.wheels[0].url, "file:tiny.whl");
	assert_string_equal(s.l.wheels[0].why.v[0], "manifest:/python/wheels/0");
	guard.value = "==1.*";
	assert_int_equal(python_lock(&s.l, &s.m, &s.mirrors, NULL, &s.e), -1);
	assert_non_null(strstr(s.e.text, "SV050: /python/guard: tiny would be 2.0.0, not ==1.*"));
	pin.size = 9;
	assert_int_equal(python_lock(&s.l, &s.m, &s.mirrors, NULL, &s.e), -1);
	assert_non_null(strstr(s.e.text, "expected 9 bytes, found 8"));
	assert_non_null(strstr(s.e.text, "manifest.json:1:1: /python/wheels/0: "));
	pin.version = "2.0.1";
	assert_int_equal(python_lock(&s.l, &s.m, &s.mirrors, NULL, &s.e), -1);
	assert_non_null(strstr(s.e.text, "SV174"));
	teardown(&s);
}

TEST(without_an_interpreter_nothing_can_be_chosen)
{
	struct site s;

	setup(&s);
	s.l.ndebs = 1;
	assert_int_equal(lock(&s, "pylock.toml", HEAD "packages = []\n"), -1);
	assert_non_null(strstr(s.e.text,
		"/python/interpreter: no package of the lock brings /usr/bin/python3, so"));
	s.m.python.interpreter = "/usr/bin/python3.12";
	assert_int_equal(lock(&s, "pylock.toml", HEAD "packages = []\n"), 0);
	teardown(&s);
}

/* ---- the index ---- */

TEST(pages_of_an_index_are_read)
{
	static const char html[] =
		"<!DOCTYPE html><html><body>\n<a href=\"../../p/a-1-py3-none-any.whl#sha256=" SHA
		"\" data-x='y'>a-1-py3-none-any.whl</a><br>\n"
		"<A HREF='https://else.where/q/a-1%2B2-py3-none-any.whl?x=1&amp;y=2#sha256=" SHA
		"'>x</A>\n<a href=\"no-hash-1-py3-none-any.whl\">x</a>"
		"<a href='http://else.where/a-3-py3-none-any.whl#sha256=" SHA "'>x</a><a";
	static const char json[] =
		" {\"files\": [{\"filename\": \"a-1.whl\", \"url\": "
		"\"/root/p/a-1.whl\", \"size\": 7, \"hashes\": {\"sha256\": \"" SHA
		"\"}}, {\"filename\": \"b\", \"url\": \"b\", \"hashes\": {}}]}";
	static const char base[] = "http://mirror.local/root";
	static const char at[] = "http://mirror.local/root/simple/a/";
	struct arena a = {0};
	struct wheel_offer *v;
	struct err e = {0};
	size_t n;

	assert_int_equal(python_index_parse(&a, base, at, html, strlen(html), &v, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_string_equal(v[0].url, "mirror:pypi/p/a-1-py3-none-any.whl");
	assert_string_equal(v[0].file, "a-1-py3-none-any.whl");
	assert_string_equal(v[1].url, "https://else.where/q/a-1%2B2-py3-none-any.whl?x=1&y=2");
	assert_string_equal(v[1].file, "a-1+2-py3-none-any.whl");
	assert_int_equal(python_index_parse(&a, base, at, json, strlen(json), &v, &n, &e), 0);
	assert_int_equal(n, 1);
	assert_string_equal(v[0].url, "mirror:pypi/p/a-1.whl");
	assert_int_equal(v[0].size, 7);
	arena_fini(&a);
}

RUN_TESTS(cmocka_unit_test(the_interpreter_is_that_of_the_debs),
	cmocka_unit_test(the_best_wheel_of_each_package_is_locked),
	cmocka_unit_test(the_same_lock_in_json_is_taken),
	cmocka_unit_test(paths_in_a_lock_are_beside_it),
	cmocka_unit_test(locks_that_cannot_be_installed_are_refused_by_name),
	cmocka_unit_test(requirements_are_found_in_folders_beside_them),
	cmocka_unit_test(requirements_may_be_paths_of_wheels),
	cmocka_unit_test(requirements_include_others_and_their_limits),
	cmocka_unit_test(requirements_that_are_not_pinned_are_refused_with_their_line),
	cmocka_unit_test(the_manifests_wheels_are_checked_and_locked),
	cmocka_unit_test(without_an_interpreter_nothing_can_be_chosen),
	cmocka_unit_test(pages_of_an_index_are_read))
