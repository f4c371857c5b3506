#include "tests/unit/spec-make.h"

#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/stat.h>

TEST(namespaces_are_new_or_joined)
{
	struct spec s;

	accept(&s, "linux",
		"{'namespaces': [{'type': 'mount'}, {'type': 'pid', 'path': '/proc/1/ns/pid'},"
		"{'type': 'network', 'path': '/run/netns/a'}, {'type': 'ipc'}, {'type': 'uts', "
		"'path': ''}, {'type': 'cgroup'}, {'type': 'time'}, {'type': 'user'}],"
		"'uidMappings': [{'containerID': 0, 'hostID': 1000, 'size': 5},"
		"{'containerID': 5, 'hostID': 0, 'size': 1000}],"
		"'gidMappings': [{'containerID': 0, 'hostID': 0, 'size': 4294967295}],"
		"'timeOffsets': {'monotonic': {'secs': -5, 'nanosecs': 999999999}, 'boottime': "
		"{}}}");
	for (enum ns_kind k = 0; k < NS_KINDS; k++)
		assert_true(spec_has_ns(&s, k));
	assert_true(spec_new_ns(&s, NS_MOUNT) && spec_new_ns(&s, NS_UTS));
	assert_false(spec_new_ns(&s, NS_PID));
	assert_string_equal(s.namespaces[NS_NETWORK].path, "/run/netns/a");
	assert_int_equal(s.uids.n, 2);
	assert_int_equal(s.uids.v[1].container, 5);
	assert_int_equal(s.gids.v[0].size, UINT32_MAX);
	assert_true(s.monotonic.set && s.boottime.set);
	assert_int_equal(s.monotonic.secs, -5);
	assert_int_equal(s.monotonic.nanosecs, 999999999);
	spec_fini(&s);
}

TEST(a_joined_user_namespace_may_repeat_its_maps_or_not)
{
	struct spec s;

	accept(&s, "linux",
		"{'namespaces': [{'type': 'mount'}, {'type': 'uts'}, {'type': 'user', 'path': "
		"'/a'}]}");
	spec_fini(&s);
	accept(&s, "linux",
		"{'namespaces': [{'type': 'mount'}, {'type': 'uts'}, {'type': 'user', 'path': "
		"'/a'}], 'uidMappings': [{'containerID': 0, 'hostID': 1, 'size': 1}],"
		"'gidMappings': [{'containerID': 0, 'hostID': 1, 'size': 1}]}");
	spec_fini(&s);
}

TEST(devices_are_read)
{
	struct spec s;

	accept(&s, "linux",
		"{'devices': [{'path': '/dev/fuse', 'type': 'c', 'major': 10, 'minor': 229,"
		"'fileMode': 438, 'uid': 1, 'gid': 2}, {'path': '/b', 'type': 'b', 'major': 8,"
		"'minor': 0, 'fileMode': 25008}, {'path': '/p', 'type': 'p'}, {'path': '/u', "
		"'type': 'u', 'major': 0, 'minor': 0}]}");
	assert_int_equal(s.ndevices, 4);
	assert_int_equal(s.devices[0].type, S_IFCHR);
	assert_int_equal(s.devices[0].minor, 229);
	assert_int_equal(s.devices[0].mode.v, 0666);
	assert_int_equal(s.devices[0].uid, 1);
	assert_int_equal(s.devices[0].gid, 2);
	assert_int_equal(s.devices[1].type, S_IFBLK);
	assert_int_equal(s.devices[1].mode.v, 0660); /* S_IFBLK was in it */
	assert_int_equal(s.devices[2].type, S_IFIFO);
	assert_false(s.devices[2].mode.set);
	assert_int_equal(s.devices[3].type, S_IFCHR);
	spec_fini(&s);
}

