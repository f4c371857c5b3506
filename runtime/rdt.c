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

/* What the kernel says of a refused write is in info/last_cmd_status. */
static int refused(int root, const char *what, struct err *e)
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
		return refused(root, name, e);
	return 0;
}

/* ---- schemata ---- */

struct class
{
	int root, dir;
	const char *name;
	struct buf has; /* the schemata that it must have; empty: it gets them */
};

static int has_line(const struct class *c, const char *line, struct err *e)
{
	for (const char *p = c->has.data; *p; p += strcspn(p, "\n")) {
		p += strspn(p, " \n"); /* the kernel aligns names */
		if (str_starts(p, line))
			return 0;
	}
	return err_set(e, ERR_CORRUPT, "linux.intelRdt: class '%.100s' is there, without %.*s",
		c->name, (int)strcspn(line, "\n"), line);
}

/* One after the other, in the order that the spec demands. A line of l3CacheSchema that is about
 * memory bandwidth loses to memBwSchema. */
static int apply_schemata(const struct class *c, const struct spec_intel_rdt *r, struct err *e)
{
	for (size_t i = 0; i < r->schemata.n + 2; i++) {
		const char *text = i == 0 ? r->l3 : i == 1 ? r->membw : r->schemata.v[i - 2];

		for (size_t n; text && *text; text += n + (text[n] == '\n')) {
			n = strcspn(text, "\n");
			if (n == 0 || (i == 0 && r->membw && str_starts(text, "MB:")))
				continue;
			auto_free char *line = mem_printf("%.*s\n", (int)n, text);
			if ((c->has.data ? has_line(c, line, e)
					 : write_file(c->root, c->dir, "schemata", line, e)) < 0)
				return -1;
		}
	}
	return 0;
}

/* ---- classes ---- */

static int check_name(const char *name, struct err *e)
{
	if (!*name || strchr(name, '/') || *name == '.' || str_eq(name, "info") ||
		str_eq(name, "mon_groups") || str_eq(name, "mon_data"))
		return err_set(e, ERR_USAGE, "linux.intelRdt.closID: '%.100s'", name);
	return 0;
}

/* ours: the class gets the schemata, and need not have them. */
static int enter(struct class *c, const struct spec_intel_rdt *r, bool ours, const char *id,
	pid_t pid, struct err *e)
{
	char text[16];

	c->dir = sys_openat(c->root, c->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (c->dir < 0)
		return err_sys(e, "linux.intelRdt.closID: %s", c->name);
	if (!ours && file_read(c->dir, "schemata", &c->has, e) < 0)
		return -1;
	snprintf(text, sizeof(text), "%d", (int)pid);
	if (apply_schemata(c, r, e) < 0 || write_file(c->root, c->dir, "tasks", text, e) < 0)
		return -1;
	if (!r->monitoring)
		return 0;
	auto_free char *group = mem_printf("mon_groups/%s", id);
	auto_free char *tasks = mem_printf("%s/tasks", group);
	if (sys_mkdirat(c->dir, group, 0755) < 0 && errno != EEXIST)
		return refused(c->root, "enableMonitoring", e);
	return write_file(c->root, c->dir, tasks, text, e);
}

int rdt_apply_in(int root, const struct spec_intel_rdt *r, const char *id, pid_t pid, struct err *e)
{
	struct class c = {root, -1, r->clos ? r->clos : id, BUF_INIT(64 * 1024)};
	bool made = false;
	int rc;

	if (check_name(c.name, e) < 0 || check_name(id, e) < 0)
		return -1;
	if (!r->clos || r->l3 || r->membw || r->schemata.n) {
		made = sys_mkdirat(root, c.name, 0755) == 0;
		if (!made && errno != EEXIST)
			return refused(root, c.name, e);
	}
	rc = enter(&c, r, made || !r->clos, id, pid, e);
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
