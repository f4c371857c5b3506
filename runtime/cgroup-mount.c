/* The container's view of its cgroups. */
#include "runtime/cgroup-file.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/fs-mount.h"

/* A new mount, which shows what the calling process's cgroup namespace holds. */
static int mount_fresh(const char *hierarchy, uint64_t attrs, struct err *e)
{
	static const char *const systemd[] = {"none", "name=systemd"}; /* no controller's */
	const char *data[CGROUP_HIERARCHIES];
	char text[64], *at = text;
	size_t n = 0;

	if (!*hierarchy)
		return fs_mount("cgroup2", "cgroup2", NULL, 0, attrs, e);
	if (str_eq(hierarchy, "systemd"))
		return fs_mount("cgroup", "cgroup", systemd, 2, attrs, e);
	snprintf(text, sizeof(text), "%s", hierarchy);
	while (n < CGROUP_HIERARCHIES && (data[n] = strsep(&at, ",")))
		n++;
	return fs_mount("cgroup", "cgroup", data, n, attrs, e);
}

/* A mount of the folder itself shows what a new mount in the cgroup's own namespace would, for half
 * the price, and serves without such a namespace too, where it is read-only: the rest of the host's
 * cgroups is not to be seen, and none is to be written (CVE-2023-25809). By its path, and not by a
 * descriptor: those of the host's mount namespace cannot be bound in the container's. */
static int mount_folder(const char *hierarchy, const char *folder, struct err *e)
{
	char path[CGROUP_FULL_PATH];

	cgroup_full_path(path, hierarchy, folder);
	return fs_bind(AT_FDCWD, path, false, e);
}

/* Of all below it too: one call is as good as one for each. */
static int set_attrs(int mnt, uint64_t attrs, struct err *e)
{
	uint64_t clear = attrs & MOUNT_ATTR__ATIME ? MOUNT_ATTR__ATIME : 0;

	return fs_attr(mnt, true, attrs, clear, 0, e);
}

/* In version 1's folder `top`, and programs look for "cpu" where "cpu,cpuacct" is. */
static int attach(int mnt, int top, const char *hierarchy, struct err *e)
{
	char text[64], *at = text, *part;

	if (sys_mkdirat(top, hierarchy, 0755) < 0)
		return err_sys(e, "make %s", hierarchy);
	/* By its name: nobody but us has been in this tmpfs. */
	if (sys_move_mount(mnt, "", top, hierarchy, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "attach %s", hierarchy);
	snprintf(text, sizeof(text), "%s", hierarchy);
	while (strchr(hierarchy, ',') && (part = strsep(&at, ",")))
		if (sys_symlinkat(hierarchy, top, part) < 0)
			return err_sys(e, "link %s", part);
	return 0;
}

int cgroup_mount(const struct cgroup *c, int at, uint64_t attrs, bool own_ns, struct err *e)
{
	static const char *const small[] = {"mode=0755", "size=64k"};
	/* Without a cgroup of its own, or where systemd has made it since: the one it is in. */
	bool other = !c || c->ndirs == 0, v2 = c ? c->v2 : cgroup_is_v2();
	uint64_t writable = attrs & ~(uint64_t)MOUNT_ATTR_RDONLY;
	struct cgroup_lines own;
	auto_fd int top = -1;

	if (other && cgroup_lines_read(&own, 0, v2, e) < 0)
		return -1;
	if (!own_ns)
		attrs |= MOUNT_ATTR_RDONLY;
	/* Version 1: a small tmpfs with one folder for each hierarchy that the container is in. */
	if (!v2) {
		top = fs_mount("tmpfs", "tmpfs", small, 2, writable, e);
		if (top < 0 || fs_attach(top, at, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < (other ? own.n : c->ndirs); i++) {
		const char *name = other ? own.v[i].hierarchy : c->dirs[i].hierarchy;
		auto_fd int mnt =
			other && own_ns
				? mount_fresh(name, attrs, e)
				: mount_folder(name, other ? own.v[i].path : c->place.path, e);

		if (mnt < 0)
			return -1;
		if (v2)
			return set_attrs(mnt, attrs, e) < 0 ? -1 : fs_attach(mnt, at, e);
		if (attach(mnt, top, name, e) < 0)
			return -1;
	}
	return v2 ? err_set(e, ERR_UNSUPPORTED, "this host has no cgroups to show")
		  : set_attrs(top, attrs, e);
}
