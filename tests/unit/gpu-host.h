/* A host with GPUs in a temporary folder, for what reads one: only what a test puts there. */
#ifndef GPU_HOST_TEST_H
#define GPU_HOST_TEST_H

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "gpu/host.h"

struct gpu_test_host {
	char dir[48];
	struct gpu_host h;
};

static inline int gpu_test_make(void **state)
{
	struct gpu_test_host *t = mem_alloc(sizeof(*t));
	static const char *const folders[] = {"proc", "sys", "dev"};

	snprintf(t->dir, sizeof(t->dir), "/tmp/svrun-gpu-host.XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	for (size_t k = 0; k < 3; k++) {
		auto_free char *path = mem_printf("%s/%s", t->dir, folders[k]);

		assert_int_equal(mkdir(path, 0755), 0);
	}
	setenv("SVRUN_GPU_ROOT", t->dir, 1);
	assert_int_equal(gpu_host_open(&t->h, NULL), 0);
	*state = t;
	return 0;
}

static inline int gpu_test_drop(void **state)
{
	struct gpu_test_host *t = *state;

	gpu_host_close(&t->h);
	unsetenv("SVRUN_GPU_ROOT");
	assert_int_equal(sys_remove_tree(AT_FDCWD, t->dir), 0);
	free(t);
	return 0;
}

#define GPU_CASE(name) cmocka_unit_test_setup_teardown(name, gpu_test_make, gpu_test_drop)

/* The folders above a path of the host. */
static inline char *gpu_test_path(struct gpu_test_host *t, const char *path)
{
	char *whole = mem_printf("%s/%s", t->dir, path), *slash = strrchr(whole, '/');

	*slash = '\0';
	assert_int_equal(sys_mkdir_p(AT_FDCWD, whole, 0755), 0);
	*slash = '/';
	return whole;
}

static inline void gpu_test_put(struct gpu_test_host *t, const char *path, const char *text)
{
	auto_free char *whole = gpu_test_path(t, path);
	FILE *f = fopen(whole, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

static inline void gpu_test_link(struct gpu_test_host *t, const char *path, const char *target)
{
	auto_free char *whole = gpu_test_path(t, path);

	assert_int_equal(symlink(target, whole), 0);
}

/* As root only: no other can make devices. */
static inline void gpu_test_node(
	struct gpu_test_host *t, const char *path, unsigned major, unsigned minor, mode_t mode)
{
	auto_free char *whole = gpu_test_path(t, path);

	assert_int_equal(mknod(whole, S_IFCHR, makedev(major, minor)), 0);
	assert_int_equal(chmod(whole, mode), 0);
}

#define GPU_TEST_DEVICES                                                                           \
	"Character devices:\n  1 mem\n226 drm\n195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n"    \
	"235 nvidia-caps\n510 nvidia-uvm\n\nBlock devices:\n  7 loop\n"
#define GPU_TEST_VERSION                                                                           \
	"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  "      \
	"(dvs-builder@U22)  Tue Sep 23 10:11:16 UTC 2025\nGCC version:  gcc version 12.3.0\n"

static inline void gpu_test_driver(struct gpu_test_host *t)
{
	gpu_test_put(t, "proc/devices", GPU_TEST_DEVICES);
	gpu_test_put(t, "proc/driver/nvidia/version", GPU_TEST_VERSION);
}

/* folder: as it is called in gpus/; NULL: the bus. */
static inline void gpu_test_gpu(struct gpu_test_host *t, const char *folder, const char *bus,
	unsigned minor, const char *model, const char *uuid, const char *excluded)
{
	auto_free char *path =
		mem_printf("proc/driver/nvidia/gpus/%s/information", folder ? folder : bus);
	auto_free char *text = mem_printf("Model: \t\t %s\nIRQ:   \t\t 60\nGPU UUID: \t %s\n"
					  "Video BIOS: \t 94.02.42.00.01\nBus Type: \t PCIe\n"
					  "Bus Location: \t %s\nDevice Minor: \t %u\n"
					  "GPU Firmware: \t 580.95.05\nGPU Excluded:\t %s\n",
		model, uuid, bus, minor, excluded);

	gpu_test_put(t, path, text);
}

#define GPU_TEST_UUID(n) "GPU-5a00000" #n "-0123-4567-89ab-0123456789ab"

#endif
