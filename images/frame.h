/* Frames: pieces of a layer that can be decoded alone. A zstd frame with its content size, a gzip
 * member, or, in plain tars, the bytes themselves. codec_decode() (layer.h) is the way back for one
 * frame, a decoder for many. */
#ifndef IMAGES_FRAME_H
#define IMAGES_FRAME_H

#include "images/layer.h"

/* One thread at a time. */
struct encoder;

/* USAGE: no such level of that codec. */
struct encoder *encoder_new(enum codec c, int level, struct err *e) must_check;
void encoder_free(struct encoder *x);

/* Room that a frame of n bytes may need. */
size_t frame_bound(enum codec c, size_t n);

/* Make one frame of in[0..n) (n > 0) at out, which has frame_bound() bytes; *len is its length. The
 * same input gives the same output, whatever was encoded before. */
int encoder_frame(struct encoder *x, const void *in, size_t n, void *out, size_t *len,
	struct err *e) must_check;

/* One thread at a time. */
struct decoder;

struct decoder *decoder_new(enum codec c) must_check;
void decoder_free(struct decoder *x);
/* Decode one stored frame: exactly `length` bytes into out, or CORRUPT. */
int decoder_frame(struct decoder *x, const void *stored, size_t n, void *out, uint32_t length,
	struct err *e) must_check;

#endif
