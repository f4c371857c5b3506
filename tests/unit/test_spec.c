#include "tests/unit/test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/spec.h"

/* A small config; tests replace parts of it. */
static const char base[] =
	"{\"ociVersion\": \"1.2.0\","
	" \"process\": {\"user\": {\"uid\": 7, \"gid\": 8, \"additionalGids\": [8, 9]},"
	"   \"args\": [\"sh\", \"-c\", \"true\"], \"env\": [\"A=1\"], \"cwd\": \"/work\"},"
	" \"root\": {\"path\": \"rootfs\", \"readonly\": true},"
	" \"hostname\": \"h\","
	" \"mounts\": [{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"}],"
	" \"linux\": {\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"pid\"}, {\"type\": "
	"\"uts\"}]}}";

/* The base with the members of `patch` set at a JSON pointer of one or two names ("" is the top).
 */
static json_t *patched(const char *where, const char *patch)
{
	struct err e = {0};
	json_t *json = json_parse(base, strlen(base), &e), *at = json;
	json_t *p = json_parse(patch, strlen(patch), &e);

	if (!p)
		fail_msg("%s: %s", patch, e.text);
	if (*where)
		at = json_object_get(json, where);
	assert_int_equal(json_object_update(at, p), 0);
	json_decref(p);
	return json;
}

static void refuse(const char *where, const char *patch, enum err_kind kind, const char *text)
{
	struct err e = {0};
	struct spec s;
	json_t *json = patched(where, patch);

	if (spec_read(&s, json, "c.json", &e) == 0)
		fail_msg("accepted: %s", patch);
	if (e.kind != kind || !str_eq(e.text, text))
		fail_msg("%s:\nexpected %s\ngot      %s", patch, text, e.text);
	json_decref(json);
}

static void accept(struct spec *s, const char *where, const char *patch)
{
	struct err e = {0};
	json_t *json = patched(where, patch);

	if (spec_read(s, json, "c.json", &e) < 0)
		fail_msg("%s: %s", patch, e.text);
	json_decref(json);
}

TEST(a_config_is_read_into_plain_data)
{
	struct spec s;

	accept(&s, "", "{\"unknown\": {\"x\": 1}, \"annotations\": {\"a\": \"b\"}}");
	assert_int_equal(s.process.user.uid, 7);
	assert_int_equal(s.process.user.gid, 8);
	assert_int_equal(s.process.user.ngroups, 2);
	assert_int_equal(s.process.user.groups[1], 9);
	assert_int_equal(s.process.args.n, 3);
	assert_string_equal(s.process.args.v[2], "true");
	assert_null(s.process.args.v[3]);
	assert_string_equal(s.process.cwd, "/work");
	assert_string_equal(s.root, "rootfs");
	assert_true(s.root_readonly);
	assert_int_equal(s.nmounts, 1);
	assert_true(s.namespaces[NS_PID]);
	assert_false(s.namespaces[NS_NETWORK]);
	assert_null(s.cgroup_path);
	spec_fini(&s);
}

TEST(a_document_without_a_process_is_read)
{
	struct spec s;

	accept(&s, "", "{\"process\": null}");
	assert_false(s.process.given);
	spec_fini(&s);
}

TEST(ids_are_unsigned_numbers_of_32_bits_below_the_one_that_means_no_change)
{
	refuse("process", "{\"user\": {\"uid\": -1, \"gid\": 0}}", ERR_CORRUPT,
		"c.json: /process/user/uid: expected a non-negative integer");
	refuse("process", "{\"user\": {\"uid\": 4294967296, \"gid\": 0}}", ERR_CORRUPT,
		"c.json: /process/user/uid: 4294967296 is greater than 4294967295");
	refuse("process", "{\"user\": {\"uid\": 0, \"gid\": 4294967295}}", ERR_CORRUPT,
		"c.json: /process/user: uid and gid must be less than 4294967295");
	refuse("process", "{\"user\": {\"uid\": \"0\", \"gid\": 0}}", ERR_CORRUPT,
		"c.json: /process/user/uid: expected a non-negative integer");
	refuse("process", "{\"user\": {\"uid\": 0.5, \"gid\": 0}}", ERR_CORRUPT,
		"c.json: /process/user/uid: expected a non-negative integer");
	refuse("process",
		"{\"user\": {\"uid\": 0, \"gid\": 0, \"additionalGids\": [1, 4294967295]}}",
		ERR_CORRUPT, "c.json: /process/user/additionalGids/1: expected a group id");
}

