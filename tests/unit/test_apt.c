#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/apt-closure.h"
#include "builder/apt.h"

/* ---- a signed repository in a folder, as a mirror of the name "local" ---- */

static const char packages[] =
	"Package: app\nVersion: 1:2.0+b1-1\nArchitecture: amd64\n"
	"Depends: libx (>= 1), editor | vi, missing | shell\nRecommends: extra\n"
	"Filename: pool/main/a/app/app_2.0+b1-1_amd64.deb\nSize: 1234\n"
	"SHA256: 1111111111111111111111111111111111111111111111111111111111111111\n\n"
	"Package: libx\nSource: xsource (1.5)\nVersion: 1.5\nArchitecture: amd64\n"
	"Multi-Arch: same\nFilename: pool/main/x/xsource/libx_1.5_amd64.deb\nSize: 10\n"
	"SHA256: 2222222222222222222222222222222222222222222222222222222222222222\n\n"
	"Package: ed\nVersion: 1\nArchitecture: all\nProvides: editor\n"
	"Filename: pool/main/e/ed/ed_1_all.deb\nSize: 20\n"
	"SHA256: 3333333333333333333333333333333333333333333333333333333333333333\n\n"
	"Package: shell\nEssential: yes\nVersion: 1\nArchitecture: amd64\n"
	"Filename: pool/main/s/shell/shell_1_amd64.deb\nSize: 30\n"
	"SHA256: 4444444444444444444444444444444444444444444444444444444444444444\n\n"
	"Package: extra\nVersion: 1\nArchitecture: all\n"
	"Filename: pool/main/e/extra/extra_1_all.deb\nSize: 40\n"
	"SHA256: 5555555555555555555555555555555555555555555555555555555555555555\n\n"
	"Package: broken\nVersion: 1\nArchitecture: all\nDepends: libx (>= 9)\n"
	"Filename: pool/main/b/broken/broken_1_all.deb\nSize: 50\n"
	"SHA256: 6666666666666666666666666666666666666666666666666666666666666666\n\n";

struct repo {
	char dir[32];
	int fd;
	struct config config;
	struct mirrors mirrors;
	struct manifest m;
	struct apt_source source;
	const char *suites[1], *components[1];
	struct lock lock;
	struct err e;
};

static bool have(const char *program)
{
	const char *const argv[] = {program, "--version", NULL};

	return proc_run(&(struct proc){.argv = argv}, NULL) == 0;
}

/* Not here: a test that did not run must say so. */
static bool cannot(void)
{
	static const char *const programs[] = {"apt-get", "gpg", "gpgv"};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (!have(programs[i])) {
			print_message("skipped: %s is not installed\n", programs[i]);
			return true;
		}
	return false;
}

static void gpg(struct repo *r, const char *const *args)
{
	const char *argv[24] = {"gpg", "--homedir", "gpg", "--batch", "--yes", "--quiet",
		"--passphrase", "", "--pinentry-mode", "loopback"};
	size_t n = 10;

	while (*args)
		argv[n++] = *args++;
	argv[n] = NULL;
	if (proc_check(&(struct proc){.argv = argv, .dir = r->dir}, &r->e) < 0)
		fail_msg("%s", r->e.text);
}

static void put(struct repo *r, const char *path, const char *text)
{
	if (file_write(r->fd, path, text, strlen(text), 0644, &r->e) < 0)
		fail_msg("%s", r->e.text);
}

static void sign(struct repo *r, const char *user)
{
	static const char index[] = "repo/dists/stable/main/binary-amd64/Packages";
	struct digest d = digest_of(packages, strlen(packages));
	char hex[DIGEST_HEX + 1];
	auto_free char *text = mem_printf(
		"Origin: Test\nSuite: stable\nCodename: stable\n"
		"Date: Thu, 01 Jan 2026 00:00:00 UTC\nArchitectures: amd64\nComponents: main\n"
		"SHA256:\n %s %zu main/binary-amd64/Packages\n",
		digest_hex(&d, hex), strlen(packages));

	put(r, index, packages);
	put(r, "repo/dists/stable/Release", text);
	gpg(r, (const char *const[]){"-u", user, "--clearsign", "-o", "repo/dists/stable/InRelease",
		       "repo/dists/stable/Release", NULL});
}

