#include "tests/unit/fixture.h"

#include "builder/image-test.h"

static char *check_text(const struct test_expect *x, const char *text)
{
	return test_check_text(x, text, strlen(text));
}

static void expect_wrong(char *wrong, const char *part)
{
	if (!part && wrong)
		fail_msg("unexpected: %s", wrong);
	if (part && (!wrong || !strstr(wrong, part)))
		fail_msg("expected '%s', got '%s'", part, wrong ? wrong : "nothing");
	free(wrong);
}

/* ---- texts ---- */

TEST(a_text_is_equal_with_or_without_a_newline_at_its_end)
{
	struct test_expect x = {.equals = "one"};

	expect_wrong(check_text(&x, "one"), NULL);
	expect_wrong(check_text(&x, "one\n"), NULL);
	expect_wrong(check_text(&x, "one\n\n"), "it is 'one\\n\\n', expected 'one'");
	expect_wrong(check_text(&x, "on"), "it is 'on'");
	expect_wrong(test_check_text(&x, "one\0", 4), "it is 'one?'");
	x.equals = "";
	expect_wrong(check_text(&x, ""), NULL);
	expect_wrong(check_text(&x, "x"), "expected ''");
}

TEST(a_text_contains_all_that_it_must)
{
	const char *parts[] = {"one", "three"};
	struct test_expect x = {.contains = {parts, 2}};

	expect_wrong(check_text(&x, "one two three"), NULL);
	expect_wrong(check_text(&x, "one two"), "it does not contain 'three'");
	expect_wrong(test_check_text(&x, "one\0three", 9), NULL);
}

TEST(a_regular_expression_sees_lines)
{
	struct test_expect x = {.matches = "^b[0-9]+$"};

	expect_wrong(check_text(&x, "a\nb12\nc\n"), NULL);
	expect_wrong(check_text(&x, "a\nb12x\nc\n"), "it does not match /^b[0-9]+$/");
	assert_true(test_matches("a.c", "xabcx", 5));
	assert_false(test_matches("a.c", "a\nc", 3));
	assert_false(test_matches("abc", "ab", 2));
	assert_false(test_matches("(", "(", 1));
	assert_true(test_matches("x$", "\0x", 2));
}

TEST(a_number_is_the_last_line)
{
	struct test_expect x = {.has_number_at_least = true, .number_at_least = 5.5};

	expect_wrong(check_text(&x, "5.5"), NULL);
	expect_wrong(check_text(&x, "loading\n60.2\n\n"), NULL);
	expect_wrong(check_text(&x, "5.4\n"), "the number is 5.4, expected at least 5.5");
	expect_wrong(check_text(&x, "1\nspeed: 7 GB/s"), NULL);
	expect_wrong(check_text(&x, "speed: .7 GB/s"), "the number is 0.7");
	expect_wrong(check_text(&x, "9\nspeed?"), "the last line is 'speed?', expected a number");
	expect_wrong(check_text(&x, ""), "expected a number");
	expect_wrong(check_text(&x, "nan"), "expected a number");
	expect_wrong(check_text(&x, "inf"), "expected a number");
	expect_wrong(check_text(&x, "-1e9"), "the number is -1e+09");
}

/* ---- JSON ---- */

static char *check_json(struct test_json j, const char *text)
{
	struct test_expect x = {.json = &j, .njson = 1};

	return test_check_json(&x, text, strlen(text));
}

