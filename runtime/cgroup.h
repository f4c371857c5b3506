/* One cgroup for a container: made in every hierarchy it needs, limited, mounted in the container,
 * removed. Version 2 where the host has it, else version 1 (a version 2 tree beside version 1
 * controllers is left alone).
 *
 * Moving another process costs the kernel an RCU grace period, about 10 ms, in both versions. It is
 * never paid here: version 2 clones into the cgroup, and on version 1 the child moves itself, by
 * writing 0 to "tasks" while it has one thread (Linux 5.6 and newer skip the wait for that).
 * Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/. */
#ifndef RUNTIME_CGROUP_H
#define RUNTIME_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/spec.h"

enum { CGROUP_HIERARCHIES = 8 };

struct cgroup_dir {
	const char *controller; /* "memory"; "" on version 2 */
	int dir;                /* the cgroup's folder */
	int tasks;              /* version 1: what join writes to */
};

struct cgroup {
	bool v2;
	const char *path; /* borrowed: below each hierarchy's root */
	struct cgroup_dir dirs[CGROUP_HIERARCHIES];
	size_t ndirs;
};

/* Make the cgroup `path` ("/svrun/ID") and attach the device rules. A folder that is there already
 * and empty is taken over; with processes in it: EXISTS. Errors: UNSUPPORTED when a limit that is
 * asked for has no controller. */
int cgroup_create(struct cgroup *c, const char *path, const struct spec_resources *r,
	struct err *e) must_check;
/* Write the limits. Any time before the container's program starts. */
int cgroup_limit(const struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;
/* Version 2: the descriptor for CLONE_INTO_CGROUP. -1 on version 1. */
int cgroup_clone_fd(const struct cgroup *c);
/* Version 1: move the calling process, which has one thread. Nothing on version 2. */
int cgroup_join(const struct cgroup *c, struct err *e) must_check;
/* Mount the container's view on `at`: the calling process is in the cgroup and in its own cgroup
 * namespace. */
int cgroup_mount(const struct cgroup *c, int at, uint64_t attrs, struct err *e) must_check;
/* Did the kernel kill a process in it because it reached its memory limit? false when unknown. */
bool cgroup_out_of_memory(const struct cgroup *c);
/* Close descriptors. */
void cgroup_fini(struct cgroup *c);

/* Kill what is left in the cgroup `path` and remove it everywhere. Fine when it is not there. */
int cgroup_destroy(const char *path, struct err *e) must_check;

/* Does the host account swap, so that "memory and swap" can be limited? */
bool cgroup_has_swap(void);

#endif