static void new_key(struct repo *r, const char *user, const char *keyring)
{
	gpg(r, (const char *const[]){
		       "--quick-generate-key", user, "ed25519", "sign", "never", NULL});
	gpg(r, (const char *const[]){"-o", keyring, "--export", user, NULL});
}

static int set_up(void **state)
{
	struct repo *r = mem_alloc(sizeof(*r));

	*r = (struct repo){.dir = "/tmp/svrun-test-XXXXXX"};
	*state = r;
	if (!mkdtemp(r->dir))
		return -1;
	r->fd = sys_open(r->dir, O_RDONLY | O_DIRECTORY, 0);
	return 0;
}

static struct repo *begin(void **state)
{
	struct repo *r = *state;
	auto_free char *address = NULL;

	if (cannot())
		skip();
	assert_int_equal(sys_mkdir_p(r->fd, "repo/dists/stable/main/binary-amd64", 0755), 0);
	assert_int_equal(sys_mkdir_p(r->fd, "gpg", 0700), 0);
	new_key(r, "signer", "signer.gpg");
	sign(r, "signer");

	address = mem_printf("file://%s/repo", r->dir);
	r->config.mirrors = json_pack("{s:s}", "local", address);
	mirrors_init(&r->mirrors, &r->config);
	r->suites[0] = "stable";
	r->components[0] = "main";
	r->source = (struct apt_source){.uri = "mirror:local",
		.suites = {r->suites, 1},
		.components = {r->components, 1},
		.signed_by = "signer.gpg"};
	r->m.dir = r->dir;
	r->m.path = mem_printf("%s/manifest.json", r->dir);
	r->m.apt = (struct manifest_apt){.present = true, .sources = &r->source, .nsources = 1};
	r->lock.platform = "linux/amd64";
	return r;
}

/* After a test that failed, too: gpg leaves an agent behind, which would stay. */
static int tear_down(void **state)
{
	struct repo *r = *state;
	const char *const argv[] = {"gpgconf", "--homedir", "gpg", "--kill", "all", NULL};

	if (have("gpg"))
		assert_true(proc_run(&(struct proc){.argv = argv, .dir = r->dir}, NULL) >= 0);
	lock_fini(&r->lock);
	json_doc_fini(&r->m.doc);
	mirrors_fini(&r->mirrors);
	json_decref(r->config.mirrors);
	free(r->m.path);
	close(r->fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, r->dir), 0);
	free(r);
	return 0;
}

static int lock(struct repo *r, const char *const *names, size_t n)
{
	auto_free char *state = mem_printf("%s/state", r->dir);
	auto_buf struct buf text = BUF_INIT(1 << 16);
	const char *copy[8];

	buf_printf(&text, "{\"apt\": {\n  \"packages\": [");
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s\n    \"%s\"", i ? "," : "", names[i]);
	buf_printf(&text, "]}}\n");
	json_doc_fini(&r->m.doc);
	assert_int_equal(json_doc_parse(&r->m.doc, "m", text.data, text.len, &r->e), 0);
	memcpy(copy, names, n * sizeof(*names));
	r->m.apt.packages = (struct strings){.v = copy, .n = n};
	lock_fini(&r->lock);
	r->lock.platform = "linux/amd64";
	assert_int_equal(sys_remove_tree(r->fd, "state"), 0);
	assert_int_equal(sys_mkdirat(r->fd, "state", 0700), 0);
	return apt_lock(&r->lock, &r->m, &r->mirrors, state, NULL, &r->e);
}

