/* Tables of contents that others put into layers: zstd:chunked (containers/storage, both
 * generations of annotations) and eStargz. With one, a foreign layer can be fetched in pieces, in
 * parallel, and only what the pool lacks. Only tables that the manifest vouches for (an annotation
 * with their digest) are used. Source: formats.md 1 and 2. */
#ifndef IMAGES_TOC_H
#define IMAGES_TOC_H

#include "images/descriptor.h"
#include "images/download.h"
#include "images/entries.h"
#include "images/layer.h"
#include "images/sink.h"

/* Has the layer a table that we can use? 1, 0, -1. codec is what its media type says. With 1, *key
 * is what a list that toc_layer() made may be kept by. Never by the layer's digest, because nothing
 * has proven that: another image can name the same layer together with a table of its own, and must
 * not decide what is in this one. */
int toc_key(const struct descriptor *layer, enum codec codec, struct digest *key,
	struct err *e) must_check;

/* Fetch the table, then the file data (in parallel through d, decoded by `threads` threads, 0: one
 * a core; at most 8), check every chunk's digest, cut into CHUNK_SIZE and hand over to the sink;
 * out gets the layer's objects. Waits for the sink. The blob's own digest and the DiffID are not
 * proven by this (pull --strict does not use it). Errors: CORRUPT, UNSUPPORTED (a table that cannot
 * be used, such as one without digests: the caller falls back to unpack_layer()), those of
 * stream_next(). */
int toc_layer(const struct descriptor *layer, enum codec codec, struct download *d,
	struct pool *pool, struct sink *sink, size_t threads, struct entries *out,
	struct err *e) must_check;

#endif
