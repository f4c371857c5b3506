#include "tests/unit/test.h"

#include "base/str.h"
#include "builder/image-config.h"
#include "builder/image-modes.h"
#include "images/image.h"

static const char text[] = "{\"schema\": \"svrun.image/1\", \"name\": \"x\", \"version\": \"1\","
			   " \"base\": {\"type\": \"scratch\"},"
			   " \"env\": {\"A\": \"1\", \"B\": \"2\", \"N\": \"${runtime:gpus}\"},"
			   " \"entrypoint\": [\"/bin/app\"], \"cmd\": [\"--gpu\"],"
			   " \"gpu\": {\"mode\": \"required\", \"vramGiB\": {\"min\": 8}},"
			   " \"modes\": {"
			   "  \"cpu\": {\"gpu\": {\"mode\": \"none\"}, \"cmd\": [\"--cpu\"],"
			   "   \"env\": {\"A\": \"one\", \"B\": null, \"N\": \"${runtime:cpus}\"}},"
			   "  \"plain\": {\"description\": \"nothing changes\"},"
			   "  \"node\": {\"python\": {\"interpreter\": \"/usr/bin/python3.12\"}}},"
			   " \"tests\": [{\"id\": \"t\", \"stage\": \"run\", \"type\": \"exec\","
			   "  \"mode\": \"cpu\", \"argv\": [\"/bin/app\"]}],"
			   " \"build\": {\"epoch\": 1767225600}}";

static void load(struct manifest *m, const char *mode)
{
	struct manifest_choice choice = {.mode = mode};
	struct complaints c = {.text = BUF_INIT(1 << 20)};
	struct err e = {0};
	int rc = manifest_parse(m, "x.json", text, strlen(text), &choice, &c, &e);

	if (rc < 0)
		fail_msg("%s\n%s", e.text, c.text.data ? c.text.data : "");
	complaints_fini(&c);
}

static json_t *label_of(const struct manifest *m)
{
	auto_json json_t *doc = image_config(m);
	const char *label = json_string_value(json_object_get(
		json_object_get(json_object_get(doc, "config"), "Labels"), IMAGE_MODES_LABEL));

	return label ? json_loads(label, 0, NULL) : NULL;
}

static const json_t *get(const json_t *o, const char *mode, const char *key)
{
	return json_object_get(json_object_get(o, mode), key);
}

TEST(an_image_says_what_each_of_its_modes_changes)
{
	struct manifest m;

	load(&m, NULL);
	auto_json json_t *label = label_of(&m);
	const json_t *env = get(label, "cpu", "env"), *labels = get(label, "cpu", "Labels");

	assert_string_equal(json_string_value(json_object_get(env, "A")), "one");
	assert_true(json_is_null(json_object_get(env, "B")));
	assert_null(json_object_get(env, "PATH"));
	assert_true(json_is_null(json_object_get(env, "NVIDIA_VISIBLE_DEVICES")));
	assert_string_equal(json_string_value(json_object_get(labels, RUNTIME_ENV_LABEL)),
		"{\"N\":\"${runtime:cpus}\"}");
	assert_string_equal(json_string_value(json_object_get(labels, IMAGE_GPU_LABEL)),
		"{\"mode\":\"none\",\"vramGiB\":{\"min\":8}}");
	assert_string_equal(
		json_string_value(json_array_get(get(label, "cpu", "Cmd"), 0)), "--cpu");
	assert_null(get(label, "cpu", "Entrypoint"));
	assert_null(get(label, "cpu", "image"));
	assert_int_equal(json_object_size(json_object_get(label, "plain")), 0);
	assert_true(json_is_true(get(label, "node", "image")));
	manifest_fini(&m);
}

TEST(an_image_of_a_mode_has_no_others)
{
	struct manifest m;

	load(&m, "cpu");
	auto_json json_t *label = label_of(&m);

	assert_null(label);
	manifest_fini(&m);
}

TEST(modes_are_of_the_key_of_a_build)
{
	auto_buf struct buf one = BUF_INIT(4096), none = BUF_INIT(4096);
	struct manifest m;

	load(&m, NULL);
	image_modes_key(&m, &one);
	assert_true(str_starts(one.data, " modes "));
	manifest_fini(&m);
	load(&m, "cpu");
	image_modes_key(&m, &none);
	assert_int_equal(none.len, 0);
	manifest_fini(&m);
}

RUN_TESTS(cmocka_unit_test(an_image_says_what_each_of_its_modes_changes),
	cmocka_unit_test(an_image_of_a_mode_has_no_others),
	cmocka_unit_test(modes_are_of_the_key_of_a_build))
