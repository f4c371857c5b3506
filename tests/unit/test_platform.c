#include "tests/unit/test.h"

#include "images/image.h"

#define M "application/vnd.oci.image.manifest.v1+json"
#define D(c) "sha256:" c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c
#define ENTRY(d, platform)                                                                         \
	"{\"mediaType\":\"" M "\",\"size\":5,\"digest\":\"" D(d) "\",\"platform\":{" platform "}}"
#define P(os, arch) "\"os\":\"" os "\",\"architecture\":\"" arch "\""
#define V(v) ",\"variant\":\"" v "\""

static const char index_text[] = "{\"manifests\":[" ENTRY("00", P("unknown", "unknown")) "," ENTRY(
	"11", P("linux", "arm64") V("v8")) "," ENTRY("22", P("linux", "amd64")) "," ENTRY("33",
	P("linux", "amd64") V("v3")) "," ENTRY("44", P("linux", "arm") V("v7")) "]}";

static int choose(const char *text, const char *platform, struct descriptor *d, struct err *e)
{
	auto_json json_t *j = json_parse(text, strlen(text), e);

	assert_non_null(j);
	return image_choose(j, platform, d, e);
}

TEST(the_first_image_that_fits_is_chosen)
{
	static const struct {
		const char *platform, *digest;
	} cases[] = {
		{"linux/amd64", D("22")},
		{"linux/amd64/v3", D("33")},
		{"linux/arm64", D("11")},
		{"linux/arm64/v8", D("11")},
		{"linux/arm/v7", D("44")},
#ifdef __x86_64__
		{NULL, D("22")},
#endif
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		struct descriptor d;
		char text[DIGEST_TEXT + 1];

		if (choose(index_text, cases[i].platform, &d, &e) < 0)
			fail_msg("%s: %s", cases[i].platform, e.text);
		assert_string_equal(digest_text(&d.digest, text), cases[i].digest);
		assert_int_equal(d.size, 5);
	}
}

TEST(what_is_not_there_is_said_with_what_is)
{
	struct err e = {0};
	struct descriptor d;

	assert_int_equal(choose(index_text, "linux/riscv64", &d, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(e.text, "no image for the platform linux/riscv64");
	assert_string_equal(
		e.hint, "there are: linux/arm64/v8, linux/amd64, linux/amd64/v3, linux/arm/v7");
}

TEST(malformed_platforms_are_refused)
{
	static const char *const cases[] = {
		"", "linux", "linux/", "/amd64", "linux/amd64/", "linux/arm64/v8/x", "linux//v8"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		struct descriptor d;

		assert_int_equal(choose(index_text, cases[i], &d, &e), -1);
		assert_int_equal(e.kind, ERR_USAGE);
	}
}

TEST(an_index_that_is_also_a_manifest_is_refused)
{
	struct err e = {0};
	struct descriptor d;

	assert_int_equal(choose("{\"manifests\":[],\"layers\":[]}", NULL, &d, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_int_equal(choose("{\"manifests\":{}}", NULL, &d, NULL), -1);
}

TEST(an_image_alone_is_for_a_platform_or_for_any)
{
	static const struct {
		const char *config, *platform;
		int rc;
	} cases[] = {
		{"{\"os\":\"linux\",\"architecture\":\"arm64\"}", "linux/arm64", 0},
		{"{\"os\":\"linux\",\"architecture\":\"arm64\"}", "linux/arm64/v8", 0},
		{"{\"os\":\"linux\",\"architecture\":\"arm64\"}", "linux/amd64", -1},
		{"{\"os\":\"windows\",\"architecture\":\"amd64\"}", "linux/amd64", -1},
		{"{\"os\":\"linux\",\"architecture\":\"arm\",\"variant\":\"v7\"}", "linux/arm/v6",
			-1},
		{"{\"os\":\"linux\"}", "linux/amd64", 0},
		{"{}", NULL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		auto_json json_t *j = json_parse(cases[i].config, strlen(cases[i].config), NULL);

		if (image_check_platform(j, cases[i].platform, &e) != cases[i].rc)
			fail_msg("case %zu: %s", i, e.text);
		assert_int_equal(e.kind, cases[i].rc ? ERR_NOT_FOUND : ERR_NONE);
	}
}

TEST(an_entry_without_a_platform_is_for_any)
{
	struct descriptor d;

	assert_int_equal(choose("{\"manifests\":[{\"mediaType\":\"" M
				"\",\"size\":1,\"digest\":\"" D("55") "\"}]}",
				 "linux/s390x", &d, NULL),
		0);
}

RUN_TESTS(cmocka_unit_test(the_first_image_that_fits_is_chosen),
	cmocka_unit_test(what_is_not_there_is_said_with_what_is),
	cmocka_unit_test(malformed_platforms_are_refused),
	cmocka_unit_test(an_index_that_is_also_a_manifest_is_refused),
	cmocka_unit_test(an_image_alone_is_for_a_platform_or_for_any),
	cmocka_unit_test(an_entry_without_a_platform_is_for_any))
