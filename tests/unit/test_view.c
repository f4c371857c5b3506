/* The driver's files on fixtures of whole hosts, and the view that is made of them. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "gpu/ldcache.h"
#include "gpu/view.h"
#include "tests/unit/gpu-root.h"

enum { USUAL = GPU_CAP_COMPUTE | GPU_CAP_UTILITY };

static const struct driver_file *find(const struct driver_files *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->v[i].name, name))
			return &f->v[i];
	return NULL;
}

static void find_all(const char *kind, unsigned caps, struct driver_files *f)
{
	struct gpu_host h;
	struct err e = {0};

	gpu_root_open(kind, &h, NULL);
	if (driver_files_find(f, &h, GPU_ROOT_VERSION, caps, &e) < 0)
		fail_msg("%s: %s", kind, e.text);
	gpu_host_close(&h);
}

/* ---- finding ---- */

TEST(every_layout_of_a_host_is_understood)
{
	static const struct {
		const char *kind, *root, *libcuda, *smi;
	} t[] = {
		{"eight", "/", "/usr/lib/x86_64-linux-gnu", "/usr/bin/nvidia-smi"},
		{"current", "/", "/usr/lib/x86_64-linux-gnu/nvidia/current",
			"/usr/lib/nvidia/current/nvidia-smi"},
		{"fedora", "/", "/usr/lib64", "/usr/bin/nvidia-smi"},
		{"gke", "/", "/usr/local/nvidia/lib64", "/usr/local/nvidia/bin/nvidia-smi"},
		{"nixos", "/",
			"/nix/store/0123456789abcdfghijklmnpqrsvwxyz-nvidia-x11-999.88.77-6.12/lib",
			"/nix/store/0123456789abcdfghijklmnpqrsvwxyz-nvidia-x11-999.88.77-6.12/bin/"
			"nvidia-smi"},
		{"operator", "/run/nvidia/driver", "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
			"/run/nvidia/driver/usr/bin/nvidia-smi"},
		{"leftover", "/", "/usr/lib/x86_64-linux-gnu", "/usr/bin/nvidia-smi"},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		auto_free char *source =
			mem_printf("%s/libcuda.so." GPU_ROOT_VERSION, t[i].libcuda);
		struct driver_files f;
		const struct driver_file *d;

		find_all(t[i].kind, USUAL, &f);
		d = find(&f, "lib64/libcuda.so." GPU_ROOT_VERSION);
		assert_non_null(d);
		assert_string_equal(d->source, source);
		assert_string_equal(d->soname, "libcuda.so.1");
		assert_string_equal(d->aliases[0], "libcuda.so.1");
		assert_string_equal(d->aliases[1], "libcuda.so");
		d = find(&f, "bin/nvidia-smi");
		assert_non_null(d);
		assert_string_equal(d->source, t[i].smi);
		assert_string_equal(d->link, "/usr/bin/nvidia-smi");
		assert_string_equal(f.root, t[i].root);
		driver_files_fini(&f);
	}
}

TEST(a_set_of_capabilities_brings_its_files_only)
{
	static const struct {
		unsigned caps;
		const char *name;
		bool there;
	} t[] = {
		{USUAL, "lib64/libnvidia-ml.so.999.88.77", true},
		{USUAL, "lib64/libnvidia-ptxjitcompiler.so.999.88.77", true},
		{USUAL, "lib64/libnvidia-encode.so.999.88.77", false},
		{USUAL, "lib64/libnvidia-glcore.so.999.88.77", false},
		{USUAL, "etc/OpenCL/vendors/nvidia.icd", true},
		{USUAL, "share/vulkan/icd.d/nvidia_icd.json", false},
		{GPU_CAP_UTILITY, "lib64/libcuda.so.999.88.77", false},
		{GPU_CAP_UTILITY, "bin/nvidia-smi", true},
		{GPU_CAP_UTILITY, "bin/nvidia-cuda-mps-control", false},
		{GPU_CAP_COMPUTE, "bin/nvidia-smi", false},
		{GPU_CAP_VIDEO, "lib64/libnvidia-encode.so.999.88.77", true},
		{GPU_CAP_VIDEO, "lib64/libcuda.so.999.88.77", true},
		{GPU_CAP_GRAPHICS, "lib64/libGLX_nvidia.so.999.88.77", true},
		{GPU_CAP_GRAPHICS, "lib64/libnvidia-egl-gbm.so.1.1.2", true},
		{GPU_CAP_GRAPHICS, "share/glvnd/egl_vendor.d/10_nvidia.json", true},
		{GPU_CAP_GRAPHICS, "lib64/libnvidia-ngx.so.999.88.77", false},
		{GPU_CAP_NGX, "lib64/libnvidia-ngx.so.999.88.77", true},
		{GPU_CAP_ALL, "lib32/libcuda.so.999.88.77", true},
		{GPU_CAP_ALL & ~GPU_CAP_COMPAT32, "lib32/libcuda.so.999.88.77", false},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct driver_files f;

		find_all("eight", t[i].caps, &f);
		if ((find(&f, t[i].name) != NULL) != t[i].there)
			fail_msg("%s with %x", t[i].name, t[i].caps);
		driver_files_fini(&f);
	}
}

