#include "builder/sandbox-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/random.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/erofs.h"
#include "images/mount-fs.h"
#include "runtime/fs-mount.h"

enum { TRIES = 16, FILES_SIZE_MIB = 16 };

/* ---- the folder ---- */

/* 1: made and locked. 0: a sweep took it before the lock was held. */
static int make_locked(struct sandbox_folder *f, struct err *e)
{
	unsigned char r[6];
	struct stat st;

	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return err_sys(e, "getrandom");
	snprintf(f->id, sizeof(f->id), "%02x%02x%02x%02x%02x%02x", r[0], r[1], r[2], r[3], r[4],
		r[5]);
	if (sys_mkdirat(f->all, f->id, 0700) < 0)
		return errno == EEXIST ? 0 : err_sys(e, "make steps/%s", f->id);
	f->dir = sys_openat(f->all, f->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (f->dir >= 0 && sys_flock(f->dir, LOCK_EX | LOCK_NB) == 0 &&
		sys_fstat(f->dir, &st) == 0 && st.st_nlink > 0)
		return 1;
	sys_close_ref(&f->dir);
	return 0;
}

int sandbox_folder_make(struct sandbox_folder *f, struct store *s, struct err *e)
{
	int rc = 0;

	*f = (struct sandbox_folder){.all = -1, .dir = -1};
	if (sys_mkdirat(s->fd, "steps", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make %s/steps", s->path);
	f->all = sys_openat(s->fd, "steps", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (f->all < 0)
		return err_sys(e, "open %s/steps", s->path);
	for (int i = 0; rc == 0 && i < TRIES; i++)
		rc = make_locked(f, e);
	if (rc > 0) {
		f->path = mem_printf("%s/steps/%s", s->path, f->id);
		return 0;
	}
	sys_close_ref(&f->all);
	return rc < 0 ? -1 : err_set(e, ERR_SYSTEM, "cannot make a folder in %s/steps", s->path);
}

int sandbox_folder_remove(struct sandbox_folder *f, struct err *e)
{
	int rc = 0;

	sandbox_folder_hide(f);
	if (f->dir >= 0 && sys_remove_tree(f->all, f->id) < 0)
		rc = err_sys(e, "remove %s", f->path);
	sys_close_ref(&f->dir);
	sys_close_ref(&f->all);
	free(f->path);
	f->path = NULL;
	return rc;
}

/* ---- the cgroup, and what a killed build left ---- */

static int cgroup_of(int all, const char *id, struct cgroup_place *p, struct err *e)
{
	char path[128];
	struct stat st;

	if (sys_fstat(all, &st) < 0)
		return err_sys(e, "stat steps");
	snprintf(path, sizeof(path), "/svrun/build-%.24s.%jx.%jx", id, (uintmax_t)st.st_dev,
		(uintmax_t)st.st_ino);
	return cgroup_place(p, path, id, false, e);
}

int sandbox_folder_cgroup(const struct sandbox_folder *f, struct cgroup_place *p, struct err *e)
{
	return cgroup_of(f->all, f->id, p, e);
}

static int sweep_one(void *store, int all, const char *id, struct err *e)
{
	struct store *s = store;
	struct cgroup_place place;
	auto_fd int dir = sys_openat(all, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, "open steps/%s", id);
	if (sys_flock(dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_sys(e, "lock steps/%s", id);
	if (cgroup_of(all, id, &place, e) < 0 || cgroup_destroy(&place, e) < 0)
		return -1;

	auto_free char *files = mem_printf("%s/steps/%s/files", s->path, id);

	if (sys_umount2(files, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL &&
		errno != ENOENT)
		return err_sys(e, "unmount %s", files);
	return sys_remove_tree(all, id) < 0 ? err_sys(e, "remove steps/%s", id) : 0;
}

int sandbox_sweep(struct store *s, struct err *e)
{
	return store_folder_each(s, "steps", sweep_one, s, e);
}

/* ---- the tree as a mount ---- */

static int mount_tree(struct sandbox_folder *f, struct tree *t, struct store *s, struct err *e)
{
	auto_free char *image = mem_printf("%s/image", f->path);
	auto_free char *pool = mem_printf("%s/pool/data", s->path);
	struct stat st;
	auto_fd int fd = sys_openat(f->dir, "image", O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return err_sys(e, "create %s", image);
	if (sys_fstatat(s->fd, "pool/data", &st, 0) < 0)
		return err_sys(e, "stat %s", pool);
	if (erofs_write(t, (uint64_t)st.st_size / POOL_BLOCK, fd, e) < 0)
		return -1;
	return mount_fs(image, pool, MOUNT_ANY, e);
}

/* What will be mounted on, in the lowest layer: where the tree has it, it is the tree's; where not,
 * nothing of it gets into upper/. "/x/" is a folder. */
static int make_point(int points, const char *target, struct err *e)
{
	char path[TREE_PATH_MAX + 1];
	size_t n = strlen(target);
	bool folder = target[n - 1] == '/';
	char *slash;

	if (n < 2 || n > TREE_PATH_MAX)
		return err_set(e, ERR_USAGE, "'%.200s' cannot be mounted on", target);
	snprintf(path, sizeof(path), "%.*s", (int)(n - 1 - folder), target + 1);
	slash = strrchr(path, '/');
	if (!folder && slash)
		*slash = '\0';
	if ((folder || slash) && sys_mkdir_p(points, path, 0755) < 0)
		return err_sys(e, "mount point %s", target);
	if (folder)
		return 0;

	auto_fd int fd = sys_openat(points, target + 1, O_WRONLY | O_CREAT | O_NOFOLLOW, 0644);

	return fd < 0 ? err_sys(e, "mount point %s", target) : 0;
}

static int make_folders(struct sandbox_folder *f, const struct tree *t,
	const struct strings *targets, struct err *e)
{
	static const char *const names[] = {"points", "upper", "work", "tmp", "files"};
	const struct attr *root = &tree_root((struct tree *)(uintptr_t)t)->a;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (sys_mkdirat(f->dir, names[i], 0755) < 0)
			return err_sys(e, "make %s/%s", f->path, names[i]);
	if (fchmodat(f->dir, "tmp", 01777, 0) < 0 || fchmodat(f->dir, "upper", root->mode, 0) < 0 ||
		fchownat(f->dir, "upper", root->uid, root->gid, 0) < 0)
		return err_sys(e, "modes in %s", f->path);

	auto_fd int points = sys_openat(f->dir, "points", O_RDONLY | O_DIRECTORY, 0);

	if (points < 0)
		return err_sys(e, "open %s/points", f->path);
	for (size_t i = 0; i < targets->n; i++)
		if (make_point(points, targets->v[i], e) < 0)
			return -1;
	return 0;
}

int sandbox_folder_overlay(struct sandbox_folder *f, struct tree *t, struct store *s,
	const struct strings *targets, struct err *e)
{
	char options[3][80];
	/* Renamed folders and changed attributes as copies: what is in upper/ must be all of it.
	 * Volatile: nothing of it outlives us, so nothing waits for the disk. */
	const char *data[] = {options[0], options[1], options[2], "redirect_dir=nofollow",
		"metacopy=off", "index=off", "volatile"};

	if (make_folders(f, t, targets, e) < 0)
		return sys_hint_space(e, f->dir, 0);

	auto_fd int lower = mount_tree(f, t, s, e);

	if (lower < 0)
		return sys_hint_space(e, f->dir, 0);
	snprintf(options[0], sizeof(options[0]),
		"lowerdir=/proc/self/fd/%d:/proc/self/fd/%d/points", lower, f->dir);
	snprintf(options[1], sizeof(options[1]), "upperdir=/proc/self/fd/%d/upper", f->dir);
	snprintf(options[2], sizeof(options[2]), "workdir=/proc/self/fd/%d/work", f->dir);
	return fs_mount(
		"overlay", "overlay", data, sizeof(data) / sizeof(data[0]), MOUNT_ATTR_NODEV, e);
}

/* ---- small files, in memory ---- */

static int mount_memory(struct sandbox_folder *f, struct err *e)
{
	char size[32];
	const char *data[] = {size, "mode=0700"};

	snprintf(size, sizeof(size), "size=%dm", FILES_SIZE_MIB);

	auto_fd int fs =
		fs_mount("tmpfs", "tmpfs", data, 2, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, e);

	if (fs < 0)
		return -1;
	if (sys_move_mount(fs, "", f->dir, "files", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "mount %s/files", f->path);
	f->has_files = true;
	return 0;
}

int sandbox_folder_files(struct sandbox_folder *f, const struct sandbox_file *v, size_t n,
	uint32_t uid, uint32_t gid, struct err *e)
{
	if (mount_memory(f, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "files/%zu", i);

		auto_fd int fd = sys_openat(f->dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

		if (fd < 0 || sys_write_all(fd, v[i].data, v[i].n) < 0 ||
			fchown(fd, uid, gid) < 0 || fchmod(fd, v[i].mode) < 0)
			return err_sys(e, "file %s", v[i].target);
	}
	return 0;
}

void sandbox_folder_hide(struct sandbox_folder *f)
{
	auto_free char *files = f->has_files ? mem_printf("%s/files", f->path) : NULL;

	if (files && sys_umount2(files, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		f->has_files = false;
}
