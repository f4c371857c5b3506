/* How the data of a table are fetched: in lanes, that is runs of chunks that one thread fetches and
 * decodes from beginning to end, and in pieces of each lane.
 *
 * A lane begins and ends where a chunk of ours does, so that no two lanes share one. Where the
 * table's chunks lie across that place, both lanes decode the one that does. */
#ifndef IMAGES_TOC_PLAN_H
#define IMAGES_TOC_PLAN_H

#include "images/download.h"
#include "images/toc-parse.h"

enum {
	TOC_LANE_MIN = 8 << 20, /* bytes of the blob, about */
	TOC_LANE_MAX = 64 << 20,
	TOC_GAP = 16 << 10, /* what lies between is fetched, too, when it is less */
};

struct toc_lane {
	size_t first, n; /* of toc->chunks */
	uint64_t from;   /* of the first chunk's file, what lies before is another lane's */
	uint64_t to;     /* of the last chunk's file, what lies behind */
};

struct toc_plan {
	struct toc_lane *v;
	size_t n, cap;
};

/* Lanes over all chunks that are not known, for so many threads. */
void toc_plan_make(struct toc_plan *p, const struct toc *t, size_t threads);
void toc_plan_fini(struct toc_plan *p);

struct toc_pieces {
	struct piece *v;
	size_t n, cap;
};

/* The pieces of a lane: every chunk whose place in the blob takes at most PIECE_MAX bytes lies in
 * one of them; larger ones in several that follow each other. blob is borrowed. */
void toc_pieces_make(struct toc_pieces *p, const struct toc *t, const struct toc_lane *lane,
	const struct digest *blob, uint64_t blob_size);
void toc_pieces_fini(struct toc_pieces *p);

#endif
