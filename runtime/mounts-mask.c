/* Paths of the config that are hidden, or read-only. */
#include "runtime/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>

#include "base/sys.h"
#include "runtime/fs-mount.h"

/* What covers a masked path: an empty folder, or the null device. Read-only, or a chmod in the
 * container would reach the host's /dev/null; a device on a read-only mount can be written to all
 * the same. */
static int new_cover(bool folder, int null, struct err *e)
{
	static const char *const data[] = {"size=0", "nr_inodes=1", "mode=0555"};
	uint64_t attrs = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

	if (folder)
		return fs_mount("tmpfs", "tmpfs", data, 3, attrs | MOUNT_ATTR_NODEV, e);
	auto_fd int fd = fs_bind(null, "", false, e);
	return fd < 0 || fs_attr(fd, false, attrs, 0, MS_PRIVATE, e) < 0 ? -1 : steal_fd(&fd);
}

/* The first is new, and attached; the others are copies of it, since a mount can be attached only
 * once. *first: it, or -1. */
static int cover(int *first, bool folder, int null, struct err *e)
{
	if (*first >= 0)
		return fs_bind(*first, "", false, e);
	*first = new_cover(folder, null, e);
	return *first < 0 ? -1 : fcntl(*first, F_DUPFD_CLOEXEC, 0);
}

/* Open a path of the config's lists; *fd is -1 when it is not there. */
static int open_listed(int root, const char *path, int *fd, struct err *e)
{
	*fd = sys_open_in_root(root, path, O_PATH, 0);
	return *fd < 0 && errno != ENOENT && errno != ENOTDIR ? err_sys(e, "open") : 0;
}

static int mask_one(int covers[2], int at, int null, struct err *e)
{
	struct stat st;

	if (sys_fstat(at, &st) < 0)
		return err_sys(e, "stat");
	bool folder = S_ISDIR(st.st_mode);
	auto_fd int mnt = cover(&covers[folder], folder, null, e);
	return mnt < 0 ? -1 : fs_attach(mnt, at, e);
}

int mounts_mask(int root, int null, const struct strings *paths, struct err *e)
{
	int covers[2] = {-1, -1}; /* of files, of folders */
	int rc = 0;

	for (size_t i = 0; i < paths->n && rc == 0; i++) {
		auto_fd int at = -1;

		rc = open_listed(root, paths->v[i], &at, e);
		if (rc == 0 && at >= 0)
			rc = mask_one(covers, at, null, e);
		if (rc < 0)
			err_ctx(e, "mask %s", paths->v[i]);
	}
	sys_close_ref(&covers[0]);
	sys_close_ref(&covers[1]);
	return rc;
}

int mounts_readonly(int root, const struct strings *paths, struct err *e)
{
	for (size_t i = 0; i < paths->n; i++) {
		auto_fd int at = -1;

		if (open_listed(root, paths->v[i], &at, e) < 0)
			return err_ctx(e, "read-only path %s", paths->v[i]);
		if (at < 0)
			continue;
		auto_fd int mnt = fs_bind(at, "", true, e);
		if (mnt < 0 || fs_attr(mnt, true, MOUNT_ATTR_RDONLY, 0, 0, e) < 0 ||
			fs_attach(mnt, at, e) < 0)
			return err_ctx(e, "read-only path %s", paths->v[i]);
	}
	return 0;
}
