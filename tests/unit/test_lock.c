#include "tests/unit/test.h"

#include <fcntl.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/lock.h"

#define HEX "abababababababababababababababababababababababababababababababab"
#define ZERO "0000000000000000000000000000000000000000000000000000000000000000"
#define SHA512                                                                                     \
	"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/"                                                \
	"SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="

static const char text[] = //
	"{\n"
	" \"schema\": \"svrun.lock/1\",\n"
	" \"manifestDigest\": \"sha256:" HEX "\",\n"
	" \"platform\": \"linux/amd64\",\n"
	" \"apt\": {\"indexes\": [{\"uri\": \"mirror:debian\", \"suite\": \"bookworm\",\n"
	"   \"date\": \"Sat, 11 Jul 2026 10:16:37 UTC\", \"sha256\": \"" HEX "\",\n"
	"   \"signedBy\": [\"4CB50190207B4758A3F73A796ED0E7B82643E131\"]}],\n"
	"  \"packages\": [{\"name\": \"libc6\", \"version\": \"1:2.36-9+deb12u14~x\", \"arch\": "
	"\"amd64\",\n"
	"   \"url\": \"mirror:debian/pool/main/g/glibc/libc6_1%3a2.36-9+deb12u14_amd64.deb\",\n"
	"   \"source\": \"glibc\", \"sha256\": \"" HEX
	"\", \"size\": 2759320, \"essential\": true,\n"
	"   \"why\": [\"manifest:/apt/packages/0\"]}]},\n"
	" \"node\": {\"packages\": [{\"path\": \"node_modules/@a/b/node_modules/c\", \"name\": "
	"\"c\",\n"
	"   \"version\": \"1.2.3-rc.1\", \"url\": \"mirror:npm/c/-/c-1.2.3-rc.1.tgz\",\n"
	"   \"integrity\": \"" SHA512 "\", \"bin\": {\"c\": \"./bin/c.js\"}}]},\n"
	" \"files\": [{\"path\": \"package-lock.json\", \"sha256\": \"" HEX "\", \"size\": 0}]\n"
	"}\n";

static int parse(struct lock *l, const char *s, struct err *e)
{
	return lock_parse(l, "lock.json", s, strlen(s), e);
}

