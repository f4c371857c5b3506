#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "svrun/gpu-answer.h"

#define UUID_0 "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
#define UUID_1 "GPU-00010203-0405-0607-0809-0a0b0c0d0e1f"
#define GPU_(uuid_, rest_)                                                                         \
	"{\"ordinal\":0,\"uuid\":\"" uuid_ "\",\"mig\":false,\"name\":\"NVIDIA H200\"," rest_      \
	"\"cc\":90,\"multiprocessors\":132,\"integrated\":0,\"computeMode\":0,\"ecc\":1,"          \
	"\"contextMs\":310.5,\"copied\":true}"
#define REST "\"bus\":\"00000000:65:00.0\",\"memory\":150754820096,"
#define TOP(more_) "{\"schema\":\"svrun.gpu-probe/1\"," more_ "}"
#define WHOLE(gpus_)                                                                               \
	TOP("\"library\":\"/usr/lib/libcuda.so.1\",\"cuda\":\"13.0\",\"loadMs\":3,"                \
	    "\"initMs\":812.5,\"gpus\":[" gpus_ "]")

static json_t *answer(const char *text, struct err *e)
{
	*e = (struct err){0};
	return gpu_answer_read(text, strlen(text), e);
}

TEST(an_answer_keeps_what_is_known_and_nothing_else)
{
	struct err e;
	auto_json json_t *a =
		answer(WHOLE(GPU_(UUID_0, REST "\"surprise\":[1],") "," GPU_(UUID_1, REST)), &e);
	const json_t *gpu = json_array_get(json_object_get(a, "gpus"), 0);
	struct gpu_failure f;

	assert_non_null(a);
	assert_null(json_object_get(gpu, "surprise"));
	assert_string_equal(json_string_value(json_object_get(gpu, "bus")), "0000:65:00.0");
	assert_int_equal(json_integer_value(json_object_get(gpu, "memory")), 150754820096);
	assert_false(gpu_answer_failure(a, &f));
}

TEST(lies_are_refused_by_name)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "json:1:1"},
		{"nothing", "json:1:"},
		{"[]", "schema"},
		{"{\"schema\":\"svrun.gpu-probe/2\"}", "schema"},
		{TOP("\"gpus\":[]"), "library: missing"},
		{WHOLE(GPU_(UUID_0, REST) "," GPU_(UUID_0, REST)),
			"GPUs 0 and 1 have one UUID, " UUID_0},
		{WHOLE(GPU_("GPU-0", REST)), "GPU 0: uuid: \"GPU-0\" cannot be"},
		{WHOLE(GPU_(UUID_0, "\"memory\":1,")), "GPU 0: bus: missing"},
		{WHOLE(GPU_(UUID_0, "\"memory\":1,\"bus\":\"65\",")), "bus: \"65\" cannot be"},
		{WHOLE(GPU_(UUID_0, "\"bus\":\"0000:65:00.0\",\"memory\":9223372036854775807,")),
			"GPU 0: memory: 9223372036854775807 cannot be"},
		{WHOLE(GPU_(UUID_0, "\"bus\":\"0000:65:00.0\",\"memory\":0,")), "memory: 0"},
		{WHOLE(GPU_(UUID_0, "\"bus\":\"0000:65:00.0\",\"memory\":\"much\",")), "memory: "},
		{TOP("\"failed\":{\"call\":\"cuInit\",\"code\":0}"), "failed: code: 0 cannot be"},
		{TOP("\"failed\":{\"call\":\"\\u001b[2J\",\"code\":1}"),
			"failed: call: \"\\u001B[2J\" cannot be"},
		{TOP("\"failed\":7"), "failed: call: missing"},
	};
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_json json_t *a = answer(cases[i].text, &e);

		if (a || e.kind != ERR_CORRUPT || !strstr(e.text, cases[i].says))
			fail_msg("%s: expected \"%s\", got %s \"%s\"", cases[i].text, cases[i].says,
				err_kind_name(e.kind), e.text);
	}
}

