/* The mounts of a config.json, in its order. */
#ifndef RUNTIME_MOUNTS_H
#define RUNTIME_MOUNTS_H

#include "runtime/cgroup.h"
#include "runtime/mount-options.h"
#include "runtime/mount-point.h"
#include "runtime/spec.h"

/* One mount, its options sorted, before there is a container to take back. */
struct mount_plan {
	const struct spec_mount *m;
	struct mount_options o;
	const char *destination; /* absolute, without "//", "." and ".." */
	const char *label;       /* SELinux context, or NULL */
	bool sealed;             /* a tmpfs that is read-only, but not before it is filled */
	int fd;                  /* of mounts_open(): a detached copy of a bind's source, or -1 */
};
int mounts_plan(
	const struct spec *s, struct arena *mem, struct mount_plan **v, struct err *e) must_check;

/* In the parent, before the child is cloned: copies of the sources that a child in a user namespace
 * could not reach, or not id-map, and of those that stay peers of the host's mounts ("shared" below
 * a shared root). Nothing without the right to. */
int mounts_open(struct mount_plan *v, const struct spec *s, int bundle, struct err *e) must_check;
void mounts_close(struct mount_plan *v, size_t n);

/* Where a container is put together; descriptors are of the child's mount namespace. */
struct mounts_place {
	const struct spec *spec;
	int root;   /* the new root, attached */
	int bundle; /* relative sources of binds start here */
	struct own_mounts own;
	const struct cgroup *cgroup; /* NULL: none */
	int proc; /* receives a descriptor of the procfs that was mounted; -1 before */
	int sealed[OWN_MOUNTS_MAX]; /* what mounts_seal() makes read-only */
	unsigned nsealed;
};
/* A bind receives what the host mounts below its source ("slave") and shows the host nothing,
 * unless its options say otherwise. */
int mounts_make(
	struct mounts_place *p, const struct mount_plan *v, size_t n, struct err *e) must_check;

/* When all that belongs in them is made: a tmpfs whose options say "ro" becomes read-only. */
int mounts_seal(struct mounts_place *p, struct err *e) must_check;

/* Cover the files among them by the (verified) null device, folders by an empty tmpfs. */
int mounts_mask(int root, int null, const struct strings *paths, struct err *e) must_check;
/* Bind paths over themselves, read-only. */
int mounts_readonly(int root, const struct strings *paths, struct err *e) must_check;

#endif
