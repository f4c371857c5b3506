#include "runtime/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-devices.h"
#include "runtime/cgroup-file.h"
#include "runtime/cgroup-systemd.h"
#include "runtime/idmap.h"

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
	if (why.kind == ERR_DENIED && !cgroup_privileged())
		return 0;
	if (e)
		*e = why;
	return -1;
}

static int make(struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	return cgroup_make(c, r, e) < 0 ? -1 : guard_devices(c, r, e);
}

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
	if (e)
		*e = limit;
	return err_hint(e, "have one delegated: systemd-run --user --scope -p Delegate=yes");
}

/* It is another's: what was made beside goes, and nothing else. */
static void leave(const struct cgroup *c)
{
	char path[CGROUP_FULL_PATH];

	for (size_t i = 0; i < c->ndirs; i++) {
		cgroup_full_path(path, c->dirs[i].hierarchy, c->place.path);
		if (c->dirs[i].made)
			sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
	}
}

int cgroup_create(struct cgroup *c, const struct cgroup_place *p, const struct spec_resources *r,
	struct err *e)
{
	struct err why = {0};

	*c = (struct cgroup){.v2 = cgroup_is_v2(), .place = *p};
	if (p->unit[0])
		return 0;
	if (!p->path[0])
		return go_without(c, r, &why, e);
	if (make(c, r, &why) == 0)
		return 0;
	if (why.kind == ERR_EXISTS)
		leave(c);
	cgroup_fini(c);
	if (why.kind != ERR_EXISTS && cgroup_destroy(p, NULL) < 0)
		err_hint(&why, "and the cgroup %s could not be removed", p->path);
	if (p->may_lack && why.kind != ERR_EXISTS)
		return go_without(c, r, &why, e);
	if (e)
		*e = why;
	return -1;
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
	if (cgroup_systemd_start(c, pid, r, e) < 0 || make(c, r, e) < 0)
		return -1;
	return move(c, pid, e);
}

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

/* The files that the kernel says may be given away. */
static int give_files(int dir, uid_t uid, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(4096);
	char *at, *name;

	if (file_read(AT_FDCWD, "/sys/kernel/cgroup/delegate", &text, e) < 0)
		return -1;
	for (at = text.data; at && (name = strsep(&at, "\n"));)
		if (*name && fchownat(dir, name, uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0 &&
			errno != ENOENT)
			return err_sys(e, "cgroup: give %s away", name);
	return 0;
}

int cgroup_give(const struct cgroup *c, const struct spec *s, struct err *e)
{
	int64_t uid = idmap_host(&s->uids, s->process.user.uid);

	/* Without the host's rights it is ours, which inside is mostly root's. */
	if (!c->v2 || !c->ndirs || !spec_new_ns(s, NS_USER) || !spec_new_ns(s, NS_CGROUP) ||
		uid < 0 || !mounts_writable(s) || !cgroup_privileged())
		return 0;
	if (fchownat(c->dirs[0].dir, "", (uid_t)uid, (gid_t)-1, AT_EMPTY_PATH) < 0)
		return err_sys(e, "cgroup %s: give it away", c->place.path);
	return give_files(c->dirs[0].dir, (uid_t)uid, e);
}

int cgroup_update(const struct cgroup *c, const struct spec_resources *r, struct err *e)
{
	const char *usage = c->v2 ? "memory.current" : "memory.usage_in_bytes";

	if (r->memory_check && r->memory_limit.v > 0 &&
		cgroup_number(cgroup_dir_of(c, "memory"), usage) > r->memory_limit.v)
		return err_set(
			e, ERR_USAGE, "/linux/resources/memory/limit: less than what is in use");
	if (c->place.unit[0] && cgroup_systemd_update(c, r, e) < 0)
		return -1;
	return cgroup_limit(c, r, e);
}

int cgroup_clone_fd(const struct cgroup *c)
{
	return c->v2 && c->ndirs ? c->dirs[0].dir : -1;
}

int cgroup_join(const struct cgroup *c, struct err *e)
{
	for (size_t i = 0; i < c->ndirs && !c->v2; i++)
		if (sys_write_all(c->dirs[i].tasks, "0", 1) < 0)
			return err_sys(
				e, "enter cgroup %s (%s)", c->place.path, c->dirs[i].hierarchy);
	return 0;
}

int cgroup_open_in(struct cgroup *c, const char *hierarchy, struct err *e)
{
	struct cgroup_dir *d = &c->dirs[c->ndirs];
	char path[CGROUP_FULL_PATH];

	cgroup_full_path(path, hierarchy, c->place.path);
	auto_fd int dir = sys_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0 && errno == ENOENT)
		return 0;
	auto_fd int tasks = dir < 0 || c->v2 ? -1 : sys_openat(dir, "tasks", O_WRONLY, 0);
	if (dir < 0 || (!c->v2 && tasks < 0))
		return err_sys(e, "cgroup %s", path);
	snprintf(d->hierarchy, sizeof(d->hierarchy), "%s", hierarchy);
	d->made = false;
	d->dir = steal_fd(&dir);
	d->tasks = steal_fd(&tasks);
	c->ndirs++;
	return 1;
}

int cgroup_open(struct cgroup *c, const struct cgroup_place *p, struct err *e)
{
	struct cgroup_lines lines;

	*c = (struct cgroup){.v2 = cgroup_is_v2(), .place = *p};
	if (!p->path[0])
		return 0;
	if (cgroup_hierarchies(&lines, c->v2, e) < 0)
		return -1;
	for (size_t i = 0; i < lines.n; i++)
		if (cgroup_open_in(c, lines.v[i].hierarchy, e) < 0) {
			cgroup_fini(c);
			return -1;
		}
	return 0;
}

void cgroup_fini(struct cgroup *c)
{
	for (size_t i = 0; i < c->ndirs; i++) {
		sys_close_ref(&c->dirs[i].dir);
		sys_close_ref(&c->dirs[i].tasks);
	}
	c->ndirs = 0;
}

uint64_t cgroup_oom_kills(const struct cgroup *c)
{
	auto_buf struct buf text = BUF_INIT(4096);
	const char *file = c->v2 ? "memory.events" : "memory.oom_control";

	return (uint64_t)cgroup_key(
		cgroup_text(cgroup_dir_of(c, "memory"), file, &text), "oom_kill");
}

bool cgroup_out_of_memory(const struct cgroup *c)
{
	return cgroup_oom_kills(c) > 0;
}

uint64_t cgroup_pids_refused(const struct cgroup *c)
{
	auto_buf struct buf text = BUF_INIT(4096);

	return (uint64_t)cgroup_key(
		cgroup_text(cgroup_dir_of(c, "pids"), "pids.events", &text), "max");
}
