#include "runtime/rdt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

static const char root_path[] = "/sys/fs/resctrl";

static int open_root(struct err *e)
{
	struct statfs fs;

	auto_fd int fd = sys_open(root_path, O_PATH | O_DIRECTORY, 0);
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != RDTGROUP_SUPER_MAGIC) {
		err_set(e, ERR_UNSUPPORTED, "linux.intelRdt: no resctrl at %s", root_path);
		return err_hint(
			e, "where the processor has it: mount -t resctrl resctrl %s", root_path);
	}
	return steal_fd(&fd);
}

bool rdt_available(void)
{
	auto_fd int fd = open_root(NULL);

	return fd >= 0;
}

/* What the kernel says of a refused write is in info/last_cmd_status. */
static int refused(int root, struct err *e, const char *what)
{
	auto_buf struct buf why = BUF_INIT(512);

	err_sys(e, "linux.intelRdt: %s", what);
	if (file_read(root, "info/last_cmd_status", &why, NULL) == 0 && why.len) {
		why.data[strcspn(why.data, "\n")] = '\0';
		return err_hint(e, "the kernel says: %s", why.data);
	}
	return -1;
}

/* Not O_TRUNC, not O_CREAT: these are files of the kernel. */
static int write_file(int root, int dir, const char *name, const char *text, struct err *e)
{
	auto_fd int fd = sys_openat(dir, name, O_WRONLY | O_NOFOLLOW, 0);

	if (fd < 0)
		return err_sys(e, "linux.intelRdt: %s", name);
	if (sys_write_all(fd, text, strlen(text)) < 0)
		return refused(root, e, name);
	return 0;
}

/* ---- schemata ---- */

/* One after the other, in the order that the spec demands. A line of l3CacheSchema that is about
 * memory bandwidth loses to memBwSchema. */
static int each_line(const struct spec_intel_rdt *r,
	int (*fn)(void *ctx, const char *line, struct err *e), void *ctx, struct err *e)
{
	for (size_t i = 0; i < r->schemata.n + 2; i++) {
		const char *text = i == 0 ? r->l3 : i == 1 ? r->membw : r->schemata.v[i - 2];

		while (text && *text) {
			size_t n = strcspn(text, "\n");
			auto_free char *line = mem_printf("%.*s\n", (int)n, text);
			bool skip = n == 0 || (i == 0 && r->membw && str_starts(line, "MB:"));

			if (!skip && fn(ctx, line, e) < 0)
				return -1;
			text += n + (text[n] == '\n');
		}
	}
	return 0;
}

struct class
{
	int root, dir;
	const char *name;
	struct buf has; /* its schemata */
};

static int write_line(void *ctx, const char *line, struct err *e)
{
	struct class *c = ctx;

	return write_file(c->root, c->dir, "schemata", line, e);
}

static int compare_line(void *ctx, const char *line, struct err *e)
{
	struct class *c = ctx;
	const char *p = c->has.data;

	while (p && *p) {
		p += strspn(p, " \n"); /* the kernel aligns names */
		if (str_starts(p, line))
			return 0;
		p += strcspn(p, "\n");
	}
	return err_set(e, ERR_CORRUPT, "linux.intelRdt: class '%.100s' is there, without %.*s",
		c->name, (int)strcspn(line, "\n"), line);
}

/* ---- classes ---- */

static bool has_schemata(const struct spec_intel_rdt *r)
{
	return r->l3 || r->membw || r->schemata.n;
}

static int check_name(const char *name, struct err *e)
{
	if (!*name || strchr(name, '/') || *name == '.' || str_eq(name, "info") ||
		str_eq(name, "mon_groups") || str_eq(name, "mon_data"))
		return err_set(e, ERR_USAGE, "linux.intelRdt.closID: '%.100s'", name);
	return 0;
}

static int enter(struct class *c, const struct spec_intel_rdt *r, bool made, const char *id,
	const char *pid, struct err *e)
{
	bool ours = made || !r->clos;

	c->dir = sys_openat(c->root, c->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (c->dir < 0)
		return err_sys(e, "linux.intelRdt.closID: %s", c->name);
	if (ours && each_line(r, write_line, c, e) < 0)
		return -1;
	if (!ours && has_schemata(r)) {
		if (file_read(c->dir, "schemata", &c->has, e) < 0 ||
			each_line(r, compare_line, c, e) < 0)
			return -1;
	}
	if (write_file(c->root, c->dir, "tasks", pid, e) < 0)
		return -1;
	if (!r->monitoring)
		return 0;
	auto_free char *group = mem_printf("mon_groups/%s", id);
	auto_free char *tasks = mem_printf("%s/tasks", group);
	if (sys_mkdirat(c->dir, group, 0755) < 0 && errno != EEXIST)
		return refused(c->root, e, "enableMonitoring");
	return write_file(c->root, c->dir, tasks, pid, e);
}

int rdt_apply_in(int root, const struct spec_intel_rdt *r, const char *id, pid_t pid, struct err *e)
{
	struct class c = {root, -1, r->clos ? r->clos : id, BUF_INIT(64 * 1024)};
	bool made = false;
	char text[16];
	int rc;

	if (check_name(c.name, e) < 0 || check_name(id, e) < 0)
		return -1;
	if (!r->clos || has_schemata(r)) {
		made = sys_mkdirat(root, c.name, 0755) == 0;
		if (!made && errno != EEXIST)
			return refused(root, e, c.name);
	}
	snprintf(text, sizeof(text), "%d", (int)pid);
	rc = enter(&c, r, made, id, text, e);
	sys_close_ref(&c.dir);
	buf_fini(&c.has);
	if (rc < 0 && made && sys_unlinkat(root, c.name, AT_REMOVEDIR) < 0)
		err_hint(e, "and class %.100s is left", c.name);
	return rc;
}

int rdt_remove_in(int root, const struct spec_intel_rdt *r, const char *id, struct err *e)
{
	const char *name = r->clos ? r->clos : id;
	auto_free char *group = mem_printf("%s/mon_groups/%s", name, id);

	if (check_name(name, e) < 0 || check_name(id, e) < 0)
		return -1;
	if (r->clos && !r->monitoring)
		return 0;
	/* A class takes its monitoring groups with it. */
	if (sys_unlinkat(root, r->clos ? group : id, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_sys(e, "linux.intelRdt: remove %s", r->clos ? group : id);
	return 0;
}

int rdt_apply(const struct spec *s, const char *id, pid_t pid, struct err *e)
{
	auto_fd int root = open_root(e);

	return root < 0 ? -1 : rdt_apply_in(root, &s->rdt, id, pid, e);
}

int rdt_remove(const struct spec *s, const char *id, struct err *e)
{
	if (!s->rdt.given)
		return 0;
	auto_fd int root = open_root(NULL);

	return root < 0 ? 0 : rdt_remove_in(root, &s->rdt, id, e); /* unmounted: gone with it */
}
