/* Requirements, checked against the host in one pass before anything starts: a manifest's `gpu`
 * (the image's label run.svrun.gpu) and NVIDIA_REQUIRE_* of the image. They can refuse, never
 * grant. Source: manifest.md "gpu"; gpu.md 1.6 (grammar of NVIDIA_REQUIRE_*). */
#ifndef GPU_REQUIRE_H
#define GPU_REQUIRE_H

#include <jansson.h>

#include "gpu/facts.h"
#include "gpu/request.h"

/* One line of the verdict. */
struct gpu_need {
	const char *what;   /* "vramGiB.min", "NVIDIA_REQUIRE_CUDA", "count.min" */
	const char *needed; /* "24 GiB on each GPU" */
	const char *found;  /* "16 GiB (GPU 0, NVIDIA A2)" */
	const char *hint;   /* or NULL */
	bool met;
	bool spared; /* not met, and the image works without a GPU */
};
struct gpu_verdict {
	struct arena mem;
	struct gpu_need *v; /* every requirement, met or not */
	size_t n, unmet;    /* unmet: without those that are spared */
	uint32_t count;     /* GPUs that the image wants by default; 0: none */
	bool required;      /* gpu.mode is required */
	bool without;       /* optional, and no GPU of the host would do: it works, without one */
};
/* label: the object of run.svrun.gpu, hostile, or NULL. env: the image's, for NVIDIA_REQUIRE_*.
 * g: what would be granted; NULL: whatever the host has (`svrun gpu fits`: then count counts those
 * that fit). What cannot be known is unmet, with the hint how to learn it. Errors: CORRUPT names
 * the label's member or the variable. */
int gpu_require(struct gpu_verdict *v, const json_t *label, const struct strings *env,
	const struct gpu_inventory *i, const struct gpu_probe *p, const struct gpu_grants *g,
	struct err *e) must_check;
void gpu_verdict_fini(struct gpu_verdict *v);
/* DENIED with every unmet line, found and needed; 0 when all are met. */
int gpu_verdict_check(const struct gpu_verdict *v, struct err *e) must_check;
json_t *gpu_verdict_json(const struct gpu_verdict *v);

/* One NVIDIA_REQUIRE_* value against one GPU: 1 fits, 0 not, -1 CORRUPT. Properties that are not
 * known here are skipped, as the toolkit does. */
struct gpu_properties {
	const char *cuda, *driver, *arch, *brand; /* NULL: unknown */
};
int gpu_require_value(const char *value, const struct gpu_properties *p, const char **why,
	struct err *e) must_check;

/* Dotted numbers: "12", "535.129.03". */
bool gpu_is_version(const char *text);

#endif
