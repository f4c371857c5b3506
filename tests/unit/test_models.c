#include "tests/unit/test.h"

#include "base/str.h"
#include "images/models.h"

#define HEX64 "0000000000000000000000000000000000000000000000000000000000000001"

static int read_text(struct models *m, const char *annotation, struct err *e)
{
	auto_json json_t *doc =
		json_pack("{s:{s:s}}", "annotations", MODELS_ANNOTATION, annotation);

	return models_read(m, doc, e);
}

TEST(an_image_without_the_annotation_has_no_models)
{
	auto_json json_t *doc = json_object();
	struct models m;
	struct err e = {0};

	assert_int_equal(models_read(&m, doc, &e), 0);
	assert_int_equal(m.n, 0);
}

TEST(an_entry_is_read_whole)
{
	struct models m;
	struct err e = {0};

	assert_int_equal(
		read_text(&m,
			"[{\"id\":\"a\",\"delivery\":\"artifact\",\"target\":\"/m\",\"artifact\":"
			"\"sha256:" HEX64 "\",\"files\":[{\"path\":\"x/y\",\"sha256\":\"" HEX64
			"\",\"size\":3}],\"links\":{\"l\":\"x/y\"},\"license\":{\"id\":\"L\","
			"\"acceptance\":\"org\",\"gated\":true,\"redistribute\":\"no\"}}]",
			&e),
		0);
	assert_int_equal(m.n, 1);
	assert_int_equal(m.v[0].delivery, MODELS_ARTIFACT);
	assert_string_equal(m.v[0].files[0].path, "x/y");
	assert_int_equal(m.v[0].files[0].size, 3);
	assert_string_equal(m.v[0].links[0].target, "x/y");
	assert_true(m.v[0].accept && m.v[0].gated && m.v[0].keep);
	models_fini(&m);
}

static const struct {
	const char *text, *why;
} bad[] = {
	{"{}", "expected an array"},
	{"[1]", "/0"},
	{"[{\"id\":\"a\",\"delivery\":\"layer\",\"target\":\"m\"}]", "target: 'm'"},
	{"[{\"id\":\"a\",\"delivery\":\"layer\",\"target\":\"/../m\"}]", "target"},
	{"[{\"id\":\"a\",\"delivery\":\"layer\",\"target\":\"/\"}]", "target"},
	{"[{\"id\":\"a\",\"delivery\":\"layer\",\"target\":\"/proc/self\"}]", "the kernel's"},
	{"[{\"id\":\"a\",\"delivery\":\"post\",\"target\":\"/m\"}]", "'post' is unknown"},
	{"[{\"id\":\"a\",\"delivery\":\"artifact\",\"target\":\"/m\"}]", "artifact"},
	{"[{\"id\":\"a\",\"delivery\":\"runtime\",\"target\":\"/m\",\"files\":[{\"path\":\"../x\","
	 "\"sha256\":\"" HEX64 "\",\"size\":1}]}]",
		"files/0"},
	{"[{\"id\":\"a\",\"delivery\":\"runtime\",\"target\":\"/m\",\"files\":[{\"path\":\"/x\","
	 "\"sha256\":\"" HEX64 "\",\"size\":1}]}]",
		"files/0"},
	{"[{\"id\":\"a\",\"delivery\":\"runtime\",\"target\":\"/m\",\"files\":[{\"path\":\"x\","
	 "\"sha256\":\"00\",\"size\":1}]}]",
		"sha256"},
	{"[{\"id\":\"a\",\"delivery\":\"layer\",\"target\":\"/m\",\"links\":{\"../x\":\"y\"}}]",
		"links"},
};

TEST(what_is_malformed_is_refused_by_its_place)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct models m;
		struct err e = {0};

		assert_int_equal(read_text(&m, bad[i].text, &e), -1);
		if (!strstr(e.text, MODELS_ANNOTATION) || !strstr(e.text, bad[i].why))
			fail_msg("expected %s, got: %s", bad[i].why, e.text);
	}
}

TEST(the_set_digest_does_not_depend_on_the_order)
{
	const struct models_file a = {.path = "a", .sha256 = digest_of("1", 1)},
				 b = {.path = "b", .sha256 = digest_of("2", 1)};
	const struct models_file ab[] = {a, b}, ba[] = {b, a};
	char hex1[DIGEST_HEX + 1], hex2[DIGEST_HEX + 1];
	auto_free char *text = mem_printf(
		"%s  a\n%s  b\n", digest_hex(&a.sha256, hex1), digest_hex(&b.sha256, hex2));
	struct digest want = digest_of(text, strlen(text)), x = models_set(ab, 2),
		      y = models_set(ba, 2);

	assert_true(strcmp(hex1, hex2) < 0); /* the text above is sorted */
	assert_true(digest_eq(&x, &want));
	assert_true(digest_eq(&y, &want));
}

TEST(a_licence_is_accepted_by_its_id_and_only_where_it_counts)
{
	struct models_entry x = {
		.id = "m", .license = "L", .accept = true, .delivery = MODELS_RUNTIME};
	const struct models m = {.v = &x, .n = 1};
	const char *const right[] = {"K", "L"};
	struct err e = {0};

	assert_int_equal(models_check_accepted(&m, NULL, 0, ~0u, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_non_null(strstr(e.hint, "--accept-license L"));
	assert_int_equal(models_check_accepted(&m, right, 1, ~0u, &e), -1);
	assert_int_equal(models_check_accepted(&m, right, 2, ~0u, &e), 0);
	assert_int_equal(models_check_accepted(&m, NULL, 0, 1u << MODELS_LAYER, &e), 0);
}

RUN_TESTS(cmocka_unit_test(an_image_without_the_annotation_has_no_models),
	cmocka_unit_test(an_entry_is_read_whole),
	cmocka_unit_test(what_is_malformed_is_refused_by_its_place),
	cmocka_unit_test(the_set_digest_does_not_depend_on_the_order),
	cmocka_unit_test(a_licence_is_accepted_by_its_id_and_only_where_it_counts))
