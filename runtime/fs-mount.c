#include "runtime/fs-mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"

/* The kernel's own words are in the context's log: "e overlay: No changes allowed in ...". */
static int fail(int fs, const char *type, const char *what, struct err *e)
{
	int saved = errno;
	char log[256];
	ssize_t n = sys_read(fs, log, sizeof(log) - 1);

	errno = saved;
	err_sys(e, "%s %s", what, type);
	if (n > 2) {
		log[n] = '\0';
		log[strcspn(log, "\n")] = '\0';
		err_hint(e, "the kernel says: %s", log + 2);
	}
	return -1;
}

enum { VALUE_MAX = 255 }; /* the kernel's, of fsconfig(2) */

/* The folders below an overlay, too many for one value: one by one, which Linux can since 6.8. */
static int add_layers(int fs, const char *layers)
{
	char layer[VALUE_MAX + 1];
	size_t n;

	for (const char *p = layers; *p; p += n + (p[n] == ':')) {
		n = strcspn(p, ":");
		if (n == 0 || n > VALUE_MAX) {
			errno = E2BIG;
			return -1;
		}
		snprintf(layer, sizeof(layer), "%.*s", (int)n, p);
		if (sys_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir+", layer, 0) < 0)
			return -1;
	}
	return 0;
}

static int configure(int fs, const char *type, const char *option, struct err *e)
{
	const char *value = strchr(option, '=');
	char key[64], what[128];
	int rc, n = snprintf(key, sizeof(key), "%.*s", (int)strcspn(option, "="), option);

	if (value && n >= (int)sizeof(key))
		return err_set(e, ERR_USAGE, "mount option '%.100s'", option);
	if (!value)
		rc = sys_fsconfig(fs, FSCONFIG_SET_FLAG, option, NULL, 0);
	else if (strlen(++value) <= VALUE_MAX)
		rc = sys_fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0);
	else if (str_eq(key, "lowerdir") && !strchr(value, '\\'))
		rc = add_layers(fs, value);
	else /* a backslash is for a colon in a name, which cannot be told apart here */
		return err_set(e, ERR_UNSUPPORTED,
			"option '%.64s...' of %s: its value is longer than %d bytes", option, type,
			VALUE_MAX);
	if (rc == 0)
		return 0;
	snprintf(what, sizeof(what), "option '%.64s' of", option);
	return fail(fs, type, what, e);
}

int fs_mount(const char *type, const char *source, const char *const *data, size_t ndata,
	uint64_t attrs, struct err *e)
{
	auto_fd int fs = sys_fsopen(type);
	int mnt;

	if (fs < 0)
		return err_sys(e, "file system %s", type);
	if (source && sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", source, 0) < 0)
		return fail(fs, type, "source of", e);
	for (size_t i = 0; i < ndata; i++)
		if (configure(fs, type, data[i], e) < 0)
			return -1;
	if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(fs, type, "make", e);
	mnt = sys_fsmount(fs, (unsigned)attrs);
	return mnt < 0 ? fail(fs, type, "mount", e) : mnt;
}

int fs_bind(int dirfd, const char *path, bool all, struct err *e)
{
	unsigned flags = OPEN_TREE_CLONE | (*path ? 0 : AT_EMPTY_PATH) | (all ? AT_RECURSIVE : 0);
	int fd = sys_open_tree(dirfd, path, flags);

	return fd < 0 ? err_sys(e, "%s%sbind", path, *path ? ": " : "") : fd;
}

static int set_attr(int mountfd, bool all, struct mount_attr *a)
{
	return sys_mount_setattr(mountfd, "", AT_EMPTY_PATH | (all ? AT_RECURSIVE : 0), a);
}

int fs_attr(
	int mountfd, bool all, uint64_t set, uint64_t clear, uint64_t propagation, struct err *e)
{
	struct mount_attr a = {.attr_set = set, .attr_clr = clear, .propagation = propagation};

	if ((set || clear || propagation) && set_attr(mountfd, all, &a) < 0)
		return err_sys(e, "change mount attributes");
	return 0;
}

int fs_idmap(int mountfd, bool all, int userns, struct err *e)
{
	struct mount_attr a = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)userns};

	if (set_attr(mountfd, all, &a) == 0)
		return 0;
	err_sys(e, "id-map");
	return err_hint(e, "not every file system, nor every kernel, can show other owners");
}

int fs_reconfigure(int at, const char *const *data, size_t ndata, struct err *e)
{
	auto_fd int fs = (int)syscall(SYS_fspick, at, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);

	if (fs < 0)
		return err_sys(e, "remount");
	for (size_t i = 0; i < ndata; i++)
		if (configure(fs, "the mount", data[i], e) < 0)
			return -1;
	if (sys_fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		return fail(fs, "the mount", "change", e);
	return 0;
}

int fs_attach(int mountfd, int targetfd, struct err *e)
{
	if (sys_move_mount(mountfd, "", targetfd, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, "attach mount");
	return 0;
}
