/* What the cloned child does: the steps from a copy of the runtime in new namespaces to the
 * program.
 */
#ifndef RUNTIME_CHILD_H
#define RUNTIME_CHILD_H

#include "runtime/container.h"
#include "runtime/mounts.h"

struct child {
	const struct container_options *o;
	const struct mount_plan *mounts;
	const struct cgroup *cgroup; /* NULL: none */
	int root;                    /* detached; -1: the child opens spec->root itself */
	int devices;                 /* of dev_prepare(), or -1 */
	int sync;
	bool seen; /* stay dumpable until the ids are mapped: see step_alone() */
	bool gate; /* wait, first of all, for what only the parent can do (ids, scope, devices) */
};

/* Never returns: execs, or reports over sync and exits. */
void child_main(struct child *c) __attribute__((noreturn));

#endif
