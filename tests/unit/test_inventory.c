#include "tests/unit/test.h"

#include "base/str.h"
#include "gpu/inventory.h"
#include "tests/unit/gpu-host.h"

static struct gpu_inventory read_all(struct gpu_test_host *t)
{
	struct gpu_inventory i;
	struct err e = {0};

	if (gpu_inventory_read(&i, &t->h, &e) < 0)
		fail_msg("%s", e.text);
	return i;
}

static void expect_corrupt(struct gpu_test_host *t, const char *text)
{
	struct gpu_inventory i;
	struct err e = {0};

	assert_int_equal(gpu_inventory_read(&i, &t->h, &e), -1);
	if (e.kind != ERR_CORRUPT || !strstr(e.text, text))
		fail_msg("expected '%s', got '%s'", text, e.text);
}

TEST(a_host_without_gpus_is_an_empty_inventory)
{
	struct gpu_inventory i = read_all(*state);

	assert_int_equal(i.n, 0);
	assert_null(i.driver);
	assert_int_equal(i.ctl.n, 0);
	assert_int_equal(i.uvm.n, 0);
	gpu_inventory_fini(&i);
}

TEST(indexes_follow_the_bus_and_nodes_the_minor)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;

	gpu_test_driver(t);
	gpu_test_gpu(t, NULL, "0000:c3:00.0", 0, "NVIDIA L4", GPU_TEST_UUID(2), "No");
	gpu_test_gpu(t, NULL, "0000:01:00.0", 2, "NVIDIA L4", GPU_TEST_UUID(0), "No");
	gpu_test_gpu(t, "00000002:00:00.0", "0002:00:00.0", 1, "NVIDIA L4", GPU_TEST_UUID(1), "No");
	gpu_test_gpu(t, NULL, "10001:00:00.0", 7, "NVIDIA L4", GPU_TEST_UUID(3), "No");
	i = read_all(t);
	assert_int_equal(i.n, 4);
	assert_string_equal(i.driver, "580.95.05");
	assert_true(i.open_modules);
	assert_string_equal(i.v[0].bus, "0000:01:00.0");
	assert_string_equal(i.v[0].nodes.v[0].path, "/dev/nvidia2");
	assert_int_equal(i.v[0].nodes.v[0].minor, 2);
	assert_int_equal(i.v[0].nodes.v[0].major, 195);
	assert_string_equal(i.v[1].bus, "0000:c3:00.0");
	assert_int_equal(i.v[1].index, 1);
	assert_int_equal(i.v[1].minor, 0);
	assert_string_equal(i.v[2].bus, "0002:00:00.0");
	assert_string_equal(i.v[3].bus, "10001:00:00.0");
	assert_int_equal(i.v[3].index, 3);
	assert_int_equal(i.v[0].numa, -1);
	gpu_inventory_fini(&i);
}

TEST(an_excluded_gpu_is_there_and_has_no_index)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;

	gpu_test_driver(t);
	gpu_test_gpu(t, NULL, "0000:01:00.0", 0, "NVIDIA L4", GPU_TEST_UUID(0), "No");
	gpu_test_gpu(t, NULL, "0000:02:00.0", 1, "NVIDIA L4", GPU_TEST_UUID(1), "Yes");
	gpu_test_gpu(t, NULL, "0000:03:00.0", 2, "NVIDIA L4", GPU_TEST_UUID(2), "No");
	i = read_all(t);
	assert_int_equal(i.n, 3);
	assert_true(i.v[1].excluded);
	assert_true(i.v[1].index == GPU_NO_INDEX);
	assert_int_equal(i.v[2].index, 1);
	gpu_inventory_fini(&i);
}

TEST(what_is_not_of_one_gpu_has_the_majors_of_proc_devices)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;

	gpu_test_driver(t);
	gpu_test_put(t, "proc/driver/nvidia/params",
		"ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n");
	i = read_all(t);
	assert_int_equal(i.ctl.n, 1);
	assert_int_equal(i.ctl.v[0].minor, 255);
	assert_int_equal(i.ctl.v[0].mode, 0660);
	assert_int_equal(i.ctl.v[0].gid, 44);
	assert_false(i.ctl.v[0].exists);
	assert_int_equal(i.uvm.v[0].major, 510);
	assert_string_equal(i.uvm_tools.v[0].path, "/dev/nvidia-uvm-tools");
	assert_int_equal(i.uvm_tools.v[0].minor, 1);
	assert_int_equal(i.modeset.v[0].minor, 254);
	assert_int_equal(i.nvswitch.n, 0);
	assert_int_equal(i.imex.n, 0);
	assert_int_equal(i.mig_config.n, 0);
	gpu_inventory_fini(&i);
}

