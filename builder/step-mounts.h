/* Folders that steps keep from build to build: ROOT/cache/mounts/ID, each for one step at a time
 * under the lock ROOT/cache/mount-locks/ID. A lock file with something in it is a mark: a step of a
 * build with secrets writes to the folder, and nobody has looked yet what. Whoever finds the mark
 * without its owner removes the folder. */
#ifndef BUILDER_STEP_MOUNTS_H
#define BUILDER_STEP_MOUNTS_H

#include "images/store.h"

/* The folder is there, and ours until *lock is closed: 1. 0: it is another's, and nobody waits. */
int step_mount_open(
	struct store *s, const char *id, bool wait, int *lock, struct err *e) must_check;
/* Set or take away the mark of a folder that is ours. */
int step_mount_mark(int lock, bool set, struct err *e) must_check;
int step_mount_remove(struct store *s, const char *id, struct err *e) must_check;
/* "cache/mounts/ID" below the store, to free(). */
char *step_mount_folder(const char *id);

/* Remove marked folders that are nobody's. Cheap when there are none. */
int step_mounts_sweep(struct store *s, struct err *e) must_check;

#endif
