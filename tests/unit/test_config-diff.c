#include "images/config-diff.h"

#include "base/json.h"
#include "tests/unit/test.h"

static void check(const char *config, const char *want)
{
	auto_json json_t *c = json_loads(config, 0, NULL), *flat = config_flatten(c);
	auto_buf struct buf b = BUF_INIT(1 << 16);

	assert_non_null(c);
	json_text(flat, true, &b);
	assert_string_equal(b.data, want);
}

TEST(a_configuration_is_flat_members)
{
	check("{}", "{}");
	check("{\"architecture\":\"amd64\",\"os\":\"linux\",\"created\":\"x\",\"history\":[1],"
	      "\"rootfs\":{}}",
		"{\"architecture\":\"amd64\",\"os\":\"linux\"}");
	check("{\"config\":{\"Env\":[\"A=1\",\"B\",\"A=2=3\",7],\"Cmd\":[\"a\",\"b\"],\"User\":"
	      "\"\","
	      "\"Labels\":{\"x\":\"y\"},\"Volumes\":{\"/v\":{}},\"Entrypoint\":null}}",
		"{\"Cmd\":\"[\\\"a\\\",\\\"b\\\"]\",\"Env.A\":\"2=3\",\"Env.B\":\"\","
		"\"Labels.x\":\"y\",\"User\":\"\",\"Volumes./v\":\"{}\"}");
}

TEST(an_odd_configuration_does_no_harm)
{
	check("{\"config\":[1]}", "{}");
	check("{\"config\":{\"Env\":{\"A\":\"1\"},\"Labels\":[1],\"User\":5}}",
		"{\"Env.A\":\"1\",\"Labels\":\"[1]\",\"User\":\"5\"}");
}

RUN_TESTS(cmocka_unit_test(a_configuration_is_flat_members),
	cmocka_unit_test(an_odd_configuration_does_no_harm))
