#include "tests/unit/test.h"

#include <stdlib.h>

#include "base/mem.h"
#include "images/base64.h"

TEST(bytes_are_encoded_and_decoded_as_the_rfc_shows)
{
	static const char *const cases[][2] = {/* RFC 4648, section 10 */
		{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}, {"\xff\xfe\xfd", "//79"},
		{"\xfb\xef\xbe", "++++"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *text = base64_encode(cases[i][0], strlen(cases[i][0]));
		size_t n = 99;
		auto_free char *bytes = base64_decode(cases[i][1], &n);

		assert_string_equal(text, cases[i][1]);
		assert_non_null(bytes);
		assert_string_equal(bytes, cases[i][0]);
		assert_int_equal(n, strlen(cases[i][0]));
	}
}

TEST(what_is_not_base64_is_refused)
{
	static const char *const cases[] = {"Z", "Zg", "Zg=", "Zg===", "====", "=",
		"Z===", "Zh==", "Zm9=", "Zg==Zg==", "Zm9v\n", " Zm9", "Zm9v Zm9", "Zm-v",
		"Zm9vZm_v", "Zm=v", "Z\xc3\xa4v"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = 99;

		if (base64_decode(cases[i], &n))
			fail_msg("%s", cases[i]);
		assert_int_equal(n, 0);
	}
}

RUN_TESTS(cmocka_unit_test(bytes_are_encoded_and_decoded_as_the_rfc_shows),
	cmocka_unit_test(what_is_not_base64_is_refused))
