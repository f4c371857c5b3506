/* Fetching and decoding the file data of one lane (toc-plan.h). toc.c's own. */
#ifndef IMAGES_TOC_LANE_H
#define IMAGES_TOC_LANE_H

#include "images/sink.h"
#include "images/toc-plan.h"

struct toc_work {
	const struct toc *t;
	const struct toc_lane *lane;
	enum codec codec;
	const struct descriptor *layer;
	struct download *d;
	struct sink *sink;
	struct entries *out; /* whose chunks are filled */
};

/* Any number of threads, each with a lane of its own. All chunks of the lane that are not known are
 * with the sink then. Errors: CORRUPT, UNSUPPORTED (with the file's path), those of stream_next()
 * and of the sink. Memory: the largest chunk, up to 4 MiB, and 8 MiB more for frames above that. */
int toc_lane_fetch(const struct toc_work *w, struct err *e) must_check;

#endif
