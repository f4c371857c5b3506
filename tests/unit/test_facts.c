#include "tests/unit/test.h"

#include "gpu/facts.h"
#include "gpu/models.h"
#include "tests/unit/gpu-host.h"

TEST(a_model_is_known_by_the_name_that_the_driver_prints)
{
	assert_int_equal(gpu_model_find("NVIDIA H200")->vram_mib, 143771);
	assert_int_equal(gpu_model_find("NVIDIA H200")->cc, 90);
	assert_true(gpu_model_find("NVIDIA H200")->datacenter);
	assert_int_equal(gpu_model_find("NVIDIA GeForce RTX 4090")->cc, 89);
	assert_string_equal(gpu_model_find("GeForce RTX 4090")->brand, "geforce");
	assert_false(gpu_model_find("NVIDIA GeForce RTX 4090")->datacenter);
	assert_string_equal(gpu_model_find("Tesla T4")->brand, "tesla");
	assert_null(gpu_model_find("NVIDIA H2000"));
	assert_null(gpu_model_find("NVIDIA "));
	assert_null(gpu_model_find(""));
}

TEST(a_driver_serves_the_cuda_of_its_branch)
{
	static const struct {
		const char *driver, *cuda;
		bool at_least;
	} cases[] = {
		{"580.95.05", "13.0", false},
		{"535.129.03", "12.2", false},
		{"470.82.01", "11.4", false},
		{"550.54.15", "12.4", false},
		{"340.108", NULL, false},
		{"999.88.77", "13.2", true},
		{NULL, NULL, false},
		{"", NULL, false},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct gpu_probe none = {0};
		bool at_least;
		const char *cuda = gpu_driver_cuda(cases[k].driver, &none, &at_least);

		if (cases[k].cuda)
			assert_string_equal(cuda, cases[k].cuda);
		else
			assert_null(cuda);
		assert_int_equal(at_least, cases[k].at_least);
	}
}

static const char probe[] =
	"{\"schema\": \"svrun.gpu-probe/1\", \"driver\": \"580.95.05\", \"boot\": \"b-1\","
	" \"cuda\": \"13.7\", \"devices\": [], \"gpus\": ["
	"{\"uuid\": \"" GPU_TEST_UUID(
		0) "\", \"mig\": false, \"memory\": 8589934592, \"cc\": 121},"
		   "{\"uuid\": \"MIG-1\", \"mig\": true, \"parent\": \"" GPU_TEST_UUID(
			   1) "\","
			      " \"memory\": 5368709120, \"cc\": 80}]}\n";

static void load(struct gpu_test_host *t, struct gpu_inventory *i, struct gpu_probe *p)
{
	struct err e = {0};

	gpu_test_driver(t);
	gpu_test_put(t, "proc/sys/kernel/random/boot_id", "b-1\n");
	gpu_test_gpu(t, NULL, "0000:01:00.0", 0, "NVIDIA Unheard-of", GPU_TEST_UUID(0), "No");
	gpu_test_gpu(t, NULL, "0000:02:00.0", 1, "NVIDIA A100-SXM4-40GB", GPU_TEST_UUID(1), "No");
	gpu_test_put(
		t, "proc/driver/nvidia/capabilities/gpu1/mig/gi1/access", "DeviceFileMinor: 147\n");
	gpu_test_put(t, "proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access",
		"DeviceFileMinor: 148\n");
	assert_int_equal(gpu_inventory_read(i, &t->h, &e), 0);
	if (gpu_probe_load(p, &t->h, i, &e) < 0)
		fail_msg("%s", e.text);
}

TEST(a_probe_of_this_boot_and_driver_knows_better)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	struct gpu_probe p;
	struct gpu_facts f;
	bool at_least;

	gpu_test_put(t, "run/svrun/gpu/probe.json", probe);
	load(t, &i, &p);
	assert_non_null(p.doc);
	gpu_facts_of(&i.v[0], NULL, &p, &f);
	assert_int_equal(f.vram_mib, 8192);
	assert_int_equal(f.cc, 121);
	assert_string_equal(f.source, "probe");
	gpu_facts_of(&i.v[1], NULL, &p, &f);
	assert_int_equal(f.vram_mib, 40960);
	assert_string_equal(f.source, "model");
	/* a part of it: only the driver knows how much */
	gpu_facts_of(&i.v[1], &i.v[1].migs[0], &p, &f);
	assert_int_equal(f.vram_mib, 0);
	assert_int_equal(f.cc, 80);
	gpu_probe_name_migs(&i, &p);
	assert_string_equal(i.v[1].migs[0].uuid, "MIG-1");
	gpu_facts_of(&i.v[1], &i.v[1].migs[0], &p, &f);
	assert_int_equal(f.vram_mib, 5120);
	assert_string_equal(gpu_driver_cuda(i.driver, &p, &at_least), "13.7");
	assert_false(at_least);
	gpu_probe_free(&p);
	gpu_inventory_fini(&i);
}

TEST(a_probe_of_another_boot_or_driver_counts_as_none)
{
	static const char *const texts[] = {"", "{", "[]", "{\"boot\": \"b-1\"}",
		"{\"boot\": \"b-2\", \"driver\": \"580.95.05\", \"gpus\": []}",
		"{\"boot\": \"b-1\", \"driver\": \"570.1\", \"gpus\": []}",
		"{\"boot\": \"b-1\", \"driver\": \"580.95.05\", \"gpus\": 7}",
		"{\"boot\": 1, \"driver\": null, \"gpus\": []}"};

	for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
		struct gpu_test_host *t = *state;
		struct gpu_inventory i;
		struct gpu_probe p;
		struct gpu_facts f;

		gpu_test_put(t, "run/svrun/gpu/probe.json", texts[k]);
		load(t, &i, &p);
		assert_null(p.doc);
		gpu_facts_of(&i.v[0], NULL, &p, &f);
		assert_int_equal(f.vram_mib, 0);
		gpu_probe_free(&p);
		gpu_inventory_fini(&i);
	}
}

TEST(members_of_a_wrong_type_tell_nothing)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	struct gpu_probe p;
	struct gpu_facts f;

	gpu_test_put(t, "run/svrun/gpu/probe.json",
		"{\"boot\": \"b-1\", \"driver\": \"580.95.05\", \"cuda\": 13, \"gpus\": [1, null, "
		"{\"uuid\": 7, \"mig\": false}, {\"uuid\": \"" GPU_TEST_UUID(
			0) "\", \"mig\": false, \"memory\": -1, \"cc\": \"90\"}]}");
	load(t, &i, &p);
	gpu_facts_of(&i.v[0], NULL, &p, &f);
	assert_int_equal(f.vram_mib, 0);
	assert_int_equal(f.cc, 0);
	gpu_probe_free(&p);
	gpu_inventory_fini(&i);
}

RUN_TESTS(cmocka_unit_test(a_model_is_known_by_the_name_that_the_driver_prints),
	cmocka_unit_test(a_driver_serves_the_cuda_of_its_branch),
	GPU_CASE(a_probe_of_this_boot_and_driver_knows_better),
	GPU_CASE(a_probe_of_another_boot_or_driver_counts_as_none),
	GPU_CASE(members_of_a_wrong_type_tell_nothing))
