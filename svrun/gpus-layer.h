/* What a container with GPUs has in its root beside its image, as a folder of the host that becomes
 * a layer over the image: the driver's links and mount points, and the image's own ld.so.cache with
 * the driver's libraries in it. Made at the first start of an image with these edits; later starts,
 * and the instances of other names, write nothing at all, and `svrun image commit` finds nothing of
 * it. Links of the driver below a folder that is a link in the image, and what the instance has
 * changed since, are left to gpu_edits_fill(). */
#ifndef SVRUN_GPUS_LAYER_H
#define SVRUN_GPUS_LAYER_H

#include "gpu/edits.h"

struct gpus_layer_image {
	const char *lower;  /* where it is mounted */
	const char *digest; /* of its manifest */
};

/* RUN/layers/DIGEST, made when there is none of this image and these edits yet. *fd is the
 * caller's, and keeps it from being swept: to be closed when the container has ended. -1: there is
 * nothing to be in it, or RUN is where no overlay can be made (on one): everything is then done at
 * the start. Errors: SYSTEM, and those of gpu_edits_fill_files(). */
int gpus_layer_open(const struct gpu_edits *x, const struct gpu_host *h,
	const struct gpus_layer_image *image, int *fd, struct err *e) must_check;

#endif