static const struct lock_deb *find(const struct repo *r, const char *name)
{
	for (size_t i = 0; i < r->lock.ndebs; i++)
		if (str_eq(r->lock.debs[i].name, name))
			return &r->lock.debs[i];
	fail_msg("%s is not in the lock", name);
	return NULL;
}

static void fails(
	struct repo *r, const char *const *names, size_t n, enum err_kind kind, const char *words)
{
	assert_int_equal(lock(r, names, n), -1);
	if (r->e.kind != kind || !strstr(r->e.text, words))
		fail_msg("'%s' (%s) lacks '%s'", r->e.text, err_kind_name(r->e.kind), words);
}

/* ---- tests ---- */

TEST(the_lock_holds_what_apt_chose_and_why)
{
	static const char *const names[] = {"app", "?essential"};
	const struct lock_deb *d;
	struct repo *r = begin(state);

	if (lock(r, names, 2) < 0)
		fail_msg("%s", r->e.text);
	assert_int_equal(r->lock.ndebs, 4);
	d = find(r, "app");
	assert_ptr_equal(d, &r->lock.debs[0]); /* sorted */
	assert_string_equal(d->version, "1:2.0+b1-1");
	assert_string_equal(d->arch, "amd64");
	assert_true(str_starts(d->url, "mirror:local/pool/main/a/app/app_2.0"));
	assert_string_equal(d->source, "app");
	assert_int_equal(d->size, 1234);
	assert_int_equal(d->sha256.b[0], 0x11);
	assert_true(d->why.n == 1 && str_eq(d->why.v[0], "manifest:/apt/packages/0"));
	d = find(r, "libx");
	assert_string_equal(d->source, "xsource");
	assert_true(d->why.n == 1 && str_eq(d->why.v[0], "app") && !d->essential);
	d = find(r, "ed"); /* it provides what app needs */
	assert_true(d->why.n == 1 && str_eq(d->why.v[0], "app"));
	d = find(r, "shell");
	assert_true(d->essential && d->why.n == 1);
	assert_string_equal(d->why.v[0], "manifest:/apt/packages/1");
}

TEST(the_lock_says_what_was_verified)
{
	static const char *const names[] = {"libx"};
	auto_buf struct buf text = BUF_INIT(1 << 20);
	struct digest want;
	struct repo *r = begin(state);

	if (lock(r, names, 1) < 0)
		fail_msg("%s", r->e.text);
	assert_int_equal(file_read(r->fd, "repo/dists/stable/InRelease", &text, &r->e), 0);
	want = digest_of(text.data, text.len);
	assert_int_equal(r->lock.nindexes, 1);
	assert_string_equal(r->lock.indexes[0].uri, "mirror:local");
	assert_string_equal(r->lock.indexes[0].suite, "stable");
	assert_string_equal(r->lock.indexes[0].date, "Thu, 01 Jan 2026 00:00:00 UTC");
	assert_true(digest_eq(&r->lock.indexes[0].release, &want));
	assert_int_equal(r->lock.indexes[0].signed_by.n, 1);
	assert_int_equal(strlen(r->lock.indexes[0].signed_by.v[0]), 40);
}

TEST(recommendations_come_only_when_asked_for)
{
	static const char *const names[] = {"app"};
	struct repo *r = begin(state);

	r->m.apt.recommends = true;
	if (lock(r, names, 1) < 0)
		fail_msg("%s", r->e.text);
	assert_string_equal(find(r, "extra")->why.v[0], "app");
}

TEST(what_cannot_be_resolved_is_told_with_its_place)
{
	static const struct {
		const char *names[2];
		const char *words, *place;
	} cases[] = {
		{{"libx", "nothing"}, "Unable to locate package nothing",
			"manifest.json:4:5: /apt/packages/1: "},
		{{"libx=7", "ed"}, "Version '7' for 'libx' was not found",
			"manifest.json:3:5: /apt/packages/0: "},
		{{"ed", "broken"}, "broken : Depends: libx (>= 9)",
			"manifest.json:4:5: /apt/packages/1: "},
		{{"ed", "libx/testing"}, "Release 'testing' for 'libx' was not found",
			"manifest.json:4:5: /apt/packages/1: "},
	};
	struct repo *r = begin(state);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fails(r, cases[i].names, 2, ERR_USAGE, cases[i].words);
		if (!strstr(r->e.text, cases[i].place))
			fail_msg("'%s' lacks '%s'", r->e.text, cases[i].place);
	}
}

