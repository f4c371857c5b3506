#include "svrun/instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup.h"
#include "runtime/fs-mount.h"

#define STATE "state.json"
#define STATE_LAST "state.last"
enum { CONFIG_MAX = 8 << 20, CREATE_TRIES = 16, KILLED = 137 };

static bool is_name(const char *s)
{
	static const char first[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t n = strlen(s);

	return n && n <= INSTANCE_ID_MAX && strchr(first, s[0]) &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == n;
}

static int choose_id(struct instance *i, const char *name, struct err *e)
{
	unsigned char r[6];

	if (!name) {
		if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
			return err_sys(e, "getrandom");
		snprintf(i->id, sizeof(i->id), "%02x%02x%02x%02x%02x%02x", r[0], r[1], r[2], r[3],
			r[4], r[5]);
		return 0;
	}
	if (!is_name(name)) {
		err_set(e, ERR_USAGE, "--name '%.80s' is not a name", name);
		return err_hint(e,
			"letters, digits, '_', '.' and '-', at most %d, a letter or digit "
			"first",
			INSTANCE_ID_MAX);
	}
	return str_copy(i->id, sizeof(i->id), name);
}

/* 1: made and locked. 0: a sweep took it before the lock was held, try again. */
static int make_locked(struct instance *i, const char *name, struct err *e)
{
	struct stat st;

	if (choose_id(i, name, e) < 0)
		return -1;
	if (sys_mkdirat(i->all, i->id, 0700) < 0) {
		if (errno == EEXIST && !name)
			return 0;
		if (errno != EEXIST)
			return err_sys(e, "make instance %s", i->id);
		err_set(e, ERR_EXISTS, "an instance named %s exists", i->id);
		return err_hint(e,
			"choose another --name; when it has ended svrun start %s goes on with it, "
			"and svrun rm %s removes it",
			i->id, i->id);
	}
	i->dir = sys_openat(i->all, i->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	/* A sweep that was faster has the lock until the folder is gone, and the name free again:
	 * there is nothing else that could have it. */
	if (i->dir >= 0 && sys_flock(i->dir, LOCK_EX) == 0 && sys_fstat(i->dir, &st) == 0 &&
		st.st_nlink > 0)
		return 1;
	sys_close_ref(&i->dir);
	return 0;
}

int instance_create(
	struct instance *i, int root, const char *path, const char *name, bool rm, struct err *e)
{
	int rc = 0;

	*i = (struct instance){.all = -1, .dir = -1, .rm = rm};
	if (sys_mkdirat(root, "instances", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make instances");
	i->all = sys_openat(root, "instances", O_RDONLY | O_DIRECTORY, 0);
	if (i->all < 0)
		return err_sys(e, "instances");
	for (int tries = 0; rc == 0 && tries < CREATE_TRIES; tries++)
		rc = make_locked(i, name, e);
	if (rc == 0)
		rc = err_set(e, ERR_SYSTEM,
			"cannot make an instance: it is removed at once, again "
			"and again");
	if (rc > 0) {
		i->path = mem_printf("%s/instances/%s", path, i->id);
		return 0;
	}
	sys_close_ref(&i->all);
	return -1;
}

/* ---- again ---- */

int instance_again(struct instance *i, int root, const char *path, const char *id, struct err *e)
{
	struct instance got = {.again = true, .dir = -1};
	auto_fd int all = sys_openat(root, "instances", O_RDONLY | O_DIRECTORY, 0);
	auto_fd int dir = all < 0 || !is_name(id)
				  ? -1
				  : sys_openat(all, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir < 0) {
		err_set(e, ERR_NOT_FOUND, "no container '%.80s'", id);
		return err_hint(e, "svrun ps lists them");
	}
	if (sys_flock(dir, LOCK_EX | LOCK_NB) < 0)
		return errno != EWOULDBLOCK
			       ? err_sys(e, "lock container %s", id)
			       : err_set(e, ERR_EXISTS, "container %s runs, or is being looked at",
					 id);
	if (faccessat(dir, STATE, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, ERR_NOT_FOUND, "container %s is being removed", id);
	snprintf(got.id, sizeof(got.id), "%.*s", INSTANCE_ID_MAX, id);
	got.path = mem_printf("%s/instances/%s", path, id);
	got.all = steal_fd(&all);
	got.dir = steal_fd(&dir);
	*i = got;
	return 0;
}

int instance_begin(struct instance *i, struct err *e)
{
	if (!i->again)
		return 0;
	if (sys_unlinkat(i->dir, "pid", 0) < 0 && errno != ENOENT)
		return err_sys(e, "instance %s: its last pid", i->id);
	if (sys_renameat(i->dir, STATE, i->dir, STATE_LAST) < 0)
		return err_sys(e, "instance %s: its last state", i->id);
	return 0;
}

/* upper/ is the root folder that the container sees: like the image's, whose own is below it. */
static int make_folders(struct instance *i, int lower, struct err *e)
{
	struct stat st;

	if (sys_fstat(lower, &st) < 0)
		return err_sys(e, "root of the image");
	if (i->again)
		return 0;
	if (sys_mkdirat(i->dir, "upper", 0755) < 0 || sys_mkdirat(i->dir, "work", 0700) < 0 ||
		fchmodat(i->dir, "upper", st.st_mode & 07777, 0) < 0 ||
		fchownat(i->dir, "upper", st.st_uid, st.st_gid, 0) < 0) {
		err_sys(e, "instance %s: make folders", i->id);
		return sys_hint_space(e, i->dir, 0);
	}
	return 0;
}

static int make_mount_points(int top, struct err *e)
{
	static const char *const dirs[] = {"proc", "sys", "dev", "etc"};
	static const char *const files[] = {"etc/hosts", "etc/resolv.conf"};

	for (size_t k = 0; k < sizeof(dirs) / sizeof(dirs[0]); k++)
		if (sys_mkdirat(top, dirs[k], 0755) < 0)
			return err_sys(e, "make mountpoints/%s", dirs[k]);
	for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
		auto_fd int file = sys_openat(top, files[k], O_WRONLY | O_CREAT | O_EXCL, 0644);

		if (file < 0)
			return err_sys(e, "make mountpoints/%s", files[k]);
	}
	return 0;
}

/* ROOT/mountpoints: the lowest layer of every instance. An image that has these has its own, and
 * one that lacks some needs no copies of their folders in upper/. Made in the instance's folder,
 * which a sweep removes, and given its name when it is whole. Returns an fd. */
static int open_mount_points(struct instance *i, struct err *e)
{
	static const char name[] = "../../mountpoints", tmp[] = "mountpoints";
	int fd = sys_openat(i->dir, name, O_PATH | O_DIRECTORY, 0);

	if (fd >= 0)
		return fd;
	if (sys_mkdirat(i->dir, tmp, 0755) < 0)
		return err_sys(e, "make mountpoints");
	auto_fd int top = sys_openat(i->dir, tmp, O_PATH | O_DIRECTORY, 0);
	if (top < 0)
		return err_sys(e, "mountpoints");
	if (make_mount_points(top, e) < 0)
		return sys_hint_space(e, i->dir, 0);
	if (sys_renameat(i->dir, tmp, i->dir, name) < 0) {
		/* Another svrun may have been faster. */
		if ((errno != EEXIST && errno != ENOTEMPTY) || sys_remove_tree(i->dir, tmp) < 0)
			return err_sys(e, "make mountpoints");
	}
	fd = sys_openat(i->dir, name, O_PATH | O_DIRECTORY, 0);
	return fd < 0 ? err_sys(e, "mountpoints") : fd;
}

int instance_overlay(struct instance *i, const char *lower, int more, struct err *e)
{
	char options[3][96], over[40] = "";
	/* Changed files and renamed folders are whole in upper/, whatever the host's defaults are:
	 * `svrun image commit` reads it. */
	const char *data[] = {
		options[0], options[1], options[2], "metacopy=off", "redirect_dir=off", "volatile"};
	size_t n = sizeof(data) / sizeof(data[0]);
	auto_fd int low = sys_open(lower, O_PATH | O_DIRECTORY, 0);

	if (low < 0)
		return err_sys(e, "image mount %s", lower);
	auto_fd int points = open_mount_points(i, e);
	if (points < 0 || make_folders(i, low, e) < 0)
		return -1;
	/* By descriptor: a store's path may be long or have a colon, which overlayfs takes apart.
	 */
	if (more >= 0)
		snprintf(over, sizeof(over), "/proc/self/fd/%d/root:", more);
	snprintf(options[0], sizeof(options[0]), "lowerdir=%s/proc/self/fd/%d:/proc/self/fd/%d",
		over, low, points);
	snprintf(options[1], sizeof(options[1]), "upperdir=/proc/self/fd/%d/upper", i->dir);
	snprintf(options[2], sizeof(options[2]), "workdir=/proc/self/fd/%d/work", i->dir);
	/* Of an --rm instance nothing is kept: without volatile, unmounting would first write all
	 * of it to the disk, and wait. */
	return fs_mount("overlay", "overlay", data, i->rm ? n : n - 1, MOUNT_ATTR_NODEV, e);
}

int instance_write(struct instance *i, const char *name, const char *text, size_t n, struct err *e)
{
	char temporary[64];
	int len = snprintf(temporary, sizeof(temporary), "%s.new", name);
	auto_fd int fd =
		sys_openat(i->dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);

	if (fd < 0 || (size_t)len >= sizeof(temporary) || sys_write_all(fd, text, n) < 0 ||
		sys_renameat(i->dir, temporary, i->dir, name) < 0) {
		err_sys(e, "instance %s: write %s", i->id, name);
		return sys_hint_space(e, i->dir, n);
	}
	return 0;
}

/* Of this store alone: another may have an instance of the same name, which must not be taken for
 * the rest of ours. `all` is the folder of the store's instances. */
static int cgroup_path(int all, const char *id, char out[INSTANCE_CGROUP_SIZE], struct err *e)
{
	struct stat st;

	if (sys_fstat(all, &st) < 0)
		return err_sys(e, "stat instances");
	snprintf(out, INSTANCE_CGROUP_SIZE, "/svrun/%.*s.%jx.%jx", INSTANCE_ID_MAX, id,
		(uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return 0;
}

int instance_cgroup(const struct instance *i, char out[INSTANCE_CGROUP_SIZE], struct err *e)
{
	return cgroup_path(i->all, i->id, out, e);
}

int instance_place(int all, const char *id, struct cgroup_place *p, struct err *e)
{
	char path[INSTANCE_CGROUP_SIZE];

	return cgroup_path(all, id, path, e) < 0 ? -1 : cgroup_place(p, path, id, false, e);
}

int instance_started(struct instance *i, pid_t pid, struct err *e)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%d\n%d\n", (int)pid, (int)getpid());

	return instance_write(i, "pid", text, (size_t)n, e);
}

/* ---- the end ---- */

static int write_state(int dir, int status, const char *error, struct err *e)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
		"{\n  \"status\": \"exited\",\n  \"exitCode\": %d%s%s%s\n}\n", status,
		error ? ",\n  \"error\": \"" : "", error ? error : "", error ? "\"" : "");

	if (file_write(dir, STATE, text, (size_t)n, 0600, e) < 0)
		return -1;
	if (sys_unlinkat(dir, STATE_LAST, 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove " STATE_LAST);
	return 0;
}

static int remove_folder(int all, const char *id, struct err *e)
{
	if (sys_remove_tree(all, id) < 0)
		return err_sys(e, "remove instance %s", id);
	return 0;
}

static void close_instance(struct instance *i)
{
	sys_close_ref(&i->dir);
	sys_close_ref(&i->all);
	free(i->path);
	i->path = NULL;
}

int instance_end(struct instance *i, int status, struct err *e)
{
	int rc = i->rm ? remove_folder(i->all, i->id, e) : write_state(i->dir, status, NULL, e);

	close_instance(i);
	return rc;
}

void instance_abort(struct instance *i)
{
	struct err e = {0};

	if (i->again) {
		/* there is none when it had not begun */
		if (i->dir >= 0 && sys_renameat(i->dir, STATE_LAST, i->dir, STATE) < 0 &&
			errno != ENOENT)
			warn("instance %s: its last state: %s", i->id, strerror(errno));
	} else if (i->all >= 0 && i->dir >= 0 && remove_folder(i->all, i->id, &e) < 0)
		warn("%s", e.text); /* the error that led here is the one to report */
	close_instance(i);
}

/* ---- sweep ---- */

/* Was it started with --rm? One that never got a config is not worth keeping either. */
static bool wants_removal(int dir)
{
	struct json_doc doc;
	const char *rm;
	bool yes;

	if (json_doc_load(&doc, dir, "config.json", CONFIG_MAX, NULL) < 0)
		return true;
	rm = json_string_value(
		json_object_get(json_object_get(doc.root, "annotations"), INSTANCE_RM));
	yes = rm && str_eq(rm, "true");
	json_doc_fini(&doc);
	return yes;
}

static int sweep_one(int all, const char *id, struct err *e)
{
	char state[INSTANCE_ID_MAX + 16];
	struct cgroup_place place;

	snprintf(state, sizeof(state), "%.*s/" STATE, INSTANCE_ID_MAX, id);
	if (faccessat(all, state, F_OK, 0) == 0)
		return 0;
	auto_fd int dir = sys_openat(all, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return errno == ENOENT ? 0 : err_sys(e, "instance %s", id);
	if (sys_flock(dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_sys(e, "instance %s: lock", id);
	if (faccessat(all, state, F_OK, 0) == 0) /* ended between the two */
		return 0;
	if (instance_place(all, id, &place, e) < 0 || cgroup_destroy(&place, e) < 0)
		return -1;
	return wants_removal(dir) ? remove_folder(all, id, e)
				  : write_state(dir, KILLED, "svrun was killed", e);
}

int instances_sweep(int root, struct err *e)
{
	struct dirent *d;
	DIR *dir;
	int rc = 0;
	auto_fd int all = sys_openat(root, "instances", O_RDONLY | O_DIRECTORY, 0);

	if (all < 0)
		return errno == ENOENT ? 0 : err_sys(e, "instances");
	dir = fdopendir(all);
	if (!dir)
		return err_sys(e, "instances");
	steal_fd(&all);
	while (rc == 0 && (d = readdir(dir)))
		if (is_name(d->d_name))
			rc = sweep_one(dirfd(dir), d->d_name, e);
	closedir(dir);
	return rc;
}
