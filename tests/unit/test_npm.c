#include "tests/unit/test.h"

#include <archive.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/archive.h"
#include "builder/gunzip.h"
#include "builder/npm.h"

/* ---- a folder with a lock and a pool ---- */

struct fixture {
	char dir[32];
	int fd;
	struct lock l;
	struct pool *pool;
	struct entries out;
	struct err e;
};

static void setup(struct fixture *f)
{
	*f = (struct fixture){.dir = "/tmp/svrun-test-XXXXXX", .l.platform = "linux/amd64"};
	assert_non_null(mkdtemp(f->dir));
	f->fd = sys_open(f->dir, O_RDONLY | O_DIRECTORY, 0);
	assert_true(f->fd >= 0);
	f->pool = pool_open(f->fd, true, &f->e);
	if (!f->pool)
		fail_msg("%s", f->e.text);
}

static void teardown(struct fixture *f)
{
	entries_fini(&f->out);
	arena_fini(&f->l.arena);
	pool_close(f->pool);
	close(f->fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
}

/* ---- locks ---- */

#define ZEROS                                                                                      \
	"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
#define OK "\"version\": \"1.0.0\", \"integrity\": \"sha512-" ZEROS "\""

static int lock_bytes(
	struct fixture *f, const char *text, size_t n, const char *omit1, const char *omit2)
{
	const char *omit[] = {omit1, omit2};
	struct manifest m = {.dir = f->dir,
		.node = {.present = true,
			.lock = "package-lock.json",
			.prefix = "/app",
			.omit = {omit, (size_t)(omit1 != NULL) + (omit2 != NULL)}}};

	assert_int_equal(file_write(f->fd, "package-lock.json", text, n, 0644, NULL), 0);
	return npm_lock(&f->l, &m, &f->e);
}

/* packages: the members behind the root's; root: the members of "". */
static int lock(struct fixture *f, const char *root, const char *packages, const char *omit1,
	const char *omit2)
{
	auto_free char *text =
		mem_printf("{\"lockfileVersion\": 3, \"packages\": {\n\"\": {%s}%s%s}}", root,
			*packages ? ",\n" : "", packages);

	return lock_bytes(f, text, strlen(text), omit1, omit2);
}

/* The paths of all that was locked, with a space behind each. */
static void is_locked(struct fixture *f, const char *root, const char *packages, const char *omit1,
	const char *omit2, const char *paths)
{
	auto_buf struct buf got = BUF_INIT(1 << 20);

	if (lock(f, root, packages, omit1, omit2) < 0)
		fail_msg("%s", f->e.text);
	buf_put(&got, "", 0);
	for (size_t i = 0; i < f->l.nnpms; i++) {
		assert_true(str_starts(f->l.npms[i].path, "node_modules/"));
		buf_printf(&got, "%s ", f->l.npms[i].path + 13);
	}
	assert_string_equal(got.data, paths);
}

TEST(a_lock_becomes_addresses_digests_and_commands)
{
	struct fixture f;
	const struct lock_npm *n;

	setup(&f);
	is_locked(&f, "\"dependencies\": {\"b\": \"1\"}",
		"\"node_modules/b\": {" OK ", \"bin\": {\"y\": \"./bin/y.js\", \"b\": \"cli.js\"}},"
		"\"node_modules/@s/a\": {\"version\": \"2.0.0-rc.1+5\", \"bin\": \"x.js\","
		"  \"integrity\": \"sha1-abc= sha512-" ZEROS "\","
		"  \"resolved\": \"https://localhost/x/@s/a/-/a-2.0.0-rc.1+5.tgz?a#b\"},"
		"\"node_modules/alias\": {\"name\": \"@s/real\", " OK "},"
		"\"node_modules/b/node_modules/@s/a\": {" OK "}",
		NULL, NULL, "@s/a alias b b/node_modules/@s/a ");
	n = f.l.npms;
	assert_string_equal(n[0].name, "@s/a");
	assert_string_equal(n[0].version, "2.0.0-rc.1+5");
	assert_string_equal(n[0].url, "mirror:npm/@s/a/-/a-2.0.0-rc.1+5.tgz");
	assert_string_equal(n[0].integrity, "sha512-" ZEROS);
	assert_int_equal(n[0].bin.n, 1);
	assert_string_equal(n[0].bin.v[0].name, "a");
	assert_string_equal(n[0].bin.v[0].value, "x.js");
	assert_string_equal(n[1].name, "@s/real");
	assert_string_equal(n[1].url, "mirror:npm/@s/real/-/real-1.0.0.tgz");
	assert_int_equal(n[2].bin.n, 2);
	assert_string_equal(n[2].bin.v[0].name, "b");
	assert_string_equal(n[2].bin.v[1].name, "y");
	assert_int_equal(n[3].bin.n, 0);
	teardown(&f);
}

TEST(development_and_optional_packages_can_be_omitted)
{
	static const char root[] =
		"\"dependencies\": {\"a\": \"1\"},"
		"\"devDependencies\": {\"d\": \"1\"},"
		"\"optionalDependencies\": {\"x-cuda\": \"1\", \"x-cpu\": \"1\"}";
	static const char packages[] = "\"node_modules/a\": {" OK "},"
				       "\"node_modules/d\": {\"dev\": true, " OK "},"
				       "\"node_modules/x-cpu\": {\"optional\": true, " OK "},"
				       "\"node_modules/x-cuda\": {\"optional\": true, " OK "}";
	struct fixture f;

	setup(&f);
	is_locked(&f, root, packages, NULL, NULL, "a d x-cpu x-cuda ");
	is_locked(&f, root, packages, "dev", NULL, "a x-cpu x-cuda ");
	is_locked(&f, root, packages, "dev", "optional:*cuda", "a x-cpu ");
	is_locked(&f, root, packages, "optional:*", NULL, "a d ");
	is_locked(
		&f, root, packages, "optional:a", NULL, "a d x-cpu x-cuda "); /* is not optional */
	teardown(&f);
}

/* npm's optional set: see npm-graph.h. */
TEST(an_omitted_package_takes_its_own_along_and_no_more)
{
	static const char root[] = "\"dependencies\": {\"a\": \"1\"},"
				   "\"optionalDependencies\": {\"o\": \"1\", \"p\": \"1\"}";
	static const char packages[] =
		"\"node_modules/a\": {" OK ", \"dependencies\": {\"shared\": \"1\"}},"
		"\"node_modules/shared\": {" OK "},"
		/* o needs gpu, only-o and shared; p needs only both */
		"\"node_modules/o\": {\"optional\": true, " OK
		", \"dependencies\": {\"gpu\": \"1\", \"only-o\": \"1\", \"shared\": \"2\"}},"
		"\"node_modules/o/node_modules/shared\": {\"optional\": true, " OK "},"
		"\"node_modules/gpu\": {\"optional\": true, " OK "},"
		"\"node_modules/only-o\": {\"optional\": true, " OK
		", \"dependencies\": {\"both\": \"1\", \"chain\": \"1\"}},"
		"\"node_modules/chain\": {\"optional\": true, " OK
		", \"dependencies\": {\"only-o\": \"1\"}},"
		"\"node_modules/both\": {\"optional\": true, " OK "},"
		"\"node_modules/p\": {\"optional\": true, " OK
		", \"dependencies\": {\"both\": \"1\"}, \"optionalDependencies\": {\"gpu\": "
		"\"1\"}}";
	struct fixture f;

	setup(&f);
	is_locked(&f, root, packages, NULL, NULL,
		"a both chain gpu o o/node_modules/shared only-o p shared ");
	is_locked(&f, root, packages, "optional:gpu", NULL, "a both p shared ");
	is_locked(&f, root, packages, "optional:p", NULL,
		"a both chain gpu o o/node_modules/shared only-o shared ");
	is_locked(&f, root, packages, "optional:o", NULL, "a both gpu p shared ");
	teardown(&f);
}

TEST(what_is_both_development_and_optional_goes_when_both_do)
{
	static const char root[] = "\"devDependencies\": {\"d\": \"1\"},"
				   "\"optionalDependencies\": {\"o\": \"1\"}";
	static const char packages[] =
		"\"node_modules/d\": {\"dev\": true, " OK ", \"dependencies\": {\"x\": \"1\"}},"
		"\"node_modules/o\": {\"optional\": true, " OK
		", \"dependencies\": {\"x\": \"1\"}},"
		"\"node_modules/x\": {\"devOptional\": true, " OK "}";
	struct fixture f;

	setup(&f);
	is_locked(&f, root, packages, "dev", NULL, "o x ");
	is_locked(&f, root, packages, "optional:o", NULL, "d x ");
	is_locked(&f, root, packages, "optional:o", "dev", "");
	teardown(&f);
}

TEST(peers_stay_and_bundled_packages_come_with_their_parent)
{
	struct fixture f;

	setup(&f);
	is_locked(&f, "\"dependencies\": {\"a\": \"1\"}",
		"\"node_modules/a\": {" OK ", \"peerDependencies\": {\"p\": \"1\", \"q\": \"1\"},"
		"  \"peerDependenciesMeta\": {\"q\": {\"optional\": true}}},"
		"\"node_modules/a/node_modules/in\": {\"inBundle\": true, \"version\": \"1.0.0\"},"
		"\"node_modules/p\": {\"peer\": true, " OK "},"
		"\"node_modules/q\": {\"optional\": true, \"peer\": true, " OK "}",
		NULL, NULL, "a p q ");
	teardown(&f);
}

TEST(packages_for_other_platforms_are_left_out)
{
	static const struct {
		const char *rule;
		bool amd64, arm64;
	} cases[] = {
		{"\"os\": [\"linux\"]", true, true},
		{"\"os\": \"linux\"", true, true},
		{"\"os\": [\"darwin\", \"linux\"]", true, true},
		{"\"os\": [\"darwin\"]", false, false},
		{"\"os\": [\"!linux\"]", false, false},
		{"\"os\": [\"!win32\"]", true, true},
		{"\"os\": [\"!win32\", \"darwin\"]", false, false},
		{"\"os\": [\"any\"]", true, true},
		{"\"os\": [\"any\", \"win32\"]", false, false},
		{"\"os\": []", true, true},
		{"\"os\": [7]", false, false},
		{"\"cpu\": [\"x64\"]", true, false},
		{"\"cpu\": [\"arm64\"]", false, true},
		{"\"cpu\": [\"arm64\", \"x64\"]", true, true},
		{"\"cpu\": [\"!arm64\"]", true, false},
		{"\"libc\": [\"glibc\"]", true, true},
		{"\"libc\": [\"musl\"]", false, false},
		{"\"os\": [\"linux\"], \"cpu\": [\"x64\"], \"libc\": [\"musl\"]", false, false},
	};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *packages = mem_printf(
			"\"node_modules/o\": {\"optional\": true, " OK ", %s}", cases[i].rule);

		f.l.platform = "linux/amd64";
		is_locked(&f, "\"optionalDependencies\": {\"o\": \"1\"}", packages, NULL, NULL,
			cases[i].amd64 ? "o " : "");
		f.l.platform = "linux/arm64";
		is_locked(&f, "\"optionalDependencies\": {\"o\": \"1\"}", packages, NULL, NULL,
			cases[i].arm64 ? "o " : "");
	}
	teardown(&f);
}

