#include "tests/unit/test.h"

#include "base/json.h"
#include "base/str.h"
#include "images/image.h"
#include "svrun/run-mode.h"

/* An image's config with a label; to json_decref(). */
static json_t *image_with(const char *modes)
{
	return json_pack("{s:{s:[s, s, s], s:[s], s:{s:s*, s:s}}}", "config", "Env", "A=1", "AB=2",
		"NVIDIA_VISIBLE_DEVICES=all", "Cmd", "serve", "Labels", IMAGE_MODES_LABEL, modes,
		IMAGE_GPU_LABEL, "{\"mode\":\"required\"}");
}

static json_t *in_mode(const char *modes, const char *mode, struct err *e)
{
	auto_json json_t *image = image_with(modes);
	struct run_options o = {.mode = mode};

	return run_mode_config(image, &o, e);
}

static void expect_config(const json_t *doc, const char *key, const char *text)
{
	auto_buf struct buf b = BUF_INIT(4096);
	const json_t *v = json_object_get(json_object_get(doc, "config"), key);

	if (!text) {
		assert_null(v);
		return;
	}
	json_text(v, true, &b);
	assert_string_equal(b.data, text);
}

TEST(a_mode_changes_what_it_names_and_nothing_else)
{
	struct err e = {0};
	auto_json json_t *doc = in_mode("{\"cpu\": {\"env\": {\"A\": \"x=y\", \"AB\": null, \"N\": "
					"\"\"}, \"Entrypoint\": [\"e\"], \"Cmd\": null,"
					" \"Labels\": {\"run.svrun.gpu\": \"{}\", \"evil\": \"1\"},"
					" \"User\": \"0\"}}",
		"cpu", &e);

	assert_non_null(doc);
	expect_config(doc, "Env", "[\"NVIDIA_VISIBLE_DEVICES=all\",\"A=x=y\",\"N=\"]");
	expect_config(doc, "Entrypoint", "[\"e\"]");
	expect_config(doc, "Cmd", NULL);
	expect_config(doc, "User", NULL);
	const json_t *labels = json_object_get(json_object_get(doc, "config"), "Labels");

	assert_string_equal(json_string_value(json_object_get(labels, IMAGE_GPU_LABEL)), "{}");
	assert_null(json_object_get(labels, "evil"));
}

TEST(cpu_is_a_mode_of_every_image_and_forgets_its_gpus)
{
	struct err e = {0};
	auto_json json_t *doc = in_mode(NULL, "cpu", &e);

	assert_non_null(doc);
	assert_null(json_object_get(
		json_object_get(json_object_get(doc, "config"), "Labels"), IMAGE_GPU_LABEL));
	expect_config(doc, "Cmd", "[\"serve\"]");
}

TEST(no_mode_is_the_image_as_it_is)
{
	static const char *const modes[] = {NULL, ""};
	auto_json json_t *image = image_with("{\"cpu\": {\"Cmd\": null}}");

	for (size_t i = 0; i < 2; i++) {
		auto_json json_t *doc = in_mode("{\"cpu\": {\"Cmd\": null}}", modes[i], NULL);

		assert_true(json_equal(doc, image));
	}
}

TEST(labels_that_lie_and_modes_that_are_not_there_are_errors)
{
	static const struct {
		const char *label, *mode, *text;
		enum err_kind kind;
	} cases[] = {
		{"{", "cpu", "label run.svrun.modes: ", ERR_CORRUPT},
		{"{\"cpu\": 3}", "cpu", "label run.svrun.modes: cpu: expected an object",
			ERR_CORRUPT},
		{"{\"cpu\": {\"env\": []}}", "cpu", "cpu: env: expected an object", ERR_CORRUPT},
		{"{\"cpu\": {\"env\": {\"A=\": \"1\"}}}", "cpu", "expected names and strings",
			ERR_CORRUPT},
		{"{\"cpu\": {\"env\": {\"\": \"1\"}}}", "cpu", "expected names and strings",
			ERR_CORRUPT},
		{"{\"cpu\": {\"env\": {\"A\": 1}}}", "cpu", "expected names and strings",
			ERR_CORRUPT},
		{"{\"x\": {\"image\": true}}", "x", "has other packages or models",
			ERR_UNSUPPORTED},
		{"{\"x\\u001b\": {}}", "y", "the image has no mode 'y'", ERR_NOT_FOUND},
		{NULL, "y\033[", "the image has no mode 'y?['", ERR_NOT_FOUND},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		auto_json json_t *doc = in_mode(cases[i].label, cases[i].mode, &e);

		assert_null(doc);
		assert_string_equal(err_kind_name(e.kind), err_kind_name(cases[i].kind));
		if (!strstr(e.text, cases[i].text))
			fail_msg("%s\nexpected: %s", e.text, cases[i].text);
		assert_null(strchr(e.hint, '\033'));
	}
}

RUN_TESTS(cmocka_unit_test(a_mode_changes_what_it_names_and_nothing_else),
	cmocka_unit_test(cpu_is_a_mode_of_every_image_and_forgets_its_gpus),
	cmocka_unit_test(no_mode_is_the_image_as_it_is),
	cmocka_unit_test(labels_that_lie_and_modes_that_are_not_there_are_errors))
