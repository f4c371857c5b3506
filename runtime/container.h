/* A container's life: create (everything but the program), start, end.
 *
 *	container_create -> [created] -> container_start -> [running] -> it exits
 *	                        |                                            |
 *	                        +-> container_release (another process       +-> container_delete
 *	                            starts it: container_start_at)
 *
 * The caller must have one thread. Signals are the caller's business (supervise.h), as is what is
 * kept about it between processes (state.h). */
#ifndef RUNTIME_CONTAINER_H
#define RUNTIME_CONTAINER_H

#include <sys/types.h>

#include "runtime/cgroup.h"
#include "runtime/spec.h"

struct container;

struct container_options {
	const struct spec *spec; /* borrowed until container_delete() */
	const char *id;          /* for hooks, agents and classes of service */
	const char *bundle;      /* absolute: folder of config.json, where relative paths start */
	struct cgroup_place cgroup;
	int root;     /* a detached mount to use instead of spec->root, or -1; stays yours */
	int stdio[3]; /* what becomes the process's 0-2, unless it has a terminal */
	unsigned preserve_fds;             /* descriptors from 3 on that stay open */
	const struct seccomp_prog *filter; /* compiled from spec->seccomp; NULL: none */
	int door; /* where it waits for START once released (door.h), or -1 */
	/* Makes more in the container's root when its mounts are there, before anything of the
	 * image runs, in the child; NULL: nothing. own: ids of the mounts that are the container's
	 * (mount-point.h); all others are volumes. */
	int (*fill)(void *ctx, int root, const uint64_t *own, size_t nown, struct err *e);
	void *fill_ctx;
	/* Waits until fd can be read, while the child works: a volume may answer slowly, and its
	 * caller's signals be blocked. Its error ends the start; NULL: nothing else is waited for.
	 */
	int (*wait)(void *ctx, int fd, struct err *e);
	void *wait_ctx;
	bool no_pivot;     /* chroot instead of pivot_root: the root is on an initramfs */
	bool keep_keyring; /* stay in our session keyring */
	bool at_once;      /* do not wait for container_start(): it then only tells how that went */
	bool detach;       /* it lives on when we end */
};

/* Make the cgroup and the namespaces, mount everything, run the hooks that belong there, and stop
 * before the program. On failure nothing is left. Errors: whatever a step says. */
int container_create(
	struct container **c, const struct container_options *o, struct err *e) must_check;

/* Let it run the program. On failure (also: there is no such program) *status is the exit status by
 * convention: 127 not found, 126 not executable, 125 anything else. */
int container_start(struct container *c, int *status, struct err *e) must_check;

/* What is needed to start one that another process created. */
struct container_start {
	const struct spec *spec;
	const char *id, *bundle, *status; /* "created"; for seccomp agents */
	pid_t first, pid;                 /* the container's, and the one that starts */
	int sock;                         /* from door_knock() */
};
int container_start_at(const struct container_start *o, int *status, struct err *e) must_check;
/* From START to the end of the messages, which the program's exec closes. */
int container_wait_started(const struct container_start *o, int *status, struct err *e) must_check;

pid_t container_pid(const struct container *c);
int container_pidfd(const struct container *c); /* borrowed; readable when the process has ended */
/* Where its cgroup is: with systemd only known after create. */
const struct cgroup_place *container_cgroup(const struct container *c);
/* The terminal's master, yours; -1 without one, or when it was taken already. */
int container_take_terminal(struct container *c);
/* Did the kernel kill a process of it because it reached its memory limit? */
bool container_out_of_memory(const struct container *c);
/* Did it refuse to make one because of the limit on processes? */
bool container_out_of_pids(const struct container *c);

/* Let it wait at its door, or run on, without us; free it. */
int container_release(struct container *c, struct err *e) must_check;
/* Kill it if it runs, reap it, remove its cgroup, free it. NULL is fine. Errors: the cgroup. */
int container_delete(struct container *c, struct err *e) must_check;

#endif
