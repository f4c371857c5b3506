#include "tests/unit/spec-make.h"

#include "runtime/fields.h"

static void accept_resources(struct spec *s, const char *members)
{
	char patch[4096];

	snprintf(patch, sizeof(patch), "{'resources': %s}", members);
	accept(s, "linux", patch);
}

TEST(memory_cpu_and_processes_are_read)
{
	struct spec s;
	const struct spec_resources *r = &s.resources;

	accept_resources(&s,
		"{'memory': {'limit': 100, 'reservation': 50, 'swap': 200, 'kernel': -1,"
		"'kernelTCP': 70, 'swappiness': 30, 'disableOOMKiller': true,"
		"'checkBeforeUpdate': true, 'useHierarchy': true},"
		"'cpu': {'shares': 512, 'quota': -1, 'period': 100000, 'burst': 20, 'idle': 1,"
		"'realtimeRuntime': 5, 'realtimePeriod': 6, 'cpus': '0-1', 'mems': '0'},"
		"'pids': {'limit': -1}}");
	assert_int_equal(r->memory_limit.v, 100);
	assert_int_equal(r->memory_reservation.v, 50);
	assert_int_equal(r->memory_swap.v, 200);
	assert_int_equal(r->memory_kernel.v, -1);
	assert_int_equal(r->memory_kernel_tcp.v, 70);
	assert_int_equal(r->memory_swappiness.v, 30);
	assert_true(r->memory_no_oom_killer && r->memory_check);
	assert_int_equal(r->cpu_shares.v, 512);
	assert_int_equal(r->cpu_quota.v, -1);
	assert_int_equal(r->cpu_period.v, 100000);
	assert_int_equal(r->cpu_burst.v, 20);
	assert_int_equal(r->cpu_idle.v, 1);
	assert_int_equal(r->cpu_rt_runtime.v, 5);
	assert_int_equal(r->cpu_rt_period.v, 6);
	assert_string_equal(r->cpus, "0-1");
	assert_string_equal(r->mems, "0");
	assert_true(r->pids.set);
	assert_int_equal(r->pids.v, -1);
	spec_fini(&s);
}

TEST(device_rules_say_all_for_what_they_leave_out)
{
	struct spec s;
	const struct spec_device_rule *v;

	accept_resources(&s,
		"{'devices': [{'allow': false}, {'allow': true, 'type': 'c', 'major': 1, 'minor':"
		"-1, 'access': 'rwa'}]}");
	v = s.resources.devices;
	assert_int_equal(s.resources.ndevices, 2);
	assert_int_equal(v[0].type, 'a');
	assert_int_equal(v[0].access, DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD);
	assert_false(v[0].major.set || v[0].allow);
	assert_true(v[1].allow);
	assert_int_equal(v[1].major.v, 1);
	assert_false(v[1].minor.set);
	assert_int_equal(v[1].access, DEVICE_READ | DEVICE_WRITE);
	spec_fini(&s);
}

TEST(a_device_rule_for_both_types_is_for_all_devices_only_when_it_says_so)
{
	static const struct {
		const char *rule;
		const char *types; /* of what becomes of it */
		struct opt_i64 major, minor;
		unsigned access;
	} cases[] = {
		{"'allow': true", "a", {0}, {0}, DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD},
		{"'allow': true, 'type': 'a', 'major': -1, 'minor': -1, 'access': 'mwr'", "a", {0},
			{0}, DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD},
		{"'allow': true, 'major': 10, 'minor': 229, 'access': 'r'", "bc", {true, 10},
			{true, 229}, DEVICE_READ},
		{"'allow': true, 'type': 'a', 'major': 0", "bc", {true, 0}, {0},
			DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD},
		{"'allow': true, 'type': '', 'minor': 3", "bc", {0}, {true, 3},
			DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD},
		{"'allow': true, 'access': 'rw'", "bc", {0}, {0}, DEVICE_READ | DEVICE_WRITE},
		{"'allow': true, 'type': 'c', 'access': 'm'", "c", {0}, {0}, DEVICE_MKNOD},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = strlen(cases[i].types);
		char text[256];
		struct spec s;

		snprintf(text, sizeof(text),
			"{'devices': [{'allow': false}, {%s}, {'allow': true, 'type': 'b'}]}",
			cases[i].rule);
		accept_resources(&s, text);
		assert_int_equal(s.resources.ndevices, n + 2);
		assert_int_equal(s.resources.devices[0].type, 'a');
		assert_int_equal(s.resources.devices[n + 1].type, 'b');
		for (size_t k = 0; k < n; k++) {
			const struct spec_device_rule *r = &s.resources.devices[k + 1];

			assert_int_equal(r->type, cases[i].types[k]);
			assert_true(r->allow);
			assert_int_equal(r->access, cases[i].access);
			assert_int_equal(r->major.set, cases[i].major.set);
			assert_int_equal(r->major.v, cases[i].major.v);
			assert_int_equal(r->minor.set, cases[i].minor.set);
			assert_int_equal(r->minor.v, cases[i].minor.v);
		}
		spec_fini(&s);
	}
}

