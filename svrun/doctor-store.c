/* svrun doctor: the site's configuration and its store; what is tried there is removed again. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sys.h"
#include "images/config.h"
#include "svrun/doctor.h"
#include "svrun/output.h"

/* ---- the file system ---- */

/* f_type of statfs(2); network ones are slow at best, and some cannot hold an overlay's upper. */
static const struct {
	long type;
	const char *name;
	bool network;
} types[] = {
	{0xef53, "ext4", false},
	{0x58465342, "xfs", false},
	{0x9123683e, "btrfs", false},
	{0x01021994, "tmpfs", false},
	{0x2fc12fc1, "zfs", false},
	{0xf2f52010, "f2fs", false},
	{0xca451a4e, "bcachefs", false},
	{0x794c7630, "overlay", false},
	{0x6969, "nfs", true},
	{0xff534d42, "cifs", true},
	{0x00c36400, "ceph", true},
	{0x65735546, "fuse", true},
	{0x0bd00bd0, "lustre", true},
};

static void check_type(struct doctor *d, int dir, const char *path)
{
	const char *name = "of a type unknown here";
	bool network = false;
	struct statfs fs;

	if (fstatfs(dir, &fs) < 0)
		return;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == (long)fs.f_type) {
			name = types[i].name;
			network = types[i].network;
		}
	if (network)
		found(d, "store.filesystem", FINDING_WARNING,
			"put the store on a local disk (SVRUN_ROOT, or root of the site "
			"configuration)",
			"%s is on %s, over which containers are slow or cannot be mounted", path,
			name);
	else
		found(d, "store.filesystem", FINDING_OK, NULL, "%s: %s", path, name);
}

static void check_space(struct doctor *d, int dir, const char *path)
{
	struct statvfs v;
	char size[32];
	uint64_t left;

	if (fstatvfs(dir, &v) < 0)
		return;
	left = (uint64_t)v.f_bavail * v.f_frsize;
	output_size(left, size);
	if (left < 100 << 20)
		found(d, "store.space", FINDING_ERROR, "svrun image gc, or a larger disk",
			"%s: %s are left", path, size);
	else if (left < (uint64_t)5 << 30)
		found(d, "store.space", FINDING_WARNING, "svrun image gc, or a larger disk",
			"%s: %s are left, less than a large image needs", path, size);
	else
		found(d, "store.space", FINDING_OK, NULL, "%s: %s are left", path, size);
	if (v.f_files > 0 && v.f_favail < 10000)
		found(d, "store.inodes", FINDING_WARNING,
			"remove files, or make the file system with more inodes",
			"%s: %llu files can still be made", path, (unsigned long long)v.f_favail);
}

/* ---- what it can ---- */

static void check_unnamed(struct doctor *d, int dir)
{
	auto_fd int a = sys_openat(dir, ".", O_TMPFILE | O_RDWR, 0600);
	auto_fd int b = a < 0 ? -1 : sys_openat(dir, ".", O_TMPFILE | O_RDWR, 0600);
	char block[4096] = "x";

	if (a < 0 || b < 0) {
		found(d, "store.tmpfile", FINDING_NOTE, NULL,
			"unnamed files (O_TMPFILE): %s; named ones are used", strerror(errno));
		return;
	}
	found(d, "store.tmpfile", FINDING_OK, NULL, "unnamed files (O_TMPFILE): there");
	if (sys_write_all(a, block, sizeof(block)) == 0 && ioctl(b, FICLONE, a) == 0)
		found(d, "store.reflink", FINDING_OK, NULL, "copies by reference: there");
	else
		found(d, "store.reflink", FINDING_NOTE, NULL,
			"copies by reference: not there (%s); a container that changes a large "
			"file of its "
			"image copies it",
			strerror(errno));
}

/* An overlay with its upper folder in the store, as every container has it; attached nowhere. */
static int make_overlay(const char *top)
{
	static const char *const keys[] = {"lowerdir", "upperdir", "workdir"};
	auto_fd int fs = sys_fsopen("overlay");

	if (fs < 0)
		return errno;
	for (size_t i = 0; i < 3; i++) {
		auto_free char *path = mem_printf("%s/%s", top, keys[i]);

		if (sys_mkdirat(AT_FDCWD, path, 0700) < 0 ||
			sys_fsconfig(fs, FSCONFIG_SET_STRING, keys[i], path, 0) < 0)
			return errno;
	}
	return sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? errno : 0;
}

static void check_overlay(struct doctor *d, int dir, const char *path)
{
	auto_free char *name = mem_printf("doctor-%d", (int)getpid());
	auto_free char *top = mem_printf("%s/%s", path, name);
	int sys;

	if (sys_mkdirat(dir, name, 0700) < 0) {
		found(d, "store.write", FINDING_ERROR, "run svrun as who the store belongs to",
			"%s: no folder can be made in it: %s", path, strerror(errno));
		return;
	}
	sys = make_overlay(top);
	if (sys == 0)
		found(d, "store.overlay", FINDING_OK, NULL, "containers can be mounted from it");
	else
		found(d, "store.overlay", FINDING_ERROR,
			"put the store on ext4, xfs or btrfs (SVRUN_ROOT, or root of the site "
			"configuration)",
			"containers cannot be mounted from it: overlayfs: %s", strerror(sys));
	if (sys_remove_tree(dir, name) < 0)
		found(d, "store.write", FINDING_WARNING, "remove it by hand", "remove %s: %s", top,
			strerror(errno));
}

void doctor_store(struct doctor *d)
{
	struct config c;
	struct err e = {0};

	if (config_load(&c, &e) < 0) {
		found_err(d, "config", FINDING_ERROR, &e, "correct it (docs/config.md)");
		return;
	}
	auto_fd int dir = sys_open(c.root, O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0 && errno == ENOENT) {
		found(d, "store", FINDING_NOTE, NULL, "%s: no store yet; the first pull makes it",
			c.root);
	} else if (dir < 0) {
		found(d, "store", FINDING_ERROR, "run svrun as who the store belongs to", "%s: %s",
			c.root, strerror(errno));
	} else {
		check_type(d, dir, c.root);
		check_space(d, dir, c.root);
		check_unnamed(d, dir);
		check_overlay(d, dir, c.root);
	}
	config_fini(&c);
}
