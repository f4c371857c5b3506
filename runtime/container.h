/* A container's life: create (everything but the program), start, end.
 *
 *	container_create -> [created] -> container_start -> [running] -> it exits ->
 *container_delete
 *
 * The caller must have one thread. Signals are the caller's business (supervise.h). */
#ifndef RUNTIME_CONTAINER_H
#define RUNTIME_CONTAINER_H

#include <sys/types.h>

#include "runtime/spec.h"

struct container;

struct container_options {
	const struct spec *spec; /* borrowed until container_delete() */
	const char *bundle;      /* absolute: folder of config.json, where relative paths start */
	int root;     /* a detached mount to use instead of spec->root, or -1; stays yours */
	int stdio[3]; /* what becomes the process's 0-2, unless it has a terminal */
	bool at_once; /* do not wait for container_start(): it then only tells how that went */
};

/* Make the cgroup and the namespaces, mount everything, and stop before the program. On failure
 * nothing is left. Errors: whatever a step says. */
int container_create(
	struct container **c, const struct container_options *o, struct err *e) must_check;

/* Let it run the program. On failure (also: there is no such program) *status is the exit status by
 * convention: 127 not found, 126 not executable, 125 anything else. */
int container_start(struct container *c, int *status, struct err *e) must_check;

pid_t container_pid(const struct container *c);
int container_pidfd(const struct container *c); /* borrowed; readable when the process has ended */
/* The terminal's master, yours; -1 without one, or when it was taken already. */
int container_take_terminal(struct container *c);
/* Did the kernel kill a process of it because it reached its memory limit? */
bool container_out_of_memory(const struct container *c);

/* Kill it if it runs, reap it, remove its cgroup, free it. NULL is fine. Errors: the cgroup. */
int container_delete(struct container *c, struct err *e) must_check;
/* Collect the exit status of the ended process, 128 + signal when one killed it. */
int container_reap(struct container *c, int *status, struct err *e) must_check;

#endif
