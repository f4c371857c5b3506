#include "runtime/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/fs-mount.h"

#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif

int rootfs_open(const char *bundle, const char *path, struct err *e)
{
	auto_fd int dir = sys_open(bundle, O_PATH | O_DIRECTORY, 0);

	if (dir < 0)
		return err_sys(e, "bundle %s", bundle);
	auto_fd int fd = sys_openat(dir, path, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return err_sys(e, "root %s", path);
	return fs_bind(fd, "", true, e);
}

int rootfs_attach(int root, const struct spec *s, struct err *e)
{
	/* Slave, not private: what the host unmounts later must not stay alive in here, and binds
	 * can still choose their propagation. */
	if (sys_mount(NULL, "/", NULL,
		    MS_REC | (s->propagation == MS_PRIVATE ? MS_PRIVATE : MS_SLAVE), NULL) < 0)
		return err_sys(e, "make the host's mounts slaves");
	auto_fd int top = sys_open("/", O_PATH | O_DIRECTORY, 0);
	if (top < 0)
		return err_sys(e, "open /");
	if (fs_attach(root, top, e) < 0)
		return err_ctx(e, "root");
	return fs_attr(root, false, 0, 0, MS_PRIVATE, e);
}

int rootfs_pivot(int root, const struct spec *s, bool no_pivot, struct err *e)
{
	auto_fd int old = sys_open("/", O_PATH | O_DIRECTORY, 0);

	if (old < 0)
		return err_sys(e, "open /");
	if (no_pivot)
		return err_set(e, ERR_UNSUPPORTED, "--no-pivot");
	if (s->root_readonly && fs_attr(root, false, MOUNT_ATTR_RDONLY, 0, 0, e) < 0)
		return err_ctx(e, "read-only root");
	/* pivot_root(".", ".") puts the old root on top of the new one, where it is taken away: no
	 * folder for it is needed in the image. */
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(e, "pivot_root");
	if (fchdir(old) < 0 || sys_umount2(".", MNT_DETACH) < 0)
		return err_sys(e, "detach the host's tree");
	if (chdir("/") < 0)
		return err_sys(e, "chdir /");
	return 0;
}

int rootfs_chdir(const char *cwd, struct err *e)
{
	char now[PATH_MAX];

	auto_fd int root = sys_open("/", O_PATH | O_DIRECTORY, 0);
	if (root < 0)
		return err_sys(e, "open /");
	auto_fd int fd = sys_open_in_root(root, cwd, O_PATH | O_DIRECTORY, 0);
	if (fd < 0 || fchdir(fd) < 0 || !getcwd(now, sizeof(now)))
		return err_sys(e, "working directory %s", cwd);
	if (now[0] != '/') /* the kernel says "(unreachable)/..." outside */
		return err_set(e, ERR_DENIED, "working directory %s is outside of the root", cwd);
	return 0;
}
