/* A tar on its way into a layer blob: cut into frames, compressed by all cores, written in order.
 *
 *   fill() a group of members -> its frames, side by side -> placed(), digests, blob, in order
 *
 * A group is what one thread makes at a time, so that 20,000 small files cost a few hundred
 * hand-overs. What is data in a group gets frames of its own, what lies between gathers in frames
 * of headers. layer.c makes the tar of a tree this way, reframe.c has one already.
 */
#ifndef IMAGES_FRAMER_H
#define IMAGES_FRAMER_H

#include "images/layer.h"

enum {
	FRAMER_WEIGHT = CHUNK_SIZE, /* what a group should weigh ... */
	FRAMER_MARKS = 256,         /* ... and pieces of data that it may hold */
	FRAMER_RAW_MAX = 16 << 20,  /* never reached by either: FRAMER_MARKS headers of long names,
				     * and the data */
};

/* A piece of file data in a group, and where its frame went. */
struct framer_mark {
	size_t at; /* in the group's raw bytes */
	uint32_t length, stored;
	uint64_t offset;      /* of its frame in the blob: known in placed() */
	struct digest digest; /* of the data: when the framer hashes */
	void *user;           /* the filler's */
};

struct framer_group {
	struct buf raw, out; /* a stretch of the tar; its frames (empty when plain) */
	struct framer_mark marks[FRAMER_MARKS];
	size_t nmarks;
};

/* The last `length` bytes of raw are file data. */
void framer_mark(struct framer_group *g, uint32_t length, void *user);

struct framer {
	enum codec codec;
	int level;
	size_t n;    /* groups; or, when only the source knows, SIZE_MAX */
	bool serial; /* fill() reads a stream: one thread at a time, in order */
	bool hash;   /* fill in the marks' digests */
	/* Fill group i, which is empty. 1: no group i, the tar has ended. */
	int (*fill)(void *ctx, size_t i, struct framer_group *g, struct err *e);
	/* A piece of data has its place. In order, one at a time. */
	void (*placed)(void *ctx, const struct framer_mark *m);
	void *ctx;
	struct progress *progress; /* counts file data; NULL: none */
	/* out */
	struct digest digest, diff_id;
	uint64_t tar_size;
};

/* Run all of it into a blob that was begun: whether it is committed is the caller's to say, once
 * the digests are known. Memory: about 10 MiB a core, 150 MiB at most. */
int framer_run(struct framer *f, struct blob_writer *w, struct err *e) must_check;

#endif
