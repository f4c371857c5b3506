/* What a container gets beside its image so that it can use devices: CDI's container edits, and
 * what the toolkit's hooks would have done, done by us. Made by nvidia.h, amd.h and cdi.h; applied
 * in two halves:
 *
 *	gpu_edits_apply(): to config.json, before the runtime reads it
 *	gpu_edits_fill():  in the container's root, by the runtime's child: mounts are made, nothing
 *	                   of the image has run (container_options.fill)
 *
 * Strings live in the arena or in what made them. Source: CDI 1.1 SPEC.md "OCI Edits"; gpu.md 2. */
#ifndef GPU_EDITS_H
#define GPU_EDITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"
#include "gpu/host.h"

struct edit_node {
	const char *path;      /* in the container */
	const char *host_path; /* where missing members are taken from by lstat; NULL: path */
	char type;             /* 'c', 'b', 'u', 'p'; 0: as on the host */
	bool has_number, has_mode, has_uid, has_gid;
	uint32_t major, minor, mode, uid, gid;
	const char *
		access; /* "rw": of the cgroup's rule, letters of "rwm"; "": none ("none" in CDI) */
};
struct edit_mount {
	const char *source, *destination, *type; /* type NULL: a bind */
	const char *const *options;
	size_t noptions;
};
struct edit_hook {
	const char *stage; /* "createContainer" */
	const char *path;
	struct strings args, env;
	uint32_t timeout; /* seconds, 0: none */
};
struct edit_link {
	const char *path, *target; /* made at path, what was there replaced unless it is a folder */
};
struct edit_rdt {
	bool given, monitor;
	const char *clos_id, *l3, *memory; /* NULL: not said */
	struct strings schemata;
};
struct edit_env {
	const char *name, *value;
};
struct edit_netdev {
	const char *host, *name;
};
struct ld_entry; /* gpu/ldcache.h */

/* Growing arrays; add with the functions below. */
struct gpu_edits {
	struct arena mem;
	struct edit_node *nodes;
	struct edit_mount *mounts;
	struct edit_hook *hooks; /* those that are run as programs: allowed by name */
	struct edit_link *links;
	struct edit_netdev *netdevs;
	struct edit_env *env;
	uint32_t *gids;
	const char **ld_dirs;        /* folders in the container that the loader searches first */
	const struct ld_entry *libs; /* what is in those that need not be looked through */
	size_t nlibs;
	size_t nnodes, nmounts, nhooks, nlinks, nnetdevs, nenv, ngids, nld_dirs;
	struct edit_rdt rdt;
	/* Native counterparts of hooks that need more than a link: */
	const char *compat_driver; /* host driver version for forward compatibility; NULL: no */
	int compat;                /* 1: use it whatever the note says, -1: never, 0: by the rule */
	bool keep_device_files;    /* /proc/driver/nvidia/params says ModifyDeviceFiles: 0 */
	const char *visible_profile; /* update-application-profile's JSON text; NULL: none */
	bool gpus_hidden;            /* /proc/driver/nvidia/gpus shows only those in gpu_buses */
	const char **gpu_buses;
	size_t ngpu_buses;
	/* What the driver's files need of the image: "2.34"; NULL: nothing known. Checked by fill.
	 */
	const char *glibc_needed;
	bool no_mknod; /* devices of a GPU are granted: CAP_MKNOD is dropped */
	/* Held so that the driver view does not go before it is mounted (view.h): fill() finds it
	 * mounted, and lets go of it for all processes that have it. */
	bool has_view_lock;
	int view_lock;
	bool disks; /* the host's disks may be among the nodes: an engine's storage (refused.h) */
};

void gpu_edits_init(struct gpu_edits *x);
void gpu_edits_fini(struct gpu_edits *x);
bool gpu_edits_empty(const struct gpu_edits *x);

/* Each replaces what has the same key before it, as CDI's merging does: a node and a mount by
 * destination, a variable by name, a group once (0 never), a link by path. What is added is copied
 * by value; strings are borrowed unless they are the arena's. */
void gpu_edits_node(struct gpu_edits *x, const struct edit_node *n);
void gpu_edits_mount(struct gpu_edits *x, const struct edit_mount *m);
void gpu_edits_hook(struct gpu_edits *x, const struct edit_hook *h);
void gpu_edits_link(struct gpu_edits *x, const char *path, const char *target);
void gpu_edits_env(struct gpu_edits *x, const char *name, const char *value);
void gpu_edits_gid(struct gpu_edits *x, uint32_t gid);
void gpu_edits_ld_dir(struct gpu_edits *x, const char *dir);
void gpu_edits_netdev(struct gpu_edits *x, const char *host, const char *name);

/* Change a config.json: linux.devices (a node of the same path replaced) with
 * linux.resources.devices rules for exactly these numbers, mounts (same destination replaced; then
 * sorted, stably, by depth of destination; those of the config keep their order among each other),
 * process.env, process.user.additionalGids, hooks, linux.intelRdt, linux.netDevices; CAP_MKNOD out
 * of all sets with no_mknod. Nodes and mounts whose host side is missing or no device are errors
 * that name it: they may have gone between check and start; a node that is another device there
 * than the edit says is one too. A node with a number and without host_path need not be there. Host
 * paths are this system's; a node without one is looked for in h->dev (h NULL: in /dev). Never
 * given: what is the host itself (refused.h: its memory, consoles, ..., and its disks unless x says
 * so). Errors: NOT_FOUND, DENIED, CORRUPT (the config). */
int gpu_edits_apply(const struct gpu_edits *x, const struct gpu_host *h, json_t *config,
	struct err *e) must_check;

/* In the container's root, by descriptor; every name resolves inside it (RESOLVE_IN_ROOT), links
 * that the image put in the way lead nowhere else. Links are made, the loader's cache learns of
 * ld_dirs (ldcache.h) and of compat (compat.h), params and gpus of /proc/driver/nvidia are covered.
 * Runs in the runtime's child, before the image's first instruction, in a mount namespace of its
 * own. Where the root's file system cannot be written to, files are bound over from a tmpfs, and
 * links that have no place are left out with a warning. own: ids of the mounts that are the
 * container's own (container_options.fill); nothing is written to another, which is a volume; nown
 * 0: the root's alone. To be called for every start of an instance that ever had edits, with empty
 * ones too: what an earlier start made and this one does not is taken back. Errors: UNSUPPORTED
 * (glibc is too old for the driver: names both versions), DENIED, SYSTEM. */
int gpu_edits_fill(const struct gpu_edits *x, int root, const uint64_t *own, size_t nown,
	struct err *e) must_check;

/* For an image that is made of what a container changed (upper, which stays as it is): copies of
 * the files that gpu_edits_fill() changes, without what it put there, into clean, an empty folder.
 * *names (static; none where no GPU has been): those files, below both folders. One that is not in
 * clean was ours alone. had_gpus: its last start had some. Errors: CORRUPT (the container made one
 * of them too long), SYSTEM. */
int gpu_edits_left(
	int upper, int clean, bool had_gpus, struct strings *names, struct err *e) must_check;
/* Its two halves, for a layer that an image's containers get over it, so that nothing is left to be
 * written at their starts. files: what lasts, with the check of glibc. new: what is gone with every
 * container, links below /dev, and /proc. */
int gpu_edits_fill_files(const struct gpu_edits *x, int root, struct err *e) must_check;
int gpu_edits_fill_new(const struct gpu_edits *x, int root, const uint64_t *own, size_t nown,
	struct err *e) must_check;

#endif
