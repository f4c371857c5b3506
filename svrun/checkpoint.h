/* Saving a running container into image files, and restoring one, through criu.
 *
 *	IMAGES/NAME.img          criu's
 *	IMAGES/descriptors.json  what the first process's 0-2 were: ["pipe:[7]", ...], with
 *	                         "file[18:4]" (mount, inode) for the host's null device
 *	WORK/dump.log, restore.log
 *
 * Image files decide what criu makes of a process, and criu believes them: they may come only from
 * who may run programs as root. What can be checked is: a restored container's processes are looked
 * at after criu has made them and before they run. All of them must be in the container's cgroup
 * (so that its device rules hold) and namespaces, may have no capability that the config does not
 * grant and no user or group that its user cannot become (what "exec --user" started as another one
 * is refused), must have the filter and no_new_privs where it says so, and see no mount but those of
 * the kernel's own file systems, the root and the config's binds, with all masked and read-only paths
 * as they should be; or they are killed. Sources of mounts come from the config only.
 *
 * Source: criu(8), runc's checkpoint and restore. */
#ifndef SVRUN_CHECKPOINT_H
#define SVRUN_CHECKPOINT_H

#include <limits.h>

#include "runtime/cgroup.h"
#include "runtime/spec.h"
#include "svrun/criu.h"
#include "svrun/state.h"

/* criu's criu_cg_mode */
enum checkpoint_cgroups {
	CHECKPOINT_CGROUPS_IGNORE = 0,
	CHECKPOINT_CGROUPS_SOFT = 3,
	CHECKPOINT_CGROUPS_FULL = 4,
	CHECKPOINT_CGROUPS_STRICT = 5,
};

struct checkpoint_options {
	const char *criu;         /* the program; NULL: looked up in our PATH */
	const char *images;       /* folder, made when missing */
	const char *work;         /* folder for logs, made when missing; NULL: images */
	const char *parent;       /* of an earlier pre-dump, relative to images; NULL: none */
	const char *page_address; /* of a page server; NULL: none */
	uint16_t page_port;
	const char *lsm_profile, *lsm_mount_context; /* instead of what was saved; NULL: that */
	enum checkpoint_cgroups cgroups;
	int status_fd; /* gets a NUL byte when lazy pages can be fetched; -1: none */
	bool leave_running, pre_dump;
	bool tcp_established, ext_unix_sk, shell_job, lazy_pages, file_locks, auto_dedup;
	bool empty_net; /* the network namespace's contents are not saved */
};

/* Save container s, which runs or is paused. Without leave_running and pre_dump it has ended
 * afterwards. Errors: SYSTEM quotes criu's log. */
int checkpoint_save(const struct checkpoint_options *o, const struct spec *spec,
	const struct state *s, struct err *e) must_check;

struct restore {
	const struct checkpoint_options *o;
	const struct spec *spec;
	const char *id, *bundle, *rootfs; /* absolute */
	const char *mount_point;          /* an empty folder, absolute: the root while criu works */
	struct cgroup_place place;
	int stdio[3]; /* what becomes its 0-2, where these were pipes */
	/* Results: */
	pid_t pid;    /* of its first process, our child */
	int terminal; /* own: the master of its terminal, or -1 */
};

/* Make the cgroup, and restore what IMAGES has, running. prestart and createRuntime hooks run when
 * its namespaces are there. On failure nothing is left. Errors: CORRUPT, DENIED for images that
 * are not of this config; SYSTEM quotes criu's log. */
int checkpoint_restore(struct restore *r, struct err *e) must_check;

/* ---- for restore.c and restored.c ---- */

/* The two folders: first among the descriptors that criu gets. */
struct checkpoint_folders {
	int images, work;
};
int checkpoint_folders(
	const struct checkpoint_options *o, struct checkpoint_folders *f, struct err *e) must_check;
void checkpoint_folders_close(struct checkpoint_folders *f);
/* What both requests have. */
void checkpoint_common(const struct checkpoint_options *o, const char *log, struct buf *b);
/* Is it a bind mount? */
bool checkpoint_is_bind(const struct spec_mount *m);
/* Our side of a note that both may get. */
int checkpoint_note(
	const struct checkpoint_options *o, const struct criu_note *n, struct err *e) must_check;
/* The path of what is open. */
bool checkpoint_path_of(int fd, char out[PATH_MAX]);
#define CHECKPOINT_DESCRIPTORS "descriptors.json"
#define CHECKPOINT_CGROUP "cgroup:" /* and a hierarchy's name: such a mount in images */
/* How a namespace that is not saved is called in images, "extRootNetNS", or NULL for kinds that are
 * joined by path. */
const char *checkpoint_ns_key(enum ns_kind k);

/* See that all processes of a restored container are what its config says; none of them has run
 * yet. On failure they are killed. (restored.c) */
int restored_check(const struct spec *s, const char *rootfs, const char *bundle,
	const struct cgroup *c, pid_t first, struct err *e) must_check;

#endif
