#include "images/outlet.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/tar.h"

enum { BUFFER = 256 << 10 };

static const char zeros[TAR_END];

/* ---- opening ---- */

/* The folder that path stands in, and its name there. */
static int open_parent(struct outlet *o, const char *path, struct err *e)
{
	auto_free char *dir = mem_strdup(path);
	size_t n = strlen(dir);
	char *slash;

	while (n > 1 && dir[n - 1] == '/')
		dir[--n] = '\0';
	slash = strrchr(dir, '/');
	o->leaf = mem_strdup(slash ? slash + 1 : dir);
	if (!o->leaf[0] || str_eq(o->leaf, ".") || str_eq(o->leaf, ".."))
		return err_set(e, ERR_USAGE, "'%s' is no name for a file", path);
	if (slash)
		slash[slash == dir] = '\0';
	o->parent = sys_open(slash ? dir : ".", O_RDONLY | O_DIRECTORY, 0);
	return o->parent < 0 ? err_sys(e, "open %s", slash ? dir : ".") : 0;
}

static int open_tar(struct outlet *o, const char *path, struct err *e)
{
	struct stat st;

	if (sys_fstatat(AT_FDCWD, path, &st, 0) == 0 && !S_ISREG(st.st_mode)) {
		if (S_ISDIR(st.st_mode))
			return err_set(e, ERR_USAGE, "%s is a folder", path);
		o->fd = sys_open(path, O_WRONLY, 0);
		return o->fd < 0 ? err_sys(e, "open %s", path) : 0;
	}
	if (open_parent(o, path, e) < 0)
		return -1;
	o->fd = file_tmp(o->parent, o->tmp, 0644, e);
	return o->fd < 0 ? err_ctx(e, "%s", path) : 0;
}

int outlet_open(struct outlet *o, const char *path, int fd, const char *name, struct err *e)
{
	*o = (struct outlet){
		.name = path ? path : name, .fd = -1, .tar = true, .folder = -1, .parent = -1};
	if (!path) {
		o->fd = fd;
		o->borrowed = true;
	} else if (open_tar(o, path, e) < 0) {
		outlet_close(o);
		return -1;
	}
	o->buf = mem_alloc(BUFFER);
	return 0;
}

