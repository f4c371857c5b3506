/* Device rules of a cgroup: files of the devices controller on version 1, a BPF program on
 * version 2.
 *
 * Everything is denied first, then the config's rules apply in their order, then the devices that
 * every container has. Any node may be made (that opens nothing). */
#ifndef RUNTIME_CGROUP_DEVICES_H
#define RUNTIME_CGROUP_DEVICES_H

#include <linux/bpf.h>
#include <stddef.h>

#include "runtime/spec.h"

/* Version 1: dir is the cgroup's folder in the devices hierarchy. */
int cgroup_devices_write(int dir, const struct spec_resources *r, struct err *e) must_check;

/* Version 2: load the program and attach it to the cgroup. It lives as long as the cgroup. */
int cgroup_devices_attach(int dir, const struct spec_resources *r, struct err *e) must_check;

/* The program; *insns is the caller's to free. The later rules are tested first: the first that
 * fits decides. */
void cgroup_devices_program(const struct spec_resources *r, struct bpf_insn **insns, size_t *n);

#endif
