#include "runtime/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/fs-mount.h"

#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif
#ifndef UMOUNT_NOFOLLOW
#define UMOUNT_NOFOLLOW 8
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
	/* Slaves, unless private is asked for: what the host unmounts later must not stay alive in
	 * here. Never shared, whatever the config says, or what we mount now would show on the
	 * host; what is to be shared with it has been copied before (mounts_open()). */
	uint64_t how = s->propagation == MS_PRIVATE && s->propagation_all ? MS_PRIVATE : MS_SLAVE;

	if (!spec_new_ns(s, NS_MOUNT))
		return err_set(
			e, ERR_UNSUPPORTED, "a root can be made in a new mount namespace only");
	if (sys_mount(NULL, "/", NULL, MS_REC | how, NULL) < 0)
		return err_sys(e, "cut off from the host's mounts");
	/* The copy is a peer of the host's mounts, too. */
	if (fs_attr(root, true, 0, 0, how, e) < 0)
		return err_ctx(e, "root");
	auto_fd int top = sys_open("/", O_PATH | O_DIRECTORY, 0);
	if (top < 0)
		return err_sys(e, "open /");
	return fs_attach(root, top, e) < 0 ? err_ctx(e, "root") : 0;
}

/* "\040" and the like, which mountinfo has for spaces. */
static void unescape(char *s)
{
	for (; (s = strchr(s, '\\')) && s[1] && s[2] && s[3]; s++) {
		*s = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
		memmove(s + 1, s + 4, strlen(s + 4) + 1);
	}
}

/* Take a mount of the host's tree away. One that a user namespace has locked there stays: then a
 * procfs or sysfs is covered, at least. */
static int hide(const char *path, struct err *e)
{
	struct statfs fs;

	if (str_eq(path, "/") || sys_umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0 ||
		statfs(path, &fs) < 0 ||
		(fs.f_type != PROC_SUPER_MAGIC && fs.f_type != SYSFS_MAGIC))
		return 0;
	return sys_mount("tmpfs", path, "tmpfs", MS_RDONLY, "size=0") < 0
		       ? err_sys(e, "cover the host's %s", path)
		       : 0;
}

/* The root lies over the host's already, so that no path leads back. What is mounted in the host's
 * tree goes: a user namespace may mount a procfs only where it can see one that nothing covers, and
 * must not find the host's. */
static int enter_by_chroot(int root, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(16 << 20);

	if (file_read(AT_FDCWD, "/proc/self/mountinfo", &text, e) < 0)
		return -1;
	/* Names are looked up in the host's tree, which is still where our / is. */
	for (char *rest = text.data, *line; (line = strsep(&rest, "\n")) != NULL;) {
		auto_free char *path = NULL;

		if (sscanf(line, "%*s %*s %*s %*s %ms", &path) != 1) /* ID PARENT DEV ROOT PATH */
			continue;
		unescape(path);
		if (hide(path, e) < 0)
			return -1;
	}
	if (fchdir(root) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return err_sys(e, "chroot");
	return 0;
}

/* pivot_root(".", ".") puts the old root on top of the new one, where it is taken away: no folder
 * for it is needed in the image. */
static int enter_by_pivot(int root, struct err *e)
{
	auto_fd int old = sys_open("/", O_PATH | O_DIRECTORY, 0);

	if (old < 0)
		return err_sys(e, "open /");
	if (fchdir(root) < 0)
		return err_sys(e, "enter the root");
	if (syscall(SYS_pivot_root, ".", ".") < 0) {
		err_sys(e, "pivot_root");
		return e && e->sys == EINVAL ? err_hint(e, "on an initramfs it needs --no-pivot")
					     : -1;
	}
	if (fchdir(old) < 0 || sys_umount2(".", MNT_DETACH) < 0)
		return err_sys(e, "detach the host's tree");
	return chdir("/") < 0 ? err_sys(e, "chdir /") : 0;
}

int rootfs_pivot(int root, const struct spec *s, bool no_pivot, struct err *e)
{
	uint64_t how = s->propagation;

	if (s->root_readonly && fs_attr(root, false, MOUNT_ATTR_RDONLY, 0, 0, e) < 0)
		return err_ctx(e, "read-only root");
	if ((no_pivot ? enter_by_chroot(root, e) : enter_by_pivot(root, e)) < 0)
		return -1;
	/* Last: mounts made in a shared tree become shared themselves. Private is what they are
	 * unless their own options have made them something else, which they stay. */
	if (how && how != MS_PRIVATE && fs_attr(root, s->propagation_all, 0, 0, how, e) < 0)
		return err_ctx(e, "rootfsPropagation");
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
