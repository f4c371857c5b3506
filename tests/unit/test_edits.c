#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/json.h"
#include "gpu/edits.h"

static json_t *config(const char *text)
{
	json_t *j = json_loads(text, 0, NULL);

	assert_non_null(j);
	return j;
}

static void apply_ok(const struct gpu_edits *x, json_t *c)
{
	struct err e = {0};

	if (gpu_edits_apply(x, NULL, c, &e) < 0)
		fail_msg("%s", e.text);
}

static void is(const json_t *got, const char *want)
{
	auto_json json_t *w = json_loads(want, JSON_DECODE_ANY, NULL);

	assert_non_null(w);
	if (!got || !json_equal(got, w)) {
		char *text = got ? json_dumps(got, JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

		print_error("got  %s\nwant %s\n", text ? text : "nothing", want);
		free(text);
		fail();
	}
}

static const json_t *at(const json_t *c, const char *a, const char *b)
{
	return json_object_get(json_object_get(c, a), b);
}

static const struct edit_node null_node = {.path = "/dev/null", .access = "rw"};

TEST(what_a_node_leaves_open_comes_from_the_host)
{
	auto_json json_t *c = config("{\"process\":{\"user\":{\"uid\":1000,\"gid\":0}}}");
	struct gpu_edits x;

	gpu_edits_init(&x);
	gpu_edits_node(&x,
		&(struct edit_node){.path = "/dev/x", .host_path = "/dev/null", .access = "rwm"});
	apply_ok(&x, c);
	is(at(c, "linux", "devices"), "[{\"path\":\"/dev/x\",\"type\":\"c\",\"major\":1,\"minor\":"
				      "3,\"fileMode\":438,\"uid\":1000}]");
	is(json_object_get(at(c, "linux", "resources"), "devices"),
		"[{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":3,\"access\":\"rwm\"}]");
	gpu_edits_fini(&x);
}

TEST(a_node_of_the_same_path_is_replaced_and_without_access_has_no_rule)
{
	auto_json json_t *c = config("{\"linux\":{\"devices\":[{\"path\":\"//dev/./null\"},{"
				     "\"path\":\"/dev/nullx\"}]}}");
	struct gpu_edits x;

	gpu_edits_init(&x);
	gpu_edits_node(&x, &(struct edit_node){.path = "/dev/null", .host_path = "/dev/zero"});
	gpu_edits_node(&x, &(struct edit_node){.path = "/dev//null",
				   .access = "",
				   .has_mode = true,
				   .mode = 0600,
				   .has_gid = true,
				   .gid = 7});
	assert_int_equal(x.nnodes, 1);
	apply_ok(&x, c);
	is(at(c, "linux", "devices"), "[{\"path\":\"/dev/nullx\"},{\"path\":\"/dev//null\","
				      "\"type\":\"c\",\"major\":1,\"minor\":3,\"fileMode\":384,"
				      "\"gid\":7}]");
	is(json_object_get(at(c, "linux", "resources"), "devices"), "[]");
	gpu_edits_fini(&x);
}

TEST(a_node_that_is_known_need_not_be_on_the_host)
{
	auto_json json_t *c = config("{}");
	struct gpu_edits x;

	gpu_edits_init(&x);
	gpu_edits_node(&x, &(struct edit_node){.path = "/dev/svrun-none",
				   .type = 'u',
				   .has_number = true,
				   .major = 250,
				   .minor = 9,
				   .access = "rw"});
	gpu_edits_node(&x, &(struct edit_node){.path = "/dev/svrun-pipe", .type = 'p'});
	apply_ok(&x, c);
	is(at(c, "linux", "devices"),
		"[{\"path\":\"/dev/svrun-none\",\"type\":\"c\",\"major\":250,\"minor\":9},"
		"{\"path\":\"/dev/svrun-pipe\",\"type\":\"p\"}]");
	gpu_edits_fini(&x);
}

struct refused {
	struct edit_node node;
	enum err_kind kind;
	const char *text;
};

TEST(nodes_that_nobody_may_have_or_that_are_something_else_are_refused)
{
	static const struct refused cases[] = {
		{{.path = "/dev/none/x"}, ERR_NOT_FOUND, "device /dev/none/x is not on this host"},
		{{.path = "/dev/a",
			 .host_path = "/dev/none",
			 .type = 'c',
			 .has_number = true,
			 .major = 9,
			 .minor = 9},
			ERR_NOT_FOUND, "device /dev/none is not on this host"},
		{{.path = "/dev/a", .host_path = "/dev/fd"}, ERR_DENIED,
			"/dev/fd is no device on this host, but a link"},
		{{.path = "/dev/a", .host_path = "/etc"}, ERR_DENIED,
			"/etc is no device on this host"},
		{{.path = "/dev/null", .type = 'b'}, ERR_DENIED,
			"device /dev/null is of type 'c' on this host, asked for is 'b'"},
		{{.path = "/dev/null", .type = 'c', .has_number = true, .major = 195}, ERR_DENIED,
			"device /dev/null is 1:3 on this host, asked for is 195:0"},
		{{.path = "/dev/gpu", .type = 'c', .has_number = true, .major = 1, .minor = 1},
			ERR_DENIED,
			"device /dev/gpu leads to the host's memory: no container gets it"},
		{{.path = "/dev/gpu", .type = 'u', .has_number = true, .major = 1, .minor = 4},
			ERR_DENIED,
			"device /dev/gpu leads to the host's I/O ports: no container gets it"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_json json_t *c = config("{}");
		struct err e = {0};
		struct gpu_edits x;

		gpu_edits_init(&x);
		gpu_edits_node(&x, &cases[i].node);
		assert_int_equal(gpu_edits_apply(&x, NULL, c, &e), -1);
		assert_string_equal(e.text, cases[i].text);
		assert_int_equal(e.kind, cases[i].kind);
		gpu_edits_fini(&x);
	}
}

static bool is_given(struct edit_node n, bool disks)
{
	auto_json json_t *c = config("{}");
	struct gpu_edits x;
	int rc;

	n.path = "/dev/svrun-none";
	n.has_number = true;
	gpu_edits_init(&x);
	x.disks = disks;
	gpu_edits_node(&x, &n);
	rc = gpu_edits_apply(&x, NULL, c, NULL);
	gpu_edits_fini(&x);
	return rc == 0;
}

TEST(what_is_the_host_itself_is_given_to_nobody_and_its_disks_to_those_who_may)
{
	static const struct {
		struct edit_node node;
		bool always, disks;
	} cases[] = {
		{{.type = 'b', .major = 254, .minor = 0}, false, true},
		{{.type = 'c', .major = 21, .minor = 0}, false, true},    /* sg0 */
		{{.type = 'c', .major = 1, .minor = 11}, false, false},   /* kmsg */
		{{.type = 'c', .major = 202, .minor = 3}, false, false},  /* msr */
		{{.type = 'c', .major = 203, .minor = 3}, true, true},    /* cpuid */
		{{.type = 'c', .major = 4, .minor = 1}, false, false},    /* tty1 */
		{{.type = 'c', .major = 4, .minor = 64}, true, true},     /* ttyS0 */
		{{.type = 'c', .major = 5, .minor = 1}, false, false},    /* console */
		{{.type = 'c', .major = 13, .minor = 700}, false, false}, /* an input */
		{{.type = 'c', .major = 10, .minor = 236}, false, false}, /* mapper/control */
		{{.type = 'c', .major = 10, .minor = 237}, false, false}, /* loop-control */
		{{.type = 'b', .major = 1, .minor = 1}, false, true},     /* ram1 */
		{{.type = 'c', .major = 195, .minor = 0}, true, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct edit_node *n = &cases[i].node;

		if (is_given(*n, false) != cases[i].always || is_given(*n, true) != cases[i].disks)
			fail_msg("%c %u:%u", n->type, n->major, n->minor);
	}
}

TEST(the_memory_of_the_host_is_known_by_its_number_under_any_name)
{
	char dir[] = "/tmp/svrun-edits-XXXXXX", path[64];
	auto_json json_t *c = config("{}");
	struct err e = {0};
	struct gpu_edits x;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/gpu0", dir);
	if (mknod(path, S_IFCHR | 0600, makedev(1, 1)) < 0) {
		rmdir(dir);
		skip();
	}
	gpu_edits_init(&x);
	gpu_edits_node(&x, &(struct edit_node){.path = "/dev/gpu0", .host_path = path});
	assert_int_equal(gpu_edits_apply(&x, NULL, c, &e), -1);
	assert_non_null(strstr(e.text, "host's memory"));
	gpu_edits_fini(&x);
	unlink(path);
	rmdir(dir);
}

TEST(mounts_go_behind_what_they_are_in_and_before_what_is_in_them)
{
	static const char *const options[] = {"ro", "rbind"};
	auto_json json_t *c =
		config("{\"mounts\":[{\"destination\":\"/proc\"},{\"destination\":\"/usr/lib\"},"
		       "{\"destination\":\"/usr/share/x/y\"},{\"destination\":\"/z\"},"
		       "{\"destination\":\"/old/\"}]}");
	json_t *m;
	char order[256] = "";
	size_t i, n = 0;
	struct gpu_edits x;

	gpu_edits_init(&x);
	gpu_edits_mount(&x, &(struct edit_mount){"/tmp", "/usr/lib/a/b", NULL, options, 2});
	gpu_edits_mount(&x, &(struct edit_mount){"/tmp", "/usr/lib/a", NULL, NULL, 0});
	gpu_edits_mount(&x, &(struct edit_mount){"/", "/usr/share", NULL, NULL, 0});
	gpu_edits_mount(&x, &(struct edit_mount){"/tmp", "/usr/share/", "bind", NULL, 0});
	gpu_edits_mount(&x, &(struct edit_mount){"none", "/old", "tmpfs", NULL, 0});
	assert_int_equal(x.nmounts, 4);
	apply_ok(&x, c);
	json_array_foreach (json_object_get(c, "mounts"), i, m)
		n += (size_t)snprintf(order + n, sizeof(order) - n, "%s ",
			json_string_value(json_object_get(m, "destination")));
	assert_string_equal(order,
		"/proc /usr/lib /usr/share/ /usr/share/x/y /z /old /usr/lib/a /usr/lib/a/b ");
	is(json_array_get(json_object_get(c, "mounts"), 5),
		"{\"destination\":\"/old\",\"type\":\"tmpfs\",\"source\":\"none\",\"options\":[]}");
	is(json_array_get(json_object_get(c, "mounts"), 6),
		"{\"destination\":\"/usr/lib/a\",\"type\":\"bind\",\"source\":\"/tmp\",\"options\":"
		"[\"rbind\"]}");
	is(json_array_get(json_object_get(c, "mounts"), 7),
		"{\"destination\":\"/usr/lib/a/b\",\"type\":\"bind\",\"source\":\"/tmp\","
		"\"options\":[\"ro\",\"rbind\"]}");
	gpu_edits_fini(&x);
}

TEST(a_mount_whose_source_has_gone_is_named)
{
	auto_json json_t *c = config("{}");
	struct err e = {0};
	struct gpu_edits x;

	gpu_edits_init(&x);
	gpu_edits_mount(&x, &(struct edit_mount){"/none/lib.so", "/usr/lib.so", NULL, NULL, 0});
	assert_int_equal(gpu_edits_apply(&x, NULL, c, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(e.text, "/usr/lib.so: mount /none/lib.so: No such file or directory");
	gpu_edits_fini(&x);
}

TEST(variables_are_replaced_and_groups_are_there_once)
{
	auto_json json_t *c = config("{\"process\":{\"env\":[\"A=1\",\"AB=2\",7],\"user\":{"
				     "\"additionalGids\":[44]}}}");
	struct gpu_edits x;

	gpu_edits_init(&x);
	gpu_edits_env(&x, "A", "x");
	gpu_edits_env(&x, "A", "y=z");
	gpu_edits_env(&x, "NEW", "");
	gpu_edits_gid(&x, 0);
	gpu_edits_gid(&x, 44);
	gpu_edits_gid(&x, 109);
	gpu_edits_gid(&x, 109);
	apply_ok(&x, c);
	is(at(c, "process", "env"), "[\"A=y=z\",\"AB=2\",7,\"NEW=\"]");
	is(json_object_get(at(c, "process", "user"), "additionalGids"), "[44,109]");
	gpu_edits_fini(&x);
}

TEST(hooks_classes_and_interfaces_get_where_the_config_has_them)
{
	static const char *args[] = {"chk", "-v"}, *env[] = {"K=V"}, *schemata[] = {"L3:0=f"};
	auto_json json_t *c = config("{\"hooks\":{\"poststop\":[]},\"linux\":{\"intelRdt\":{"
				     "\"closID\":\"old\"}}}");
	struct gpu_edits x;

	gpu_edits_init(&x);
	gpu_edits_hook(
		&x, &(struct edit_hook){"createContainer", "/bin/chk", {args, 2}, {env, 1}, 5});
	gpu_edits_hook(&x, &(struct edit_hook){.stage = "createContainer", .path = "/bin/two"});
	gpu_edits_hook(&x, &(struct edit_hook){.stage = "createContainer", .path = "/bin/two"});
	gpu_edits_netdev(&x, "eth1", "net0");
	gpu_edits_netdev(&x, "eth1", "net1");
	x.rdt = (struct edit_rdt){.given = true,
		.monitor = true,
		.clos_id = "gpu",
		.l3 = "L3:0=f",
		.schemata = {schemata, 1}};
	apply_ok(&x, c);
	is(json_object_get(c, "hooks"),
		"{\"poststop\":[],\"createContainer\":[{\"path\":\"/bin/chk\",\"args\":[\"chk\","
		"\"-v\"],\"env\":[\"K=V\"],\"timeout\":5},{\"path\":\"/bin/two\"}]}");
	is(at(c, "linux", "netDevices"), "{\"eth1\":{\"name\":\"net1\"}}");
	is(at(c, "linux", "intelRdt"), "{\"closID\":\"gpu\",\"l3CacheSchema\":\"L3:0=f\","
				       "\"schemata\":[\"L3:0=f\"],\"enableMonitoring\":true}");
	gpu_edits_fini(&x);
}

TEST(nobody_with_a_gpu_may_make_nodes)
{
	auto_json json_t *c = config("{\"process\":{\"capabilities\":{\"bounding\":[\"CAP_KILL\","
				     "\"CAP_MKNOD\"],\"effective\":[\"CAP_MKNOD\"]}}}");
	struct gpu_edits x;

	gpu_edits_init(&x);
	x.no_mknod = true;
	assert_false(gpu_edits_empty(&x));
	apply_ok(&x, c);
	is(at(c, "process", "capabilities"), "{\"bounding\":[\"CAP_KILL\"],\"effective\":[]}");
	gpu_edits_fini(&x);
}

TEST(a_config_of_other_types_is_an_error_and_no_crash)
{
	static const char *const cases[] = {"[]", "{\"linux\":7}", "{\"linux\":{\"devices\":{}}}",
		"{\"linux\":{\"resources\":\"x\"}}", "{\"mounts\":{}}", "{\"process\":[]}",
		"{\"process\":{\"env\":\"x\"}}", "{\"process\":{\"user\":1}}", "{\"hooks\":[]}",
		"{\"hooks\":{\"createContainer\":{}}}", "{\"linux\":{\"netDevices\":[]}}"};
	struct gpu_edits x;

	gpu_edits_init(&x);
	gpu_edits_node(&x, &null_node);
	gpu_edits_mount(&x, &(struct edit_mount){"/tmp", "/a", NULL, NULL, 0});
	gpu_edits_env(&x, "A", "x");
	gpu_edits_gid(&x, 5);
	gpu_edits_hook(&x, &(struct edit_hook){.stage = "createContainer", .path = "/bin/two"});
	gpu_edits_netdev(&x, "eth1", "net0");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_json json_t *c = config(cases[i]);
		struct err e = {0};

		if (gpu_edits_apply(&x, NULL, c, &e) == 0)
			fail_msg("%s was taken", cases[i]);
		assert_int_equal(e.kind, ERR_CORRUPT);
	}
	gpu_edits_fini(&x);
}

TEST(nothing_to_do_changes_nothing)
{
	auto_json json_t *c = config("{\"x\":1}");
	struct gpu_edits x;

	gpu_edits_init(&x);
	assert_true(gpu_edits_empty(&x));
	apply_ok(&x, c);
	is(c, "{\"x\":1}");
	gpu_edits_fini(&x);
}

RUN_TESTS(cmocka_unit_test(what_a_node_leaves_open_comes_from_the_host),
	cmocka_unit_test(a_node_of_the_same_path_is_replaced_and_without_access_has_no_rule),
	cmocka_unit_test(a_node_that_is_known_need_not_be_on_the_host),
	cmocka_unit_test(nodes_that_nobody_may_have_or_that_are_something_else_are_refused),
	cmocka_unit_test(what_is_the_host_itself_is_given_to_nobody_and_its_disks_to_those_who_may),
	cmocka_unit_test(the_memory_of_the_host_is_known_by_its_number_under_any_name),
	cmocka_unit_test(mounts_go_behind_what_they_are_in_and_before_what_is_in_them),
	cmocka_unit_test(a_mount_whose_source_has_gone_is_named),
	cmocka_unit_test(variables_are_replaced_and_groups_are_there_once),
	cmocka_unit_test(hooks_classes_and_interfaces_get_where_the_config_has_them),
	cmocka_unit_test(nobody_with_a_gpu_may_make_nodes),
	cmocka_unit_test(a_config_of_other_types_is_an_error_and_no_crash),
	cmocka_unit_test(nothing_to_do_changes_nothing))
