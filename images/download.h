/* Pieces of blobs, fetched in parallel: single-range requests over keep-alive connections by one
 * network thread (libcurl multi), with bounded memory, hedged stragglers, and fallbacks for servers
 * that break ranges. Consumers pull: back-pressure is their not asking.
 *
 *   pieces -> [wanted] -> a connection and a buffer -> [arrived] -> stream_next() -> release
 *
 * Pieces that follow each other without a gap share a request where order does not matter, up to 16
 * MiB; memory is still taken piece by piece, and a body that finds none waits.
 *
 * A server that ignores Range (200 for a part of a blob) is remembered: from
 * then on its blobs are read whole, one request a blob, and the pieces are cut from the body as it
 * passes. Source: RFC 9110 14, 15.3.7; formats.md 4.1.
 */
#ifndef IMAGES_DOWNLOAD_H
#define IMAGES_DOWNLOAD_H

#include "images/registry.h"

enum { PIECE_MAX = 4 << 20 };

struct piece {
	const struct digest *blob; /* borrowed */
	uint64_t blob_size; /* as its descriptor says; an answer that says otherwise is CORRUPT */
	uint64_t offset;
	uint32_t length;     /* 1 to PIECE_MAX */
	void *user;          /* the caller's */
	unsigned char *data; /* length bytes, between stream_next() and stream_release() */
	void *own;           /* download.c's */
};

struct download_limits {
	unsigned connections; /* at once */
	size_t memory;        /* bytes in buffers, arrived ones included */
	unsigned stall_s; /* a connection that moves less than stall_bytes a second for so long */
	unsigned stall_bytes; /*   is given up */
};
extern const struct download_limits download_defaults; /* 16, 48 MiB, 20 s, 1 KiB */

struct download;
struct stream;

/* Starts the network thread. r is borrowed. */
struct download *download_new(
	struct registry *r, const struct download_limits *l, struct err *e) must_check;
/* Stops what is under way; all streams are closed before. */
void download_free(struct download *d);
/* Bytes of bodies received so far, those thrown away included. Any thread. */
uint64_t download_received(const struct download *d);

/* Fetch v[0..n), in this order as far as order matters (pieces of one blob in ascending, not
 * overlapping ranges). v and what it borrows must live until stream_close(). ordered: delivered in
 * the order of v; else as they arrive. Streams share connections and memory fairly, and each always
 * has some of the memory, so that several may be consumed at the same time without waiting for each
 * other (one that was stopped may have to fetch pieces again that nobody took). */
struct stream *stream_open(struct download *d, struct piece *v, size_t n, bool ordered);
/* 1 and the next piece (any thread, also several), 0 when all were handed out, -1 when a piece
 * could not be had: the same error for every later call. Waits. */
int stream_next(struct stream *s, struct piece **p, struct err *e) must_check;
/* The piece's data are used up: its buffer may be filled anew. */
void stream_release(struct stream *s, struct piece *p);
/* Ends what is under way. Pieces that are out are given back by this; nobody is in stream_next().
 */
void stream_close(struct stream *s);

#endif
