/* One read-only mount per image: ROOT/mnt/HEX, made from ROOT/erofs/HEX.img and the pool, shared by
 * all instances. File-backed on Linux 6.12 and newer, through two loop devices before.
 *
 * A user holds a shared flock on ROOT/mnt/HEX.lock; the kernel drops it when the holder dies, so
 * that mount_sweep() can tell a mount in use from one left behind by kill -9.
 */
#ifndef IMAGES_MOUNT_H
#define IMAGES_MOUNT_H

#include "images/image.h"
#include "images/store.h"

struct mount {
	char *path; /* where the tree can be read */
	int lock;   /* keep it open as long as the mount is used (close-on-exec) */
};

/* Make ROOT/erofs/HEX.img if it is missing: from `tree` when given (all chunks have blocks), else
 * from the image's index and the pool. CORRUPT with a hint ("svrun image verify --repair NAME")
 * when a chunk is missing. */
int mount_prepare(struct store *s, const struct digest *manifest, struct tree *tree,
	struct err *e) must_check;

/* Mount the image unless it is mounted, and take a share in it. A metadata image that is missing or
 * cut off is made first, as mount_prepare() does; otherwise neither LMDB nor the index is read.
 * nosuid and nodev on the host's side. Errors: NOT_FOUND, CORRUPT, UNSUPPORTED (kernel), DENIED
 * (not root), SYSTEM. */
int mount_open(
	struct mount *m, struct store *s, const struct digest *manifest, struct err *e) must_check;
/* Give the share back; the last one unmounts. */
void mount_close(struct mount *m, struct store *s);

/* Unmount what nobody holds. Cheap when there is nothing (one readdir). */
int mount_sweep(struct store *s, struct err *e) must_check;

#endif
