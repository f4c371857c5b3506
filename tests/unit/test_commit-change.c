#include "tests/unit/test.h"

#include "base/json.h"
#include "builder/commit.h"

static void expect_change(const char *before, const char *change, const char *after)
{
	auto_json json_t *config = json_parse(before, strlen(before), NULL);
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct err e = {0};
	int rc = commit_change(config, change, &e);

	if (!after) {
		assert_int_equal(rc, -1);
		assert_int_equal(e.kind, ERR_USAGE);
		assert_non_null(strstr(e.text, "--change"));
		return;
	}
	if (rc < 0)
		fail_msg("%s: %s", change, e.text);
	json_text(config, true, &b);
	assert_string_equal(b.data, after);
}

TEST(variables_are_set_or_replaced)
{
	expect_change("{}", "ENV A=1", "{\"config\":{\"Env\":[\"A=1\"]}}");
	expect_change("{\"config\":{\"Env\":null}}", "env A=", "{\"config\":{\"Env\":[\"A=\"]}}");
	expect_change("{\"config\":{\"Env\":[\"AB=0\",\"A=0\"]}}", "ENV A=b c = d",
		"{\"config\":{\"Env\":[\"AB=0\",\"A=b c = d\"]}}");
	expect_change("{}", "ENV A=\"x y\"", "{\"config\":{\"Env\":[\"A=x y\"]}}");
	expect_change("{}", "ENV A", NULL);
	expect_change("{}", "ENV =1", NULL);
	expect_change("{}", "ENV A 1=2", NULL);
	expect_change("{}", "ENV", NULL);
	expect_change("{}", "ENV A=1\nUSER root", NULL);
	expect_change("{}", "ENV A=\xff", NULL);
}

TEST(a_variable_of_the_start_is_replaced_by_its_value)
{
	expect_change(
		"{\"config\":{\"Labels\":{\"run.svrun.env\":\"{\\\"A\\\":\\\"${runtime:cpus}\\\","
		"\\\"B\\\":\\\"x\\\"}\"}}}",
		"ENV A=2",
		"{\"config\":{\"Env\":[\"A=2\"],\"Labels\":{\"run.svrun.env\":\"{\\\"B\\\":"
		"\\\"x\\\"}\"}}}");
	expect_change("{\"config\":{\"Labels\":{\"run.svrun.env\":\"{\\\"A\\\":\\\"1\\\"}\"}}}",
		"ENV A=2", "{\"config\":{\"Env\":[\"A=2\"],\"Labels\":{}}}");
}

TEST(commands_are_arrays_or_a_shells_line)
{
	expect_change("{}", "CMD [\"a\", \"b c\"]", "{\"config\":{\"Cmd\":[\"a\",\"b c\"]}}");
	expect_change("{}", "ENTRYPOINT exec x",
		"{\"config\":{\"Entrypoint\":[\"/bin/sh\",\"-c\",\"exec x\"]}}");
	expect_change("{}", "CMD []", "{\"config\":{\"Cmd\":[]}}");
	expect_change("{}", "CMD [\"a\"", NULL);
	expect_change("{}", "CMD [1]", NULL);
	expect_change("{}", "CMD [\"a\\u0000b\"]", NULL);
}

TEST(the_rest_is_one_value_each)
{
	expect_change("{}", "USER 7:8", "{\"config\":{\"User\":\"7:8\"}}");
	expect_change("{}", "USER a b", NULL);
	expect_change("{}", "WORKDIR /a b", "{\"config\":{\"WorkingDir\":\"/a b\"}}");
	expect_change("{}", "WORKDIR a", NULL);
	expect_change("{}", "LABEL a.b=c d", "{\"config\":{\"Labels\":{\"a.b\":\"c d\"}}}");
	expect_change("{}", "LABEL run.svrun.env={}", NULL);
	expect_change("{}", "EXPOSE 80 443/tcp 53/udp",
		"{\"config\":{\"ExposedPorts\":{\"443/tcp\":{},\"53/udp\":{},\"80/tcp\":{}}}}");
	expect_change("{}", "EXPOSE 0", NULL);
	expect_change("{}", "EXPOSE 65536", NULL);
	expect_change("{}", "EXPOSE 80/sctp", NULL);
	expect_change("{}", "EXPOSE 80-90", NULL);
	expect_change("{}", "VOLUME /x", NULL);
	expect_change("{}", "", NULL);
}

RUN_TESTS(cmocka_unit_test(variables_are_set_or_replaced),
	cmocka_unit_test(a_variable_of_the_start_is_replaced_by_its_value),
	cmocka_unit_test(commands_are_arrays_or_a_shells_line),
	cmocka_unit_test(the_rest_is_one_value_each))
