/* Writing layers: a part of the tree becomes a tar, cut into frames that can be decoded alone.
 *
 * ZSTD and GZIP: formats.md 1.3: headers gather in a frame of their own, every chunk of file data
 * is one frame (zstd frame, or gzip member), so that any chunk can be fetched and decoded alone.
 * NONE: a plain tar whose file data begin on 4096-byte boundaries (PAX comment padding).
 * The tar is PAX, in the order of the nodes, deterministic: no user names, no atime/ctime, fixed
 * header names, parents first, hard links after their objects. Source: formats.md 1.3, 3.3.
 */
#ifndef IMAGES_LAYER_H
#define IMAGES_LAYER_H

#include "images/pool.h"
#include "images/store.h"
#include "images/tree.h"

enum codec { CODEC_NONE, CODEC_ZSTD, CODEC_GZIP };

const char *codec_name(enum codec c); /* "none", "zstd", "gzip" */
const char *codec_media_type(
	enum codec c); /* application/vnd.oci.image.layer.v1.tar[+zstd|+gzip] */
int codec_parse(const char *name, enum codec *c) must_check;

struct layer {
	char id[64]; /* what it is called in the history: the group's id */
	enum codec codec;
	int level; /* of zstd (1-19) or gzip (1-9) */
	/* filled by layer_write() */
	struct digest digest, diff_id;
	uint64_t size, tar_size;
};

struct progress;

/* Write nodes[0..n) as one layer blob of the store, data read from the pool, compressed by all
 * cores. `number` is the layer's index in the image: it goes into node->layer, and into layer,
 * stored and offset of every chunk that is in no layer yet. Memory: about 10 MiB a core, 150 MiB at
 * most. Progress counts uncompressed bytes. Errors: CORRUPT (pool), SYSTEM. */
int layer_write(struct layer *l, int32_t number, struct node *const *nodes, size_t n,
	struct pool *p, struct store *s, struct progress *pr, struct err *e) must_check;

/* The same into a blob that was begun; whether it is committed is the caller's to say. */
int layer_write_blob(struct layer *l, int32_t number, struct node *const *nodes, size_t n,
	struct pool *p, struct blob_writer *blob, struct progress *pr, struct err *e) must_check;

/* Decode one stored frame of a layer: exactly `length` bytes into out, or CORRUPT. */
int codec_decode(enum codec c, const void *stored, size_t n, void *out, uint32_t length,
	struct err *e) must_check;

#endif