TEST(a_needed_package_for_another_platform_is_an_error)
{
	struct fixture f;

	setup(&f);
	assert_int_equal(
		lock(&f, "\"dependencies\": {\"m\": \"1\"}",
			"\"node_modules/m\": {" OK ", \"os\": [\"darwin\"], \"cpu\": [\"x64\"]}",
			NULL, NULL),
		-1);
	assert_int_equal(f.e.kind, ERR_UNSUPPORTED);
	assert_non_null(strstr(f.e.text, "package-lock.json:3:1: node_modules/m: m 1.0.0 is for "
					 "{\"cpu\":[\"x64\"],\"os\":[\"darwin\"]}, the image is "
					 "linux x64 glibc"));
	teardown(&f);
}

TEST(hostile_and_unsupported_entries_are_refused_by_name)
{
	static const struct {
		const char *packages;
		enum err_kind kind;
		const char *words;
	} cases[] = {
		{"\"node_modules/../x\": {" OK "}", ERR_CORRUPT, "node_modules/../x"},
		{"\"node_modules/a/../../x\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules/.bin\": {" OK "}", ERR_CORRUPT, "node_modules/.bin"},
		{"\"node_modules/\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules/a/\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules/a/b\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules//a\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules/@/a\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules/@s\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules/@s/\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules/@s/..\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules/node_modules\": {" OK "}", ERR_CORRUPT, "no node_modules path"},
		{"\"node_modules/a\\u001b[2J\": {" OK "}", ERR_CORRUPT, "node_modules/a?[2J"},
		{"\"/node_modules/a\": {" OK "}", ERR_UNSUPPORTED, "workspace"},
		{"\"packages/mine\": {" OK "}", ERR_UNSUPPORTED, "packages/mine: is a folder"},
		{"\"node_modules/a\": {\"link\": true, \"resolved\": \"packages/a\"}",
			ERR_UNSUPPORTED, "node_modules/a: is a link"},
		{"\"node_modules/a\": {" OK ", \"resolved\": \"file:../a.tgz\"}", ERR_UNSUPPORTED,
			"node_modules/a: is a link or a file"},
		{"\"node_modules/a\": {" OK ", \"resolved\": \"git+ssh://git@host/a.git#1\"}",
			ERR_UNSUPPORTED, "git+ssh://git@host/a.git#1"},
		{"\"node_modules/a\": {" OK ", \"resolved\": \"https://host/a/b/tarball/1\"}",
			ERR_UNSUPPORTED, "a tarball of its own"},
		{"\"node_modules/a\": {" OK ", \"resolved\": \"https://host/a/-/a-2.0.0.tgz\"}",
			ERR_UNSUPPORTED, "a tarball of its own"},
		{"\"node_modules/a\": {" OK ", \"resolved\": 7}", ERR_CORRUPT, "expected a string"},
		{"\"node_modules/a\": {\"version\": \"1.0.0\"}", ERR_CORRUPT,
			"node_modules/a: has no integrity"},
		{"\"node_modules/a\": {\"version\": \"1.0.0\", \"integrity\": "
		 "\"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=\"}",
			ERR_UNSUPPORTED, "node_modules/a: integrity 'sha1-"},
		{"\"node_modules/a\": {\"version\": \"1.0.0\", \"integrity\": \"sha512-AAAA\"}",
			ERR_CORRUPT, "no sha512 in base64"},
		{"\"node_modules/a\": {\"integrity\": \"sha512-" ZEROS "\"}", ERR_CORRUPT,
			"has no version"},
		{"\"node_modules/a\": {\"version\": \"1/../../2\", \"integrity\": \"sha512-" ZEROS
		 "\"}",
			ERR_CORRUPT, "'1/../../2' is no version"},
		{"\"node_modules/a\": {" OK ", \"name\": \"../b\"}", ERR_CORRUPT,
			"'../b' is no package name"},
		{"\"node_modules/a\": {" OK ", \"name\": [\"b\"]}", ERR_CORRUPT, "name: expected"},
		{"\"node_modules/a\": {" OK ", \"bin\": {\"../x\": \"a\"}}", ERR_CORRUPT,
			"command '../x'"},
		{"\"node_modules/a\": {" OK ", \"bin\": {\"..\": \"a\"}}", ERR_CORRUPT,
			"command '..'"},
		{"\"node_modules/a\": {" OK ", \"bin\": {\"x\": \"../../../etc/x\"}}", ERR_CORRUPT,
			"'../../../etc/x' is no path"},
		{"\"node_modules/a\": {" OK ", \"bin\": {\"x\": \"/etc/x\"}}", ERR_CORRUPT,
			"'/etc/x' is no path"},
		{"\"node_modules/a\": {" OK ", \"bin\": {\"x\": 1}}", ERR_CORRUPT,
			"bin: expected strings"},
		{"\"node_modules/a\": {" OK ", \"bin\": [1]}", ERR_CORRUPT, "bin: expected"},
		{"\"node_modules/a\": {" OK ", \"dependencies\": 1}", ERR_CORRUPT,
			"dependencies: expected an object"},
		{"\"node_modules/a\": 1", ERR_CORRUPT, "node_modules/a: expected an object"},
		{"\"node_modules/a\": {" OK "}, \"node_modules/a\": {" OK "}", ERR_CORRUPT,
			"package-lock.json:"},
	};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f.e = (struct err){0};
		assert_int_equal(lock(&f, "", cases[i].packages, NULL, NULL), -1);
		if (f.e.kind != cases[i].kind || !strstr(f.e.text, cases[i].words) ||
			!strstr(f.e.text, "package-lock.json:"))
			fail_msg("case %zu: %s '%s' lacks '%s'", i, err_kind_name(f.e.kind),
				f.e.text, cases[i].words);
	}
	teardown(&f);
}

