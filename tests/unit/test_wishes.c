#include "tests/unit/test.h"

#include <stdlib.h>

#include "base/str.h"
#include "gpu/request.h"
#include "gpu/view.h"

static int read_env(struct gpu_wishes *w, const char *words, struct err *e)
{
	auto_free char *copy = mem_strdup(words);
	const char *v[16];
	struct strings env = {v, 0};
	char *save = NULL;

	for (char *s = strtok_r(copy, "|", &save); s; s = strtok_r(NULL, "|", &save))
		v[env.n++] = s;
	return gpu_wishes_read(w, &env, e);
}

TEST(visible_devices_mean_what_the_toolkit_takes_them_for)
{
	static const struct {
		const char *env;
		bool nothing, none;
		size_t n; /* names; 0 with neither: all */
	} cases[] = {
		{"A=1", true, false, 0},
		{"NVIDIA_VISIBLE_DEVICES=", true, false, 0},
		{"NVIDIA_VISIBLE_DEVICES=void", true, false, 0},
		{"NVIDIA_VISIBLE_DEVICES=0,void", true, false, 0},
		{"NVIDIA_VISIBLE_DEVICES=none", false, true, 0},
		{"NVIDIA_VISIBLE_DEVICES=all", false, false, 0},
		{"NVIDIA_VISIBLE_DEVICES=0,all", false, false, 0},
		{"NVIDIA_VISIBLE_DEVICES=0,1", false, false, 2},
		{"NVIDIA_VISIBLE_DEVICES= 0 , ,1,", false, false, 2},
		{"NVIDIA_VISIBLE_DEVICES=all|NVIDIA_VISIBLE_DEVICES=void", true, false, 0},
		/* images from before the variable */
		{"CUDA_VERSION=9.0.176", false, false, 0},
		{"CUDA_VERSION=9.0.176|NVIDIA_REQUIRE_CUDA=cuda>=9.0", true, false, 0},
		{"CUDA_VERSION=9.0.176|NVIDIA_REQUIRE_CUDA=", false, false, 0},
		{"CUDA_VERSION=|A=1", true, false, 0},
		{"CUDA_VERSION=9.0.176|NVIDIA_VISIBLE_DEVICES=", true, false, 0},
		{"XNVIDIA_VISIBLE_DEVICES=all", true, false, 0},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct gpu_wishes w;
		struct err e = {0};

		if (read_env(&w, cases[k].env, &e) < 0)
			fail_msg("%s: %s", cases[k].env, e.text);
		if (w.nothing != cases[k].nothing || w.none != cases[k].none ||
			w.visible.n != cases[k].n)
			fail_msg("%s: nothing %d, none %d, %zu", cases[k].env, w.nothing, w.none,
				w.visible.n);
		gpu_wishes_fini(&w);
	}
}

