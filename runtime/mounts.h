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
};
int mounts_plan(
	const struct spec *s, struct arena *mem, struct mount_plan **v, struct err *e) must_check;

/* Where the container is being put together; all descriptors belong to the child's mount namespace.
 */
struct mounts_place {
	int root;   /* the new root, attached */
	int bundle; /* relative sources of binds start here */
	struct own_mounts own;
	const struct cgroup *cgroup; /* NULL: none */
	bool cgroup_ns;
	int proc; /* receives a descriptor of the procfs that was mounted; -1 before */
};
int mounts_make(
	struct mounts_place *p, const struct mount_plan *v, size_t n, struct err *e) must_check;

/* Bind the verified null device over files and an empty read-only tmpfs over folders: what is not
 * there needs no mask. */
int mounts_mask(int root, int null, const struct strings *paths, struct err *e) must_check;
/* Bind paths over themselves, read-only. */
int mounts_readonly(int root, const struct strings *paths, struct err *e) must_check;

#endif
