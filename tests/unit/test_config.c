#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/file.h"
#include "base/sys.h"

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
		{"{", "config.json:1:"},
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

RUN_TESTS(cmocka_unit_test(mirrors_and_root_come_from_the_file_and_the_environment_wins),
	cmocka_unit_test(mistakes_are_told_with_the_file))
