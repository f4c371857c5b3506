/* What an image needs of the store: blobs, and chunks of the pool. Deleting, garbage collection,
 * `du` and `fsck` start from here. */
#ifndef IMAGES_REACH_H
#define IMAGES_REACH_H

#include "images/digest-map.h"
#include "images/image.h"
#include "images/store.h"

/* Add to the set the digests of a manifest and of the config and layers that it names; of an image
 * index, those of the images in it that are here, too; and of what is attached to them. Blobs need
 * not be in the store. Reads the documents only as far as that, so that other tools' images are
 * fine. Errors: NOT_FOUND, CORRUPT, SYSTEM. */
int reach_blobs(struct store *s, const struct digest *manifest, struct digest_map *set,
	struct err *e) must_check;
/* The same for all of index.json, named or not; which image it was that could not be read is in
 * the text. */
int reach_all_blobs(struct store *s, struct digest_map *set, struct err *e) must_check;

/* fn for every manifest that keeps something in the store, once: those of index.json, and images
 * that are not there any more but used by an instance or a mount. */
int reach_roots(struct store *s, int (*fn)(void *ctx, const struct digest *manifest, struct err *e),
	void *ctx, struct err *e) must_check;

/* Call fn for the images that a manifest or index stands for: itself, or those in the index that
 * are here. Not for what is no image for svrun (UNSUPPORTED): that has no chunks. */
int reach_images(struct store *s, const struct digest *manifest,
	int (*fn)(void *ctx, struct image *im, struct err *e), void *ctx, struct err *e) must_check;

/* Call fn for every chunk of an image that has an index, and for every chunk of the lists that are
 * kept of its layers (adopt.h): those that layers above hide are in lists only. With n NULL. Some
 * come more than once. */
typedef int reach_chunk_fn(void *ctx, const struct node *n, struct chunk *c, struct err *e);
int reach_chunks(
	struct store *s, struct image *im, reach_chunk_fn *fn, void *ctx, struct err *e) must_check;
/* Without those that are in lists only. */
int reach_tree_chunks(
	struct store *s, struct image *im, reach_chunk_fn *fn, void *ctx, struct err *e) must_check;

/* Files of a folder of ROOT that are named by a digest in hex, perhaps with a suffix (".img"): fn
 * gets the name and the digest. A folder that is missing is empty. */
int reach_files(struct store *s, const char *folder, const char *suffix,
	int (*fn)(void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e),
	void *ctx, struct err *e) must_check;

#endif
