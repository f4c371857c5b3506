/* Frames of a layer that has a table of contents: zstd frames and gzip members, decoded piece by
 * piece, and left behind when the known number of bytes is there. */
#ifndef IMAGES_TOC_FRAME_H
#define IMAGES_TOC_FRAME_H

#include "images/layer.h"

struct toc_frame;

enum { TOC_FRAME_WINDOW_LOG = 23 }; /* 8 MiB: RFC 8878 3.1.1.1.2; only piecewise decoding has it */

/* One thread. */
struct toc_frame *toc_frame_new(enum codec c) __attribute__((returns_nonnull));
void toc_frame_free(struct toc_frame *f);

/* A new frame begins with the next toc_frame_more(). */
void toc_frame_begin(struct toc_frame *f);
/* Decode from *in, *n (advanced by what was used) into out: the number of bytes, at most room; 0
 * when *n became 0 before any came. -1: CORRUPT, or UNSUPPORTED (a window of more than 8 MiB). */
int64_t toc_frame_more(struct toc_frame *f, const unsigned char **in, size_t *n, void *out,
	size_t room, struct err *e) must_check;
/* Has the frame unpacked to no more than what was taken? 0: so it is (a gzip member is not asked);
 * 1: more input is needed to tell; -1: CORRUPT. *in and *n as above. */
int toc_frame_end(
	struct toc_frame *f, const unsigned char **in, size_t *n, struct err *e) must_check;

/* A whole zstd frame at in, of exactly size unpacked bytes, at once and without a window. What
 * follows it in in[0..n) does not matter. */
int toc_frame_whole(struct toc_frame *f, const void *in, size_t n, void *out, size_t size,
	struct err *e) must_check;

#endif
