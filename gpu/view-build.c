#include "gpu/view-build.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <sys/file.h>
#include <sys/mount.h>

#include "base/str.h"
#include "base/sys.h"
#include "gpu/driver-table.h"
#include "gpu/ldcache.h"

/* ---- the folder of all views ---- */

static int tmpfs(struct err *e)
{
	auto_fd int fs = sys_fsopen("tmpfs");
	int mnt;

	if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
		sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", "svrun-gpu", 0) < 0 ||
		sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, "make a tmpfs");
	mnt = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mnt < 0 ? err_sys(e, "mount a tmpfs") : mnt;
}

static int attach(int mnt, int at, const char *name, struct err *e)
{
	if (sys_move_mount(mnt, "", at, name,
		    MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : MOVE_MOUNT_T_EMPTY_PATH)) < 0)
		return err_sys(e, "mount %s of a driver view", name);
	return 0;
}

static bool is_mount(int fd)
{
	struct statx x;

	return statx(fd, "", AT_EMPTY_PATH, STATX_INO, &x) == 0 &&
	       (x.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* RUN/views as a private mount: 60 mounts a view would else appear in every service that has a
 * mount namespace of its own, and stay there. With make false -1 and ENOENT where it is not. */
static int open_views(const struct gpu_host *h, bool make, struct err *e)
{
	struct mount_attr a = {.propagation = MS_PRIVATE};
	auto_free char *path = mem_printf("%s/views", h->run);
	auto_fd int fd = -1, mnt = -1;

	if (make && sys_mkdir_p(AT_FDCWD, path, 0755) < 0)
		return err_sys(e, "make folder %s", path);
	fd = sys_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return errno == ENOENT && !make ? -1 : err_sys(e, "open %s", path);
	if (!is_mount(fd) && make) {
		mnt = tmpfs(e);
		if (mnt < 0 || attach(mnt, fd, "", e) < 0)
			return -1;
		sys_close_ref(&fd);
		fd = steal_fd(&mnt);
	}
	/* again, should a kill have come between the two */
	if (is_mount(fd) && sys_mount_setattr(fd, "", AT_EMPTY_PATH, &a) < 0)
		return err_sys(e, "make %s private", path);
	return steal_fd(&fd);
}

int views_lock(const struct gpu_host *h, int how, struct err *e)
{
	auto_free char *path = mem_printf("%s/views.lock", h->run);
	auto_fd int fd = sys_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	if (fd < 0 && errno == ENOENT) {
		if (sys_mkdir_p(AT_FDCWD, h->run, 0755) < 0)
			return err_sys(e, "make folder %s", h->run);
		fd = sys_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	}
	if (fd < 0 || sys_flock(fd, how) < 0)
		return err_sys(e, "lock %s", path);
	return steal_fd(&fd);
}

/* A whole view, or what a killed build left of one. Containers keep their own copies of the mounts.
 */
static int let_go(const struct gpu_host *h, int views, const char *name, struct err *e)
{
	auto_free char *path = mem_printf("%s/views/%s", h->run, name);

	while (sys_umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		;
	if (errno != EINVAL && errno != ENOENT)
		return err_sys(e, "unmount %s", path);
	return sys_remove_tree(views, name) < 0 ? err_sys(e, "remove %s", path) : 0;
}

static int sweep(const struct gpu_host *h, int views, const char *version, struct err *e)
{
	int fd = sys_openat(views, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	size_t n = version ? strlen(version) : 0;
	const struct dirent *entry;
	int rc = 0;

	if (!d) {
		sys_close_ref(&fd);
		return err_sys(e, "read %s/views", h->run);
	}
	while (rc == 0 && (entry = readdir(d))) {
		const char *name = entry->d_name;

		if (str_eq(name, ".") || str_eq(name, "..") ||
			(version && str_starts(name, version) && name[n] == '-'))
			continue;
		rc = let_go(h, views, name, e);
	}
	closedir(d);
	return rc;
}

int gpu_views_sweep(const struct gpu_host *h, const char *version, struct err *e)
{
	auto_fd int lock = views_lock(h, LOCK_EX, e), views = -1;

	if (lock < 0)
		return -1;
	views = open_views(h, false, e);
	if (views < 0)
		return errno == ENOENT ? 0 : -1;
	return sweep(h, views, version, e);
}

/* ---- one view ---- */

/* Found by name a while ago: opened without any link, and looked at again. */
static int open_source(const struct gpu_host *h, const char *source, struct err *e)
{
	auto_fd int fd = sys_openat2(h->root, source + 1, O_PATH | O_NOFOLLOW, 0,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return err_sys(e, "driver file %s%s", h->prefix, source);
	return driver_file_check(fd, source, e) < 0 ? -1 : steal_fd(&fd);
}

static int make_folder_of(int view, const char *name, struct err *e)
{
	const char *slash = strrchr(name, '/');
	auto_free char *folder = mem_printf("%.*s", (int)(slash - name), name);

	return sys_mkdir_p(view, folder, 0755) < 0 ? err_sys(e, "make folder %s", folder) : 0;
}

static int bind_file(const struct gpu_host *h, int view, const struct driver_file *d, struct err *e)
{
	struct mount_attr a = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE};
	auto_fd int source = open_source(h, d->source, e), mnt = -1, at = -1;

	if (source < 0 || make_folder_of(view, d->name, e) < 0)
		return -1;
	at = sys_openat(view, d->name, O_WRONLY | O_CREAT | O_EXCL, 0444);
	if (at < 0)
		return err_sys(e, "make %s of a driver view", d->name);
	mnt = sys_open_tree(source, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
	if (mnt < 0 || sys_mount_setattr(mnt, "", AT_EMPTY_PATH, &a) < 0)
		return err_sys(e, "bind %s", d->source);
	return attach(mnt, at, "", e);
}

/* An alias may be given by more than one file: the first has it. */
static int make_aliases(int view, const struct driver_file *d, struct err *e)
{
	const char *base = strrchr(d->name, '/') + 1;

	for (size_t i = 0; i < 3 && d->aliases[i]; i++) {
		auto_free char *path =
			mem_printf("%.*s%s", (int)(base - d->name), d->name, d->aliases[i]);

		if (sys_symlinkat(base, view, path) < 0 && errno != EEXIST)
			return err_sys(e, "link %s of a driver view", path);
	}
	return 0;
}

/* ---- view.json ---- */

/* What is_current() of view.c compares. */
static json_t *identity(const struct gpu_host *h, const char *source, struct err *e)
{
	struct stat st;

	if (sys_fstatat(h->root, source + 1, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		err_sys(e, "driver file %s%s", h->prefix, source);
		return NULL;
	}
	return json_pack("[sIIII]", source, (json_int_t)st.st_dev, (json_int_t)st.st_ino,
		(json_int_t)st.st_mtim.tv_sec, (json_int_t)st.st_mtim.tv_nsec);
}

static int put_files(
	json_t *doc, const struct gpu_host *h, const struct driver_files *f, struct err *e)
{
	json_t *list = json_array();

	json_object_set_new(doc, "files", list);
	for (size_t i = 0; i < f->n; i++) {
		json_t *one = identity(h, f->v[i].source, e);

		if (!one)
			return -1;
		json_array_append_new(list, one);
	}
	return 0;
}

static json_t *describe(const struct gpu_host *h, const struct driver_files *f, struct err *e)
{
	json_t *links = json_array(), *libraries = json_array(), *doc;

	for (size_t i = 0; i < f->n; i++) {
		const struct driver_file *d = &f->v[i];

		if (d->link)
			json_array_append_new(links, json_pack("[ss]", d->link, d->name));
		if (d->soname)
			json_array_append_new(libraries,
				json_pack("[ssI]", d->soname, d->bits32 ? VIEW_LIB32 : VIEW_LIB,
					(json_int_t)ldcache_flags(&driver_kinds[d->bits32])));
	}
	doc = json_pack(
		"{s:s?, s:o, s:o}", "glibc", f->glibc, "links", links, "libraries", libraries);
	if (!doc)
		err_set(e, ERR_CORRUPT, "the name of a driver file is no UTF-8");
	if (doc && put_files(doc, h, f, e) < 0) {
		json_decref(doc);
		return NULL;
	}
	return doc;
}

static int write_description(
	const struct gpu_host *h, int view, const struct driver_files *f, struct err *e)
{
	json_t *doc = describe(h, f, e);
	auto_free char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	auto_fd int fd = -1;

	json_decref(doc);
	if (!text)
		return -1;
	fd = sys_openat(view, "view.json.new", O_WRONLY | O_CREAT | O_EXCL, 0444);
	if (fd < 0 || sys_write_all(fd, text, strlen(text)) < 0 ||
		sys_renameat(view, "view.json.new", view, "view.json") < 0)
		return err_sys(e, "write view.json of a driver view");
	return 0;
}

/* Files are bound where the view stands: in a mount that is attached nowhere Linux before 6.15
 * binds nothing. view.json makes it whole. */
static int fill(const struct gpu_host *h, int view, const struct driver_files *f, struct err *e)
{
	struct mount_attr a = {.attr_set = MOUNT_ATTR_RDONLY};

	for (size_t i = 0; i < f->n; i++)
		if (bind_file(h, view, &f->v[i], e) < 0)
			return -1;
	for (size_t i = 0; i < f->n; i++)
		if (make_aliases(view, &f->v[i], e) < 0)
			return -1;
	if (write_description(h, view, f, e) < 0)
		return -1;
	if (sys_mount_setattr(view, "", AT_EMPTY_PATH, &a) < 0)
		return err_sys(e, "make a driver view read-only");
	return 0;
}

static int build(const struct gpu_host *h, int views, const char *name, const char *version,
	unsigned caps, struct err *e)
{
	struct driver_files f;
	auto_fd int view = -1;
	int rc;

	if (driver_files_find(&f, h, version, caps, e) < 0)
		return -1;
	view = tmpfs(e);
	rc = view < 0 ? -1 : 0;
	if (rc == 0 && sys_mkdirat(views, name, 0755) < 0)
		rc = err_sys(e, "make %s/views/%s", h->run, name);
	if (rc == 0)
		rc = attach(view, views, name, e);
	if (rc == 0) {
		rc = fill(h, view, &f, e);
		if (rc < 0 && let_go(h, views, name, NULL) < 0)
			warn("%s/views/%s is left half-made", h->run, name);
	}
	driver_files_fini(&f);
	return rc;
}

int view_build(const struct gpu_host *h, const char *name, const char *version, unsigned caps,
	struct err *e)
{
	auto_fd int lock = views_lock(h, LOCK_EX, e), views = -1;
	json_t *doc = NULL;
	int rc;

	if (lock < 0)
		return -1;
	views = open_views(h, true, e);
	rc = views < 0 ? -1 : view_load(h, name, &doc, e);
	json_decref(doc);
	if (rc != 0) /* somebody made it while we waited */
		return rc < 0 ? -1 : 0;
	if (sweep(h, views, version, e) < 0 || let_go(h, views, name, e) < 0)
		return -1;
	return build(h, views, name, version, caps, e);
}