TEST(errors_name_the_place)
{
	refuse("", "{\"ociVersion\": \"2.0.0\"}", ERR_UNSUPPORTED,
		"c.json: ociVersion '2.0.0': expected 1.x");
	refuse("", "{\"ociVersion\": null}", ERR_CORRUPT, "c.json: missing key 'ociVersion'");
	refuse("", "{\"root\": []}", ERR_CORRUPT, "c.json: /root: expected an object");
	refuse("", "{\"linux\": null}", ERR_CORRUPT, "c.json: missing key 'linux'");
	refuse("process", "{\"args\": []}", ERR_CORRUPT, "c.json: /process: args: empty");
	refuse("process", "{\"args\": [\"a\", 1]}", ERR_CORRUPT,
		"c.json: /process/args/1: expected a string");
	refuse("process", "{\"args\": \"a\"}", ERR_CORRUPT,
		"c.json: /process/args: expected an array of strings");
	refuse("process", "{\"cwd\": \"work\"}", ERR_CORRUPT,
		"c.json: /process/cwd: expected an absolute path, got 'work'");
	refuse("process", "{\"env\": [\"A=1\", \"B\"]}", ERR_CORRUPT,
		"c.json: /process: env/1: expected NAME=VALUE");
	refuse("process", "{\"capabilities\": {\"bounding\": [\"CAP_KILL\", \"CAP_FLY\"]}}",
		ERR_CORRUPT,
		"c.json: /process/capabilities/bounding/1: unknown capability 'CAP_FLY'");
	refuse("process", "{\"rlimits\": [{\"type\": \"RLIMIT_CORE\", \"soft\": 2, \"hard\": 1}]}",
		ERR_CORRUPT,
		"c.json: /process/rlimits/0: soft limit is greater than the hard limit");
	refuse("process",
		"{\"rlimits\": [{\"type\": \"RLIMIT_CORE\", \"soft\": 1, \"hard\": 1},"
		"{\"type\": \"RLIMIT_CORE\", \"soft\": 1, \"hard\": 1}]}",
		ERR_CORRUPT, "c.json: /process/rlimits: RLIMIT_CORE is there twice");
	refuse("linux", "{\"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"pid\"}]}", ERR_CORRUPT,
		"c.json: /linux/namespaces/1: pid namespace is there twice");
	refuse("linux", "{\"cgroupsPath\": \"/a/../../b\"}", ERR_CORRUPT,
		"c.json: /linux/cgroupsPath: '..' in a cgroup path");
	refuse("linux", "{\"devices\": [{\"path\": \"/dev/x\", \"type\": \"c\"}]}", ERR_CORRUPT,
		"c.json: /linux/devices/0: major and minor are needed");
	refuse("linux", "{\"resources\": {\"devices\": [{\"allow\": true, \"access\": \"x\"}]}}",
		ERR_CORRUPT, "c.json: /linux/resources/devices/0: access: expected r, w and m");
	refuse("linux", "{\"resources\": {\"memory\": {\"limit\": 9, \"swap\": 8}}}", ERR_CORRUPT,
		"c.json: /linux/resources/memory: swap is memory and swap together: at least the "
		"limit");
	refuse("linux", "{\"resources\": {\"memory\": {\"limit\": -9000000000000000000}}}",
		ERR_CORRUPT, "c.json: /linux/resources/memory: expected bytes, or -1 for no limit");
	refuse("", "{\"mounts\": [{\"type\": \"proc\"}]}", ERR_CORRUPT,
		"c.json: /mounts/0: missing key 'destination'");
}

