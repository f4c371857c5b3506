/* Mounts that stay when nobody holds a share: `svrun image mount`. A file ROOT/mnt/HEX.keep says
 * so; in it stands the boot that it was made in, because a mount is gone after a restart of the
 * machine, and then its mark means nothing. */
#ifndef IMAGES_MOUNT_KEEP_H
#define IMAGES_MOUNT_KEEP_H

#include "images/store.h"

/* The caller has a share of the mount (mount.h), so that it is there. */
int mount_keep(struct store *s, const struct digest *manifest, struct err *e) must_check;
/* NOT_FOUND when it is not kept. The next mount_sweep() unmounts it, unless an instance uses it. */
int mount_unkeep(struct store *s, const struct digest *manifest, struct err *e) must_check;
/* 1, 0, -1. folder: ROOT/mnt. */
int mount_is_kept(int folder, const char *hex, struct err *e) must_check;
/* All that are kept, in the order of their digests; to free(). */
int mount_kept(struct store *s, struct digest **v, size_t *n, struct err *e) must_check;

#endif
