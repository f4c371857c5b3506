#include "runtime/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"
#include "runtime/idmap.h"

/* ---- open, join ---- */

int cgroup_open_dir(const struct cgroup *c, struct cgroup_dir *d, struct err *e)
{
	char path[CGROUP_FULL_PATH];

	cgroup_full_path(path, d->hierarchy, c->place.path);
	auto_fd int dir = sys_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0 && errno != ENOENT)
		return err_sys(e, "cgroup %s", path);
	/* Nothing else is ever written to. Of version 2 the root has been looked at. */
	if (dir < 0 || (!c->v2 && !cgroup_is_at(dir)))
		return 0;
	d->dir = steal_fd(&dir);
	return 1;
}

int cgroup_open(struct cgroup *c, const struct cgroup_place *p, const char *only, struct err *e)
{
	*c = (struct cgroup){.v2 = cgroup_is_v2(), .place = *p};
	if (cgroup_find(c, e) < 0)
		return -1;
	for (size_t i = 0; i < c->ndirs; i++) {
		struct cgroup_dir *d = &c->dirs[i];
		bool skip = only && !c->v2 && !cgroup_names(d->hierarchy, only);
		int rc = skip ? 1 : cgroup_open_dir(c, d, e);

		if (rc == 0)
			c->dirs[i--] = c->dirs[--c->ndirs];
		if (rc >= 0)
			continue;
		cgroup_fini(c);
		return -1;
	}
	return 0;
}

void cgroup_fini(struct cgroup *c)
{
	for (size_t i = 0; i < c->ndirs; i++)
		sys_close_ref(&c->dirs[i].dir);
	c->ndirs = 0;
}

int cgroup_clone_fd(const struct cgroup *c)
{
	return c->v2 && c->ndirs ? c->dirs[0].dir : -1;
}

/* By the folder, or else by its path; -1 with ENOENT also for what is no cgroup's. */
static int open_tasks(const struct cgroup_dir *d, const char *path)
{
	char tasks[CGROUP_FULL_PATH];

	if (d->dir >= 0)
		return sys_openat(d->dir, "tasks", O_WRONLY, 0);
	cgroup_full_path(tasks, d->hierarchy, path);
	snprintf(tasks + strlen(tasks), sizeof(tasks) - strlen(tasks), "/tasks");
	auto_fd int fd = sys_open(tasks, O_WRONLY | O_NOFOLLOW, 0);
	if (fd < 0 || cgroup_is_at(fd))
		return steal_fd(&fd);
	errno = ENOENT;
	return -1;
}

int cgroup_join(const struct cgroup *c, struct err *e)
{
	for (size_t i = 0; i < c->ndirs && !c->v2; i++) {
		const struct cgroup_dir *d = &c->dirs[i];
		int fd = open_tasks(d, c->place.path);

		if (fd < 0 && d->dir < 0 && errno == ENOENT)
			continue; /* none in this hierarchy */
		if (fd < 0 || sys_write_all(fd, "0", 1) < 0)
			return err_sys(e, "enter cgroup %s (%s)", c->place.path, d->hierarchy);
	}
	return 0;
}

/* ---- create ---- */

/* Nobody asked for a cgroup, and none can be had, for the reason in `why`: fine, unless something
 * is to be limited. */
static int go_without(
	struct cgroup *c, const struct spec_resources *r, const struct err *why, struct err *e)
{
	struct err limit = {0};

	c->place.path[0] = '\0';
	if (cgroup_limit(c, r, &limit) == 0)
		return 0;
	if (*why->text)
		err_ctx(&limit, "%.300s", why->text);
	cgroup_fail(e, &limit);
	return err_hint(e, "have one delegated: systemd-run --user --scope -p Delegate=yes");
}

int cgroup_create(struct cgroup *c, const struct cgroup_place *p, const struct spec_resources *r,
	struct err *e)
{
	char path[CGROUP_FULL_PATH];
	struct err why = {0};

	*c = (struct cgroup){.v2 = cgroup_is_v2(), .place = *p};
	if (p->unit[0])
		return 0;
	if (!p->path[0])
		return go_without(c, r, &why, e);
	if (cgroup_make(c, r, &why) == 0)
		return 0;
	/* What was there may be another's. */
	for (size_t i = 0; i < c->ndirs; i++) {
		cgroup_full_path(path, c->dirs[i].hierarchy, p->path);
		if (c->dirs[i].made)
			sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
	}
	cgroup_fini(c);
	if (p->may_lack && why.kind != ERR_EXISTS)
		return go_without(c, r, &why, e);
	return cgroup_fail(e, &why);
}

