/* What svrun-oci knows of its containers: ROOT/ID/, 0700.
 *
 *	state.json    id, bundle, rootfs, created, owner, cgroup place, pid and its start time
 *	config.json   the bundle's, as it was when it was created, without seccomp rules
 *	filter        what those rules were compiled to
 *	door          where the created process waits (door.h)
 *
 * Whoever changes a container holds an exclusive flock on its folder. state.json is written before
 * anything else is made, so that `delete --force` finds what a killed runtime left; pid 0 in it
 *means that creating did not get to the end. ROOT/.seccomp keeps compiled filters.
 *
 * Source: runtime-spec runtime.md "State". */
#ifndef SVRUN_STATE_H
#define SVRUN_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/cgroup.h"

enum { STATE_ID_MAX = 1024 };
#define STATE_DOOR "door"
#define STATE_FILTERS ".seccomp" /* in ROOT; no container's id */

enum state_status { STATE_CREATING, STATE_CREATED, STATE_RUNNING, STATE_PAUSED, STATE_STOPPED };

struct state {
	int root, dir; /* own: ROOT, ROOT/ID */
	bool locked;   /* dir is, by us */
	char *id, *bundle, *rootfs;
	pid_t pid;        /* of the first process; 0: none */
	uint64_t started; /* its start time: field 22 of /proc/PID/stat, so that a reused pid is
			     not taken for it */
	struct cgroup_place cgroup;
	int64_t created;                  /* seconds since 1970 */
	uint32_t created_nanosecs, owner; /* uid */
	json_t *annotations;              /* the config's, NULL: none */
	char *console;                    /* path of the console socket, or NULL */
};

/* ROOT unless told otherwise: /run/svrun-oci, without root $XDG_RUNTIME_DIR/svrun-oci. to free() */
char *state_default_root(struct err *e);

/* Make ROOT (0700) when it is missing, and open it. Errors: DENIED when others could write to it.
 */
int state_root(const char *path, struct err *e) must_check;

/* ids: letters, digits and _ + - . , not "." or ".." (runc's rule), nor STATE_FILTERS. USAGE
 * otherwise. */
int state_check_id(const char *id, struct err *e) must_check;

/* Make the folder of a new container, locked; the caller fills bundle, rootfs, cgroup ... and calls
 * state_write(). EXISTS: "ID: container with given ID already
 * exists". */
int state_create(struct state *s, int root, const char *id, struct err *e) must_check;
/* Read an existing one. lock: wait for the lock. NOT_FOUND: "ID: container does not exist" (texts
 * that engines look for). One without a readable state.json opens with pid 0. */
int state_open(struct state *s, int root, const char *id, bool lock, struct err *e) must_check;
void state_close(struct state *s);
/* Let others change it while we wait for its end; and wait for the lock again: 0 when its folder
 * was removed meanwhile (there may be a new one of that name), 1 when it is ours. */
void state_unlock(struct state *s);
int state_lock(struct state *s, struct err *e) must_check;

int state_write(const struct state *s, struct err *e) must_check;
/* What state_write() writes; and read it into a struct that has none of it. CORRUPT.
 * (state-json.c) */
void state_text(const struct state *s, struct buf *text);
int state_parse(struct state *s, const char *text, size_t n, struct err *e) must_check;
/* Keep the config, without the rules of its seccomp filter, which nobody needs again: they are most
 * of it, and start, exec and delete would read them each time. The filter, compiled, is kept beside
 * it. */
int state_keep_config(const struct state *s, const struct spec *spec, struct err *e) must_check;
int state_keep_filter(
	const struct state *s, const struct seccomp_prog *p, struct err *e) must_check;
/* Read them back. */
int state_config(const struct state *s, struct spec *spec, struct err *e) must_check;
int state_filter(const struct state *s, struct seccomp_prog *p, struct err *e) must_check;
/* Remove the folder with all in it. */
int state_remove(const struct state *s, struct err *e) must_check;

/* Fill pid and started with those of a living process. */
int state_set_process(struct state *s, pid_t pid, struct err *e) must_check;
/* A descriptor of the first process, verified to be the one; -1 with errno ESRCH when it has ended.
 */
int state_pidfd(const struct state *s);
/* What it is doing now; never waits for the lock. One whose creator died is stopped. -1 on error.
 */
int state_status(const struct state *s, enum state_status *status, struct err *e) must_check;
/* Is its cgroup frozen: 1, 0, -1. With thaw it is not any more. One that is removed meanwhile is
 * not.
 */
int state_frozen(const struct state *s, bool thaw, struct err *e) must_check;
/* It was started: who is there does not wait at the door any more. */
int state_close_door(const struct state *s, struct err *e) must_check;
const char *state_status_name(enum state_status status);

/* The state as hooks and `state` show it: ociVersion, id, status, pid, bundle, annotations; with
 * more: also what runc shows (rootfs, created, owner). To json_decref(). */
json_t *state_json(const struct state *s, enum state_status status, bool more);

/* Ids of all containers, sorted; to free() with the array. */
int state_list(int root, char ***ids, size_t *n, struct err *e) must_check;

#endif
