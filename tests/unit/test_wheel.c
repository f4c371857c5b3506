#include "tests/unit/zip-make.h"

#include <dirent.h>
#include <glob.h>

#include "base/proc.h"
#include "base/str.h"
#include "builder/python.h"
#include "builder/wheel.h"

/* ---- unpacking ---- */

static const struct manifest_python venv = {
	.present = true, .interpreter = "/usr/bin/python3.11", .prefix = "/opt/venv"};

static int unpack_as(struct fixture *f, int fd, const struct lock_wheel *w,
	const struct manifest_python *p, struct entries *out)
{
	int rc;

	f->e = (struct err){0};
	rc = wheel_unpack(w, p, "3.11", fd, f->p, out, &f->e);
	close(fd);
	return rc;
}

static int unpack(struct fixture *f, int fd, struct entries *out)
{
	const struct lock_wheel w = {.name = "demo",
		.version = "1.0",
		.file = "demo-1.0-py3-none-any.whl",
		.url = "mirror:pypi/demo.whl"};

	return unpack_as(f, fd, &w, &venv, out);
}

static const struct attr *attr_of(const struct entries *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i].path, path))
			return &l->v[i].a;
	return NULL;
}

/* The whole content of a file that was unpacked; to be freed. */
static char *text_of(struct fixture *f, const struct attr *a, size_t *n)
{
	char *text = mem_alloc(a->size + CHUNK_SIZE + 1);

	*n = 0;
	for (uint32_t i = 0; i < a->nchunks; i++) {
		need(pool_read(f->p, &a->chunks[i], text + *n, &f->e));
		*n += a->chunks[i].length;
	}
	text[*n] = '\0';
	return text;
}

static void has_text(struct fixture *f, const struct entries *l, const char *path, const char *text)
{
	const struct attr *a = attr_of(l, path);
	auto_free char *found = NULL;
	size_t n;

	if (!a)
		fail_msg("%s is not there", path);
	found = text_of(f, a, &n);
	assert_string_equal(found, text);
}

#define LIB "opt/venv/lib/python3.11/site-packages/"

TEST(a_wheel_is_unpacked_with_its_programs_and_a_new_record)
{
	struct fixture fx, *f = &fx;
	struct entries out = {0};
	struct hand_zip z;

	fixture_init(f);
	wheel_begin(&z);
	z.mode = S_IFDIR | 0755;
	zip_add(&z, "demo/", "", 0);
	zip_text(&z, "demo/__init__.py", "x = 1\n");
	z.mode = S_IFREG | 0750;
	zip_text(&z, "demo/tool", "#!/bin/sh\n");
	zip_text(&z, "demo-1.0.dist-info/entry_points.txt",
		"[console_scripts]\n# comment\ndemo-cli = demo.cli:App.run [extra]\n\n"
		"[other]\nx = y\n[gui_scripts]\ndemo-gui=demo:gui\n");
	zip_text(&z, "demo-1.0.data/scripts/old", "#!python -u\nprint(1)\n");
	zip_text(&z, "demo-1.0.data/scripts/demo-cli", "#!python\nnot this\n");
	zip_text(&z, "demo-1.0.data/scripts/short", "#!py");
	zip_text(&z, "demo-1.0.data/data/share/demo.txt", "data\n");
	zip_text(&z, "demo-1.0.data/headers/demo.h", "int x;\n");
	zip_text(&z, "demo-1.0.data/platlib/demo_native.so", "\177ELF");
	zip_text(&z, "demo-1.0.data/purelib/demo_pure.py", "");
	need(unpack(f, wheel_finish(&z), &out));
	assert_int_equal(attr_of(&out, LIB "demo/__init__.py")->mode, 0644);
	assert_int_equal(attr_of(&out, LIB "demo/tool")->mode, 0755);
	assert_int_equal(attr_of(&out, "opt/venv/bin/short")->mode, 0755);
	assert_int_equal(attr_of(&out, "opt/venv/bin/demo-cli")->mode, 0755);
	has_text(f, &out, "opt/venv/bin/old", "#!/opt/venv/bin/python\nprint(1)\n");
	has_text(f, &out, "opt/venv/bin/short", "#!py");
	has_text(f, &out, "opt/venv/bin/demo-cli",
		"#!/opt/venv/bin/python\n# -*- coding: utf-8 -*-\nimport re\nimport sys\n"
		"from demo.cli import App\nif __name__ == '__main__':\n"
		"    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n"
		"    sys.exit(App.run())\n");
	has_text(f, &out, "opt/venv/share/demo.txt", "data\n");
	has_text(f, &out, "opt/venv/include/site/python3.11/Demo/demo.h", "int x;\n");
	has_text(f, &out, LIB "demo_native.so", "\177ELF");
	has_text(f, &out, LIB "demo_pure.py", "");
	has_text(f, &out, LIB "demo-1.0.dist-info/INSTALLER", "svrun\n");
	assert_null(attr_of(&out, LIB "demo-1.0.dist-info/REQUESTED"));
	assert_null(attr_of(&out, LIB "demo-1.0.dist-info/direct_url.json"));
	assert_non_null(attr_of(&out, "opt/venv/bin/demo-gui"));
	entries_fini(&out);
	fixture_fini(f);
}

