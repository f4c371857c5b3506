/* What a member of a foreign layer means: the rules of docs/layers.md. For whoever reads layers: as
 * a tar, or by somebody's table of contents. */
#ifndef IMAGES_MEMBER_H
#define IMAGES_MEMBER_H

#include <pthread.h>

#include "images/entries.h"
#include "images/tar-read.h"

/* The members of one layer, as they come, and how much they add up to. */
struct members {
	const char *name; /* for errors: "layer 3" */
	struct entries *out;
	uint64_t n, max;           /* members */
	uint64_t bytes, max_bytes; /* of names, link targets and extended attributes */
};

/* blob_size: of the layer's blob, whose size bounds how much memory its list may take. */
void members_init(struct members *v, const char *name, uint64_t blob_size, struct entries *out);

/* Turn m into an entry at the end of v->out: *entry, valid until the next call, or NULL when m is
 * one that is left out. Everything is copied. For a file, size is set, and chunks and nchunks are
 * the caller's to fill. Errors: CORRUPT, UNSUPPORTED, both with the member's name. */
int members_add(struct members *v, const struct tar_member *m, struct entry **entry,
	struct err *e) must_check;

/* What the lists of all layers of an image add up to: they are in memory together, and hundreds of
 * small layers could each take what a small layer may. Thread-safe but for init and fini. */
struct members_total {
	pthread_mutex_t lock;
	uint64_t n, max;
	uint64_t bytes, max_bytes;
};

void members_total_init(struct members_total *t, uint64_t blob_sizes);
void members_total_fini(struct members_total *t);
/* Count one layer's list: CORRUPT when it is too much. */
int members_total_add(struct members_total *t, const struct entries *l, struct err *e) must_check;

#endif