static int check_empty(const struct outlet *o, struct err *e)
{
	int fd = sys_openat(o->parent, o->leaf, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	int rc = 0;

	if (!dir) {
		if (fd < 0 && errno == ENOENT)
			return 0;
		err_sys(e, "open %s", o->name);
		sys_close_ref(&fd);
		return -1;
	}
	while (rc == 0 && (d = readdir(dir)))
		if (!str_eq(d->d_name, ".") && !str_eq(d->d_name, ".."))
			rc = err_set(
				e, ERR_EXISTS, "%s is not empty: it holds %s", o->name, d->d_name);
	closedir(dir);
	return rc;
}

static int make_folder(struct outlet *o, struct err *e)
{
	for (unsigned i = 0;; i++) {
		snprintf(o->tmp, sizeof(o->tmp), ".svrun-save.%ld.%u", (long)getpid(), i);
		if (sys_mkdirat(o->parent, o->tmp, 0755) == 0)
			break;
		if (errno != EEXIST) {
			o->tmp[0] = '\0';
			return err_sys(e, "create a folder beside %s", o->name);
		}
	}
	o->folder = sys_openat(o->parent, o->tmp, O_RDONLY | O_DIRECTORY, 0);
	return o->folder < 0 ? err_sys(e, "open %s", o->tmp) : 0;
}

int outlet_open_folder(struct outlet *o, const char *path, struct err *e)
{
	*o = (struct outlet){.name = path, .fd = -1, .folder = -1, .parent = -1};
	o->buf = mem_alloc(BUFFER);
	if (open_parent(o, path, e) == 0 && check_empty(o, e) == 0 && make_folder(o, e) == 0)
		return 0;
	outlet_close(o);
	return -1;
}

/* ---- writing ---- */

static int put(struct outlet *o, const void *p, size_t n, struct err *e)
{
	if (sys_write_all(o->fd, p, n) == 0)
		return 0;
	err_sys(e, "write %s", o->name);
	return sys_hint_space(e, o->fd, n);
}

static int flush(struct outlet *o, struct err *e)
{
	size_t n = o->n;

	o->n = 0;
	return n ? put(o, o->buf, n, e) : 0;
}

static int add(struct outlet *o, const void *p, size_t n, struct err *e)
{
	o->at += n;
	if (n > BUFFER - o->n && flush(o, e) < 0)
		return -1;
	if (n > BUFFER)
		return put(o, p, n, e);
	memcpy(o->buf + o->n, p, n);
	o->n += n;
	return 0;
}

int outlet_node(struct outlet *o, const struct node *n, struct err *e)
{
	auto_buf struct buf header = BUF_INIT(TAR_HEADER_MAX);

	assert(o->tar && o->left == 0);
	if (tar_header(&header, n, o->at, false, e) < 0 || add(o, header.data, header.len, e) < 0)
		return -1;
	o->left = n->a.type == NODE_FILE ? n->a.size : 0;
	return 0;
}

/* A node by itself, whose name is its whole path. */
static int add_member(struct outlet *o, const char *name, enum node_type type, uint32_t mode,
	uint64_t size, struct err *e)
{
	struct node root = {.name = "", .a.type = NODE_DIR}, n = {.parent = &root, .name = name};

	n.a = (struct attr){.type = type, .mode = mode, .size = size};
	return outlet_node(o, &n, e);
}

int outlet_dir(struct outlet *o, const char *name, struct err *e)
{
	if (o->tar)
		return add_member(o, name, NODE_DIR, 0755, 0, e);
	return sys_mkdirat(o->folder, name, 0755) < 0 ? err_sys(e, "create %s/%s", o->name, name)
						      : 0;
}

int outlet_file(struct outlet *o, const char *name, uint64_t size, struct err *e)
{
	if (o->tar)
		return add_member(o, name, NODE_FILE, 0644, size, e);
	assert(o->fd < 0);
	o->fd = sys_openat(o->folder, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	o->left = size;
	return o->fd < 0 ? err_sys(e, "create %s/%s", o->name, name) : 0;
}

int outlet_write(struct outlet *o, const void *p, size_t n, struct err *e)
{
	if (n > o->left)
		return err_set(e, ERR_CORRUPT, "%s: more data than was said before", o->name);
	o->left -= n;
	return add(o, p, n, e);
}

int outlet_end(struct outlet *o, struct err *e)
{
	if (o->left > 0)
		return err_set(e, ERR_CORRUPT, "%s: less data than was said before", o->name);
	if (o->tar)
		return add(o, zeros, (size_t)(-o->at % TAR_BLOCK), e);
	if (flush(o, e) < 0)
		return -1;
	if (sys_fdatasync(o->fd) < 0) {
		err_sys(e, "sync %s", o->name);
		return sys_hint_space(e, o->fd, 0);
	}
	sys_close_ref(&o->fd);
	return 0;
}

/* ---- the end ---- */

static int name_folder(struct outlet *o, struct err *e)
{
	if (sys_renameat(o->parent, o->tmp, o->parent, o->leaf) < 0)
		return err_sys(e, "create %s", o->name);
	o->tmp[0] = '\0';
	return 0;
}

int outlet_commit(struct outlet *o, struct err *e)
{
	if (!o->tar)
		return name_folder(o, e);
	if (add(o, zeros, sizeof(zeros), e) < 0 || flush(o, e) < 0)
		return -1;
	if (o->parent < 0)
		return 0;
	if (file_publish(o->parent, o->fd, o->tmp, o->leaf, true, e) < 0)
		return err_ctx(e, "%s", o->name);
	o->tmp[0] = '\0';
	return 0;
}

void outlet_close(struct outlet *o)
{
	if (o->parent >= 0 && o->tmp[0])
		sys_remove_tree(o->parent, o->tmp);
	if (!o->borrowed)
		sys_close_ref(&o->fd);
	sys_close_ref(&o->folder);
	sys_close_ref(&o->parent);
	free(o->leaf);
	free(o->buf);
	o->leaf = NULL;
	o->buf = NULL;
}
