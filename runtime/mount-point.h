/* Places inside a container's root to mount on: found, or made, through descriptors only. */
#ifndef RUNTIME_MOUNT_POINT_H
#define RUNTIME_MOUNT_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Mounts in which missing mount points may be made: the root and the tmpfs that this start mounted.
 * Never a volume: what it holds is not ours to change (CVE-2024-0133, CVE-2024-45310). */
enum { OWN_MOUNTS_MAX = 64 };
struct own_mounts {
	uint64_t ids[OWN_MOUNTS_MAX];
	unsigned n;
};
int own_mounts_add(struct own_mounts *o, int fd, struct err *e) must_check;
/* Is fd in one of them? 1, 0 or -1. */
int own_mounts_has(const struct own_mounts *o, int fd, struct err *e) must_check;

enum point_kind { POINT_DIR, POINT_FILE };

/* Open path (absolute, as the container names it) below rootfd with O_PATH, making what is missing
 * where `own` allows it. Links are followed inside the root only; with no_links there may be none
 * (kernel file systems: an image must not choose where /proc goes). Errors: CORRUPT names the path.
 */
int mount_point(int rootfd, const char *path, enum point_kind kind, bool no_links,
	const struct own_mounts *own, struct err *e) must_check;

#endif
