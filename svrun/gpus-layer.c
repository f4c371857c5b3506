#include "svrun/gpus-layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "base/str.h"
#include "base/sys.h"
#include "gpu/ldcache.h"
#include "gpu/path.h"
#include "images/digest.h"
#include "runtime/fs-mount.h"

#define MAKING "new."

enum { NAMES_MAX = 4 << 20, LAYERS_KEPT = 64, MAKING_SECONDS = 600 };

/* Below the root, without ways up; and not in what is another mount in a container. */
static bool is_plain(const char *path)
{
	return !path_is_new(path) && path[0] == '/' && path[1] && !strstr(path, "//") &&
	       !strstr(path, "/.");
}

/* The folder that path is in, each name made where it is missing; none may be a link. -1: one of
 * them is no folder. */
static int parent_of(int top, const char *path)
{
	auto_free char *names = mem_strdup(path + 1);
	int dir = sys_openat(top, ".", O_PATH | O_DIRECTORY, 0);

	for (char *name = names, *slash; dir >= 0 && (slash = strchr(name, '/'));
		name = slash + 1) {
		int next = -1;

		*slash = '\0';
		if (sys_mkdirat(dir, name, 0755) == 0 || errno == EEXIST)
			next = sys_openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		sys_close_ref(&dir);
		dir = next;
	}
	return dir;
}

static bool fits(int rc)
{
	return rc == 0 || errno == EEXIST;
}

/* What has no place here is made at the start. */
static int add_mount(int top, const struct edit_mount *m, struct err *e)
{
	auto_fd int dir = parent_of(top, m->destination);
	const char *name = strrchr(m->destination, '/') + 1;
	struct stat st = {.st_mode = S_IFDIR};

	if (dir < 0 || (!m->type && sys_fstatat(AT_FDCWD, m->source, &st, 0) < 0))
		return 0;
	if (S_ISDIR(st.st_mode))
		return fits(sys_mkdirat(dir, name, 0755)) ? 0 : err_sys(e, "make %s", name);
	auto_fd int file = sys_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444);
	return file >= 0 || errno == EEXIST ? 0 : err_sys(e, "make %s", name);
}

static int add_mounts(int top, const struct gpu_edits *x, struct err *e)
{
	for (size_t i = 0; i < x->nmounts; i++)
		if (is_plain(x->mounts[i].destination) && add_mount(top, &x->mounts[i], e) < 0)
			return -1;
	return 0;
}

/* ---- making one ---- */

/* The image with the layer over it, to be written to. -1: no overlay can be made here. */
static int mount_over(int layer, const char *lower)
{
	char options[3][64];
	const char *data[] = {
		options[0], options[1], options[2], "metacopy=off", "redirect_dir=off"};
	auto_fd int low = sys_open(lower, O_PATH | O_DIRECTORY, 0);

	snprintf(options[0], sizeof(options[0]), "lowerdir=/proc/self/fd/%d", low);
	snprintf(options[1], sizeof(options[1]), "upperdir=/proc/self/fd/%d/root", layer);
	snprintf(options[2], sizeof(options[2]), "workdir=/proc/self/fd/%d/work", layer);
	return low < 0 ? -1 : fs_mount("overlay", "overlay", data, 5, MOUNT_ATTR_NODEV, NULL);
}

/* 1; 0: no overlay can be made here; -1. */
static int fill(int layer, const struct gpu_edits *x, const char *lower, struct err *e)
{
	if (sys_mkdirat(layer, "root", 0755) < 0 || sys_mkdirat(layer, "work", 0700) < 0)
		return err_sys(e, "make a layer's folders");
	auto_fd int root = mount_over(layer, lower);

	if (root < 0)
		return 0;
	return add_mounts(root, x, e) < 0 || gpu_edits_fill_files(x, root, e) < 0 ? -1 : 1;
}

/* One that no container uses: who does has locked it. Of those in the making, what a killed svrun
 * left: another's may not have its lock yet. */
