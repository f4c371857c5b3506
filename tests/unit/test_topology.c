#include "tests/unit/test.h"

#include "gpu/topology.h"
#include "tests/unit/gpu-host.h"

TEST(places_are_as_far_apart_as_nvidia_smi_says)
{
	static const struct {
		const char *a, *b;
		int numa_a, numa_b;
		enum gpu_path want;
	} cases[] = {
		/* one switch: its upstream port, a port each */
		{"devices/pci0000:c0/0000:c0:01.0/0000:c1:00.0/0000:c2:00.0/0000:c3:00.0",
			"devices/pci0000:c0/0000:c0:01.0/0000:c1:00.0/0000:c2:01.0/0000:c4:00.0", 0,
			0, GPU_PATH_PIX},
		/* behind one bridge directly */
		{"devices/pci0000:c0/0000:c0:01.0/0000:c1:00.0",
			"devices/pci0000:c0/0000:c0:01.0/0000:c1:00.1", 0, 0, GPU_PATH_PIX},
		/* switches behind a switch */
		{"devices/pci0000:c0/0000:c0:01.0/0000:c1:00.0/0000:c2:00.0/0000:c3:00.0/"
		 "0000:c4:00.0/0000:c5:00.0",
			"devices/pci0000:c0/0000:c0:01.0/0000:c1:00.0/0000:c2:01.0/0000:d3:00.0/"
			"0000:d4:00.0/0000:d5:00.0",
			0, 0, GPU_PATH_PXB},
		/* root ports of one complex */
		{"devices/pci0000:00/0000:00:01.0/0000:01:00.0",
			"devices/pci0000:00/0000:00:02.0/0000:02:00.0", 0, 0, GPU_PATH_PHB},
		{"devices/pci0000:00/0000:00:1e.0", "devices/pci0000:00/0000:00:1f.0", 0, 0,
			GPU_PATH_PHB},
		/* a name that begins like another */
		{"devices/pci0000:00/0000:00:01.0/0000:01:00.0",
			"devices/pci0000:00/0000:00:01.01/0000:02:00.0", 0, 0, GPU_PATH_PHB},
		{"devices/pci0000:00/0000:01:00.0", "devices/pci0000:40/0000:41:00.0", 1, 1,
			GPU_PATH_NODE},
		{"devices/pci0000:00/0000:01:00.0", "devices/pci0000:001/0000:41:00.0", 1, 1,
			GPU_PATH_NODE},
		{"devices/pci0000:00/0000:01:00.0", "devices/pci0000:40/0000:41:00.0", -1, -1,
			GPU_PATH_NODE},
		{"devices/pci0000:00/0000:01:00.0", "devices/pci0000:40/0000:41:00.0", 0, 1,
			GPU_PATH_SYS},
		{NULL, "devices/pci0000:40/0000:41:00.0", 0, 0, GPU_PATH_UNKNOWN},
		{"", "", 0, 0, GPU_PATH_NODE},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		enum gpu_path forth = gpu_pci_path(
				      cases[k].a, cases[k].numa_a, cases[k].b, cases[k].numa_b),
			      back = gpu_pci_path(
				      cases[k].b, cases[k].numa_b, cases[k].a, cases[k].numa_a);

		if (forth != cases[k].want || back != forth)
			fail_msg("%zu: %s and %s", k, gpu_path_name(forth), gpu_path_name(back));
	}
}

static void put_gpu(struct gpu_test_host *t, unsigned n, const char *model)
{
	static const char *const uuids[] = {GPU_TEST_UUID(0), GPU_TEST_UUID(1)};
	char bus[32], path[96], link[64], target[80];

	snprintf(bus, sizeof(bus), "0000:0%u:00.0", n + 1);
	gpu_test_gpu(t, NULL, bus, n, model, uuids[n], "No");
	snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:00:0%u.0/%s/local_cpulist", n + 1,
		bus);
	gpu_test_put(t, path, "0-7\n");
	snprintf(link, sizeof(link), "sys/bus/pci/devices/%s", bus);
	snprintf(
		target, sizeof(target), "../../../devices/pci0000:00/0000:00:0%u.0/%s", n + 1, bus);
	gpu_test_link(t, link, target);
}

static void read_both(struct gpu_test_host *t, struct gpu_inventory *i, struct gpu_topology *top)
{
	struct err e = {0};

	if (gpu_inventory_read(i, &t->h, &e) < 0 || gpu_topology_read(top, &t->h, i, &e) < 0)
		fail_msg("%s", e.text);
}

TEST(links_are_told_where_a_file_says_so)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	struct gpu_topology top;

	if (geteuid() != 0)
		skip();
	gpu_test_driver(t);
	put_gpu(t, 0, "NVIDIA H200");
	put_gpu(t, 1, "NVIDIA H200");
	read_both(t, &i, &top);
	assert_int_equal(gpu_topology_path(&top, 0, 0), GPU_PATH_SELF);
	assert_int_equal(gpu_topology_path(&top, 0, 1), GPU_PATH_PHB); /* bridges are not known */
	assert_string_equal(top.v[1].cpus, "0-7");
	gpu_topology_fini(&top);
	gpu_inventory_fini(&i);

	gpu_test_put(t, "proc/devices",
		"Character devices:\n195 nvidia\n237 nvidia-nvswitch\n\nBlock devices:\n");
	gpu_test_node(t, "dev/nvidia-nvswitch0", 237, 0, 0666);
	read_both(t, &i, &top);
	assert_int_equal(gpu_topology_path(&top, 0, 1), GPU_PATH_NVLINK);
	gpu_topology_fini(&top);
	gpu_inventory_fini(&i);
}

TEST(network_cards_stand_behind_the_gpus)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	struct gpu_topology top;

	gpu_test_driver(t);
	put_gpu(t, 0, "NVIDIA L4");
	gpu_test_put(t, "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.1/numa_node", "0\n");
	gpu_test_put(t, "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.1/infiniband/mlx5_0/x", "");
	gpu_test_link(t, "sys/class/infiniband/mlx5_0",
		"../../devices/pci0000:00/0000:00:01.0/0000:01:00.1/infiniband/mlx5_0");
	gpu_test_link(t, "sys/class/infiniband/mlx5_1", "../../devices/gone");
	read_both(t, &i, &top);
	assert_int_equal(top.n, 3);
	assert_int_equal(top.ngpus, 1);
	assert_string_equal(top.v[1].name, "mlx5_0");
	assert_int_equal(gpu_topology_path(&top, 0, 1), GPU_PATH_PIX);
	assert_int_equal(gpu_topology_path(&top, 0, 2), GPU_PATH_UNKNOWN);
	gpu_topology_fini(&top);
	gpu_inventory_fini(&i);
}

TEST(a_place_outside_of_sys_is_refused)
{
	struct gpu_test_host *t = *state;
	struct gpu_inventory i;
	struct gpu_topology top;
	struct err e = {0};

	gpu_test_link(t, "sys/class/infiniband/mlx5_0", "../../../proc");
	assert_int_equal(gpu_inventory_read(&i, &t->h, &e), 0);
	assert_int_equal(gpu_topology_read(&top, &t->h, &i, &e), -1);
	assert_non_null(strstr(e.text, "sys/class/infiniband/mlx5_0"));
	gpu_inventory_fini(&i);
}

RUN_TESTS(cmocka_unit_test(places_are_as_far_apart_as_nvidia_smi_says),
	GPU_CASE(links_are_told_where_a_file_says_so),
	GPU_CASE(network_cards_stand_behind_the_gpus), GPU_CASE(a_place_outside_of_sys_is_refused))
