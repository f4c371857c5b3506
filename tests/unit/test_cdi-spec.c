#include "tests/unit/test.h"

#include <stdlib.h>

#include "base/json.h"
#include "gpu/cdi-spec.h"

/* A document with one member more, or one instead of its own. */
static char *spec_with(const char *version, const char *kind, const char *device, const char *rest)
{
	return mem_printf("{\"cdiVersion\":\"%s\",\"kind\":\"%s\",\"devices\":[%s]%s%s}", version,
		kind, device, *rest ? "," : "", rest);
}
#define DEVICE(edits) "{\"name\":\"dev1\",\"containerEdits\":" edits "}"
#define ENV "{\"env\":[\"A=b\"]}"

static int check(const char *text, struct err *e)
{
	auto_json json_t *spec = cdi_read("x.json", text, strlen(text), e);

	return spec ? 0 : -1;
}

struct edits {
	const char *json, *fault; /* NULL: none */
};

/* Each in a device, and as the document's own. The upstream project's cases of its
 * container-edits_test.go and schema's testdata are among them. */
static const struct edits edits[] = {
	{"{\"env\":[\"BAR=BARVALUE1\"]}", NULL},
	{"{\"env\":[\"A=\"]}", NULL},
	{"{\"env\":[\"\"]}", "env/0: expected NAME=VALUE"},
	{"{\"env\":[\"=foo\"]}", "env/0: expected NAME=VALUE"},
	{"{\"env\":[\"FOOBAR\"]}", "env/0: expected NAME=VALUE"},
	{"{\"env\":[1]}", "env/0: expected a text"},
	{"{\"env\":\"A=b\"}", "env: expected a list"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/null\"}]}", NULL},
	{"{\"deviceNodes\":[{\"path\":\"/dev/null\",\"type\":\"c\"}]}", NULL},
	{"{\"deviceNodes\":[{\"path\":\"/dev/null\",\"type\":\"b\",\"permissions\":\"rwm\"}]}",
		NULL},
	{"{\"deviceNodes\":[{\"path\":\"/dev/null\",\"type\":\"u\",\"major\":1,\"minor\":3,"
	 "\"fileMode\":420,\"uid\":1,\"gid\":4294967295,\"permissions\":\"none\",\"hostPath\":"
	 "\"/dev/x\"}]}",
		NULL},
	{"{\"deviceNodes\":[{\"path\":\"\"}]}", "deviceNodes/0/path: expected an absolute path"},
	{"{\"deviceNodes\":[{\"path\":\"dev\"}]}", "deviceNodes/0/path: expected an absolute path"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/../etc\"}]}", "deviceNodes/0/path: a path with '..'"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/..\"}]}", "deviceNodes/0/path: a path with '..'"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/..x\"}]}", NULL},
	{"{\"deviceNodes\":[{}]}", "deviceNodes/0: 'path' is missing"},
	{"{\"deviceNodes\":[null]}", "deviceNodes/0: expected an object"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/vendorctl\",\"type\":\"f\"}]}",
		"deviceNodes/0/type: expected b, c, u or p"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/vendorctl\",\"permissions\":\"to land\"}]}",
		"deviceNodes/0/permissions: expected letters of rwm, or none"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/x\",\"major\":-1}]}",
		"deviceNodes/0/major: expected a number from 0 to 4294967295"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/x\",\"minor\":4294967296}]}",
		"deviceNodes/0/minor: expected a number from 0 to 4294967295"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/x\",\"major\":\"1\"}]}",
		"deviceNodes/0/major: expected a number"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/x\",\"major\":1.0}]}",
		"deviceNodes/0/major: expected a number"},
	{"{\"deviceNodes\":[{\"path\":\"/dev/x\",\"hostpath\":\"/dev/y\"}]}",
		"deviceNodes/0: unknown member 'hostpath'; did you mean 'hostPath'?"},
	{"{\"deviceNodes\":[{\"containerPath\":\"/dev/card1\",\"path\":\"/dev/card1\"}]}",
		"deviceNodes/0: unknown member 'containerPath'"},
	{"{\"mounts\":[{\"hostPath\":\"/dev/vendorctl\",\"containerPath\":\"/dev/vendorctl\"}]}",
		NULL},
	{"{\"mounts\":[{\"hostPath\":\"tmpfs\",\"containerPath\":\"/x\",\"type\":\"tmpfs\","
	 "\"options\":[\"nosuid\"]}]}",
		NULL},
	{"{\"mounts\":[{\"hostPath\":\"\",\"containerPath\":\"/dev/vendorctl\"}]}",
		"mounts/0/hostPath: is empty"},
	{"{\"mounts\":[{\"hostPath\":\"x\",\"containerPath\":\"/dev/vendorctl\"}]}",
		"mounts/0/hostPath: expected an absolute path"},
	{"{\"mounts\":[{\"hostPath\":\"/a/../b\",\"containerPath\":\"/x\"}]}",
		"mounts/0/hostPath: a path with '..'"},
	{"{\"mounts\":[{\"hostPath\":\"/dev/vendorctl\",\"containerPath\":\"\"}]}",
		"mounts/0/containerPath: expected an absolute path"},
	{"{\"mounts\":[{\"hostPath\":\"/dev/vendorctl\"}]}",
		"mounts/0: 'containerPath' is missing"},
	{"{\"mounts\":[{\"hostPath\":\"/a\",\"containerPath\":\"/b\",\"options\":\"ro\"}]}",
		"mounts/0/options: expected a list"},
	{"{\"hooks\":[{\"hookName\":\"prestart\",\"path\":\"/bin/h\",\"args\":[\"--verbose\"],"
	 "\"env\":[\"V=1\"],\"timeout\":5}]}",
		NULL},
	{"{\"hooks\":[{\"hookName\":\"poststop\",\"path\":\"/bin/h\"}]}", NULL},
	{"{\"hooks\":[{\"hookName\":\"prestart\"}]}", "hooks/0: 'path' is missing"},
	{"{\"hooks\":[{\"hookName\":\"prestart\",\"path\":\"h\"}]}",
		"hooks/0/path: expected an absolute path"},
	{"{\"hooks\":[{\"hookName\":\"misCreateRuntime\",\"path\":\"/bin/h\"}]}",
		"hooks/0/hookName: is no hook of the runtime"},
	{"{\"hooks\":[{\"hookName\":\"poststart\",\"path\":\"/bin/h\",\"env\":[\"=value2\"]}]}",
		"hooks/0/env/0: expected NAME=VALUE"},
	{"{\"hooks\":[{\"create-container\":{\"path\":\"/bin/vendor-hook\"}}]}",
		"hooks/0: unknown member 'create-container'"},
	{"{\"additionalGids\":[0,44,4294967295]}", NULL},
	{"{\"additionalGids\":[-1]}", "additionalGids/0: expected a number from 0 to 4294967295"},
	{"{\"additionalGids\":[\"video\"]}", "additionalGids/0: expected a number"},
	{"{\"intelRdt\":{\"closID\":\"gpu\",\"l3CacheSchema\":\"L3:0=f\",\"memBwSchema\":\"MB:0="
	 "9\","
	 "\"schemata\":[\"L2:0=1\"],\"enableMonitoring\":true}}",
		NULL},
	{"{\"intelRdt\":{\"closID\":\"/\"}}", NULL},
	{"{\"intelRdt\":{\"closID\":\"..\"}}", "intelRdt/closID: is no name of a folder"},
	{"{\"intelRdt\":{\"closID\":\"a/b\"}}", "intelRdt/closID: is no name of a folder"},
	{"{\"intelRdt\":{\"enableCMT\":true}}", "intelRdt: unknown member 'enableCMT'"},
	{"{\"intelRdt\":{\"enableMonitoring\":1}}",
		"intelRdt/enableMonitoring: expected true or false"},
	{"{\"netDevices\":[{\"hostInterfaceName\":\"eth1\",\"name\":\"net0\"}]}", NULL},
	{"{\"netDevices\":[{\"hostInterfaceName\":\"eth1\"}]}", "netDevices/0: 'name' is missing"},
	{"{\"netDevices\":[{\"hostInterfaceName\":\"\",\"name\":\"x\"}]}",
		"netDevices/0/hostInterfaceName: is empty"},
	{"{\"netDevices\":[{\"hostInterfaceName\":\"eth1\",\"name\":\"a\"},{\"hostInterfaceName\":"
	 "\"eth1\",\"name\":\"b\"}]}",
		": netDevices: eth1 or b is there twice"},
	{"{\"netDevices\":[{\"hostInterfaceName\":\"eth1\",\"name\":\"a\"},{\"hostInterfaceName\":"
	 "\"eth2\",\"name\":\"a\"}]}",
		": netDevices: eth2 or a is there twice"},
	{"{\"deviceCgroupRules\":[]}", ": unknown member 'deviceCgroupRules'"},
	{"{\"env\":[\"A=b\"],\"nodes\":[]}", ": unknown member 'nodes'"},
	{"[]", ": expected an object"},
};

