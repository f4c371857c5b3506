/* The GPUs and other devices of one start of a container: what was asked for (--gpus, --device),
 * what the host has, what is reserved, and how the container gets it. Only what the caller asks for
 * is given; what an image says can narrow it, or refuse.
 *
 *	gpus_open  -> gpus_apply (to config.json) -> gpus_fill (in the root, by the runtime's child)
 *	           -> gpus_close, when the container has ended: until then they are reserved
 */
#ifndef SVRUN_GPUS_H
#define SVRUN_GPUS_H

#include <jansson.h>

#include "svrun/gpus-layer.h"
#include "svrun/run-options.h"

struct gpus;
struct gpus_ask {
	const struct run_options *o;
	const json_t *image; /* the image's config document, in the mode that was asked for */
	const json_t *env;   /* the caller's variables (bundle_env()) */
	const char *who;     /* id of the instance */
};

/* Find, check and reserve them. Nothing is read when nothing was asked for. Errors: USAGE (an
 * option; the image needs a GPU and none was asked for), NOT_FOUND (the host has no such device),
 * EXISTS (others have it), DENIED (lists every requirement that is not met), UNSUPPORTED. */
int gpus_open(struct gpus **g, const struct gpus_ask *a, struct err *e) must_check;
size_t gpus_count(const struct gpus *g);
/* A layer for its root (gpus-layer.h): *fd is the caller's, a folder that has it as root/, to be
 * closed when the container has ended; -1: none is needed. */
int gpus_layer(
	struct gpus *g, const struct gpus_layer_image *image, int *fd, struct err *e) must_check;
/* Into config.json. What has gone since gpus_open() is NOT_FOUND. */
int gpus_apply(const struct gpus *g, json_t *config, struct err *e) must_check;
/* Nothing lies over the layer: a new instance, without volumes and
 * devices of CDI. gpus_fill() has less to look at. */
void gpus_untouched(struct gpus *g);
/* For container_options.fill; ctx is the struct gpus. Where there is nothing to do: undoes what
 * another start of the same instance has done. */
int gpus_fill(void *ctx, int root, const uint64_t *own, size_t nown, struct err *e) must_check;
bool gpus_has_any(const struct gpus *g);
void gpus_close(struct gpus *g);

#endif
