#include "tests/unit/spec-make.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sys.h"

TEST(a_config_is_read_into_plain_data)
{
	struct spec s;

	accept(&s, "", "{'unknown': {'x': 1}, 'annotations': {'a': 'b', 'c': ''}}");
	assert_int_equal(s.process.user.uid, 7);
	assert_int_equal(s.process.args.n, 3);
	assert_string_equal(s.process.args.v[2], "true");
	assert_null(s.process.args.v[3]);
	assert_string_equal(s.process.cwd, "/work");
	assert_string_equal(s.root, "rootfs");
	assert_true(s.root_readonly);
	assert_string_equal(s.hostname, "h");
	assert_int_equal(s.nmounts, 1);
	assert_true(spec_new_ns(&s, NS_PID));
	assert_false(spec_has_ns(&s, NS_NETWORK));
	assert_null(s.cgroups_path);
	assert_int_equal(s.annotations.n, 2);
	assert_string_equal(s.annotations.v[0].name, "a");
	assert_string_equal(s.annotations.v[0].value, "b");
	spec_fini(&s);
}

TEST(a_document_without_a_process_or_a_root_is_read)
{
	struct spec s;

	accept(&s, "", "{'process': null, 'root': null}");
	assert_false(s.process.given);
	assert_null(s.root);
	spec_fini(&s);
}

TEST(mounts_have_maps_of_their_own_and_deprecated_relative_places)
{
	struct spec s;

	accept(&s, "",
		"{'mounts': [{'destination': 'data', 'type': 'bind', 'source': '/a',"
		"'options': ['rbind', 'idmap'],"
		"'uidMappings': [{'containerID': 0, 'hostID': 1000, 'size': 10}],"
		"'gidMappings': [{'containerID': 0, 'hostID': 2000, 'size': 20}]},"
		"{'destination': '/x', 'source': ''}]}");
	assert_string_equal(s.mounts[0].destination, "/data");
	assert_string_equal(s.mounts[0].type, "bind");
	assert_string_equal(s.mounts[0].source, "/a");
	assert_int_equal(s.mounts[0].options.n, 2);
	assert_int_equal(s.mounts[0].uids.v[0].host, 1000);
	assert_int_equal(s.mounts[0].gids.v[0].size, 20);
	assert_null(s.mounts[1].type);
	assert_null(s.mounts[1].source);
	spec_fini(&s);
}

TEST(hooks_of_all_kinds_are_read)
{
	static const char *const names[HOOK_KINDS] = {"prestart", "createRuntime",
		"createContainer", "startContainer", "poststart", "poststop"};
	struct spec s;

	for (size_t k = 0; k < HOOK_KINDS; k++) {
		char patch[256];

		snprintf(patch, sizeof(patch),
			"{'hooks': {'%s': [{'path': '/bin/a', 'args': ['a', 'b'], 'env': ['E=1'],"
			"'timeout': 5}, {'path': '/c'}], 'unknown': 7}}",
			names[k]);
		accept(&s, "", patch);
		for (size_t m = 0; m < HOOK_KINDS; m++)
			assert_int_equal(s.hooks[m].n, m == k ? 2 : 0);
		assert_string_equal(s.hooks[k].v[0].path, "/bin/a");
		assert_string_equal(s.hooks[k].v[0].args.v[1], "b");
		assert_string_equal(s.hooks[k].v[0].env.v[0], "E=1");
		assert_int_equal(s.hooks[k].v[0].timeout.v, 5);
		assert_false(s.hooks[k].v[1].timeout.set);
		spec_fini(&s);
	}
}