/* fault stands behind the place. */
static void expect(const char *text, const char *where, const char *fault)
{
	struct err e = {0};
	int rc = check(text, &e);

	if (!fault && rc < 0)
		fail_msg("%s\n%s", e.text, text);
	if (!fault)
		return;
	if (rc == 0)
		fail_msg("%s was taken: %s", text, fault);
	assert_int_equal(e.kind, ERR_CORRUPT);
	auto_free char *want = mem_printf("%s%s%s", where, *fault == ':' ? "" : "/", fault);
	if (!strstr(e.text, want))
		fail_msg("'%s' is not in '%s'", want, e.text);
}

TEST(edits_are_checked_in_devices_and_in_the_document)
{
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		auto_free char *device =
			mem_printf("{\"name\":\"dev1\",\"containerEdits\":%s}", edits[i].json);
		auto_free char *own = mem_printf("\"containerEdits\":%s", edits[i].json);
		auto_free char *a = spec_with("1.1.0", "vendor.com/device", device, "");
		auto_free char *b = spec_with("1.1.0", "vendor.com/device", DEVICE(ENV), own);

		expect(a, "/devices/0/containerEdits", edits[i].fault);
		expect(b, " /containerEdits", edits[i].fault);
	}
}

struct document {
	const char *version, *kind, *device, *rest, *fault;
};

