/* The container's /dev: nodes, links and the console. */
#ifndef RUNTIME_DEV_H
#define RUNTIME_DEV_H

#include "runtime/mount-point.h"
#include "runtime/spec.h"

/* The host's null device as an O_PATH descriptor, verified to be character 1:3. */
int dev_null(struct err *e) must_check;

/* In the parent, as root, for a child in a new user namespace, which can make no device nodes: a
 * detached tmpfs with spec->devices, named by number, with the owners outside. One whose owner has
 * no id outside is left out, and bound from the host. *made: -1 when none are needed or may be
 * made. */
int dev_prepare(const struct spec *s, int *made, struct err *e) must_check;

/* Make the default nodes and links (config-linux.md "Default Devices") and spec->devices, below
 * root. A volume on /dev is left as it is. umask must be 0. made: of dev_prepare(), or -1. */
int dev_fill(int root, const struct spec *s, const struct own_mounts *own, int made,
	struct err *e) must_check;

/* A new terminal of the container's devpts: returns the master; *slave is also bound on
 * /dev/console, unless own is NULL. */
int dev_terminal(int root, const struct own_mounts *own, int *slave, struct err *e) must_check;

#endif
