/* Frames: pieces of a layer that can be decoded alone. A zstd frame with its content size, a gzip
 * member, or, in plain tars, the bytes themselves. codec_decode() (layer.h) is the way back. */
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

#endif