TEST(documents_are_checked_with_the_version_that_their_members_need)
{
	static const struct document cases[] = {
		{"0.3.0", "v.com/dev", DEVICE(ENV), "", NULL},
		{"v1.1.0", "v.com/dev", DEVICE(ENV), "", NULL},
		{"0.8.0", "v.com/dev", DEVICE(ENV), "", NULL},
		{"1.0.0", "v.com/dev", DEVICE(ENV), "", NULL},
		{"0.2.0", "v.com/dev", DEVICE(ENV), "",
			"/cdiVersion: is no version of CDI that is read: 0.3.0 to 1.1.0"},
		{"1.2.0", "v.com/dev", DEVICE(ENV), "", "/cdiVersion: is no version"},
		{"0.1", "v.com/dev", DEVICE(ENV), "", "/cdiVersion: is no version"},
		{"", "v.com/dev", DEVICE(ENV), "", "/cdiVersion: is no version"},
		{"0.3.0", "v.com/dev",
			DEVICE("{\"mounts\":[{\"hostPath\":\"/a\",\"containerPath\":\"/b\","
			       "\"type\":\"bind\"}]}"),
			"",
			"/cdiVersion: 0.3.0, but /devices/0/containerEdits/mounts/0/type needs "
			"0.4.0"},
		{"0.3.0", "v.com/dev",
			DEVICE("{\"mounts\":[{\"hostPath\":\"/a\",\"containerPath\":\"/b\","
			       "\"type\":\"\"}]}"),
			"", NULL},
		{"0.4.0", "v.com/dev",
			DEVICE("{\"deviceNodes\":[{\"path\":\"/d\",\"hostPath\":\"/e\"}]}"), "",
			"/hostPath needs 0.5.0"},
		{"0.4.0", "v.com/dev", "{\"name\":\"0\",\"containerEdits\":" ENV "}", "",
			"/devices/0/name needs 0.5.0"},
		{"0.5.0", "v.com/dev", "{\"name\":\"0\",\"containerEdits\":" ENV "}", "", NULL},
		{"0.5.0", "v.com/dev.x", DEVICE(ENV), "", "/kind needs 0.6.0"},
		{"0.5.0", "v.com/dev", DEVICE(ENV), "\"annotations\":{\"a\":\"b\"}",
			"/annotations needs 0.6.0"},
		{"0.6.0", "v.com/dev", DEVICE("{\"additionalGids\":[1]}"), "",
			"/additionalGids needs 0.7.0"},
		{"0.6.0", "v.com/dev", DEVICE("{\"env\":[\"A=b\"],\"additionalGids\":[]}"), "",
			NULL},
		{"0.6.0", "v.com/dev", DEVICE("{\"intelRdt\":{}}"), "", "/intelRdt needs 0.7.0"},
		{"1.0.0", "v.com/dev", DEVICE("{\"intelRdt\":{\"schemata\":[\"L3:0=ff\"]}}"), "",
			"/intelRdt/schemata needs 1.1.0"},
		{"1.0.0", "v.com/dev", DEVICE("{\"intelRdt\":{\"enableMonitoring\":true}}"), "",
			"/intelRdt/enableMonitoring needs 1.1.0"},
		{"1.0.0", "v.com/dev", DEVICE("{\"intelRdt\":{\"enableMonitoring\":false}}"), "",
			NULL},
		{"1.0.0", "v.com/dev",
			DEVICE("{\"netDevices\":[{\"hostInterfaceName\":\"a\",\"name\":\"b\"}]}"),
			"", "/netDevices needs 1.1.0"},
		{"1.0.0", "v.com/dev",
			DEVICE("{\"deviceNodes\":[{\"path\":\"/d\",\"permissions\":\"none\"}]}"),
			"", "/permissions needs 1.1.0"},
		{"1.0.0", "v.com/dev", DEVICE("{}"), "",
			"/devices/0/containerEdits: is empty: a device changes something"},
		{"1.0.0", "v.com/dev", DEVICE("{\"env\":[],\"mounts\":null}"), "",
			"/devices/0/containerEdits: is empty"},
		{"1.0.0", "v.com/dev", DEVICE(ENV), "\"containerEdits\":{}", NULL},
		{"1.0.0", "v.com/dev", DEVICE(ENV), "\"containerEdits\":null", NULL},
		{"1.0.0", "v.com/dev", "{\"name\":\"dev1\"}", "",
			"/devices/0: 'containerEdits' is missing"},
		{"1.0.0", "v.com/dev", "{\"containerEdits\":" ENV "}", "",
			"/devices/0: 'name' is missing"},
		{"1.0.0", "v.com/dev", "", "", "devices: there is none"},
		{"1.0.0", "v.com/dev", DEVICE(ENV) "," DEVICE(ENV), "",
			"devices: 'dev1' is there twice"},
		{"1.0.0", "v.com/dev", "{\"name\":\"myDevice\",\"ociEdits\":{}}", "",
			"unknown member 'ociEdits'"},
		{"1.0.0", "v.com/dev", DEVICE(ENV), "\"extra\":1", "unknown member 'extra'"},
		{"1.0.0", "v.com/dev", DEVICE(ENV), "\"annotations\":{\"a\":1}",
			"/annotations: 'a': expected a text"},
		{"1.0.0", "v.com", DEVICE(ENV), "", "/kind: expected vendor/class"},
		{"1.0.0", "/dev", DEVICE(ENV), "", "/kind: is empty"},
		{"1.0.0", "v/", DEVICE(ENV), "", "/kind: is empty"},
		{"1.0.0", "1v/d", DEVICE(ENV), "", "/kind: does not begin with a letter"},
		{"1.0.0", "v/d_", DEVICE(ENV), "", "/kind: does not end with a letter or a digit"},
		{"1.0.0", "v/d/e", DEVICE(ENV), "", "/kind: has other characters"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *text =
			spec_with(cases[i].version, cases[i].kind, cases[i].device, cases[i].rest);
		struct err e = {0};
		int rc = check(text, &e);

		if (!cases[i].fault && rc < 0)
			fail_msg("%s\n%s", e.text, text);
		if (cases[i].fault && (rc == 0 || !strstr(e.text, cases[i].fault)))
			fail_msg("'%s', not '%s'", e.text, cases[i].fault);
	}
}

TEST(faults_are_told_with_line_and_column)
{
	static const char json[] = "{\n \"cdiVersion\": \"0.5.0\",\n \"kind\": \"v.com/dev\",\n "
				   "\"devices\": [\n  {\"name\": \"a b\"}\n ]\n}\n";
	static const char yaml[] = "cdiVersion: 0.5.0\nkind: v.com/dev\ndevices:\n- name: 0\n"
				   "  containerEdits:\n    deviceNodes:\n    - path: dev\n";
	struct err e = {0};

	assert_null(cdi_read("a.json", json, sizeof(json) - 1, &e));
	assert_string_equal(e.text, "a.json:5:12: /devices/0/name: has other characters than "
				    "letters, digits and _-.:");
	e = (struct err){0};
	assert_null(cdi_read("a.yaml", yaml, sizeof(yaml) - 1, &e));
	assert_string_equal(e.text,
		"a.yaml:7:13: /devices/0/containerEdits/deviceNodes/0/path: expected an absolute "
		"path");
}

static bool count(void *ctx, const char *pointer, const char *text)
{
	(void)pointer;
	(void)text;
	++*(size_t *)ctx;
	return true;
}

TEST(all_faults_are_found)
{
	static const char text[] =
		"{\"cdiVersion\":\"0.3.0\",\"kind\":\"x\",\"devices\":[{\"name\":\"-\"},{\"name\":"
		"\"a\","
		"\"containerEdits\":{\"env\":[\"A\",\"B\"],\"additionalGids\":[1]}}],\"z\":1}";
	auto_json json_t *spec = cdi_parse("x.json", text, sizeof(text) - 1, NULL);
	size_t n = 0;
	struct err e = {0};

	assert_int_equal(cdi_check(spec, count, &n), 7);
	assert_int_equal(n, 7);
	assert_int_equal(cdi_validate(spec, "x.json", &e), -1);
	assert_string_equal(e.text, "x.json: unknown member 'z'");
}

TEST(yaml_specs_of_the_toolkit_are_read)
{
	static const char text[] =
		"---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  deviceNodes:\n"
		"  - path: /dev/nvidiactl\n    fileMode: 0o666\n  env:\n  - "
		"NVIDIA_VISIBLE_DEVICES=void\n  hooks:\n  - args:\n    - nvidia-cdi-hook\n"
		"    - create-symlinks\n    - --link\n    - libcuda.so.1::/usr/lib64/libcuda.so\n"
		"    env:\n    - NVIDIA_CTK_DEBUG=false\n    hookName: createContainer\n"
		"    path: /usr/bin/nvidia-cdi-hook\n    timeout: 5\n  mounts:\n"
		"  - containerPath: /usr/bin/nvidia-smi\n    hostPath: /usr/bin/nvidia-smi\n"
		"    options: [ro, nosuid, nodev, bind]\ndevices:\n- name: 0\n  containerEdits:\n"
		"    deviceNodes:\n    - path: /dev/nvidia0\n- name: all\n  containerEdits:\n"
		"    deviceNodes:\n    - path: /dev/nvidia0\n";
	struct err e = {0};
	auto_json json_t *spec = cdi_read("n.yaml", text, sizeof(text) - 1, &e);

	if (!spec)
		fail_msg("%s", e.text);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(spec, "devices"), 0), "name")),
		"0");
}

