#include "tests/unit/test.h"

#include "base/json.h"

static const char text[] = "{\n  \"a\": [1, {\"b~/c\": \"x,]\\\"\"}],\n\t\"d\": {\"e\": null}\n}\n";

static void where(const char *pointer, bool key, int line, int col)
{
	struct json_doc d;
	int l, c;

	assert_int_equal(json_doc_parse(&d, "t.json", text, strlen(text), NULL), 0);
	json_doc_locate(&d, pointer, key, &l, &c);
	json_doc_fini(&d);
	assert_int_equal(l, line);
	assert_int_equal(c, col);
}

TEST(a_pointer_finds_line_and_column)
{
	where("", false, 1, 1);
	where("/a", false, 2, 8);
	where("/a", true, 2, 3);
	where("/a/0", false, 2, 9);
	where("/a/1/b~0~1c", false, 2, 21);
	where("/a/1/b~0~1c", true, 2, 13);
	where("/d/e", false, 3, 13);
	where("/d/missing", false, 3, 7); /* the nearest ancestor answers */
	where("/a/7", false, 2, 8);
}

static void refused(const char *s, size_t n, const char *message)
{
	struct json_doc d;
	struct err e = {0};

	assert_int_equal(json_doc_parse(&d, "t.json", s, n, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	if (!strstr(e.text, message))
		fail_msg("'%s' is not in '%s'", message, e.text);
}

TEST(bad_text_is_refused_with_its_place)
{
	static char deep[200000];

	refused("{\"a\":1,\n \"a\":2}", 15, "t.json:2:4: duplicate object key");
	refused("{\"a\":1,}", 8, "t.json:1:8:");
	refused("", 0, "t.json:1:");
	refused("{} x", 4, "t.json:1:4:");
	memset(deep, '[', sizeof(deep));
	refused(deep, sizeof(deep), "nested more than 64 deep");
}

TEST(typed_members_name_the_key)
{
	struct err e = {0};
	auto_json json_t *j = json_parse("{\"s\":\"x\",\"n\":-1,\"a\":[]}", 23, NULL);
	uint64_t v;
	const char *s;

	assert_string_equal(json_str(j, "s", NULL), "x");
	assert_null(json_str(j, "zz", &e));
	assert_string_equal(e.text, "missing key 'zz'");
	assert_int_equal(json_u64(j, "n", 10, &v, &e), -1);
	assert_string_equal(e.text, "key 'n': expected an integer within limits");
	assert_int_equal(json_str_opt(j, "zz", &s, &e), 0);
	assert_null(s);
	assert_int_equal(json_str_opt(j, "n", &s, &e), -1);
	assert_non_null(json_array_of(j, "a", NULL));
	assert_null(json_object_of(j, "a", &e));
}

TEST(text_is_sorted_and_stable)
{
	auto_json json_t *j = json_parse("{\"b\":1,\"a\":[true,null]}", 23, NULL);
	auto_buf struct buf b = BUF_INIT(1000);

	json_text(j, true, &b);
	assert_string_equal(b.data, "{\"a\":[true,null],\"b\":1}");
}

TEST(a_member_is_found_in_text_that_may_be_anything)
{
	static const char *const keys[] = {"a", "b", NULL};
	static const struct {
		const char *text, *value; /* NULL: not found */
	} cases[] = {
		{"{\"a\":{\"b\":1}}", "1"},
		{" { \"x\" : [ \"]}\" , {} ] , \"a\" : { \"c\" : \"\\\"\" , \"b\" : [ 1 , "
		 "{\"b\":2} ] } } ",
			"[ 1 , {\"b\":2} ]"},
		{"{\"a\":{\"b\":\"x\\\\\"},\"b\":3}", "\"x\\\\\""},
		{"{\"a\":{\"b\":null,\"c\":1}}", "null"},
		{"{\"a\":{\"\\u0062\":1}}", "1"},
		{"{\"a\":[{\"b\":1}]}", NULL},
		{"{\"b\":{\"a\":1}}", NULL},
		{"{\"a\":{\"b\":", NULL},
		{"{\"a\":{\"b\":\"", NULL},
		{"{\"a\":{\"b\":\"\\", NULL},
		{"{\"a\":{\"b\":[[[", NULL},
		{"{\"a\":{\"b", NULL},
		{"{\"a\"", NULL},
		{"{\"a\":1}", NULL},
		{"{", NULL},
		{"[\"a\"]", NULL},
		{"", NULL},
	};
	const char *from, *to;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = strlen(cases[i].text);
		char *copy = mem_dup(cases[i].text, n ? n : 1); /* without its NUL */
		bool found = json_find(copy, n, keys, &from, &to);

		assert_int_equal(found, cases[i].value != NULL);
		if (found) {
			assert_int_equal(to - from, strlen(cases[i].value));
			assert_memory_equal(from, cases[i].value, (size_t)(to - from));
		}
		free(copy);
	}
}

TEST(text_that_is_longer_than_it_may_be_is_refused)
{
	auto_json json_t *doc = json_string("0123456789");
	auto_buf struct buf fits = BUF_INIT(12), small = BUF_INIT(11);
	struct err e = {0};

	assert_int_equal(json_text_bounded(doc, &fits, &e), 0);
	assert_string_equal(fits.data, "\"0123456789\"");
	assert_int_equal(json_text_bounded(doc, &small, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_string_equal(e.text, "a document of more than the limit of 11 bytes");
}

RUN_TESTS(cmocka_unit_test(text_that_is_longer_than_it_may_be_is_refused),
	cmocka_unit_test(a_member_is_found_in_text_that_may_be_anything),
	cmocka_unit_test(a_pointer_finds_line_and_column),
	cmocka_unit_test(bad_text_is_refused_with_its_place),
	cmocka_unit_test(typed_members_name_the_key), cmocka_unit_test(text_is_sorted_and_stable))
