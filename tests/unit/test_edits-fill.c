/* What is done in a container's root, and the rule of forward compatibility. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/file.h"
#include "gpu/compat.h"
#include "gpu/edits.h"
#include "gpu/ldcache.h"
#include "tests/unit/own-mounts.h"

/* Each test works in a tmpfs that is a container's root. */
static void sh(const char *script)
{
	auto_free char *text = mem_printf("set -e; PATH=$PATH:/sbin:/usr/sbin; %s", script);

	if (system(text) != 0)
		fail_msg("%s", script);
}

static void fill(int root, const struct gpu_edits *x)
{
	struct err e = {0};

	if (gpu_edits_fill(x, root, NULL, 0, &e) < 0)
		fail_msg("%s", e.text);
}

static void link_is(const char *path, const char *wanted)
{
	char text[256];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	if (!wanted) {
		assert_int_equal(n, -1);
		return;
	}
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, wanted);
}

static void text_is(const char *path, const char *wanted)
{
	auto_buf struct buf b = BUF_INIT(1 << 16);
	struct err e = {0};

	if (file_read(AT_FDCWD, path, &b, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(b.data, wanted);
}

/* ---- links ---- */

static void links(int root)
{
	struct gpu_edits x;

	sh("mkdir -p usr/bin etc private; ln -s /private opt; echo theirs >usr/bin/nvidia-smi;"
	   "mkdir usr/bin/folder; ln -s /etc usr/bin/nvidia-debugdump");
	gpu_edits_init(&x);
	gpu_edits_link(&x, "/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi");
	gpu_edits_link(&x, "/usr/bin/nvidia-debugdump", "/usr/local/nvidia/bin/nvidia-debugdump");
	gpu_edits_link(&x, "/usr/bin/folder", "/x");
	gpu_edits_link(&x, "/usr/share/vulkan/icd.d/nvidia_icd.json", "/y");
	gpu_edits_link(&x, "/opt/a/b", "../c");
	fill(root, &x);
	link_is("usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi");
	/* a link is replaced, not followed */
	link_is("usr/bin/nvidia-debugdump", "/usr/local/nvidia/bin/nvidia-debugdump");
	link_is("usr/share/vulkan/icd.d/nvidia_icd.json", "/y");
	link_is("private/a/b", "../c");
	link_is("usr/bin/folder", NULL);
	fill(root, &x);
	gpu_edits_fini(&x);

	/* another start, with other links: those before go, but not what somebody put there since
	 */
	sh("rm private/a/b; ln -s elsewhere private/a/b");
	gpu_edits_link(&x, "/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi");
	fill(root, &x);
	link_is("usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi");
	link_is("usr/bin/nvidia-debugdump", NULL);
	link_is("private/a/b", "elsewhere");
	gpu_edits_fini(&x);

	/* and one without GPUs */
	fill(root, &x);
	link_is("usr/bin/nvidia-smi", NULL);
	assert_int_equal(access("etc/ld.so.conf.d/00-svrun-gpu.conf", F_OK), -1);
}
TEST(links_are_made_and_taken_back)
{
	with_own_mounts(links);
}

static void astray(int root)
{
	char up[] = "../../../../../../../../../../../../tmp";
	struct gpu_edits x;

	/* the image's folders lead to the host: absolutely, upwards, by /proc */
	sh("mkdir -p usr proc tmp; ln -s /tmp usr/bin");
	assert_int_equal(symlink(up, "usr/share"), 0);
	assert_int_equal(symlink("/proc/self/cwd/../..", "usr/lib"), 0);
	assert_int_equal(sys_mount("proc", "proc", "proc", 0, NULL), 0);
	gpu_edits_init(&x);
	gpu_edits_link(&x, "/usr/bin/svrun-astray-1", "/x");
	gpu_edits_link(&x, "/usr/share/svrun-astray-2", "/x");
	gpu_edits_link(&x, "/usr/lib/svrun-astray-3", "/x");
	gpu_edits_link(&x, "/../../../tmp/svrun-astray-4", "/x");
	fill(root, &x);
	link_is("tmp/svrun-astray-1", "/x");
	link_is("tmp/svrun-astray-2", "/x");
	link_is("tmp/svrun-astray-4", "/x");
	sh("! ls /tmp/svrun-astray-* /svrun-astray-* 2>/dev/null");
	gpu_edits_fini(&x);
}
TEST(links_of_the_image_lead_nowhere_out_of_it)
{
	with_own_mounts(astray);
}

static void volumes(int root)
{
	struct gpu_edits x;
	struct statx st;
	uint64_t own;
	struct err e = {0};

	sh("mkdir -p dev data outside; mount -t tmpfs t dev; mount --bind outside data");
	assert_int_equal(statx(root, "dev", 0, STATX_MNT_ID, &st), 0);
	own = st.stx_mnt_id;
	gpu_edits_init(&x);
	gpu_edits_link(&x, "/dev/dri/by-path/pci-0000:01:00.0-card", "../card0");
	gpu_edits_link(&x, "/data/link", "/x");
	assert_int_equal(gpu_edits_fill(&x, root, &own, 1, &e), 0);
	link_is("dev/dri/by-path/pci-0000:01:00.0-card", "../card0");
	link_is("outside/link", NULL);
	gpu_edits_fini(&x);
}
TEST(what_is_mounted_by_the_start_is_filled_and_a_volume_is_not)
{
	with_own_mounts(volumes);
}

/* Somebody who has the same volume swaps a folder for a link to elsewhere, all the time. */
static void swapped(int top)
{
	struct gpu_edits x;
	pid_t pid;
	auto_fd int root = -1;

	sh("mkdir -p root/etc root/usr/bin outside; ln -s ../outside root/link;"
	   "ln -s /../../../outside root/link2");
	root = sys_openat(top, "root", O_PATH | O_DIRECTORY, 0);
	pid = fork();
	if (pid == 0)
		for (;;) {
			renameat2(root, "etc", root, "link", RENAME_EXCHANGE);
			renameat2(root, "usr/bin", root, "link2", RENAME_EXCHANGE);
		}
	for (int i = 0; i < 400; i++) {
		gpu_edits_init(&x);
		if (i % 2) {
			gpu_edits_link(&x, "/usr/bin/nvidia-smi", "/x");
			gpu_edits_link(&x, "/etc/OpenCL/vendors/nvidia.icd", "/y");
			gpu_edits_ld_dir(&x, "/usr/lib");
			x.visible_profile = "{}";
		}
		/* it may find nothing, or a folder that went: not the wrong one */
		assert_true(gpu_edits_fill(&x, root, NULL, 0, NULL) >= -1);
		gpu_edits_fini(&x);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	sh("[ -z \"$(ls -A outside)\" ]");
}
TEST(a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere)
{
	int out = dup(2), null = sys_open("/dev/null", O_WRONLY, 0);

	dup2(null, 2); /* hundreds of warnings */
	with_own_mounts(swapped);
	dup2(out, 2);
	close(out);
	close(null);
}

/* ---- glibc ---- */

static void old_glibc(int root)
{
	static const struct {
		const char *needed;
		bool fits;
	} t[] = {{"2.17", true}, {"2.4", true}, {"2.18", false}, {"2.170", false}, {"3.0", false},
		{NULL, true}};
	struct gpu_edits x;

	sh("mkdir -p lib64; echo 'int f(void) { return 1; }' >t.c;"
	   "echo 'GLIBC_2.2.5 { }; GLIBC_2.17 { f; } GLIBC_2.2.5; GLIBC_PRIVATE { };' >map;"
	   "gcc -shared -nostdlib -Wl,-soname,libc.so.6,--version-script=map -o lib64/libc.so.6 "
	   "t.c");
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct err e = {0};

		gpu_edits_init(&x);
		x.glibc_needed = t[i].needed;
		assert_int_equal(gpu_edits_fill(&x, root, NULL, 0, &e), t[i].fits ? 0 : -1);
		if (!t[i].fits) {
			assert_int_equal(e.kind, ERR_UNSUPPORTED);
			assert_non_null(strstr(e.text, t[i].needed));
			assert_non_null(strstr(e.text, "the image has 2.17"));
		}
	}
	/* unknown: cut off, none, musl */
	x.glibc_needed = "2.99";
	sh("head -c 600 lib64/libc.so.6 >x; mv x lib64/libc.so.6");
	fill(root, &x);
	sh("rm lib64/libc.so.6; mkdir lib; : >lib/ld-musl-x86_64.so.1");
	fill(root, &x);
}
TEST(an_image_whose_glibc_is_too_old_is_refused)
{
	with_own_mounts(old_glibc);
}

/* ---- /proc ---- */

static void proc(int root)
{
	const char *buses[] = {"0000:65:00.0"};
	struct gpu_edits x;

	gpu_edits_init(&x);
	x.keep_device_files = x.gpus_hidden = true;
	x.gpu_buses = mem_dup(buses, sizeof(buses));
	x.ngpu_buses = 1;
	fill(root, &x); /* a container without all that */
	sh("mkdir -p proc/driver/nvidia/gpus/0000:17:00.0 proc/driver/nvidia/gpus/00000000:65:00.0;"
	   "echo one >proc/driver/nvidia/gpus/0000:17:00.0/information;"
	   "echo two >proc/driver/nvidia/gpus/00000000:65:00.0/information;"
	   "printf 'ResmanDebugLevel: 1\\nModifyDeviceFiles: 1\\nDeviceFileUID: 0\\n'"
	   " >proc/driver/nvidia/params");
	fill(root, &x);
	text_is("proc/driver/nvidia/params",
		"ResmanDebugLevel: 1\nModifyDeviceFiles: 0\nDeviceFileUID: 0\n");
	text_is("proc/driver/nvidia/gpus/00000000:65:00.0/information", "two\n");
	assert_int_equal(access("proc/driver/nvidia/gpus/0000:17:00.0", F_OK), -1);
	sh("! echo x >proc/driver/nvidia/params; ! mkdir proc/driver/nvidia/gpus/x;"
	   "! touch proc/driver/nvidia/gpus/00000000:65:00.0/information");
	/* params, gpus and one GPU: nothing else stays mounted */
	sh("[ $(grep -c \" $PWD/proc\" /proc/self/mountinfo) = 3 ]");
	sh("[ $(grep -c \" $PWD\" /proc/self/mountinfo) = 4 ]");
	gpu_edits_fini(&x);
}
TEST(a_container_sees_its_own_gpus_and_may_not_change_nodes)
{
	with_own_mounts(proc);
}

static void proc_links(int root)
{
	struct gpu_edits x;

	sh("mkdir -p etc real/gpus proc/driver; echo 'ModifyDeviceFiles: 1' >real/params;"
	   "ln -s /real proc/driver/nvidia");
	gpu_edits_init(&x);
	x.keep_device_files = x.gpus_hidden = true;
	fill(root, &x);
	text_is("real/params", "ModifyDeviceFiles: 1\n");
	sh("[ $(grep -c \" $PWD\" /proc/self/mountinfo) = 1 ]");
}
TEST(links_in_the_place_of_proc_are_not_followed)
{
	with_own_mounts(proc_links);
}

static void profile(int root)
{
	struct gpu_edits x;

	gpu_edits_init(&x);
	x.visible_profile = "{\"profiles\":[]}";
	fill(root, &x);
	text_is("etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf",
		"{\"profiles\":[]}");
	x.visible_profile = NULL;
	fill(root, &x);
	assert_int_equal(
		access("etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf", F_OK), -1);
}
TEST(the_profile_of_visible_gpus_is_written_and_taken_back)
{
	with_own_mounts(profile);
}

/* ---- forward compatibility ---- */

#define FOLDER "usr/local/cuda-13/compat/"

static void put_compat(const char *version, const char *note)
{
	auto_free char *script = mem_printf(
		"mkdir -p usr/local/cuda-13/compat; ln -sfn cuda-13 usr/local/cuda;"
		"rm -rf " FOLDER "*; echo 'int f(void) { return 1; }' >t.c;"
		"gcc -shared -nostdlib -Wl,-soname,libcuda.so.1 -o " FOLDER "libcuda.so.%s t.c;"
		"ln -s libcuda.so.%s " FOLDER "libcuda.so.1",
		version, version);

	sh(script);
	if (note) {
		auto_free char *add = mem_printf(
			"printf '%%s' '%s' >text; perl -e '$t = `cat text`; print "
			"pack(\"VVVa20a*x4\","
			" 19, length $t, 1, \"NVIDIA Corporation\", $t)' >note;"
			"objcopy --add-section .note.cuda.fwd_compatibility=note "
			"--set-section-flags "
			".note.cuda.fwd_compatibility=readonly " FOLDER "libcuda.so.%s 2>/dev/null;"
			"perl -e 'open F, \"+<\", $ARGV[0]; binmode F; local $/; $d = <F>;"
			"$o = unpack(\"Q\", substr($d, 40)); ($z, $n, $x) = unpack(\"vvv\", "
			"substr($d, 58));"
			"$s = unpack(\"Q\", substr($d, $o + $x * $z + 24));"
			"for $i (0 .. $n - 1) { $h = $o + $i * $z; $m = unpack(\"Z*\", substr($d, "
			"$s + "
			"unpack(\"V\", substr($d, $h)))); if ($m eq "
			"\".note.cuda.fwd_compatibility\") {"
			"seek F, $h + 4, 0; print F pack(\"V\", 7) } }' " FOLDER "libcuda.so.%s",
			note, version, version);

		sh(add);
	}
}

static void compat_rule(int root)
{
	static const struct {
		const char *version, *note, *driver, *cuda;
		int choice, wanted;
	} t[] = {
		/* without a note: by the driver's version */
		{"580.65.06", NULL, "570.12", NULL, 0, 1},
		{"580.65.06", NULL, "580.10", NULL, 0, 0},
		{"580.65.06", NULL, "590.10", NULL, 0, 0},
		{"580.65.06", NULL, "570.12", NULL, -1, 0},
		{"580.65.06", NULL, "590.12", NULL, 1, 1},
		/* by the note: the driver is listed, and its CUDA is older */
		{"580.65.06", "{\"CUDA Version\": \"13.1\", \"Driver\": [535, 550]}", "550.1",
			"12.4", 0, 1},
		{"580.65.06", "{\"CUDA Version\": \"13.1\", \"Driver\": [535, 550]}", "565.1",
			"12.7", 0, 0},
		{"580.65.06", "{\"CUDA Version\": \"12.4\", \"Driver\": [535, 550]}", "550.1",
			"12.4", 0, 0},
		{"580.65.06", "{\"CUDA Version\": \"13.1\", \"Driver\": [535, 550]}", "550.1", NULL,
			0, 1},
		{"580.65.06", "{\"CUDA Version\": \"13.1\"}", "550.1", "12.4", 0, 1},
		{"580.65.06", "{\"CUDA Version\": \"13.1\"}", "550.1", NULL, 0, 0},
		{"580.65.06", "{}", "550.1", "12.4", 0, 0},
		{"580.65.06", "{\"Driver\": \"550\"}", "550.1", "12.4", 0, 0},
		{"580.65.06", "no JSON", "550.1", "12.4", 0, -1},
		{"580.65.06", "[550]", "550.1", "12.4", 0, -1},
	};
	const char *dir, *why;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct err e = {0};
		int rc;

		put_compat(t[i].version, t[i].note);
		rc = compat_decide(root, t[i].driver, t[i].cuda, t[i].choice, &dir, &why, &e);
		if (rc != t[i].wanted)
			fail_msg("row %zu: %d, %s %s", i, rc, why, e.text);
		if (rc < 0)
			assert_int_equal(e.kind, ERR_CORRUPT);
		if (rc > 0)
			assert_string_equal(dir, "/usr/local/cuda/compat");
	}
	/* which file? and none that is a link, whatever it leads to */
	sh("cp " FOLDER "libcuda.so.580.65.06 " FOLDER "libcuda.so.590.1.1");
	assert_int_equal(compat_decide(root, "550.1", NULL, 1, &dir, &why, NULL), 0);
	sh("rm " FOLDER "libcuda.so.590.1.1; mv " FOLDER "libcuda.so.580.65.06 real;"
	   "ln -s /real " FOLDER "libcuda.so.580.65.06");
	assert_int_equal(compat_decide(root, "550.1", NULL, 1, &dir, &why, NULL), 0);
	sh("rm -r usr");
	assert_int_equal(compat_decide(root, "550.1", NULL, 1, &dir, &why, NULL), 0);
}
TEST(the_image_s_newer_driver_is_used_by_the_rule)
{
	with_own_mounts(compat_rule);
}

static size_t place_of(int root, const char *path)
{
	auto_buf struct buf b = BUF_INIT(LDCACHE_MAX);
	struct ldcache c;
	size_t at = 0;

	assert_int_equal(root_file_read(root, "/etc/ld.so.cache", &b, NULL), 1);
	assert_int_equal(ldcache_read(&c, b.data, b.len, NULL), 0);
	while (at < c.n && !str_eq(c.v[at].path, path))
		at++;
	ldcache_fini(&c);
	return at;
}

static void compat_first(int root)
{
	struct gpu_edits x;

	put_compat("580.65.06", NULL);
	sh("mkdir -p etc usr/local/nvidia/lib64; cp " FOLDER
	   "libcuda.so.580.65.06 usr/local/nvidia/lib64/libcuda.so.1");
	gpu_edits_init(&x);
	gpu_edits_ld_dir(&x, "/usr/local/nvidia/lib64");
	x.compat_driver = "550.54.15";
	fill(root, &x);
	assert_int_equal(place_of(root, "/usr/local/cuda/compat/libcuda.so.1"), 0);
	assert_int_equal(place_of(root, "/usr/local/nvidia/lib64/libcuda.so.1"), 1);
	/* the host has a newer driver now */
	x.compat_driver = "600.1.1";
	fill(root, &x);
	assert_int_equal(place_of(root, "/usr/local/nvidia/lib64/libcuda.so.1"), 0);
	assert_int_equal(place_of(root, "/usr/local/cuda/compat/libcuda.so.1"), 1); /* none */
	gpu_edits_fini(&x);
}
TEST(the_newer_driver_comes_first_for_the_loader_until_the_hosts_is_newer)
{
	with_own_mounts(compat_first);
}

RUN_TESTS(cmocka_unit_test(links_are_made_and_taken_back),
	cmocka_unit_test(links_of_the_image_lead_nowhere_out_of_it),
	cmocka_unit_test(what_is_mounted_by_the_start_is_filled_and_a_volume_is_not),
	cmocka_unit_test(a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere),
	cmocka_unit_test(an_image_whose_glibc_is_too_old_is_refused),
	cmocka_unit_test(a_container_sees_its_own_gpus_and_may_not_change_nodes),
	cmocka_unit_test(links_in_the_place_of_proc_are_not_followed),
	cmocka_unit_test(the_profile_of_visible_gpus_is_written_and_taken_back),
	cmocka_unit_test(the_image_s_newer_driver_is_used_by_the_rule),
	cmocka_unit_test(the_newer_driver_comes_first_for_the_loader_until_the_hosts_is_newer))
