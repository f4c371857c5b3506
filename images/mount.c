/* Locks. A user holds HEX.lock shared for as long as it uses the mount. Only who holds it
 * exclusively unmounts, and nobody waits for that: so whoever has a share knows that what it sees
 * mounted stays. Mounting happens with a share, one process at a time (the folder's own lock), and
 * nobody waits for a share while holding that one.
 *
 *   open    HEX.lock shared -> mounted? done. Else mnt/ exclusive -> mounted now? else mount ->
 * drop mnt/ close   HEX.lock exclusive, or somebody else uses it -> unmount sweep   the same for
 * every mount; and where the metadata image is gone, HEX and HEX.lock go, too
 *
 * A lock file that was removed is noticed by who opened it before: its name leads to another inode,
 * or none. */
#include "images/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/mount-fs.h"
#include "images/mount-image.h"
#include "images/mount-keep.h"
#include "images/pool.h"

enum { LOCK_NAME = DIGEST_HEX + sizeof(".lock"), UNMOUNTS_MAX = 8 };

static int open_folder(struct store *s, struct err *e)
{
	int fd = sys_openat(s->fd, "mnt", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0 && errno == ENOENT) {
		if (sys_mkdirat(s->fd, "mnt", 0700) < 0 && errno != EEXIST)
			return err_sys(e, "create %s/mnt", s->path);
		fd = sys_openat(s->fd, "mnt", O_RDONLY | O_DIRECTORY, 0);
	}
	return fd < 0 ? err_sys(e, "open %s/mnt", s->path) : fd;
}