TEST(nothing_that_is_the_images_own_or_another_versions_is_taken)
{
	static const char *const never[] = {
		"libGL.so", "libEGL.so", "libGLdispatch", "libOpenCL.so", "libc.so", "888.11.22"};
	static const char *const kinds[] = {"eight", "leftover", "fedora"};

	for (size_t k = 0; k < 3; k++) {
		struct driver_files f;

		find_all(kinds[k], GPU_CAP_ALL, &f);
		assert_true(f.n > 30);
		for (size_t i = 0; i < f.n; i++)
			for (size_t n = 0; n < sizeof(never) / sizeof(never[0]); n++)
				if (strstr(f.v[i].source, never[n]) ||
					strstr(f.v[i].name, never[n]))
					fail_msg("%s", f.v[i].source);
		driver_files_fini(&f);
	}
}

TEST(a_library_for_another_word_size_is_not_mistaken)
{
	struct driver_files f;

	find_all("fedora", GPU_CAP_ALL, &f);
	assert_string_equal(
		find(&f, "lib64/libcuda.so.999.88.77")->source, "/usr/lib64/libcuda.so.999.88.77");
	assert_string_equal(
		find(&f, "lib32/libcuda.so.999.88.77")->source, "/usr/lib/libcuda.so.999.88.77");
	driver_files_fini(&f);
}

