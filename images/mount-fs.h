/* One EROFS file system from a metadata image and the pool, not attached anywhere yet. Source:
 * Linux fs/erofs/super.c, loop(4). */
#ifndef IMAGES_MOUNT_FS_H
#define IMAGES_MOUNT_FS_H

#include "base/err.h"

enum mount_how {
	MOUNT_ANY,    /* file-backed (Linux 6.12), else by loop devices */
	MOUNT_BY_LOOP /* as an older kernel would: for tests */
};

/* A detached mount (fsmount(2)): read-only, nosuid, nodev. Both paths are files. Errors: CORRUPT
 * (the kernel refuses the image), UNSUPPORTED (no EROFS, or no loop devices where they are needed),
 * DENIED, SYSTEM. */
int mount_fs(const char *image, const char *pool, enum mount_how how, struct err *e) must_check;

#endif