TEST(what_is_left_out_need_not_be_installable)
{
	struct fixture f;

	setup(&f);
	is_locked(&f, "", "\"node_modules/a\": {\"dev\": true, \"resolved\": \"git+ssh://x/y\"}",
		"dev", NULL, "");
	is_locked(&f, "",
		"\"node_modules/a\": {\"optional\": true, \"version\": \"1.0.0\","
		"\"os\": [\"darwin\"]}",
		NULL, NULL, "");
	teardown(&f);
}

TEST(old_locks_and_other_files_are_refused)
{
	static const struct {
		const char *text;
		enum err_kind kind;
		const char *words;
	} cases[] = {
		{"{\"lockfileVersion\": 1, \"dependencies\": {}}", ERR_UNSUPPORTED,
			"version 2 or 3"},
		{"{\"packages\": {}}", ERR_UNSUPPORTED, "version 2 or 3"},
		{"{\"packages\": []}", ERR_UNSUPPORTED, "version 2 or 3"},
		{"[]", ERR_UNSUPPORTED, "version 2 or 3"},
		{"{\"packages\": ", ERR_CORRUPT, "package-lock.json:1:"},
		{"", ERR_CORRUPT, "package-lock.json:1:"},
	};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			lock_bytes(&f, cases[i].text, strlen(cases[i].text), NULL, NULL), -1);
		if (f.e.kind != cases[i].kind || !strstr(f.e.text, cases[i].words))
			fail_msg("case %zu: %s", i, f.e.text);
	}
	assert_int_equal(sys_unlinkat(f.fd, "package-lock.json", 0), 0);
	assert_int_equal(sys_symlinkat("/etc/passwd", f.fd, "package-lock.json"), 0);

	struct manifest m = {.dir = f.dir, .node = {.lock = "package-lock.json"}};

	assert_int_equal(npm_lock(&f.l, &m, &f.e), -1); /* never out of the manifest's folder */
	assert_non_null(strstr(f.e.text, "package-lock.json"));
	teardown(&f);
}