TEST(the_record_names_every_file_sorted_with_its_hash)
{
	struct fixture fx, *f = &fx;
	struct entries out = {0};
	struct record r = {0};
	struct hand_zip z;
	auto_free char *text = NULL;
	size_t n;

	fixture_init(f);
	wheel_begin(&z);
	zip_text(&z, "demo/a,b\"c.py", "1");
	zip_text(&z, "demo-1.0.dist-info/entry_points.txt", "[console_scripts]\nd = demo:m\n");
	need(unpack(f, wheel_finish(&z), &out));
	text = text_of(f, attr_of(&out, LIB "demo-1.0.dist-info/RECORD"), &n);
	need(record_parse(&r, "RECORD", text, n, &f->e));
	assert_int_equal(r.n, out.n);
	assert_non_null(strstr(text, "\"demo/a,b\"\"c.py\",sha256="));
	assert_string_equal(r.v[0].path, "../../../bin/d");
	for (size_t i = 0; i < r.n; i++) {
		auto_free char *path =
			mem_printf(LIB "%s", str_starts(r.v[i].path, "../") ? "" : r.v[i].path);
		const struct attr *a =
			attr_of(&out, str_starts(r.v[i].path, "../") ? "opt/venv/bin/d" : path);
		auto_free char *data = NULL;
		struct digest d;
		struct arena arena = {0};
		char size[24];
		size_t len;

		if (str_ends(r.v[i].path, "/RECORD")) {
			assert_string_equal(r.v[i].hash, "");
			continue;
		}
		data = text_of(f, a, &len);
		d = digest_of(data, len);
		snprintf(size, sizeof(size), "%zu", len);
		assert_string_equal(r.v[i].hash, record_hash(&arena, "sha256", d.b, DIGEST_SIZE));
		assert_string_equal(r.v[i].size, size);
		arena_fini(&arena);
	}
	record_fini(&r);
	entries_fini(&out);
	fixture_fini(f);
}

TEST(what_the_manifest_asks_for_is_requested_and_files_have_their_address)
{
	static const char *why[] = {"manifest:/python/wheels/0"};
	struct lock_wheel w = {.name = "demo",
		.version = "1.0",
		.file = "demo-1.0-py3-none-any.whl",
		.url = "file:my wheels/demo.whl",
		.why = {why, 1}};
	struct fixture fx, *f = &fx;
	struct entries out = {0};
	struct hand_zip z;

	fixture_init(f);
	wheel_begin(&z);
	need(unpack_as(f, wheel_finish(&z), &w, &venv, &out));
	has_text(f, &out, LIB "demo-1.0.dist-info/REQUESTED", "");
	has_text(f, &out, LIB "demo-1.0.dist-info/direct_url.json",
		"{\"archive_info\": {\"hash\": \"sha256="
		"0000000000000000000000000000000000000000000000000000000000000000\", \"hashes\": "
		"{\"sha256\": "
		"\"0000000000000000000000000000000000000000000000000000000000000000\"}}, "
		"\"url\": \"file:///my%20wheels/demo.whl\"}");
	entries_fini(&out);
	fixture_fini(f);
}

