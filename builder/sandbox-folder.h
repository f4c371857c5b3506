/* The folder of one run, ROOT/steps/ID:
 *
 *   image         the tree's metadata image
 *   points/       folders and files to mount on, the lowest layer: the tree may lack them
 *   upper/ work/  overlayfs
 *   tmp/          the program's /tmp
 *   files/        a tmpfs, attached only until the container has its binds
 *
 * A flock on it says that its maker lives. */
#ifndef BUILDER_SANDBOX_FOLDER_H
#define BUILDER_SANDBOX_FOLDER_H

#include "builder/sandbox.h"
#include "runtime/cgroup.h"

struct sandbox_folder {
	char id[32];
	char *path; /* absolute */
	int all;    /* ROOT/steps */
	int dir;    /* the same, locked */
	bool has_files;
};

int sandbox_folder_make(struct sandbox_folder *f, struct store *s, struct err *e) must_check;
/* Remove it. NULL e: the error does not matter. */
int sandbox_folder_remove(struct sandbox_folder *f, struct err *e) must_check;

/* No other store's run has it. */
int sandbox_folder_cgroup(
	const struct sandbox_folder *f, struct cgroup_place *p, struct err *e) must_check;

/* A detached overlay mount: the tree below upper/. targets: absolute paths that will be mounted on,
 * "/x/" when it is a folder. Returns an fd. */
int sandbox_folder_overlay(struct sandbox_folder *f, struct tree *t, struct store *s,
	const struct strings *targets, struct err *e) must_check;

/* Put the files in memory, for the owner uid:gid: file i is then at files/I. Until
 * sandbox_folder_hide() they can be bound. */
int sandbox_folder_files(struct sandbox_folder *f, const struct sandbox_file *v, size_t n,
	uint32_t uid, uint32_t gid, struct err *e) must_check;
void sandbox_folder_hide(struct sandbox_folder *f);

#endif
