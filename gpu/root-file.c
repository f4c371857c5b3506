#include "gpu/root-file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/stat.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

/* Beside the name that it gets: nobody else is here yet. */
#define TEMPORARY ".svrun-gpu.tmp"

static int mount_id(int fd, uint64_t *id, struct err *e)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0)
		return err_sys(e, "look at the container's root");
	*id = x.stx_mnt_id;
	return 0;
}

int root_files_open(struct root_files *f, int root, const uint64_t *own, size_t nown, struct err *e)
{
	*f = (struct root_files){.root = root, .own = own, .nown = nown, .tmpfs = -1};
	return mount_id(root, &f->mount, e);
}

/* The tmpfs goes, what was bound from it stays. */
void root_files_close(struct root_files *f)
{
	char path[64];

	if (f->tmpfs < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->tmpfs);
	if (sys_umount2(path, MNT_DETACH) < 0)
		warn("a small file system stays on the container's root: %s", strerror(errno));
	sys_close_ref(&f->tmpfs);
}

/* ---- reading ---- */

/* Files of these are regular ones by what they say, and some never end, block, or are the host's
 * alone to read: a link of the image from its cache to /proc/kmsg. */
static bool is_kernels(int fd)
{
	static const unsigned long magics[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC};
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return true;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if ((unsigned long)st.f_type == magics[i])
			return true;
	return false;
}

int root_file_open(int root, const char *path, int follow)
{
	auto_fd int fd = sys_open_in_root(root, path, O_PATH | (follow ? 0 : O_NOFOLLOW), 0);
	char proc[64];
	struct stat st;

	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) || is_kernels(fd)) {
		errno = ENOENT;
		return -1;
	}
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return sys_open(proc, O_RDONLY | O_NONBLOCK, 0);
}

/* Absence has many names where links lead astray. */
static bool absent(int number)
{
	return number == ENOENT || number == ENOTDIR || number == ELOOP;
}

int root_file_read(int root, const char *path, struct buf *b, struct err *e)
{
	auto_fd int fd = root_file_open(root, path, 1);

	if (fd < 0)
		return absent(errno) ? 0 : err_sys(e, "open %s of the image", path);
	return file_read_fd(fd, path, b, e) < 0 ? -1 : 1;
}

/* ---- places ---- */

/* 1: fd is on a mount of the container's own. */
static int is_ours(const struct root_files *f, int fd, struct err *e)
{
	uint64_t id;
	bool ours;

	if (mount_id(fd, &id, e) < 0)
		return -1;
	ours = id == f->mount;
	for (size_t i = 0; i < f->nown && !ours; i++)
		ours = id == f->own[i];
	return ours;
}

/* Can this not be written to, whatever one does? */
static bool closed(int number)
{
	return number == EROFS || number == EACCES || number == EPERM || number == EOVERFLOW;
}

/* Make the folder at path unless there is one. 1; 0: it can have none here. */
static int make_folder(const struct root_files *f, const char *path, struct err *e)
{
	auto_fd int fd = sys_open_in_root(f->root, path, O_PATH | O_DIRECTORY, 0), parent = -1;
	const char *slash = strrchr(path, '/');
	auto_free char *above = mem_printf("%.*s/", slash ? (int)(slash - path) : 0, path);
	int rc;

	if (fd >= 0)
		return 1;
	if (errno != ENOENT)
		return 0;
	parent = sys_open_in_root(f->root, above, O_PATH | O_DIRECTORY, 0);
	rc = parent < 0 ? 0 : is_ours(f, parent, e);
	if (rc <= 0)
		return rc;
	if (sys_mkdirat(parent, slash ? slash + 1 : path, 0755) == 0)
		return 1;
	/* EEXIST: a link to nowhere */
	return errno == EEXIST || closed(errno) ? 0 : err_sys(e, "make folder %s", path);
}

/* The folder of that path, made where it is missing. -1 with *none: there can be none. */
static int open_folder(const struct root_files *f, char *path, bool *none, struct err *e)
{
	int fd = sys_open_in_root(f->root, *path ? path : "/", O_PATH | O_DIRECTORY, 0);
	int rc = 1;

	*none = false;
	if (fd >= 0)
		return fd;
	for (size_t i = 1; rc > 0 && path[i - 1]; i++) {
		char c = path[i];

		if (c && c != '/')
			continue;
		path[i] = '\0';
		rc = make_folder(f, path, e);
		path[i] = c;
	}
	fd = rc > 0 ? sys_open_in_root(f->root, path, O_PATH | O_DIRECTORY, 0) : -1;
	*none = fd < 0 && rc >= 0;
	return fd;
}

/* The folder that path lies in; *name is the rest. As open_folder(). */
static int open_parent(
	const struct root_files *f, const char *path, const char **name, bool *none, struct err *e)
{
	const char *slash = strrchr(path, '/');
	auto_free char *folder = mem_printf("%.*s", slash ? (int)(slash - path) : 0, path);

	*name = slash ? slash + 1 : path;
	*none = true;
	if (!**name || str_eq(*name, ".") || str_eq(*name, ".."))
		return -1;
	return open_folder(f, folder, none, e);
}

/* ---- binding over ---- */

static int make_tmpfs(struct root_files *f, struct err *e)
{
	auto_fd int fs = sys_fsopen("tmpfs"), mnt = -1;

	if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0700", 0) < 0 ||
		sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, "make a tmpfs");
	mnt = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	/* Files of a mount that is attached nowhere cannot be bound before Linux 6.15. On the root
	 * it is in nobody's way: all go by the descriptor of what is below. */
	if (mnt < 0 || sys_move_mount(mnt, "", f->root, "",
			       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, "mount a tmpfs");
	f->tmpfs = steal_fd(&mnt);
	return 0;
}

