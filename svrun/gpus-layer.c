#include "svrun/gpus-layer.h"

#include <fcntl.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/digest.h"

enum { NAMES_MAX = 1 << 20 };

/* Below the root, without ways up; and not in what is another mount in a container. */
static bool is_plain(const char *path)
{
	static const char *const others[] = {"/dev", "/proc", "/sys", NULL};

	for (size_t i = 0; others[i]; i++)
		if (str_starts(path, others[i]) &&
			(path[strlen(others[i])] == '/' || !path[strlen(others[i])]))
			return false;
	return path[0] == '/' && path[1] && !strstr(path, "//") && !strstr(path, "/.");
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

/* What has no place here is made when the root is filled. */
static int add_link(int top, const struct edit_link *l, struct err *e)
{
	auto_fd int dir = parent_of(top, l->path);

	if (dir < 0 || fits(sys_symlinkat(l->target, dir, strrchr(l->path, '/') + 1)))
		return 0;
	return err_sys(e, "make link %s", l->path);
}

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

static int fill(int top, const struct gpu_edits *x, struct err *e)
{
	for (size_t i = 0; i < x->nmounts; i++)
		if (is_plain(x->mounts[i].destination) && add_mount(top, &x->mounts[i], e) < 0)
			return -1;
	for (size_t i = 0; i < x->nlinks; i++)
		if (is_plain(x->links[i].path) && add_link(top, &x->links[i], e) < 0)
			return -1;
	return 0;
}

/* Made under another name, and given its own when it is whole. */
static int make(int layers, const char *name, const struct gpu_edits *x, struct err *e)
{
	auto_free char *tmp = mem_printf("new.%d", (int)getpid());

	if (sys_remove_tree(layers, tmp) < 0 || sys_mkdirat(layers, tmp, 0755) < 0)
		return err_sys(e, "make layers/%s", tmp);
	auto_fd int top = sys_openat(layers, tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (top < 0)
		return err_sys(e, "layers/%s", tmp);
	if (fill(top, x, e) < 0)
		return -1;
	/* another svrun may have been faster */
	if (sys_renameat(layers, tmp, layers, name) < 0 &&
		((errno != EEXIST && errno != ENOTEMPTY) || sys_remove_tree(layers, tmp) < 0))
		return err_sys(e, "layers/%s", name);
	return 0;
}

static void name_of(const struct gpu_edits *x, char name[DIGEST_HEX + 1])
{
	auto_buf struct buf text = BUF_INIT(NAMES_MAX);
	struct digest d;

	for (size_t i = 0; i < x->nmounts; i++)
		buf_printf(&text, "mount %s\n%s\n", x->mounts[i].destination, x->mounts[i].source);
	for (size_t i = 0; i < x->nlinks; i++)
		buf_printf(&text, "link %s\n%s\n", x->links[i].path, x->links[i].target);
	d = digest_of(text.data, text.len);
	digest_hex(&d, name);
}

int gpus_layer_open(const struct gpu_edits *x, const struct gpu_host *h, int *fd, struct err *e)
{
	auto_free char *path = mem_printf("%s/layers", h->run);
	char name[DIGEST_HEX + 1];

	*fd = -1;
	if (!x->nlinks && !x->nmounts)
		return 0;
	if (sys_mkdir_p(AT_FDCWD, path, 0755) < 0)
		return err_sys(e, "make %s", path);
	auto_fd int layers = sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (layers < 0)
		return err_sys(e, "open %s", path);
	name_of(x, name);
	*fd = sys_openat(layers, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (*fd >= 0)
		return 0;
	if (make(layers, name, x, e) < 0)
		return -1;
	*fd = sys_openat(layers, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	return *fd < 0 ? err_sys(e, "layers/%s", name) : 0;
}