TEST(locks_have_limits)
{
	auto_buf struct buf many = BUF_INIT(64 << 20), deep = BUF_INIT(1 << 20),
			    wide = BUF_INIT(32 << 20);
	struct fixture f;

	setup(&f);
	for (int i = 0; i < 20000; i++)
		buf_printf(&many, "%s\"node_modules/a%d\": {" OK "}", i ? "," : "", i);
	assert_int_equal(lock(&f, "", many.data, NULL, NULL), -1);
	assert_non_null(strstr(f.e.text, "20001 packages, more than the limit of 20000"));

	many.len = 0;
	while (many.len <= 32 << 20)
		buf_printf(&many, "%1000s", "");
	assert_int_equal(lock_bytes(&f, many.data, many.len, NULL, NULL), -1);
	assert_non_null(strstr(f.e.text, "longer than the limit of 33554432 bytes"));

	buf_printf(&deep, "\"");
	for (int i = 0; i < 65; i++)
		buf_printf(&deep, "%snode_modules/a", i ? "/" : "");
	buf_printf(&deep, "\": {" OK "}");
	assert_int_equal(lock(&f, "", deep.data, NULL, NULL), -1);
	assert_non_null(strstr(f.e.text, "nested deeper than the limit of 64"));

	/* 64 deep, and each asks for thousands of what is nowhere */
	buf_printf(&wide, "\"node_modules/top\": {" OK "}");
	for (int i = 0; i < 64; i++) {
		buf_printf(&wide, ",\"node_modules/a");
		for (int k = 0; k < 62; k++)
			buf_printf(&wide, "/node_modules/a%d", k == 61 ? i : k);
		buf_printf(&wide, "\": {" OK ", \"dependencies\": {");
		for (int k = 0; k < 500; k++)
			buf_printf(&wide, "%s\"x%d\": \"\"", k ? "," : "", k);
		buf_printf(&wide, "}}");
	}
	assert_int_equal(lock(&f, "", wide.data, NULL, NULL), -1);
	if (!strstr(f.e.text, "limit of 1048576 look-ups"))
		fail_msg("%s", f.e.text);
	teardown(&f);
}

/* ---- integrity ---- */

