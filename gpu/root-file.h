/* Files of a container's root, put there before anything of its image runs. The tree is hostile:
 * every name resolves inside the root (RESOLVE_IN_ROOT), the last one is never followed. Only the
 * root's own mount is written to: any other is a volume, which is somebody else's; what lies in
 * one, or on a read-only root, gets a file of a tmpfs bound over it. */
#ifndef GPU_ROOT_FILE_H
#define GPU_ROOT_FILE_H

#include <stdint.h>

#include "base/mem.h"

struct root_files {
	int root;
	uint64_t mount;      /* the root's */
	const uint64_t *own; /* other mounts that are the container's, by id */
	size_t nown;
	int tmpfs;      /* made when it is needed first, -1: not yet */
	unsigned names; /* given to files of it */
};
/* root and own are borrowed. */
int root_files_open(
	struct root_files *f, int root, const uint64_t *own, size_t nown, struct err *e) must_check;
void root_files_close(struct root_files *f);
#define auto_root_files __attribute__((cleanup(root_files_close)))

/* Append a regular file to b. 1, 0: there is none, or it is no file; -1: CORRUPT, it is longer than
 * b may be. */
int root_file_read(int root, const char *path, struct buf *b, struct err *e) must_check;
/* A regular file, open for reading; last links followed inside the root with `follow`. -1 with
 * ENOENT: there is none. Devices, pipes and files of procfs and the like are never opened. */
int root_file_open(int root, const char *path, int follow);

/* The whole of a file: written beside and renamed, its folders made; the same text is left as it
 * is. 1: it is there; 0: it has no place (a folder, or nothing to bind on). */
int root_file_put(
	struct root_files *f, const char *path, const void *p, size_t n, struct err *e) must_check;
/* 1: it is gone. 0: it cannot be removed here. */
int root_file_remove(struct root_files *f, const char *path, struct err *e) must_check;
/* A link; what was there is replaced unless it is a folder. 1, 0 as above. */
int root_link(struct root_files *f, const char *path, const char *target, struct err *e) must_check;
/* Remove the link at path if it leads to target. */
int root_link_remove(
	struct root_files *f, const char *path, const char *target, struct err *e) must_check;

/* A file of the tmpfs with that text as a detached, read-only mount, for where nothing can be
 * written at all (/proc). */
int root_file_mount(struct root_files *f, const void *p, size_t n, struct err *e) must_check;

#endif
