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
	struct manifest_port ports[] = {{.port = 8000, .name = "api", .protocol = "http"},
		{.port = 53, .name = "dns", .protocol = "udp"}};
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

TEST(a_gpu_floor_is_what_the_toolkit_reads)
{
	const char *words[] = {"compute", "video"}, *brands[] = {"tesla", "quadro"};
	struct manifest m = {.name = "x",
		.version = "1",
		.gpu = {.present = true,
			.mode = GPU_REQUIRED,
			.cuda_min = "12.8",
			.driver_min = "525",
			.cc_min = "8.0",
			.capabilities = {words, 2}}};
	struct pair env[] = {{"NVIDIA_VISIBLE_DEVICES", "0"}};
	json_t *c = image_config(&m);

	assert_non_null(strstr(at(c, "Env"),
		"\"NVIDIA_VISIBLE_DEVICES=all\",\"NVIDIA_DRIVER_CAPABILITIES=compute,video\","
		"\"NVIDIA_REQUIRE_CUDA=cuda>=12.8,driver>=525,arch>=8.0\""));
	json_decref(c);

	m.gpu.forward_compat = true;
	m.gpu.brands = (struct strings){brands, 2};
	m.env = (struct pairs){env, 1};
	c = image_config(&m);
	assert_non_null(strstr(at(c, "Env"),
		"\"NVIDIA_REQUIRE_CUDA=cuda>=12.8,arch>=8.0,brand=tesla "
		"cuda>=12.8,arch>=8.0,brand=quadro driver>=525,arch>=8.0,brand=tesla "
		"driver>=525,arch>=8.0,brand=quadro\""));
	assert_null(strstr(at(c, "Env"), "DEVICES=all"));
	json_decref(c);

	m.gpu.mode = GPU_NONE;
	c = image_config(&m);
	assert_null(strstr(at(c, "Env"), "CUDA"));
	json_decref(c);
	m.gpu.mode = GPU_REQUIRED;
	m.gpu.vendor = GPU_AMD;
	c = image_config(&m);
	assert_null(strstr(at(c, "Env"), "CUDA"));
	json_decref(c);
}

TEST(a_probe_is_a_healthcheck)
{
	const char *argv[] = {"/bin/check", "it"};
	const struct manifest_probe http = {.kind = PROBE_HTTP,
		.port = 8000,
		.path = "/it's?a=$(b)",
		.period_ms = 5000,
		.timeout_ms = 1500,
		.failure_threshold = 3};
	struct manifest m = {.name = "x", .version = "1", .health.readiness = http};
	json_t *c = image_config(&m);

	assert_non_null(strstr(at(c, "Healthcheck"),
		"\"Test\":[\"CMD-SHELL\",\"curl -fsS -o /dev/null "
		"'http://127.0.0.1:8000/it'\\\\''s?a=$(b)' 2>/dev/null || wget"));
	assert_non_null(strstr(at(c, "Healthcheck"), "\"Interval\":5000000000,\"Retries\":3,"
						     "\"StartPeriod\":0"));
	json_decref(c);

	m.health.startup = (struct manifest_probe){.kind = PROBE_EXEC,
		.argv = {argv, 2},
		.period_ms = 2000,
		.timeout_ms = 1000,
		.failure_threshold = 450,
		.initial_delay_ms = 100};
	m.health.readiness = (struct manifest_probe){0};
	c = image_config(&m);
	assert_string_equal(at(c, "Healthcheck"),
		"{\"Interval\":2000000000,\"Retries\":450,\"StartPeriod\":900100000000,\"Test\":["
		"\"CMD\",\"/bin/check\",\"it\"],\"Timeout\":1000000000}");
	json_decref(c);
	m.health.startup.kind = PROBE_TCP;
	m.health.startup.port = 5432;
	c = image_config(&m);
	assert_non_null(strstr(at(c, "Healthcheck"), "nc -z 127.0.0.1 5432"));
	json_decref(c);
}

TEST(what_oci_has_no_field_for_is_in_labels)
{
	struct manifest_volume volumes[] = {{.path = "/workspace"}, {.path = "/models"}};
	struct pair notes[] = {{"a.b", "c"}};
	struct manifest m = {.name = "x",
		.version = "1",
		.platform = "linux/arm/v7",
		.mode = "cpu",
		.stop_timeout_ms = 1500,
		.volumes = volumes,
		.nvolumes = 2,
		.annotations = {notes, 1},
		.doc.root = json_pack("{s:{s:s, s:i}, s:s, s:[{s:i}]}", "gpu", "mode", "none", "b",
			1, "category", "llm", "ports", "port", 1)};
	auto_json json_t *c = image_config(&m), *a = image_annotations(&m);

	assert_string_equal(at(c, "Volumes"), "{\"/models\":{},\"/workspace\":{}}");
	assert_string_equal(at(c, "StopTimeout"), "2");
	assert_non_null(strstr(at(c, "Labels"),
		"\"run.svrun.category\":\"llm\",\"run.svrun.gpu\":\"{\\\"b\\\":1,\\\"mode\\\":"
		"\\\"none\\\"}\",\"run.svrun.mode\":\"cpu\",\"run.svrun.ports\":"));
	assert_null(strstr(at(c, "Labels"), "a.b"));
	assert_string_equal(json_string_value(json_object_get(a, "a.b")), "c");
	assert_string_equal(json_string_value(json_object_get(c, "architecture")), "arm");
	assert_string_equal(json_string_value(json_object_get(c, "variant")), "v7");
	json_decref(m.doc.root);
}

RUN_TESTS(cmocka_unit_test(the_config_says_what_the_manifest_says),
	cmocka_unit_test(a_path_of_the_manifest_replaces_the_default),
	cmocka_unit_test(a_gpu_floor_is_what_the_toolkit_reads),
	cmocka_unit_test(a_probe_is_a_healthcheck),
	cmocka_unit_test(what_oci_has_no_field_for_is_in_labels))
