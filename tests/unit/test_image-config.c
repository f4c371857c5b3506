#include "tests/unit/test.h"

#include "builder/image-config.h"

static const char *at(json_t *doc, const char *key)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	static char out[4096];

	json_t *value = json_object_get(json_object_get(doc, "config"), key);

	if (!value)
		return "absent";
	json_text(value, true, &b);
	snprintf(out, sizeof(out), "%s", b.data);
	return out;
}

TEST(the_config_says_what_the_manifest_says)
{
	struct pair env[] = {{"A", "1"}, {"OMP_NUM_THREADS", "${runtime:cpus}"}, {"Z", "x=y"}};
	struct pair labels[] = {{"l", "v"}};
	struct manifest_port ports[] = {{8000, "api", "http"}, {53, "dns", "udp"}};
	const char *entry[] = {"/bin/app"}, *licenses[] = {"MIT", "Apache-2.0"};
	struct manifest m = {.name = "x",
		.version = "1.0",
		.env = {env, 3},
		.labels = {labels, 1},
		.ports = ports,
		.nports = 2,
		.entrypoint = {entry, 1},
		.has_entrypoint = true,
		.licenses = {licenses, 2},
		.user = "1000:1000",
		.build.epoch = 1767225600};
	auto_json json_t *c = image_config(&m), *a = image_annotations(&m);

	assert_string_equal(at(c, "Env"), "[\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/"
					  "bin:/sbin:/bin\",\"A=1\",\"Z=x=y\"]");
	assert_string_equal(at(c, "Entrypoint"), "[\"/bin/app\"]");
	assert_string_equal(at(c, "Cmd"), "absent");
	assert_string_equal(at(c, "ExposedPorts"), "{\"53/udp\":{},\"8000/tcp\":{}}");
	assert_string_equal(at(c, "User"), "\"1000:1000\"");
	assert_non_null(strstr(at(c, "Labels"),
		"\"run.svrun.env\":\"{\\\"OMP_NUM_THREADS\\\":\\\"${runtime:cpus}\\\"}\""));
	assert_string_equal(
		json_string_value(json_object_get(c, "created")), "2026-01-01T00:00:00Z");
	assert_string_equal(
		json_string_value(json_object_get(a, "org.opencontainers.image.licenses")),
		"MIT AND Apache-2.0");
}

TEST(a_path_of_the_manifest_replaces_the_default)
{
	struct pair env[] = {{"PATH", "/opt/bin"}};
	struct manifest m = {.name = "x", .version = "1", .env = {env, 1}};
	auto_json json_t *c = image_config(&m);

	assert_string_equal(at(c, "Env"), "[\"PATH=/opt/bin\"]");
}

RUN_TESTS(cmocka_unit_test(the_config_says_what_the_manifest_says),
	cmocka_unit_test(a_path_of_the_manifest_replaces_the_default))
