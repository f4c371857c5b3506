/* Places inside a container's root to mount on: found, or made, through descriptors only. */
#ifndef RUNTIME_MOUNT_POINT_H
#define RUNTIME_MOUNT_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Mounts that are the container's own: the root, and the tmpfs that this start mounted. All others
 * are volumes, which somebody else may own, and change while we work. A missing mount point is made
 *
 *	own mount	also over links, which lead into the root only; a link to nowhere gets its
 *			target made
 *	volume		only where every name between the root of the volume and the new one is
 *			no link (a volume in a volume): over one it would be made where somebody
 *			else chose (CVE-2024-45310, CVE-2024-0133)
 *
 * A read-only volume stays as it is: the kernel refuses. */
enum { OWN_MOUNTS_MAX = 64 };
struct own_mounts {
	uint64_t ids[OWN_MOUNTS_MAX];
	unsigned n;
};
int own_mounts_add(struct own_mounts *o, int fd, struct err *e) must_check;
/* Is fd in one of them? */
bool own_mounts_has(const struct own_mounts *o, int fd);

enum point_kind { POINT_DIR, POINT_FILE };

/* Open path (absolute, as the container names it) below rootfd with O_PATH, making what is missing:
 * folders 0755, files 0644, less umask. Links stay inside the root; with no_links there may be none
 * (an image must not choose where /proc goes). Errors: CORRUPT names the path, DENIED for a link
 * into a volume. */
int mount_point(int rootfd, const char *path, enum point_kind kind, bool no_links,
	const struct own_mounts *own, struct err *e) must_check;
/* The same for the folder that path lies in; *name receives the rest of path. */
int mount_point_folder(int rootfd, const char *path, const char **name, bool no_links,
	const struct own_mounts *own, struct err *e) must_check;

#endif