/* The text with its first `from` replaced; to be freed. */
static char *with(const char *from, const char *to)
{
	const char *at = strstr(text, from);

	assert_non_null(at);
	return mem_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

TEST(every_field_is_read)
{
	struct lock l;

	assert_int_equal(parse(&l, text, NULL), 0);
	assert_string_equal(l.platform, "linux/amd64");
	assert_int_equal(l.manifest.b[31], 0xab);
	assert_int_equal(l.nindexes, 1);
	assert_string_equal(l.indexes[0].suite, "bookworm");
	assert_int_equal(l.indexes[0].signed_by.n, 1);
	assert_int_equal(l.ndebs, 1);
	assert_string_equal(l.debs[0].source, "glibc");
	assert_int_equal(l.debs[0].size, 2759320);
	assert_true(l.debs[0].essential);
	assert_string_equal(l.debs[0].why.v[0], "manifest:/apt/packages/0");
	assert_int_equal(l.nnpms, 1);
	assert_string_equal(l.npms[0].path, "node_modules/@a/b/node_modules/c");
	assert_string_equal(l.npms[0].bin.v[0].value, "./bin/c.js");
	assert_int_equal(l.nfiles, 1);
	assert_int_equal(l.files[0].size, 0);
	lock_fini(&l);
}

/* What is wrong in a changed lock, from the place on. */
static void refused(const char *from, const char *to, const char *message)
{
	auto_free char *bad = with(from, to);
	struct lock l;
	struct err e = {0};

	if (parse(&l, bad, &e) == 0)
		fail_msg("accepted with %s", to);
	assert_int_equal(e.kind, ERR_CORRUPT);
	if (!str_starts(e.text, "lock.json:") || !strstr(e.text, message))
		fail_msg("%s: expected '%s' in '%s'", to, message, e.text);
	assert_non_null(strstr(e.hint, "svrun image lock"));
}

TEST(hostile_locks_are_refused_by_place_and_name)
{
	static const struct {
		const char *from, *to, *message;
	} cases[] = {
		{"lock/1", "lock/2", "2:12: SV007 /schema: "},
		{"sha256:ab", "sha256:AB", "3:20: SV007 /manifestDigest: "},
		{"\"libc6\"", "\"../../etc\"", "8:25: SV007 /apt/packages/0/name: "},
		{"\"libc6\"", "\"lib/c6\"", "SV007 /apt/packages/0/name: "},
		{"\"libc6\"", "5",
			"SV006 /apt/packages/0/name: wrong type; expected a string, got 5"},
		{"1:2.36-9+deb12u14~x", "1/2", "SV007 /apt/packages/0/version: "},
		{"\"amd64\"", "\"a/b\"", "SV007 /apt/packages/0/arch: "},
		{"mirror:debian/pool", "http://example.invalid/pool",
			"9:11: SV007 /apt/packages/0/url: "},
		{"mirror:debian/pool", "file:///pool", "SV007 /apt/packages/0/url: "},
		{"mirror:debian/pool", "mirror:debian/../pool", "SV007 /apt/packages/0/url: "},
		{"mirror:debian/pool", "mirror:debian/%2E%2e/pool", "SV007 /apt/packages/0/url: "},
		{"mirror:debian/pool", "mirror:de bian/pool", "SV007 /apt/packages/0/url: "},
		{"mirror:debian/pool", "https://user:word@example.invalid/pool",
			"SV007 /apt/packages/0/url: "},
		{"\"glibc\"", "\"g/libc\"", "SV007 /apt/packages/0/source: "},
		{"2759320", "0", "SV007 /apt/packages/0/size: out of range"},
		{"2759320", "-1", "SV007 /apt/packages/0/size: out of range"},
		{"2759320", "4294967297", "SV007 /apt/packages/0/size: out of range"},
		{"\"4CB50190207B4758", "\"4cb50190207b4758", "SV007 /apt/indexes/0/signedBy/0: "},
		{"node_modules/@a/b/node_modules/c", "node_modules/../c",
			"SV008 /node/packages/0/path: "},
		{"node_modules/@a/b/node_modules/c", "/node_modules/c",
			"SV008 /node/packages/0/path: "},
		{"sha512-z4", "sha1-z4", "SV007 /node/packages/0/integrity: "},
		{"+SfaPg==", "+SfaPg", "SV007 /node/packages/0/integrity: "},
		{"./bin/c.js", "../c.js", "SV008 /node/packages/0/bin/c: "},
		{"./bin/c.js", "/bin/sh", "SV008 /node/packages/0/bin/c: "},
		{"{\"c\": ", "{\"../c\": ", "SV007 /node/packages/0/bin/..~1c: "},
		{"\"package-lock.json\"", "\"../package-lock.json\"", "SV008 /files/0/path: "},
		{"\"package-lock.json\"", "\"/etc/shadow\"", "SV008 /files/0/path: "},
		{"\"size\": 0}", "\"size\": 0.5}", "SV006 /files/0/size: "},
		{"\"size\": 0}", "\"size\": 0, \"extra\": 1}", "SV001 /files/0/extra: "},
		{"\"size\": 0}", "\"size\": 0, \"size\": 0}", "SV002 /files/0/size: duplicate"},
		{"\"size\": 0}", "\"siz\": 0}",
			"SV001 /files/0/siz: unknown key 'siz'; did you mean"},
		{"}]\n}", "}]", "SV000 ',' or '}' expected"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].from, cases[i].to, cases[i].message);
	refused("UTC\", \"sha256\": \"" HEX, "UTC\", \"sha256\": \"" ZERO,
		"SV013 /apt/indexes/0/sha256: an all-zero digest is a placeholder");
}

TEST(a_list_out_of_order_or_with_something_twice_is_refused)
{
	static const char same[] =
		"\"files\": [{\"path\": \"a\", \"sha256\": \"" HEX
		"\", \"size\": 1}, {\"path\": \"a\", \"sha256\": \"" HEX "\", \"size\": 1}, ";
	static const char order[] =
		"\"files\": [{\"path\": \"z\", \"sha256\": \"" HEX "\", \"size\": 1}, ";

	refused("\"files\": [", same, "SV009 /files/1: the same as the one before");
	refused("\"files\": [", order, "SV009 /files/1: not in order");
}

TEST(too_many_packages_are_refused)
{
	auto_buf struct buf b = BUF_INIT(8 << 20);
	auto_free char *bad = NULL;
	struct lock l;
	struct err e = {0};

	buf_printf(&b, "\"packages\": [{}");
	for (int i = 0; i < 20000; i++)
		buf_printf(&b, ",{}");
	buf_printf(&b, "], \"x-old\": [");
	bad = with("\"packages\": [", b.data);
	assert_int_equal(parse(&l, bad, &e), -1);
	assert_non_null(strstr(e.text, "/apt/packages: 20001 items; at most 20000"));
}

TEST(a_truncated_lock_is_refused_wherever_it_ends)
{
	for (size_t n = 0; n < sizeof(text) - 3; n += 7) {
		struct lock l;
		struct err e = {0};

		assert_int_equal(lock_parse(&l, "lock.json", text, n, &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
	}
}

TEST(writing_sorts_and_reading_gives_the_same_bytes)
{
	struct lock_file files[] = {{.path = "b", .size = 2}, {.path = "a", .size = 1}};
	auto_buf struct buf one = BUF_INIT(1 << 20), two = BUF_INIT(1 << 20);
	struct lock l, again;

	memset(files[0].sha256.b, 1, DIGEST_SIZE);
	memset(files[1].sha256.b, 2, DIGEST_SIZE);
	assert_int_equal(parse(&l, text, NULL), 0);
	l.files = files;
	l.nfiles = 2;
	lock_text(&l, &one);
	lock_fini(&l);
	assert_int_equal(parse(&again, one.data, NULL), 0);
	assert_string_equal(again.files[0].path, "a");
	lock_text(&again, &two);
	assert_string_equal(one.data, two.data);
	assert_non_null(strstr(one.data, "\n  \"platform\": \"linux/amd64\",\n"));
	lock_fini(&again);
}

TEST(the_digest_does_not_depend_on_layout)
{
	struct lock a, b;
	auto_buf struct buf out = BUF_INIT(1 << 20);

	assert_int_equal(parse(&a, text, NULL), 0);
	lock_text(&a, &out);
	assert_int_equal(parse(&b, out.data, NULL), 0);
	assert_true(digest_eq(&a.digest, &b.digest));
	lock_fini(&a);
	lock_fini(&b);
}

/* ---- files, and the manifest it belongs to ---- */

TEST(a_missing_lock_says_how_to_make_one)
{
	struct lock l;
	struct err e = {0};

	assert_int_equal(lock_load(&l, "tests/data/manifest/good", &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(
		e.text, "tests/data/manifest/good/lock.json: the inputs are not locked yet");
	assert_string_equal(e.hint, "svrun image lock tests/data/manifest/good");
}

TEST(what_a_build_would_refuse_is_not_written)
{
	char tmp[] = "/tmp/svrun-test-XXXXXX";
	struct lock_file bad = {.path = "../x", .size = 1};
	struct lock l, loaded;
	struct err e = {0};

	assert_non_null(mkdtemp(tmp));
	assert_int_equal(parse(&l, text, NULL), 0);
	assert_int_equal(lock_save(&l, tmp, &e), 0);
	assert_int_equal(lock_load(&loaded, tmp, &e), 0);
	assert_int_equal(loaded.ndebs, 1);
	lock_fini(&loaded);
	memset(bad.sha256.b, 1, DIGEST_SIZE);
	l.files = &bad;
	assert_int_equal(lock_save(&l, tmp, &e), -1);
	assert_non_null(strstr(e.text, "SV008 /files/0/path"));
	assert_int_equal(lock_load(&loaded, tmp, NULL), 0); /* the old one is still there */
	lock_fini(&loaded);
	lock_fini(&l);
	assert_int_equal(sys_remove_tree(AT_FDCWD, tmp), 0);
}

static struct digest manifest_digest(const char *more)
{
	auto_free char *s = mem_printf(
		"{\"schema\": \"svrun.image/1\", \"name\": \"a\", \"version\": \"1\"%s}", more);
	struct complaints c = {0};
	struct manifest m;
	struct digest d;

	assert_int_equal(manifest_parse(&m, "m.json", s, strlen(s), NULL, &c, NULL), 0);
	d = lock_manifest_digest(&m);
	manifest_fini(&m);
	return d;
}

TEST(only_keys_that_name_inputs_ask_for_a_new_lock)
{
	static const struct {
		const char *more;
		bool differs;
	} cases[] = {
		{", \"env\": {\"A\": \"1\"}", false},
		{", \"cmd\": [\"x\"], \"build\": {\"epoch\": 5}", false},
		{", \"files\": [{\"dest\": \"/a\", \"inline\": \"x\"}]", false},
		{", \"files\": [{\"dest\": \"/a\", \"from\": \"x\"}]", true},
		{", \"node\": {\"lock\": \"l\", \"prefix\": \"/opt\"}", true},
		{", \"models\": [{\"id\": \"a\", \"target\": \"/m\", \"format\": \"gguf\", "
		 "\"source\": "
		 "{\"type\": \"file\", \"path\": \"x\"}, \"files\": [{\"path\": \"x\", \"size\": "
		 "1, "
		 "\"sha256\": \"" HEX "\"}]}]",
			true},
	};
	static const char model[] = ", \"models\": [{\"id\": \"a\", \"target\": \"/m\", "
				    "\"format\": \"gguf\", \"source\": {\"type\": \"file\", "
				    "\"path\": \"x\"}%s}]";
	auto_free char *plain = mem_printf(model, ""),
		       *licensed = mem_printf(model, ", \"license\": {\"spdx\": \"MIT\"}"),
		       *other = mem_printf(model, ", \"allowPickle\": true");
	struct digest base = manifest_digest(""), x = manifest_digest(plain),
		      y = manifest_digest(licensed), z = manifest_digest(other);

	/* what may be done with a model is no part of it */
	assert_true(digest_eq(&x, &y));
	assert_false(digest_eq(&x, &z));

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct digest d = manifest_digest(cases[i].more);

		if (digest_eq(&d, &base) == cases[i].differs)
			fail_msg("%s", cases[i].more);
	}
}

TEST(a_lock_of_another_manifest_or_machine_is_refused)
{
	static const char doc[] =
		"{\"schema\": \"svrun.image/1\", \"name\": \"a\", \"version\": \"1\","
		"\"files\": [{\"dest\": \"/a\", \"from\": \"a.txt\"}]}";
	struct lock_file pinned = {.path = "a.txt"};
	struct complaints c = {0};
	struct manifest m;
	struct lock l = {0};
	struct err e = {0};

	assert_int_equal(
		manifest_parse(&m, "app/manifest.json", doc, strlen(doc), NULL, &c, NULL), 0);
	l.platform = manifest_platform();
	l.manifest = lock_manifest_digest(&m);
	assert_int_equal(lock_check(&l, &m, &e), -1);
	assert_string_equal(e.text, "app/lock.json does not pin a.txt");
	l.files = &pinned;
	l.nfiles = 1;
	assert_int_equal(lock_check(&l, &m, NULL), 0);
	l.manifest.b[0] ^= 1;
	e = (struct err){0};
	assert_int_equal(lock_check(&l, &m, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	assert_string_equal(e.text,
		"app/manifest.json: what names its inputs (base, apt, python, node, sources, "
		"models, files.from) changed since app/lock.json was made");
	assert_string_equal(e.hint, "svrun image lock app");
	l.platform = "linux/riscv64";
	e = (struct err){0};
	assert_int_equal(lock_check(&l, &m, &e), -1);
	assert_true(str_starts(e.text, "app/lock.json is for linux/riscv64, not for "));
	manifest_fini(&m);
}

/* ---- what came after the first version ---- */

static const char rest[] =
	"{\n"
	" \"schema\": \"svrun.lock/1\", \"manifestDigest\": \"sha256:" HEX
	"\", \"envelope\": \"sha256:" HEX "\", \"platform\": \"linux/amd64\",\n"
	" \"apt\": {\"indexes\": [], \"packages\": []}, \"node\": {\"packages\": []},\n"
	" \"base\": {\"ref\": \"store:base\", \"manifest\": \"sha256:" HEX
	"\", \"config\": \"sha256:" HEX "\",\n"
	"  \"layers\": [{\"digest\": \"sha256:" HEX "\", \"diffId\": \"sha256:" HEX
	"\", \"size\": 7}]},\n"
	" \"python\": {\"wheels\": [{\"name\": \"a\", \"version\": \"1\", \"file\": "
	"\"a-1-py3-none-any.whl\",\n"
	"  \"url\": \"file:../base/a-1-py3-none-any.whl\", \"sha256\": \"" HEX
	"\", \"size\": 3, \"why\": [\"pylock.toml\"]}]},\n"
	" \"sources\": [{\"id\": \"g\", \"url\": \"file:repo\", \"commit\": "
	"\"0123456789012345678901234567890123456789\", \"treeSha256\": \"" HEX "\"},\n"
	"  {\"id\": \"t\", \"url\": \"https://a.invalid/t.tgz\", \"sha256\": \"" HEX
	"\", \"size\": 5}],\n"
	" \"models\": [{\"id\": \"m\", \"setSha256\": \"" HEX "\", \"files\": [{\"path\": \"a/b\", "
	"\"sha256\": \"" HEX "\", \"size\": 0}]}],\n"
	" \"files\": [{\"path\": \"../base/text\", \"sha256\": \"" HEX "\", \"size\": 0}]\n"
	"}\n";

TEST(wheels_sources_models_and_the_base_are_read_and_written)
{
	struct lock l, again;
	struct err e = {0};
	auto_buf struct buf one = BUF_INIT(1 << 20), two = BUF_INIT(1 << 20);

	if (lock_parse(&l, "lock.json", rest, strlen(rest), &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(l.envelope.b[0], 0xab);
	assert_true(l.base.present);
	assert_int_equal(l.base.nlayers, 1);
	assert_int_equal(l.base.layers[0].size, 7);
	assert_string_equal(l.wheels[0].url, "file:../base/a-1-py3-none-any.whl");
	assert_true(l.sources[0].has_tree && !l.sources[1].has_tree);
	assert_int_equal(l.sources[1].size, 5);
	assert_int_equal(l.models[0].nfiles, 1);
	lock_text(&l, &one);
	assert_int_equal(lock_parse(&again, "lock.json", one.data, one.len, &e), 0);
	lock_text(&again, &two);
	assert_string_equal(one.data, two.data);
	assert_true(digest_eq(&l.digest, &again.digest));
	lock_fini(&again);
	lock_fini(&l);
}

TEST(hostile_entries_are_refused_by_place)
{
	static const struct {
		const char *from, *to, *error;
	} table[] = {
		{"a-1-py3-none-any.whl\",", "../a.whl\",",
			"/python/wheels/0/file: not a valid value"},
		{"file:../base/a-1", "file:../../a-1", "/python/wheels/0/url: not a valid value"},
		{"file:../base/a-1", "http://h/a-1", "/python/wheels/0/url: not a valid value"},
		{"\"id\": \"t\"", "\"id\": \"a\"", "/sources/1: not in order"},
		{"\"id\": \"t\"", "\"id\": \"g\"", "/sources/1: the same as the one before"},
		{"\"path\": \"a/b\"", "\"path\": \"../b\"",
			"/models/0/files/0/path: not a clean path"},
		{"../base/text", "../text", "/files/0/path: not a clean path"},
		{"store:base", "-x", "/base/ref: not a valid value"},
		{"\"layers\": [{", "\"layers\": [1, {", "/base/layers/0: wrong type"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *at = strstr(rest, table[i].from);
		auto_free char *s = NULL;
		struct lock l;
		struct err e = {0};

		assert_non_null(at);
		s = mem_printf("%.*s%s%s", (int)(at - rest), rest, table[i].to,
			at + strlen(table[i].from));
		assert_int_equal(lock_parse(&l, "lock.json", s, strlen(s), &e), -1);
		if (!strstr(e.text, table[i].error))
			fail_msg("%s: %s", table[i].error, e.text);
	}
}

TEST(a_lock_has_a_file_for_each_choice)
{
	struct manifest m = {.dir = "app"};
	auto_free char *plain = lock_path(&m), *all = NULL;

	assert_string_equal(plain, "app/lock.json");
	m.matrix = "cu128";
	m.mode = "cpu";
	m.platform = "linux/riscv64";
	all = lock_path(&m);
	assert_string_equal(all, "app/lock.cu128.cpu.linux-riscv64.json");
}

RUN_TESTS(cmocka_unit_test(wheels_sources_models_and_the_base_are_read_and_written),
	cmocka_unit_test(hostile_entries_are_refused_by_place),
	cmocka_unit_test(a_lock_has_a_file_for_each_choice), cmocka_unit_test(every_field_is_read),
	cmocka_unit_test(hostile_locks_are_refused_by_place_and_name),
	cmocka_unit_test(a_list_out_of_order_or_with_something_twice_is_refused),
	cmocka_unit_test(too_many_packages_are_refused),
	cmocka_unit_test(a_truncated_lock_is_refused_wherever_it_ends),
	cmocka_unit_test(writing_sorts_and_reading_gives_the_same_bytes),
	cmocka_unit_test(the_digest_does_not_depend_on_layout),
	cmocka_unit_test(a_missing_lock_says_how_to_make_one),
	cmocka_unit_test(what_a_build_would_refuse_is_not_written),
	cmocka_unit_test(only_keys_that_name_inputs_ask_for_a_new_lock),
	cmocka_unit_test(a_lock_of_another_manifest_or_machine_is_refused))
