/* Writing to the kernel through procfs: only through a descriptor of a verified one, checked file
 * by file, because a path can lead elsewhere (CVE-2019-16884, CVE-2025-52881). */
#ifndef RUNTIME_PROCFS_H
#define RUNTIME_PROCFS_H

#include "runtime/spec.h"

/* A procfs of the calling process's pid namespace, attached nowhere. Where a user namespace may not
 * make one: /proc, verified. */
int procfs_open(struct err *e) must_check;
/* /proc, verified, for what the calling process writes about itself before it is in a container. */
int procfs_host(struct err *e) must_check;

/* Is fd (-1: no) on a procfs? */
bool procfs_is(int fd);

/* In the host's namespaces, before anything is made: does every sysctl of s belong to a namespace
 * of the container, new or joined, and not ours? Others are DENIED: they would change the host.
 * Names are as sysctl(8) takes them: "net.ipv4.ip_forward", "net/ipv4/ip_forward",
 * "net/ipv4/conf/eth0.1/forwarding", "net.ipv4.conf.eth0/1.forwarding". */
int procfs_check_sysctls(const struct spec *s, struct err *e) must_check;
/* Set them. proc: the root of a procfs. */
int procfs_sysctls(int proc, const struct spec *s, struct err *e) must_check;

/* Write a short text to a file below proc: "self/oom_score_adj". */
int procfs_write(int proc, const char *path, const char *text, struct err *e) must_check;
/* Read one, without the newline at its end. Longer than size: CORRUPT. */
int procfs_read(int proc, const char *path, char *text, size_t size, struct err *e) must_check;

#endif
