/* Folders below a cgroup, and the processes in all of them. For the cgroup-*.c alone. */
#ifndef RUNTIME_CGROUP_TASKS_H
#define RUNTIME_CGROUP_TASKS_H

#include <stddef.h>

#include "base/err.h"

struct cgroup_walk {
	/* Called for every folder, top included, before those below it. NULL: not. */
	int (*enter)(int dir, void *ctx);
	/* Called for every folder but top, after those below it, with the one above. NULL: not. */
	int (*leave)(int above, const char *name, void *ctx);
	void *ctx;
};
/* Walk the tree at `top` with one descriptor, however deep a container made it. Folders that go
 * meanwhile are passed over. -1 when a function said so, or it is too deep. */
int cgroup_walk(int top, const struct cgroup_walk *w) must_check;

/* SIGKILL to all processes at and below `dir`, once; -1 when they cannot be read. */
int cgroup_kill_below(int dir) must_check;

#endif