/* ---- MIG ---- */

#define CAPS "proc/driver/nvidia/capabilities/"

static void put_mig(struct gpu_test_host *t)
{
	gpu_test_driver(t);
	gpu_test_gpu(t, NULL, "0000:01:00.0", 1, "NVIDIA A100", GPU_TEST_UUID(0), "No");
	gpu_test_put(t, CAPS "gpu1/mig/gi10/access", "DeviceFileMinor: 228\nDeviceFileMode: 292\n");
	gpu_test_put(t, CAPS "gpu1/mig/gi10/ci0/access",
		"DeviceFileMinor: 229\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
	gpu_test_put(t, CAPS "gpu1/mig/gi2/access", "DeviceFileMinor: 156\nDeviceFileMode: 292\n");
	gpu_test_put(t, CAPS "gpu1/mig/gi2/ci1/access", "DeviceFileMinor: 158\n");
	gpu_test_put(t, CAPS "gpu1/mig/gi3/access", "DeviceFileMinor: 165\n"); /* no device in it */
	gpu_test_put(t, CAPS "gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");  /* no such GPU */
	gpu_test_put(t, CAPS "mig/config", "DeviceFileMinor: 1\nDeviceFileMode: 256\n");
}

TEST(mig_devices_have_exactly_their_two_capabilities)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	const struct gpu_device *d;

	put_mig(t);
	i = read_all(t);
	d = &i.v[0];
	assert_int_equal(d->nmigs, 2);
	assert_int_equal(d->migs[0].gi, 2);
	assert_int_equal(d->migs[0].ci, 1);
	assert_int_equal(d->migs[0].index, 0);
	assert_string_equal(d->migs[0].caps[0].path, "/dev/nvidia-caps/nvidia-cap156");
	assert_string_equal(d->migs[0].caps[1].path, "/dev/nvidia-caps/nvidia-cap158");
	assert_int_equal(d->migs[0].caps[1].major, 235);
	assert_int_equal(d->migs[0].caps[1].minor, 158);
	assert_int_equal(d->migs[0].caps[0].mode, 0444);
	assert_int_equal(d->migs[1].gi, 10); /* by number, not by name */
	assert_int_equal(d->migs[1].caps[1].minor, 229);
	assert_int_equal(i.mig_config.v[0].mode, 0400);
	gpu_inventory_fini(&i);
}

TEST(the_minor_of_a_capability_may_stand_in_the_table_alone)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;

	put_mig(t);
	gpu_test_put(t, CAPS "gpu1/mig/gi2/ci1/access", "DeviceFileModify: 1\n");
	expect_corrupt(t, "no DeviceFileMinor, and no gpu1/gi2/ci1/access");
	gpu_test_put(t, "proc/driver/nvidia-caps/mig-minors",
		"gpu0/gi2/ci1/access 23\ngpu1/gi2/ci1/access 777\n");
	i = read_all(t);
	assert_int_equal(i.v[0].migs[0].caps[1].minor, 777);
	gpu_inventory_fini(&i);
}

/* ---- what is broken ---- */

TEST(two_gpus_of_one_name_are_refused)
{
	struct gpu_test_host *t = *state;

	gpu_test_driver(t);
	gpu_test_gpu(t, NULL, "0000:01:00.0", 0, "NVIDIA L4", GPU_TEST_UUID(0), "No");
	gpu_test_gpu(t, NULL, "0000:02:00.0", 1, "NVIDIA L4", GPU_TEST_UUID(0), "No");
	expect_corrupt(t, "0000:01:00.0 and 0000:02:00.0 have the same UUID");
	gpu_test_gpu(t, NULL, "0000:02:00.0", 0, "NVIDIA L4", GPU_TEST_UUID(1), "No");
	expect_corrupt(t, "the same minor");
	gpu_test_gpu(t, NULL, "0000:02:00.0", 1, "NVIDIA L4", GPU_TEST_UUID(1), "No");
	gpu_test_gpu(t, "00000000:02:00.0", "0000:02:00.0", 2, "NVIDIA L4", GPU_TEST_UUID(2), "No");
	expect_corrupt(t, "the same bus location");
}

