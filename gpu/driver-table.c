#include "gpu/driver-table.h"

#include <elf.h>

#include "gpu/view.h"

enum {
	U = GPU_CAP_UTILITY,
	V = GPU_CAP_VIDEO,
	C = GPU_CAP_COMPUTE | GPU_CAP_VIDEO, /* what decodes and encodes computes, too */
	G = GPU_CAP_GRAPHICS | GPU_CAP_DISPLAY,
	D = GPU_CAP_DISPLAY,
	N = GPU_CAP_NGX,
};

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

const struct driver_library driver_libraries[] = {
	{.stem = "libcuda", .caps = C, .plain = "libcuda.so", .always = true},
	{.stem = "libnvidia-ml", .caps = U, .plain = "libnvidia-ml.so"},
	{.stem = "libnvidia-cfg", .caps = U, .plain = "libnvidia-cfg.so"},
	{.stem = "libnvidia-nscq", .caps = U},
	{.stem = "libcudadebugger", .caps = C},
	{.stem = "libnvidia-opencl", .caps = C},
	{.stem = "libnvidia-gpucomp", .caps = C | G},
	{.stem = "libnvidia-ptxjitcompiler", .caps = C, .plain = "libnvidia-ptxjitcompiler.so"},
	{.stem = "libnvidia-fatbinaryloader", .caps = C},
	{.stem = "libnvidia-allocator", .caps = C | G, .plain = "libnvidia-allocator.so"},
	{.stem = "libnvidia-compiler", .caps = C},
	{.stem = "libnvidia-pkcs11", .caps = C},
	{.stem = "libnvidia-pkcs11-openssl3", .caps = C},
	{.stem = "libnvidia-nvvm", .caps = C, .plain = "libnvidia-nvvm.so"},
	{.stem = "libnvidia-nvvm70", .caps = C, .soname = "libnvidia-nvvm70.so.4"},
	{.stem = "libnvidia-tileiras", .caps = C},
	{.stem = "libvdpau_nvidia", .caps = V, .plain = "libvdpau_nvidia.so"},
	{.stem = "libnvidia-encode", .caps = V, .plain = "libnvidia-encode.so"},
	{.stem = "libnvidia-opticalflow",
		.caps = V,
		.plain = "libnvidia-opticalflow.so",
		.always = true},
	{.stem = "libnvcuvid", .caps = V, .plain = "libnvcuvid.so"},
	{.stem = "libnvidia-eglcore", .caps = G},
	{.stem = "libnvidia-glcore", .caps = G},
	{.stem = "libnvidia-tls", .caps = G},
	{.stem = "libnvidia-glsi", .caps = G},
	{.stem = "libnvidia-fbc", .caps = G, .plain = "libnvidia-fbc.so"},
	{.stem = "libnvidia-ifr", .caps = G},
	{.stem = "libnvidia-rtcore", .caps = G},
	{.stem = "libnvidia-glvkspirv", .caps = G},
	{.stem = "libnvidia-cbl", .caps = G},
	{.stem = "libnvoptix", .caps = G},
	{.stem = "libGLX_nvidia", .caps = G, .plain = "libGLX_indirect.so.0", .always = true},
	{.stem = "libEGL_nvidia", .caps = G},
	{.stem = "libGLESv2_nvidia", .caps = G},
	{.stem = "libGLESv1_CM_nvidia", .caps = G},
	{.stem = "libnvidia-vulkan-producer", .caps = G, .plain = "libnvidia-vulkan-producer.so"},
	{.stem = "libnvidia-egl-gbm", .caps = G, .soname = "libnvidia-egl-gbm.so.1"},
	{.stem = "libnvidia-egl-wayland", .caps = G, .soname = "libnvidia-egl-wayland.so.1"},
	{.stem = "libnvidia-egl-wayland2", .caps = G, .soname = "libnvidia-egl-wayland2.so.1"},
	{.stem = "libnvidia-egl-xcb", .caps = G, .soname = "libnvidia-egl-xcb.so.1"},
	{.stem = "libnvidia-egl-xlib", .caps = G, .soname = "libnvidia-egl-xlib.so.1"},
	{.stem = "libnvidia-ngx", .caps = N, .plain = "libnvidia-ngx.so"},
};
const size_t driver_libraries_n = COUNT(driver_libraries);

