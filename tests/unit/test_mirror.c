#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/mirror.h"

/* A host of our own: a folder that stands for /, and a PATH with only the programs put there. */
struct host {
	char dir[32], bin[64];
	struct config config;
	struct mirrors m;
};

static void put_file(const struct host *h, const char *path, const char *text, mode_t mode)
{
	auto_free char *full = mem_printf("%s/%s", h->dir, path);
	auto_free char *folder = mem_strdup(full);

	*strrchr(folder, '/') = '\0';
	assert_int_equal(sys_mkdir_p(AT_FDCWD, folder, 0755), 0);
	assert_int_equal(file_write(AT_FDCWD, full, text, strlen(text), mode, NULL), 0);
}

static int set_up(void **state)
{
	struct host *h = mem_alloc(sizeof(*h));

	memcpy(h->dir, "/tmp/svrun-test-XXXXXX", sizeof("/tmp/svrun-test-XXXXXX"));
	assert_non_null(mkdtemp(h->dir));
	snprintf(h->bin, sizeof(h->bin), "%s/bin", h->dir);
	assert_int_equal(setenv("PATH", h->bin, 1), 0);
	assert_int_equal(setenv("HOME", "/home/me", 1), 0);
	unsetenv("npm_config_registry");
	unsetenv("NPM_CONFIG_REGISTRY");
	h->config = (struct config){
		.path = mem_strdup("/etc/svrun/config.json"), .mirrors = json_object()};
	mirrors_init(&h->m, &h->config);
	h->m.root = h->dir;
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	struct host *h = *state;
	int rc;

	mirrors_fini(&h->m);
	config_fini(&h->config);
	rc = sys_remove_tree(AT_FDCWD, h->dir);
	free(h);
	return rc;
}

static void is(struct host *h, const char *uri, const char *address)
{
	struct err e = {0};
	const char *got = mirror_url(&h->m, uri, &e);

	if (!got || !str_eq(got, address))
		fail_msg("%s: expected %s, got %s", uri, address, got ? got : e.text);
}

static void has_none(struct host *h, const char *uri, const char *message)
{
	struct err e = {0};
	const char *got = mirror_url(&h->m, uri, &e);

	if (got)
		fail_msg("%s: got %s", uri, got);
	if (!strstr(e.text, message))
		fail_msg("%s: expected '%s' in '%s'", uri, message, e.text);
}

#define WITH_HOST(name) static void name(struct host *h)
#define T(name)                                                                                    \
	static void name##_test(void **state)                                                      \
	{                                                                                          \
		name(*state);                                                                      \
	}

WITH_HOST(the_site_configuration_comes_first)
{
	put_file(h, "etc/apt/sources.list", "deb http://host.invalid/debian bookworm main\n", 0644);
	json_object_set_new(h->config.mirrors, "debian", json_string("file:///srv/debian"));
	is(h, "mirror:debian/pool/a_1%3a2_all.deb", "file:///srv/debian/pool/a_1%3a2_all.deb");
	is(h, "mirror:debian", "file:///srv/debian");
	is(h, "https://example.invalid/a", "https://example.invalid/a");
}
T(the_site_configuration_comes_first)

WITH_HOST(apts_lists_are_known_by_their_labels)
{
	put_file(h, "bin/apt-get",
		"#!/bin/sh\n"
		"[ \"$1 $2 $4\" = 'indextargets --format Created-By: Packages' ] || exit 1\n"
		"echo 'http://host.invalid/d/ Debian'\n"
		"echo 'http://host.invalid/second/ Debian'\n"
		"echo 'https://host.invalid/s Debian-Security'\n"
		"echo 'cdrom://x Disc'\n"
		"echo 'http://host.invalid/o Some Vendor'\n"
		"echo 'nonsense'\n"
		"echo 'http://host.invalid/e ../Evil'\n",
		0755);
	is(h, "mirror:debian/x", "http://host.invalid/d/x");
	is(h, "mirror:debian-security/x", "https://host.invalid/s/x");
	is(h, "mirror:some-vendor", "http://host.invalid/o");
	has_none(h, "mirror:disc", "mirror 'disc' has no address");
}
T(apts_lists_are_known_by_their_labels)