TEST(block_devices_have_weights_and_rates)
{
	struct spec s;
	const struct spec_resources *r = &s.resources;

	accept_resources(&s,
		"{'blockIO': {'weight': 10, 'leafWeight': 1000,"
		"'weightDevice': [{'major': 8, 'minor': 1, 'weight': 500, 'leafWeight': 300}],"
		"'throttleReadBpsDevice': [{'major': 8, 'minor': 2, 'rate': 1}],"
		"'throttleWriteBpsDevice': [{'major': 8, 'minor': 3, 'rate': 2}],"
		"'throttleReadIOPSDevice': [{'major': 8, 'minor': 4, 'rate': 3}],"
		"'throttleWriteIOPSDevice': [{'major': 8, 'minor': 5, 'rate': 4}, "
		"{'major': 9, 'minor': 0, 'rate': 0}]}}");
	assert_int_equal(r->block_weight.v, 10);
	assert_int_equal(r->block_leaf_weight.v, 1000);
	assert_int_equal(r->block_weights.v[0].minor, 1);
	assert_int_equal(r->block_weights.v[0].value.v, 500);
	assert_int_equal(r->block_weights.v[0].leaf.v, 300);
	assert_int_equal(r->read_bps.v[0].value.v, 1);
	assert_int_equal(r->write_bps.v[0].value.v, 2);
	assert_int_equal(r->read_iops.v[0].value.v, 3);
	assert_int_equal(r->write_iops.n, 2);
	assert_int_equal(r->write_iops.v[0].value.v, 4);
	assert_int_equal(r->write_iops.v[0].minor, 5);
	spec_fini(&s);
	accept_resources(&s, "{'blockIO': {'weight': 0}}"); /* as docker says that it wants none */
	assert_false(s.resources.block_weight.set);
	spec_fini(&s);
}

TEST(the_rarer_controllers_are_read)
{
	struct spec s;
	const struct spec_resources *r = &s.resources;

	accept_resources(&s,
		"{'hugepageLimits': [{'pageSize': '2MB', 'limit': 9}, {'pageSize': '1GB', 'limit': "
		"9223372036854775807}],"
		"'network': {'classID': 4294967295, 'priorities': [{'name': 'eth0', 'priority': "
		"500}]},"
		"'rdma': {'mlx5_1': {'hcaHandles': 3, 'hcaObjects': 10000}, 'rxe3': {'hcaObjects': "
		"1}},"
		"'unified': {'memory.high': '5', 'io.max': '8:0 rbps=1'}}");
	assert_int_equal(r->nhugetlb, 2);
	assert_string_equal(r->hugetlb[0].page_size, "2MB");
	assert_int_equal(r->hugetlb[0].limit, 9);
	assert_true(r->hugetlb[1].limit == INT64_MAX);
	assert_int_equal(r->net_class.v, UINT32_MAX);
	assert_string_equal(r->net_priorities.v[0].name, "eth0");
	assert_string_equal(r->net_priorities.v[0].value, "500");
	assert_int_equal(r->nrdma, 2);
	assert_string_equal(r->rdma[0].device, "mlx5_1");
	assert_int_equal(r->rdma[0].handles.v, 3);
	assert_false(r->rdma[1].handles.set);
	assert_int_equal(r->unified.n, 2);
	assert_string_equal(r->unified.v[1].name, "io.max");
	assert_string_equal(r->unified.v[1].value, "8:0 rbps=1");
	spec_fini(&s);
}

#define BAD(members, text)                                                                         \
	{                                                                                          \
		"linux", "{'resources': {" members "}}", ERR_CORRUPT, "/linux/resources" text      \
	}

