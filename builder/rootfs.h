/* Files of the image that no package ships: made here, in the tree and the pool.
 *
 * Paths are relative to the root, without a leading slash; links in their folder part are followed,
 * as a running program would. */
#ifndef BUILDER_ROOTFS_H
#define BUILDER_ROOTFS_H

#include "builder/manifest.h"
#include "images/pool.h"
#include "images/tree.h"

struct rootfs {
	struct tree *tree;
	struct pool *pool;
	int64_t epoch;   /* mtime of what is made */
	uint32_t origin; /* of what is made */
};

struct owner {
	uint32_t mode, uid, gid;
};

/* Make or replace. rootfs_dir() leaves an existing folder as it is. rootfs_link() leaves anything
 * that is no link and not an empty folder. */
int rootfs_file(const struct rootfs *r, const char *path, const void *data, size_t n,
	struct owner o, struct err *e) must_check;
int rootfs_dir(const struct rootfs *r, const char *path, struct owner o, struct err *e) must_check;
int rootfs_link(
	const struct rootfs *r, const char *path, const char *target, struct err *e) must_check;

/* The node at path itself: links in the folder part followed, the last component not. NULL: none.
 */
struct node *rootfs_at(struct tree *t, const char *path);

/* Does path lead to something (links followed)? */
bool rootfs_has(const struct rootfs *r, const char *path);
/* Append the content of the file that path leads to: 1, 0 when there is none, -1. CORRUPT beyond
 * b->max. */
int rootfs_read(const struct rootfs *r, const char *path, struct buf *b, struct err *e) must_check;
/* Names in the folder that path leads to, sorted; none when there is no such folder. */
struct strings rootfs_list(const struct rootfs *r, const char *path, struct arena *a);
/* MD5 in hex of a file's content. */
int rootfs_md5(
	const struct rootfs *r, const struct node *file, char hex[33], struct err *e) must_check;

#endif
