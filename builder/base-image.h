/* An image that ours starts from: its layers stay as they are, bytes and digests. */
#ifndef BUILDER_BASE_IMAGE_H
#define BUILDER_BASE_IMAGE_H

#include "builder/lock.h"
#include "images/config.h"
#include "images/image.h"
#include "images/progress.h"

/* Fill l->base: pulled by digest into the store if it is not there; `verify` checked. */
int base_image_lock(struct lock *l, const struct manifest *m, struct store *s, struct progress *p,
	struct err *e) must_check;

/* Pull it if the store lacks it, and open it, when it is what m names and `verify` wants signed,
 * whatever a lock says that may have been edited: its tree (every chunk's layer is the number of
 * the base's layer, and every node's layer too), its layers, its config. base_image_close() is due.
 */
struct base_image {
	struct image image;
	struct tree *tree;
	struct layer *layers;
	size_t nlayers;
};
int base_image_open(struct base_image *b, const struct manifest *m, const struct lock *l,
	struct store *s, struct progress *p, struct err *e) must_check;
void base_image_close(struct base_image *b);

/* Does what the store holds still say that it may be used: its signature by `verify`, and the
 * site's policy? false: no, or that cannot be told from here, so that base_image_open() must be
 * asked. An image that was built of it before is only handed out when it may. */
bool base_image_admitted(
	const struct manifest *m, const struct lock *l, const struct config *c, struct store *s);

#endif
