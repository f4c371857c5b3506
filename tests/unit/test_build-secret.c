#include "tests/unit/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/build-secret.h"
#include "builder/secret-scan.h"

static const char value[] = "p/a+s~s w\xc3\xb6rd?";

/* Does the scan find it in text, in pieces of every length? */
static bool finds(const char *text, size_t n)
{
	struct build_secret s = {.id = "db", .value = mem_strdup(value), .n = strlen(value)};
	struct secret_scan *x = secret_scan_new(&s, 1);
	unsigned found = 0;

	for (size_t piece = 1; piece <= n; piece++) {
		const char *id = NULL;

		secret_scan_begin(x);
		for (size_t at = 0; !id && at < n; at += piece)
			id = secret_scan_add(x, text + at, n - at < piece ? n - at : piece);
		found += id != NULL;
		if (id)
			assert_string_equal(id, "db");
	}
	secret_scan_free(x);
	free(s.value);
	if (found && found != n)
		fail_msg("found in %u of %zu ways to cut it", found, n);
	return found > 0;
}

TEST(a_secret_is_found_in_every_spelling_and_however_it_is_cut)
{
	static const char *const with[] = {
		"p/a+s~s w\xc3\xb6rd?",
		"x = 'p/a+s~s w\xc3\xb6rd?'\n",
		/* base64, at each place of a group of three, and in the URL's alphabet */
		"cC9hK3N+cyB3w7ZyZD8=",
		"eHAvYStzfnMgd8O2cmQ/",
		"eHhwL2Erc35zIHfDtnJkP3l5",
		"cC9hK3N-cyB3w7ZyZD8",
		"702f612b737e732077c3b672643f",
		"702F612B737E732077C3B672643F",
		"p%2Fa%2Bs~s%20w%C3%B6rd%3F",
		"p%2fa%2bs~s%20w%c3%b6rd%3f",
		/* broken into lines, and as programs show bytes */
		"cC9hK3N+\ncyB3w7ZyZD8=\n",
		"eHAvYSt\r\nzfnMgd8O2\r\ncmQ/",
		"702f612b737e\n732077c3b672643f\n",
		"70 2f 61 2b 73 7e 73 20 77 c3 b6 72 64 3f",
		"70:2F:61:2B:73:7E:73:20:77:C3:B6:72:64:3F",
		"unsigned char x[] = {\n  0x70, 0x2f, 0x61, 0x2b, 0x73, 0x7e, 0x73, 0x20, 0x77, "
		"0xc3,"
		"\n  0xb6, 0x72, 0x64, 0x3f\n};",
		"\\x70\\x2f\\x61\\x2b\\x73\\x7e\\x73\\x20\\x77\\xc3\\xb6\\x72\\x64\\x3f",
		"00000000  61 61 61 61 70 2f 61 2b  73 7e 73 20 77 c3 b6 72  |aaaap/a+s~s w..r|\n"
		"00000010  64 3f                                             |d?|\n00000012\n",
		"00000000: 6161 6161 702f 612b 737e 7320 77c3 b672  aaaap/a+s~s w..r\n"
		"00000010: 643f                                     d?\n",
	};
	static const char *const without[] = {
		"",
		"p/a+s~s w\xc3\xb6rd",
		"P/A+S~S W\xc3\xb6RD?",
		"cC9hK3N+cyB3w7Z",
		"702f612b737e732077c3b6",
		"70 2f 61 2b 73 7e 73 20 77 c3 b6 72 64",
		"00000000: 6161 6161 702f 612b 737e 7320 77c3 b672  aaaap/a+s~s w..r\n"
		"00000010: 653f                                     d?\n",
	};

	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		if (!finds(with[i], strlen(with[i])))
			fail_msg("not found: %s", with[i]);
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		if (finds(without[i], strlen(without[i])))
			fail_msg("found: %s", without[i]);
}

TEST(of_a_secret_of_several_lines_each_long_one_is_found)
{
	static const char text[] = "-----BEGIN PRIVATE KEY-----\r\nMIIEvQIBADANBgkqhkiG\r\n"
				   "short\r\nyQo9t//8q+LxVbGmbN0f\n-----END PRIVATE KEY-----";
	static const struct {
		const char *text;
		bool found;
	} cases[] = {
		{"x MIIEvQIBADANBgkqhkiG x", true},
		{"yQo9t//8q+LxVbGmbN0f", true},
		{"\"-----BEGIN PRIVATE KEY-----\\r\\nMIIEvQIBADANBgkqhkiG\\r\\n\"", true},
		{"-----BEGIN PRIVATE KEY-----\n", false},
		{"short", false},
		{"MIIEvQIBADANBgkqhki", false},
	};
	struct build_secret s = {.id = "key", .value = mem_strdup(text), .n = strlen(text)};
	struct secret_scan *x = secret_scan_new(&s, 1);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		secret_scan_begin(x);
		if (cases[i].found != !!secret_scan_add(x, cases[i].text, strlen(cases[i].text)))
			fail_msg("%s", cases[i].text);
	}
	secret_scan_free(x);
	free(s.value);
}

