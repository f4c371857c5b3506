#include "tests/unit/test.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "gpu/require.h"

/* ---- one value against one GPU ---- */

TEST(requirements_are_alternatives_of_predicates)
{
	static const struct gpu_properties t4 = {"12.2", "535.129.03", "7.5", "tesla"},
					   unknown = {NULL, "535.129.03", NULL, NULL};
	static const struct {
		const char *value;
		const struct gpu_properties *of;
		int want;
	} cases[] = {
		{"cuda>=12.2", &t4, 1},
		{"cuda>=12.10", &t4, 0},
		{"cuda>=12.2.0", &t4, 1},
		{"cuda>=12", &t4, 1},
		{"cuda>12", &t4, 1},
		{"cuda>12.2", &t4, 0},
		{"cuda=12.2", &t4, 1},
		{"cuda!=12.2", &t4, 0},
		{"cuda<12.10", &t4, 1},
		{"cuda<=12.2", &t4, 1},
		{"cuda<=12.1.99", &t4, 0},
		{"CUDA>=12.2", &t4, 1},
		{"driver>=535.54", &t4, 1},
		{"driver>=535.129.4", &t4, 0},
		{"driver<536", &t4, 1},
		{"arch>=7.0,arch<8", &t4, 1},
		{"arch>=8.0", &t4, 0},
		{"brand=Tesla", &t4, 1},
		{"brand!=geforce", &t4, 1},
		{"brand=geforce", &t4, 0},
		{"cuda>=12.8 brand=tesla,driver>=535,driver<536", &t4, 1},
		{"cuda>=12.8 brand=geforce,driver>=535,driver<536", &t4, 0},
		{"cuda>=12.8,brand=tesla brand=tesla,cuda>=12", &t4, 1},
		{"", &t4, 1},
		{"   ", &t4, 1},
		{",", &t4, 1},
		{"  cuda>=12 ", &t4, 1},
		{",cuda>=12,,", &t4, 1},
		/* what is not known here is left out, and does not make an alternative true */
		{"l4t>=35", &t4, 1},
		{"l4t>=35 cuda>=99", &t4, 0},
		{"l4t>=35,cuda>=99", &t4, 0},
		{"l4t>=35,cuda>=12", &t4, 1},
		/* numbers longer than any type */
		{"cuda<99999999999999999999999999", &t4, 1},
		{"driver>=0000535", &t4, 1},
		/* what is not known of the GPU is not met */
		{"cuda>=1.0", &unknown, 0},
		{"arch>=1.0", &unknown, 0},
		{"brand!=geforce", &unknown, 0},
		{"cuda>=12.8 driver>=535", &unknown, 1},
		/* malformed */
		{"cuda", &t4, -1},
		{"cuda>=", &t4, -1},
		{">=12", &t4, -1},
		{"cuda=>12", &t4, -1},
		{"cuda==12", &t4, -1},
		{"cuda<>12", &t4, -1},
		{"cuda!12", &t4, -1},
		{"cuda>=12.x", &t4, -1},
		{"cuda>=12..2", &t4, -1},
		{"cuda>=.5", &t4, -1},
		{"cuda>=12.", &t4, -1},
		{"cuda>=-1", &t4, -1},
		{"cuda>=v12", &t4, -1},
		{"brand>=tesla", &t4, -1},
		{"brand<a", &t4, -1},
		{"cuda>=12 nonsense", &t4, -1},
		{"cuda >= 12", &t4, -1},
		{"cuda>=12|driver>=1", &t4, -1},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct err e = {0};
		const char *why = NULL;
		int rc = gpu_require_value(cases[k].value, cases[k].of, &why, &e);

		if (rc != cases[k].want)
			fail_msg("'%s': %d, expected %d", cases[k].value, rc, cases[k].want);
		assert_int_equal(e.kind, rc < 0 ? ERR_CORRUPT : ERR_NONE);
		assert_int_equal(why != NULL, rc == 0);
	}
}