TEST(integrity_is_base64_of_64_bytes)
{
	static const char text[] = "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+"
				   "DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="; /* of nothing */
	uint8_t out[64], want[HASH_MAX];
	struct hash h;
	struct err e = {0};

	hash_init(&h, HASH_SHA512);
	hash_final(&h, want);
	assert_int_equal(npm_integrity(text, out, &e), 0);
	assert_memory_equal(out, want, 64);

	static const char *const wrong[] = {"", "sha512-", "sha512-z4P", "sha384-AAAA", "md5-x",
		"sha512-" ZEROS "=", "sha512-A" ZEROS, "SHA512-" ZEROS,
		"sha512-"
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		"AAAAAAAB==", /* bits to spare must be 0 */
		"sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA "
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		"AAAAAAAA=="};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (npm_integrity(wrong[i], out, &e) == 0)
			fail_msg("'%s' was accepted", wrong[i]);
}

/* ---- tarballs ---- */

static void put_header(
	struct buf *b, const char *name, char type, const char *link, size_t size, unsigned mode)
{
	char h[512] = {0};
	unsigned sum = 8 * ' ';

	snprintf(h, 100, "%s", name);
	snprintf(h + 100, 8, "%07o", mode);
	snprintf(h + 108, 8, "%07o", 1000u);
	snprintf(h + 116, 8, "%07o", 1000u);
	snprintf(h + 124, 12, "%011zo", size);
	snprintf(h + 136, 12, "%011o", 499162500u); /* npm's 1985 */
	h[156] = type;
	snprintf(h + 157, 100, "%s", link);
	snprintf(h + 257, 6, "ustar");
	h[263] = h[264] = '0';
	for (size_t i = 0; i < sizeof(h); i++)
		sum += i >= 148 && i < 156 ? 0 : (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	buf_put(b, h, sizeof(h));
}

static void put_file(struct buf *b, const char *name, const void *p, size_t n, unsigned mode)
{
	static const char zeros[512];

	put_header(b, name, '0', "", n, mode);
	buf_put(b, p, n);
	buf_put(b, zeros, (512 - n % 512) % 512);
}

static void put_text(struct buf *b, const char *name, const char *text)
{
	put_file(b, name, text, strlen(text), 0644);
}

static void put_end(struct buf *b)
{
	static const char zeros[1024];

	buf_put(b, zeros, sizeof(zeros));
}

/* One gzip member. */
static void put_gzip(struct buf *out, const void *p, size_t n)
{
	struct isal_zstream z;
	auto_free uint8_t *to = mem_alloc(n + n / 8 + 1024), *from = mem_dup(p, n);

	isal_deflate_init(&z);
	z.gzip_flag = IGZIP_GZIP;
	z.end_of_stream = 1;
	z.next_in = from;
	z.avail_in = (uint32_t)n;
	z.next_out = to;
	z.avail_out = (uint32_t)(n + n / 8 + 1024);
	assert_int_equal(isal_deflate(&z), COMP_OK);
	assert_int_equal(z.internal_state.state, ZSTATE_END);
	buf_put(out, to, z.total_out);
}

static int tarball_fd(const struct buf *gz)
{
	int fd = sys_open("/tmp", O_TMPFILE | O_RDWR, 0600);

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, gz->data, gz->len), 0);
	return fd;
}

static const struct lock_npm package = {
	.path = "node_modules/@s/a", .name = "@s/a", .version = "1.0.0"};

static int unpack_gz(struct fixture *f, const struct buf *gz, const struct lock_npm *n)
{
	auto_fd int fd = tarball_fd(gz);

	return npm_unpack(n, "/opt/app", fd, f->pool, &f->out, &f->e);
}

static int unpack(struct fixture *f, const struct buf *tar, const struct lock_npm *n)
{
	auto_buf struct buf gz = BUF_INIT(64 << 20);

	put_gzip(&gz, tar->data, tar->len);
	return unpack_gz(f, &gz, n);
}

static const struct entry *find(const struct fixture *f, const char *path)
{
	for (size_t i = 0; i < f->out.n; i++)
		if (str_eq(f->out.v[i].path, path))
			return &f->out.v[i];
	return NULL;
}

static struct attr attr_of(const struct fixture *f, const char *path)
{
	const struct entry *en = find(f, path);

	if (!en)
		fail_msg("no %s", path);
	return en ? en->a : (struct attr){0};
}

static void holds(const struct fixture *f, const char *path, const void *want, size_t n)
{
	struct attr a = attr_of(f, path);
	auto_free unsigned char *data = mem_alloc(n + 1);
	size_t at = 0;

	assert_int_equal(a.size, n);
	for (uint32_t i = 0; i < a.nchunks; at += a.chunks[i++].length)
		assert_int_equal(pool_read(f->pool, &a.chunks[i], data + at, NULL), 0);
	assert_int_equal(at, n);
	assert_memory_equal(data, want, n);
}