const struct driver_other driver_programs[] = {
	{"nvidia-smi", U},
	{"nvidia-debugdump", U},
	{"nvidia-persistenced", U},
	{"nv-fabricmanager", U},
	{"nvidia-cuda-mps-control", GPU_CAP_COMPUTE},
	{"nvidia-cuda-mps-server", GPU_CAP_COMPUTE},
	{"nvidia-imex", GPU_CAP_COMPUTE},
	{"nvidia-imex-ctl", GPU_CAP_COMPUTE},
};
const size_t driver_programs_n = COUNT(driver_programs);

const struct driver_other driver_data[] = {
	{"etc/OpenCL/vendors/nvidia.icd", C},
	{"share/glvnd/egl_vendor.d/10_nvidia.json", G},
	{"share/egl/egl_external_platform.d/09_nvidia_wayland2.json", G},
	{"share/egl/egl_external_platform.d/10_nvidia_wayland.json", G},
	{"share/egl/egl_external_platform.d/15_nvidia_gbm.json", G},
	{"share/egl/egl_external_platform.d/20_nvidia_xcb.json", G},
	{"share/egl/egl_external_platform.d/20_nvidia_xlib.json", G},
	{"share/vulkan/icd.d/nvidia_icd.json", G},
	{"share/vulkan/icd.d/nvidia_icd.x86_64.json", G},
	{"share/vulkan/icd.d/nvidia_icd.aarch64.json", G},
	{"share/vulkan/implicit_layer.d/nvidia_layers.json", G},
	{"share/nvidia/nvoptix.bin", G},
	{"share/X11/xorg.conf.d/10-nvidia.conf", D},
	{"share/X11/xorg.conf.d/nvidia-drm-outputclass.conf", D},
	{"xorg/modules/drivers/nvidia_drv.so", D},
	{"xorg/modules/extensions/libglxserver_nvidia.so", D},
};
const size_t driver_data_n = COUNT(driver_data);

/* Debian and those after it, Fedora and those after it, Debian's own packages, hosts that have the
 * driver in a folder of its own (GKE, Bottlerocket), NixOS, COS. */
#ifdef __aarch64__
#define MULTIARCH "aarch64-linux-gnu"
const struct elf_kind driver_kinds[2] = {
	{.machine = EM_AARCH64, .bits = 64}, {.machine = EM_ARM, .bits = 32}};
#else
#define MULTIARCH "x86_64-linux-gnu"
const struct elf_kind driver_kinds[2] = {
	{.machine = EM_X86_64, .bits = 64}, {.machine = EM_386, .bits = 32}};
#endif
const char *const driver_dirs[] = {
	"usr/lib/" MULTIARCH,
	"usr/lib/" MULTIARCH "/nvidia/current",
	"usr/lib64",
	"usr/lib64/nvidia",
	"lib64",
	"lib/" MULTIARCH,
	"usr/lib",
	"usr/local/nvidia/lib64",
	"usr/local/nvidia/lib",
	"run/opengl-driver/lib",
	"var/lib/nvidia/lib64",
	"home/kubernetes/bin/nvidia/lib64",
	NULL,
};
const char *const driver_dirs32[] = {
	"usr/lib/i386-linux-gnu",
	"usr/lib/i386-linux-gnu/nvidia/current",
	"usr/lib32",
	"usr/lib",
	"usr/lib/nvidia",
	"run/opengl-driver-32/lib",
	NULL,
};
const char *const driver_bins[] = {
	"usr/bin",
	"usr/sbin",
	"usr/lib/nvidia/current",
	"usr/local/nvidia/bin",
	"var/lib/nvidia/bin",
	"run/current-system/sw/bin",
	"home/kubernetes/bin/nvidia/bin",
	"opt/bin",
	NULL,
};
const char *const driver_shares[] = {
	"usr/share",
	"usr/local/share",
	"etc", /* Vulkan's and glvnd's files of a host's own */
	"run/opengl-driver/share",
	"usr/local/nvidia",
	"var/lib/nvidia/share",
	"home/kubernetes/bin/nvidia",
	NULL,
};
const char *const driver_xorgs[] = {"usr/lib/xorg", "usr/lib64/xorg", NULL};
const char *const driver_roots[] = {"", "run/nvidia/driver", NULL};

const struct driver_socket driver_sockets[] = {
	{"/run/nvidia-persistenced/socket", U},
	{"/run/nvidia-fabricmanager/socket", U},
};
const size_t driver_sockets_n = COUNT(driver_sockets);
