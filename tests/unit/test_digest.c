#include "tests/unit/test.h"

#include "images/digest.h"

TEST(hashes_are_those_of_the_standards)
{
	static const struct {
		enum hash_kind kind;
		const char *hex;
	} cases[] = {
		{HASH_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{HASH_MD5, "900150983cd24fb0d6963f7d28e17f72"},
		{HASH_SHA512, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
			      "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
	};

	for (size_t i = 0; i < 3; i++) {
		struct hash h;
		uint8_t out[HASH_MAX];
		char hex[2 * HASH_MAX + 1];

		hash_init(&h, cases[i].kind);
		hash_add(&h, "a", 1);
		hash_add(&h, "bc", 2);
		hex_encode(out, hash_final(&h, out), hex);
		assert_string_equal(hex, cases[i].hex);
	}
}

TEST(text_is_strict)
{
	struct digest d = digest_of("abc", 3), again;
	char text[DIGEST_TEXT + 1];

	assert_int_equal(digest_parse(&again, digest_text(&d, text), NULL), 0);
	assert_true(digest_eq(&d, &again));
	text[10] = 'A';
	assert_int_equal(digest_parse(&again, text, NULL), -1);
	assert_int_equal(digest_parse(&again, "sha256:", NULL), -1);
	assert_int_equal(digest_parse(&again, "sha512:00", NULL), -1);
	digest_text(&d, text);
	text[DIGEST_TEXT - 1] = '\0';
	assert_int_equal(digest_parse(&again, text, NULL), -1);
}

RUN_TESTS(cmocka_unit_test(hashes_are_those_of_the_standards), cmocka_unit_test(text_is_strict))
