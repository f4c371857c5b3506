#include "tests/unit/test.h"

#include <stdlib.h>

#include "base/str.h"
#include "gpu/request.h"

/* ---- a host: two whole GPUs, one excluded, one in MIG mode, one of AMD ---- */

static struct gpu_mig migs[] = {
	{.gi = 1, .ci = 0, .index = 0, .uuid = "MIG-aaaaaaaa-0123-4567-89ab-0123456789ab"},
	{.gi = 1, .ci = 1, .index = 1},
};
static struct gpu_device devices[] = {
	{.index = 0,
		.minor = 3,
		.bus = "0000:01:00.0",
		.model = "NVIDIA L4",
		.uuid = "GPU-5a000000-0123-4567-89ab-0123456789ab"},
	{.index = GPU_NO_INDEX,
		.minor = 1,
		.bus = "0000:02:00.0",
		.model = "NVIDIA L4",
		.uuid = "GPU-77000000-0123-4567-89ab-0123456789ab",
		.excluded = true},
	{.index = 1,
		.minor = 0,
		.bus = "10001:00:00.0",
		.model = "NVIDIA L4",
		.uuid = "GPU-5a000001-0123-4567-89ab-0123456789ab"},
	{.index = 2,
		.minor = 2,
		.bus = "0000:03:00.0",
		.model = "NVIDIA A100",
		.uuid = "GPU-99000001-0123-4567-89ab-0123456789ab",
		.migs = migs,
		.nmigs = 2},
	{.maker = GPU_MAKER_AMD,
		.index = 0,
		.minor = 128,
		.bus = "0000:0c:00.0",
		.model = "AMD Instinct MI300X",
		.uuid = "GPU-c0ffee0000000001"},
};
static const struct gpu_inventory host = {.v = devices, .n = 5, .driver = "580.95.05"};
static const struct gpu_inventory nvidia = {.v = devices, .n = 4, .driver = "580.95.05"};

/* "0 2:1 amd0": what was granted. */
static char *text_of(const struct gpu_grants *g)
{
	struct buf b = BUF_INIT(4096);

	buf_printf(&b, "%s", "");
	for (size_t k = 0; k < g->n; k++) {
		buf_printf(&b, "%s%s%u", k ? " " : "",
			g->v[k].device->maker == GPU_MAKER_AMD ? "amd" : "", g->v[k].device->index);
		if (g->v[k].mig)
			buf_printf(&b, ":%u", g->v[k].mig->index);
	}
	return b.data;
}

/* Words between ';' are several --gpus. */
static int ask(const struct gpu_inventory *i, const char *words, char **text, struct err *e)
{
	struct gpu_request r = {0};
	struct gpu_grants g = {0};
	auto_free char *copy = mem_strdup(words);
	char *save = NULL;
	int rc = 0;

	for (char *w = strtok_r(copy, ";", &save); w && rc == 0; w = strtok_r(NULL, ";", &save))
		rc = gpu_request_parse(&r, w, e);
	if (rc == 0)
		rc = gpu_request_match(&r, i, &g, e);
	*text = rc == 0 ? text_of(&g) : NULL;
	if (rc == 0 && r.count) {
		char *more = mem_printf("%s+%u", *text, r.count);

		free(*text);
		*text = more;
	}
	free(g.v);
	gpu_request_fini(&r);
	return rc;
}

TEST(gpus_are_had_by_every_name_they_have)
{
	static const struct {
		const char *words, *want;
	} cases[] = {
		{"all", "0 1 2:0 2:1"},
		{"none", ""},
		{"2", "+2"},
		{"2;1", "+3"},
		{"count=2", "+2"},
		{"count=all", "0 1 2:0 2:1"},
		{"count=-1", "0 1 2:0 2:1"},
		{"device=0", "0"},
		{"\"device=0,1\"", "0 1"},
		{"0,1", "0 1"},
		{"1,0,1", "1 0"},
		{"1,0000:01:00.0", "1 0"},
		{"0,GPU-5a000000-0123-4567-89ab-0123456789ab", "0"},
		{"device=2", "2"}, /* whole, by name alone */
		{"2:1", "2:1"},
		{"2:0,2:1", "2:0 2:1"},
		{"GPU-99", "2"},
		{"gpu-5A000001", "1"},
		{"0000:01:00.0", "0"},
		{"01:00.0", "0"},
		{"00000000:01:00.0", "0"},
		{"00010001:00:00.0", "1"},
		{"MIG-aaaaaaaa-0123-4567-89ab-0123456789ab", "2:0"},
		{"MIG-aaaa", "2:0"},
		{"MIG-GPU-99000001-0123-4567-89ab-0123456789ab/1/1", "2:1"},
		{"device=0;device=1", "0 1"},
		{"device=0;1", "0+1"},
		{"all;device=2:0", "0 1 2:0 2:1"},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct err e = {0};
		auto_free char *text = NULL;

		if (ask(&nvidia, cases[k].words, &text, &e) < 0)
			fail_msg("%s: %s", cases[k].words, e.text);
		if (!str_eq(text, cases[k].want))
			fail_msg("%s: '%s', expected '%s'", cases[k].words, text, cases[k].want);
	}
}

