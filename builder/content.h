/* File data on its way into the pool: cut into chunks as it comes. Memory is one chunk. */
#ifndef BUILDER_CONTENT_H
#define BUILDER_CONTENT_H

#include "images/pool.h"
#include "images/tree.h"

/* Put a whole open file (a model, files.from) into the pool: fills size and chunks of a, hashing
 * the whole into *sha256 (unless it is NULL). Streams; memory is one chunk. */
int content_from_fd(int fd, const char *name, struct pool *p, struct arena *arena, struct attr *a,
	struct digest *sha256, struct err *e) must_check;
/* The same for bytes in memory (inline files, generated state). */
int content_from_mem(const void *data, size_t n, struct pool *p, struct arena *arena,
	struct attr *a, struct err *e) must_check;

/* The same piece by piece: content_begin(), content_add() until the file ends, content_end(), and
 * the next file. */
struct content {
	struct pool *pool;
	unsigned char *buf; /* CHUNK_SIZE */
	uint32_t fill;
	uint64_t size; /* bytes so far, those in buf included */
	struct chunk *chunks;
	size_t n, cap;
};

#define auto_content __attribute__((cleanup(content_fini)))
void content_init(struct content *c, struct pool *p);
void content_fini(struct content *c);
void content_begin(struct content *c);
/* data NULL: n zeros. */
int content_add(struct content *c, const void *data, uint64_t n, struct err *e) must_check;
/* Fills size and chunks of a, in the arena. */
int content_end(struct content *c, struct arena *arena, struct attr *a, struct err *e) must_check;

#endif
