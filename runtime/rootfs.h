/* The container's root: attached in the child's own mount namespace, entered by pivot_root. */
#ifndef RUNTIME_ROOTFS_H
#define RUNTIME_ROOTFS_H

#include <stdbool.h>

#include "runtime/spec.h"

/* A bundle's root.path as a detached copy, used by descriptor from here on (CVE-2019-18837). */
int rootfs_open(const char *bundle, const char *path, struct err *e) must_check;

/* Cut this mount namespace off from the host's as far as rootfsPropagation says (not given:
 * slaves), and attach the root. */
int rootfs_attach(int root, const struct spec *s, struct err *e) must_check;

/* Make it /, and let go of the host's tree. no_pivot: by chroot, on an initramfs. */
int rootfs_pivot(int root, const struct spec *s, bool no_pivot, struct err *e) must_check;

/* Enter a working directory, and prove that it is inside the root (CVE-2024-21626). */
int rootfs_chdir(const char *cwd, struct err *e) must_check;

#endif