TEST(what_names_no_gpu_is_told_with_what_there_is)
{
	static const struct {
		const char *words;
		enum err_kind kind;
		const char *error;
	} cases[] = {
		{"device=7", ERR_NOT_FOUND, "no GPU 7: the host has 0 (NVIDIA L4, GPU-5a000000-"},
		{"7,8,0", ERR_NOT_FOUND, "no GPU 7, 8: the host has"},
		{"2:2", ERR_NOT_FOUND,
			"2 (NVIDIA A100, GPU-99000001-0123-4567-89ab-0123456789ab, 2 "
			"MIG devices)"},
		{"0:0", ERR_NOT_FOUND, "no GPU 0:0"},
		{"GPU-5a", ERR_USAGE, "'GPU-5a' fits 2 of the host's GPUs"},
		{"GPU-", ERR_NOT_FOUND, "no GPU GPU-"},
		{"GPU-5a000000-0123-4567-89ab-0123456789abc", ERR_NOT_FOUND, "no GPU"},
		{"MIG-GPU-99000001-0123-4567-89ab-0123456789ab/1/7", ERR_NOT_FOUND, "no GPU"},
		{"0000:02:00.0", ERR_DENIED, "0000:02:00.0 is excluded"},
		{"GPU-77", ERR_DENIED, "is excluded"},
		{"device=2,2:0", ERR_USAGE, "GPU 2 and its MIG device 2:0 are named both"},
		{"0", ERR_USAGE, "0 is no number of GPUs"},
		{"", ERR_NONE, NULL},
		{",", ERR_USAGE, "names no GPU"},
		{"0,,1", ERR_USAGE, "names no GPU"},
		{"device=", ERR_USAGE, "names no GPU"},
		{"count=0", ERR_USAGE, "0 is no number"},
		{"count=x", ERR_USAGE, "names no GPU"},
		{"999999999999999999999", ERR_USAGE, "names no GPU"},
		{"249", ERR_USAGE, "names no GPU"},
		{"200;200", ERR_USAGE, "names no GPU"},
		{"0 1", ERR_USAGE, "names no GPU"},
		{"capabilities=utility", ERR_USAGE, "names no GPU"},
		{"none;1", ERR_USAGE, "\"none\" and GPUs at once"},
		{"all;none", ERR_USAGE, "\"none\" and GPUs at once"},
		{"all;2", ERR_USAGE, "\"all\" and a number"},
		{"\033[2J", ERR_USAGE, "'?[2J' names no GPU"},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct err e = {0};
		auto_free char *text = NULL;
		int rc = ask(&nvidia, cases[k].words, &text, &e);

		if (!cases[k].error)
			continue;
		if (rc == 0 || e.kind != cases[k].kind || !strstr(e.text, cases[k].error))
			fail_msg("%s: %s: %s", cases[k].words, err_kind_name(e.kind), e.text);
	}
}

TEST(an_index_of_two_makers_is_none)
{
	struct err e = {0};
	auto_free char *text = NULL, *by_bus = NULL;

	assert_int_equal(ask(&host, "device=0", &text, &e), -1);
	assert_non_null(strstr(e.text, "'0' fits 2"));
	assert_int_equal(ask(&host, "0000:0c:00.0", &by_bus, &e), 0);
	assert_string_equal(by_bus, "amd0");
}

TEST(a_host_without_gpus_says_so)
{
	struct gpu_inventory none = {0}, driver = {.driver = "580.95.05"};
	struct err e = {0};
	auto_free char *text = NULL;

	assert_int_equal(ask(&none, "all", &text, &e), -1);
	assert_non_null(strstr(e.text, "this host has none that a driver serves"));
	e = (struct err){0};
	assert_int_equal(ask(&driver, "all", &text, &e), -1);
	assert_non_null(strstr(e.text, "NVIDIA's driver 580.95.05 is loaded and has no GPU"));
}

TEST(of_many_gpus_only_the_indexes_are_told)
{
	static struct gpu_device many[8];
	struct gpu_inventory i = {.v = many, .n = 8};
	struct err e = {0};
	auto_free char *text = NULL;

	for (uint32_t k = 0; k < 8; k++)
		many[k] = (struct gpu_device){.index = k,
			.bus = "0000:01:00.0",
			.model = "NVIDIA H200",
			.uuid = "GPU-99000001-0123-4567-89ab-0123456789ab"};
	assert_int_equal(ask(&i, "device=9", &text, &e), -1);
	assert_string_equal(e.text, "no GPU 9: the host has 0, 1, 2, 3, 4, 5, 6, 7");
	assert_non_null(strstr(e.hint, "svrun gpu ls"));
}

TEST(all_of_wsl2_is_no_device_of_the_list)
{
	struct gpu_inventory wsl = {.dxg = true};
	struct err e = {0};
	auto_free char *text = NULL, *one = NULL;

	assert_int_equal(ask(&wsl, "all", &text, &e), 0);
	assert_string_equal(text, "");
	assert_int_equal(ask(&wsl, "device=0", &one, &e), -1);
	assert_non_null(strstr(e.text, "WSL2 has one device for all of them"));
}

RUN_TESTS(cmocka_unit_test(gpus_are_had_by_every_name_they_have),
	cmocka_unit_test(what_names_no_gpu_is_told_with_what_there_is),
	cmocka_unit_test(an_index_of_two_makers_is_none),
	cmocka_unit_test(a_host_without_gpus_says_so),
	cmocka_unit_test(of_many_gpus_only_the_indexes_are_told),
	cmocka_unit_test(all_of_wsl2_is_no_device_of_the_list))