WITH_HOST(the_host_is_asked_once)
{
	put_file(h, "bin/apt-get", "#!/bin/sh\necho 'http://host.invalid/d Debian'\n", 0755);
	is(h, "mirror:debian/x", "http://host.invalid/d/x");
	put_file(h, "bin/apt-get", "#!/bin/sh\necho 'http://host.invalid/other Debian'\n", 0755);
	is(h, "mirror:debian/y", "http://host.invalid/d/y");
	has_none(h, "mirror:ubuntu", "has no address");
	put_file(h, "bin/apt-get", "#!/bin/sh\necho 'http://host.invalid/u Ubuntu'\n", 0755);
	has_none(h, "mirror:ubuntu", "has no address");
}
T(the_host_is_asked_once)

WITH_HOST(without_lists_the_sources_tell_in_deb822)
{
	put_file(h, "bin/apt-get", "#!/bin/sh\nexit 0\n", 0755);
	put_file(h, "etc/apt/sources.list.d/debian.sources",
		"# a comment: with a colon\n"
		"Types: deb deb-src\nURIs: http://host.invalid/debian/\nSuites: bookworm\n\n"
		"Types: deb\nEnabled: no\nURIs: http://host.invalid/off/debian-security\n\n"
		"Types: deb\nURIs:\n http://host.invalid/deb-sec\n"
		"Suites: bookworm-security\nSigned-By:\n"
		" /usr/share/keyrings/debian-archive-keyring.gpg\n",
		0644);
	is(h, "mirror:debian/x", "http://host.invalid/debian/x");
	is(h, "mirror:debian-security/x", "http://host.invalid/deb-sec/x");
}
T(without_lists_the_sources_tell_in_deb822)

WITH_HOST(without_lists_the_sources_tell_in_lines)
{
	put_file(h, "etc/apt/sources.list",
		"# deb http://host.invalid/no/debian bookworm main\n"
		"deb-src http://host.invalid/src/debian bookworm main\n"
		"deb cdrom:[x]/debian bookworm main\n"
		"deb [ arch=amd64 signed-by=/usr/share/keyrings/k.gpg ] file:/srv/debian bookworm "
		"main\n"
		"deb\thttps://host.invalid/debian-security\tbookworm-security main\n"
		"deb [broken http://host.invalid/ubuntu jammy main\n",
		0644);
	put_file(h, "etc/apt/sources.list.d/u.list",
		"deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] "
		"http://host.invalid/u jammy-security main",
		0644);
	put_file(h, "etc/apt/sources.list.d/u.list.disabled",
		"deb http://host.invalid/no/debian-ports sid main\n", 0644);
	is(h, "mirror:debian/x", "file:///srv/debian/x");
	is(h, "mirror:debian-security/x", "https://host.invalid/debian-security/x");
	is(h, "mirror:ubuntu/x", "http://host.invalid/u/x");
}
T(without_lists_the_sources_tell_in_lines)

WITH_HOST(on_another_distribution_debootstrap_tells)
{
	put_file(h, "bin/apt-get", "#!/bin/sh\necho 'http://host.invalid/u Ubuntu'\n", 0755);
	put_file(h, "usr/share/debootstrap/scripts/etch",
		"default_mirror http://archive.invalid/debian\n", 0644);
	put_file(h, "usr/sbin/debootstrap",
		"#!/bin/sh\nUSER_MIRROR=\"\"\nDEF_MIRROR=\"http://host.invalid/debian\"\n"
		"DEF_HTTPS_MIRROR=\"https://host.invalid/debian\"\n",
		0755);
	is(h, "mirror:debian-security/x", "http://host.invalid/debian-security/x");
	is(h, "mirror:debian/x", "http://host.invalid/debian/x");
	is(h, "mirror:ubuntu/x", "http://host.invalid/u/x");
}
T(on_another_distribution_debootstrap_tells)