TEST(prefixes_decide_where_things_go)
{
	static const struct {
		const char *interpreter, *prefix, *lib, *bin, *shebang;
	} cases[] = {
		{"/usr/bin/python3", "/usr/local", "usr/local/lib/python3.11/dist-packages/demo.py",
			"usr/local/bin/d", "#!/usr/bin/python3\n"},
		{"/usr/bin/python3", "/usr", "usr/lib/python3/dist-packages/demo.py", "usr/bin/d",
			"#!/usr/bin/python3\n"},
		{"/usr/local/bin/python3", "/usr/local",
			"usr/local/lib/python3.11/site-packages/demo.py", "usr/local/bin/d",
			"#!/usr/local/bin/python3\n"},
		{"/usr/bin/python3", "/usr/lib/python3/dist-packages",
			"usr/lib/python3/dist-packages/demo.py", "usr/bin/d",
			"#!/usr/bin/python3\n"},
		{"/usr/bin/python3", "/opt/my app",
			"opt/my app/lib/python3.11/site-packages/demo.py", "opt/my app/bin/d",
			"#!/bin/sh\n'''exec' \"/opt/my app/bin/python\" \"$0\" \"$@\"\n' '''\n"}};
	const struct lock_wheel w = {.name = "demo",
		.version = "1.0",
		.file = "demo-1.0-py3-none-any.whl",
		.url = "mirror:pypi/x"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct manifest_python p = {.present = true,
			.interpreter = cases[i].interpreter,
			.prefix = cases[i].prefix};
		auto_free char *text = NULL;
		struct fixture fx, *f = &fx;
		struct entries out = {0};
		struct hand_zip z;
		size_t n;

		fixture_init(f);
		wheel_begin(&z);
		zip_text(&z, "demo.py", "");
		zip_text(&z, "demo-1.0.dist-info/entry_points.txt",
			"[console_scripts]\nd = demo:m\n");
		need(unpack_as(f, wheel_finish(&z), &w, &p, &out));
		if (!attr_of(&out, cases[i].lib) || !attr_of(&out, cases[i].bin))
			fail_msg("%s: %s, %s", cases[i].prefix, cases[i].lib, cases[i].bin);
		text = text_of(f, attr_of(&out, cases[i].bin), &n);
		assert_true(str_starts(text, cases[i].shebang));
		entries_fini(&out);
		fixture_fini(f);
	}
}

TEST(a_path_too_long_for_the_kernel_is_run_by_the_shell)
{
	char path[200];
	auto_free char *fits = NULL, *too_long = NULL;

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[124] = '\0';
	fits = wheel_shebang(path);
	assert_true(str_starts(fits, "#!/aaa"));
	path[124] = 'a';
	path[125] = '\0';
	too_long = wheel_shebang(path);
	assert_true(str_starts(too_long, "#!/bin/sh\n'''exec' /aaa"));
}

/* ---- hostile wheels ---- */

static void refuses(struct hand_zip *z, const char *code, const char *why)
{
	struct fixture fx, *f = &fx;
	struct entries out = {0};
	int rc;

	fixture_init(f);
	rc = unpack(f, wheel_finish(z), &out);
	if (rc == 0 || !strstr(f->e.text, code) || !strstr(f->e.text, why))
		fail_msg("expected %s: %s, got: %s", code, why, rc == 0 ? "nothing" : f->e.text);
	assert_true(f->e.kind == ERR_CORRUPT || f->e.kind == ERR_UNSUPPORTED);
	entries_fini(&out);
	fixture_fini(f);
}

