#include "tests/unit/test.h"

#include <stdlib.h>

#include "base/json.h"
#include "gpu/yaml.h"

static const char *const typed[] = {"n", "list", NULL};
static const struct yaml_limits limits = {8, 1000, typed};

static json_t *parse(const char *text, size_t n, struct err *e)
{
	return yaml_parse("x.yaml", text, n, &limits, e);
}

struct good {
	const char *yaml, *json;
};

TEST(yaml_is_read_as_the_json_that_it_stands_for)
{
	static const struct good cases[] = {
		{"a: b\n", "{\"a\":\"b\"}"},
		{"---\na: b\n...\n", "{\"a\":\"b\"}"},
		{"%YAML 1.1\n---\na: b\n", "{\"a\":\"b\"}"},
		{"{\"a\": [1, {\"b\": \"c\"}]}", "{\"a\":[\"1\",{\"b\":\"c\"}]}"},
		/* Texts stay texts: none of Norway, octals, dates and versions. */
		{"a: no\nb: 0\nc: 0.60\nd: 2020-01-01\ne: 1e3\nf: 0o7\ng: true\n",
			"{\"a\":\"no\",\"b\":\"0\",\"c\":\"0.60\",\"d\":\"2020-01-01\",\"e\":"
			"\"1e3\",\"f\":\"0o7\",\"g\":\"true\"}"},
		{"n: 0\n", "{\"n\":0}"},
		{"n: 0660\n", "{\"n\":432}"},
		{"n: 0o660\n", "{\"n\":432}"},
		{"n: 0x1B0\n", "{\"n\":432}"},
		{"n: -1\n", "{\"n\":-1}"},
		{"n: \"7\"\n", "{\"n\":\"7\"}"},
		{"n: 089\n", "{\"n\":\"089\"}"},
		{"n: True\n", "{\"n\":true}"},
		{"n: yes\n", "{\"n\":\"yes\"}"},
		{"n: 99999999999999999999\n", "{\"n\":\"99999999999999999999\"}"},
		{"list:\n- 1\n- 44\n", "{\"list\":[1,44]}"},
		{"list: {a: 1}\n", "{\"list\":{\"a\":\"1\"}}"},
		{"a:\nb: ~\nc: null\nd: \"\"\ne: 'null'\n",
			"{\"a\":null,\"b\":null,\"c\":null,\"d\":\"\",\"e\":\"null\"}"},
		{"a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}"},
		{"a: \"\\u00e4\\x41\"\n", "{\"a\":\"\xc3\xa4"
					  "A\"}"},
		{"# c\na: b # c\n", "{\"a\":\"b\"}"},
		{"\xef\xbb\xbf"
		 "a: b\n",
			"{\"a\":\"b\"}"},
		{"[]", "[]"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		auto_json json_t *got = parse(cases[i].yaml, strlen(cases[i].yaml), &e);
		auto_json json_t *want = json_loads(cases[i].json, 0, NULL);

		assert_non_null(want);
		if (!got)
			fail_msg("%s: %s", cases[i].yaml, e.text);
		if (!json_equal(got, want)) {
			char *text = json_dumps(got, 0);

			fail_msg("%s: %s, not %s", cases[i].yaml, text, cases[i].json);
		}
	}
}

TEST(what_is_not_read_is_refused_with_its_place)
{
	static const struct good cases[] = {
		{"a: &x 1\n", "x.yaml:1:4: an anchor: anchors and aliases are not read"},
		{"a: &x [1]\n", "x.yaml:1:4: an anchor: anchors and aliases are not read"},
		{"a: &x {b: 1}\n", "x.yaml:1:4: an anchor: anchors and aliases are not read"},
		{"a: *x\n", "x.yaml:1:4: an alias: anchors and aliases are not read"},
		{"*x : 1\n", "x.yaml:1:1: a key that is no text"},
		{"&x a: 1\n", "x.yaml:1:1: a key with an anchor or a tag"},
		{"a: !!int 1\n", "x.yaml:1:4: a tag: tags are not read"},
		{"a: ! 1\n", "x.yaml:1:4: a tag: tags are not read"},
		{"a: !!python/object:os.system []\n", "x.yaml:1:4: a tag: tags are not read"},
		{"? [a]\n: b\n", "x.yaml:1:3: a key that is no text"},
		{"a: 1\nb: 2\na: 3\n", "x.yaml:3:1: duplicate key 'a'"},
		{"a: 1\n---\nb: 2\n", "x.yaml:2:1: a second document: one is read"},
		{"", "x.yaml:1:1: no document"},
		{"# nothing\n", "x.yaml:2:1: no document"},
		{"[[[[[[[[[1]]]]]]]]]", "x.yaml:1:9: nested too deep"},
		{"a: \"\\0\"\n", "x.yaml:1:4: a text with a NUL"},
		{"\"\\0\": 1\n", "x.yaml:1:1: a key with a NUL"},
		{"a: [1\n", "x.yaml:2:1: did not find expected ',' or ']'"},
		{"a: \"x\n", "x.yaml:2:1: found unexpected end of stream"},
		{"\ta: b\n", "x.yaml:1:1: found character that cannot start any token"},
		{"a: \xff\xfe\n", "x.yaml: at byte 3: invalid leading UTF-8 octet"},
		{"\xff\xfe"
		 "a",
			"x.yaml: at byte 0: invalid leading UTF-8 octet"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		auto_json json_t *got = parse(cases[i].yaml, strlen(cases[i].yaml), &e);

		if (got)
			fail_msg("%s was taken", cases[i].yaml);
		assert_string_equal(e.text, cases[i].json);
		assert_int_equal(e.kind, ERR_CORRUPT);
	}
}

TEST(a_nul_in_the_text_is_an_error)
{
	struct err e = {0};

	assert_null(parse("a: b\0c\n", 7, &e));
	assert_int_equal(e.kind, ERR_CORRUPT);
}

/* Nine times nine lines of ten: a thousand million texts, were aliases followed. */
TEST(a_billion_laughs_is_refused_at_the_first)
{
	static const char laughs[] = "a: &a [\"lol\",\"lol\",\"lol\"]\nb: &b [*a,*a,*a,*a,*a]\n"
				     "c: &c [*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]\n";
	struct err e = {0};

	assert_null(parse(laughs, sizeof(laughs) - 1, &e));
	assert_string_equal(e.text, "x.yaml:1:4: an anchor: anchors and aliases are not read");
}

/* Each of these is megabytes of one thing: refused early, or read in linear time. */
TEST(much_of_anything_is_bounded)
{
	static const char *const pieces[] = {"[", "{", "- ", "? ", "[[],", "a: ", "\"", "'", "-\n",
		"a,", "[a,", "&a ", "!a ", "#", " ", "\n", "%A\n", "---\n", "{a: {", "\\", "|\n",
		">"};
	const size_t size = 1 << 20;
	char *text = malloc(size);

	assert_non_null(text);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		size_t n = strlen(pieces[i]);

		for (size_t at = 0; at + n <= size; at += n)
			memcpy(text + at, pieces[i], n);
		json_decref(parse(text, size - size % n, NULL));
	}
	free(text);
}

TEST(pointers_are_found_again_in_the_text)
{
	static const struct {
		const char *pointer;
		int line, col;
	} cases[] = {{"", 2, 1}, {"/a", 2, 4}, {"/list", 4, 1}, {"/list/1", 5, 3},
		{"/list/1/b~1c", 6, 8}, {"/list/1/none", 5, 3}, {"/list/0", 4, 3},
		{"/list/7", 4, 1}, {"/none", 2, 1}};
	static const char text[] = "---\na: b\nlist:\n- x\n- y: 1\n  b/c: 2\n";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int line, col;

		yaml_locate(text, sizeof(text) - 1, cases[i].pointer, &line, &col);
		if (line != cases[i].line || col != cases[i].col)
			fail_msg("%s: %d:%d", cases[i].pointer, line, col);
	}
}

