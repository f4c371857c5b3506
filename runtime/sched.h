/* Scheduling, io priority, CPU affinity, memory policy and personality of the calling process.
 * Source: runtime-spec config.md "Scheduler", "I/O priority", "execCPUAffinity"; config-linux.md
 * "Memory Policy", "Personality"; sched_setattr(2), ioprio_set(2), set_mempolicy(2),
 * personality(2). */
#ifndef RUNTIME_SCHED_H
#define RUNTIME_SCHED_H

#include "runtime/spec.h"

/* What `p` and `s` ask for, in an order that works; nothing when they ask for nothing. */
int sched_apply(const struct spec *s, const struct spec_process *p, struct err *e) must_check;

/* Pin the calling process to a list of CPUs, "0-3,5". NULL: nothing. Errors: USAGE. */
int sched_affinity(const char *cpus, struct err *e) must_check;

#endif
