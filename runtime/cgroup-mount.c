/* The container's view of its cgroups. */
#include "runtime/cgroup-file.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/fs-mount.h"

struct view {
	struct cgroup_lines own; /* the cgroups to show */
	bool v2, fresh;
	uint64_t attrs;
};

/* A new mount, which shows what the calling process's cgroup namespace holds. */
static int mount_fresh(const char *hierarchy, bool v2, uint64_t attrs, struct err *e)
{
	static const char *const systemd[] = {"none", "name=systemd"}; /* no controller's */
	const char *data[CGROUP_HIERARCHIES];
	char text[64];
	size_t n = 0;

	if (v2)
		return fs_mount("cgroup2", "cgroup2", NULL, 0, attrs, e);
	if (str_eq(hierarchy, "systemd"))
		return fs_mount("cgroup", "cgroup", systemd, 2, attrs, e);
	snprintf(text, sizeof(text), "%s", hierarchy);
	for (char *p = text, *part; (part = strsep(&p, ",")) && n < CGROUP_HIERARCHIES;)
		data[n++] = part;
	return fs_mount("cgroup", "cgroup", data, n, attrs, e);
}

/* A mount of the folder itself shows what a new mount in the cgroup's own namespace would, for half
 * the price, and serves without such a namespace too, where it is read-only: the rest of the host's
 * cgroups is not to be seen, and none is to be written (CVE-2023-25809). By its path, and not by a
 * descriptor: those of the host's mount namespace cannot be bound in the container's. */
static int mount_one(const struct view *v, const struct cgroup_line *own, struct err *e)
{
	char path[CGROUP_FULL_PATH];

	if (v->fresh)
		return mount_fresh(own->hierarchy, v->v2, v->attrs, e);
	cgroup_full_path(path, own->hierarchy, own->path);
	return fs_bind(AT_FDCWD, path, false, e);
}

/* Of all below it too: one call is as good as one for each. */
static int set_attrs(int mnt, uint64_t attrs, struct err *e)
{
	uint64_t clear = attrs & MOUNT_ATTR__ATIME ? MOUNT_ATTR__ATIME : 0;

	return fs_attr(mnt, true, attrs, clear, 0, e);
}

/* Programs look for "cpu" where "cpu,cpuacct" is. */
static int link_controllers(int top, const char *hierarchy, struct err *e)
{
	char text[64];

	if (!strchr(hierarchy, ','))
		return 0;
	snprintf(text, sizeof(text), "%s", hierarchy);
	for (char *p = text, *part; (part = strsep(&p, ","));)
		if (sys_symlinkat(hierarchy, top, part) < 0)
			return err_sys(e, "link %s", part);
	return 0;
}

/* Version 1: a small tmpfs with one folder for each hierarchy that the container is in. */
static int mount_v1(const struct view *v, int at, struct err *e)
{
	static const char *const data[] = {"mode=0755", "size=64k"};
	uint64_t writable = v->attrs & ~(uint64_t)MOUNT_ATTR_RDONLY;

	auto_fd int top = fs_mount("tmpfs", "tmpfs", data, 2, writable, e);
	if (top < 0 || fs_attach(top, at, e) < 0)
		return -1;
	for (size_t i = 0; i < v->own.n; i++) {
		const char *name = v->own.v[i].hierarchy;

		if (sys_mkdirat(top, name, 0755) < 0)
			return err_sys(e, "make %s", name);
		auto_fd int mnt = mount_one(v, &v->own.v[i], e);
		if (mnt < 0)
			return -1;
		/* By its name: nobody but us has been in this tmpfs. */
		if (sys_move_mount(mnt, "", top, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return err_sys(e, "attach %s", name);
		if (link_controllers(top, name, e) < 0)
			return -1;
	}
	return set_attrs(top, v->attrs, e);
}

int cgroup_mount(const struct cgroup *c, int at, uint64_t attrs, bool own_ns, struct err *e)
{
	struct view v = {.v2 = c ? c->v2 : cgroup_is_v2(),
		.attrs = attrs | (own_ns ? 0 : MOUNT_ATTR_RDONLY),
		.fresh = own_ns && !(c && c->ndirs)};

	/* Without a cgroup of its own, or where systemd has made it since: the one it is in. */
	if (!c || c->ndirs == 0) {
		if (cgroup_lines_read(&v.own, 0, v.v2, e) < 0)
			return -1;
	} else {
		v.own.n = c->ndirs;
		for (size_t i = 0; i < c->ndirs; i++) {
			snprintf(v.own.v[i].hierarchy, sizeof(v.own.v[i].hierarchy), "%s",
				c->dirs[i].hierarchy);
			snprintf(v.own.v[i].path, sizeof(v.own.v[i].path), "%s", c->place.path);
		}
	}
	if (!v.v2)
		return mount_v1(&v, at, e);
	if (v.own.n == 0)
		return err_set(e, ERR_UNSUPPORTED, "this host has no cgroups to show");
	auto_fd int mnt = mount_one(&v, &v.own.v[0], e);
	return mnt < 0 || set_attrs(mnt, v.attrs, e) < 0 ? -1 : fs_attach(mnt, at, e);
}