TEST(errors_name_the_place)
{
	static const struct refusal cases[] = {
		{"", "{'ociVersion': '2.0.0'}", ERR_UNSUPPORTED,
			"ociVersion '2.0.0': expected 1.x"},
		{"", "{'ociVersion': '1.x'}", ERR_UNSUPPORTED, "ociVersion '1.x': expected 1.x"},
		{"", "{'ociVersion': null}", ERR_CORRUPT, "missing key 'ociVersion'"},
		{"", "{'root': []}", ERR_CORRUPT, "/root: expected an object"},
		{"", "{'root': {'path': ''}}", ERR_CORRUPT, "/root/path: empty"},
		{"", "{'root': {'readonly': true}}", ERR_CORRUPT, "/root: missing key 'path'"},
		{"", "{'mounts': {}}", ERR_CORRUPT, "/mounts: expected an array"},
		{"", "{'mounts': [{'type': 'proc'}]}", ERR_CORRUPT,
			"/mounts/0: missing key 'destination'"},
		{"", "{'mounts': [{'destination': ''}]}", ERR_CORRUPT,
			"/mounts/0/destination: empty"},
		{"", "{'mounts': [{'destination': '/a', 'options': ['ro', 1]}]}", ERR_CORRUPT,
			"/mounts/0/options/1: expected a string"},
		{"",
			"{'mounts': [{'destination': '/a', 'uidMappings': [{'containerID': 0, "
			"'hostID': 0, 'size': 1}]}]}",
			ERR_CORRUPT, "/mounts/0: uidMappings and gidMappings need each other"},
		{"", "{'hooks': []}", ERR_CORRUPT, "/hooks: expected an object"},
		{"", "{'hooks': {'poststop': {}}}", ERR_CORRUPT,
			"/hooks/poststop: expected an array"},
		{"", "{'hooks': {'prestart': [{}]}}", ERR_CORRUPT,
			"/hooks/prestart/0: missing key 'path'"},
		{"", "{'hooks': {'prestart': [{'path': 'x'}]}}", ERR_CORRUPT,
			"/hooks/prestart/0/path: expected an absolute path, got 'x'"},
		{"", "{'hooks': {'poststart': [{'path': '/x', 'timeout': 0}]}}", ERR_CORRUPT,
			"/hooks/poststart/0/timeout: expected 1 to 2147483"},
		{"", "{'hooks': {'poststart': [{'path': '/x', 'timeout': -1}]}}", ERR_CORRUPT,
			"/hooks/poststart/0/timeout: expected 1 to 2147483"},
		{"", "{'annotations': {'a': 1}}", ERR_CORRUPT, "/annotations/a: expected a string"},
		{"", "{'annotations': {'': 'x'}}", ERR_CORRUPT, "/annotations/: an empty name"},
		{"",
			"{'hostname': "
			"'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}",
			ERR_CORRUPT, "/hostname: longer than 64 bytes"},
		{"",
			"{'domainname': "
			"'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}",
			ERR_CORRUPT, "/domainname: longer than 64 bytes"},
		{"linux", "{'namespaces': [{'type': 'mount'}]}", ERR_CORRUPT,
			"hostname and domainname need a uts namespace"},
		{"", "{'linux': null, 'hostname': ''}", ERR_UNSUPPORTED,
			"linux: namespaces: a mount namespace is needed"},
		{"", "{'windows': {'layerFolders': ['x']}}", ERR_UNSUPPORTED,
			"/windows: this runtime does not do it"},
		{"", "{'solaris': {'milestone': 'x'}}", ERR_UNSUPPORTED,
			"/solaris: this runtime does not do it"},
		{"", "{'vm': {'kernel': {}}}", ERR_UNSUPPORTED, "/vm: this runtime does not do it"},
		{"", "{'zos': {'namespaces': []}}", ERR_UNSUPPORTED,
			"/zos: this runtime does not do it"},
		{"", "{'freebsd': {'jail': {}}}", ERR_UNSUPPORTED,
			"/freebsd: this runtime does not do it"},
	};

	REFUSE_ALL(cases);
}

TEST(other_systems_sections_may_be_there_when_they_are_empty)
{
	struct spec s;

	accept(&s, "", "{'windows': null, 'vm': {}, 'hostname': '', 'domainname': null}");
	assert_null(s.hostname);
	assert_null(s.domainname);
	spec_fini(&s);
}

static int load_text(struct spec *s, const char *text, struct err *e)
{
	char path[] = "/tmp/svrun-spec-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, text, strlen(text)), 0);
	rc = spec_load(s, AT_FDCWD, path, e);
	close(fd);
	unlink(path);
	return rc;
}

#define PROCESS_WITH(limits)                                                                       \
	"{\"ociVersion\": \"1.0.2\", \"process\": {\"args\": [\"18446744073709551615\", "          \
	"\"\\\"9999999999999999999\"], \"cwd\": \"/\", \"rlimits\": [{\"type\":"                   \
	"\"RLIMIT_MEMLOCK\"," limits "}]}, \"linux\": {\"namespaces\": [{\"type\": \"mount\"}]}}"