TEST(a_tarball_is_unpacked_below_its_place)
{
	auto_buf struct buf tar = BUF_INIT(1 << 20);
	struct attr a;
	struct fixture f;

	put_file(&tar, "whatever/lib/x.js", "hello", 5, 0600);
	put_file(&tar, "whatever/bin/y", "#!", 2, 0750);
	put_file(&tar, "whatever/bin/z", "", 0, 06755);
	put_header(&tar, "whatever/empty/", '5', "", 0, 0700);
	put_text(&tar, "other/first/folder", "too");
	put_text(&tar, "beside", "left out");
	put_end(&tar);
	setup(&f);
	if (unpack(&f, &tar, &package) < 0)
		fail_msg("%s", f.e.text);
	assert_int_equal(f.out.n, 5);
	holds(&f, "opt/app/node_modules/@s/a/lib/x.js", "hello", 5);
	a = attr_of(&f, "opt/app/node_modules/@s/a/lib/x.js");
	assert_int_equal(a.mode, 0644);
	assert_int_equal(a.uid, 0);
	assert_int_equal(a.gid, 0);
	assert_int_equal(a.mtime, 499162500);
	assert_int_equal(attr_of(&f, "opt/app/node_modules/@s/a/bin/y").mode, 0755);
	assert_int_equal(attr_of(&f, "opt/app/node_modules/@s/a/bin/z").mode, 0755);
	assert_int_equal(attr_of(&f, "opt/app/node_modules/@s/a/empty").mode, 0755);
	holds(&f, "opt/app/node_modules/@s/a/first/folder", "too", 3);
	teardown(&f);
}

TEST(gitignore_becomes_npmignore_unless_there_is_one)
{
	auto_buf struct buf tar = BUF_INIT(1 << 20);
	struct fixture f;

	put_text(&tar, "p/.gitignore", "a");
	put_text(&tar, "p/x/.gitignore", "b");
	put_text(&tar, "p/x/.npmignore", "c");
	put_text(&tar, "p/y/.npmignore", "d");
	put_text(&tar, "p/y/.gitignore", "e");
	put_text(&tar, "p/z.gitignore", "f");
	put_text(&tar, "p/.gitignore.d/x", "g");
	put_end(&tar);
	setup(&f);
	assert_int_equal(unpack(&f, &tar, &package), 0);
	assert_int_equal(f.out.n, 5);
	holds(&f, "opt/app/node_modules/@s/a/.npmignore", "a", 1);
	holds(&f, "opt/app/node_modules/@s/a/x/.npmignore", "c", 1);
	holds(&f, "opt/app/node_modules/@s/a/y/.npmignore", "d", 1);
	holds(&f, "opt/app/node_modules/@s/a/z.gitignore", "f", 1);
	teardown(&f);
}

TEST(the_first_line_of_commands_loses_its_carriage_return)
{
	struct pair bins[] = {{"a", "a.js"}, {"b", "./b.js"}, {"c", "c.js"}, {"d", "d.js"},
		{"e", "not/there.js"}, {"f", "f.js"}};
	struct lock_npm n = package;
	auto_buf struct buf tar = BUF_INIT(8 << 20), big = BUF_INIT(4 << 20);
	struct fixture f;

	buf_printf(&big, "#!/usr/bin/env node\r\n");
	while (big.len < 2500000)
		buf_printf(&big, "line\r\n");
	put_text(&tar, "p/a.js", "#!/usr/bin/env node\r\nx\r\n");
	put_text(&tar, "p/b.js", "#!/usr/bin/env node\nx\r\n");
	put_text(&tar, "p/c.js", "x\r\n");
	put_text(&tar, "p/d.js", "");
	put_file(&tar, "p/f.js", big.data, big.len, 0644);
	put_text(&tar, "p/other.js", "#!/usr/bin/env node\r\n");
	put_end(&tar);
	n.bin = (struct pairs){bins, 6};
	setup(&f);
	assert_int_equal(unpack(&f, &tar, &n), 0);
	holds(&f, "opt/app/node_modules/@s/a/a.js", "#!/usr/bin/env node\nx\r\n", 23);
	holds(&f, "opt/app/node_modules/@s/a/b.js", "#!/usr/bin/env node\nx\r\n", 23);
	holds(&f, "opt/app/node_modules/@s/a/c.js", "x\r\n", 3);
	holds(&f, "opt/app/node_modules/@s/a/d.js", "", 0);
	memmove(big.data + 19, big.data + 20, big.len - 20);
	holds(&f, "opt/app/node_modules/@s/a/f.js", big.data, big.len - 1);
	holds(&f, "opt/app/node_modules/@s/a/other.js", "#!/usr/bin/env node\r\n", 21);
	teardown(&f);
}