static void sweep_one(int layers, const char *name, bool many)
{
	auto_fd int dir = sys_openat(layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (dir < 0 || sys_fstat(dir, &st) < 0)
		return;
	if (str_starts(name, MAKING) ? st.st_mtime > time(NULL) - MAKING_SECONDS : !many)
		return;
	if (sys_flock(dir, LOCK_EX | LOCK_NB) == 0 && sys_remove_tree(layers, name) < 0)
		warn("layers/%s: %s", name, strerror(errno));
}

/* Those of images and drivers that were, when there are many. */
static void sweep(int layers)
{
	DIR *d = fdopendir(sys_openat(layers, ".", O_RDONLY | O_DIRECTORY, 0));
	size_t n = 0;

	for (const struct dirent *entry; d && (entry = readdir(d));)
		if (entry->d_name[0] != '.')
			sweep_one(layers, entry->d_name, ++n > LAYERS_KEPT);
	if (d)
		closedir(d);
}

/* Made under another name, and given its own when it is whole. 1, 0, -1 as fill(). */
static int make(
	int layers, const char *name, const struct gpu_edits *x, const char *lower, struct err *e)
{
	auto_free char *tmp = mem_printf(MAKING "%d", (int)getpid());
	int rc;

	sweep(layers);
	if (sys_remove_tree(layers, tmp) < 0 || sys_mkdirat(layers, tmp, 0700) < 0)
		return err_sys(e, "make layers/%s", tmp);
	auto_fd int layer = sys_openat(layers, tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (layer < 0 || sys_flock(layer, LOCK_SH) < 0)
		return err_sys(e, "layers/%s", tmp);
	rc = fill(layer, x, lower, e);
	if (rc > 0 && sys_renameat(layers, tmp, layers, name) == 0)
		return 1;
	/* another svrun may have been faster */
	if (rc > 0 && errno != EEXIST && errno != ENOTEMPTY)
		rc = err_sys(e, "layers/%s", name);
	if (sys_remove_tree(layers, tmp) < 0 && rc >= 0)
		rc = err_sys(e, "layers/%s", tmp);
	return rc;
}

/* ---- finding it ---- */

static bool is_folder(const struct edit_mount *m)
{
	struct stat st;

	return m->type || (sys_fstatat(AT_FDCWD, m->source, &st, 0) == 0 && S_ISDIR(st.st_mode));
}

/* With its length: texts may have newlines. */
static void put(struct buf *b, const char *what, const char *text)
{
	buf_printf(b, "%s %zu %s\n", what, text ? strlen(text) : 0, text ? text : "");
}

/* Everything that the making goes by. */
static void name_of(
	const struct gpu_edits *x, const struct gpus_layer_image *image, char name[DIGEST_HEX + 1])
{
	auto_buf struct buf text = BUF_INIT(NAMES_MAX);
	struct digest d;

	put(&text, "image", image->digest);
	put(&text, "profile", x->visible_profile);
	put(&text, "driver", x->compat_driver);
	buf_printf(&text, "compat %d\n", x->compat);
	for (size_t i = 0; i < x->nmounts; i++) {
		put(&text, "source", x->mounts[i].source);
		put(&text, is_folder(&x->mounts[i]) ? "folder" : "file", x->mounts[i].destination);
	}
	for (size_t i = 0; i < x->nlinks; i++) {
		put(&text, "link", x->links[i].path);
		put(&text, "to", x->links[i].target);
	}
	for (size_t i = 0; i < x->nld_dirs; i++)
		put(&text, "loader", x->ld_dirs[i]);
	for (size_t i = 0; i < x->nlibs; i++) {
		put(&text, "soname", x->libs[i].soname);
		put(&text, "library", x->libs[i].path);
		buf_printf(&text, "flags %x\n", x->libs[i].flags);
	}
	d = digest_of(text.data, text.len);
	digest_hex(&d, name);
}

/* 1: it is there, and stays for as long as *fd is open; 0: not there. */
static int take(int layers, const char *name, int *fd, struct err *e)
{
	auto_fd int dir = sys_openat(layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat held, named;

	if (dir < 0)
		return errno == ENOENT ? 0 : err_sys(e, "layers/%s", name);
	if (sys_flock(dir, LOCK_SH) < 0 || sys_fstat(dir, &held) < 0)
		return err_sys(e, "layers/%s", name);
	/* swept between the two */
	if (sys_fstatat(layers, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		named.st_ino != held.st_ino)
		return 0;
	*fd = steal_fd(&dir);
	return 1;
}

int gpus_layer_open(const struct gpu_edits *x, const struct gpu_host *h,
	const struct gpus_layer_image *image, int *fd, struct err *e)
{
	auto_free char *path = mem_printf("%s/layers", h->run);
	char name[DIGEST_HEX + 1];
	int rc;

	*fd = -1;
	if (!x->nlinks && !x->nmounts && !x->nld_dirs)
		return 0;
	if (sys_mkdir_p(AT_FDCWD, path, 0755) < 0)
		return err_sys(e, "make %s", path);
	auto_fd int layers = sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (layers < 0)
		return err_sys(e, "open %s", path);
	name_of(x, image, name);
	while ((rc = take(layers, name, fd, e)) == 0) {
		rc = make(layers, name, x, image->lower, e);
		if (rc <= 0)
			break;
	}
	return rc < 0 ? -1 : 0;
}
