/* One more process in a running container.
 *
 *	exec_start -> [running] -> exec_wait (or not: detached)
 *
 * The caller must have one thread. Nothing of the container's is executed or trusted before the new
 * process is confined; it joins the namespaces by the pidfd of the first process. */
#ifndef RUNTIME_EXEC_H
#define RUNTIME_EXEC_H

#include "runtime/cgroup.h"
#include "runtime/spec.h"

struct exec_options {
	const struct spec *spec;            /* the container's */
	const struct spec_process *process; /* what to run */
	int pidfd;                          /* of the container's first process, verified */
	const struct cgroup *cgroup;        /* the container's, open; NULL: none */
	const char *sub_cgroup;             /* a path below it, or NULL */
	const struct seccomp_prog *filter;  /* NULL: none */
	int stdio[3];                       /* what becomes its 0-2, unless it has a terminal */
	unsigned preserve_fds;              /* descriptors from 3 on that stay open */
	bool detach;                        /* it outlives us */
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
void exec_fini(struct exec *x);

#endif