TEST(a_pointer_leads_to_a_value_or_to_nothing)
{
	static const char text[] = "{\"a\": [1, {\"b/c\": 2, \"~\": 3}], \"\": 4, \"0\": 5}";
	static const struct {
		const char *pointer;
		double value; /* 0: there is nothing */
	} cases[] = {{"/a/0", 1}, {"/a/1/b~1c", 2}, {"/a/1/~0", 3}, {"/", 4}, {"/0", 5},
		{"/a/2", 0}, {"/a/00", 0}, {"/a/-1", 0}, {"/a/0/x", 0}, {"/b", 0}, {"/a/-", 0},
		{"/a/99999999999999999999", 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_json json_t *want = json_real(cases[i].value);
		struct test_json j = {
			.pointer = cases[i].pointer, .equals = cases[i].value > 0 ? want : NULL};

		expect_wrong(
			check_json(j, text), cases[i].value > 0 ? NULL : "there is no such value");
	}
	expect_wrong(check_json((struct test_json){.pointer = ""}, text), NULL);
}

TEST(what_is_at_a_pointer_is_compared)
{
	static const char text[] =
		"{\"n\": 3, \"s\": \"h\xc3\xa4llo\", \"l\": [1, 2], \"x\": null}";
	auto_json json_t *three = json_integer(3), *word = json_string("hello");

	expect_wrong(check_json((struct test_json){.pointer = "/n", .equals = three}, text), NULL);
	expect_wrong(check_json((struct test_json){.pointer = "/s", .equals = word}, text),
		"/s is \"h\xc3\xa4llo\", expected \"hello\"");
	expect_wrong(
		check_json((struct test_json){.pointer = "/n", .has_minimum = true, .minimum = 4},
			text),
		"/n is 3, expected at least 4");
	expect_wrong(check_json((struct test_json){.pointer = "/s", .has_minimum = true}, text),
		"expected a number");
	expect_wrong(check_json(
			     (struct test_json){
				     .pointer = "/s", .has_min_length = true, .min_length = 5},
			     text),
		NULL);
	expect_wrong(check_json(
			     (struct test_json){
				     .pointer = "/s", .has_min_length = true, .min_length = 6},
			     text),
		"has length 5");
	expect_wrong(check_json(
			     (struct test_json){
				     .pointer = "/l", .has_min_length = true, .min_length = 3},
			     text),
		"has length 2");
	expect_wrong(check_json((struct test_json){.pointer = "/x", .has_min_length = true}, text),
		"which has no length");
	expect_wrong(check_json((struct test_json){.pointer = "/x"}, text), NULL);
	expect_wrong(check_json((struct test_json){.pointer = "/x"}, "{"), "it is not JSON");
	expect_wrong(check_json((struct test_json){.pointer = "/a"}, "{\"a\":1,\"a\":2}"),
		"it is not JSON");
}

/* ---- files ---- */

static struct test_result run(struct fixture *f, const struct manifest_test *t)
{
	struct manifest m = {.env = {NULL, 0}};
	struct tested x = {.m = &m, .tree = f->t, .pool = f->p};
	struct test_result r = {.test = t};

	need(image_test(&r, &x, &f->e));
	return r;
}

static void expect_file(
	struct fixture *f, const char *path, struct test_expect x, const char *wrong)
{
	struct manifest_test t = {
		.type = TEST_FILE, .stage = STAGE_IMAGE, .paths = {&path, 1}, .expect = x};
	struct test_result r = run(f, &t);

	assert_int_equal(r.verdict, wrong ? TEST_FAILED : TEST_PASSED);
	if (wrong && !strstr(r.text, wrong))
		fail_msg("expected '%s', got '%s'", wrong, r.text);
	test_result_fini(&r);
}

static void put_text(struct fixture *f, const char *path, const char *text)
{
	struct attr a = {.type = NODE_FILE, .mode = 04755, .uid = 7, .gid = 8};

	a.size = strlen(text);
	a.nchunks = 1;
	a.chunks = mem_alloc(sizeof(*a.chunks));
	need(pool_put(f->p, text, (uint32_t)a.size, a.chunks, &f->e));
	put_node(f, path, &a);
	free(a.chunks);
}

TEST(files_are_what_the_test_says)
{
	struct fixture fixture, *f = &fixture;
	struct attr link = {.type = NODE_SYMLINK, .mode = 0777, .target = "usr/bin"};
	struct attr dir = {.type = NODE_DIR, .mode = 0755};
	const char *more[] = {"ing"};

	fixture_init(f);
	put_node(f, "usr/bin", &dir);
	put_node(f, "bin", &link);
	put_text(f, "usr/bin/x", "nothing\n");
	tree_sort(f->t);
	expect_file(f, "/bin", (struct test_expect){.type = "link", .target = "usr/bin"}, NULL);
	expect_file(f, "/bin", (struct test_expect){.type = "symlink"}, NULL);
	expect_file(f, "/bin", (struct test_expect){.target = "usr/lib"},
		"/bin: leads to usr/bin, expected usr/lib");
	expect_file(f, "/bin/x",
		(struct test_expect){.type = "file", .mode = "4755", .owner = "7:8"}, NULL);
	expect_file(f, "/bin/x", (struct test_expect){.type = "dir"},
		"/bin/x: is of type file, expected dir");
	expect_file(f, "/bin/x", (struct test_expect){.mode = "0755"}, "has mode 4755");
	expect_file(f, "/bin/x", (struct test_expect){.owner = "0:0"}, "belongs to 7:8");
	expect_file(f, "/bin/x", (struct test_expect){.target = "y"}, "is no link");
	expect_file(f, "/bin/x", (struct test_expect){.absent = true}, "is there, and should not");
	expect_file(f, "/bin/y", (struct test_expect){.absent = true}, NULL);
	expect_file(f, "/bin/y", (struct test_expect){.type = "file"}, "/bin/y: is not there");
	expect_file(f, "/usr/**", (struct test_expect){.mode = "4755"}, "/usr/bin: has mode 0755");
	expect_file(f, "/lib/*.so", (struct test_expect){.type = "file"}, "nothing matches");
	expect_file(f, "/lib/*.so", (struct test_expect){.absent = true}, NULL);
	expect_file(f, "/bin/x", (struct test_expect){.contains = {more, 1}}, NULL);
	expect_file(f, "/bin/x", (struct test_expect){.equals = "no"}, "it is 'nothing");
	expect_file(f, "/usr/bin", (struct test_expect){.equals = "no"}, "has no content");
	expect_file(f, "/bin/x",
		(struct test_expect){.has_sha256 = true, .sha256 = digest_of("nothing\n", 8)},
		NULL);
	expect_file(f, "/bin/x", (struct test_expect){.has_sha256 = true}, "has sha256");
	fixture_fini(f);
}

TEST(a_test_that_runs_is_none_of_an_image)
{
	struct fixture fixture, *f = &fixture;
	struct manifest_test t = {.type = TEST_EXEC, .stage = STAGE_IMAGE};
	struct test_result r;

	fixture_init(f);
	r = run(f, &t);
	assert_int_equal(r.verdict, TEST_FAILED);
	assert_string_equal(r.text, "a test of type exec runs: its stage is run, not image");
	test_result_fini(&r);
	fixture_fini(f);
}

/* ---- config ---- */

static void expect_config(const char *config, struct test_expect x, const char *wrong)
{
	struct manifest_test t = {.type = TEST_METADATA, .expect = x};
	struct test_result r = {.test = &t};
	auto_json json_t *j = json_parse(config, strlen(config), NULL);

	test_metadata(&r, j);
	if ((r.verdict == TEST_FAILED) != (wrong != NULL) || (wrong && !strstr(r.text, wrong)))
		fail_msg("expected '%s', got '%s'", wrong, r.text);
	test_result_fini(&r);
}

TEST(the_config_is_what_the_test_says)
{
	static const char config[] =
		"{\"config\": {\"Env\": [\"A=1\", \"B=\"], \"Cmd\": [\"x\", \"y\"], \"User\": "
		"\"7\","
		"\"WorkingDir\": \"/w\", \"ExposedPorts\": {\"80/tcp\": {}}, \"Labels\":"
		"{\"l\": \"v\", \"run.svrun.env\": \"{\\\"C\\\": \\\"${runtime:cpus}\\\"}\"}}}";
	struct pair a = {"A", "1"}, b = {"B", ""}, c = {"C", "${runtime:cpus}"}, d = {"A", "2"},
		    none = {"D", ""}, label = {"l", "v"}, other = {"l", "w"};
	const char *cmd[] = {"x", "y"}, *port[] = {"80/tcp"}, *udp[] = {"80/udp"};

	expect_config(config, (struct test_expect){.env = {&a, 1}}, NULL);
	expect_config(config, (struct test_expect){.env = {&b, 1}}, NULL);
	expect_config(config, (struct test_expect){.env = {&c, 1}}, NULL);
	expect_config(
		config, (struct test_expect){.env = {&d, 1}}, "variable A is '1', expected '2'");
	expect_config(config, (struct test_expect){.env = {&none, 1}}, "variable D is not set");
	expect_config(config, (struct test_expect){.labels = {&label, 1}}, NULL);
	expect_config(config, (struct test_expect){.labels = {&other, 1}}, "label l is 'v'");
	expect_config(config, (struct test_expect){.cmd = {cmd, 2}}, NULL);
	expect_config(config, (struct test_expect){.cmd = {cmd, 1}},
		"cmd is [\"x\",\"y\"], expected [\"x\"]");
	expect_config(config, (struct test_expect){.entrypoint = {cmd, 1}}, "entrypoint is []");
	expect_config(config, (struct test_expect){.user = "7", .workdir = "/w"}, NULL);
	expect_config(config, (struct test_expect){.user = ""}, "user is '7', expected ''");
	expect_config(config, (struct test_expect){.ports = {port, 1}}, NULL);
	expect_config(
		config, (struct test_expect){.ports = {udp, 1}}, "port 80/udp is not exposed");
	expect_config("{}", (struct test_expect){.user = "1"}, "user is ''");
}

/* ---- reports ---- */

TEST(a_result_that_failed_keeps_its_first_text)
{
	struct test_result r = {.verdict = TEST_PASSED};

	test_skip(&r, "not %s", "here");
	assert_int_equal(r.verdict, TEST_SKIPPED);
	test_fail(&r, "first\x1b");
	test_fail(&r, "second");
	test_skip(&r, "third");
	assert_int_equal(r.verdict, TEST_FAILED);
	assert_string_equal(r.text, "first?");
	test_result_fini(&r);
}

TEST(junit_holds_what_xml_can_hold)
{
	struct manifest_test t = {.id = "a<b", .stage = STAGE_RUN, .type = TEST_EXEC};
	struct manifest_test ok = {.id = "fine", .stage = STAGE_PLAN, .type = TEST_LINT};
	struct test_result v[] = {{.test = &ok, .seconds = 0.5},
		{.test = &t,
			.verdict = TEST_FAILED,
			.text = mem_strdup("\"x\" & <y>"),
			.log = mem_strdup("\x1b[1m\x01 \xff \xc3\xa4 \xef\xbf\xbf \xc3\n]]>")},
		{.test = &ok, .verdict = TEST_SKIPPED, .text = mem_strdup("no GPU")}};
	auto_buf struct buf b = BUF_INIT(1 << 20);

	test_junit(v, 3, "app:1", &b);
	assert_string_equal(b.data,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
		"  <testsuite name=\"app:1\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" "
		"time=\"0.500\">\n"
		"    <testcase name=\"fine\" classname=\"app:1.plan.lint\" time=\"0.500\"/>\n"
		"    <testcase name=\"a&#60;b\" classname=\"app:1.run.exec\" time=\"0.000\">\n"
		"      <failure message=\"&#34;x&#34; &#38; &#60;y&#62;\"></failure>\n"
		"      <system-out>\xef\xbf\xbd[1m\xef\xbf\xbd \xef\xbf\xbd \xc3\xa4 "
		"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd&#10;]]&#62;</system-out>\n"
		"    </testcase>\n"
		"    <testcase name=\"fine\" classname=\"app:1.plan.lint\" time=\"0.000\">\n"
		"      <skipped message=\"no GPU\"/>\n"
		"    </testcase>\n  </testsuite>\n</testsuites>\n");
	for (size_t i = 0; i < 3; i++)
		test_result_fini(&v[i]);
}

TEST(the_json_report_is_json_whatever_a_container_says)
{
	struct manifest_test t = {.id = "t", .stage = STAGE_RUN, .type = TEST_HTTP, .mode = "cpu"};
	struct test_result r = {
		.test = &t, .verdict = TEST_FAILED, .log = mem_strdup("\xff\x01\"")};
	auto_buf struct buf b = BUF_INIT(1 << 20);
	auto_json json_t *j = NULL;

	test_json_report(&r, 1, "app:1", &b);
	j = json_parse(b.data, b.len, NULL);
	assert_non_null(j);
	assert_int_equal(json_integer_value(json_object_get(j, "failed")), 1);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(j, "tests"), 0), "log")),
		"?\x01\"");
	test_result_fini(&r);
}

RUN_TESTS(cmocka_unit_test(a_text_is_equal_with_or_without_a_newline_at_its_end),
	cmocka_unit_test(a_text_contains_all_that_it_must),
	cmocka_unit_test(a_regular_expression_sees_lines),
	cmocka_unit_test(a_number_is_the_last_line),
	cmocka_unit_test(a_pointer_leads_to_a_value_or_to_nothing),
	cmocka_unit_test(what_is_at_a_pointer_is_compared),
	cmocka_unit_test(files_are_what_the_test_says),
	cmocka_unit_test(a_test_that_runs_is_none_of_an_image),
	cmocka_unit_test(the_config_is_what_the_test_says),
	cmocka_unit_test(a_result_that_failed_keeps_its_first_text),
	cmocka_unit_test(junit_holds_what_xml_can_hold),
	cmocka_unit_test(the_json_report_is_json_whatever_a_container_says))