TEST(a_short_secret_is_found_in_a_string_of_json)
{
	struct build_secret s = {.id = "db", .value = mem_strdup("a\"b\\c\nd\x01"), .n = 8};
	struct secret_scan *x = secret_scan_new(&s, 1);
	static const char text[] = "{\"x\": \"a\\\"b\\\\c\\nd\\u0001\"}";

	secret_scan_begin(x);
	assert_non_null(secret_scan_add(x, text, strlen(text)));
	secret_scan_free(x);
	free(s.value);
}

/* One that begins again within itself, over pieces and pages. */
TEST(a_long_secret_is_found_wherever_it_begins)
{
	enum { N = 40000, ALL = 300000 };
	char *value_ = mem_alloc(N), *all = mem_alloc(ALL);
	struct build_secret s = {.id = "db", .value = value_, .n = N};
	struct secret_scan *x;

	for (size_t i = 0; i < N; i++)
		value_[i] = (char)(i % 997 < 500 ? 'a' : 'a' + i % 23);
	x = secret_scan_new(&s, 1);
	for (size_t at = 0; at < ALL - N; at += 32771) {
		memset(all, 'a', ALL);
		memcpy(all + at, value_, N);
		secret_scan_begin(x);
		assert_non_null(secret_scan_add(x, all, ALL));
		all[at + N - 1] ^= 1;
		secret_scan_begin(x);
		assert_null(secret_scan_add(x, all, ALL));
	}
	secret_scan_free(x);
	free(value_);
	free(all);
}

TEST(what_ends_in_one_file_does_not_go_on_in_the_next)
{
	struct build_secret s = {.id = "db", .value = mem_strdup("abcdefgh"), .n = 8};
	struct secret_scan *x = secret_scan_new(&s, 1);

	secret_scan_begin(x);
	assert_null(secret_scan_add(x, "abcd", 4));
	secret_scan_begin(x);
	assert_null(secret_scan_add(x, "efgh", 4));
	secret_scan_free(x);
	free(s.value);
}

TEST(options_are_checked_and_files_read_without_their_last_newline)
{
	static const struct {
		const char *id, *text; /* text NULL: there is no file */
		size_t n;              /* of the text */
		bool ok;
		const char *error;
	} cases[] = {
		{"token", "secret\n", 7, true, NULL},
		{"token", "sec\0ret", 7, true, NULL},
		{"a.b-c_1", "secret\r\n", 8, true, NULL},
		{"token", "short", 5, false, "shorter than 6"},
		{"token", "", 0, false, "shorter than 6"},
		{"token", NULL, 0, false, "No such file"},
		{"", "secret", 6, false, "expected ID=FILE"},
		{"../x", "secret", 6, false, "expected ID=FILE"},
	};
	char path[] = "/tmp/svrun-unit-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *option = mem_printf(
			"%s=%s", cases[i].id, cases[i].text ? path : "/tmp/svrun-no-such-file");
		struct build_secret s;
		struct err e = {0};
		int rc;

		fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		if (cases[i].text)
			assert_int_equal(sys_write_all(fd, cases[i].text, cases[i].n), 0);
		close(fd);
		rc = build_secret_load(&s, option, &e);
		assert_int_equal(rc, cases[i].ok ? 0 : -1);
		if (cases[i].ok)
			assert_string_equal(s.id, cases[i].id);
		else if (!strstr(e.text, cases[i].error))
			fail_msg("%s: %s", cases[i].error, e.text);
		if (cases[i].ok && cases[i].text[cases[i].n - 1] == '\n')
			assert_int_equal(s.n, 6);
		build_secret_fini(&s);
	}
	unlink(path);
}

RUN_TESTS(cmocka_unit_test(a_secret_is_found_in_every_spelling_and_however_it_is_cut),
	cmocka_unit_test(of_a_secret_of_several_lines_each_long_one_is_found),
	cmocka_unit_test(a_short_secret_is_found_in_a_string_of_json),
	cmocka_unit_test(a_long_secret_is_found_wherever_it_begins),
	cmocka_unit_test(what_ends_in_one_file_does_not_go_on_in_the_next),
	cmocka_unit_test(options_are_checked_and_files_read_without_their_last_newline))
