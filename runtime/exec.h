/* One more process in a running container.
 *
 *	exec_start -> [running] -> supervise_run() (or not: detached) -> exec_fini
 *
 * A helper (helper.h) enters the container's cgroup and all its namespaces, with no descriptor left
 *that leads out, and clones the new process, which confines itself and executes: from the first
 *moment that others of the container can see it, it has nothing of the host's. Nothing of the
 *container's is executed or trusted before.
 *
 * The caller must have one thread.
 */
#ifndef RUNTIME_EXEC_H
#define RUNTIME_EXEC_H

#include "runtime/cgroup.h"
#include "runtime/spec.h"

struct exec_options {
	const struct spec *spec;            /* the container's */
	const struct spec_process *process; /* what to run */
	int pidfd;                          /* of the container's first process, verified */
	pid_t first;                        /* its pid */
	struct cgroup
		*cgroup; /* the container's, open; NULL: none. It descends to where it joins */
	struct strings sub_cgroups;        /* "[CONTROLLER,...:]PATH" below it, existing */
	const struct seccomp_prog *filter; /* NULL: none */
	int stdio[3];                      /* what becomes its 0-2, unless it has a terminal */
	unsigned preserve_fds;             /* descriptors from 3 on that stay open */
	bool detach;                       /* it outlives us */
	bool keep_keyring;
	const char *id, *bundle; /* for the state that a seccomp agent gets */
};

struct exec {
	pid_t pid;           /* as we see it */
	int pidfd, terminal; /* yours; terminal -1 without one */
};

/* On failure *status is the exit status by convention: 127 not found, 126 not executable, 255
 * anything else, and nothing is left. */
int exec_start(struct exec *x, const struct exec_options *o, int *status, struct err *e) must_check;
/* End it at once, and reap it: when what belongs to starting it fails later. */
void exec_kill(struct exec *x);
void exec_fini(struct exec *x);

#endif
