/* The links and mount points that a container with GPUs needs, as a folder of the host that becomes
 * the lowest layer of its overlay: what an image has of its own comes before it, and nothing has to
 * be made, and removed again, for every start. What is already as it should be is left alone when
 * the root is filled (gpu/edits.h). */
#ifndef SVRUN_GPUS_LAYER_H
#define SVRUN_GPUS_LAYER_H

#include "gpu/edits.h"

/* RUN/layers/DIGEST, made when there is none of these links and mounts yet. *fd is the caller's;
 * -1: there is nothing to be in it. Errors: SYSTEM. */
int gpus_layer_open(
	const struct gpu_edits *x, const struct gpu_host *h, int *fd, struct err *e) must_check;

#endif