TEST(hostile_names_are_refused)
{
	static const char *const cases[][2] = {{"../evil.py", "'..'"}, {"a/../../evil.py", "'..'"},
		{"/etc/passwd", "absolute"}, {"a//b.py", "not clean"}, {"./a.py", "not clean"},
		{"a\\b.py", "backslash"}, {"a\nb.py", "control"}, {"a\x7f", "control"},
		{"a\xff.py", "UTF-8"}, {"demo-1.0.data/evil/x", "SV176"},
		{"demo-1.0.data/x", "SV176"}, {"a/.wh.x", ".wh."},
		{"demo-1.0.data/data/pyvenv.cfg", "SV177"},
		{"demo-1.0.data/scripts/python3.11", "SV177"},
		{"demo-1.0.data/scripts/../../x", "'..'"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hand_zip z;

		wheel_begin(&z);
		zip_text(&z, cases[i][0], "x");
		refuses(&z, str_starts(cases[i][1], "SV") ? "" : "SV171", cases[i][1]);
	}
}

TEST(what_is_no_file_and_what_comes_twice_is_refused)
{
	struct hand_zip z;

	wheel_begin(&z);
	z.mode = S_IFLNK | 0777;
	zip_text(&z, "link", "/etc/passwd");
	refuses(&z, "SV171", "is a link");
	wheel_begin(&z);
	z.mode = S_IFCHR | 0666;
	zip_text(&z, "null", "");
	refuses(&z, "SV171", "is no regular file");
	wheel_begin(&z);
	zip_text(&z, "a.py", "");
	zip_add(&z, "a.py", "", 0);
	refuses(&z, "SV171", "is there twice");
	wheel_begin(&z);
	zip_text(&z, "A.py", "1");
	zip_text(&z, "a.py", "2");
	refuses(&z, "SV171", "in another case");
	wheel_begin(&z);
	zip_text(&z, "a.py", "1");
	zip_text(&z, "demo-1.0.data/purelib/A.py", "2");
	refuses(&z, "SV171", "site-packages/");
	wheel_begin(&z);
	zip_text(&z, "demo-1.0.dist-info/entry_points.txt", "[console_scripts]\nx = a:b\n");
	zip_text(&z, "demo-1.0.data/data/bin/x", "");
	refuses(&z, "SV171", "brings '/opt/venv/bin/x' twice");
	wheel_begin(&z);
	zip_text(&z, "a/", "data");
	refuses(&z, "SV171", "is a folder, but has data");
}

TEST(a_record_that_is_not_the_archive_is_refused)
{
	struct hand_zip z;

	wheel_begin(&z);
	zip_add(&z, "extra.py", "x", 1);
	refuses(&z, "SV173", "RECORD lacks 'extra.py'");
	wheel_begin(&z);
	buf_printf(&z.record, "ghost.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n");
	refuses(&z, "SV173", "RECORD has 'ghost.py', which is not there");
	wheel_begin(&z);
	buf_printf(&z.record, "a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,1\n");
	zip_add(&z, "a.py", "x", 1);
	refuses(&z, "SV173", "'a.py' is not what RECORD says: expected sha256=47DEQpj8HBSa-_");
	wheel_begin(&z);
	buf_printf(&z.record, "a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,1\n");
	zip_add(&z, "a.py", "", 0);
	refuses(&z, "SV173", "expected 1 bytes, found 0");
	wheel_begin(&z);
	buf_printf(&z.record,
		"a.py,sha384=OLBgp1GsljhM2TJ-sbHjaiH9txEUvgdDTAzHv2P24donTt6_529l-9Ua0vFImLlb,0\n"
		"b.py,sha512=z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg_SpIdNs6c5H0NE8XYXysP-"
		"DGNKHfuwvY7kxvUdBeoGlODJ6-SfaPg,0\n");
	zip_add(&z, "a.py", "", 0);
	zip_add(&z, "b.py", "x", 1);
	refuses(&z, "SV173", "'b.py' is not what RECORD says: expected sha512=z4PhNX7vuL3x");
	wheel_begin(&z);
	buf_printf(&z.record,
		"a.py,sha384=OLBgp1GsljhM2TJ-sbHjaiH9txEUvgdDTAzHv2P24donTt6_529l-9Ua0vFImLlb,0\n");
	zip_add(&z, "a.py", "x", 1);
	refuses(&z, "SV173", "'a.py' is not what RECORD says: expected sha384=OLBgp1GsljhM");
	wheel_begin(&z);
	buf_printf(&z.record, "a.py,md5=1B2M2Y8AsgTpgAmY7PhCfg,0\n");
	zip_add(&z, "a.py", "", 0);
	refuses(&z, "SV173", "has the hash 'md5=");
	wheel_begin(&z);
	buf_printf(&z.record, "a.py,,\n");
	zip_add(&z, "a.py", "", 0);
	refuses(&z, "SV173", "no hash of 'a.py'");
	wheel_begin(&z);
	zip_text(&z, "a.py", "");
	buf_printf(&z.record, "a.py,,\n");
	refuses(&z, "SV173", "has 'a.py' twice");
	wheel_begin(&z);
	buf_printf(&z.record, "\"a.py,,\n");
	refuses(&z, "SV173", "quoted field");
	wheel_begin(&z);
	buf_printf(&z.record, "a.py\n");
	refuses(&z, "SV173", "expected PATH,HASH,SIZE");
}

TEST(signatures_of_the_record_are_not_in_it_and_not_installed)
{
	struct fixture fx, *f = &fx;
	struct entries out = {0};
	struct hand_zip z;

	fixture_init(f);
	wheel_begin(&z);
	zip_add(&z, "demo-1.0.dist-info/RECORD.jws", "{}", 2);
	zip_add(&z, "demo-1.0.dist-info/RECORD.p7s", "{}", 2);
	need(unpack(f, wheel_finish(&z), &out));
	assert_null(attr_of(&out, LIB "demo-1.0.dist-info/RECORD.jws"));
	assert_int_equal(out.n, 4);
	entries_fini(&out);
	fixture_fini(f);
}

static int wheel_with(const char *folder, const char *metadata, const char *wheel)
{
	auto_free char *info = mem_printf("%s/METADATA", folder);
	auto_free char *version = mem_printf("%s/WHEEL", folder);
	auto_free char *record = mem_printf("%s/RECORD", folder);
	struct hand_zip z;

	zip_begin(&z);
	zip_text(&z, info, metadata);
	zip_text(&z, version, wheel);
	buf_printf(&z.record, "%s,,\n", record);
	zip_add(&z, record, z.record.data, z.record.len);
	return zip_finish(&z);
}

TEST(names_and_versions_that_disagree_are_refused)
{
	static const struct {
		const char *folder, *metadata, *wheel, *why;
	} cases[] = {{"other-1.0.dist-info", "Name: demo\nVersion: 1.0\n", WHEEL_TEXT,
			     "which is not the file's name and version"},
		{"demo-2.0.dist-info", "Name: demo\nVersion: 1.0\n", WHEEL_TEXT,
			"which is not the file's name and version"},
		{"demo-1.0.dist-info", "Name: other\nVersion: 1.0\n", WHEEL_TEXT,
			"METADATA has the name 'other'"},
		{"demo-1.0.dist-info", "Name: demo\nVersion: 1.1\n", WHEEL_TEXT,
			"METADATA has the version '1.1'"},
		{"demo-1.0.dist-info", "Name: demo\nName: demo\nVersion: 1.0\n", WHEEL_TEXT,
			"expected one Name"},
		{"demo-1.0.dist-info", "Version: 1.0\n", WHEEL_TEXT, "expected one Name"},
		{"demo-1.0.dist-info", "Name: demo\nVersion: 1.0\n", "Wheel-Version: 2.0\n",
			"Wheel-Version is '2.0'"},
		{"demo-1.0.dist-info", "Name: demo\nVersion: 1.0\n", "Wheel-Version: 1.x\n",
			"Wheel-Version is '1.x'"},
		{"demo-1.0.dist-info", "Name: demo\nVersion: 1.0\n", "Root-Is-Purelib: true\n",
			"expected one Wheel-Version"},
		{"demo", "Name: demo\nVersion: 1.0\n", WHEEL_TEXT, "has no .dist-info"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture fx, *f = &fx;
		struct entries out = {0};
		int fd = wheel_with(cases[i].folder, cases[i].metadata, cases[i].wheel);

		fixture_init(f);
		assert_int_equal(unpack(f, fd, &out), -1);
		if (!strstr(f->e.text, "SV174") || !strstr(f->e.text, cases[i].why))
			fail_msg("expected %s, got %s", cases[i].why, f->e.text);
		entries_fini(&out);
		fixture_fini(f);
	}
}

TEST(hostile_entry_points_are_refused)
{
	static const char *const cases[] = {"../x = a:b", "a/b = a:b", ".hidden = a:b", " = a:b",
		"x y = a:b", "x = a", "x = a:", "x = :b", "x = a:b()", "x = a:b;c", "x = a b:c",
		"x = a:b [", "x = a:b [\"]", "x = a:b\r[other]", "x = a:b\v[y]", "x = a:b\x1c",
		"x = a:b\xc2\x85y = 1:2", "x = a:b\xe2\x80\xa8y", "x[y] = a:b", "x",
		"x = a:b\nX = c:d", "x = a..b:c", "x = 1:b", "[console_scripts"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *text = mem_printf("[console_scripts]\n%s\n", cases[i]);
		struct hand_zip z;

		wheel_begin(&z);
		zip_text(&z, "demo-1.0.dist-info/entry_points.txt", text);
		refuses(&z, "SV175", "entry_points.txt");
	}
}

TEST(a_bomb_is_refused)
{
	auto_free char *big = mem_alloc(100 << 20);
	struct hand_zip z;

	wheel_begin(&z);
	z.method = 8;
	zip_file(&z, "zeros", big, 100 << 20);
	refuses(&z, "SV172", "more than the limit");
}

/* ---- pip ---- */

static const char python[] = "/usr/bin/python3";

static char *find(const char *pattern)
{
	glob_t g;
	char *path = NULL;

	if (glob(pattern, 0, NULL, &g) == 0) {
		path = mem_strdup(g.gl_pathv[g.gl_pathc - 1]);
		globfree(&g);
	}
	return path;
}

static void forget_lines(char *record, const char *with)
{
	char *line;

	while ((line = strstr(record, with))) {
		char *end = strchr(line, '\n') + 1;

		while (line > record && line[-1] != '\n')
			line--;
		memmove(line, end, strlen(end) + 1);
	}
}

/* What is to differ: who installed it, and pip's lines for scripts that it has not installed. */
static void compare_records(char *theirs, char *ours)
{
	forget_lines(theirs, ".dist-info/INSTALLER,");
	forget_lines(theirs, "demo-1.0.data/scripts/");
	forget_lines(ours, ".dist-info/INSTALLER,");
	assert_string_equal(theirs, ours);
}

static void compare_file(struct fixture *f, const struct entries *out, const char *path, bool exec)
{
	const struct attr *a = attr_of(out, path + 1);
	auto_buf struct buf theirs = BUF_INIT(64 << 20);
	auto_free char *ours = NULL;
	size_t n;

	if (!a)
		fail_msg("pip installs %s, we do not", path);
	ours = text_of(f, a, &n);
	need(file_read(AT_FDCWD, path, &theirs, &f->e));
	if (str_ends(path, "/INSTALLER"))
		return;
	buf_put(&theirs, "", 0);
	if (str_ends(path, ".dist-info/RECORD")) {
		compare_records(theirs.data, ours);
		return;
	}
	if (n != theirs.len || memcmp(ours, theirs.data, n) != 0)
		fail_msg("%s is not what pip installs:\n%s\n%s", path, theirs.data, ours);
	if ((a->mode & 0111) && !exec)
		fail_msg("%s is executable, with pip it is not", path);
}

/* Every file below folder; how many there are. */
static size_t compare_folder(struct fixture *f, const struct entries *out, const char *folder)
{
	DIR *d = opendir(folder);
	const struct dirent *en;
	size_t n = 0;

	assert_non_null(d);
	while ((en = readdir(d))) {
		auto_free char *path = mem_printf("%s/%s", folder, en->d_name);
		struct stat st;

		assert_int_equal(lstat(path, &st), 0);
		if (str_eq(en->d_name, ".") || str_eq(en->d_name, "..") ||
			str_eq(en->d_name, "__pycache__") || S_ISLNK(st.st_mode) ||
			str_eq(en->d_name, "pyvenv.cfg") || str_starts(en->d_name, "activate") ||
			str_eq(en->d_name, "Activate.ps1"))
			continue;
		if (S_ISDIR(st.st_mode)) {
			n += compare_folder(f, out, path);
			continue;
		}
		compare_file(f, out, path, st.st_mode & 0111);
		n++;
	}
	closedir(d);
	return n;
}

static void run(const char *const *argv)
{
	struct err e = {0};

	if (proc_check(&(struct proc){.argv = argv, .seconds = 120}, &e) < 0)
		fail_msg("%s: %s", argv[0], e.text);
}

/* A virtual environment with one wheel, made by pip and by us. */
static void compare_with_pip(const char *wheel, const char *name, const char *version)
{
	static const char *why[] = {"manifest:/python/wheels/0"};
	auto_free char *pip = find("/usr/share/python-wheels/pip-*.whl");
	auto_free char *run_pip = mem_printf("%s/pip", pip);
	struct fixture fx, *f = &fx;
	struct entries out = {0};
	struct hash h;
	struct digest digest;
	char hex[DIGEST_HEX + 1];
	int fd = open(wheel, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	fixture_init(f);

	hash_init(&h, HASH_SHA256);
	need(hash_add_file(fd, wheel, &h, &f->e));
	digest = hash_digest(&h);
	digest_hex(&digest, hex);

	auto_free char *dir = mem_printf("%s/venv", f->path);
	auto_free char *link = mem_printf("file://%s#sha256=%s", wheel, hex);
	auto_free char *own = mem_printf("%s/bin/python", dir);
	auto_free char *url = mem_printf("file:%s", wheel + 1);
	const char *const make[] = {python, "-m", "venv", "--without-pip", dir, NULL};
	const char *const install[] = {own, run_pip, "install", "--quiet", "--no-compile",
		"--no-deps", "--no-index", "--no-cache-dir", "--disable-pip-version-check", link,
		NULL};
	const struct manifest_python p = {.present = true, .interpreter = python, .prefix = dir};
	struct lock_wheel w = {.name = name,
		.version = version,
		.file = strrchr(wheel, '/') + 1,
		.url = url,
		.why = {why, 1}};

	w.sha256 = digest;
	run(make);
	run(install);
	need(unpack_as(f, fd, &w, &p, &out));
	assert_int_equal(compare_folder(f, &out, dir), out.n);
	entries_fini(&out);
	fixture_fini(f);
}

static void need_pip(void)
{
	auto_free char *pip = find("/usr/share/python-wheels/pip-*.whl");

	if (!pip || access(python, X_OK) != 0) {
		print_message("skipped: python3-pip-whl is not installed\n");
		skip();
	}
}

TEST(debians_wheels_are_installed_as_pip_installs_them)
{
	static const char *const names[] = {"pip", "setuptools", "wheel"};

	need_pip();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		auto_free char *pattern = mem_printf("/usr/share/python-wheels/%s-*.whl", names[i]);
		auto_free char *wheel = find(pattern), *version = NULL;

		if (!wheel)
			continue;
		version = mem_strdup(strrchr(wheel, '/') + 2 + strlen(names[i]));
		version[strcspn(version, "-")] = '\0';
		compare_with_pip(wheel, names[i], version);
	}
}

TEST(a_wheel_with_everything_is_installed_as_pip_installs_it)
{
	char path[] = "/tmp/svrun-test-XXXXXX";
	auto_free char *wheel = NULL;
	struct hand_zip z;
	struct stat st;
	int fd;

	need_pip();
	wheel_begin(&z);
	zip_text(&z, "demo/__init__.py", "def main():\n    print('hello')\n");
	z.mode = S_IFREG | 0755;
	zip_text(&z, "demo/run.sh", "#!/bin/sh\n");
	zip_text(&z, "demo/with,comma \"quoted\".txt", "x");
	zip_text(&z, "demo/\xc3\xa9.txt", "x");
	zip_text(&z, "demo-1.0.dist-info/entry_points.txt",
		"[console_scripts]\ndemo = demo:main\nx.y-z = demo.sub:C.run [a,b]\n"
		"pip = demo:main\npip3.2 = demo:main\neasy_install=demo:main\n"
		"easy_install-2.7=demo:main\n[gui_scripts]\ngui = demo:main\n");
	z.mode = S_IFREG | 0755;
	zip_text(&z, "demo-1.0.data/scripts/old", "#!python -E\nprint(1)\n");
	z.mode = S_IFREG | 0755;
	zip_text(&z, "demo-1.0.data/scripts/gui", "#!python\n");
	z.mode = S_IFREG | 0755;
	zip_text(&z, "demo-1.0.data/scripts/demo-script.py", "#!python\n");
	z.mode = S_IFREG | 0755;
	zip_text(&z, "demo-1.0.data/scripts/plain", "#!/bin/sh\n");
	zip_text(&z, "demo-1.0.data/data/etc/demo.conf", "a=1\n");
	zip_text(&z, "demo-1.0.data/platlib/demo/native.so", "\177ELF");
	fd = wheel_finish(&z);
	assert_non_null(mkdtemp(path));
	wheel = mem_printf("%s/demo-1.0-py3-none-any.whl", path);
	assert_int_equal(fstat(fd, &st), 0);

	auto_free char *data = mem_alloc((size_t)st.st_size);

	assert_int_equal(sys_pread_all(fd, data, (size_t)st.st_size, 0), 0);
	close(fd);
	assert_int_equal(file_write(AT_FDCWD, wheel, data, (size_t)st.st_size, 0644, NULL), 0);
	compare_with_pip(wheel, "demo", "1.0");
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
}

RUN_TESTS(cmocka_unit_test(a_wheel_is_unpacked_with_its_programs_and_a_new_record),
	cmocka_unit_test(the_record_names_every_file_sorted_with_its_hash),
	cmocka_unit_test(what_the_manifest_asks_for_is_requested_and_files_have_their_address),
	cmocka_unit_test(prefixes_decide_where_things_go),
	cmocka_unit_test(a_path_too_long_for_the_kernel_is_run_by_the_shell),
	cmocka_unit_test(hostile_names_are_refused),
	cmocka_unit_test(what_is_no_file_and_what_comes_twice_is_refused),
	cmocka_unit_test(a_record_that_is_not_the_archive_is_refused),
	cmocka_unit_test(signatures_of_the_record_are_not_in_it_and_not_installed),
	cmocka_unit_test(names_and_versions_that_disagree_are_refused),
	cmocka_unit_test(hostile_entry_points_are_refused), cmocka_unit_test(a_bomb_is_refused),
	cmocka_unit_test(debians_wheels_are_installed_as_pip_installs_them),
	cmocka_unit_test(a_wheel_with_everything_is_installed_as_pip_installs_it))
