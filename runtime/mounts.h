/* The mounts of a config.json, in its order. */
#ifndef RUNTIME_MOUNTS_H
#define RUNTIME_MOUNTS_H

#include "runtime/cgroup.h"
#include "runtime/mount-options.h"
#include "runtime/mount-point.h"
#include "runtime/spec.h"

/* One mount, its options sorted. Made before the container exists, so that a bad option costs
 * nothing. */
struct mount_plan {
	const struct spec_mount *m;
	struct mount_options o;
	const char *destination; /* absolute, without "//", "." and ".." */
	const char *label;       /* SELinux context, or NULL */
	bool sealed;             /* a tmpfs that is read-only, but not before it is filled */
	int fd; /* a detached copy of a bind's source, made by mounts_open(), or -1 */
};
int mounts_plan(
	const struct spec *s, struct arena *mem, struct mount_plan **v, struct err *e) must_check;

/* In the parent, before the child is cloned: copies of the sources that a child in a user namespace
 * could not reach, those to be id-mapped, which needs rights that the child lacks, and those that
 * stay peers of the host's mounts ("shared" below a shared root). `bundle`: where relative sources
 * start. Nothing for other mounts, and nothing without the right to. */
int mounts_open(struct mount_plan *v, const struct spec *s, int bundle, struct err *e) must_check;
void mounts_close(struct mount_plan *v, size_t n);

/* Where the container is being put together; all descriptors belong to the child's mount namespace.
 */
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
/* Every mount is made detached, configured, and then attached to an open place. What is mounted in
 * the container is not seen by the host: a bind receives what the host mounts below its source
 * ("slave"), unless its options say otherwise. */
int mounts_make(
	struct mounts_place *p, const struct mount_plan *v, size_t n, struct err *e) must_check;

/* When mount points, devices and all else that belongs in them is made: a tmpfs whose options say
 * "ro" becomes read-only. */
int mounts_seal(struct mounts_place *p, struct err *e) must_check;

/* Bind the verified null device over files and an empty read-only tmpfs over folders: what is not
 * there needs no mask. */
int mounts_mask(int root, int null, const struct strings *paths, struct err *e) must_check;
/* Bind paths over themselves, read-only. */
int mounts_readonly(int root, const struct strings *paths, struct err *e) must_check;

#endif
