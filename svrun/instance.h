/* Instances: the folders ROOT/instances/ID/ of containers.
 *
 *   config.json   the OCI bundle's configuration, as it was started
 *   options.json  the options it was started with, unless --rm (run-keep.h)
 *   hosts ...     small files that are bound over the image's
 *   upper/ work/  what the container wrote (overlayfs; never attached on the host)
 *   pid           once it has started: its first process, and the svrun that stays with it
 *   state.json    after its end, unless --rm: how it ended
 *   state.last    while it is started again: the same
 *
 * Beside them ROOT/mountpoints/ has the folders and files that every container needs to mount on.
 *
 * A running svrun holds an exclusive flock on the folder; the kernel drops it when svrun dies,
 * however it dies. instances_sweep() removes what such a death left. */
#ifndef SVRUN_INSTANCE_H
#define SVRUN_INSTANCE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "runtime/cgroup.h"

enum { INSTANCE_ID_MAX = 64, INSTANCE_CGROUP_SIZE = INSTANCE_ID_MAX + 48 };

struct instance {
	char id[INSTANCE_ID_MAX + 1];
	char *path; /* ROOT/instances/ID */
	int all;    /* ROOT/instances */
	int dir;    /* the same, locked */
	bool rm;
	bool again; /* it has run before */
};

/* Make and lock the folder. root, path: the store's folder. name: the id; NULL: a random one. With
 * rm the folder goes at the end. Errors: USAGE for a bad name, EXISTS. */
int instance_create(struct instance *i, int root, const char *path, const char *name, bool rm,
	struct err *e) must_check;

/* Lock one that has ended, to start it again with all that it wrote. Until instance_begin() it
 * stays as it is. Errors: NOT_FOUND, EXISTS (it runs, or somebody reads it). */
int instance_again(
	struct instance *i, int root, const char *path, const char *id, struct err *e) must_check;
/* From now on it counts as one that runs: a svrun that is killed behind this leaves what the next
 * one cleans up. */
int instance_begin(struct instance *i, struct err *e) must_check;

/* A detached overlay mount: the tree at `lower` with upper/ over it, and below it a tree of the
 * mount points that every container needs, so that upper/ has only what the container itself wrote.
 * nodev: devices are in /dev, which is another mount. more: a folder whose root/ lies between
 * `lower` and upper/, or -1.
 * Returns an fd. */
int instance_overlay(struct instance *i, const char *lower, int more, struct err *e) must_check;

/* Write a small file of the folder, whole or not at all, however we end; not synced: what a crash
 * of the host leaves of an instance is not whole anyway. */
int instance_write(
	struct instance *i, const char *name, const char *text, size_t n, struct err *e) must_check;

/* Path of the cgroup of an instance, for config.json. No instance of another store has it. */
int instance_cgroup(
	const struct instance *i, char out[INSTANCE_CGROUP_SIZE], struct err *e) must_check;

/* It runs: from now on instance_open() tells which process is its first one. */
int instance_started(struct instance *i, pid_t pid, struct err *e) must_check;

/* Where the cgroup of an instance of the folder `all` (ROOT/instances) is. */
int instance_place(int all, const char *id, struct cgroup_place *p, struct err *e) must_check;

/* The end: remove the folder (rm), or write state.json. Closes i. */
int instance_end(struct instance *i, int status, struct err *e) must_check;
/* Remove what was made, before anything ran; one that had run before is as it was then. Closes i.
 */
void instance_abort(struct instance *i);

/* Clean up after instances whose svrun was killed: their processes, cgroups, and folders or states.
 * Cheap when there is nothing to do: one readdir, one system call for each instance that ended. */
int instances_sweep(int root, struct err *e) must_check;

/* What is known of an instance. running: a svrun holds its folder. */
struct instance_info {
	char id[INSTANCE_ID_MAX + 1];
	char *image; /* as it was named; "" when it got no further */
	char *gpus;  /* "0,1", those that it has, or had */
	bool running;
	int status; /* exit status, when it is not running */
};
/* All of them, sorted by id. Free with instance_list_free(). */
int instance_list(int root, struct instance_info **v, size_t *n, struct err *e) must_check;
void instance_list_free(struct instance_info *v, size_t n);

/* One of them, seen from outside. While it is open, one that has ended is not removed; one that
 * runs may end at any time: pidfd tells. */
struct instance_view {
	char id[INSTANCE_ID_MAX + 1];
	int dir; /* its folder */
	bool running;
	pid_t pid;                  /* of its first process; 0: it has not started yet, or ended */
	int pidfd;                  /* or -1 */
	struct cgroup_place cgroup; /* when it runs */
};
/* NOT_FOUND hints at `svrun ps`. */
int instance_open(int root, const char *id, struct instance_view *v, struct err *e) must_check;
void instance_close(struct instance_view *v);

/* The svrun that stays with it, as a pidfd; -1: it has ended. A signal to it is passed on
 * (supervise.h). */
int instance_supervisor(const struct instance_view *v);

/* Remove an instance that has ended, with all it wrote. EXISTS: it runs. NOT_FOUND, USAGE (no id).
 */
int instance_remove(int root, const char *id, struct err *e) must_check;

/* The annotations of config.json that say which image it was, as it was named and by the digest of
 * its manifest. */
#define INSTANCE_IMAGE "org.svrun.image"
#define INSTANCE_MANIFEST "org.svrun.manifest"
/* The annotation that says which GPUs it was given. */
#define INSTANCE_GPUS "org.svrun.gpus"
/* The annotation of config.json that says that the folder goes with the container. */
#define INSTANCE_RM "org.svrun.rm"

#endif