/* An endless name, one with control characters, more GPUs than can be. */
TEST(texts_and_lists_have_an_end)
{
	auto_free char *name = mem_alloc(10001);
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct err e = {0};

	memset(name, 'x', 10000);
	buf_printf(&b,
		TOP("\"failed\":{\"call\":\"cuInit\",\"code\":1},\"gpus\":[{\"name\":\"%s\","
		    "\"failed\":{\"call\":\"cuDeviceGet\",\"code\":1}}]"),
		name);
	assert_null(gpu_answer_read(b.data, b.len, &e));
	assert_non_null(strstr(e.text, "GPU 0: name: \"xxxx"));
	assert_true(strlen(e.text) < 200);

	b.len = 0;
	buf_printf(&b, "{\"schema\":\"svrun.gpu-probe/1\",\"missing\":\"it\",\"gpus\":[{}");
	for (int i = 0; i < GPUS_MAX; i++)
		buf_printf(&b, ",{}");
	buf_printf(&b, "]}");
	assert_null(gpu_answer_read(b.data, b.len, &e));
	assert_string_equal(e.text, "249 GPUs are more than can be");
}

TEST(codes_are_told_with_what_to_do)
{
	static const struct {
		const char *text, *name;
		int gpu, code;
	} cases[] = {
		{TOP("\"failed\":{\"call\":\"cuInit\",\"code\":34}"), "CUDA_ERROR_STUB_LIBRARY", -1,
			34},
		{TOP("\"failed\":{\"call\":\"cuInit\",\"code\":803,\"name\":\"x\"}"),
			"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", -1, 803},
		{TOP("\"failed\":{\"call\":\"cuInit\",\"code\":12345,\"name\":\"NEW\"}"), "NEW", -1,
			12345},
		{WHOLE(GPU_(UUID_0, REST) ",{\"failed\":{\"call\":\"cuDeviceGet\",\"code\":101}}"),
			"an error that is not known here", 1, 101},
	};
	struct gpu_failure f;
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_json json_t *a = answer(cases[i].text, &e);

		if (!a || !gpu_answer_failure(a, &f))
			fail_msg("%s: no failure (%s)", cases[i].text, e.text);
		assert_string_equal(f.name, cases[i].name);
		assert_int_equal(f.code, cases[i].code);
		assert_int_equal(f.gpu, cases[i].gpu);
		assert_true(strlen(f.advice) > 10);
	}
}

/* What facts.h reads: whose it is stands beside what it says. */
TEST(only_good_answers_are_kept)
{
	char dir[] = "/tmp/svrun-answer.XXXXXX";
	auto_free char *run = NULL, *path = NULL;
	struct gpu_device v[] = {{.uuid = UUID_1}, {.uuid = UUID_0},
		{.uuid = "GPU-x", .excluded = true}, {.maker = GPU_MAKER_AMD, .uuid = "GPU-y"}};
	struct gpu_inventory i = {.v = v, .n = 4, .driver = "999.88.77"};
	struct gpu_host h = {.proc = sys_open("/proc", O_PATH | O_DIRECTORY, 0)};
	struct err e = {0};
	auto_json json_t *good = answer(WHOLE(GPU_(UUID_0, REST)), &e);
	auto_json json_t *bad =
		answer(WHOLE("{\"failed\":{\"call\":\"cuDeviceGet\",\"code\":101}}"), &e);

	assert_non_null(mkdtemp(dir));
	h.run = run = mem_printf("%s/run", dir);
	path = mem_printf("%s/probe.json", run);
	assert_int_equal(gpu_answer_keep(&h, &i, bad, &e), 0);
	assert_int_equal(access(path, F_OK), -1);
	/* It lacks the host's second GPU. */
	assert_int_equal(gpu_answer_lacks(good, &i, 0), 0);
	assert_int_equal(gpu_answer_keep(&h, &i, good, &e), 0);
	v[0].excluded = true;
	assert_null(gpu_answer_strange(good, &i));
	assert_int_equal(gpu_answer_keep(&h, &i, good, &e), 1);

	auto_json json_t *kept = json_load_file(path, 0, NULL);
	const json_t *devices = json_object_get(kept, "devices");

	assert_string_equal(json_string_value(json_object_get(kept, "driver")), "999.88.77");
	assert_int_equal(strlen(json_string_value(json_object_get(kept, "boot"))), 36);
	assert_int_equal(json_array_size(devices), 1);
	assert_string_equal(json_string_value(json_array_get(devices, 0)), UUID_0);
	v[1].uuid = UUID_1;
	assert_string_equal(gpu_answer_strange(good, &i), UUID_0);
	assert_int_equal(sys_remove_tree(AT_FDCWD, dir), 0);
	sys_close_ref(&h.proc);
}

RUN_TESTS(cmocka_unit_test(an_answer_keeps_what_is_known_and_nothing_else),
	cmocka_unit_test(lies_are_refused_by_name), cmocka_unit_test(texts_and_lists_have_an_end),
	cmocka_unit_test(codes_are_told_with_what_to_do),
	cmocka_unit_test(only_good_answers_are_kept))
