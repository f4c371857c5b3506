/* Where archives go: a file, which gets its name when it is whole; a pipe; or a folder of files,
 * which gets its name when it is whole, too. One thread at a time.
 *
 * Tars are deterministic: owner 0, mtime 0, plain ustar headers but for what those cannot say. */
#ifndef IMAGES_OUTLET_H
#define IMAGES_OUTLET_H

#include "images/tree.h"

struct outlet {
	const char *name;   /* for errors */
	int fd;             /* of the tar, or of the open file in the folder */
	bool tar, borrowed; /* borrowed: fd is the caller's */
	int folder;         /* tar false: the folder, by its temporary name */
	int parent;         /* where the name will stand, -1: a pipe or device */
	char *leaf, tmp[64];
	uint64_t at;   /* bytes of the tar */
	uint64_t left; /* of the open member */
	unsigned char *buf;
	size_t n; /* bytes in buf */
};

/* A tar at path, or to fd when path is NULL (borrowed; name is what errors call it). Something that
 * is no regular file (a FIFO, /dev/stdout) is written into as it is. */
int outlet_open(
	struct outlet *o, const char *path, int fd, const char *name, struct err *e) must_check;
/* A folder, which must be missing or empty: EXISTS. */
int outlet_open_folder(struct outlet *o, const char *path, struct err *e) must_check;

/* A folder, as a member of its own, or made. Parents first. */
int outlet_dir(struct outlet *o, const char *name, struct err *e) must_check;
/* A file of size bytes, which outlet_write() then brings, in pieces, all of them. */
int outlet_file(struct outlet *o, const char *name, uint64_t size, struct err *e) must_check;
/* A tree's node as a member of the tar. Of a file with data, these follow as above. */
int outlet_node(struct outlet *o, const struct node *n, struct err *e) must_check;
int outlet_write(struct outlet *o, const void *p, size_t n, struct err *e) must_check;
/* The member is complete. */
int outlet_end(struct outlet *o, struct err *e) must_check;

/* End the tar, sync, give it its name, replacing a file of that name. */
int outlet_commit(struct outlet *o, struct err *e) must_check;
void outlet_close(struct outlet *o); /* without a commit, nothing stays */

#endif