TEST(files_that_cannot_be_understood_are_named)
{
	static const struct {
		const char *path, *text, *error;
	} cases[] = {
		{"proc/driver/nvidia/version", "", "proc/driver/nvidia/version: no driver version"},
		{"proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: X\n",
			"0000:01:00.0/information: \"Bus Location\" is missing"},
		{"proc/driver/nvidia/gpus/0000:09:00.0/information",
			"Model: X\nBus Location: 0000:01:00.0\nDevice Minor: 0\n",
			"0000:09:00.0/information is of another GPU: 0000:01:00.0"},
		{"proc/driver/nvidia/params", "DeviceFileMode: rw\n",
			"DeviceFileMode is not a number"},
		{"proc/devices", "Character devices:\n0 nvidia-uvm\n", "the major of nvidia-uvm"},
		{CAPS "gpu0/mig/gi1/access", "DeviceFileMinor: 8192\n", "not a number up to 8191"},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		void *own = NULL;
		struct gpu_test_host *t;

		gpu_test_make(&own);
		t = own;
		gpu_test_driver(t);
		gpu_test_gpu(t, NULL, "0000:01:00.0", 0, "NVIDIA L4", GPU_TEST_UUID(0), "No");
		gpu_test_put(t, cases[k].path, cases[k].text);
		expect_corrupt(t, cases[k].error);
		gpu_test_drop(&own);
	}
	setenv("SVRUN_GPU_ROOT", ((struct gpu_test_host *)*state)->dir, 1);
}

TEST(files_without_end_are_not_read_to_their_end)
{
	struct gpu_test_host *t = *state;
	auto_free char *text = mem_alloc(2 << 20);

	memset(text, 'x', (2 << 20) - 1);
	gpu_test_driver(t);
	gpu_test_gpu(t, NULL, "0000:01:00.0", 0, "NVIDIA L4", GPU_TEST_UUID(0), "No");
	gpu_test_put(t, "proc/driver/nvidia/gpus/0000:01:00.0/information", text);
	expect_corrupt(t, "information");
	gpu_test_gpu(t, NULL, "0000:01:00.0", 0, "NVIDIA L4", GPU_TEST_UUID(0), "No");
	gpu_test_put(t, "proc/devices", text);
	expect_corrupt(t, "proc/devices");
}

TEST(a_pipe_or_a_folder_in_a_files_place_makes_nobody_wait)
{
	struct gpu_test_host *t = *state;
	auto_free char *pipe = gpu_test_path(t, "proc/driver/nvidia/version");

	assert_int_equal(mkfifo(pipe, 0666), 0);
	expect_corrupt(t, "is not a regular file");
	assert_int_equal(unlink(pipe), 0);
	assert_int_equal(mkdir(pipe, 0755), 0);
	expect_corrupt(t, "is not a regular file");
}

TEST(links_lead_nowhere_out_of_the_hosts_folders)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	struct err e = {0};

	gpu_test_link(t, "proc/devices", "../../../../../../../../proc/devices");
	assert_int_equal(gpu_inventory_read(&i, &t->h, &e), -1);
	assert_non_null(strstr(e.text, "proc/devices"));
}

TEST(more_entries_than_there_can_be_are_refused)
{
	struct gpu_test_host *t = *state;

	gpu_test_driver(t);
	for (unsigned k = 0; k < 600; k++) {
		char path[80];

		snprintf(path, sizeof(path), "proc/driver/nvidia/gpus/%04x:00:00.0/information", k);
		gpu_test_put(t, path, "");
	}
	expect_corrupt(t, "more than 496 entries");
}

/* ---- nodes ---- */

