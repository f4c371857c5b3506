/* Mounts as file descriptors: made detached, configured, and only then attached to an open place.
 * No path of a container is looked up twice, and what is not attached vanishes with its descriptor.
 * Source: fsopen(2), open_tree(2), move_mount(2), mount_setattr(2). */
#ifndef RUNTIME_FS_MOUNT_H
#define RUNTIME_FS_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A new instance of a file system, detached. data: "key=value" or "flag". The error has what the
 * kernel said about it. Returns an fd. */
int fs_mount(const char *type, const char *source, const char *const *data, size_t ndata,
	uint64_t attrs, struct err *e) must_check;

/* A detached copy of the mount at path (with everything mounted below it when `all`). path "" means
 * dirfd itself, which may be a file. Returns an fd. */
int fs_bind(int dirfd, const char *path, bool all, struct err *e) must_check;

/* Change attributes (MOUNT_ATTR_*) and propagation (MS_*, 0: none) of a mount, or of the whole
 * tree. */
int fs_attr(int mountfd, bool all, uint64_t set, uint64_t clear, uint64_t propagation,
	struct err *e) must_check;

/* Show the owners of a detached mount, or of the whole tree, by the maps of a user namespace (an
 * fd).
 */
int fs_idmap(int mountfd, bool all, int userns, struct err *e) must_check;

/* Give the file system mounted at `at`, which is the root of a mount, other options. */
int fs_reconfigure(int at, const char *const *data, size_t ndata, struct err *e) must_check;

/* Attach a detached mount on what targetfd is. */
int fs_attach(int mountfd, int targetfd, struct err *e) must_check;

#endif
