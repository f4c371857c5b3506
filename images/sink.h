/* Chunks on their way into the pool: whoever reads a layer hands its file data over in pieces of
 * CHUNK_SIZE, a few threads hash and write them. Bounded memory: handing over waits for a buffer.
 */
#ifndef IMAGES_SINK_H
#define IMAGES_SINK_H

#include "images/pool.h"

struct sink;

enum { SINK_SMALL = 64 << 10 }; /* what sink_add() is for */

/* threads 0: one a core. memory: bytes of buffers (at least one a thread plus one). */
struct sink *sink_new(struct pool *p, size_t threads, size_t memory) must_check;
/* Waits for all that was handed over. */
void sink_free(struct sink *s);

/* An empty buffer of CHUNK_SIZE bytes; waits for one. Any thread. */
unsigned char *sink_buffer(struct sink *s);
/* Hash and put len bytes (1 to CHUNK_SIZE) of a buffer of sink_buffer(), and fill digest, length
 * and block of *c, which must stay where it is until sink_wait(). expected: what the digest must
 * be, or NULL (CORRUPT otherwise). len 0 gives the buffer back. Small chunks are gathered: many in
 * one hand-over cost little. Does not wait. */
void sink_put(struct sink *s, unsigned char *own_buffer, uint32_t len, struct chunk *c,
	const struct digest *expected);
/* The same for small data (1 to SINK_SMALL bytes) that the caller has somewhere else: they are
 * copied. May wait for a buffer, so the caller must not hold all of them. Any thread. */
void sink_add(struct sink *s, const void *data, uint32_t len, struct chunk *c,
	const struct digest *expected);
/* Wait until all that was handed over before is in the pool (not committed). The first error of any
 * chunk, now and in every later call. */
int sink_wait(struct sink *s, struct err *e) must_check;
/* Has anything failed? For long loops; does not wait. */
int sink_check(struct sink *s, struct err *e) must_check;

#endif
