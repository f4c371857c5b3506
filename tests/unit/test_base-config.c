#include "tests/unit/test.h"

#include "builder/base-config.h"

static void expect(const char *ours, const char *base, const struct manifest *m, const char *want)
{
	auto_json json_t *a = json_loads(ours, 0, NULL), *b = json_loads(base, 0, NULL);
	auto_buf struct buf got = BUF_INIT(1 << 16);

	assert_non_null(a);
	assert_non_null(b);
	base_config_merge(a, b, m);
	json_text(json_object_get(a, "config"), true, &got);
	assert_string_equal(got.data, want);
}

TEST(env_and_labels_are_joined_and_ours_win)
{
	struct pair env[] = {{"B", "ours"}};
	struct manifest m = {.env = {env, 1}};

	expect("{\"config\": {\"Env\": [\"PATH=/default\", \"B=ours\"], \"Labels\": {\"x\": "
	       "\"ours\"}}}",
		"{\"config\": {\"Env\": [\"PATH=/base\", \"A=base\", \"B=base\"], \"Labels\": "
		"{\"x\": \"b\", \"y\": "
		"\"b\"}}}",
		&m,
		"{\"Env\":[\"PATH=/"
		"base\",\"A=base\",\"B=ours\"],\"Labels\":{\"x\":\"ours\",\"y\":\"b\"}}");
}

TEST(the_command_of_the_base_goes_with_its_entrypoint_only)
{
	static const char base[] =
		"{\"config\": {\"Entrypoint\": [\"/e\"], \"Cmd\": [\"c\"], \"User\": \"u\"}}";
	struct manifest none = {0}, entry = {.has_entrypoint = true}, cmd = {.has_cmd = true};

	expect("{\"config\": {}}", base, &none,
		"{\"Cmd\":[\"c\"],\"Entrypoint\":[\"/e\"],\"Env\":[],\"User\":\"u\"}");
	expect("{\"config\": {\"Entrypoint\": [\"/mine\"]}}", base, &entry,
		"{\"Entrypoint\":[\"/mine\"],\"Env\":[],\"User\":\"u\"}");
	expect("{\"config\": {\"Cmd\": [\"mine\"]}}", base, &cmd,
		"{\"Cmd\":[\"mine\"],\"Entrypoint\":[\"/e\"],\"Env\":[],\"User\":\"u\"}");
}

TEST(history_is_kept_for_as_many_layers_as_are)
{
	auto_json json_t *base =
		json_loads("{\"history\": [{\"created_by\": \"a\"}, {\"created_by\": \"e\", "
			   "\"empty_layer\": true}, {\"created_by\": \"b\"}]}",
			0, NULL);
	auto_json json_t *one = base_history(base, 1), *three = base_history(base, 3);

	assert_int_equal(json_array_size(one), 2);
	assert_int_equal(json_array_size(three), 4); /* it does not tell of the third */
}

RUN_TESTS(cmocka_unit_test(env_and_labels_are_joined_and_ours_win),
	cmocka_unit_test(the_command_of_the_base_goes_with_its_entrypoint_only),
	cmocka_unit_test(history_is_kept_for_as_many_layers_as_are))
