#include "tests/unit/test.h"

#include "images/range.h"

TEST(what_rfc_9110_allows_is_read)
{
	static const struct {
		const char *text;
		struct range r;
	} cases[] = {
		{"bytes 42-1233/1234", {true, 42, 1233, true, 1234}},
		{"bytes 42-1233/*", {true, 42, 1233, false, 0}},
		{"bytes */1234", {false, 0, 0, true, 1234}},
		{"bytes */0", {false, 0, 0, true, 0}},
		{"bytes 0-0/1", {true, 0, 0, true, 1}},
		{"BYTES 0-0/1", {true, 0, 0, true, 1}},
		{" \tbytes  7-8/9\r\n", {true, 7, 8, true, 9}},
		{"bytes 0-18446744073709551614/18446744073709551615",
			{true, 0, UINT64_MAX - 1, true, UINT64_MAX}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct range r;

		if (range_parse(&r, cases[i].text) < 0)
			fail_msg("%s", cases[i].text);
		assert_int_equal(r.satisfied, cases[i].r.satisfied);
		assert_int_equal(r.first, cases[i].r.first);
		assert_int_equal(r.last, cases[i].r.last);
		assert_int_equal(r.has_total, cases[i].r.has_total);
		assert_int_equal(r.total, cases[i].r.total);
	}
}

TEST(what_is_invalid_or_another_unit_is_refused)
{
	static const char *const cases[] = {"", "bytes", "bytes ", "bytes42-1233/1234",
		"items 0-1/2", "bytes 5-4/10", "bytes 5-9/9", "bytes 5-9/", "bytes 5-9",
		"bytes 5/9", "bytes -9/10", "bytes 5-/10", "bytes */*", "bytes 5-9/10 x",
		"bytes 5-9/10,11", "bytes 5-9/-1", "bytes +5-9/10",
		"bytes 0-18446744073709551616/*", "bytes 0-1/18446744073709551616",
		"bytes 0-1/111111111111111111111111111111", "bytes=0-1/2", "bytes 0 -1/2"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct range r = {.first = 77};

		if (range_parse(&r, cases[i]) == 0)
			fail_msg("%s", cases[i]);
		assert_int_equal(r.first, 77); /* untouched */
	}
}

TEST(printed_and_read_again_it_is_the_same)
{
	static const struct range cases[] = {{true, 0, UINT64_MAX - 1, true, UINT64_MAX},
		{true, 3, 4, false, 0}, {false, 0, 0, true, UINT64_MAX}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[RANGE_TEXT], again[RANGE_TEXT];
		struct range r;

		range_print(&cases[i], text);
		assert_int_equal(range_parse(&r, text), 0);
		assert_string_equal(range_print(&r, again), text);
	}
}

TEST(only_the_header_of_that_name_counts)
{
	static const char good[] = "CONTENT-Range: bytes 1-2/3\r\n",
			  other[] = "Content-Length: 3\r\n",
			  bad[] = "Content-Range: bytes 2-1/3\r\n";
	char nul[] = "Content-Range: bytes 1-2/3\0junk", lengthy[400];
	struct range r;

	assert_int_equal(range_header(&r, good, sizeof(good) - 1), 1);
	assert_int_equal(r.last, 2);
	assert_int_equal(range_header(&r, other, sizeof(other) - 1), 0);
	assert_int_equal(range_header(&r, bad, sizeof(bad) - 1), -1);
	assert_int_equal(range_header(&r, good, 8), 0);
	assert_int_equal(range_header(&r, nul, sizeof(nul) - 1), -1);
	memset(lengthy, ' ', sizeof(lengthy));
	memcpy(lengthy, "Content-Range:", 14);
	assert_int_equal(range_header(&r, lengthy, sizeof(lengthy)), -1);
}

TEST(a_request_names_both_ends)
{
	char text[RANGE_TEXT];

	assert_string_equal(range_ask(0, 0, text), "0-0");
	assert_string_equal(range_ask(5, UINT64_MAX, text), "5-18446744073709551615");
}

RUN_TESTS(cmocka_unit_test(what_rfc_9110_allows_is_read),
	cmocka_unit_test(what_is_invalid_or_another_unit_is_refused),
	cmocka_unit_test(printed_and_read_again_it_is_the_same),
	cmocka_unit_test(only_the_header_of_that_name_counts),
	cmocka_unit_test(a_request_names_both_ends))
