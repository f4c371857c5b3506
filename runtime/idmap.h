/* User and group ids of user namespaces. Source: user_namespaces(7), mount_setattr(2). */
#ifndef RUNTIME_IDMAP_H
#define RUNTIME_IDMAP_H

#include <sys/types.h>

#include "runtime/spec.h"

/* Write the maps of the user namespace that process `pid` has just made: as root, or of the one id
 * of the caller, directly; else by newuidmap and newgidmap. Errors: DENIED names the range that the
 * host does not grant. */
int idmap_write(pid_t pid, const struct spec_idmaps *uids, const struct spec_idmaps *gids,
	struct err *e) must_check;

/* A user namespace with these maps, for an id-mapped mount; no process stays in it. Needs root.
 * Returns an fd. */
int idmap_namespace(
	const struct spec_idmaps *uids, const struct spec_idmaps *gids, struct err *e) must_check;

/* The id outside that `id` inside means, or -1 when no range has it. No ranges: the same id. */
int64_t idmap_host(const struct spec_idmaps *m, uint32_t id);

#endif