TEST(what_is_not_supported_is_named_and_never_dropped)
{
	refuse("process", "{\"apparmorProfile\": \"x\"}", ERR_UNSUPPORTED,
		"c.json: /process/apparmorProfile: not supported by this version");
	refuse("", "{\"hooks\": {\"prestart\": [{\"path\": \"/x\"}]}}", ERR_UNSUPPORTED,
		"c.json: /hooks/prestart: not supported by this version");
	refuse("linux", "{\"intelRdt\": {\"closID\": \"x\"}}", ERR_UNSUPPORTED,
		"c.json: /linux/intelRdt: not supported by this version");
	refuse("linux", "{\"resources\": {\"memory\": {\"swappiness\": 3}}}", ERR_UNSUPPORTED,
		"c.json: /linux/resources/memory/swappiness: not supported by this version");
	refuse("linux", "{\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"user\"}]}",
		ERR_UNSUPPORTED,
		"c.json: /linux/namespaces/1: user namespaces are not supported by this version");
	refuse("linux", "{\"namespaces\": [{\"type\": \"mount\", \"path\": \"/proc/1/ns/mnt\"}]}",
		ERR_UNSUPPORTED, "c.json: /linux/namespaces/0/path: not supported by this version");
	refuse("linux", "{\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"uts\"}]}",
		ERR_UNSUPPORTED,
		"c.json: /linux: namespaces: a new mount and a new pid namespace are needed");
	refuse("linux", "{\"rootfsPropagation\": \"shared\"}", ERR_UNSUPPORTED,
		"c.json: /linux/rootfsPropagation: 'shared' is not supported by this version");
}

TEST(empty_values_of_what_is_not_supported_are_fine)
{
	struct spec s;

	accept(&s, "process", "{\"apparmorProfile\": \"\", \"selinuxLabel\": null}");
	spec_fini(&s);
	accept(&s, "", "{\"hooks\": {\"prestart\": []}}");
	spec_fini(&s);
}

static void load_text(struct spec *s, const char *text)
{
	char path[] = "/tmp/svrun-spec-XXXXXX";
	struct err e = {0};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, text, strlen(text)), 0);
	if (spec_load(s, AT_FDCWD, path, &e) < 0)
		fail_msg("%s", e.text);
	close(fd);
	unlink(path);
}

TEST(no_limit_is_the_largest_unsigned_number)
{
	struct spec s;

	load_text(&s,
		"{\"ociVersion\": \"1.0.2\", \"process\": {\"user\": {\"uid\": 0, \"gid\": 0},"
		"\"args\": [\"18446744073709551615\"], \"cwd\": \"/\", \"rlimits\": [{\"type\":"
		"\"RLIMIT_MEMLOCK\", \"soft\": 18446744073709551615, "
		"\"hard\":18446744073709551615}]},"
		"\"root\": {\"path\": \"r\"}, \"linux\": {\"namespaces\": [{\"type\": \"mount\"},"
		"{\"type\": \"pid\"}]}}");
	assert_int_equal(s.process.rlimits[0].soft, RLIM_INFINITY);
	assert_int_equal(s.process.rlimits[0].hard, RLIM_INFINITY);
	assert_string_equal(s.process.args.v[0], "18446744073709551615");
	spec_fini(&s);
}

RUN_TESTS(cmocka_unit_test(a_config_is_read_into_plain_data),
	cmocka_unit_test(a_document_without_a_process_is_read),
	cmocka_unit_test(ids_are_unsigned_numbers_of_32_bits_below_the_one_that_means_no_change),
	cmocka_unit_test(errors_name_the_place),
	cmocka_unit_test(what_is_not_supported_is_named_and_never_dropped),
	cmocka_unit_test(empty_values_of_what_is_not_supported_are_fine),
	cmocka_unit_test(no_limit_is_the_largest_unsigned_number))
