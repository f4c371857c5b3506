/* What wheels must know of an image that ours starts from: its C library, and its interpreter. */
#ifndef BUILDER_PYTHON_BASE_H
#define BUILDER_PYTHON_BASE_H

#include "builder/lock.h"
#include "builder/rootfs.h"
#include "images/progress.h"
#include "images/store.h"

struct python_base { /* 0.0: it has none, or does not say */
	unsigned glibc_major, glibc_minor, musl_major, musl_minor;
	char python[16]; /* "3.11"; "": it has none, or does not say */
};

/* From the base image of a lock, which is pulled; of an image without a base nothing is known. */
int python_base_read(struct python_base *b, const struct manifest *m, const struct lock *l,
	const char *machine, struct store *s, struct err *e) must_check;
/* The same from a tree: glibc says its version in itself ("GNU C Library ... version 2.36."),
 * musl's is in apk's database. machine: "x86_64". The interpreter is what its name says when links
 * are followed, else the only pythonX.Y beside it, or in "lib" beside its folder. */
void python_base_find(struct python_base *b, const struct rootfs *r, const char *machine,
	const char *interpreter);

/* rootfs_read(), also of the tree of an image that was loaded, whose chunks nobody has looked up in
 * the pool. */
int python_read(const struct rootfs *r, const char *path, struct buf *b, struct err *e) must_check;

#endif
