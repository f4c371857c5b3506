/* Pulling: from a reference in a registry to an image in the store that can be run.
 *
 * Images with an index of ours: only the chunks that the pool lacks travel. Others are adopted
 * (adopt.h). Either way data live once, in the pool; layer blobs are not kept, the image's name
 * says where they can be had. Several processes may pull at once: who comes second to the same
 * image, or to the same foreign layer, waits and finds the work done. Source: distribution-spec
 * "Pull". */
#ifndef IMAGES_PULL_H
#define IMAGES_PULL_H

#include "images/config.h"
#include "images/reference.h"
#include "images/store.h"
#include "images/tree.h"

struct progress;

struct pull_options {
	const char *platform; /* "os/arch[/variant]"; NULL: this machine's */
	bool all_platforms;   /* every image of an index, and the index gets the name */
	bool strict; /* whole layers travel: their digests, their DiffIDs, and that the index says
		      * what they say */
	bool plain_http, insecure;
};

struct pull_result {
	char name[REFERENCE_TEXT]; /* in the store */
	struct digest manifest;    /* or index */
	uint64_t received;         /* bytes of layers */
	bool present;              /* nothing had to be fetched */
};

/* Errors: those of reference_expand(), registry.h, image_load(), adopt.h. Nothing half-made has a
 * name after an error; chunks that arrived are kept for the next try. The pool must not be open in
 * this process. */
int image_pull(struct store *s, const struct config *c, const char *ref,
	const struct pull_options *o, struct progress *p, struct pull_result *r,
	struct err *e) must_check;

/* Have chunks of an image again, from the repository it came from, or from layers that are here if
 * it has no index of its own, and write them over what the pool has in their place, or into the
 * pool where their block is CHUNK_NO_BLOCK: fsck's repair. The pool must not be open in this
 * process. NOT_FOUND: the image has no source. */
int image_refetch(struct store *s, const struct config *c, const struct digest *manifest,
	struct chunk *const *v, size_t n, struct progress *p, struct err *e) must_check;

#endif