TEST(hostile_members_are_refused_by_name)
{
	static const struct {
		const char *name;
		char type;
		const char *link, *words;
	} cases[] = {
		{"package/../../etc/x", '0', "", "package/../../etc/x"},
		{"package/x/../../../../y", '0', "", "y"},
		{"/etc/x", '0', "", "absolute"},
		{"package/x", '2', "/etc/passwd", "'package/x' is neither a file nor a folder"},
		{"package/x", '1', "package/y", "'package/x' is neither a file nor a folder"},
		{"package/x", '3', "", "device"},
		{"package/x", '4', "", "device"},
		{"package/x", '6', "", "neither a file nor a folder"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf tar = BUF_INIT(1 << 20);
		struct fixture f;

		put_header(&tar, cases[i].name, cases[i].type, cases[i].link, 0, 0644);
		put_end(&tar);
		setup(&f);
		assert_int_equal(unpack(&f, &tar, &package), -1);
		if (f.e.kind != ERR_CORRUPT || !strstr(f.e.text, cases[i].words) ||
			!strstr(f.e.text, "@s/a 1.0.0"))
			fail_msg("case %zu: %s", i, f.e.text);
		teardown(&f);
	}
}

/* agent-base 7.1.4 has package/./dist/index.js and package/dist/index.js. */
TEST(one_file_twice_must_be_the_same)
{
	static const struct {
		const char *text;
		unsigned mode;
		int rc;
	} cases[] = {{"text", 0644, 0}, {"text", 0600, 0}, {"test", 0644, -1}, {"tex", 0644, -1},
		{"text", 0755, -1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf tar = BUF_INIT(1 << 20);
		struct fixture f;

		put_text(&tar, "package/./x", "text");
		put_file(&tar, "package/x", cases[i].text, strlen(cases[i].text), cases[i].mode);
		put_end(&tar);
		setup(&f);
		assert_int_equal(unpack(&f, &tar, &package), cases[i].rc);
		if (cases[i].rc == 0)
			holds(&f, "opt/app/node_modules/@s/a/x", "text", 4);
		else
			assert_non_null(strstr(f.e.text, "node_modules/@s/a/x' is there twice"));
		teardown(&f);
	}
}

TEST(a_hostile_place_is_refused)
{
	auto_buf struct buf tar = BUF_INIT(1 << 20);
	struct lock_npm n = package;
	struct fixture f;

	put_text(&tar, "p/x", "x");
	put_end(&tar);
	setup(&f);
	n.path = "node_modules/../../etc";
	assert_int_equal(unpack(&f, &tar, &n), -1);
	assert_int_equal(f.e.kind, ERR_CORRUPT);
	teardown(&f);
}

/* ---- gzip ---- */

/* Where members begin and end must not matter: blocks of input are 64 KiB. */
TEST(members_of_any_length_are_one_stream)
{
	enum { SIZE = 70000 };
	auto_buf struct buf tar = BUF_INIT(4 << 20);
	unsigned char noise[SIZE];
	struct fixture f;

	for (size_t i = 0; i < SIZE; i++)
		noise[i] = (unsigned char)(i * 2654435761U >> 11);
	put_file(&tar, "p/a", noise, SIZE, 0644);
	put_file(&tar, "p/b", noise, SIZE / 2, 0644);
	put_end(&tar);
	setup(&f);
	for (size_t cut = 65536 - 64; cut < 65536 + 64; cut++) {
		auto_buf struct buf gz = BUF_INIT(4 << 20);

		entries_fini(&f.out);
		f.out = (struct entries){0};
		put_gzip(&gz, tar.data, cut);
		put_gzip(&gz, "", 0);
		put_gzip(&gz, tar.data + cut, tar.len - cut);
		if (cut % 2)
			buf_printf(&gz, "%c%c%c", 0, 0, 0);
		if (unpack_gz(&f, &gz, &package) < 0)
			fail_msg("cut %zu: %s", cut, f.e.text);
		holds(&f, "opt/app/node_modules/@s/a/a", noise, SIZE);
		holds(&f, "opt/app/node_modules/@s/a/b", noise, SIZE / 2);
	}
	teardown(&f);
}

TEST(damaged_gzip_is_refused)
{
	auto_buf struct buf tar = BUF_INIT(1 << 20), gz = BUF_INIT(1 << 20);
	struct fixture f;
	size_t whole;

	put_text(&tar, "p/a", "hello, hello, hello");
	put_end(&tar);
	put_gzip(&gz, tar.data, tar.len);
	whole = gz.len;
	setup(&f);
	for (gz.len = 0; gz.len < whole; gz.len++) { /* the trailer, too, which tar does not need */
		assert_int_equal(unpack_gz(&f, &gz, &package), -1);
		if (f.e.kind != ERR_CORRUPT || !strstr(f.e.text, "@s/a 1.0.0"))
			fail_msg("%zu bytes: %s", gz.len, f.e.text);
	}
	for (size_t i = whole - 8; i < whole; i++) { /* checksum and length */
		gz.data[i] ^= 1;
		assert_int_equal(unpack_gz(&f, &gz, &package), -1);
		assert_non_null(strstr(f.e.text, "wrong gzip checksum"));
		gz.data[i] ^= 1;
	}
	assert_int_equal(unpack_gz(&f, &gz, &package), 0);
	buf_printf(&gz, "behind");
	assert_int_equal(unpack_gz(&f, &gz, &package), -1);
	assert_non_null(strstr(f.e.text, "bytes behind the end"));
	assert_int_equal(unpack_gz(&f, &tar, &package), -1); /* no gzip at all */
	assert_int_equal(f.e.kind, ERR_CORRUPT);
	teardown(&f);
}

TEST(a_bomb_is_stopped_at_the_limit)
{
	enum { SIZE = 8 << 20 };
	auto_free char *zeros = mem_alloc(SIZE);
	auto_buf struct buf gz = BUF_INIT(1 << 20);
	struct err e = {0};

	put_gzip(&gz, zeros, SIZE);

	auto_fd int fd = tarball_fd(&gz);
	auto_gunzip struct gunzip *z = gunzip_new(fd, "bomb", SIZE - 1);
	auto_gunzip struct gunzip *fine = gunzip_new(fd, "no bomb", SIZE);

	assert_int_equal(gunzip_finish(z, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_string_equal(e.text, "bomb: unpacks to more than the limit of 8388607 bytes");
	assert_int_equal(gunzip_finish(fine, &e), 0);
}

/* ---- node_modules/.bin ---- */

static void put(struct tree *t, const char *path, enum node_type type, const char *target)
{
	struct attr a = {.type = type, .mode = 0644, .target = target};
	struct err e = {0};

	if (!tree_put(t, path, &a, 1, &e))
		fail_msg("%s", e.text);
}

TEST(commands_are_linked_as_npm_does_it)
{
	static struct pair a[] = {{"both", "bin/a.js"}, {"one", "./bin/a.js"},
		{"none", "bin/no.js"}},
			   b[] = {{"both", "b.js"}}, c[] = {{"deep", "c.js"}};
	static struct lock_npm npms[] = {
		{.path = "node_modules/@s/a", .name = "@s/a", .bin = {a, 3}},
		{.path = "node_modules/b", .name = "b", .bin = {b, 1}},
		{.path = "node_modules/b/node_modules/@t/c", .name = "@t/c", .bin = {c, 1}},
	};
	static const struct {
		const char *link, *target;
	} links[] = {
		{"node_modules/.bin/both", "../@s/a/bin/a.js"},
		{"node_modules/.bin/one", "../@s/a/bin/a.js"},
		{"node_modules/.bin/none", NULL},
		{"node_modules/b/node_modules/.bin/deep", "../@t/c/c.js"},
		{"node_modules/.bin/deep", NULL},
	};
	static const char *const prefixes[] = {"/opt/app", "/", "/link"};
	const struct lock l = {.npms = npms, .nnpms = 3};
	struct err e = {0};

	for (size_t p = 0; p < 3; p++) {
		struct tree *t = tree_new();
		struct node *n;

		if (p == 2)
			put(t, "link", NODE_SYMLINK, "opt/real");
		for (size_t i = 0; i < 3; i++) {
			static const char *const files[] = {"bin/a.js", "b.js", "c.js"};
			auto_free char *place = npm_place(prefixes[p], npms[i].path);
			auto_free char *file = mem_printf("%s/%s", place, files[i]);

			put(t, file, NODE_FILE, NULL);
		}
		assert_int_equal(npm_bins(t, &l, prefixes[p], 77, 9, &e), 0);
		for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
			auto_free char *at =
				npm_place(p == 2 ? "/opt/real" : prefixes[p], links[i].link);

			n = tree_find(t, at);
			if (!n != !links[i].target)
				fail_msg("%s", at);
			if (!n)
				continue;
			assert_int_equal(n->a.type, NODE_SYMLINK);
			assert_string_equal(n->a.target, links[i].target);
			assert_int_equal(n->a.mtime, 77);
			assert_int_equal(n->origin, 9);
			n = tree_resolve(t, at);
			assert_non_null(n);
			assert_int_equal(n->a.mode, 0755);
		}
		tree_free(t);
	}
}

TEST(hostile_commands_of_a_lock_are_refused)
{
	static const struct pair hostile[] = {{"../x", "a"}, {"", "a"}, {".", "a"}, {"..", "a"},
		{"x/y", "a"}, {"x", "../../y"}, {"x", "/y"}, {"x", ""}, {"x", "."}};

	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		struct pair bin = hostile[i];
		struct lock_npm n = {.path = "node_modules/a", .name = "a", .bin = {&bin, 1}};
		struct lock l = {.npms = &n, .nnpms = 1};
		struct tree *t = tree_new();
		struct err e = {0};

		if (npm_bins(t, &l, "/app", 0, 1, &e) == 0)
			fail_msg("'%s' -> '%s' was accepted", bin.name, bin.value);
		assert_int_equal(e.kind, ERR_CORRUPT);
		tree_free(t);
	}
}

RUN_TESTS(cmocka_unit_test(a_lock_becomes_addresses_digests_and_commands),
	cmocka_unit_test(development_and_optional_packages_can_be_omitted),
	cmocka_unit_test(an_omitted_package_takes_its_own_along_and_no_more),
	cmocka_unit_test(what_is_both_development_and_optional_goes_when_both_do),
	cmocka_unit_test(peers_stay_and_bundled_packages_come_with_their_parent),
	cmocka_unit_test(packages_for_other_platforms_are_left_out),
	cmocka_unit_test(a_needed_package_for_another_platform_is_an_error),
	cmocka_unit_test(hostile_and_unsupported_entries_are_refused_by_name),
	cmocka_unit_test(what_is_left_out_need_not_be_installable),
	cmocka_unit_test(old_locks_and_other_files_are_refused),
	cmocka_unit_test(locks_have_limits), cmocka_unit_test(integrity_is_base64_of_64_bytes),
	cmocka_unit_test(a_tarball_is_unpacked_below_its_place),
	cmocka_unit_test(gitignore_becomes_npmignore_unless_there_is_one),
	cmocka_unit_test(the_first_line_of_commands_loses_its_carriage_return),
	cmocka_unit_test(hostile_members_are_refused_by_name),
	cmocka_unit_test(one_file_twice_must_be_the_same),
	cmocka_unit_test(a_hostile_place_is_refused),
	cmocka_unit_test(members_of_any_length_are_one_stream),
	cmocka_unit_test(damaged_gzip_is_refused), cmocka_unit_test(a_bomb_is_stopped_at_the_limit),
	cmocka_unit_test(commands_are_linked_as_npm_does_it),
	cmocka_unit_test(hostile_commands_of_a_lock_are_refused))
