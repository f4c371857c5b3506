/* What belongs to NVIDIA's user-space driver, and where distributions put it. Vendor-neutral GL and
 * EGL, libOpenCL and libc are not in it: they are the image's. Source: gpu.md 1.4. */
#ifndef GPU_DRIVER_TABLE_H
#define GPU_DRIVER_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/elf.h"

/* Called STEM.so.VERSION, of the kernel module's version; or, with `soname`, by that name, because
 * it has a version of its own: then it is taken from the root that the others are from. */
struct driver_library {
	const char *stem;
	unsigned caps;
	const char *soname;
	const char *plain; /* a further link: "libGLX_indirect.so.0" */
	bool always;       /* `plain` is made whether the host has it or not */
};
extern const struct driver_library driver_libraries[];
extern const size_t driver_libraries_n;

/* A program, or a file with one known place. */
struct driver_other {
	const char *path; /* "nvidia-smi"; "share/vulkan/icd.d/nvidia_icd.json", "etc/..." */
	unsigned caps;
};
extern const struct driver_other driver_programs[], driver_data[];
extern const size_t driver_programs_n, driver_data_n;

/* What this machine runs: of 64 bits, of 32 bits. */
extern const struct elf_kind driver_kinds[2];

/* Folders, below a root; NULL ends each. */
extern const char *const driver_dirs[];   /* of libraries of this machine's word size */
extern const char *const driver_dirs32[]; /* of 32-bit ones */
extern const char *const driver_bins[];   /* of programs */
extern const char *const driver_shares[]; /* what stands for "share" */
extern const char *const driver_xorgs[];  /* what stands for "xorg" */
extern const char *const driver_roots[];  /* where a whole driver may be, "" the host's own */

struct driver_socket {
	const char *path;
	unsigned caps;
};
extern const struct driver_socket driver_sockets[];
extern const size_t driver_sockets_n;

#endif