int root_file_mount(struct root_files *f, const void *p, size_t n, struct err *e)
{
	struct mount_attr a = {.attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE};
	char name[32];
	auto_fd int fd = -1, mnt = -1;

	if (f->tmpfs < 0 && make_tmpfs(f, e) < 0)
		return -1;
	snprintf(name, sizeof(name), "%u", f->names++);
	fd = sys_openat(f->tmpfs, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0 || sys_write_all(fd, p, n) < 0)
		return err_sys(e, "write a file to be bound");
	mnt = sys_open_tree(f->tmpfs, name, OPEN_TREE_CLONE);
	if (mnt < 0 || sys_mount_setattr(mnt, "", AT_EMPTY_PATH, &a) < 0)
		return err_sys(e, "bind a file");
	return steal_fd(&mnt);
}

static int bind_over(struct root_files *f, const char *path, const void *p, size_t n, struct err *e)
{
	auto_fd int at = sys_open_in_root(f->root, path, O_PATH | O_NOFOLLOW, 0), mnt = -1;
	struct stat st;

	if (at < 0 || sys_fstat(at, &st) < 0)
		return absent(errno) ? 0 : err_sys(e, "%s of the image", path);
	if (!S_ISREG(st.st_mode))
		return 0;
	mnt = root_file_mount(f, p, n, e);
	if (mnt < 0)
		return -1;
	if (sys_move_mount(mnt, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, "bind over %s", path);
	return 1;
}

/* ---- writing ---- */

/* 1: it has this text already. */
static int is_same(const struct root_files *f, const char *path, const void *p, size_t n)
{
	auto_fd int fd = root_file_open(f->root, path, 0);
	struct stat st;
	auto_free char *text = NULL;

	if (fd < 0 || sys_fstat(fd, &st) < 0 || (uint64_t)st.st_size != n)
		return 0;
	text = mem_alloc(n + 1);
	return sys_pread_all(fd, text, n, 0) == 0 && memcmp(text, p, n) == 0;
}

static int write_beside(int parent, const char *name, const void *p, size_t n)
{
	auto_fd int fd = -1;
	int saved;

	fd = sys_openat(parent, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
	if (fd < 0 && errno == EEXIST && sys_unlinkat(parent, TEMPORARY, 0) == 0)
		fd = sys_openat(parent, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -1;
	if (fchmod(fd, 0644) == 0 && sys_write_all(fd, p, n) == 0 &&
		sys_renameat(parent, TEMPORARY, parent, name) == 0)
		return 0;
	saved = errno;
	sys_unlinkat(parent, TEMPORARY, 0);
	errno = saved;
	return -1;
}

int root_file_put(struct root_files *f, const char *path, const void *p, size_t n, struct err *e)
{
	const char *name;
	bool none;
	auto_fd int parent = -1;
	int rc;

	if (is_same(f, path, p, n))
		return 1;
	parent = open_parent(f, path, &name, &none, e);
	if (parent < 0)
		return none ? 0 : -1;
	rc = is_ours(f, parent, e);
	if (rc > 0 && write_beside(parent, name, p, n) == 0)
		return 1;
	if (rc < 0)
		return -1;
	if (rc > 0 && errno == EISDIR)
		return 0;
	/* EBUSY: something is mounted there, as an engine's /etc/hosts is */
	if (rc > 0 && !closed(errno) && errno != EBUSY)
		return err_sys(e, "write %s", path);
	return bind_over(f, path, p, n, e);
}

int root_file_remove(struct root_files *f, const char *path, struct err *e)
{
	const char *name;
	bool none;
	auto_fd int parent = open_parent(f, path, &name, &none, e);
	int rc;

	if (parent < 0)
		return none ? 1 : -1;
	rc = is_ours(f, parent, e);
	if (rc <= 0)
		return rc;
	if (sys_unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 1;
	return closed(errno) || errno == EISDIR || errno == EBUSY ? 0
								  : err_sys(e, "remove %s", path);
}

static bool leads_to(int parent, const char *name, const char *target)
{
	char text[4096];
	ssize_t n = readlinkat(parent, name, text, sizeof(text));

	return n >= 0 && (size_t)n == strlen(target) && memcmp(text, target, (size_t)n) == 0;
}

int root_link(struct root_files *f, const char *path, const char *target, struct err *e)
{
	const char *name;
	bool none;
	auto_fd int parent = open_parent(f, path, &name, &none, e);
	int rc, saved;

	if (parent < 0)
		return none ? 0 : -1;
	if (leads_to(parent, name, target))
		return 1;
	rc = is_ours(f, parent, e);
	if (rc <= 0)
		return rc;
	if (sys_symlinkat(target, parent, name) == 0) /* most often there is nothing yet */
		return 1;
	if (errno == EEXIST) {
		sys_unlinkat(parent, TEMPORARY, 0);
		if (sys_symlinkat(target, parent, TEMPORARY) == 0 &&
			sys_renameat(parent, TEMPORARY, parent, name) == 0)
			return 1;
	}
	saved = errno;
	sys_unlinkat(parent, TEMPORARY, 0);
	errno = saved;
	return closed(errno) || errno == EISDIR || errno == EBUSY ? 0 : err_sys(e, "link %s", path);
}

int root_link_remove(struct root_files *f, const char *path, const char *target, struct err *e)
{
	const char *name, *slash = strrchr(path, '/');
	auto_free char *folder = slash ? mem_printf("%.*s/", (int)(slash - path), path) : NULL;
	auto_fd int parent =
		sys_open_in_root(f->root, folder ? folder : "/", O_PATH | O_DIRECTORY, 0);

	name = slash ? slash + 1 : path;
	if (parent < 0 || !*name || !leads_to(parent, name, target))
		return 1;
	return root_file_remove(f, path, e);
}