/* What would take long, or much memory, is refused first. */
TEST(much_is_refused)
{
	const size_t n = 400001;
	auto_buf struct buf b = BUF_INIT(CDI_FILE_MAX * 2);
	struct err e = {0};

	buf_printf(&b, "{\"cdiVersion\":\"1.0.0\",\"kind\":\"v/d\",\"devices\":[");
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "{},");
	buf_printf(&b, "{}]}");
	assert_null(cdi_read("x.json", b.data, b.len, &e));
	assert_string_equal(e.text, "x.json: more than 400000 values");

	b.len = 0;
	e = (struct err){0};
	buf_printf(&b, "{\"cdiVersion\":\"1.0.0\",\"kind\":\"v/d\",\"devices\":[");
	for (size_t i = 0; i < CDI_DEVICES_MAX; i++)
		buf_printf(&b, "{\"name\":\"d%zu\",\"containerEdits\":{\"env\":[\"A=b\"]}},", i);
	buf_printf(&b, "{\"name\":\"e\",\"containerEdits\":{\"env\":[\"A=b\"]}}]}");
	assert_null(cdi_read("x.json", b.data, b.len, &e));
	assert_string_equal(e.text, "x.json:1:46: /devices: more than 16384");

	b.len = 0;
	e = (struct err){0};
	for (size_t i = 0; i < CDI_FILE_MAX; i += 16)
		buf_printf(&b, "                ");
	buf_printf(&b, "{}");
	assert_null(cdi_read("x.json", b.data, b.len, &e));
	assert_string_equal(e.text, "x.json: longer than the limit of 4194304 bytes");
}

