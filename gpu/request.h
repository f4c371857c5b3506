/* Which GPUs a start asks for, and which it gets. What the caller asks for (--gpus, --device) alone
 * grants; what an image says (NVIDIA_VISIBLE_DEVICES, ...) can narrow that, or refuse.
 * Source: gpu.md 1.3, 1.6; NVIDIA's documentation of the NVIDIA_* variables. */
#ifndef GPU_REQUEST_H
#define GPU_REQUEST_H

#include "gpu/inventory.h"

/* --gpus TEXT: "all", "none", a count "2", or a comma list of index ("0,1"; one alone: "device=0"),
 * "0:1" (a MIG device), UUID or unique beginning of one, bus id, "MIG-...". Several --gpus add up;
 * Docker's "device=0,1" and "count=2" are understood. */
struct gpu_request {
	bool given, all, none;
	uint32_t count;       /* N GPUs, whichever are free; 0: by name */
	struct strings names; /* in mem */
	bool shared;          /* others may have them too (--gpus-shared) */
	struct arena mem;
};
int gpu_request_parse(struct gpu_request *r, const char *text, struct err *e) must_check;
void gpu_request_fini(struct gpu_request *r);

/* What is given to one container. */
struct gpu_grant {
	const struct gpu_device *device;
	const struct gpu_mig *mig; /* NULL: the whole GPU */
};
struct gpu_grants {
	struct gpu_grant *v; /* to free() */
	size_t n;
};

/* The devices that the names or "all" stand for; a count is left to reserve.h, which takes free
 * ones. NOT_FOUND names every one that the host lacks, and what it has. On WSL2 "all" is no device
 * of the inventory: /dev/dxg, which is all GPUs at once. A GPU in MIG mode is given
 * by its MIG devices ("all" gives them all), whole only by name. */
int gpu_request_match(const struct gpu_request *r, const struct gpu_inventory *i,
	struct gpu_grants *g, struct err *e) must_check;

/* One name of the host's GPUs: 1, 0: none of them is called so. USAGE: it fits several; DENIED:
 * that GPU is excluded. */
int gpu_name_match(const struct gpu_inventory *i, const char *name, struct gpu_grant *g,
	struct err *e) must_check;

/* What the image's environment says about what was granted. */
struct gpu_wishes {
	bool nothing;           /* void, empty or unset: the image did not ask; the grant stands */
	unsigned caps;          /* gpu_capability bits; unset: utility | compute */
	struct strings visible; /* names; "all" is n 0 */
	bool none;              /* NVIDIA_VISIBLE_DEVICES=none: driver files, no GPU */
	bool gds, gdrcopy, mofed, nvswitch; /* NVIDIA_GDS=enabled ..: asked for by the image */
	bool mig_config, mig_monitor;
	struct strings imex; /* NVIDIA_IMEX_CHANNELS */
	struct arena mem;
};
/* env: "K=V" words, the caller's --env included. Errors: CORRUPT names the variable. */
int gpu_wishes_read(struct gpu_wishes *w, const struct strings *env, struct err *e) must_check;
void gpu_wishes_fini(struct gpu_wishes *w);
/* The value of the last "NAME=VALUE"; NULL: unset. */
const char *gpu_env_value(const struct strings *env, const char *name);
/* CUDA_VERSION without NVIDIA_REQUIRE_CUDA: such images were made for a runtime that gave them all.
 */
bool gpu_image_is_old(const struct strings *env);
/* Narrow g by w->visible: the image sees index 0.. of the host's numbering, as with the toolkit.
 * Names of GPUs that were not granted are refused: DENIED names them. GPUs of other makers stay. */
int gpu_wishes_narrow(const struct gpu_wishes *w, const struct gpu_inventory *i,
	struct gpu_grants *g, struct err *e) must_check;

#endif
