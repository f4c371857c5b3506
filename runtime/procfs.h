/* Writing to the kernel through procfs: only through a descriptor of a procfs that we mounted
 * ourselves, checked file by file, because a path can lead elsewhere (CVE-2019-16884,
 * CVE-2025-52881). */
#ifndef RUNTIME_PROCFS_H
#define RUNTIME_PROCFS_H

#include "runtime/spec.h"

/* A procfs of our own, attached nowhere, of the calling process's pid namespace. Where the kernel
 * does not let a user namespace make one: /proc, verified. Returns an fd. */
int procfs_open(struct err *e) must_check;

/* Set every sysctl of s that belongs to one of its new namespaces; others are DENIED, since they
 * would change the host. proc: the root of a procfs. */
int procfs_sysctls(int proc, const struct spec *s, struct err *e) must_check;

/* Write a short text to a file below proc: "self/oom_score_adj". */
int procfs_write(int proc, const char *path, const char *text, struct err *e) must_check;

#endif
