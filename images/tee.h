/* A source that hashes what passes. Hashing costs as much as all else that happens to a byte on its
 * way, so a thread does it while the reader works on the same bytes. */
#ifndef IMAGES_TEE_H
#define IMAGES_TEE_H

#include "images/digest.h"
#include "images/source.h"

struct tee;

enum { TEE_LAG_MAX = 4 };

/* lag: for how many calls after the next one a span of `in` stays as it is (0 for most sources).
 * More than max bytes are CORRUPT: "name: more than the max bytes ...". `in` and name must stay. */
struct tee *tee_new(struct source *in, unsigned lag, uint64_t max, const char *name)
	__attribute__((returns_nonnull));
void tee_free(struct tee *t);

struct source *tee_source(struct tee *t);
/* Of what has passed. The digest is asked for once, at the end. */
uint64_t tee_bytes(const struct tee *t);
struct digest tee_digest(struct tee *t);

#endif