TEST(nodes_that_are_there_tell_their_mode_and_owner)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	struct err e = {0};

	if (geteuid() != 0)
		skip();
	gpu_test_driver(t);
	gpu_test_gpu(t, NULL, "0000:01:00.0", 0, "NVIDIA L4", GPU_TEST_UUID(0), "No");
	gpu_test_node(t, "dev/nvidia0", 195, 0, 0640);
	gpu_test_node(t, "dev/nvidiactl", 1, 3, 0666); /* something else */
	i = read_all(t);
	assert_true(i.v[0].nodes.v[0].exists);
	assert_int_equal(i.v[0].nodes.v[0].mode, 0640);
	assert_int_equal(gpu_node_check(&t->h, &i.v[0].nodes.v[0], &e), 0);
	assert_int_equal(gpu_node_check(&t->h, &i.uvm.v[0], &e), 0); /* is not there: can be made */
	assert_true(i.ctl.v[0].exists);
	assert_int_equal(i.ctl.v[0].mode, 0666);
	assert_int_equal(gpu_node_check(&t->h, &i.ctl.v[0], &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_non_null(strstr(e.text, "/dev/nvidiactl is not the character device 195:255"));
	gpu_inventory_fini(&i);
}

TEST(a_link_in_a_nodes_place_is_no_node)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	struct err e = {0};

	gpu_test_driver(t);
	gpu_test_link(t, "dev/nvidiactl", "/dev/null");
	i = read_all(t);
	assert_int_equal(gpu_node_check(&t->h, &i.ctl.v[0], &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	gpu_inventory_fini(&i);
}

TEST(numbered_nodes_are_those_of_their_driver)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;

	if (geteuid() != 0)
		skip();
	gpu_test_driver(t);
	gpu_test_put(t, "proc/devices",
		"Character devices:\n195 nvidia\n231 infiniband_verbs\n234 "
		"nvidia-caps-imex-channels\n237 nvidia-nvswitch\n508 nvidia-fs\n509 gdrdrv\n\n"
		"Block devices:\n");
	gpu_test_node(t, "dev/nvidia-fs0", 508, 0, 0666);
	gpu_test_node(t, "dev/nvidia-fs1", 8, 0, 0666); /* a disk by that name */
	gpu_test_node(t, "dev/nvidia-fs2x", 508, 2, 0666);
	gpu_test_node(t, "dev/nvidia-nvswitch0", 237, 0, 0666);
	gpu_test_node(t, "dev/infiniband/uverbs0", 231, 192, 0666);
	gpu_test_node(t, "dev/infiniband/uverbs1", 231, 193, 0666);
	gpu_test_node(t, "dev/infiniband/rdma_cm", 10, 58, 0666);
	i = read_all(t);
	assert_int_equal(i.gds.n, 1);
	assert_string_equal(i.gds.v[0].path, "/dev/nvidia-fs0");
	assert_int_equal(i.nvswitch.n, 2);
	assert_string_equal(i.nvswitch.v[0].path, "/dev/nvidia-nvswitchctl");
	assert_int_equal(i.nvswitch.v[0].minor, 255);
	assert_int_equal(i.infiniband.n, 3);
	assert_int_equal(i.infiniband.v[2].major, 10);
	assert_int_equal(i.gdrcopy.n, 1);
	assert_false(i.gdrcopy.v[0].exists);
	assert_int_equal(i.imex.n, 1); /* could be made */
	assert_false(i.imex.v[0].exists);
	gpu_inventory_fini(&i);
	gpu_test_node(t, "dev/nvidia-caps-imex-channels/channel7", 234, 7, 0666);
	i = read_all(t);
	assert_int_equal(i.imex.n, 1);
	assert_int_equal(i.imex.v[0].minor, 7);
	gpu_inventory_fini(&i);
}

TEST(dri_nodes_are_found_by_the_bus)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;

	gpu_test_driver(t);
	gpu_test_gpu(t, NULL, "0000:01:00.0", 0, "NVIDIA L4", GPU_TEST_UUID(0), "No");
	gpu_test_put(t, "sys/devices/pci0000:00/0000:01:00.0/numa_node", "1\n");
	gpu_test_put(t, "sys/devices/pci0000:00/0000:01:00.0/drm/card2/dev", "226:2\n");
	gpu_test_put(t, "sys/devices/pci0000:00/0000:01:00.0/drm/renderD129/dev", "226:129\n");
	gpu_test_link(
		t, "sys/bus/pci/devices/0000:01:00.0", "../../../devices/pci0000:00/0000:01:00.0");
	i = read_all(t);
	assert_int_equal(i.v[0].numa, 1);
	assert_int_equal(i.v[0].dri.n, 2);
	assert_string_equal(i.v[0].dri.v[1].path, "/dev/dri/renderD129");
	assert_int_equal(i.v[0].dri.v[1].minor, 129);
	gpu_inventory_fini(&i);
	gpu_test_put(t, "sys/devices/pci0000:00/0000:01:00.0/drm/card2/dev", "none\n");
	expect_corrupt(t, "drm/card2/dev has no device number");
}

