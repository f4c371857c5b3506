/* A cgroup's folders. Version 1: one in each hierarchy. Version 2: one, below folders in which the
 * controllers it needs are enabled. Source: Documentation/admin-guide/cgroup-v1/, cgroup-v2.rst. */
#include "runtime/cgroup-file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

/* ---- version 1: cpusets ---- */

/* A new cpuset has no cores and no memory, and takes no process, until it is told. One that was
 * there may have been told. Returns whether it has any then: not, when the one above has none. */
static int inherit_file(int dir, const char *file, bool made, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(4096);
	char above[64];

	if (!made && strlen(cgroup_text(dir, file, &text)) > 1) /* a newline alone is empty */
		return 1;
	text.len = 0;
	snprintf(above, sizeof(above), "../%s", file);
	if (file_read(dir, above, &text, e) < 0)
		return -1;
	if (text.len <= 1)
		return 0;
	auto_fd int fd = sys_openat(dir, file, O_WRONLY, 0);
	if (fd < 0 || sys_write_all(fd, text.data, text.len) < 0)
		return err_sys(e, "write %s", file);
	return 1;
}

static int inherit(int dir, bool made, struct err *e)
{
	int cpus = inherit_file(dir, "cpuset.cpus", made, e);
	int mems = cpus < 0 ? -1 : inherit_file(dir, "cpuset.mems", made, e);

	return mems < 0 ? -1 : cpus && mems;
}

/* An engine may have made those above, a pod's, without telling them: from the top down. */
static int inherit_all(const char *path, size_t top, int dir, bool made, struct err *e)
{
	char above[CGROUP_FULL_PATH];
	int rc = inherit(dir, made, e);

	if (rc)
		return rc < 0 ? -1 : 0;
	for (const char *p = strchr(path + top + 1, '/'); p; p = strchr(p + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(p - path), path);
		auto_fd int fd = sys_open(above, O_PATH | O_DIRECTORY, 0);
		if (fd < 0)
			return err_sys(e, "cgroup %s", above);
		if (inherit(fd, false, e) < 0)
			return -1;
	}
	return inherit(dir, false, e) < 0 ? -1 : 0;
}

/* ---- version 2: controllers ---- */

/* What engines read, and what an engine inside would hand on; and those that something asks for. */
static const char *const always[] = {"cpu", "memory", "pids", "io", "cpuset"};
enum { ALWAYS = sizeof(always) / sizeof(always[0]), WANTED_MAX = ALWAYS + 3 };

struct wanted {
	const char *v[WANTED_MAX];
	size_t n;
};

static void find_wanted(struct wanted *w, const struct spec_resources *r)
{
	bool misc = false;

	for (w->n = 0; w->n < ALWAYS; w->n++)
		w->v[w->n] = always[w->n];
	for (size_t i = 0; i < r->unified.n; i++)
		misc = misc || str_starts(r->unified.v[i].name, "misc.");
	if (r->nhugetlb)
		w->v[w->n++] = "hugetlb";
	if (r->nrdma)
		w->v[w->n++] = "rdma";
	if (misc)
		w->v[w->n++] = "misc";
}

/* May controllers be enabled in it for those below? In one that has processes that fails, or,
 * worse, makes it a root of threads, and what is below unfit for processes. The host's root may. */
static bool gives(int dir)
{
	auto_buf struct buf procs = BUF_INIT(CGROUP_PIDS_TEXT);

	return faccessat(dir, "cgroup.type", F_OK, 0) < 0 ||
	       !*cgroup_text(dir, "cgroup.procs", &procs);
}

/* Enable in a folder, for those below it, what it can give. Not checked: a limit whose file is then
 * missing says so, with its name. Returns whether all are there. */
static bool enable(const char *path, const struct wanted *w)
{
	auto_buf struct buf have = BUF_INIT(4096), can = BUF_INIT(4096);
	auto_fd int dir = sys_open(path, O_PATH | O_DIRECTORY, 0);
	const char *on = cgroup_text(dir, "cgroup.subtree_control", &have);
	bool all = dir >= 0;

	for (size_t i = 0; i < w->n; i++)
		all = all && cgroup_names(on, w->v[i]);
	if (all || dir < 0)
		return all;
	const char *possible = cgroup_text(dir, "cgroup.controllers", &can);
	auto_fd int fd = gives(dir) ? sys_openat(dir, "cgroup.subtree_control", O_WRONLY, 0) : -1;

	/* One by one: those that cannot be had must not take the others with them. */
	for (size_t i = 0; fd >= 0 && i < w->n; i++) {
		char word[64];
		int len = snprintf(word, sizeof(word), "+%s", w->v[i]);

		if (!cgroup_names(on, w->v[i]) && cgroup_names(possible, w->v[i]) &&
			sys_write(fd, word, (size_t)len) < 0)
			continue;
	}
	return false;
}