TEST(integers_beyond_63_bits_keep_their_value)
{
	struct err e = {0};
	struct spec s;

	if (load_text(&s,
		    PROCESS_WITH("\"soft\": 9223372036854775808,\"hard\":18446744073709551615"),
		    &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(s.process.rlimits[0].soft, UINT64_C(1) << 63);
	assert_true(s.process.rlimits[0].hard == RLIM_INFINITY);
	assert_string_equal(s.process.args.v[0], "18446744073709551615");
	assert_string_equal(s.process.args.v[1], "\"9999999999999999999");
	spec_fini(&s);
	/* What other documents say for "no limit". */
	assert_int_equal(
		load_text(&s, PROCESS_WITH("\"soft\": 1,\"hard\":9223372036854775807"), &e), 0);
	assert_true(s.process.rlimits[0].hard == RLIM_INFINITY);
	spec_fini(&s);
	assert_int_equal(
		load_text(&s, PROCESS_WITH("\"soft\": 1,\"hard\":18446744073709551616"), &e), -1);
	assert_non_null(strstr(e.text, "too big integer"));
}

TEST(a_big_integer_is_no_string)
{
	struct err e = {0};
	struct spec s;

	assert_int_equal(
		load_text(
			&s, "{\"ociVersion\": \"1.0.2\", \"hostname\": 18446744073709551615}", &e),
		-1);
	assert_true(str_ends(e.text, "/hostname: expected a string"));
}

TEST(texts_that_are_no_json_are_refused_with_a_position)
{
	static const char *const texts[] = {"", "{", "18446744073709551615", "[1,]", "{\"a\": 1}x",
		"{\"a\": 1, \"a\": 2}", "\"", "{\"a\": 18446744073709551615"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct json_doc doc;
		struct err e = {0};

		assert_int_equal(
			spec_doc_parse(&doc, "x.json", texts[i], strlen(texts[i]), &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_true(str_starts(e.text, "x.json:1:"));
	}
}

TEST(a_process_and_resources_are_read_alone)
{
	static const char process[] = "{\"args\": [\"a\"], \"cwd\": \"/\"}";
	static const char bad[] = "{\"args\": [], \"cwd\": \"/\"}";
	static const char resources[] = "{\"pids\": {\"limit\": 7}}";
	struct spec_resources r;
	struct spec_process p;
	struct arena mem = {0};
	struct err e = {0};
	json_t *json = json_parse(process, strlen(process), &e);

	assert_int_equal(spec_read_process(&p, json, "p.json", &mem, &e), 0);
	assert_true(p.given);
	assert_string_equal(p.args.v[0], "a");
	json_decref(json);
	json = json_parse(bad, strlen(bad), &e);
	assert_int_equal(spec_read_process(&p, json, "p.json", &mem, &e), -1);
	assert_string_equal(e.text, "p.json: /args: empty");
	json_decref(json);
	json = json_parse(resources, strlen(resources), &e);
	assert_int_equal(spec_read_resources(&r, json, "r.json", &mem, &e), 0);
	assert_int_equal(r.pids.v, 7);
	json_decref(json);
	arena_fini(&mem);
}

TEST(a_text_with_a_nul_is_refused)
{
	static const char text[] = "{\"a\": 1}\0{}";
	struct json_doc doc;
	struct err e = {0};

	assert_int_equal(spec_doc_parse(&doc, "x", text, sizeof(text) - 1, &e), -1);
	assert_string_equal(e.text, "x:1:1: contains a NUL character");
}

RUN_TESTS(cmocka_unit_test(a_config_is_read_into_plain_data),
	cmocka_unit_test(a_document_without_a_process_or_a_root_is_read),
	cmocka_unit_test(mounts_have_maps_of_their_own_and_deprecated_relative_places),
	cmocka_unit_test(hooks_of_all_kinds_are_read), cmocka_unit_test(errors_name_the_place),
	cmocka_unit_test(other_systems_sections_may_be_there_when_they_are_empty),
	cmocka_unit_test(integers_beyond_63_bits_keep_their_value),
	cmocka_unit_test(a_big_integer_is_no_string),
	cmocka_unit_test(texts_that_are_no_json_are_refused_with_a_position),
	cmocka_unit_test(a_text_with_a_nul_is_refused),
	cmocka_unit_test(a_process_and_resources_are_read_alone))