TEST(what_is_no_text_is_an_error)
{
	static const struct {
		const char *text;
		size_t n;
	} cases[] = {{"", 0}, {"{\"a\0\":1}", 8}, {"{\"a\":\"\xff\"}", 9}, {"\0\0\0\0", 4},
		{"{\"a\":1,\"a\":2}", 13}, {"{} {}", 5}, {"{\"a\":\"\\u0000\"}", 14}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};

		assert_null(cdi_read("x.json", cases[i].text, cases[i].n, &e));
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_int_equal(strncmp(e.text, "x.json:", 7), 0);
	}
}

struct name {
	const char *text, *vendor, *class, *name; /* NULL: no name */
};

TEST(names_of_devices_are_those_of_the_specification)
{
	static const struct name cases[] = {
		{"vendor.com/class=dev", "vendor.com", "class", "dev"},
		{"a/b=c", "a", "b", "c"},
		{"aa/b=cc", "aa", "b", "cc"},
		{"a/bb=cc", "a", "bb", "cc"},
		{"vendor.com/class=0", "vendor.com", "class", "0"},
		{"vendor1.com/class.subclass=dev1", "vendor1.com", "class.subclass", "dev1"},
		{"other-vendor1.com/class_1=dev_1", "other-vendor1.com", "class_1", "dev_1"},
		{"yet_another-vendor2.com/c-lass_2=dev_1:2.3", "yet_another-vendor2.com",
			"c-lass_2", "dev_1:2.3"},
		{"nvidia.com/gpu=GPU-5de7e1d2-0000", "nvidia.com", "gpu", "GPU-5de7e1d2-0000"},
		{"_invalid.com/class=dev", NULL, NULL, NULL},
		{"invalid2.com-/class=dev", NULL, NULL, NULL},
		{"invalid3.com/_class=dev", NULL, NULL, NULL},
		{"invalid4.com/class_=dev", NULL, NULL, NULL},
		{"invalid5.com/class=-dev", NULL, NULL, NULL},
		{"invalid6.com/class=dev:", NULL, NULL, NULL},
		{"*.com/*dev=*gpu*", NULL, NULL, NULL},
		{"/dev/null", NULL, NULL, NULL},
		{"vendor.com=dev", NULL, NULL, NULL},
		{"vendor.com/class", NULL, NULL, NULL},
		{"vendor=com/class", NULL, NULL, NULL},
		{"v/c=", NULL, NULL, NULL},
		{"/c=d", NULL, NULL, NULL},
		{"v/=d", NULL, NULL, NULL},
		{"", NULL, NULL, NULL},
		{"v/c=a=b", NULL, NULL, NULL},
		{"v/c/d=a", NULL, NULL, NULL},
		{"v/c=a,b", NULL, NULL, NULL},
		{"v/c=a\n", NULL, NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cdi_name n;
		struct err e = {0};
		int rc = cdi_name_parse(&n, cases[i].text, &e);

		if ((rc == 0) != (cases[i].vendor != NULL))
			fail_msg("%s: %d %s", cases[i].text, rc, e.text);
		if (rc < 0) {
			assert_int_equal(e.kind, ERR_USAGE);
			continue;
		}
		assert_string_equal(n.vendor, cases[i].vendor);
		assert_string_equal(n.class, cases[i].class);
		assert_string_equal(n.name, cases[i].name);
		free(n.vendor);
	}
}

struct annotation {
	const char *json, *names; /* NULL: refused */
};

TEST(annotations_ask_for_devices)
{
	static const struct annotation cases[] = {
		{"{\"cdi.k8s.io/vendor.class_device\":\"vendor.com/class=device1\"}",
			"vendor.com/class=device1 "},
		{"{\"cdi.k8s.io/v_d\":\"v.com/c=d1,v.com/c=d2\",\"other\":\"/dev/"
		 "null\",\"cdi.k8s.io/"
		 "w_d\":\"w.com/c=d\"}",
			"v.com/c=d1 v.com/c=d2 w.com/c=d "},
		{"{}", ""},
		{"{\"cdi.k8s.io/a\":\"vendor3.com=device3\"}", NULL},
		{"{\"cdi.k8s.io/a\":\"v/c=d,/dev/null\"}", NULL},
		{"{\"cdi.k8s.io/a\":\"\"}", NULL},
		{"{\"cdi.k8s.io/a\":\"v/c=d,\"}", NULL},
		{"{\"cdi.k8s.io/a\":\"v/c=d, v/c=e\"}", NULL},
		{"{\"cdi.k8s.io/a\":7}", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_json json_t *a = json_loads(cases[i].json, 0, NULL);
		struct strings names = {NULL, 0};
		struct arena mem = {NULL};
		struct err e = {0};
		char all[256] = "";
		int rc = cdi_annotations(a, &names, &mem, &e);

		if ((rc == 0) != (cases[i].names != NULL))
			fail_msg("%s: %d %s", cases[i].json, rc, e.text);
		for (size_t k = 0, at = 0; k < names.n; k++)
			at += (size_t)snprintf(all + at, sizeof(all) - at, "%s ", names.v[k]);
		if (rc == 0)
			assert_string_equal(all, cases[i].names);
		else
			assert_int_equal(e.kind, ERR_USAGE);
		arena_fini(&mem);
	}
}

RUN_TESTS(cmocka_unit_test(edits_are_checked_in_devices_and_in_the_document),
	cmocka_unit_test(documents_are_checked_with_the_version_that_their_members_need),
	cmocka_unit_test(faults_are_told_with_line_and_column),
	cmocka_unit_test(all_faults_are_found),
	cmocka_unit_test(yaml_specs_of_the_toolkit_are_read), cmocka_unit_test(much_is_refused),
	cmocka_unit_test(what_is_no_text_is_an_error),
	cmocka_unit_test(names_of_devices_are_those_of_the_specification),
	cmocka_unit_test(annotations_ask_for_devices))
