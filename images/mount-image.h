/* ROOT/erofs/HEX.img: the metadata image of one image of the store, by its manifest's digest.
 * Behind the EROFS blocks stands a trailer of 64 bytes: "svrunimg", the length before it (8 bytes,
 * little-endian), the identity of the pool whose blocks it names (16), and the sha256 of what is
 * before the trailer. An image of another pool would show wrong data, so it counts as missing. */
#ifndef IMAGES_MOUNT_IMAGE_H
#define IMAGES_MOUNT_IMAGE_H

#include "images/store.h"

/* Is the file there, as long as its trailer says, and of this pool? 1, 0, -1. Reads 96 bytes. */
int mount_image_ready(struct store *s, const struct digest *manifest, struct err *e) must_check;

/* Read all of it and compare with the trailer. NOT_FOUND, CORRUPT (expected and found digest). */
int mount_image_check(struct store *s, const struct digest *manifest, struct err *e) must_check;

/* Remove it, so that mount_prepare() makes it again; mounts of it stay as they are. Fine when
 * missing. */
int mount_image_remove(struct store *s, const struct digest *manifest, struct err *e) must_check;

#endif
