/* Mounts as file descriptors: made detached, configured, and only then attached to an open place.
 * No path of a container is looked up twice, and what is not attached vanishes with its descriptor.
 * Source: fsopen(2), open_tree(2), move_mount(2), mount_setattr(2). */
#ifndef RUNTIME_FS_MOUNT_H
#define RUNTIME_FS_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A new, detached instance of a file system. data: "key=value" or "flag". Returns an fd. Errors
 * have what the kernel said. */
int fs_mount(const char *type, const char *source, const char *const *data, size_t ndata,
	uint64_t attrs, struct err *e) must_check;

/* A detached copy of the mount at path ("": of dirfd, which may be a file); all: with those below.
 */
int fs_bind(int dirfd, const char *path, bool all, struct err *e) must_check;

/* Change attributes (MOUNT_ATTR_*) and propagation (MS_*, 0: as it is). */
int fs_attr(int mountfd, bool all, uint64_t set, uint64_t clear, uint64_t propagation,
	struct err *e) must_check;

/* Show owners by the maps of a user namespace (an fd); the mount must be detached. */
int fs_idmap(int mountfd, bool all, int userns, struct err *e) must_check;

/* Give the file system whose root `at` is other options. */
int fs_reconfigure(int at, const char *const *data, size_t ndata, struct err *e) must_check;

/* Attach a detached mount on what targetfd is. */
int fs_attach(int mountfd, int targetfd, struct err *e) must_check;

#endif
