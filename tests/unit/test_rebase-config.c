#include "tests/unit/test.h"

#include "base/json.h"
#include "builder/rebase.h"

static json_t *config(const char *text)
{
	struct err e = {0};
	json_t *j = json_parse(text, strlen(text), &e);

	if (!j)
		fail_msg("%s", e.text);
	return j;
}

TEST(what_the_image_left_as_it_was_follows_the_base)
{
	auto_json json_t *image = config(
		"{\"architecture\":\"amd64\",\"config\":{\"Env\":[\"PATH=/a\",\"OWN=1\",\"GONE=x\","
		"\"CHANGED=mine\"],\"Cmd\":[\"old\"],\"User\":\"me\",\"Labels\":{\"l\":\"1\"}},"
		"\"rootfs\":{},\"history\":[]}");
	auto_json json_t *old =
		config("{\"config\":{\"Env\":[\"PATH=/a\",\"GONE=x\",\"CHANGED=old\"],"
		       "\"Cmd\":[\"old\"],\"User\":\"root\",\"Labels\":{\"l\":\"1\"}}}");
	auto_json json_t *onto =
		config("{\"config\":{\"Env\":[\"PATH=/b\",\"CHANGED=new\",\"NEW=n\"],"
		       "\"Cmd\":[\"new\"],\"User\":\"root\",\"StopSignal\":\"SIGINT\"}}");
	auto_json json_t *want =
		config("{\"architecture\":\"amd64\",\"config\":{\"Env\":[\"PATH=/b\",\"OWN=1\","
		       "\"CHANGED=mine\",\"NEW=n\"],\"Cmd\":[\"new\"],\"User\":\"me\","
		       "\"StopSignal\":\"SIGINT\"}}");
	auto_json json_t *got = rebase_config(image, old, onto);

	if (!json_equal(got, want)) {
		auto_buf struct buf b = BUF_INIT(65536);

		json_text(got, true, &b);
		fail_msg("%s", b.data);
	}
}

TEST(history_is_the_new_bases_and_then_the_images_own)
{
	auto_json json_t *onto =
		config("{\"history\":[{\"created_by\":\"b1\"},{\"created_by\":\"e\","
		       "\"empty_layer\":true},{\"created_by\":\"b2\"},"
		       "{\"created_by\":\"index\"}]}");
	auto_json json_t *own =
		config("{\"history\":[{\"created_by\":\"a1\"},{\"created_by\":\"u1\"},"
		       "{\"created_by\":\"u2\"},{\"created_by\":\"index\"}]}");
	struct image im = {.config = own, .nlayers = 4, .has_index = true};
	auto_json json_t *got = rebase_history(&im, 1, onto, 2);
	static const char *const want[] = {"b1", "e", "b2", "u1", "u2"};

	assert_int_equal(json_array_size(got), 5);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(got, i), "created_by")),
			want[i]);
}

RUN_TESTS(cmocka_unit_test(what_the_image_left_as_it_was_follows_the_base),
	cmocka_unit_test(history_is_the_new_bases_and_then_the_images_own))
