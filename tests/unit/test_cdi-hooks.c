#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "gpu/cdi-spec.h"

enum { WORDS = 10 };

struct call {
	const char *path, *args[WORDS];
	int rc;
	const char *fault;
};

static int native(struct gpu_edits *x, const struct call *c, struct err *e)
{
	const char *v[WORDS];
	struct strings args = {v, 0};

	memcpy(v, c->args, sizeof(v));
	while (args.n < WORDS && v[args.n])
		args.n++;
	return cdi_hook_native(x, c->path, &args, e);
}

#define HOOK "/usr/bin/nvidia-cdi-hook"

TEST(hooks_of_the_toolkit_are_known_by_name_and_verb)
{
	static const struct call cases[] = {
		{HOOK, {"nvidia-cdi-hook", "chmod", "--mode", "755", "--path", "/dev/dri"}, 1,
			NULL},
		{HOOK, {"nvidia-cdi-hook", "--debug", "disable-device-node-modification"}, 1, NULL},
		{"/usr/local/nvidia/toolkit/nvidia-cdi-hook",
			{"nvidia-cdi-hook", "update-application-profile"}, 1, NULL},
		{"/usr/bin/nvidia-ctk",
			{"nvidia-ctk", "hook", "update-ldcache", "--folder=/usr/lib64"}, 1, NULL},
		{"/usr/bin/nvidia-ctk", {"nvidia-ctk", "--quiet", "hook", "update-nvidia-params"},
			1, NULL},
		{"/usr/bin/nvidia-ctk", {"nvidia-ctk", "cdi", "generate"}, 0, NULL},
		{"/usr/bin/nvidia-ctk", {"nvidia-ctk", "update-ldcache"}, 0, NULL},
		{"/usr/bin/nvidia-ctk", {"nvidia-ctk"}, 0, NULL},
		{HOOK, {"nvidia-cdi-hook", "something-new"}, 0, NULL},
		{HOOK, {"nvidia-cdi-hook"}, 0, NULL},
		{HOOK, {NULL}, 0, NULL},
		{"/usr/bin/nvidia-container-runtime-hook",
			{"nvidia-container-runtime-hook", "prestart"}, 0, NULL},
		{"/usr/bin/env", {"nvidia-cdi-hook", "update-ldcache"}, 0, NULL},
		{HOOK, {"nvidia-cdi-hook", "create-symlinks", "--link"}, -1,
			"hook create-symlinks: option '--link' without a value"},
		{HOOK, {"nvidia-cdi-hook", "create-symlinks", "--link", "a:b"}, -1,
			"hook create-symlinks: --link 'a:b': expected TARGET::LINK"},
		{HOOK, {"nvidia-cdi-hook", "create-symlinks", "--link", "a::b::c"}, -1,
			"hook create-symlinks: --link 'a::b::c': expected TARGET::LINK"},
		{HOOK, {"nvidia-cdi-hook", "create-symlinks", "--link", "/x::/usr/lib/"}, -1,
			"hook create-symlinks: --link '/x::/usr/lib/': '/usr/lib/' is a folder, "
			"not a link"},
		{HOOK, {"nvidia-cdi-hook", "create-symlinks", "--lin", "a::b"}, -1,
			"hook create-symlinks: unknown option '--lin'"},
		{HOOK, {"nvidia-cdi-hook", "update-ldcache", "/usr/lib"}, -1,
			"hook update-ldcache: unexpected argument '/usr/lib'"},
		{HOOK, {"nvidia-cdi-hook", "update-ldcache", "--folder", "/a\n/b"}, -1,
			"hook update-ldcache: --folder '/a\n/b': no folder"},
		{HOOK, {"nvidia-cdi-hook", "enable-cuda-compat", "--host-driver-version=1;rm"}, -1,
			"hook enable-cuda-compat: --host-driver-version '1;rm': no version"},
		{HOOK, {"nvidia-cdi-hook", "disable-device-node-modification", "--x", "y"}, -1,
			"hook disable-device-node-modification: unknown option '--x'"},
		{HOOK, {"nvidia-cdi-hook", "chmod", "--container-spec", "x", "--mode=0755"}, 1,
			NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		struct gpu_edits x;
		int rc;

		gpu_edits_init(&x);
		rc = native(&x, &cases[i], &e);
		if (rc != cases[i].rc)
			fail_msg("%zu: %d %s", i, rc, e.text);
		if (rc < 0) {
			assert_string_equal(e.text, cases[i].fault);
			assert_int_equal(e.kind, ERR_CORRUPT);
		}
		gpu_edits_fini(&x);
	}
}

TEST(what_hooks_would_have_done_becomes_edits)
{
	static const struct call calls[] = {
		{HOOK,
			{"nvidia-cdi-hook", "create-symlinks", "--link",
				"libcuda.so.1::/usr/lib64/libcuda.so", "--link=a::b,/c::/d",
				"-link", "/x::/usr/lib64//libcuda.so"},
			1, NULL},
		{HOOK,
			{"nvidia-cdi-hook", "update-ldcache", "--ldconfig-path", "@/sbin/ldconfig",
				"--folder", "/usr/lib64,/usr/lib64/vdpau", "--folder", "lib"},
			1, NULL},
		{HOOK, {"nvidia-cdi-hook", "create-soname-symlinks", "--folder", "/usr/lib64/"}, 1,
			NULL},
		{HOOK,
			{"nvidia-cdi-hook", "enable-cuda-compat", "--host-driver-version",
				"570.1.2"},
			1, NULL},
		{HOOK, {"nvidia-cdi-hook", "disable-device-node-modification"}, 1, NULL},
	};
	struct gpu_edits x;

	gpu_edits_init(&x);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		assert_int_equal(native(&x, &calls[i], NULL), 1);
	assert_int_equal(x.nlinks, 3);
	assert_string_equal(x.links[0].path, "/b");
	assert_string_equal(x.links[0].target, "a");
	assert_string_equal(x.links[1].path, "/d");
	assert_string_equal(x.links[2].path, "/usr/lib64//libcuda.so");
	assert_string_equal(x.links[2].target, "/x");
	assert_int_equal(x.nld_dirs, 3);
	assert_string_equal(x.ld_dirs[0], "/usr/lib64");
	assert_string_equal(x.ld_dirs[1], "/usr/lib64/vdpau");
	assert_string_equal(x.ld_dirs[2], "/lib");
	assert_string_equal(x.compat_driver, "570.1.2");
	assert_true(x.keep_device_files);
	assert_null(x.visible_profile);
	gpu_edits_fini(&x);
}

TEST(the_profile_has_the_gpus_that_are_given)
{
	static const struct call call = {
		HOOK, {"nvidia-cdi-hook", "update-application-profile"}, 1, NULL};
	auto_json json_t *devices = json_pack("[{s:s},{s:s},{s:s},{s:s}]", "path", "/dev/nvidia3",
		"path", "/dev/nvidiactl", "path", "/dev/nvidia64", "path", "/dev/nvidia-uvm");
	struct gpu_edits x;

	gpu_edits_init(&x);
	cdi_profile(&x, devices);
	assert_null(x.visible_profile);
	assert_int_equal(native(&x, &call, NULL), 1);
	cdi_profile(&x, NULL);
	assert_null(x.visible_profile);
	native(&x, &call, NULL);
	gpu_edits_node(&x, &(struct edit_node){.path = "/dev/nvidia0"});
	cdi_profile(&x, devices);
	assert_string_equal(x.visible_profile,
		"{\"profiles\":[{\"name\":\"_container_\",\"settings\":[\"EGLVisibleDGPUDevices\","
		"0x9]}],\"rules\":[{\"pattern\":[],\"profile\":\"_container_\"}]}");
	gpu_edits_fini(&x);
}

/* ---- what a policy allows, and what nobody gets ---- */

static int add(struct gpu_edits *x, const char *edits, const char *allowed, struct err *e)
{
	auto_json json_t *j = json_loads(edits, 0, NULL);
	const char *hooks[] = {allowed};
	const struct cdi_policy p = {{hooks, allowed ? 1 : 0}};

	assert_non_null(j);
	return cdi_edits_add(x, j, allowed ? &p : NULL, e);
}

static char *hook_of(const char *path)
{
	return mem_printf("{\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"%s\",\"args\":["
			  "\"x\",\"go\"],\"env\":[\"A=b\"],\"timeout\":3}]}",
		path);
}

TEST(other_hooks_run_only_when_a_policy_names_them)
{
	auto_free char *edits = hook_of("/usr/bin/env");
	struct err e = {0};
	struct gpu_edits x;

	gpu_edits_init(&x);
	assert_int_equal(add(&x, edits, NULL, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_string_equal(
		e.text, "createContainer hook /usr/bin/env go: a program of the host is not run");
	assert_non_null(strstr(e.hint, "--cdi-allow-hook /usr/bin/env"));
	assert_int_equal(add(&x, edits, "/usr/bin/env2", NULL), -1);
	auto_free char *none = hook_of("/none/hook");
	e = (struct err){0};
	assert_int_equal(add(&x, none, "/none/hook", &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_int_equal(x.nhooks, 0);
	gpu_edits_fini(&x);
}

TEST(an_allowed_hook_belongs_to_root_and_nobody_else_writes_to_it_or_above)
{
	static const struct {
		mode_t dir, file;
		uid_t owner;
		bool good;
	} cases[] = {{0755, 0755, 0, true}, {0700, 0500, 0, true}, {0755, 0757, 0, false},
		{0755, 0775, 0, false}, {0777, 0755, 0, false}, {01777, 0755, 0, false},
		{0755, 0755, 1000, false}};
	/* /tmp is everybody's: not there. */
	char dir[] = "/var/svrun-hook-XXXXXX", path[64];
	auto_free char *edits = NULL;

	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/hook", dir);
	edits = hook_of(path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		struct gpu_edits x;
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700), rc;

		assert_true(fd >= 0);
		assert_int_equal(fchmod(fd, cases[i].file), 0);
		assert_int_equal(fchown(fd, cases[i].owner, 0), 0);
		close(fd);
		assert_int_equal(chmod(dir, cases[i].dir), 0);
		gpu_edits_init(&x);
		rc = add(&x, edits, path, &e);
		if ((rc == 0) != cases[i].good)
			fail_msg("%zu: %d %s", i, rc, e.text);
		if (rc < 0)
			assert_int_equal(e.kind, ERR_DENIED);
		if (cases[i].good) {
			assert_int_equal(x.nhooks, 1);
			assert_string_equal(x.hooks[0].path, path);
			assert_int_equal(x.hooks[0].env.n, 1);
			assert_int_equal(x.hooks[0].timeout, 3);
		}
		gpu_edits_fini(&x);
	}
	unlink(path);
	rmdir(dir);
}

struct mount_case {
	const char *json, *fault; /* NULL: none */
};

TEST(mounts_that_no_container_gets_are_refused)
{
	static const struct mount_case cases[] = {
		{"{\"hostPath\":\"/usr/bin/env\",\"containerPath\":\"/x\",\"options\":[\"ro\"]}",
			NULL},
		{"{\"hostPath\":\"/usr/bin/env\",\"containerPath\":\"/x\"}",
			"mount of the host's /usr/bin/env that may be written to"},
		{"{\"hostPath\":\"/lib/none.so\",\"containerPath\":\"/x\",\"options\":[\"rw\"]}",
			"mount of the host's /lib/none.so that may be written to"},
		{"{\"hostPath\":\"/opt/none/lib.so\",\"containerPath\":\"/x\"}", NULL},
		{"{\"hostPath\":\"/usr/lib\",\"containerPath\":\"/"
		 "x\",\"options\":[\"ro\",\"rbind\"]}",
			NULL},
		{"{\"hostPath\":\"/none/lib.so\",\"containerPath\":\"/x\"}", NULL},
		{"{\"hostPath\":\"/proc/meminfo\",\"containerPath\":\"/x\",\"options\":[\"ro\"]}",
			NULL},
		{"{\"hostPath\":\"x\",\"containerPath\":\"/x\",\"type\":\"tmpfs\"}", NULL},
		{"{\"hostPath\":\"/\",\"containerPath\":\"/x\"}", "mount of the host's root"},
		{"{\"hostPath\":\"//.\",\"containerPath\":\"/x\",\"options\":[\"ro\"]}",
			"mount of the host's root"},
		{"{\"hostPath\":\"/proc/self/root\",\"containerPath\":\"/x\",\"options\":[\"ro\"]}",
			"mount of the host's root"},
		{"{\"hostPath\":\"/etc\",\"containerPath\":\"/x\"}",
			"mount of the host's /etc that may be written to"},
		{"{\"hostPath\":\"/etc/./\",\"containerPath\":\"/x\",\"options\":[\"rw\"]}",
			"mount of the host's /etc/./ that may be written to"},
		{"{\"hostPath\":\"/proc\",\"containerPath\":\"/x\"}", "mount of the host's /proc"},
		{"{\"hostPath\":\"/proc/sys\",\"containerPath\":\"/x\"}",
			"mount of the host's /proc/sys that may be written to"},
		/* read-only is no help: /proc/PID/root, and sockets of daemons */
		{"{\"hostPath\":\"/proc\",\"containerPath\":\"/x\",\"options\":[\"ro\"]}",
			"mount of the host's /proc: no container gets it"},
		{"{\"hostPath\":\"/proc/1\",\"containerPath\":\"/x\",\"options\":[\"ro\"]}",
			"mount of the host's /proc/1: no container gets it"},
		{"{\"hostPath\":\"/run\",\"containerPath\":\"/x\",\"options\":[\"ro\"]}",
			"mount of the host's /run: no container gets it"},
		{"{\"hostPath\":\"/etc\",\"containerPath\":\"/x\",\"options\":[\"ro\",\"rw\"]}",
			"mount of the host's /etc that may be written to"},
		{"{\"hostPath\":\"/etc/shadow\",\"containerPath\":\"/x\"}",
			"mount of the host's /etc/shadow that may be written to"},
		{"{\"hostPath\":\"/sys/fs/cgroup\",\"containerPath\":\"/x\"}",
			"mount of the host's /sys/fs/cgroup that may be written to"},
		{"{\"hostPath\":\"/usr\",\"containerPath\":\"/\"}",
			"mount on the root of the container"},
		{"{\"hostPath\":\"/usr\",\"containerPath\":\"/./\",\"options\":[\"ro\"]}",
			"mount on the root of the container"},
		{"{\"hostPath\":\"/srv/x\",\"containerPath\":\"/x\",\"options\":[\"rshared\"]}",
			"would be mounted on the host"},
		{"{\"hostPath\":\"/dev/sda\",\"containerPath\":\"/x\",\"type\":\"ext4\"}",
			"mount of a file system 'ext4'"},
		{"{\"hostPath\":\"proc\",\"containerPath\":\"/x\",\"type\":\"proc\"}",
			"mount of a file system 'proc'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *edits = mem_printf("{\"mounts\":[%s]}", cases[i].json);
		struct err e = {0};
		struct gpu_edits x;
		int rc;

		gpu_edits_init(&x);
		rc = add(&x, edits, NULL, &e);
		if (!cases[i].fault && rc < 0)
			fail_msg("%s: %s", cases[i].json, e.text);
		if (cases[i].fault && (rc == 0 || !strstr(e.text, cases[i].fault)))
			fail_msg("%s: '%s', not '%s'", cases[i].json, e.text, cases[i].fault);
		if (rc < 0)
			assert_int_equal(e.kind, ERR_DENIED);
		gpu_edits_fini(&x);
	}
}

/* What NVIDIA's own specs have there, whether it is there now or not: root's folders below /run are
 * not this test's to make. */
TEST(sockets_of_the_host_are_given_only_where_they_are_a_gpus)
{
	static const struct {
		const char *path;
		bool given;
	} cases[] = {
		{"/run/nvidia-persistenced/socket", true},
		{"/run/nvidia-fabricmanager/socket", true},
		{"/var/run/nvidia-imex/socket", true},
		{"/run/nvidia/mps", true},
		{"/run/nvidia/driver/usr/lib/libcuda.so.1", true},
		{"/run/nvidiax", false},
		{"/run/docker.sock", false},
		{"/run/containerd", false},
		{"/run/systemd/private", false},
		{"/run/dbus/system_bus_socket", false},
		{"/var/run/nothing", false},
		{"/run/../run/nothing", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *edits = mem_printf("{\"mounts\":[{\"hostPath\":\"%s\","
						   "\"containerPath\":\"/"
						   "x\",\"options\":[\"ro\"]}]}",
			cases[i].path);
		struct err e = {0};
		struct gpu_edits x;

		gpu_edits_init(&x);
		if ((add(&x, edits, NULL, &e) == 0) != cases[i].given)
			fail_msg("%s: %s", cases[i].path, e.text);
		gpu_edits_fini(&x);
	}
}

TEST(a_plain_file_of_run_is_given_and_a_folder_is_not)
{
	char dir[] = "/run/svrun-cdi-XXXXXX";
	auto_free char *edits = NULL, *file = NULL, *folder = NULL;
	struct err e = {0};
	struct gpu_edits x;
	int fd;

	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	file = mem_printf("%s/file", dir);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	edits = mem_printf("{\"mounts\":[{\"hostPath\":\"%s\",\"containerPath\":\"/x\"}]}", file);
	folder = mem_printf("{\"mounts\":[{\"hostPath\":\"%s\",\"containerPath\":\"/x\"}]}", dir);
	gpu_edits_init(&x);
	if (add(&x, edits, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(add(&x, folder, NULL, &e), -1);
	gpu_edits_fini(&x);
	unlink(file);
	rmdir(dir);
}

/* With "rbind", "ro" is of /sys alone, and not of the cgroups that are mounted in it. */
TEST(trees_of_the_host_are_read_only_with_all_that_is_mounted_in_them)
{
	struct gpu_edits x;

	gpu_edits_init(&x);
	assert_int_equal(
		add(&x,
			"{\"mounts\":[{\"hostPath\":\"/sys\",\"containerPath\":\"/x\",\"options\":"
			"[\"rbind\",\"ro\"]}]}",
			NULL, NULL),
		0);
	assert_int_equal(x.mounts[0].noptions, 3);
	assert_string_equal(x.mounts[0].options[2], "rro");
	gpu_edits_fini(&x);
}

RUN_TESTS(cmocka_unit_test(hooks_of_the_toolkit_are_known_by_name_and_verb),
	cmocka_unit_test(what_hooks_would_have_done_becomes_edits),
	cmocka_unit_test(the_profile_has_the_gpus_that_are_given),
	cmocka_unit_test(other_hooks_run_only_when_a_policy_names_them),
	cmocka_unit_test(an_allowed_hook_belongs_to_root_and_nobody_else_writes_to_it_or_above),
	cmocka_unit_test(mounts_that_no_container_gets_are_refused),
	cmocka_unit_test(sockets_of_the_host_are_given_only_where_they_are_a_gpus),
	cmocka_unit_test(a_plain_file_of_run_is_given_and_a_folder_is_not),
	cmocka_unit_test(trees_of_the_host_are_read_only_with_all_that_is_mounted_in_them))