/* A mount has another device than the folder it stands in. 1, 0, -1. */
static int is_mounted(int folder, const char *hex, struct err *e)
{
	struct stat here, there;

	if (sys_fstat(folder, &here) < 0)
		return err_sys(e, "stat mnt");
	if (sys_fstatat(folder, hex, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "stat mnt/%s", hex);
	return here.st_dev != there.st_dev;
}

/* Does the name still lead to the file that fd is? */
static bool same_file(int folder, const char *name, int fd)
{
	struct stat a, b;

	return sys_fstat(fd, &a) == 0 && sys_fstatat(folder, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static void lock_name(char out[LOCK_NAME], const char *hex)
{
	snprintf(out, LOCK_NAME, "%.*s.lock", DIGEST_HEX, hex);
}

static int share(int folder, const char *hex, struct err *e)
{
	char name[LOCK_NAME];

	lock_name(name, hex);
	for (;;) {
		auto_fd int fd = sys_openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

		if (fd < 0 || sys_flock(fd, LOCK_SH) < 0)
			return err_sys(e, "lock mnt/%s", name);
		if (same_file(folder, name, fd))
			return steal_fd(&fd);
	}
}

/* Attach the file system at mnt/HEX. The caller has a share. */
static int attach(struct store *s, int folder, const char *hex, struct err *e)
{
	auto_free char *image = mem_printf("%s/erofs/%s.img", s->path, hex);
	auto_free char *pool = mem_printf("%s/pool/data", s->path);
	auto_fd int fs = mount_fs(image, pool, MOUNT_ANY, e);

	if (fs < 0)
		return -1;
	if (sys_mkdirat(folder, hex, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s/mnt/%s", s->path, hex);
	if (sys_move_mount(fs, "", folder, hex, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "mount %s/mnt/%s", s->path, hex);
	return 0;
}

static int mount_once(
	struct store *s, int folder, const struct digest *manifest, const char *hex, struct err *e)
{
	/* a description of its own: flock belongs to those */
	auto_fd int turn = sys_openat(folder, ".", O_RDONLY | O_DIRECTORY, 0);
	int rc;

	if (turn < 0 || sys_flock(turn, LOCK_EX) < 0)
		return err_sys(e, "lock %s/mnt", s->path);
	rc = is_mounted(folder, hex, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (mount_prepare(s, manifest, NULL, e) < 0) /* no more than a look when it is there */
		return -1;
	if (attach(s, folder, hex, e) == 0)
		return 0;
	if (e && e->kind == ERR_CORRUPT)
		err_hint(e, "svrun image verify --repair sha256:%s", hex);
	return -1;
}

/* After a crash of the machine, metadata images may name blocks whose data never reached the disk:
 * opening the pool looks at these and removes the images. Without the folder's lock, as it waits
 * for whoever writes to the pool. */
static int settle_doubt(struct store *s, struct err *e)
{
	int doubtful = pool_doubtful(s->fd, e);
	struct pool *p;

	if (doubtful <= 0)
		return doubtful;
	p = pool_open(s->fd, true, e);
	if (!p)
		return -1;
	pool_close(p);
	return 0;
}

int mount_open(struct mount *m, struct store *s, const struct digest *manifest, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	auto_fd int folder = open_folder(s, e);
	int mounted;

	if (folder < 0)
		return -1;
	digest_hex(manifest, hex);

	auto_fd int lock = share(folder, hex, e);

	if (lock < 0)
		return -1;
	mounted = is_mounted(folder, hex, e);
	if (mounted < 0 || (mounted == 0 && (settle_doubt(s, e) < 0 ||
						    mount_once(s, folder, manifest, hex, e) < 0)))
		return -1;
	m->path = mem_printf("%s/mnt/%s", s->path, hex);
	m->lock = steal_fd(&lock);
	return 0;
}

/* With lock held by us or nobody: unmount, unless somebody else has a share. 1 unmounted, 0 in use,
 * -1. */
static int unmount_unused(struct store *s, int folder, const char *hex, int lock, struct err *e)
{
	auto_free char *path = mem_printf("%s/mnt/%s", s->path, hex);
	char name[LOCK_NAME];
	int rc = 0;

	if (sys_flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_sys(e, "lock mnt/%s.lock", hex);
	lock_name(name, hex);
	if (!same_file(folder, name, lock)) /* swept before we had it, and perhaps in use anew */
		return 0;
	rc = mount_is_kept(folder, hex, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	for (int i = 0; i < UNMOUNTS_MAX && (rc = is_mounted(folder, hex, e)) > 0; i++)
		if (sys_umount2(path, UMOUNT_NOFOLLOW) < 0) /* EBUSY: a shell stands in it, say */
			return errno == EBUSY ? 0 : err_sys(e, "unmount %s", path);
	return rc < 0 ? -1 : 1;
}

void mount_close(struct mount *m, struct store *s)
{
	auto_fd int folder = m->path ? open_folder(s, NULL) : -1;
	struct err e;

	if (folder >= 0 && unmount_unused(s, folder, strrchr(m->path, '/') + 1, m->lock, &e) < 0)
		warn("%s; the next command tries again", e.text);
	sys_close_ref(&m->lock);
	free(m->path);
	m->path = NULL;
}

/* ---- sweeping ---- */

static int sweep_one(struct store *s, int folder, const char *hex, struct err *e)
{
	char name[LOCK_NAME];
	struct digest manifest;
	int mounted = is_mounted(folder, hex, e), ready, rc;

	if (mounted < 0 || digest_from_hex(&manifest, hex) < 0)
		return mounted < 0 ? -1 : 0;
	ready = mount_image_ready(s, &manifest, e);
	if (ready < 0 || (ready && !mounted))
		return ready < 0 ? -1 : 0;
	lock_name(name, hex);

	auto_fd int lock = sys_openat(folder, name, O_RDWR | O_NOFOLLOW, 0);

	if (lock < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s/mnt/%s", s->path, name);
	rc = unmount_unused(s, folder, hex, lock, e);
	if (rc <= 0 || ready)
		return rc < 0 ? -1 : 0;
	if (sys_unlinkat(folder, hex, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_sys(e, "remove %s/mnt/%s", s->path, hex);
	return sys_unlinkat(folder, name, 0) < 0 ? err_sys(e, "remove %s/mnt/%s", s->path, name)
						 : 0;
}

int mount_sweep(struct store *s, struct err *e)
{
	int fd = sys_openat(s->fd, "mnt", O_RDONLY | O_DIRECTORY, 0), rc = 0;
	DIR *dir;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s/mnt", s->path);
	dir = fdopendir(fd);
	if (!dir) {
		err_sys(e, "read %s/mnt", s->path);
		sys_close_ref(&fd);
		return -1;
	}
	for (struct dirent *d; rc == 0 && (d = readdir(dir));)
		if (strlen(d->d_name) == LOCK_NAME - 1 && str_ends(d->d_name, ".lock")) {
			d->d_name[DIGEST_HEX] = '\0';
			rc = sweep_one(s, fd, d->d_name, e);
		}
	closedir(dir);
	return rc;
}