/* ---- both ---- */

/* Make what is missing of the folders above, and on version 2 enable in each; path[top] ends the
 * hierarchy's root. */
static int make_above(const char *path, size_t top, const struct wanted *w, struct err *e)
{
	char above[CGROUP_FULL_PATH];

	for (const char *p = path + top; p; p = strchr(p + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(p - path), path);
		if (p > path + top && sys_mkdirat(AT_FDCWD, above, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "make cgroup %s", above);
		if (w)
			enable(above, w);
	}
	return 0;
}

/* The folder, and those above it, of which mostly none is missing. */
static int make_folder(const char *path, size_t top, const struct wanted *w, struct err *e)
{
	char parent[CGROUP_FULL_PATH];

	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	/* What the folder above gives, those above it give too. */
	if (w && !enable(parent, w) && make_above(path, top, w, e) < 0)
		return -1;
	if (sys_mkdirat(AT_FDCWD, path, 0755) == 0)
		return 1;
	if (errno == ENOENT && !w) {
		if (make_above(path, top, NULL, e) < 0)
			return -1;
		if (sys_mkdirat(AT_FDCWD, path, 0755) == 0)
			return 1;
	}
	return errno == EEXIST ? 0 : err_sys(e, "make cgroup %s", path);
}

static int take_over(const struct cgroup *c, int dir, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(CGROUP_PIDS_TEXT);
	char frozen = c->v2 ? '1' : 'F';

	if (c->place.unit[0]) /* systemd has made it, and put the process there */
		return 0;
	if (*cgroup_text(dir, "cgroup.procs", &text)) {
		err_set(e, ERR_EXISTS, "cgroup %s has processes in it", c->place.path);
		return err_hint(
			e, "another container of that name runs, perhaps from another store");
	}
	if (*cgroup_text(dir, c->v2 ? "cgroup.freeze" : "freezer.state", &text) != frozen)
		return 0;
	err_set(e, ERR_EXISTS, "cgroup %s: container's cgroup unexpectedly frozen", c->place.path);
	return err_hint(e, "thaw it, or remove it");
}

/* Is nothing mounted where a hierarchy should be? Looked at late: mostly all are. */
static bool is_absent(const char *hierarchy, const char *cgroup)
{
	char path[CGROUP_FULL_PATH];
	struct statfs fs;

	cgroup_full_path(path, hierarchy, "");
	if (statfs(path, &fs) == 0 && fs.f_type == CGROUP_SUPER_MAGIC)
		return false;
	cgroup_full_path(path, hierarchy, cgroup);
	sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR); /* a plain folder */
	return true;
}

static int make_in(struct cgroup *c, const char *hierarchy, const struct wanted *w, struct err *e)
{
	struct cgroup_dir *d = &c->dirs[c->ndirs];
	char path[CGROUP_FULL_PATH];
	int made, rc;
	size_t top;

	cgroup_full_path(path, hierarchy, c->place.path);
	top = strlen(path) - strlen(c->place.path);
	made = make_folder(path, top, w, e);
	if (made < 0)
		return -1;
	rc = cgroup_open_in(c, hierarchy, e);
	if (rc <= 0)
		return rc < 0 ? -1 : err_set(e, ERR_SYSTEM, "cgroup %s: gone", path);
	d->made = made;
	if (!made && take_over(c, d->dir, e) < 0)
		return -1;
	if (c->v2 || !cgroup_names(hierarchy, "cpuset"))
		return 0;
	return inherit_all(path, top, d->dir, made, e);
}

/* On version 1 in all of them, though few limit something: engines read a container's usage from
 * the cgroups that it is in. Each costs 20 to 50 us. */
int cgroup_make(struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	struct cgroup_lines lines;
	struct wanted w;

	if (cgroup_hierarchies(&lines, c->v2, e) < 0)
		return -1;
	find_wanted(&w, r);
	for (size_t i = 0; i < lines.n; i++) {
		struct err why = {0};

		if (make_in(c, lines.v[i].hierarchy, c->v2 ? &w : NULL, &why) == 0 ||
			(!c->v2 && is_absent(lines.v[i].hierarchy, c->place.path)))
			continue;
		if (e)
			*e = why;
		return -1;
	}
	return 0;
}