/* ---- AMD ---- */

TEST(amd_gpus_are_those_that_kfd_lists)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	static const char gpu[] = "vendor_id 4098\nlocation_id %u\ndomain 0\ndrm_render_minor %u\n"
				  "gfx_target_version 90402\nunique_id 255\n";
	char text[256];

	gpu_test_put(t, "proc/devices", "Character devices:\n226 drm\n511 kfd\n");
	gpu_test_put(t, "sys/devices/virtual/kfd/kfd/topology/nodes/0/properties",
		"vendor_id 0\ngfx_target_version 0\n");
	snprintf(text, sizeof(text), gpu, 0x2200, 128);
	gpu_test_put(t, "sys/devices/virtual/kfd/kfd/topology/nodes/1/properties", text);
	snprintf(text, sizeof(text), gpu, 0x0c00, 129);
	gpu_test_put(t, "sys/devices/virtual/kfd/kfd/topology/nodes/2/properties", text);
	/* a second part of that GPU: the same place, another render node */
	snprintf(text, sizeof(text), gpu, 0x10000c00, 130);
	gpu_test_put(t, "sys/devices/virtual/kfd/kfd/topology/nodes/3/properties", text);
	gpu_test_put(t, "sys/devices/virtual/kfd/kfd/topology/nodes/2/mem_banks/0/properties",
		"heap_type 1\nsize_in_bytes 1073741824\n");
	gpu_test_link(t, "sys/class/kfd/kfd", "../../devices/virtual/kfd/kfd");
	i = read_all(t);
	assert_int_equal(i.n, 3);
	assert_int_equal(i.v[0].maker, GPU_MAKER_AMD);
	assert_string_equal(i.v[0].bus, "0000:0c:00.0");
	assert_string_equal(i.v[0].arch, "gfx942");
	assert_string_equal(i.v[0].uuid, "GPU-00000000000000ff");
	assert_string_equal(i.v[0].nodes.v[0].path, "/dev/dri/renderD129");
	assert_true(i.v[0].vram == 1 << 30);
	assert_string_equal(i.v[1].bus, "0000:0c:00.0");
	assert_int_equal(i.v[1].index, 1);
	assert_string_equal(i.v[1].nodes.v[0].path, "/dev/dri/renderD130");
	assert_string_equal(i.v[2].bus, "0000:22:00.0");
	assert_int_equal(i.kfd.v[0].major, 511);
	gpu_inventory_fini(&i);
}

RUN_TESTS(GPU_CASE(a_host_without_gpus_is_an_empty_inventory),
	GPU_CASE(indexes_follow_the_bus_and_nodes_the_minor),
	GPU_CASE(an_excluded_gpu_is_there_and_has_no_index),
	GPU_CASE(what_is_not_of_one_gpu_has_the_majors_of_proc_devices),
	GPU_CASE(mig_devices_have_exactly_their_two_capabilities),
	GPU_CASE(the_minor_of_a_capability_may_stand_in_the_table_alone),
	GPU_CASE(two_gpus_of_one_name_are_refused),
	GPU_CASE(files_that_cannot_be_understood_are_named),
	GPU_CASE(files_without_end_are_not_read_to_their_end),
	GPU_CASE(a_pipe_or_a_folder_in_a_files_place_makes_nobody_wait),
	GPU_CASE(links_lead_nowhere_out_of_the_hosts_folders),
	GPU_CASE(more_entries_than_there_can_be_are_refused),
	GPU_CASE(nodes_that_are_there_tell_their_mode_and_owner),
	GPU_CASE(a_link_in_a_nodes_place_is_no_node),
	GPU_CASE(numbered_nodes_are_those_of_their_driver),
	GPU_CASE(dri_nodes_are_found_by_the_bus), GPU_CASE(amd_gpus_are_those_that_kfd_lists))
