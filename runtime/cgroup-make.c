/* A cgroup's folders. Version 1: one in each hierarchy. Version 2: one, below folders in which the
 * controllers it needs are enabled. Source: Documentation/admin-guide/cgroup-v1/, cgroup-v2.rst. */
#include "runtime/cgroup-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

/* A new cpuset has no cores and no memory, and takes no process, until it is told; an engine may
 * have made those above, a pod's, without telling them. One that was there may have been told. */
static int fill(int dir, const char *file, bool made, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(4096);
	char above[64];

	if (!made && strlen(cgroup_text(dir, file, &text)) > 1) /* a newline alone is empty */
		return 0;
	snprintf(above, sizeof(above), "../%s", file);
	text.len = 0;
	if (file_read(dir, above, &text, e) < 0)
		return -1;
	if (text.len <= 1) {
		auto_fd int up = sys_openat(dir, "..", O_PATH | O_DIRECTORY, 0);

		if (fill(up, file, true, e) < 0)
			return -1;
		cgroup_text(dir, above, &text);
	}
	auto_fd int fd = sys_openat(dir, file, O_WRONLY, 0);
	return fd < 0 || sys_write_all(fd, text.data, text.len) < 0 ? err_sys(e, "write %s", file)
								    : 0;
}

/* ---- version 2: controllers ---- */

/* What engines read, and what an engine inside would hand on; and those that something asks for. */
static void find_wanted(char out[96], const struct spec_resources *r)
{
	bool misc = false;

	for (size_t i = 0; i < r->unified.n; i++)
		misc = misc || str_starts(r->unified.v[i].name, "misc.");
	snprintf(out, 96, "cpu memory pids io cpuset%s%s%s", r->nhugetlb ? " hugetlb" : "",
		r->nrdma ? " rdma" : "", misc ? " misc" : "");
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
 * missing says so, with its name. Returns whether all were there. */
static bool enable(const char *path, const char *wanted)
{
	auto_buf struct buf have = BUF_INIT(4096), can = BUF_INIT(4096);
	auto_fd int dir = sys_open(path, O_PATH | O_DIRECTORY, 0);
	const char *on = cgroup_text(dir, "cgroup.subtree_control", &have), *possible = "";
	char words[96], *at = words, *name;
	auto_fd int fd = -1;
	bool all = true;

	snprintf(words, sizeof(words), "%s", wanted);
	while ((name = strsep(&at, " "))) {
		char word[64];
		int n = snprintf(word, sizeof(word), "+%s", name);

		if (cgroup_names(on, name))
			continue;
		if (all && gives(dir)) {
			possible = cgroup_text(dir, "cgroup.controllers", &can);
			fd = sys_openat(dir, "cgroup.subtree_control", O_WRONLY, 0);
		}
		all = false;
		/* One by one: those that cannot be had must not take the others with them. */
		if (cgroup_names(possible, name) && sys_write(fd, word, (size_t)n) < 0)
			continue;
	}
	return all;
}

/* ---- both ---- */

/* The folder above, made when it is missing, as are those above it, and on version 2 enabled in:
 * what one gives, those above it give too. path[top] ends the hierarchy's root. */
static int make_above(const char *path, size_t top, const char *wanted, struct err *e)
{
	char above[CGROUP_FULL_PATH];
	int n = snprintf(above, sizeof(above), "%.*s", (int)(strrchr(path, '/') - path), path);

	if (wanted && enable(above, wanted))
		return 0;
	if ((size_t)n > top) {
		if (make_above(above, top, wanted, e) < 0)
			return -1;
		if (sys_mkdirat(AT_FDCWD, above, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "make cgroup %s", above);
	}
	if (wanted)
		enable(above, wanted);
	return 0;
}

/* The folder; of those above it mostly none is missing. 1: it was not there. */
static int make_folder(const char *path, size_t top, const char *wanted, struct err *e)
{
	if (wanted && make_above(path, top, wanted, e) < 0)
		return -1;
	if (sys_mkdirat(AT_FDCWD, path, 0755) == 0)
		return 1;
	if (errno == ENOENT && !wanted) {
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

	if (c->place.unit[0]) /* systemd has made it, and put the process there */
		return 0;
	if (*cgroup_text(dir, "cgroup.procs", &text)) {
		err_set(e, ERR_EXISTS, "cgroup %s has processes in it", c->place.path);
		return err_hint(
			e, "another container of that name runs, perhaps from another store");
	}
	if (cgroup_frozen(c, NULL) <= 0)
		return 0;
	err_set(e, ERR_EXISTS, "cgroup %s: container's cgroup unexpectedly frozen", c->place.path);
	return err_hint(e, "thaw it, or remove it");
}

/* Is nothing mounted where a hierarchy should be? Looked at late: mostly all are. */
static bool is_absent(const char *hierarchy)
{
	char path[CGROUP_FULL_PATH];

	cgroup_full_path(path, hierarchy, "");
	auto_fd int root = sys_open(path, O_PATH | O_DIRECTORY, 0);
	return !cgroup_is_at(root);
}

static int make_in(struct cgroup *c, struct cgroup_dir *d, const char *wanted, struct err *e)
{
	char path[CGROUP_FULL_PATH];
	int made, opened;

	cgroup_full_path(path, d->hierarchy, c->place.path);
	made = make_folder(path, strlen(path) - strlen(c->place.path), wanted, e);
	if (made < 0)
		return -1;
	opened = cgroup_open_dir(c, d, e);
	if (opened <= 0 && made) /* also a plain folder */
		sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
	if (opened <= 0)
		return opened < 0 ? -1 : err_set(e, ERR_SYSTEM, "cgroup %s: gone", path);
	d->made = made;
	if (!made && take_over(c, d->dir, e) < 0)
		return -1;
	if (c->v2 || !cgroup_names(d->hierarchy, "cpuset"))
		return 0;
	return fill(d->dir, "cpuset.cpus", made, e) < 0 ? -1 : fill(d->dir, "cpuset.mems", made, e);
}

/* All rules before there is a child: between "deny all" and what allows it again, its mknod would
 * fail. */
static int guard_devices(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	int dir = cgroup_dir_of(c, "devices");
	struct err why = {0};

	if (dir < 0) {
		err_set(e, ERR_UNSUPPORTED, "no devices cgroup at " CGROUP_ROOT);
		return err_hint(e, "mount the cgroup file system there");
	}
	if ((c->v2 ? cgroup_devices_attach : cgroup_devices_write)(dir, r, &why) == 0)
		return 0;
	/* Without the host's rights no filter can be had, and no device can be reached that the
	 * host did not grant anyway: nodes cannot be made. */
	return why.kind == ERR_DENIED && !cgroup_privileged() ? 0 : cgroup_fail(e, &why);
}

/* On version 1 in all of them, though few limit something: engines read a container's usage from
 * the cgroups that it is in. Each costs 20 to 50 us. */
int cgroup_make(struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	char wanted[96];

	if (cgroup_find(c, e) < 0)
		return -1;
	find_wanted(wanted, r);
	for (size_t i = 0; i < c->ndirs; i++) {
		struct err why = {0};

		if (make_in(c, &c->dirs[i], c->v2 ? wanted : NULL, &why) == 0)
			continue;
		if (c->v2 || !is_absent(c->dirs[i].hierarchy))
			return cgroup_fail(e, &why);
		c->dirs[i--] = c->dirs[--c->ndirs];
	}
	return guard_devices(c, r, e);
}
