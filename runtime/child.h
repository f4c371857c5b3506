/* What the cloned child does: the steps from a copy of svrun in new namespaces to the program. */
#ifndef RUNTIME_CHILD_H
#define RUNTIME_CHILD_H

#include "runtime/mounts.h"
#include "runtime/seccomp.h"
#include "runtime/spec.h"

struct child {
	const struct spec *spec;
	const struct mount_plan *mounts;
	const struct cgroup *cgroup;       /* NULL: none */
	const struct seccomp_prog *filter; /* NULL: none */
	const char *bundle;                /* relative sources of binds start here */
	int root;                          /* detached */
	int stdio[3];
	int sync;
};

/* Never returns: execs, or reports over sync and exits. */
void child_main(struct child *c) __attribute__((noreturn));

#endif
