/* `svrun image rebase`: the layers of an image above those of its base, on another base. Manifest,
 * config and index are made anew; no data of a layer is read or written.
 *
 * What engines will see is the new base with the upper layers laid over it. Refused is what would
 * be wrong without looking so: a layer above has a file that the old base had in the state of the
 * old base, or that only the new base has (a package database is the usual case: build the image
 * anew then), and a folder that layers above may hide as a whole or by its names alone, when the
 * new base has more in it. Whiteouts of what the new base does not have are fine.
 *
 * Of the config, what the image took over from its old base becomes the new one's; what it changed
 * stays. */
#ifndef BUILDER_REBASE_H
#define BUILDER_REBASE_H

#include "images/image.h"
#include "images/progress.h"

/* All are manifests in the store, with their indexes. */
struct rebase {
	struct digest image, old, onto;
	const char *onto_name; /* for the annotation org.opencontainers.image.base.name */
	const char *name;      /* what the new image is called */
};

#define BASE_NAME_ANNOTATION "org.opencontainers.image.base.name"
#define BASE_DIGEST_ANNOTATION "org.opencontainers.image.base.digest"

/* The base that an image says it has: 1 with *d and *name (borrowed; may be NULL), 0, -1. */
int rebase_base_of(
	const struct image *im, struct digest *d, const char **name, struct err *e) must_check;

/* Make the image and give it its name; *manifest is its digest. USAGE: old is not below the image.
 * UNSUPPORTED: see above, with the path. The pool must not be open in this process. */
int image_rebase(
	struct store *s, const struct rebase *r, struct digest *manifest, struct err *e) must_check;

/* ---- rebase-config.c ---- */

/* The config of image, as it was made on the config of old, for onto. A new reference. */
json_t *rebase_config(const json_t *image, const json_t *old, const json_t *onto);
/* History: onto's for its nonto layers, then image's behind those of its first nold layers, without
 * that of a layer which carried its index. A new reference. */
json_t *rebase_history(const struct image *image, size_t nold, const json_t *onto, size_t nonto);

#endif
