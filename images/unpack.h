/* Reading a layer that has no index: decompress, hash, walk the tar once, file data into the pool,
 * everything else into a list. Hostile input: see docs/layers.md for each rule and limit.
 * Source: image-spec layer.md; formats.md 3.3; POSIX pax(1). */
#ifndef IMAGES_UNPACK_H
#define IMAGES_UNPACK_H

#include "images/entries.h"
#include "images/layer.h"
#include "images/sink.h"
#include "images/source.h"

#define UNPACK_UNKNOWN UINT64_MAX

struct unpack {
	/* in */
	const char *name;     /* for errors: "layer 3" */
	enum codec codec;     /* gzip through isa-l; trailing padding, several members or frames,
			       * skippable     frames are fine */
	uint64_t size;        /* of the blob, as the descriptor says: more or less is CORRUPT;
			       * UNPACK_UNKNOWN: any; digest is filled (svrun image import) */
	struct digest digest; /* of the blob: checked at the end, CORRUPT */
	const struct digest
		*diff_id; /* checked when not NULL: costs one more sha256 of everything */
	/* out */
	uint64_t tar_size;
	struct digest tar_digest; /* when diff_id was given, or the codec is none */
};

/* Reads src to its end, and waits for the sink, also on failure: the chunks of `out` are filled by
 * its threads. Nothing of `out` may be used when it fails; what is in the pool by then is not
 * committed by us. Errors: CORRUPT (member name, offset and limit), UNSUPPORTED (sparse files,
 * members of unknown types), SYSTEM, those of src. */
int unpack_layer(struct unpack *u, struct source *src, struct sink *sink, struct entries *out,
	struct err *e) must_check;

/* How much a layer blob of size bytes may unpack to: 1 GiB and 256 times its size, at most 1 TiB.
 */
uint64_t unpack_limit(uint64_t size);

#endif
