#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/sys.h"
#include "images/config.h"

static int load(const char *text, struct config *c, struct err *e)
{
	const char *path = "/tmp/svrun-test-config.json";

	assert_int_equal(file_write(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
	setenv("SVRUN_CONFIG", path, 1);
	return config_load(c, e);
}

TEST(mirrors_and_root_come_from_the_file_and_the_environment_wins)
{
	struct config c;

	unsetenv("SVRUN_ROOT");
	assert_int_equal(
		load("{\"root\":\"/x\",\"mirrors\":{\"npm\":\"http://127.0.0.1:1/n/\"}}", &c, NULL),
		0);
	assert_string_equal(c.root, "/x");
	assert_string_equal(config_mirror(&c, "npm"), "http://127.0.0.1:1/n");
	assert_null(config_mirror(&c, "debian"));
	config_fini(&c);
	setenv("SVRUN_ROOT", "/y", 1);
	assert_int_equal(load("{}", &c, NULL), 0);
	assert_string_equal(c.root, "/y");
	config_fini(&c);
}

TEST(mistakes_are_told_with_the_file)
{
	static const char *const cases[][2] = {
		{"{\"mirors\":{}}", "unknown key 'mirors'; did you mean 'mirrors'?"},
		{"{\"mirrors\":{\"npm\":7}}", "mirrors: 'npm': expected an http://"},
		{"{\"mirrors\":{\"npm\":\"ftp://x\"}}", "mirrors: 'npm': expected an http://"},
		{"{\"mirrors\":[]}", "expected an object"},
		{"[]", "expected an object"},
		{"{\"root\":7}", "root: expected a path"},
		{"{\"registries\":[]}", "registries: expected an object"},
		{"{\"registries\":{\"r.example\":7}}", "'r.example': expected an object"},
		{"{\"registries\":{\"r.example\":{\"miror\":[]}}}",
			"registries: 'r.example': unknown key 'miror'; did you mean 'mirrors'?"},
		{"{\"registries\":{\"r.example\":{\"plain_http\":true}}}",
			"did you mean 'plain-http'?"},
		{"{\"registries\":{\"r.example\":{\"plain-http\":1}}}",
			"'r.example': key 'plain-http': expected true or false"},
		{"{\"registries\":{\"r.example\":{\"insecure\":\"yes\"}}}",
			"key 'insecure': expected true or false"},
		{"{\"registries\":{\"r.example\":{\"mirrors\":\"m.example\"}}}",
			"'r.example': mirrors: expected a list"},
		{"{\"registries\":{\"r.example\":{\"mirrors\":[1]}}}", "mirrors: expected a list"},
		{"{\"registries\":{\"r.example\":{\"mirrors\":[\"\"]}}}",
			"mirrors: expected a list"},
		{"{\"registries\":{\"r.example\":{\"mirrors\":[\"http://m.example\"]}}}",
			"mirrors: 'http://m.example': expected a host without a scheme"},
		{"{\"registries\":{\"r.example\":{\"mirrors\":[\"m.example/\"]}}}",
			"expected HOST[:PORT][/PREFIX]"},
		{"{\"registries\":{\"https://r.example\":{}}}",
			"registries: 'https://r.example': expected a host without a scheme"},
		{"{\"registries\":{\"r.example/team\":{}}}",
			"registries: 'r.example/team': expected HOST[:PORT]"},
		{"{\"registries\":{\"\":{}}}", "expected HOST[:PORT]"},
		{"{\"registries\":{\"r.example\":{\"ca\":\"ca.pem\"}}}",
			"key 'ca': expected an absolute path"},
		{"{\"registries\":{\"r.example\":{\"cert\":\"/c.pem\"}}}",
			"'cert' and 'key' belong together"},
		{"{\"short-names\":[]}", "short-names: expected an object"},
		{"{\"short-names\":{\"alias\":{}}}",
			"short-names: unknown key 'alias'; did you mean 'aliases'?"},
		{"{\"short-names\":{\"aliases\":{\"ubuntu\":\"ubuntu\"}}}",
			"aliases: 'ubuntu': expected HOST[:PORT]/NAME"},
		{"{\"short-names\":{\"aliases\":[]}}", "aliases: expected an object"},
		{"{\"short-names\":{\"search\":{}}}", "search: expected a list"},
		{"{\"short-names\":{\"search\":[\"https://r.example\"]}}",
			"expected a host without a scheme"},
		{"{", "config.json:1:"},
		{"{\"vulnerabilities\":\"here\"}", "vulnerabilities: expected an absolute path"},
		{"{\"vulnerabilities\":7}", "vulnerabilities: expected an absolute path"},
		{"{\"roots\":[]}", "roots: expected an object"},
		{"{\"roots\":{\"a\":7}}", "roots: 'a': expected an object"},
		{"{\"roots\":{\"a\":{\"certificates\":\"/a\"}}}",
			"roots: 'a': key 'log': expected an absolute path"},
		{"{\"roots\":{\"a\":{\"certificates\":\"/a\",\"log\":\"/b\",\"key\":\"/c\"}}}",
			"unknown key 'key'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config c;
		struct err e = {0};

		assert_int_equal(load(cases[i][0], &c, &e), -1);
		if (!strstr(e.text, cases[i][1]) || !strstr(e.text, "/tmp/svrun-test-config.json"))
			fail_msg("%s", e.text);
	}
	setenv("SVRUN_CONFIG", "/nonexistent/config.json", 1);
	struct config c;

	assert_int_equal(config_load(&c, NULL), -1); /* named, so it must be there */
	sys_unlinkat(AT_FDCWD, "/tmp/svrun-test-config.json", 0);
}

TEST(a_registry_is_reached_as_its_entry_says)
{
	struct config c;
	struct config_registry r;

	assert_int_equal(
		load("{\"registries\":{\"R.example:5000\":{\"mirrors\":[\"m.example:1/cache\","
		     "\"n.example\"],\"plain-http\":true,\"insecure\":true,\"ca\":\"/ca.pem\","
		     "\"cert\":\"/c.pem\",\"key\":\"/k.pem\"},\"empty.example\":{}}}",
			&c, NULL),
		0);
	assert_int_equal(config_registry(&c, "r.example:5000", &r, NULL), 0);
	assert_int_equal(r.nmirrors, 2);
	assert_string_equal(r.mirrors[0], "m.example:1/cache");
	assert_string_equal(r.mirrors[1], "n.example");
	assert_true(r.plain_http);
	assert_true(r.insecure);
	assert_string_equal(r.ca, "/ca.pem");
	assert_string_equal(r.cert, "/c.pem");
	assert_string_equal(r.key, "/k.pem");
	config_registry_fini(&r);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			config_registry(&c, i ? "r.example" : "empty.example", &r, NULL), 0);
		assert_int_equal(r.nmirrors, 0);
		assert_false(r.plain_http);
		assert_false(r.insecure);
		assert_null(r.ca);
		assert_null(r.cert);
		config_registry_fini(&r);
	}
	config_fini(&c);
}

/* ---- certificates that docker and podman keep in folders ---- */

static void touch(const char *top, const char *path)
{
	auto_free char *full = mem_printf("%s/%s", top, path);
	auto_free char *dir = mem_strdup(full);

	*strrchr(dir, '/') = '\0';
	assert_int_equal(sys_mkdir_p(AT_FDCWD, dir, 0700), 0);
	assert_int_equal(file_write(AT_FDCWD, full, "", 0, 0600, NULL), 0);
}

/* What is found in DIR/one, DIR/two, relative to DIR; "-" for nothing, or the error's text. */
static void expect_certificates(const char *host, const char *const *files, const char *want)
{
	char dir[] = "/tmp/svrun-test-XXXXXX", got[2000];
	const char *certs[3] = {0};
	auto_free char *one = NULL, *two = NULL;
	struct config c = {.certs = certs};
	struct config_registry r;
	struct err e = {0};

	assert_non_null(mkdtemp(dir));
	for (; *files; files++)
		touch(dir, *files);
	one = mem_printf("%s/one", dir);
	two = mem_printf("%s/two", dir);
	certs[0] = one;
	certs[1] = two;
	if (config_registry(&c, host, &r, &e) == 0) {
		size_t n = strlen(dir) + 1;

		snprintf(got, sizeof(got), "%s %s %s", r.ca ? r.ca + n : "-",
			r.cert ? r.cert + n : "-", r.key ? r.key + n : "-");
		config_registry_fini(&r);
	} else {
		snprintf(got, sizeof(got), "%s", e.text);
		assert_int_equal(e.kind, ERR_USAGE);
	}
	assert_int_equal(sys_remove_tree(AT_FDCWD, dir), 0);
	if (!strstr(got, want))
		fail_msg("'%s', not '%s'", got, want);
}

TEST(certificates_are_found_where_docker_and_podman_keep_them)
{
#define FILES(...) (const char *const[]){__VA_ARGS__, NULL}
	expect_certificates("r.example:5000",
		FILES("one/r.example:5000/ca.crt", "one/r.example:5000/client.cert",
			"one/r.example:5000/client.key"),
		"one/r.example:5000/ca.crt one/r.example:5000/client.cert "
		"one/r.example:5000/client.key");
	expect_certificates("r.example",
		FILES("one/r.example:5000/ca.crt", "two/r.example/some.crt",
			"two/r.example/README"),
		"two/r.example/some.crt - -");
	expect_certificates("r.example",
		FILES("one/r.example/a.cert", "one/r.example/a.key", "two/r.example/ca.crt"),
		"- one/r.example/a.cert one/r.example/a.key");
	expect_certificates("r.example",
		FILES("one/r.example/a.crt", "one/r.example/ca.crt", "one/r.example/b.crt"),
		"one/r.example/ca.crt - -");
	expect_certificates("r.example", FILES("one/other/ca.crt"), "- - -");
	expect_certificates("..", FILES("ca.crt", "one/ca.crt"), "- - -");
	expect_certificates("a/b", FILES("one/a/b/ca.crt"), "- - -");
	expect_certificates("r.example", FILES("one/r.example/a.crt", "one/r.example/b.crt"),
		"one/r.example: more than one *.crt, and none is ca.crt");
	expect_certificates("r.example", FILES("one/r.example/a.cert"), "a.cert without its *.key");
	expect_certificates("r.example", FILES("one/r.example/a.key"), "a.key without its *.cert");
	expect_certificates("r.example", FILES("one/r.example/a.cert", "one/r.example/b.key"),
		"a.cert without its *.key");
	expect_certificates("r.example",
		FILES("one/r.example/a.cert", "one/r.example/a.key", "one/r.example/b.cert"),
		"more than one *.cert");
}

TEST(a_folder_of_certificates_has_a_limit)
{
	char names[300][40];
	const char *files[301] = {0};

	for (size_t i = 0; i < 300; i++) {
		snprintf(names[i], sizeof(names[i]), "one/r.example/%zu", i);
		files[i] = names[i];
	}
	expect_certificates("r.example", files, "more than 256 files");
}

TEST(short_names_are_kept_as_they_are)
{
	struct config c;

	assert_int_equal(load("{\"short-names\":{\"aliases\":{\"a\":\"r.example/a\"},"
			      "\"search\":[\"r.example:5000/lib\",\"[::1]:5000\"]}}",
				 &c, NULL),
		0);
	assert_int_equal(json_array_size(json_object_get(c.short_names, "search")), 2);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(c.short_names, "aliases"), "a")),
		"r.example/a");
	config_fini(&c);
	unlink("/tmp/svrun-test-config.json");
}

RUN_TESTS(cmocka_unit_test(mirrors_and_root_come_from_the_file_and_the_environment_wins),
	cmocka_unit_test(mistakes_are_told_with_the_file),
	cmocka_unit_test(a_registry_is_reached_as_its_entry_says),
	cmocka_unit_test(certificates_are_found_where_docker_and_podman_keep_them),
	cmocka_unit_test(a_folder_of_certificates_has_a_limit),
	cmocka_unit_test(short_names_are_kept_as_they_are))
