/* The image index: the merged file tree, the chunk map and the boot trace of an image, as one
 * versioned binary document (docs/index-format.md), and the tiny last layer that carries it.
 *
 * The reader trusts nothing: every count, length and offset is bounded before use, in memory
 * proportional to the input.
 */
#ifndef IMAGES_INDEX_H
#define IMAGES_INDEX_H

#include "images/layer.h"
#include "images/tree.h"

/* The annotation of the image manifest that names the index: "1:LAYERDIGEST:OFFSET:LENGTH:SHA256".
 */
#define INDEX_ANNOTATION "run.svrun.index"

struct index_place {
	struct digest layer;     /* of the layer blob that carries it */
	uint64_t offset, length; /* of the payload within the blob, its gzip members included */
	struct digest digest;    /* sha256 of these bytes */
};

enum { INDEX_BYTES_MAX = 512 << 20 };

/* Serialise a sorted tree. layers: what chunk.layer counts in. b->max bounds it. */
int index_encode(struct tree *t, const struct layer *layers, size_t nlayers, struct buf *b,
	struct err *e) must_check;
/* The opposite: a new tree (sorted; chunk.block is CHUNK_NO_BLOCK) and the layers (digest, diff_id,
 * size, tar_size, codec) in *layers, to free(). CORRUPT with the byte offset on anything odd. */
struct tree *index_decode(
	const void *p, size_t n, struct layer **layers, size_t *nlayers, struct err *e) must_check;

/* Write the tiny layer into the store: an empty tar, then the payload where decoders skip it. ZSTD:
 * one zstd frame and a skippable frame. GZIP, for engines that know no zstd: gzip members that
 * decode to nothing, the payload in their extra fields. *l is its description: its diff_id is the
 * same for every image. */
int index_layer_write(struct store *s, enum codec codec, const void *payload, size_t n,
	struct layer *l, struct index_place *place, struct err *e) must_check;
int index_place_format(const struct index_place *p, char out[256]);
int index_place_parse(struct index_place *p, const char *text, struct err *e) must_check;
/* Read and check the payload that place names. NOT_FOUND, CORRUPT (expected and found digest). */
int index_read(
	struct store *s, const struct index_place *place, struct buf *b, struct err *e) must_check;

#endif