TEST(the_rest_is_read)
{
	struct spec s;

	accept(&s, "linux",
		"{'namespaces': [{'type': 'mount'}, {'type': 'uts'}, {'type': 'network'}],"
		"'netDevices': {'eth0': {'name': 'inner'}, 'eth1': {}},"
		"'cgroupsPath': 'system.slice:svrun:x', 'maskedPaths': ['/proc/kcore'],"
		"'readonlyPaths': ['/proc/sys'], 'mountLabel': 'u:o:t',"
		"'sysctl': {'net.ipv4.ip_forward': '1', 'net/ipv4/conf/eth0.5/arp_ignore': '2'},"
		"'rootfsPropagation': 'rslave', 'personality': {'domain': 'LINUX32', 'flags': []},"
		"'intelRdt': {'closID': 'guaranteed', 'l3CacheSchema': 'L3:0=f', 'memBwSchema':"
		"'MB:0=20', 'schemata': ['L2:0=1'], 'enableCMT': true},"
		"'memoryPolicy': {'mode': 'MPOL_BIND', 'nodes': '0-1', 'flags': "
		"['MPOL_F_STATIC_NODES']},"
		"'seccomp': {'defaultAction': 'SCMP_ACT_ALLOW'}}");
	assert_int_equal(s.nnet_devices, 2);
	assert_string_equal(s.net_devices[0].name, "eth0");
	assert_string_equal(s.net_devices[0].new_name, "inner");
	assert_null(s.net_devices[1].new_name);
	assert_string_equal(s.cgroups_path, "system.slice:svrun:x");
	assert_string_equal(s.masked.v[0], "/proc/kcore");
	assert_string_equal(s.readonly.v[0], "/proc/sys");
	assert_string_equal(s.mount_label, "u:o:t");
	assert_int_equal(s.sysctls.n, 2);
	assert_string_equal(s.sysctls.v[0].value, "1");
	assert_int_equal(s.propagation, MS_SLAVE);
	assert_true(s.propagation_all);
	assert_true(s.personality.set);
	assert_int_equal(s.personality.v, 8);
	assert_true(s.rdt.given && s.rdt.monitoring);
	assert_string_equal(s.rdt.clos, "guaranteed");
	assert_string_equal(s.rdt.l3, "L3:0=f");
	assert_string_equal(s.rdt.membw, "MB:0=20");
	assert_string_equal(s.rdt.schemata.v[0], "L2:0=1");
	assert_int_equal(s.memory_policy.mode, MPOL_BIND);
	assert_int_equal(s.memory_policy.flags, MPOL_F_STATIC_NODES);
	assert_string_equal(s.memory_policy.nodes, "0-1");
	assert_true(s.has_seccomp);
	assert_int_equal(s.seccomp.default_action, SECCOMP_RET_ALLOW);
	spec_fini(&s);
}

TEST(every_way_of_propagation_is_known)
{
	static const struct {
		const char *name;
		uint64_t flag;
	} ways[] = {{"shared", MS_SHARED}, {"slave", MS_SLAVE}, {"private", MS_PRIVATE},
		{"unbindable", MS_UNBINDABLE}, {"", 0}};

	for (size_t i = 0; i < 2 * sizeof(ways) / sizeof(ways[0]) - 1; i++) {
		struct spec s;
		char patch[64];

		snprintf(patch, sizeof(patch), "{'rootfsPropagation': '%s%s'}", i % 2 ? "r" : "",
			ways[i / 2].name);
		accept(&s, "linux", patch);
		assert_int_equal(s.propagation, ways[i / 2].flag);
		assert_int_equal(s.propagation_all, i % 2);
		spec_fini(&s);
	}
}

#define NS "'namespaces': [{'type': 'mount'}, {'type': 'uts'}"
#define MAP(c, h, n) "{'containerID': " c ", 'hostID': " h ", 'size': " n "}"
#define MAPS(u, g) "{" NS ", {'type': 'user'}], 'uidMappings': [" u "], 'gidMappings': [" g "]}"
#define BAD(members, text)                                                                         \
	{                                                                                          \
		"linux", members, ERR_CORRUPT, "/linux" text                                       \
	}

