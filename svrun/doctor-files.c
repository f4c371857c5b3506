/* svrun doctor: file systems of the kernel that images and containers are mounted with. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/sys.h"
#include "svrun/doctor.h"
#include "svrun/output.h"

#ifndef TMPFS_MAGIC
#define TMPFS_MAGIC 0x01021994
#endif

/* fsopen() loads the module, where there is one. 0, or its errno: EPERM does not tell. */
static int try_type(const char *type)
{
	auto_fd int fs = sys_fsopen(type);

	return fs >= 0 ? 0 : errno;
}

static void lacks(struct doctor *d, const char *id, const char *type, const char *what,
	enum finding_level level, int sys)
{
	if (sys == EPERM)
		found(d, id, level, "run svrun as root, outside a container",
			"%s: cannot be tried: %s", what, strerror(sys));
	else
		found(d, id, level,
			arena_printf(&d->mem, "modprobe %s, or install a kernel that has it", type),
			"%s: not there", what);
}

static void check_type(struct doctor *d, const char *id, const char *type, const char *what)
{
	int sys = try_type(type);

	if (sys == 0)
		found(d, id, FINDING_OK, NULL, "%s: there", what);
	else
		lacks(d, id, type, what, FINDING_ERROR, sys);
}

/* Our own program is no EROFS image: a kernel that takes files says so (EINVAL), one that does not
 * wants a block device (ENOTBLK). */
static bool takes_files(void)
{
	auto_fd int fs = sys_fsopen("erofs");

	return fs >= 0 &&
	       sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", "/proc/self/exe", 0) == 0 &&
	       sys_fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) == 0 &&
	       sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 && errno != ENOTBLK;
}

static void check_loop(struct doctor *d, bool needed)
{
	auto_fd int control = sys_open("/dev/loop-control", O_RDWR, 0);

	if (control >= 0)
		found(d, "fs.loop", FINDING_OK, NULL, "loop devices: can be had%s",
			needed ? "" : " (not needed)");
	else
		found(d, "fs.loop", needed ? FINDING_ERROR : FINDING_NOTE,
			needed ? "modprobe loop, and see that /dev/loop-control is there" : NULL,
			"loop devices: /dev/loop-control: %s%s", strerror(errno),
			needed ? "" : " (not needed)");
}

static void check_erofs(struct doctor *d)
{
	int sys = try_type("erofs");
	bool files;

	if (sys != 0) {
		lacks(d, "fs.erofs", "erofs", "EROFS, with which images are mounted", FINDING_ERROR,
			sys);
		return;
	}
	files = takes_files();
	found(d, "fs.erofs", files ? FINDING_OK : FINDING_NOTE, NULL,
		files ? "EROFS: there, mounts files"
		      : "EROFS: there, without mounting of files (Linux 6.12): through loop "
			"devices");
	check_loop(d, !files);
}

static void check_fuse(struct doctor *d)
{
	auto_fd int fd = sys_open("/dev/fuse", O_RDWR, 0);

	if (fd >= 0)
		found(d, "fs.fuse", FINDING_OK, NULL, "FUSE: there");
	else
		found(d, "fs.fuse", FINDING_NOTE, NULL,
			"FUSE: /dev/fuse: %s; containers that mount with it cannot",
			strerror(errno));
}

static void check_shm(struct doctor *d)
{
	struct statvfs v;
	struct statfs fs;
	char size[32];

	if (statfs("/dev/shm", &fs) < 0 || statvfs("/dev/shm", &v) < 0 ||
		fs.f_type != TMPFS_MAGIC) {
		found(d, "fs.shm", FINDING_WARNING, "mount -t tmpfs tmpfs /dev/shm",
			"/dev/shm: no tmpfs");
		return;
	}
	output_size((uint64_t)v.f_blocks * v.f_frsize, size);
	if ((uint64_t)v.f_blocks * v.f_frsize < 64 << 20)
		found(d, "fs.shm", FINDING_WARNING, "mount -o remount,size=50% /dev/shm",
			"/dev/shm: only %s", size);
	else
		found(d, "fs.shm", FINDING_OK, NULL, "/dev/shm: %s (containers have their own)",
			size);
}

void doctor_files(struct doctor *d)
{
	check_type(d, "fs.overlay", "overlay", "overlayfs");
	check_erofs(d);
	check_fuse(d);
	check_type(d, "fs.tmpfs", "tmpfs", "tmpfs");
	check_shm(d);
}