TEST(capabilities_default_to_what_the_toolkit_gives)
{
	static const struct {
		const char *env;
		unsigned caps;
	} cases[] = {
		{"A=1", GPU_CAP_UTILITY | GPU_CAP_COMPUTE},
		{"NVIDIA_DRIVER_CAPABILITIES=", GPU_CAP_UTILITY | GPU_CAP_COMPUTE},
		{"NVIDIA_DRIVER_CAPABILITIES=compute", GPU_CAP_COMPUTE},
		{"NVIDIA_DRIVER_CAPABILITIES=all", GPU_CAP_ALL},
		{"CUDA_VERSION=9.0", GPU_CAP_ALL},
		{"CUDA_VERSION=9.0|NVIDIA_DRIVER_CAPABILITIES=utility", GPU_CAP_UTILITY},
		{"CUDA_VERSION=9.0|NVIDIA_REQUIRE_CUDA=cuda>=9.0",
			GPU_CAP_UTILITY | GPU_CAP_COMPUTE},
	};
	struct gpu_wishes w;
	struct err e = {0};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		if (read_env(&w, cases[k].env, &e) < 0)
			fail_msg("%s: %s", cases[k].env, e.text);
		if (w.caps != cases[k].caps)
			fail_msg("%s: %x", cases[k].env, w.caps);
		gpu_wishes_fini(&w);
	}
	assert_int_equal(read_env(&w, "NVIDIA_DRIVER_CAPABILITIES=compute,root", &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_non_null(strstr(e.text, "NVIDIA_DRIVER_CAPABILITIES: "));
	assert_non_null(strstr(e.text, "root"));
}

TEST(other_devices_are_asked_for_by_one_word)
{
	struct gpu_wishes w;

	assert_int_equal(read_env(&w,
				 "NVIDIA_GDS=enabled|NVIDIA_MOFED=1|NVIDIA_GDRCOPY=enabled|"
				 "NVIDIA_MIG_CONFIG_DEVICES=all|NVIDIA_MIG_MONITOR_DEVICES=|"
				 "NVIDIA_IMEX_CHANNELS=0,7",
				 NULL),
		0);
	assert_true(w.gds);
	assert_true(w.gdrcopy);
	assert_false(w.mofed);
	assert_false(w.nvswitch);
	assert_true(w.mig_config);
	assert_false(w.mig_monitor);
	assert_int_equal(w.imex.n, 2);
	assert_string_equal(w.imex.v[1], "7");
	gpu_wishes_fini(&w);
}

/* ---- narrowing ---- */

static struct gpu_mig migs[] = {{.gi = 1, .ci = 0, .index = 0}, {.gi = 2, .ci = 0, .index = 1}};
static struct gpu_device devices[] = {
	{.index = 0, .bus = "0000:01:00.0", .uuid = "GPU-5a000000-0123-4567-89ab-0123456789ab"},
	{.index = 1, .bus = "0000:02:00.0", .uuid = "GPU-5a000001-0123-4567-89ab-0123456789ab"},
	{.index = 2,
		.bus = "0000:03:00.0",
		.uuid = "GPU-99000001-0123-4567-89ab-0123456789ab",
		.migs = migs,
		.nmigs = 2},
};
static const struct gpu_inventory host = {.v = devices, .n = 3};

static int narrow(const char *env, const struct gpu_grant *given, size_t n, struct gpu_grants *g,
	struct err *e)
{
	struct gpu_wishes w;
	int rc;

	*g = (struct gpu_grants){mem_dup(given, n * sizeof(*given) + 1), n};
	assert_int_equal(read_env(&w, env, e), 0);
	rc = gpu_wishes_narrow(&w, &host, g, e);
	gpu_wishes_fini(&w);
	return rc;
}

TEST(an_image_narrows_what_was_given_and_never_widens_it)
{
	const struct gpu_grant both[] = {{&devices[0], NULL}, {&devices[1], NULL}, {NULL, NULL}},
			       whole[] = {{&devices[2], NULL}, {NULL, NULL}},
			       part[] = {{&devices[2], &migs[1]}, {NULL, NULL}};
	const struct {
		const char *env;
		const struct gpu_grant *given;
		size_t n, want;
		const struct gpu_device *device;
		const struct gpu_mig *mig;
	} cases[] = {
		{"A=1", both, 2, 2, &devices[0], NULL},
		{"NVIDIA_VISIBLE_DEVICES=all", both, 2, 2, &devices[0], NULL},
		{"NVIDIA_VISIBLE_DEVICES=void", both, 2, 2, &devices[0], NULL},
		{"NVIDIA_VISIBLE_DEVICES=none", both, 2, 0, NULL, NULL},
		{"NVIDIA_VISIBLE_DEVICES=1", both, 2, 1, &devices[1], NULL},
		{"NVIDIA_VISIBLE_DEVICES=1,1,GPU-5a000001", both, 2, 1, &devices[1], NULL},
		{"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=1", both, 2, 1, &devices[1], NULL},
		{"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=all", both, 2, 2, &devices[0], NULL},
		{"NVIDIA_VISIBLE_DEVICES=2:1", whole, 1, 1, &devices[2], &migs[1]},
		{"NVIDIA_VISIBLE_DEVICES=2:1", part, 1, 1, &devices[2], &migs[1]},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct gpu_grants g;
		struct err e = {0};

		if (narrow(cases[k].env, cases[k].given, cases[k].n, &g, &e) < 0)
			fail_msg("%s: %s", cases[k].env, e.text);
		if (g.n != cases[k].want ||
			(g.n && (g.v[0].device != cases[k].device || g.v[0].mig != cases[k].mig)))
			fail_msg("%s: %zu", cases[k].env, g.n);
		free(g.v);
	}
}

TEST(gpus_that_were_not_given_are_refused_by_name)
{
	const struct gpu_grant one[] = {{&devices[0], NULL}, {NULL, NULL}},
			       part[] = {{&devices[2], &migs[1]}, {NULL, NULL}};
	const struct {
		const char *env;
		const struct gpu_grant *given;
		const char *names;
	} cases[] = {
		{"NVIDIA_VISIBLE_DEVICES=1", one, ": 1"},
		{"NVIDIA_VISIBLE_DEVICES=0,1,GPU-77", one, ": 1, GPU-77"},
		{"NVIDIA_VISIBLE_DEVICES=GPU-5a", one, ": GPU-5a"}, /* fits two: which? */
		{"NVIDIA_VISIBLE_DEVICES=2", part, ": 2"},
		{"NVIDIA_VISIBLE_DEVICES=2:0", part, ": 2:0"},
		{"NVIDIA_VISIBLE_DEVICES=amd.com/gpu=0", one, ": amd.com/gpu=0"},
		{"NVIDIA_VISIBLE_DEVICES=../../0", one, ": ../../0"},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct gpu_grants g;
		struct err e = {0};

		assert_int_equal(narrow(cases[k].env, cases[k].given, 1, &g, &e), -1);
		if (e.kind != ERR_DENIED || !strstr(e.text, cases[k].names))
			fail_msg("%s: %s", cases[k].env, e.text);
		assert_int_equal(g.n, 1);
		free(g.v);
	}
}

TEST(gpus_of_other_makers_are_not_what_the_variable_is_about)
{
	static struct gpu_device mixed[] = {
		{.index = 0,
			.bus = "0000:01:00.0",
			.uuid = "GPU-5a000000-0123-4567-89ab-0123456789ab"},
		{.maker = GPU_MAKER_AMD, .index = 0, .bus = "0000:0c:00.0"},
	};
	const struct gpu_inventory both = {.v = mixed, .n = 2};
	static const struct {
		const char *env;
		size_t n;
	} cases[] = {{"NVIDIA_VISIBLE_DEVICES=0", 2}, {"NVIDIA_VISIBLE_DEVICES=none", 1},
		{"NVIDIA_VISIBLE_DEVICES=all", 2}};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct gpu_grants g = {mem_array(2, sizeof(*g.v)), 2};
		struct gpu_wishes w;

		g.v[0].device = &mixed[0];
		g.v[1].device = &mixed[1];
		assert_int_equal(read_env(&w, cases[k].env, NULL), 0);
		assert_int_equal(gpu_wishes_narrow(&w, &both, &g, NULL), 0);
		assert_int_equal(g.n, cases[k].n);
		assert_ptr_equal(g.v[g.n - 1].device, &mixed[1]);
		gpu_wishes_fini(&w);
		free(g.v);
	}
}

RUN_TESTS(cmocka_unit_test(visible_devices_mean_what_the_toolkit_takes_them_for),
	cmocka_unit_test(capabilities_default_to_what_the_toolkit_gives),
	cmocka_unit_test(other_devices_are_asked_for_by_one_word),
	cmocka_unit_test(an_image_narrows_what_was_given_and_never_widens_it),
	cmocka_unit_test(gpus_that_were_not_given_are_refused_by_name),
	cmocka_unit_test(gpus_of_other_makers_are_not_what_the_variable_is_about))