TEST(errors_name_the_place)
{
	static const struct refusal cases[] = {
		BAD("'devices': [{'allow': true, 'access': 'x'}]",
			"/devices/0/access: 'x' is not r, w or m"),
		BAD("'devices': [{'allow': true, 'access': 'a'}]",
			"/devices/0/access: expected r, w and m"),
		BAD("'devices': [{'access': 'r'}]", "/devices/0: missing key 'allow'"),
		BAD("'devices': [{'allow': true, 'major': -2}]",
			"/devices/0/major: expected -1 to 4294967295"),
		BAD("'memory': {'limit': 9, 'swap': 8}",
			"/memory: swap is memory and swap together: at least the limit"),
		BAD("'memory': {'limit': -9000000000000000000}",
			"/memory/limit: expected an integer, at least -1"),
		BAD("'memory': {'kernelTCP': -2}",
			"/memory/kernelTCP: expected an integer, at least -1"),
		BAD("'memory': {'limit': '1g'}", "/memory/limit: expected an integer"),
		BAD("'memory': {'swappiness': 101}", "/memory/swappiness: 101 is greater than 100"),
		BAD("'memory': {'disableOOMKiller': 1}",
			"/memory/disableOOMKiller: expected true or false"),
		BAD("'cpu': {'shares': -1}", "/cpu/shares: expected a non-negative integer"),
		BAD("'cpu': {'quota': -2}", "/cpu/quota: expected an integer, at least -1"),
		BAD("'cpu': {'quota': 5, 'burst': 6}", "/cpu: burst: more than the quota"),
		BAD("'cpu': {'idle': 2}", "/cpu/idle: 2 is greater than 1"),
		BAD("'cpu': {'cpus': '0-1;2'}",
			"/cpu/cpus: expected a list such as 0-3,5, got '0-1;2'"),
		BAD("'cpu': {'mems': 'x'}", "/cpu/mems: expected a list such as 0-3,5, got 'x'"),
		BAD("'pids': {'limit': -2}", "/pids/limit: expected an integer, at least -1"),
		BAD("'blockIO': {'weight': 9}", "/blockIO/weight: expected 10 to 1000"),
		BAD("'blockIO': {'leafWeight': 1001}", "/blockIO/leafWeight: expected 10 to 1000"),
		BAD("'blockIO': {'weightDevice': [{'major': 1, 'minor': 2}]}",
			"/blockIO/weightDevice/0: weight or leafWeight is needed"),
		BAD("'blockIO': {'weightDevice': [{'major': 1, 'minor': 2, 'weight': 5}]}",
			"/blockIO/weightDevice/0/weight: expected 10 to 1000"),
		BAD("'blockIO': {'throttleReadBpsDevice': [{'major': 1, 'rate': 2}]}",
			"/blockIO/throttleReadBpsDevice/0: missing key 'minor'"),
		BAD("'blockIO': {'throttleWriteIOPSDevice': [{'major': 1, 'minor': 2, 'rate': "
		    "-1}]}",
			"/blockIO/throttleWriteIOPSDevice/0/rate: expected a non-negative integer"),
		BAD("'hugepageLimits': [{'pageSize': '2mb', 'limit': 1}]",
			"/hugepageLimits/0: pageSize: expected a size such as 2MB"),
		BAD("'hugepageLimits': [{'pageSize': '../2MB', 'limit': 1}]",
			"/hugepageLimits/0: pageSize: expected a size such as 2MB"),
		BAD("'hugepageLimits': [{'pageSize': '2M', 'limit': 1}]",
			"/hugepageLimits/0: pageSize: expected a size such as 2MB"),
		BAD("'hugepageLimits': [{'pageSize': '2', 'limit': 1}]",
			"/hugepageLimits/0: pageSize: expected a size such as 2MB"),
		BAD("'network': {'classID': 4294967296}",
			"/network/classID: 4294967296 is greater than 4294967295"),
		BAD("'network': {'priorities': [{'name': 'a b', 'priority': 1}]}",
			"/network/priorities/0: name: no name of an interface"),
		BAD("'rdma': {'a': {}}", "/rdma/a: hcaHandles or hcaObjects is needed"),
		BAD("'rdma': {'a b': {'hcaHandles': 1}}", "/rdma/a b: no name of a device"),
		BAD("'rdma': []", "/rdma: expected an object of at most 4096"),
		BAD("'unified': {'../x.y': '1'}",
			"/unified/../x.y: no name of a file of the controllers"),
		BAD("'unified': {'memory': '1'}",
			"/unified/memory: no name of a file of the controllers"),
		BAD("'unified': {'memory.high': 1}", "/unified/memory.high: expected a string"),
		{"linux", "{'resources': {'devices': [{'allow': true, 'type': 'p'}]}}",
			ERR_UNSUPPORTED, "/linux/resources/devices/0/type: unknown value 'p'"},
		{"linux", "{'resources': {'memory': {'useHierarchy': false}}}", ERR_UNSUPPORTED,
			"/linux/resources/memory/useHierarchy: the kernel knows only true"},
	};

	REFUSE_ALL(cases);
}

RUN_TESTS(cmocka_unit_test(memory_cpu_and_processes_are_read),
	cmocka_unit_test(device_rules_say_all_for_what_they_leave_out),
	cmocka_unit_test(a_device_rule_for_both_types_is_for_all_devices_only_when_it_says_so),
	cmocka_unit_test(block_devices_have_weights_and_rates),
	cmocka_unit_test(the_rarer_controllers_are_read), cmocka_unit_test(errors_name_the_place))