TEST(only_the_named_keyring_is_trusted)
{
	static const char *const names[] = {"libx"};
	struct repo *r = begin(state);

	new_key(r, "stranger", "stranger.gpg");
	sign(r, "stranger");
	fails(r, names, 1, ERR_CORRUPT, "NO_PUBKEY");
	r->source.signed_by = "stranger.gpg";
	assert_int_equal(lock(r, names, 1), 0);
	r->source.signed_by = NULL;
	fails(r, names, 1, ERR_CORRUPT, "not signed");
	r->source.signed_by = "stranger.asc";
	fails(r, names, 1, ERR_USAGE, "/apt/sources/0: keyring stranger.asc is in text form");
	r->source.signed_by = "keyring:no-such";
	fails(r, names, 1, ERR_NOT_FOUND, "/apt/sources/0: keyring keyring:no-such: ");
	assert_string_equal(r->e.hint, "apt-get install no-such-keyring");
}

TEST(altered_indexes_are_refused)
{
	static const char *const names[] = {"libx"};
	struct repo *r = begin(state);

	put(r, "repo/dists/stable/main/binary-amd64/Packages", "Package: evil\n");
	fails(r, names, 1, ERR_CORRUPT, "apt cannot read the sources");
	sign(r, "signer");
	assert_int_equal(sys_unlinkat(r->fd, "repo/dists/stable/InRelease", 0), 0);
	assert_int_equal(lock(r, names, 1), -1);
}

TEST(what_apt_prints_is_read_line_by_line)
{
	static const char text[] =
		"Reading package lists...\n"
		"'file:/m/pool/a_1%2b2_amd64.deb' a_7%3a1+2_amd64.deb 12 SHA256:00\n"
		"'unfinished\n'' _ 1\n'x' noversion.deb 1\n"
		"'http://h/b_1_all.deb' b_1_all.deb 3 \n";
	struct slice s = slice_of(text);
	struct arena a = {0};
	char *name_version, *uri;

	assert_true(apt_closure_next(&s, &a, &name_version, &uri));
	assert_string_equal(name_version, "a=7:1+2");
	assert_string_equal(uri, "file:/m/pool/a_1%2b2_amd64.deb");
	assert_true(apt_closure_next(&s, &a, &name_version, &uri));
	assert_string_equal(name_version, "b=1");
	assert_false(apt_closure_next(&s, &a, &name_version, &uri));
	arena_fini(&a);
}

TEST(names_of_asked_packages_end_before_version_and_suite)
{
	assert_true(slice_eq(apt_asked_name("g++"), "g++"));
	assert_true(slice_eq(apt_asked_name("libx=1:2-3"), "libx"));
	assert_true(slice_eq(apt_asked_name("libx/stable"), "libx"));
	assert_true(slice_eq(apt_asked_name("libx:amd64=1"), "libx"));
}

#define IN_REPO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
RUN_TESTS(IN_REPO(the_lock_holds_what_apt_chose_and_why), IN_REPO(the_lock_says_what_was_verified),
	IN_REPO(recommendations_come_only_when_asked_for),
	IN_REPO(what_cannot_be_resolved_is_told_with_its_place),
	IN_REPO(only_the_named_keyring_is_trusted), IN_REPO(altered_indexes_are_refused),
	cmocka_unit_test(what_apt_prints_is_read_line_by_line),
	cmocka_unit_test(names_of_asked_packages_end_before_version_and_suite))