TEST(a_version_that_is_not_there_is_said_with_those_that_are)
{
	struct gpu_host h;
	struct driver_files f;
	struct err e = {0};

	gpu_root_open("leftover", &h, NULL);
	assert_int_equal(driver_files_find(&f, &h, "777.66.55", USUAL, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, "777.66.55"));
	assert_non_null(strstr(e.text, "/usr/lib/x86_64-linux-gnu"));
	assert_non_null(strstr(e.hint, "999.88.77"));
	assert_non_null(strstr(e.hint, "888.11.22"));
	assert_int_equal(driver_files_find(&f, &h, "../../etc/shadow", USUAL, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	gpu_host_close(&h);
}

TEST(the_newest_glibc_that_is_asked_for_is_known)
{
	struct driver_files f;

	find_all("newglibc", USUAL, &f);
	assert_string_equal(f.glibc, "2.34");
	driver_files_fini(&f);
}

/* One bad file after the other: each is refused by name, then removed. */
TEST(files_that_must_not_be_given_away_are_refused_by_name)
{
	static const struct {
		const char *file, *why;
		enum err_kind kind;
	} t[] = {
		{"libnvidia-ml.so.", "leads to nothing|no shared library", 0},
		{"libnvidia-cfg.so.", "leads to nothing", ERR_DENIED},
		{"libcudadebugger.so.", "is no regular file", ERR_DENIED},
		{"libnvidia-opencl.so.", "is no regular file", ERR_DENIED},
		{"libnvidia-gpucomp.so.", "can be written to by others", ERR_DENIED},
		{"libnvidia-allocator.so.", "", ERR_CORRUPT},
		{"libnvidia-nvvm.so.", "", ERR_CORRUPT},
	};
	struct gpu_host h;
	struct driver_files f;

	gpu_root_open("hostile", &h, NULL);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct err e = {0};
		auto_free char *rm = mem_printf(
			"rm -rf hostile/usr/lib/x86_64-linux-gnu/%s999.88.77", t[i].file);

		assert_int_equal(driver_files_find(&f, &h, GPU_ROOT_VERSION, USUAL, &e), -1);
		if (!strstr(e.text, t[i].file) || (t[i].kind && e.kind != t[i].kind) ||
			(!strchr(t[i].why, '|') && !strstr(e.text, t[i].why)))
			fail_msg("%s: %s", t[i].file, e.text);
		gpu_sh(rm);
	}
	assert_int_equal(driver_files_find(&f, &h, GPU_ROOT_VERSION, USUAL, NULL), 0);
	driver_files_fini(&f);
	/* one of another owner */
	gpu_sh("chown 12345 hostile/usr/lib/x86_64-linux-gnu/libcuda.so.999.88.77");
	assert_int_equal(driver_files_find(&f, &h, GPU_ROOT_VERSION, USUAL, NULL), -1);
	gpu_host_close(&h);
}

/* ---- the view ---- */

struct start {
	struct gpu_host h;
	struct gpu_inventory i;
	struct gpu_edits x;
	struct err e;
};

static void start_open(struct start *s, const char *kind)
{
	*s = (struct start){0};
	gpu_root_open(kind, &s->h, &s->i);
	gpu_edits_init(&s->x);
}

static void start_close(struct start *s)
{
	gpu_edits_fini(&s->x);
	gpu_inventory_fini(&s->i);
	gpu_host_close(&s->h);
}

static const char *add_locked(struct start *s, unsigned caps)
{
	if (gpu_view_add(&s->x, &s->h, &s->i, caps, &s->e) < 0)
		fail_msg("%s", s->e.text);
	for (size_t i = 0; i < s->x.nmounts; i++)
		if (str_eq(s->x.mounts[i].destination, GPU_VIEW_PATH))
			return s->x.mounts[i].source;
	fail_msg("no view is mounted");
	return NULL;
}

/* As if it were mounted. */
static const char *add(struct start *s, unsigned caps)
{
	const char *view = add_locked(s, caps);

	assert_true(s->x.has_view_lock);
	sys_close_ref(&s->x.view_lock);
	s->x.has_view_lock = false;
	return view;
}

static struct stat stat_in(const char *folder, const char *name)
{
	auto_free char *path = mem_printf("%s/%s", folder, name);
	struct stat st;

	if (stat(path, &st) < 0)
		fail_msg("%s is missing", path);
	return st;
}

/* Numbers of file systems are used again. */
static bool same_time(struct stat a, struct stat b)
{
	return a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

static bool has(const char *folder, const char *name)
{
	auto_free char *path = mem_printf("%s/%s", folder, name);

	return access(path, F_OK) == 0;
}

static size_t count_lines(const char *command)
{
	FILE *p = popen(command, "r");
	size_t n = 0;
	int c;

	assert_non_null(p);
	while ((c = fgetc(p)) != EOF)
		n += c == '\n';
	pclose(p);
	return n;
}

TEST(a_view_has_the_files_under_all_their_names)
{
	struct start s;
	const char *view;
	struct stat host, a, b;

	start_open(&s, "eight");
	view = add(&s, GPU_CAP_ALL);
	host = stat_in(gpu_roots, "eight/usr/lib/x86_64-linux-gnu/libcuda.so.999.88.77");
	a = stat_in(view, "lib64/libcuda.so");
	b = stat_in(view, "lib64/libcuda.so.1");
	assert_true(a.st_ino == host.st_ino && a.st_dev == host.st_dev && b.st_ino == host.st_ino);
	stat_in(view, "lib64/libGLX_indirect.so.0");
	stat_in(view, "lib64/libnvidia-opticalflow.so");
	stat_in(view, "lib64/libnvidia-egl-gbm.so.1");
	stat_in(view, "lib32/libcuda.so.1");
	stat_in(view, "bin/nvidia-smi");
	stat_in(view, "share/vulkan/icd.d/nvidia_icd.json");
	/* read-only, whoever asks */
	{
		auto_free char *write =
			mem_printf("! touch %s/x 2>/dev/null; ! touch %s/bin/nvidia-smi "
				   "2>/dev/null",
				view, view);
		gpu_sh(write);
	}
	/* links of the container, and what the loader is told */
	assert_true(s.x.nld_dirs == 2 && str_eq(s.x.ld_dirs[0], "/usr/local/nvidia/lib64"));
	assert_true(s.x.nlibs > 30);
	for (size_t i = 0; i < s.x.nlibs; i++) {
		const char *name = s.x.libs[i].path + strlen(GPU_VIEW_PATH "/");

		stat_in(view, name);
		assert_true(s.x.libs[i].flags == 0x303 || s.x.libs[i].flags == 3);
	}
	for (size_t i = 0; i < s.x.nlinks; i++)
		stat_in(view, s.x.links[i].target + strlen(GPU_VIEW_PATH "/"));
	start_close(&s);
}

TEST(a_set_without_files_is_an_empty_view)
{
	struct start s;

	start_open(&s, "gke");
	stat_in(add(&s, GPU_CAP_COMPAT32), "view.json");
	assert_int_equal(s.x.nlibs, 0);
	start_close(&s);
	start_open(&s, "gke");
	assert_int_equal(gpu_view_add(&s.x, &s.h, &s.i, 0, &s.e), 0);
	assert_true(gpu_edits_empty(&s.x));
	assert_int_equal(gpu_views_sweep(&s.h, NULL, &s.e), 0);
	start_close(&s);
}

TEST(sockets_are_bound_writable_and_only_while_they_are_there)
{
	struct start s;
	const struct edit_mount *m = NULL;

	start_open(&s, "eight");
	add(&s, USUAL);
	for (size_t i = 0; i < s.x.nmounts; i++)
		if (str_eq(s.x.mounts[i].destination, "/run/nvidia-persistenced/socket"))
			m = &s.x.mounts[i];
	assert_non_null(m);
	for (size_t i = 0; i < m->noptions; i++)
		assert_string_not_equal(m->options[i], "ro");
	start_close(&s);
	gpu_sh("mv eight/run/nvidia-persistenced/socket eight/run/away");
	start_open(&s, "eight");
	add(&s, USUAL);
	for (size_t i = 0; i < s.x.nmounts; i++)
		assert_null(strstr(s.x.mounts[i].destination, "persistenced"));
	start_close(&s);
	gpu_sh("mv eight/run/away eight/run/nvidia-persistenced/socket");
}

TEST(a_view_is_made_once_and_again_when_the_driver_changes)
{
	struct start s;
	struct stat first, second;
	auto_free char *kept = mem_printf("%s/kept", gpu_roots), *text = NULL;
	const char *view;

	start_open(&s, "eight");
	view = add(&s, USUAL);
	first = stat_in(view, "view.json");
	view = add(&s, USUAL);
	second = stat_in(view, "view.json");
	assert_true(first.st_ino == second.st_ino && first.st_dev == second.st_dev);
	/* a container has it */
	text = mem_printf("mkdir kept; mount --rbind %s kept", view);
	gpu_sh(text);
	gpu_sh("touch -d 2020-01-01 eight/usr/lib/x86_64-linux-gnu/libcuda.so.999.88.77");
	view = add(&s, USUAL);
	second = stat_in(view, "view.json");
	assert_true(first.st_dev != second.st_dev);
	stat_in(kept, "lib64/libcuda.so.1");
	assert_true(stat_in(kept, "lib64/libcuda.so.1").st_size > 100);
	gpu_sh("umount -l kept; rmdir kept");
	/* the same version put there once more: another file by the name of one that is not libcuda
	 */
	gpu_sh("cd eight/usr/lib/x86_64-linux-gnu; f=libnvidia-ml.so.999.88.77;"
	       "cp -p $f new; mv new $f");
	first = second;
	view = add(&s, USUAL);
	assert_false(same_time(first, stat_in(view, "view.json")));
	start_close(&s);
}

/* What a start has found must still be there when its child binds it, though others find the driver
 * changed meanwhile. */
TEST(a_view_stays_until_the_start_that_found_it_has_mounted_it)
{
	struct start one, two;
	struct stat st;
	const char *view;
	auto_free char *filled = mem_printf("%s/filled", gpu_roots);
	auto_fd int root = -1;
	pid_t pid;
	int status;

	start_open(&one, "eight");
	view = add_locked(&one, USUAL);
	st = stat_in(view, "view.json");
	gpu_sh("touch -d 2020-02-02 eight/usr/lib/x86_64-linux-gnu/libcuda.so.999.88.77");
	start_open(&two, "eight");
	pid = fork();
	if (pid == 0)
		_exit(gpu_view_add(&two.x, &two.h, &two.i, USUAL, NULL) < 0);
	usleep(100000); /* a build takes 10 ms: it waits */
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_true(same_time(st, stat_in(view, "view.json")));
	/* the child fills */
	gpu_sh("mkdir -p filled/etc");
	root = sys_open(filled, O_RDONLY | O_DIRECTORY, 0);
	assert_true(root >= 0);
	assert_int_equal(gpu_edits_fill_new(&one.x, root, NULL, 0, &one.e), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(same_time(st, stat_in(view, "view.json")));
	start_close(&two);
	start_close(&one);
}

TEST(views_of_other_versions_are_let_go_of)
{
	struct start s;
	auto_free char *views = mem_printf("%s/eight/run/svrun/gpu/views", gpu_roots);

	start_open(&s, "eight");
	add(&s, USUAL);
	add(&s, GPU_CAP_UTILITY);
	assert_int_equal(gpu_views_sweep(&s.h, GPU_ROOT_VERSION, &s.e), 0);
	assert_true(has(views, "999.88.77-03/view.json") && has(views, "999.88.77-02/view.json"));
	/* a version that begins alike is another one */
	assert_int_equal(gpu_views_sweep(&s.h, "999.88", &s.e), 0);
	assert_false(has(views, "999.88.77-03"));
	assert_false(has(views, "999.88.77-02"));
	add(&s, USUAL);
	assert_true(has(views, "999.88.77-03/view.json"));
	assert_int_equal(gpu_views_sweep(&s.h, NULL, &s.e), 0);
	assert_false(has(views, "999.88.77-03"));
	start_close(&s);
}

TEST(many_who_start_at_once_make_one_view)
{
	struct start s;
	pid_t pids[6];
	int status;
	char command[256];

	start_open(&s, "eight");
	assert_int_equal(gpu_views_sweep(&s.h, NULL, &s.e), 0);
	for (size_t i = 0; i < 6; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(gpu_view_add(&s.x, &s.h, &s.i, i % 2 ? USUAL : GPU_CAP_ALL, NULL) <
				0);
	}
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	snprintf(command, sizeof(command),
		"grep ' %s/eight/run/svrun/gpu/views/[^/]* ' "
		"/proc/self/mountinfo",
		gpu_roots);
	assert_int_equal(count_lines(command), 2);
	start_close(&s);
}

/* Whenever it is killed, the next one makes a whole view and nothing is left over. */
TEST(what_a_killed_build_leaves_is_cleaned_by_the_next)
{
	struct start s;
	char command[256];
	unsigned partly = 0;

	start_open(&s, "eight");
	for (useconds_t us = 200; us < 8000; us += 400) {
		pid_t pid;
		int status;

		assert_int_equal(gpu_views_sweep(&s.h, NULL, &s.e), 0);
		pid = fork();
		if (pid == 0)
			_exit(gpu_view_add(&s.x, &s.h, &s.i, GPU_CAP_ALL, NULL) < 0);
		usleep(us);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		partly += WIFSIGNALED(status);
		stat_in(add(&s, GPU_CAP_ALL), "lib64/libcuda.so.1");
		snprintf(command, sizeof(command),
			"grep ' %s/eight/run/svrun/gpu/views/[^/]* ' /proc/self/mountinfo",
			gpu_roots);
		assert_int_equal(count_lines(command), 1);
	}
	assert_true(partly > 0);
	start_close(&s);
}

/* A service with a mount namespace of its own hears of changes below /run. */
TEST(files_of_a_view_spread_to_no_other_namespace)
{
	struct start s;
	char command[512];
	int go[2], done[2], status;
	char byte = 0;
	pid_t pid;

	start_open(&s, "eight");
	assert_int_equal(gpu_views_sweep(&s.h, NULL, &s.e), 0);
	snprintf(command, sizeof(command),
		"umount -l eight/run/svrun/gpu/views; mount --bind eight/run eight/run;"
		"mount --make-shared eight/run");
	gpu_sh(command);
	start_close(&s);
	assert_true(sys_pipe(go) == 0 && sys_pipe(done) == 0);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 || sys_write(done[1], &byte, 1) != 1 ||
			sys_read(go[0], &byte, 1) != 1)
			_exit(100);
		snprintf(command, sizeof(command),
			"grep -c ' %s/eight/run/svrun/gpu/views/' "
			"/proc/self/mountinfo >%s/spread",
			gpu_roots, gpu_roots);
		_exit(system(command) == -1);
	}
	assert_int_equal(sys_read(done[0], &byte, 1), 1);
	start_open(&s, "eight");
	add(&s, USUAL);
	assert_int_equal(sys_write(go[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	gpu_sh("[ $(cat spread) = 0 ]");
	assert_int_equal(gpu_views_sweep(&s.h, NULL, &s.e), 0);
	gpu_sh("umount -l eight/run");
	start_close(&s);
}

TEST(windows_driver_comes_with_its_folder)
{
	struct start s;

	start_open(&s, "wsl");
	assert_int_equal(gpu_view_add(&s.x, &s.h, &s.i, USUAL, &s.e), 0);
	assert_int_equal(s.x.nmounts, 1);
	assert_string_equal(s.x.mounts[0].destination, "/usr/lib/wsl");
	assert_string_equal(s.x.ld_dirs[0], "/usr/lib/wsl/lib");
	start_close(&s);
}

/* ---- words ---- */

TEST(capabilities_are_words)
{
	static const struct {
		const char *text;
		int wanted; /* -1: refused */
	} t[] = {{"", 0}, {"compute,utility", 3}, {"all", GPU_CAP_ALL}, {"video", 4},
		{"compute,", 1}, {"Compute", -1}, {"compute utility", -1}, {"computer", -1},
		{"comp", -1}, {"compat32,ngx", 96}, {"display,graphics", 24}};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		unsigned caps = 99;
		struct err e = {0};
		int rc = gpu_capabilities_parse(t[i].text, &caps, &e);

		assert_int_equal(rc, t[i].wanted < 0 ? -1 : 0);
		if (rc == 0)
			assert_int_equal(caps, t[i].wanted);
		else
			assert_int_equal(e.kind, ERR_USAGE);
	}
}

static int make(void **state __attribute__((unused)))
{
	return gpu_roots_make(
		"eight current fedora gke nixos operator leftover hostile newglibc wsl");
}

int main(void)
{
	const struct CMUnitTest any[] = {cmocka_unit_test(capabilities_are_words)};
	const struct CMUnitTest root[] = {
		cmocka_unit_test(every_layout_of_a_host_is_understood),
		cmocka_unit_test(a_set_of_capabilities_brings_its_files_only),
		cmocka_unit_test(nothing_that_is_the_images_own_or_another_versions_is_taken),
		cmocka_unit_test(a_library_for_another_word_size_is_not_mistaken),
		cmocka_unit_test(a_version_that_is_not_there_is_said_with_those_that_are),
		cmocka_unit_test(the_newest_glibc_that_is_asked_for_is_known),
		cmocka_unit_test(files_that_must_not_be_given_away_are_refused_by_name),
		cmocka_unit_test(a_view_has_the_files_under_all_their_names),
		cmocka_unit_test(a_set_without_files_is_an_empty_view),
		cmocka_unit_test(sockets_are_bound_writable_and_only_while_they_are_there),
		cmocka_unit_test(a_view_is_made_once_and_again_when_the_driver_changes),
		cmocka_unit_test(a_view_stays_until_the_start_that_found_it_has_mounted_it),
		cmocka_unit_test(views_of_other_versions_are_let_go_of),
		cmocka_unit_test(many_who_start_at_once_make_one_view),
		cmocka_unit_test(what_a_killed_build_leaves_is_cleaned_by_the_next),
		cmocka_unit_test(windows_driver_comes_with_its_folder),
		cmocka_unit_test(files_of_a_view_spread_to_no_other_namespace),
	};
	int rc = cmocka_run_group_tests(any, NULL, NULL);

	if (geteuid() != 0) {
		print_message("[  SKIPPED ] the tests on hosts need root\n");
		return rc;
	}
	return rc ? rc : cmocka_run_group_tests(root, make, gpu_roots_remove);
}