TEST(a_value_without_end_is_refused)
{
	auto_free char *value = mem_alloc((1 << 17) + 1);
	const char *why;
	struct err e = {0};

	memset(value, ' ', 1 << 17);
	assert_int_equal(gpu_require_value(value, &(struct gpu_properties){0}, &why, &e), -1);
	memset(value, 'a', 1 << 15);
	value[1 << 15] = '\0';
	assert_int_equal(gpu_require_value(value, &(struct gpu_properties){0}, &why, &e), -1);
	assert_in_range(strlen(e.text), 1, 300);
}

/* The one of NVIDIA's images for CUDA 12.8. */
TEST(the_variable_of_real_images_is_understood)
{
	static const char value[] =
		"cuda>=12.8 brand=unknown,driver>=470,driver<471 brand=grid,driver>=470,driver<471 "
		"brand=tesla,driver>=470,driver<471 brand=nvidia,driver>=470,driver<471 "
		"brand=quadro,driver>=470,driver<471 brand=quadrortx,driver>=470,driver<471 "
		"brand=nvidiartx,driver>=470,driver<471 brand=vapps,driver>=470,driver<471 "
		"brand=tesla,driver>=535,driver<536 brand=nvidia,driver>=535,driver<536";
	const struct gpu_properties old = {"12.2", "535.129.03", "8.0", "nvidia"},
				    geforce = {"12.2", "535.129.03", "8.9", "geforce"},
				    fresh = {"13.0", "580.95.05", "8.9", "geforce"};
	const char *why;

	assert_int_equal(gpu_require_value(value, &old, &why, NULL), 1);
	assert_int_equal(gpu_require_value(value, &geforce, &why, NULL), 0);
	assert_int_equal(gpu_require_value(value, &fresh, &why, NULL), 1);
}

/* ---- a label against a host ---- */

static struct gpu_mig migs[] = {{.gi = 1, .ci = 0, .index = 0}};
static struct gpu_device devices[] = {
	{.index = 0, .bus = "0000:01:00.0", .model = "NVIDIA A2"},
	{.index = 1, .bus = "0000:02:00.0", .model = "NVIDIA A10G"},
	{.index = 2, .bus = "0000:03:00.0", .model = "NVIDIA H200"},
	{.index = 3, .bus = "0000:04:00.0", .model = "NVIDIA H200"},
	{.index = 4, .bus = "0000:05:00.0", .model = "NVIDIA Unheard-of"},
	{.index = 5, .bus = "0000:06:00.0", .model = "NVIDIA H200", .migs = migs, .nmigs = 1},
	{.maker = GPU_MAKER_AMD,
		.index = 0,
		.bus = "0000:0c:00.0",
		.model = "AMD MI300X",
		.arch = "gfx942",
		.vram = 206141652992},
};
static const struct gpu_probe no_probe;

struct given {
	size_t from, n; /* of devices; n 0: the whole host of them */
	bool grant;     /* as what is granted */
	bool mig;       /* the last one's MIG device */
	const char *driver;
	bool nvswitch, rdma;
};

static int judge(struct gpu_verdict *v, const char *label, const char *const *env, size_t nenv,
	const struct given *x, struct err *e)
{
	auto_json json_t *doc = label ? json_parse(label, strlen(label), e) : NULL;
	auto_free const char **words = mem_array(nenv + 1, sizeof(*words));
	struct strings list = {words, nenv};
	struct gpu_inventory i = {.v = devices + x->from,
		.n = x->n,
		.driver = x->driver ? x->driver : "580.95.05",
		.nvswitch.n = x->nvswitch,
		.infiniband.n = x->rdma};
	struct gpu_grant granted[8];
	struct gpu_grants g = {granted, x->grant ? x->n : 0};

	assert_true(!label || doc);
	for (size_t k = 0; k < nenv; k++)
		words[k] = env[k];
	for (size_t k = 0; k < g.n; k++)
		granted[k] = (struct gpu_grant){
			&i.v[k], x->mig && k + 1 == g.n ? &i.v[k].migs[0] : NULL};
	return gpu_require(v, doc, &list, &i, &no_probe, x->grant ? &g : NULL, e);
}

