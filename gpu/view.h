/* The driver view: the driver's user-space files for one set of capabilities, as one folder of the
 * host that a container gets by one mount. Built once for a driver version and set:
 *
 *	RUN/views/VERSION-CAPS/       a small tmpfs, each file bound on an empty one
 *		lib64/libcuda.so.580.65.06, and links to it: libcuda.so.1, libcuda.so
 *		lib32/                with compat32
 *		bin/nvidia-smi
 *		share/glvnd/...       and etc/OpenCL/...: as below /usr/share, /etc
 *		view.json             links, libraries, the glibc needed: what edits need; last:
 *with it, the view is whole
 *
 * (A recursive clone of 60 bound files takes 0.08 ms; overlayfs with data-only layers would take
 * 0.01 but needs Linux 6.5.) A view counts as long as each file has the device, inode and mtime
 *that view.json says; after a driver upgrade the next start builds another, and the old one is let
 *go of; containers that run keep theirs. Only files whose version is the kernel module's are taken,
 * never libc's or vendor-neutral GL. Built under a lock (RUN/views.lock), which a start holds
 *shared until it has mounted its view; RUN/views is a private mount, so that nothing below it
 *spreads to other mount namespaces. Source: gpu.md 1.4, 1.5, 4.3.
 */
#ifndef GPU_VIEW_H
#define GPU_VIEW_H

#include "gpu/edits.h"
#include "gpu/inventory.h"

/* Where it is in the container: what NVIDIA's images have in PATH and LD_LIBRARY_PATH. */
#define GPU_VIEW_PATH "/usr/local/nvidia"

/* NVIDIA_DRIVER_CAPABILITIES. */
enum gpu_capability {
	GPU_CAP_COMPUTE = 1,
	GPU_CAP_UTILITY = 2,
	GPU_CAP_VIDEO = 4,
	GPU_CAP_GRAPHICS = 8,
	GPU_CAP_DISPLAY = 16,
	GPU_CAP_NGX = 32,
	GPU_CAP_COMPAT32 = 64,
	GPU_CAP_ALL = 127
};
/* "compute,utility", "all"; "" is 0. USAGE names the word. */
int gpu_capabilities_parse(const char *text, unsigned *caps, struct err *e) must_check;

/* One file of the driver on the host. */
struct driver_file {
	const char *source;     /* absolute, below the host's root; links resolved */
	const char *name;       /* in the view: "lib64/libcuda.so.580.65.06" */
	const char *soname;     /* of a library; NULL */
	const char *aliases[3]; /* links beside it in the view: its soname, "libcuda.so"; NULLs
				   behind */
	const char *link; /* where the container wants a link to it: "/usr/bin/nvidia-smi"; NULL */
	unsigned caps;    /* which of the set brought it */
	bool bits32;
};
struct driver_files {
	struct arena mem;
	struct driver_file *v;
	size_t n;
	struct strings sockets;   /* of the host, to be bound as they are: persistenced, fabric */
	const char *root;         /* where it was found: "/", "/run/nvidia/driver" */
	const char *glibc;        /* the newest GLIBC_x.y that any of them asks for; NULL: none */
	const char *libcuda_cuda; /* reserved for the probe; NULL */
};
/* Search every known place. Files are regular, root's, and writable by nobody else, and no link
 * leads out of the driver's root. NOT_FOUND tells where was looked and which version was wanted;
 * versions found there are named in the hint. DENIED and CORRUPT name a file that must not be given
 * to anybody. */
int driver_files_find(struct driver_files *f, const struct gpu_host *h, const char *version,
	unsigned caps, struct err *e) must_check;
void driver_files_fini(struct driver_files *f);
/* The sockets of daemons that run now; out is in mem. */
void driver_sockets_find(
	struct strings *out, struct arena *mem, const struct gpu_host *h, unsigned caps);
/* Is fd (O_PATH will do) a file that may be given away? DENIED with its path. */
int driver_file_check(int fd, const char *path, struct err *e) must_check;

/* Have the view of this set ready, and add it to the edits: the mount, links, ld_dirs, libs,
 * sockets, glibc_needed. On WSL2: the host's /usr/lib/wsl. caps 0: nothing. Errors: NOT_FOUND (no
 * driver), DENIED, SYSTEM. */
int gpu_view_add(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_inventory *i,
	unsigned caps, struct err *e) must_check;
/* Let go of views of other driver versions than this (NULL: all of them). */
int gpu_views_sweep(const struct gpu_host *h, const char *version, struct err *e) must_check;

#endif