/* Another process. systemd has done it, but in version 1's other hierarchies, and for a slice,
 * which has no processes as systemd sees it. */
static int move(const struct cgroup *c, pid_t pid, struct err *e)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", (int)pid);

	if (c->v2 && !str_ends(c->place.unit, ".slice"))
		return 0;
	for (size_t i = 0; i < c->ndirs; i++) {
		auto_fd int fd = sys_openat(c->dirs[i].dir, "cgroup.procs", O_WRONLY, 0);

		if (fd < 0 || sys_write_all(fd, text, (size_t)n) < 0)
			return err_sys(
				e, "move into cgroup %s (%s)", c->place.path, c->dirs[i].hierarchy);
	}
	return 0;
}

int cgroup_scope(struct cgroup *c, pid_t pid, const struct spec_resources *r, struct err *e)
{
	if (!c->place.unit[0])
		return 0;
	if (cgroup_systemd_start(c, pid, r, e) < 0 || cgroup_make(c, r, e) < 0)
		return -1;
	return move(c, pid, e);
}

/* ---- give ---- */

static bool mounts_writable(const struct spec *s)
{
	for (size_t i = 0; i < s->nmounts; i++) {
		const struct spec_mount *m = &s->mounts[i];
		bool ro = !m->type || (!str_eq(m->type, "cgroup") && !str_eq(m->type, "cgroup2"));

		for (size_t k = 0; k < m->options.n; k++)
			ro = ro || str_eq(m->options.v[k], "ro") || str_eq(m->options.v[k], "rro");
		if (!ro)
			return true;
	}
	return false;
}

int cgroup_give(const struct cgroup *c, const struct spec *s, struct err *e)
{
	int64_t uid = idmap_host(&s->uids, s->process.user.uid);
	auto_buf struct buf text = BUF_INIT(4096);
	char *at, *name;
	int dir = cgroup_clone_fd(c);

	/* Without the host's rights it is ours, which inside is mostly root's. */
	if (dir < 0 || !spec_new_ns(s, NS_USER) || !spec_new_ns(s, NS_CGROUP) || uid < 0 ||
		!mounts_writable(s) || !cgroup_privileged())
		return 0;
	if (fchownat(dir, "", (uid_t)uid, (gid_t)-1, AT_EMPTY_PATH) < 0)
		return err_sys(e, "cgroup %s: give it away", c->place.path);
	/* The files that the kernel says may be given away. */
	if (file_read(AT_FDCWD, "/sys/kernel/cgroup/delegate", &text, e) < 0)
		return -1;
	for (at = text.data; at && (name = strsep(&at, "\n"));)
		if (*name && fchownat(dir, name, (uid_t)uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0 &&
			errno != ENOENT)
			return err_sys(e, "cgroup: give %s away", name);
	return 0;
}

/* ---- one that runs ---- */

int cgroup_update(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	const char *usage = c->v2 ? "memory.current" : "memory.usage_in_bytes";

	if (r->memory_check && r->memory_limit.v > 0 &&
		cgroup_number(cgroup_dir_of(c, usage), usage) > r->memory_limit.v)
		return err_set(
			e, ERR_USAGE, "/linux/resources/memory/limit: less than what is in use");
	if (c->place.unit[0] && cgroup_systemd_update(c, r, e) < 0)
		return -1;
	return cgroup_limit(c, r, e);
}

uint64_t cgroup_oom_kills(const struct cgroup *c)
{
	auto_buf struct buf text = BUF_INIT(4096);
	const char *file = c->v2 ? "memory.events" : "memory.oom_control";

	return (uint64_t)cgroup_key(cgroup_text(cgroup_dir_of(c, file), file, &text), "oom_kill");
}

uint64_t cgroup_pids_refused(const struct cgroup *c)
{
	auto_buf struct buf text = BUF_INIT(4096);

	return (uint64_t)cgroup_key(
		cgroup_text(cgroup_dir_of(c, "pids"), "pids.events", &text), "max");
}
