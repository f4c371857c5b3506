/* Namespaces: the flags to clone with, joining existing ones, and what a new network and uts
 * namespace need. Source: namespaces(7), setns(2), time_namespaces(7). */
#ifndef RUNTIME_NS_H
#define RUNTIME_NS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/spec.h"

/* "network", and CLONE_NEWNET. */
const char *ns_name(enum ns_kind k);
int ns_flag(enum ns_kind k);

/* CLONE_NEW* for the new namespaces that clone makes: all but the cgroup one (its root is the
 * cgroup that the process is in when it is made, so the child makes it by ns_cgroup() after it has
 * entered its cgroup) and the time one (a process enters it only by clone or exec after its offsets
 * are written: ns_time()). */
uint64_t ns_clone_flags(const struct spec *s);
int ns_cgroup(const struct spec *s, struct err *e) must_check;

/* Must a process in between join, or make, namespaces before the child is cloned? */
bool ns_needs_helper(const struct spec *s);
/* In that process: join those that the config names by path; make a new time namespace. */
int ns_join(const struct spec *s, struct err *e) must_check;

/* In the child: loopback up, host and domain name set. */
int ns_configure(const struct spec *s, struct err *e) must_check;

#endif
