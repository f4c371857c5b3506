#include "images/mount-fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/sys.h"

/* A loop device, which goes away with its last user: the mount, once there is one. */
struct loop {
	char path[32];
	int fd;
};

static int loop_bind(struct loop *l, int control, int file, struct err *e)
{
	struct loop_config c = {.fd = (uint32_t)file,
		.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};

	/* Another process may take the device that the kernel named, so ask again. */
	for (int tries = 0; tries < 64; tries++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE);

		if (n < 0)
			break;
		snprintf(l->path, sizeof(l->path), "/dev/loop%d", n);
		l->fd = sys_open(l->path, O_RDONLY, 0);
		if (l->fd < 0)
			return err_sys(e, "open %s", l->path);
		if (ioctl(l->fd, LOOP_CONFIGURE, &c) == 0)
			return 0;
		sys_close_ref(&l->fd);
		if (errno != EBUSY)
			break;
	}
	return err_sys(e, "set up a loop device");
}

static int loop_open(struct loop *l, const char *path, struct err *e)
{
	auto_fd int control = sys_open("/dev/loop-control", O_RDWR, 0);
	auto_fd int file = sys_open(path, O_RDONLY, 0);

	l->fd = -1;
	if (file < 0)
		return err_sys(e, "open %s", path);
	if (control < 0) {
		err_set(e, ERR_UNSUPPORTED, "open /dev/loop-control: %s", strerror(errno));
		return err_hint(
			e, "Linux before 6.12 mounts images through loop devices: modprobe loop");
	}
	return loop_bind(l, control, file, e);
}

/* What the kernel has to say about a failed step: "e message" lines on the context. */
static int refuse(int fs, const char *image, int sys, struct err *e)
{
	char text[512] = "";
	ssize_t n = sys_read(fs, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (sys == EINVAL || sys == EUCLEAN)
		return err_set(e, ERR_CORRUPT, "%s: the kernel refuses it: %s%s%.400s", image,
			strerror(sys), n > 2 ? ": " : "", n > 2 ? text + 2 : "");
	errno = sys;
	return err_sys(e, "mount %s", image);
}

/* The pool's pages are cached under the mount's own. Option "directio" (Linux 6.15) would avoid
 * that, but it reads small files from disk two to three times slower, and what a build has just
 * written not from the cache at all.
 *
 * 0, or -1 with *sys set and no error: the caller decides whether there is another way. */
static int create(int fs, const char *image, const char *pool, int *sys)
{
	if (sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", image, 0) == 0 &&
		sys_fsconfig(fs, FSCONFIG_SET_STRING, "device", pool, 0) == 0 &&
		sys_fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) == 0 &&
		sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		return 0;
	*sys = errno;
	return -1;
}

static int open_fs(struct err *e)
{
	int fs = sys_fsopen("erofs");

	if (fs < 0 && errno == ENODEV) {
		err_set(e, ERR_UNSUPPORTED, "this kernel has no EROFS");
		return err_hint(e, "modprobe erofs (Linux 5.16 or newer)");
	}
	if (fs < 0) {
		err_sys(e, "mount an image");
		if (errno == EPERM)
			err_hint(e, "mounting images needs root");
	}
	return fs;
}

static int by_loop(const char *image, const char *pool, struct err *e)
{
	struct loop a = {.fd = -1}, b = {.fd = -1};
	int mount = -1, sys;

	if (loop_open(&a, image, e) == 0 && loop_open(&b, pool, e) == 0) {
		auto_fd int fs = open_fs(e);

		if (fs >= 0 && create(fs, a.path, b.path, &sys) < 0)
			refuse(fs, image, sys, e);
		else if (fs >= 0 && (mount = sys_fsmount(fs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
								     MOUNT_ATTR_NODEV)) < 0)
			err_sys(e, "mount %s", image);
	}
	sys_close_ref(&a.fd);
	sys_close_ref(&b.fd);
	return mount;
}

int mount_fs(const char *image, const char *pool, enum mount_how how, struct err *e)
{
	int mount, sys;

	if (how == MOUNT_BY_LOOP)
		return by_loop(image, pool, e);

	auto_fd int fs = open_fs(e);

	if (fs < 0)
		return -1;
	if (create(fs, image, pool, &sys) < 0) {
		/* Before 6.12 a file is no source: ENOTBLK. What a corrupt image gives, EINVAL
		 * among others, the second way gives again. */
		if (sys == ENOTBLK || sys == EINVAL)
			return by_loop(image, pool, e);
		return refuse(fs, image, sys, e);
	}
	mount = sys_fsmount(fs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mount < 0 ? err_sys(e, "mount %s", image) : mount;
}
