/* Namespaces: the flags to clone with, and what a new network and uts namespace need. */
#ifndef RUNTIME_NS_H
#define RUNTIME_NS_H

#include <stdint.h>

#include "runtime/spec.h"

/* CLONE_NEW* for all new namespaces but the cgroup one: its root is the cgroup that the process is
 * in when it is made, so the child makes it by ns_cgroup() after it has entered its cgroup. */
uint64_t ns_clone_flags(const struct spec *s);
int ns_cgroup(const struct spec *s, struct err *e) must_check;

/* In the child: loopback up, host and domain name set. */
int ns_configure(const struct spec *s, struct err *e) must_check;

#endif