TEST(what_is_written_is_read_again_as_it_was)
{
	static const char json[] = "{\"a\":\"b\",\"no\":\"no\",\"list\":[1,2],\"e\":[],\"o\":{},"
				   "\"deep\":[{\"x\":\"1\","
				   "\"yy\":[\"\\\"\\n\\u00e4\",\": "
				   "#\",\"\"]},{\"x\":{\"y\":\"~\"}}],\"k: \\\"#\":null,"
				   "\"true\":\"- x\"}";
	auto_json json_t *want = json_loads(json, 0, NULL);
	auto_buf struct buf b = BUF_INIT(4096);
	struct err e = {0};

	yaml_text(want, &b);
	auto_json json_t *got = parse(b.data, b.len, &e);
	if (!got)
		fail_msg("%s: %s", e.text, b.data);
	if (!json_equal(got, want))
		fail_msg("%s", b.data);
}

RUN_TESTS(cmocka_unit_test(yaml_is_read_as_the_json_that_it_stands_for),
	cmocka_unit_test(what_is_not_read_is_refused_with_its_place),
	cmocka_unit_test(a_nul_in_the_text_is_an_error),
	cmocka_unit_test(a_billion_laughs_is_refused_at_the_first),
	cmocka_unit_test(much_of_anything_is_bounded),
	cmocka_unit_test(pointers_are_found_again_in_the_text),
	cmocka_unit_test(what_is_written_is_read_again_as_it_was))