TEST(errors_name_the_place)
{
	static const struct refusal cases[] = {
		BAD("{'namespaces': [{'type': 'pid'}, {'type': 'pid'}]}",
			"/namespaces/1: pid namespace is there twice"),
		BAD("{'namespaces': [{'type': 'x'}]}", "/namespaces/0: unknown namespace 'x'"),
		BAD("{'namespaces': [{}]}", "/namespaces/0: missing key 'type'"),
		BAD("{'namespaces': [{'type': 'ipc', 'path': 'a'}]}",
			"/namespaces/0/path: expected an absolute path, got 'a'"),
		BAD(MAPS(MAP("0", "0", "0"), ""), "/uidMappings/0: size: 0"),
		BAD(MAPS(MAP("1", "0", "4294967295"), ""), "/uidMappings/0: ids beyond 4294967294"),
		BAD(MAPS(MAP("0", "4294967295", "1"), ""), "/uidMappings/0: ids beyond 4294967294"),
		BAD(MAPS(MAP("0", "4294967296", "1"), ""),
			"/uidMappings/0/hostID: 4294967296 is greater than 4294967295"),
		BAD(MAPS(MAP("0", "0", "10") "," MAP("9", "20", "1"), ""),
			"/uidMappings: 0 and 1 overlap"),
		BAD(MAPS("", MAP("20", "5", "1") "," MAP("0", "0", "6")),
			"/gidMappings: 0 and 1 overlap"),
		BAD(MAPS(MAP("0", "0", "1"), ""), ": uidMappings and gidMappings need each other"),
		BAD(MAPS("", ""), ": a new user namespace needs uidMappings and gidMappings"),
		BAD("{'uidMappings': [" MAP("0", "0", "1") "], 'gidMappings': [" MAP(
			    "0", "0", "1") "]}",
			": uidMappings and gidMappings need a user namespace"),
		BAD("{'timeOffsets': {'monotonic': {'secs': 1}}}",
			": timeOffsets need a new time namespace"),
		BAD("{'timeOffsets': {'realtime': {'secs': 1}}}",
			"/timeOffsets: unknown clock 'realtime'"),
		BAD("{'timeOffsets': {'boottime': {'nanosecs': 1000000000}}}",
			"/timeOffsets/boottime/nanosecs: 1000000000 is greater than 999999999"),
		BAD("{'timeOffsets': []}", "/timeOffsets: expected an object"),
		BAD("{'devices': [{'path': '/dev/x', 'type': 'c'}]}",
			"/devices/0: major and minor are needed"),
		BAD("{'devices': [{'path': '/dev/x', 'type': 'c', 'major': 1, 'minor': -1}]}",
			"/devices/0/minor: expected a non-negative integer"),
		BAD("{'devices': [{'path': 'x', 'type': 'p'}]}",
			"/devices/0/path: expected an absolute path, got 'x'"),
		BAD("{'devices': [{'path': '/x', 'type': 'p', 'fileMode': 65536}]}",
			"/devices/0/fileMode: 65536 is greater than 65535"),
		BAD("{'netDevices': {'eth0': {}}}", ": netDevices need a network namespace"),
		BAD("{'netDevices': {'a/b': {}}}", "/netDevices/a/b: no name of an interface"),
		BAD("{'netDevices': {'sixteencharacters': {}}}",
			"/netDevices/sixteencharacters: no name of an interface"),
		BAD("{'netDevices': {'a': {'name': '..'}}}",
			"/netDevices/a: name: no name of an interface"),
		BAD("{'netDevices': {'a': {'name': 'b'}, 'b': {}}}",
			": netDevices: two are called 'b'"),
		BAD("{'cgroupsPath': '/a/../../b'}", "/cgroupsPath: '..' in a cgroup path"),
		BAD("{'maskedPaths': ['/a', 'b']}",
			"/maskedPaths/1: expected an absolute path, got 'b'"),
		BAD("{'readonlyPaths': ['']}",
			"/readonlyPaths/0: expected an absolute path, got ''"),
		BAD("{'sysctl': {'../x': '1'}}", "/sysctl/../x: no name of a sysctl"),
		BAD("{'sysctl': {'net..x': '1'}}", "/sysctl/net..x: no name of a sysctl"),
		BAD("{'sysctl': {'/net/x': '1'}}", "/sysctl//net/x: no name of a sysctl"),
		BAD("{'sysctl': {'net.x': 1}}", "/sysctl/net.x: expected a string"),
		BAD("{'intelRdt': {'closID': '../x'}}", "/intelRdt: closID: no name of a folder"),
		BAD("{'intelRdt': {'memBwSchema': 'L3:0=1'}}",
			"/intelRdt: memBwSchema: expected one line that starts with MB:"),
		BAD("{'memoryPolicy': {'nodes': '0'}}", "/memoryPolicy: missing key 'mode'"),
		BAD("{'memoryPolicy': {'mode': 'MPOL_BIND'}}", "/memoryPolicy: nodes: missing"),
		BAD("{'memoryPolicy': {'mode': 'MPOL_LOCAL', 'nodes': '0'}}",
			"/memoryPolicy: MPOL_DEFAULT and MPOL_LOCAL take no nodes and no flags"),
		BAD("{'memoryPolicy': {'mode': 'MPOL_BIND', 'nodes': '0', 'flags': "
		    "['MPOL_F_STATIC_NODES', 'MPOL_F_RELATIVE_NODES']}}",
			"/memoryPolicy: flags: static and relative nodes exclude each other"),
		BAD("{'memoryPolicy': {'mode': 'MPOL_INTERLEAVE', 'nodes': '0', 'flags': "
		    "['MPOL_F_NUMA_BALANCING']}}",
			"/memoryPolicy: flags: MPOL_F_NUMA_BALANCING is for MPOL_BIND"),
		{"linux", "{'memoryPolicy': {'mode': 'MPOL_X'}}", ERR_UNSUPPORTED,
			"/linux/memoryPolicy/mode: unknown value 'MPOL_X'"},
		{"linux", "{'devices': [{'path': '/x', 'type': 'z'}]}", ERR_UNSUPPORTED,
			"/linux/devices/0/type: unknown value 'z'"},
		{"linux", "{'rootfsPropagation': 'rr'}", ERR_UNSUPPORTED,
			"/linux/rootfsPropagation: unknown value 'rr'"},
		{"linux", "{'personality': {'domain': 'BSD'}}", ERR_UNSUPPORTED,
			"/linux/personality/domain: unknown value 'BSD'"},
		{"linux", "{'personality': {'domain': 'LINUX', 'flags': ['X']}}", ERR_UNSUPPORTED,
			"/linux/personality/flags: this runtime does not do it"},
	};

	REFUSE_ALL(cases);
}

