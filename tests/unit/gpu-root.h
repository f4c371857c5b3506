/* Hosts with GPUs for tests: tests/gpu/make-root, in a mount namespace of the test's own. */
#ifndef GPU_ROOT_H
#define GPU_ROOT_H

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/host.h"
#include "gpu/inventory.h"

#define GPU_ROOT_VERSION "999.88.77"

static char gpu_roots[] = "/tmp/svrun-gpu-roots-XXXXXX";

static inline void gpu_sh(const char *script)
{
	auto_free char *text =
		mem_printf("set -e; cd %s; PATH=$PATH:/sbin:/usr/sbin; %s", gpu_roots, script);

	if (system(text) != 0)
		fail_msg("%s", script);
}

/* Make these, two at a time: for cmocka_run_group_tests(). They cannot be made without root. */
static inline int gpu_roots_make(const char *kinds)
{
	auto_free char *script = NULL;
	char cwd[4096];

	if (!mkdtemp(gpu_roots) || !getcwd(cwd, sizeof(cwd)))
		return -1;
	script = mem_printf(
		"cd %s; echo %s | xargs -n 1 -P 2 sh -c '%s/tests/gpu/make-root $0 %s/$0'",
		gpu_roots, kinds, cwd, gpu_roots);
	if (system(script) != 0 || unshare(CLONE_NEWNS) < 0)
		return -1;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static inline int gpu_roots_remove(void **state __attribute__((unused)))
{
	auto_free char *script =
		mem_printf("for m in $(grep -o ' %s[^ ]*' /proc/self/mounts | sort -r);"
			   "do umount -l $m; done; rm -rf %s",
			gpu_roots, gpu_roots);

	return system(script);
}

static inline void gpu_root_open(const char *kind, struct gpu_host *h, struct gpu_inventory *i)
{
	auto_free char *path = mem_printf("%s/%s", gpu_roots, kind);
	struct err e = {0};

	assert_int_equal(setenv("SVRUN_GPU_ROOT", path, 1), 0);
	if (gpu_host_open(h, &e) < 0 || (i && gpu_inventory_read(i, h, &e) < 0))
		fail_msg("%s", e.text);
}

#endif