WITH_HOST(the_script_of_sid_comes_before_debootstrap_itself)
{
	put_file(h, "usr/share/debootstrap/scripts/sid",
		"\tdefault_mirror http://host.invalid/debian-ports\n"
		"\tdefault_mirror http://host.invalid/sid/debian/\n",
		0644);
	put_file(h, "usr/sbin/debootstrap", "\nDEF_MIRROR=\"http://host.invalid/ubuntu\"\n", 0755);
	is(h, "mirror:debian/x", "http://host.invalid/sid/debian/x");
}
T(the_script_of_sid_comes_before_debootstrap_itself)

WITH_HOST(npm_says_its_registry)
{
	put_file(h, "bin/npm",
		"#!/bin/sh\n[ \"$PWD $*\" = '/ config get registry' ] || exit 1\n"
		"echo https://host.invalid/npm/\n",
		0755);
	is(h, "mirror:npm/a/-/a-1.tgz", "https://host.invalid/npm/a/-/a-1.tgz");
}
T(npm_says_its_registry)

WITH_HOST(without_npm_its_files_say_it)
{
	put_file(h, "etc/npmrc", "registry=https://host.invalid/global\n", 0644);
	put_file(h, "home/me/.npmrc",
		"; "
		"registry=https://host.invalid/comment\n@scope:registry=https://host.invalid/"
		"scope\n"
		"registry = \"https://host.invalid/mine/\"\nregistry-x=https://host.invalid/no\n",
		0644);
	is(h, "mirror:npm/a", "https://host.invalid/mine/a");
}
T(without_npm_its_files_say_it)

WITH_HOST(an_answer_that_is_no_address_is_none)
{
	put_file(h, "bin/npm", "#!/bin/sh\necho undefined\n", 0755);
	put_file(h, "etc/npmrc", "registry=${REGISTRY}\n", 0644);
	has_none(h, "mirror:npm/a",
		"mirror 'npm' has no address: /etc/svrun/config.json does not "
		"name it, and npm is not set up on this host, either");
}
T(an_answer_that_is_no_address_is_none)

WITH_HOST(an_unknown_mirror_says_how_to_configure_it)
{
	struct err e = {0};

	assert_null(mirror_url(&h->m, "mirror:models/x", &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(e.hint, "write {\"mirrors\": {\"models\": \"https://HOST/PATH\"}} to "
				    "/etc/svrun/config.json");
	e = (struct err){0};
	assert_null(mirror_url(&h->m, "mirror:debain/x", &e));
	assert_string_equal(e.hint, "did you mean 'mirror:debian'?");
}
T(an_unknown_mirror_says_how_to_configure_it)

WITH_HOST(what_is_no_mirror_is_refused)
{
	static const char *const bad[] = {"", "mirror:", "mirror:/x", "mirror:A/x", "mirror:a:b",
		"ftp://host.invalid/x", "file:///etc/passwd", "/etc/passwd",
		"mirror:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = {0};

		assert_null(mirror_url(&h->m, bad[i], &e));
		assert_int_equal(e.kind, ERR_USAGE);
	}
}
T(what_is_no_mirror_is_refused)

#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name##_test, set_up, tear_down)

RUN_TESTS(HOST_TEST(the_site_configuration_comes_first),
	HOST_TEST(apts_lists_are_known_by_their_labels), HOST_TEST(the_host_is_asked_once),
	HOST_TEST(without_lists_the_sources_tell_in_deb822),
	HOST_TEST(without_lists_the_sources_tell_in_lines),
	HOST_TEST(on_another_distribution_debootstrap_tells),
	HOST_TEST(the_script_of_sid_comes_before_debootstrap_itself),
	HOST_TEST(npm_says_its_registry), HOST_TEST(without_npm_its_files_say_it),
	HOST_TEST(an_answer_that_is_no_address_is_none),
	HOST_TEST(an_unknown_mirror_says_how_to_configure_it),
	HOST_TEST(what_is_no_mirror_is_refused))
