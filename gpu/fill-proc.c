#include "gpu/fill-proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/mount.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

#define PARAMS "/proc/driver/nvidia/params"
#define GPUS "/proc/driver/nvidia/gpus"
#define MODIFY "ModifyDeviceFiles: "

enum { PARAMS_MAX = 1 << 16, GPUS_MAX_DIRS = 1024 };

/* No link: an image that has no /proc there must not choose what is covered. -1 with ENOENT and the
 * like: nothing to cover. */
static int open_plain(int root, const char *path, int flags)
{
	return sys_openat2(root, path, flags, 0,
		RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
}

static bool nothing_there(int number)
{
	return number == ENOENT || number == ENOTDIR || number == ELOOP || number == EACCES;
}

static int cover(int mnt, int at, const char *name, struct err *e)
{
	if (sys_move_mount(mnt, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, "cover %s", name);
	return 0;
}

int fill_proc_params(struct root_files *f, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(PARAMS_MAX);
	auto_fd int at = open_plain(f->root, PARAMS, O_PATH | O_NOFOLLOW), fd = -1, mnt = -1;
	struct stat st;
	char *value;

	if (at < 0)
		return nothing_there(errno) ? 0 : err_sys(e, "open %s", PARAMS);
	if (sys_fstat(at, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	fd = open_plain(f->root, PARAMS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, "open %s", PARAMS);
	if (file_read_fd(fd, PARAMS, &b, e) < 0)
		return -1;
	value = b.len ? strstr(b.data, MODIFY) : NULL;
	if (!value || value[strlen(MODIFY)] != '1')
		return 0;
	value[strlen(MODIFY)] = '0';
	mnt = root_file_mount(f, b.data, b.len, e);
	return mnt < 0 ? -1 : cover(mnt, at, PARAMS, e);
}

/* ---- gpus ---- */

/* "0000:65:00.0" and "00000000:65:00.0" are one address. */
static bool same_bus(const char *a, const char *b)
{
	char *ta, *tb;
	unsigned long x = strtoul(a, &ta, 16), y = strtoul(b, &tb, 16);

	return x == y && *ta == ':' && strcasecmp(ta, tb) == 0;
}

static bool is_granted(const char *name, const char *const *buses, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (same_bus(name, buses[i]))
			return true;
	return false;
}

static int new_tmpfs(struct err *e)
{
	auto_fd int fs = sys_fsopen("tmpfs");
	int mnt;

	if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0555", 0) < 0 ||
		sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, "make a tmpfs");
	mnt = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return mnt < 0 ? err_sys(e, "mount a tmpfs") : mnt;
}

/* One GPU's folder, as it is below the cover, on an empty one in it. */
static int show(int below, int above, const char *name, struct err *e)
{
	struct mount_attr a = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					   MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
		.propagation = MS_PRIVATE};
	auto_fd int from = sys_openat(below, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	auto_fd int mnt = -1, to = -1;

	if (from < 0 || sys_mkdirat(above, name, 0555) < 0)
		return err_sys(e, "%s/%s", GPUS, name);
	mnt = sys_open_tree(from, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
	to = sys_openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (mnt < 0 || to < 0 || sys_mount_setattr(mnt, "", AT_EMPTY_PATH, &a) < 0)
		return err_sys(e, "bind %s/%s", GPUS, name);
	return cover(mnt, to, name, e);
}

static int show_granted(
	DIR *d, int below, int above, const char *const *buses, size_t n, struct err *e)
{
	struct mount_attr a = {.attr_set = MOUNT_ATTR_RDONLY};
	const struct dirent *entry;

	for (size_t seen = 0; seen < GPUS_MAX_DIRS && (entry = readdir(d)); seen++)
		if (is_granted(entry->d_name, buses, n) && show(below, above, entry->d_name, e) < 0)
			return -1;
	if (sys_mount_setattr(above, "", AT_EMPTY_PATH, &a) < 0)
		return err_sys(e, "make %s read-only", GPUS);
	return 0;
}

int fill_proc_gpus(struct root_files *f, const char *const *buses, size_t n, struct err *e)
{
	auto_fd int below = open_plain(f->root, GPUS, O_PATH | O_DIRECTORY), above = -1;
	int fd;
	DIR *d;
	int rc;

	if (below < 0)
		return nothing_there(errno) ? 0 : err_sys(e, "open %s", GPUS);
	fd = sys_openat(below, ".", O_RDONLY | O_DIRECTORY, 0);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		sys_close_ref(&fd);
		return err_sys(e, "read %s", GPUS);
	}
	above = new_tmpfs(e);
	rc = above < 0 ? -1 : cover(above, below, GPUS, e);
	if (rc == 0)
		rc = show_granted(d, below, above, buses, n, e);
	closedir(d);
	return rc;
}
