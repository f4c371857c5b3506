/* /etc/passwd, group, shadow and gshadow: from base-passwd's masters, and the system users and
 * groups that packages' own scripts ask for. Source: passwd(5), group(5), shadow(5), gshadow(5),
 * adduser(8). */
#ifndef BUILDER_USERS_H
#define BUILDER_USERS_H

#include "builder/deb.h"
#include "builder/rootfs.h"

/* Nothing is made without base-passwd's masters. shadow: keep the passwords apart (package passwd).
 */
int users_make(const struct rootfs *r, const struct deb *const *debs, size_t n, bool shadow,
	struct err *e) must_check;

/* Number of a user or group in the tree's /etc/passwd or group: 1, 0 when there is none, -1. */
int users_find(const struct rootfs *r, const char *file, const char *name, uint32_t *id,
	struct err *e) must_check;

#endif
