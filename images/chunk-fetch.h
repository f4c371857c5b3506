/* Chunks that the pool lacks, fetched from the frames of an image's layers: neighbours are merged
 * into pieces, a few threads decode, check and write what arrives. Memory: what download.h holds,
 * and 2 MiB a thread. */
#ifndef IMAGES_CHUNK_FETCH_H
#define IMAGES_CHUNK_FETCH_H

#include "images/download.h"
#include "images/layer.h"
#include "images/pool.h"

struct progress_line;

struct chunk_fetch {
	struct download *download;
	struct pool *pool;
	const struct layer *layers; /* what chunk.layer counts in */
	size_t nlayers;
	struct progress_line **lines; /* by layer; may be NULL */
	bool repair; /* the pool has records of them: write over the data at chunk.block */
};

/* v: each digest once; it is put into the order of the layers. Fills their block. What arrived is
 * recorded every now and then, so that a pull that is killed has less to do the next time; the rest
 * is not committed. Errors: CORRUPT (layer, offset; chunk digest), those of stream_next() and
 * pool.h. */
int chunk_fetch(const struct chunk_fetch *f, struct chunk **v, size_t n, struct err *e) must_check;

#endif
