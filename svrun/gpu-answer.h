/* What svrun-gpu-probe said: checked as a stranger's words, because a driver's library that is
 * broken, or not one, spoke through it; kept for facts.h.
 *
 *	{ "schema": "svrun.gpu-probe/1",
 *	  "library": "/usr/lib/.../libcuda.so.580.126.09",  as the loader calls it
 *	  "cuda": "13.0",                                   the newest CUDA that the driver serves
 *	  "loadMs": 3.1, "initMs": 812.5,
 *	  "gpus": [{ "ordinal": 0, "uuid": "GPU-...", "mig": false, "name": "NVIDIA H200",
 *	             "bus": "0000:65:00.0", "memory": 150754820096, "cc": 90,
 *	             "multiprocessors": 132, "integrated": 0, "computeMode": 0, "ecc": 1,
 *	             "contextMs": 310.2, "copied": true }],
 *	  "failed": { "call": "cuInit", "code": 802, "name": "CUDA_ERROR_..." } }
 *
 * "failed" stands at the top or in a GPU: what comes behind that call is missing then. "missing"
 * instead says that the library could not be loaded. A MIG device has mig, a uuid "MIG-..." and the
 * "parent" GPU's.
 *
 * RUN/probe.json is that and who it is true for: "driver" (version of the kernel module), "boot"
 * (/proc/sys/kernel/random/boot_id) and "devices" (UUIDs of the inventory, sorted). */
#ifndef SVRUN_GPU_ANSWER_H
#define SVRUN_GPU_ANSWER_H

#include <jansson.h>

#include "gpu/inventory.h"

enum { GPU_ANSWER_MAX = 1 << 20 };
#define GPU_ANSWER_SCHEMA "svrun.gpu-probe/1"

/* The answer, with what is described above and nothing else: to json_decref(). CORRUPT names what
 * is wrong: unknown shapes, texts that are endless or would drive a terminal, memory that no GPU
 * has, two GPUs with one UUID. */
json_t *gpu_answer_read(const char *text, size_t n, struct err *e) must_check;

/* The kernel's word against the driver's. The first GPU of the answer whose UUID the inventory does
 * not have; NULL: none. */
const char *gpu_answer_strange(const json_t *answer, const struct gpu_inventory *i);
/* The first GPU of the inventory, from number `from` on, that the answer lacks; i->n: none. CUDA
 * shows one MIG device to a process and then no other GPU: with one, nothing counts as lacking. */
size_t gpu_answer_lacks(const json_t *answer, const struct gpu_inventory *i, size_t from);

/* Keep it as RUN/probe.json; one in which a call failed, a copy came back wrong, or which is not
 * about the inventory's GPUs, is not kept, and takes the place of none: 0. Returns 1 when it is
 * kept. Errors: SYSTEM. */
int gpu_answer_keep(const struct gpu_host *h, const struct gpu_inventory *i, const json_t *answer,
	struct err *e) must_check;

/* The call that failed first, at the top or in one of the GPUs (*gpu: its number, -1 at the top);
 * false: none did. */
struct gpu_failure {
	const char *call; /* borrowed from the answer */
	int code, gpu;
	const char *name;   /* "CUDA_ERROR_SYSTEM_NOT_READY" */
	const char *means;  /* what it is, for people */
	const char *advice; /* what to do */
};
bool gpu_answer_failure(const json_t *answer, struct gpu_failure *f);
/* Of one GPU alone. */
bool gpu_answer_failure_of(const json_t *gpu, struct gpu_failure *f);

#endif
