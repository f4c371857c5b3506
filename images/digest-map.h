/* Digests met, with a few numbers each: what garbage collection marks and what `du` counts. A slot
 * is found by the first 8 bytes of the digest: of a billion chunks, two share them with a chance of
 * 3 %, and then one is kept, or counted with the other, although nobody needs it. Not thread-safe.
 */
#ifndef IMAGES_DIGEST_MAP_H
#define IMAGES_DIGEST_MAP_H

#include <stdbool.h>

#include "base/mem.h"
#include "images/digest.h"

struct digest_slot {
	uint64_t key;         /* 0: empty */
	uint32_t units;       /* 512 bytes each: space on disk */
	uint32_t owner, last; /* the caller's */
};

struct digest_map {
	struct digest_slot *slots;
	size_t n, nslots; /* nslots: 0, or a power of two */
};

void digest_map_fini(struct digest_map *m);
/* The slot of d, zeroed when it is new. Valid until the next add. */
struct digest_slot *digest_map_add(struct digest_map *m, const struct digest *d);
/* NULL when there is none. */
struct digest_slot *digest_map_find(const struct digest_map *m, const struct digest *d);

#endif
