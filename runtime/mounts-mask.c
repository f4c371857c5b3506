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

struct masks {
	int null;
	int covers[2]; /* attached ones, of files and of folders; -1: none yet */
};

static int mask_one(int at, struct masks *m, struct err *e)
{
	struct stat st;

	if (sys_fstat(at, &st) < 0)
		return err_sys(e, "stat");
	/* A mount can be attached only once: the others are copies of the first. */
	int *first = &m->covers[S_ISDIR(st.st_mode)];
	auto_fd int mnt = *first < 0 ? new_cover(S_ISDIR(st.st_mode), m->null, e)
				     : fs_bind(*first, "", false, e);
	if (mnt < 0 || fs_attach(mnt, at, e) < 0)
		return -1;
	if (*first < 0)
		*first = steal_fd(&mnt);
	return 0;
}

static int read_only_one(int at, struct masks *unused, struct err *e)
{
	auto_fd int mnt = fs_bind(at, "", true, e);

	(void)unused;
	if (mnt < 0 || fs_attr(mnt, true, MOUNT_ATTR_RDONLY, 0, 0, e) < 0)
		return -1;
	return fs_attach(mnt, at, e);
}

/* Those paths that are there. */
static int each_path(int root, const struct strings *paths, const char *what,
	int (*fn)(int at, struct masks *m, struct err *e), struct masks *m, struct err *e)
{
	for (size_t i = 0; i < paths->n; i++) {
		auto_fd int at = sys_open_in_root(root, paths->v[i], O_PATH, 0);

		if (at < 0 && (errno == ENOENT || errno == ENOTDIR))
			continue;
		if ((at < 0 ? err_sys(e, "open") : fn(at, m, e)) < 0)
			return err_ctx(e, "%s %s", what, paths->v[i]);
	}
	return 0;
}

int mounts_mask(int root, int null, const struct strings *paths, struct err *e)
{
	struct masks m = {null, {-1, -1}};
	int rc = each_path(root, paths, "mask", mask_one, &m, e);

	sys_close_ref(&m.covers[0]);
	sys_close_ref(&m.covers[1]);
	return rc;
}

int mounts_readonly(int root, const struct strings *paths, struct err *e)
{
	return each_path(root, paths, "read-only path", read_only_one, NULL, e);
}