TEST(id_maps_have_no_more_ranges_than_the_kernel_takes)
{
	struct arena mem = {0};
	struct err e = {0};
	json_t *v = json_array();
	const struct at at = {NULL, "c", 0, v, &mem};
	struct spec_idmaps m;

	for (int i = 0; i < SPEC_IDMAPS_MAX; i++)
		json_array_append_new(v, json_pack("{s:i, s:i, s:i}", "containerID", 2 * i,
						 "hostID", 3 * i, "size", 2));
	assert_int_equal(spec_idmaps(&at, &m, &e), 0);
	assert_int_equal(m.n, SPEC_IDMAPS_MAX);
	json_array_append_new(v, json_object());
	assert_int_equal(spec_idmaps(&at, &m, &e), -1);
	assert_string_equal(e.text, "c: more than 340 elements");
	json_decref(v);
	arena_fini(&mem);
}

RUN_TESTS(cmocka_unit_test(namespaces_are_new_or_joined),
	cmocka_unit_test(a_joined_user_namespace_may_repeat_its_maps_or_not),
	cmocka_unit_test(devices_are_read), cmocka_unit_test(the_rest_is_read),
	cmocka_unit_test(every_way_of_propagation_is_known),
	cmocka_unit_test(errors_name_the_place),
	cmocka_unit_test(id_maps_have_no_more_ranges_than_the_kernel_takes))