/* "vramGiB.min,cuda.min": what is not met. */
static char *unmet_of(const struct gpu_verdict *v)
{
	struct buf b = BUF_INIT(4096);

	buf_printf(&b, "%s", "");
	for (size_t k = 0; k < v->n; k++)
		if (!v->v[k].met && !v->v[k].spared)
			buf_printf(&b, "%s%s", b.len ? "," : "", v->v[k].what);
	return b.data;
}

#define REQUIRED "\"mode\": \"required\""

TEST(every_line_of_a_label_is_checked)
{
	static const struct {
		const char *label, *unmet;
		struct given x;
	} cases[] = {
		{"{\"mode\": \"none\"}", "", {0}},
		{"{\"mode\": \"none\", \"vramGiB\": {\"min\": 900}}", "",
			{.from = 0, .n = 1, .grant = true}},
		{"{" REQUIRED "}", "count.min", {0}},
		{"{" REQUIRED "}", "", {.from = 0, .n = 1}},
		{"{" REQUIRED "}", "count.min", {.from = 0, .n = 0, .grant = true}},
		{"{\"mode\": \"optional\", \"count\": {\"min\": 2}}", "", {0}},
		{"{\"mode\": \"optional\", \"vramGiB\": {\"min\": 900}}", "", {.from = 0, .n = 2}},
		{"{\"mode\": \"optional\", \"count\": {\"min\": 2}}", "count.min",
			{.from = 0, .n = 1, .grant = true}},
		{"{\"mode\": \"optional\", \"vramGiB\": {\"min\": 900}}", "vramGiB.min",
			{.from = 0, .n = 1, .grant = true}},
		{"{\"mode\": \"optional\"}", "", {.from = 0, .n = 0, .grant = true}},
		/* memory: what is sold as 24 GiB has 22.5, and counts as 24 */
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 24}}", "",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 25}}", "vramGiB.min",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 16}}", "",
			{.from = 0, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 141}}", "",
			{.from = 2, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 192}}", "",
			{.from = 6, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 24}}", "vramGiB.min",
			{.from = 0, .n = 2, .grant = true}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 24}}", "",
			{.from = 0, .n = 2}}, /* one of two does */
		{"{" REQUIRED ", \"count\": {\"min\": 2}, \"vramGiB\": {\"min\": 24}}",
			"vramGiB.min,count.min", {.from = 0, .n = 2}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 8}}", "vramGiB.min",
			{.from = 4, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 8}}", "vramGiB.min",
			{.from = 5, .n = 1, .grant = true, .mig = true}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 280, \"per\": \"total\"}}", "",
			{.from = 2, .n = 2, .grant = true}},
		{"{" REQUIRED ", \"vramGiB\": {\"min\": 310, \"per\": \"total\"}}", "vramGiB.min",
			{.from = 2, .n = 2, .grant = true}},
		{"{" REQUIRED ", \"count\": {\"max\": 1}, \"vramGiB\": {\"min\": 200, \"per\": "
		 "\"total\"}}",
			"vramGiB.min", {.from = 2, .n = 2}},
		/* how many */
		{"{" REQUIRED ", \"count\": {\"min\": 3}}", "count.min",
			{.from = 0, .n = 2, .grant = true}},
		{"{" REQUIRED ", \"count\": {\"max\": 1}}", "count.max",
			{.from = 0, .n = 2, .grant = true}},
		{"{" REQUIRED ", \"count\": {\"max\": 1}}", "", {.from = 0, .n = 2}},
		/* age */
		{"{" REQUIRED ", \"computeCapability\": {\"min\": \"8.9\"}}",
			"computeCapability.min", {.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"computeCapability\": {\"min\": \"8.6\", \"max\": \"8.6\"}}", "",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"computeCapability\": {\"max\": \"8.9\"}}",
			"computeCapability.max", {.from = 2, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"computeCapability\": {\"min\": \"10.0\"}}",
			"computeCapability.min", {.from = 2, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"computeCapability\": {\"min\": \"8.0\"}}", "",
			{.from = 6, .n = 1, .grant = true}}, /* AMD has none */
		{"{" REQUIRED ", \"archs\": [\"8.0\"]}", "", {.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"archs\": [\"8.0\"]}", "archs",
			{.from = 2, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"archs\": [\"8.0+PTX\"]}", "",
			{.from = 2, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"archs\": [\"8.9\", \"9.0\"]}", "archs",
			{.from = 1, .n = 1, .grant = true}},
		/* software */
		{"{" REQUIRED ", \"driver\": {\"min\": \"580.95\"}}", "",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"driver\": {\"min\": \"581\"}}", "driver.min",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"cuda\": {\"min\": \"13.0\"}}", "",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"cuda\": {\"min\": \"13.1\"}}", "cuda.min",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"cuda\": {\"max\": \"12.9\"}}", "cuda.max",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"cuda\": {\"min\": \"12.0\"}}", "cuda.min",
			{.from = 1, .n = 1, .grant = true, .driver = "340.108"}}, /* unknown */
		{"{" REQUIRED ", \"cuda\": {\"min\": \"13.0\"}}", "",
			{.from = 1, .n = 1, .grant = true, .driver = "999.88.77"}},
		{"{" REQUIRED ", \"cuda\": {\"min\": \"99.0\"}}", "cuda.min",
			{.from = 1, .n = 1, .grant = true, .driver = "999.88.77"}},
		{"{" REQUIRED ", \"cuda\": {\"min\": \"13.0\"}, \"driver\": {\"min\": \"570\"}, "
		 "\"forwardCompat\": true}",
			"", {.from = 1, .n = 1, .grant = true, .driver = "570.1"}},
		{"{" REQUIRED ", \"cuda\": {\"min\": \"13.0\"}, \"driver\": {\"min\": \"570\"}}",
			"cuda.min", {.from = 1, .n = 1, .grant = true, .driver = "570.1"}},
		{"{" REQUIRED ", \"cuda\": {\"min\": \"13.0\"}, \"driver\": {\"min\": \"575\"}, "
		 "\"forwardCompat\": true}",
			"cuda.min", {.from = 1, .n = 1, .grant = true, .driver = "570.1"}},
		/* makers */
		{"{" REQUIRED ", \"vendor\": \"amd\"}", "vendor",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"vendor\": \"nvidia\"}", "vendor",
			{.from = 6, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"vendor\": \"amd\"}", "", {.from = 5, .n = 2}},
		{"{" REQUIRED ", \"vendor\": \"intel\"}", "vendor,count.min", {.from = 0, .n = 7}},
		{"{" REQUIRED ", \"brands\": [\"Tesla\", \"NVIDIA\"]}", "",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"brands\": [\"geforce\"]}", "brands",
			{.from = 1, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"brands\": [\"geforce\"]}", "brands",
			{.from = 4, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"mig\": \"denied\"}", "mig",
			{.from = 5, .n = 1, .grant = true, .mig = true}},
		{"{" REQUIRED ", \"mig\": \"denied\"}", "mig,count.min", {.from = 5, .n = 1}},
		/* links */
		{"{" REQUIRED ", \"interconnect\": \"nvlink\"}", "",
			{.from = 2, .n = 1, .grant = true}},
		{"{" REQUIRED ", \"interconnect\": \"nvlink\"}", "interconnect",
			{.from = 2, .n = 2, .grant = true}},
		{"{" REQUIRED ", \"interconnect\": \"nvlink\"}", "",
			{.from = 2, .n = 2, .grant = true, .nvswitch = true}},
		{"{" REQUIRED ", \"interconnect\": \"nvlink\"}", "interconnect",
			{.from = 0, .n = 2, .grant = true, .nvswitch = true}},
		{"{" REQUIRED ", \"interconnect\": \"rdma\"}", "interconnect",
			{.from = 2, .n = 2, .grant = true}},
		{"{" REQUIRED ", \"interconnect\": \"rdma\"}", "",
			{.from = 2, .n = 2, .grant = true, .rdma = true}},
		/* one that is good enough, where two are wanted */
		{"{" REQUIRED ", \"count\": {\"min\": 2}, \"vramGiB\": {\"min\": 24}}", "count.min",
			{.from = 1, .n = 1}},
		/* all at once */
		{"{" REQUIRED ", \"count\": {\"min\": 2}, \"vramGiB\": {\"min\": 80}, "
		 "\"computeCapability\": {\"min\": \"9.0\"}, \"driver\": {\"min\": \"590\"}, "
		 "\"cuda\": {\"min\": \"13.1\"}, \"brands\": [\"tesla\"], \"fresh\": 1}",
			"vramGiB.min,computeCapability.min,driver.min,cuda.min,brands,count.min",
			{.from = 0, .n = 1, .grant = true}},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct gpu_verdict v;
		struct err e = {0};

		if (judge(&v, cases[k].label, NULL, 0, &cases[k].x, &e) < 0)
			fail_msg("%s: %s", cases[k].label, e.text);

		auto_free char *unmet = unmet_of(&v);

		if (!str_eq(unmet, cases[k].unmet))
			fail_msg("%zu: %s: unmet '%s', expected '%s'", k, cases[k].label, unmet,
				cases[k].unmet);
		gpu_verdict_fini(&v);
	}
}

TEST(an_optional_gpu_that_would_not_do_is_done_without)
{
	static const struct {
		const char *label;
		struct given x;
		bool without;
		const char *first; /* line that is spared; NULL: none */
	} cases[] = {
		{"{\"mode\": \"optional\"}", {0}, true, NULL},
		{"{\"mode\": \"optional\"}", {.from = 0, .n = 1}, false, NULL},
		{"{\"mode\": \"optional\", \"brands\": [\"geforce\"]}", {.from = 2, .n = 2}, true,
			"brands"},
		{"{\"mode\": \"optional\", \"vramGiB\": {\"min\": 24}}", {.from = 0, .n = 2}, false,
			NULL}, /* one does */
		{"{\"mode\": \"optional\", \"count\": {\"min\": 2}}", {.from = 2, .n = 1}, true,
			"count.min"},
		{"{\"mode\": \"optional\", \"count\": {\"min\": 2}}", {.from = 2, .n = 2}, false,
			NULL},
		{"{\"mode\": \"optional\", \"vramGiB\": {\"min\": 900, \"per\": \"total\"}}",
			{.from = 2, .n = 2}, true, "vramGiB.min"},
		/* a GPU for each line, and none for both */
		{"{\"mode\": \"optional\", \"computeCapability\": {\"max\": \"8.6\"}, "
		 "\"vramGiB\": {\"min\": 80}}",
			{.from = 1, .n = 2}, true, NULL},
		{"{" REQUIRED "}", {.from = 0, .n = 1}, false, NULL},
		{"{\"mode\": \"none\"}", {0}, false, NULL},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		const char *first = NULL;
		struct gpu_verdict v;
		struct err e = {0};

		assert_int_equal(judge(&v, cases[k].label, NULL, 0, &cases[k].x, &e), 0);
		for (size_t i = 0; i < v.n; i++)
			if (!first && !v.v[i].met)
				first = v.v[i].what;

		auto_json json_t *o = gpu_verdict_json(&v);

		if (v.unmet || v.without != cases[k].without ||
			!str_eq(first ? first : "", cases[k].first ? cases[k].first : ""))
			fail_msg("%zu: %zu unmet, %d, %s", k, v.unmet, (int)v.without, first);
		assert_true(json_is_true(json_object_get(o, "fits")));
		assert_int_equal(json_is_true(json_object_get(o, "withoutGpu")), cases[k].without);
		gpu_verdict_fini(&v);
	}
}

TEST(a_label_that_is_malformed_is_refused_by_its_member)
{
	static const struct {
		const char *label, *error;
	} cases[] = {
		{"[]", "run.svrun.gpu: expected an object"},
		{"{\"mode\": \"always\"}", "mode: expected none, optional, required"},
		{"{\"mode\": 1}", "mode: expected"},
		{"{\"count\": 2}", "count: expected an object"},
		{"{\"count\": {\"min\": -1}}", "count.min: expected a number"},
		{"{\"count\": {\"min\": 1e3}}", "count.min: expected a number"},
		{"{\"count\": {\"min\": 99999}}", "count.min: expected a number"},
		{"{\"count\": {\"default\": \"2\"}}", "count.default: expected a number"},
		{"{\"vramGiB\": {\"min\": 9223372036854775807}}", "vramGiB.min: expected a number"},
		{"{\"vramGiB\": {\"per\": \"card\"}}", "vramGiB.per: expected gpu, total"},
		{"{\"computeCapability\": {\"min\": \"8.x\"}}", "computeCapability.min: expected"},
		{"{\"computeCapability\": {\"max\": 9}}", "computeCapability.max: expected"},
		{"{\"cuda\": {\"min\": \"\"}}", "cuda.min: expected a version"},
		{"{\"driver\": {\"min\": \"..\"}}", "driver.min: expected a version"},
		{"{\"archs\": \"8.0\"}", "archs: expected a list"},
		{"{\"archs\": [\"8.0+SASS\"]}", "archs: expected a list"},
		{"{\"archs\": [8.0]}", "archs: expected a list"},
		{"{\"brands\": [\"a b\"]}", "brands: expected a list"},
		{"{\"brands\": [\"\"]}", "brands: expected a list"},
		{"{\"forwardCompat\": \"yes\"}", "forwardCompat: expected true or false"},
		{"{\"mig\": true}", "mig: expected allowed, denied"},
		{"{\"interconnect\": \"pcie\"}", "interconnect: expected none, nvlink, rdma"},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct gpu_verdict v;
		struct err e = {0};

		if (judge(&v, cases[k].label, NULL, 0, &(struct given){.from = 0, .n = 1}, &e) ==
				0 ||
			e.kind != ERR_CORRUPT || !strstr(e.text, cases[k].error))
			fail_msg("%s: %s", cases[k].label, e.text);
	}
}

/* ---- the environment ---- */

TEST(variables_of_an_image_are_requirements_of_each_gpu)
{
	static const struct {
		const char *env[4];
		const char *unmet;
		struct given x;
	} cases[] = {
		{{"NVIDIA_REQUIRE_CUDA=cuda>=13.0"}, "", {.from = 1, .n = 1, .grant = true}},
		{{"NVIDIA_REQUIRE_CUDA=cuda>=13.1"}, "NVIDIA_REQUIRE_CUDA",
			{.from = 1, .n = 1, .grant = true}},
		{{"NVIDIA_REQUIRE_CUDA=cuda>=13.1"}, "", {.from = 0, .n = 0, .grant = true}},
		{{"NVIDIA_REQUIRE_CUDA=cuda>=13.1", "NVIDIA_REQUIRE_CUDA=cuda>=12"}, "",
			{.from = 1, .n = 1, .grant = true}},
		{{"NVIDIA_REQUIRE_CUDA=cuda>=13.1", "NVIDIA_DISABLE_REQUIRE=true"}, "",
			{.from = 1, .n = 1, .grant = true}},
		{{"NVIDIA_REQUIRE_CUDA=cuda>=13.1", "NVIDIA_DISABLE_REQUIRE=1"}, "",
			{.from = 1, .n = 1, .grant = true}},
		{{"NVIDIA_REQUIRE_CUDA=cuda>=13.1", "NVIDIA_DISABLE_REQUIRE=yes"},
			"NVIDIA_REQUIRE_CUDA", {.from = 1, .n = 1, .grant = true}},
		{{"NVIDIA_REQUIRE_JETPACK=csv-mounts=all", "NVIDIA_REQUIRE_JETPACK_HOST_MOUNTS=x"},
			"", {.from = 1, .n = 1, .grant = true}},
		{{"NVIDIA_REQUIRE_ARCH=arch>=9.0", "NVIDIA_REQUIRE_CUDA=cuda>=12"},
			"NVIDIA_REQUIRE_ARCH",
			{.from = 1, .n = 2, .grant = true}}, /* the first is older */
		{{"NVIDIA_REQUIRE_ARCH=arch>=9.0", "NVIDIA_REQUIRE_CUDA=cuda>=12"}, "",
			{.from = 2, .n = 2, .grant = true}},
		{{"NVIDIA_REQUIRE_CUDA="}, "", {.from = 1, .n = 1, .grant = true}},
		/* before the variable: the version is the requirement */
		{{"CUDA_VERSION=13.1.0"}, "CUDA_VERSION", {.from = 1, .n = 1, .grant = true}},
		{{"CUDA_VERSION=13.0.48"}, "", {.from = 1, .n = 1, .grant = true}},
		{{"CUDA_VERSION=13"}, "", {.from = 1, .n = 1, .grant = true}},
		{{"CUDA_VERSION=99.0", "NVIDIA_REQUIRE_CUDA=cuda>=9.0"}, "",
			{.from = 1, .n = 1, .grant = true}},
		{{"CUDA_VERSION=99.0", "NVIDIA_DISABLE_REQUIRE=true"}, "",
			{.from = 1, .n = 1, .grant = true}},
		/* what the whole host has: an image that asks for GPUs wants one */
		{{"NVIDIA_REQUIRE_CUDA=cuda>=13.0", "NVIDIA_VISIBLE_DEVICES=all"},
			"NVIDIA_REQUIRE_CUDA", {0}},
		{{"NVIDIA_REQUIRE_CUDA=cuda>=13.0"}, "", {0}},
		{{"CUDA_VERSION=10.0"}, "CUDA_VERSION", {0}},
		{{"NVIDIA_REQUIRE_ARCH=arch>=9.0", "NVIDIA_VISIBLE_DEVICES=all"}, "",
			{.from = 0, .n = 4}},
		{{"NVIDIA_REQUIRE_CUDA=cuda>=1.0"}, "NVIDIA_REQUIRE_CUDA",
			{.from = 6, .n = 1, .grant = true}},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct gpu_verdict v;
		struct err e = {0};
		size_t n = 0;

		while (n < 4 && cases[k].env[n])
			n++;
		if (judge(&v, NULL, cases[k].env, n, &cases[k].x, &e) < 0)
			fail_msg("%s: %s", cases[k].env[0], e.text);

		auto_free char *unmet = unmet_of(&v);

		if (!str_eq(unmet, cases[k].unmet))
			fail_msg("%zu: %s: unmet '%s', expected '%s'", k, cases[k].env[0], unmet,
				cases[k].unmet);
		assert_false(v.required);
		gpu_verdict_fini(&v);
	}
}

TEST(malformed_variables_are_refused_by_name_on_any_host)
{
	static const struct {
		const char *env, *error;
	} cases[] = {
		{"NVIDIA_REQUIRE_CUDA=cuda", "NVIDIA_REQUIRE_CUDA: 'cuda' is no requirement"},
		{"NVIDIA_REQUIRE_X=cuda>=12 brand<1", "NVIDIA_REQUIRE_X: brand is only compared"},
		{"CUDA_VERSION=latest", "CUDA_VERSION: 'latest' is no version"},
		{"CUDA_VERSION=12.", "CUDA_VERSION: '12.' is no version"},
		{"CUDA_VERSION=123456789.1", "CUDA_VERSION: "},
		{"NVIDIA_REQUIRE_\033[2J=x", "NVIDIA_REQUIRE_?[2J: "},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct gpu_verdict v;
		struct err e = {0};

		if (judge(&v, NULL, &cases[k].env, 1, &(struct given){.n = 0}, &e) == 0 ||
			e.kind != ERR_CORRUPT || !strstr(e.text, cases[k].error))
			fail_msg("%s: %s", cases[k].env, e.text);
	}
}

/* ---- the verdict ---- */

TEST(an_error_lists_all_that_is_not_met_with_found_and_needed)
{
	struct gpu_verdict v;
	struct err e = {0};

	assert_int_equal(judge(&v,
				 "{" REQUIRED ", \"count\": {\"min\": 2, \"default\": 4}, "
				 "\"vramGiB\": {\"min\": 24}, \"cuda\": {\"min\": \"12.0\"}}",
				 NULL, 0, &(struct given){.from = 0, .n = 1, .grant = true}, &e),
		0);
	assert_true(v.required);
	assert_int_equal(v.count, 4);
	assert_int_equal(v.unmet, 2);
	assert_int_equal(gpu_verdict_check(&v, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_non_null(strstr(e.text,
		"vramGiB.min: needs 24 GiB on each GPU, found 14.9 GiB (GPU 0, NVIDIA A2)"));
	assert_non_null(strstr(e.text, "count.min: needs 2 GPUs, found 1 GPU"));
	assert_null(strstr(e.text, "cuda"));

	auto_json json_t *o = gpu_verdict_json(&v);
	const json_t *needs = json_object_get(o, "needs");

	assert_true(json_is_false(json_object_get(o, "fits")));
	assert_int_equal(json_array_size(needs), 3);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(needs, 1), "what")), "cuda.min");
	assert_true(json_is_true(json_object_get(json_array_get(needs, 1), "met")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(needs, 1), "found")),
		"CUDA 13.0 of driver 580.95.05");
	gpu_verdict_fini(&v);
}

TEST(a_verdict_is_json_whatever_bytes_the_image_has)
{
	static const char *const env[] = {"NVIDIA_REQUIRE_\xff\xfe=l4t>=\xc3\x28"};
	struct gpu_verdict v;
	struct err e = {0};

	assert_int_equal(
		judge(&v, NULL, env, 1, &(struct given){.from = 0, .n = 1, .grant = true}, &e), 0);

	auto_json json_t *o = gpu_verdict_json(&v);

	assert_non_null(o);
	assert_int_equal(json_array_size(json_object_get(o, "needs")), 1);
	gpu_verdict_fini(&v);
}

RUN_TESTS(cmocka_unit_test(requirements_are_alternatives_of_predicates),
	cmocka_unit_test(a_value_without_end_is_refused),
	cmocka_unit_test(the_variable_of_real_images_is_understood),
	cmocka_unit_test(every_line_of_a_label_is_checked),
	cmocka_unit_test(an_optional_gpu_that_would_not_do_is_done_without),
	cmocka_unit_test(a_label_that_is_malformed_is_refused_by_its_member),
	cmocka_unit_test(variables_of_an_image_are_requirements_of_each_gpu),
	cmocka_unit_test(malformed_variables_are_refused_by_name_on_any_host),
	cmocka_unit_test(an_error_lists_all_that_is_not_met_with_found_and_needed),
	cmocka_unit_test(a_verdict_is_json_whatever_bytes_the_image_has))
