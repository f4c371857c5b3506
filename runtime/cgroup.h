/* One cgroup for a container: made in every hierarchy it needs, limited, mounted in the container,
 * measured, frozen, removed. Version 2 where the host has it, else version 1 (a version 2 tree
 * beside version 1 controllers is left alone).
 *
 * Moving another process costs an RCU grace period, about 10 ms. Version 2 clones into the cgroup;
 * on version 1 the child moves itself, by writing 0 to "tasks" while it has one thread (Linux 5.6
 * skips the wait for that). Only systemd, when it makes the cgroup, moves a process.
 *
 *	cgroup_create -> clone (cgroup_clone_fd) -> cgroup_join in the child
 *	              -> cgroup_scope (systemd only: needs the process) -> cgroup_limit -> ...
 *	cgroup_open   -> what exec, update, events, pause, ps and kill do to an existing one
 *
 * Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/, runtime-spec
 * config-linux.md "Control groups". */
#ifndef RUNTIME_CGROUP_H
#define RUNTIME_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/spec.h"

enum { CGROUP_HIERARCHIES = 16, CGROUP_PATH_MAX = 1024 };

struct cgroup_dir {
	char hierarchy[64]; /* "memory", "cpu,cpuacct", "systemd"; "" on version 2 */
	int dir;            /* the cgroup's folder; -1: not opened */
	bool made;          /* by us: nothing was there */
};

/* Where the cgroup is. Plain data, kept in the container's state: what a killed runtime left can be
 * found and removed. */
struct cgroup_place {
	char path[CGROUP_PATH_MAX]; /* below each hierarchy's root, "/a/b"; "": it has none */
	char slice[CGROUP_PATH_MAX], unit[256]; /* systemd's names; unit "": not by systemd */
	bool may_lack; /* not asked for by name, and we are not root: go without if need be */
};

struct cgroup {
	bool v2;
	struct cgroup_place place;
	struct cgroup_dir dirs[CGROUP_HIERARCHIES];
	size_t ndirs;             /* 0: the container has no cgroup of its own */
	struct cgroup_told *told; /* who is told of limits instead of the kernel: systemd */
};

/* Compute the place from the config's cgroupsPath (NULL: by id, as runc does it), touching nothing.
 * systemd: cgroupsPath is "slice:prefix:name" and systemd makes it. Errors: USAGE. */
int cgroup_place(struct cgroup_place *p, const char *cgroups_path, const char *id, bool systemd,
	struct err *e) must_check;

/* Make it, and attach the device rules. A folder that is there and empty is taken over; with
 * processes in it, or frozen: EXISTS. With systemd: nothing yet. Errors: UNSUPPORTED when a limit
 * that is asked for has no controller. */
int cgroup_create(struct cgroup *c, const struct cgroup_place *p, const struct spec_resources *r,
	struct err *e) must_check;
/* systemd: have it make the unit with the waiting process `pid` in it, then as cgroup_create().
 * Nothing otherwise. */
int cgroup_scope(
	struct cgroup *c, pid_t pid, const struct spec_resources *r, struct err *e) must_check;
/* Version 2: mounted writable in a cgroup namespace of its own, it belongs to who the container's
 * process is outside, so that a systemd in a user namespace can make cgroups in it. Nothing
 * otherwise. Source: config-linux.md "Cgroup ownership". */
int cgroup_give(const struct cgroup *c, const struct spec *s, struct err *e) must_check;
/* Write the limits. Any time before the container's program starts (after cgroup_scope()). */
int cgroup_limit(const struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;
/* Change the limits of a container that runs: those that are set in r, and no others. */
int cgroup_update(const struct cgroup *c, const struct spec_resources *r, struct err *e) must_check;
/* The descriptor for CLONE_INTO_CGROUP. -1 on version 1, and without folders. */
int cgroup_clone_fd(const struct cgroup *c);
/* Version 1: move the calling process, which has one thread, and closes all descriptors before its
 * program starts. Nothing on version 2. */
int cgroup_join(const struct cgroup *c, struct err *e) must_check;
/* Mount the container's view on `at`: the calling process is in the cgroup and in its own cgroup
 * namespace when own_ns; without, the mount shows the cgroup only, and is read-only. c may be NULL
 * or without folders. */
int cgroup_mount(
	const struct cgroup *c, int at, uint64_t attrs, bool own_ns, struct err *e) must_check;

/* Open an existing one. One whose folders are gone opens with ndirs 0. With `only`, version 1's
 * folder of this controller is opened and no other: enough to look at that, and to join all. */
int cgroup_open(
	struct cgroup *c, const struct cgroup_place *p, const char *only, struct err *e) must_check;
/* Close descriptors. */
void cgroup_fini(struct cgroup *c);

/* Freeze or thaw all of it, and wait until that is done. Errors: UNSUPPORTED, without a freezer. */
int cgroup_freeze(const struct cgroup *c, bool frozen, struct err *e) must_check;
/* 1 frozen, 0 not, -1. */
int cgroup_frozen(const struct cgroup *c, struct err *e) must_check;
/* All processes in it and in those below it; *v is the caller's to free. */
int cgroup_pids(const struct cgroup *c, pid_t **v, size_t *n, struct err *e) must_check;
/* A signal to all of them. */
int cgroup_signal(const struct cgroup *c, int sig, struct err *e) must_check;
/* How often the memory limit made the kernel kill a process in it; 0 when unknown. */
uint64_t cgroup_oom_kills(const struct cgroup *c);
/* The number of times a process could not be made because of the limit on them. */
uint64_t cgroup_pids_refused(const struct cgroup *c);

/* Kill what is left in it and remove it everywhere (and systemd's unit), if it is there. */
int cgroup_destroy(const struct cgroup_place *p, struct err *e) must_check;

/* Is the host's hierarchy version 2 alone? */
bool cgroup_is_v2(void);

#endif
