/* What is done to all processes of a cgroup, and of those that a container made below it: count,
 * freeze, signal, and remove. */
#include "runtime/cgroup-file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

/* Killed processes leave a moment later, those with much memory after a while: about 20 s. */
enum { DEPTH_MAX = 4096, FREEZE_TRIES = 1000, REMOVE_TRIES = 2000 };

/* Where it is said, and read, whether all of it is to be frozen, and where the kernel says that all
 * have stopped: by version. */
static const struct freezer {
	const char *file, *text[2], *stopped_file;
} freezers[2] = {{"freezer.state", {"THAWED", "FROZEN"}, "freezer.state"},
	{"cgroup.freeze", {"0", "1"}, "cgroup.events"}};

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static int put(int dir, const char *file, const char *text)
{
	auto_fd int fd = sys_openat(dir, file, O_WRONLY, 0);

	return fd < 0 ? -1 : sys_write_all(fd, text, strlen(text));
}

/* ---- the folders below ---- */

struct pids {
	pid_t *v;
	size_t n, cap;
};

/* Names of the folders in dir, one after the other, each with its NUL. */
static int children(int dir, struct buf *names)
{
	auto_fd int fd = sys_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int rc = 0;

	if (!d)
		return -1;
	steal_fd(&fd);
	while (rc == 0 && (entry = readdir(d)))
		if (entry->d_type == DT_DIR && !str_eq(entry->d_name, ".") &&
			!str_eq(entry->d_name, ".."))
			rc = buf_add(names, entry->d_name, strlen(entry->d_name) + 1, NULL);
	closedir(d);
	return rc;
}

/* Add the processes of one folder, or without pids, kill them. */
static void take_pids(int dir, struct pids *p)
{
	auto_buf struct buf text = BUF_INIT(CGROUP_PIDS_TEXT);
	const char *s = cgroup_text(dir, "cgroup.procs", &text);
	char *end;
	pid_t pid;

	for (; (pid = (pid_t)strtol(s, &end, 10)), end != s; s = end) {
		if (pid <= 0) /* of another pid namespace than ours */
			continue;
		if (!p) {
			kill(pid, SIGKILL);
			continue;
		}
		mem_grow(&p->v, &p->cap, p->n);
		p->v[p->n++] = pid;
	}
}

/* Add the processes at and below *at, or without pids, kill them and remove the folders below it.
 * With one descriptor, however deep a container made the tree: *at is the folder, and stays so.
 * Folders that go meanwhile are passed over, those still busy are for another round. */
static int walk(int *at, struct pids *pids, unsigned depth)
{
	auto_buf struct buf names = BUF_INIT(16 << 20);

	if (depth > DEPTH_MAX)
		return -1;
	take_pids(*at, pids);
	if (children(*at, &names) < 0)
		return 0; /* gone */
	for (const char *name = names.data; name && name < names.data + names.len;
		name += strlen(name) + 1) {
		int below = sys_openat(*at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0), rc;

		if (below < 0)
			continue;
		close(*at);
		*at = below;
		rc = walk(at, pids, depth + 1);
		below = sys_openat(*at, "..", O_PATH | O_DIRECTORY, 0);
		close(*at);
		*at = below;
		if (below < 0 || rc < 0)
			return -1;
		if (!pids && sys_unlinkat(*at, name, AT_REMOVEDIR) < 0 && errno != ENOENT &&
			errno != EBUSY)
			return -1;
	}
	return 0;
}

int cgroup_pids(const struct cgroup *c, pid_t **v, size_t *n, struct err *e)
{
	auto_fd int at = sys_openat(cgroup_dir_of(c, "devices"), ".", O_PATH | O_DIRECTORY, 0);
	struct pids p = {0};

	if (at >= 0 && walk(&at, &p, 0) < 0) {
		free(p.v);
		return err_set(e, ERR_SYSTEM, "cgroup %s: too much below it", c->place.path);
	}
	*v = p.v;
	*n = p.n;
	return 0;
}

/* ---- freezing ---- */

/* Reading makes version 1 look. */
static bool has_stopped(const struct cgroup *c, int dir)
{
	auto_buf struct buf text = BUF_INIT(4096);
	const char *s = cgroup_text(dir, freezers[c->v2].stopped_file, &text);

	return c->v2 ? cgroup_key(s, "frozen") == 1 : str_starts(s, "FROZEN");
}

int cgroup_freeze(const struct cgroup *c, bool frozen, struct err *e)
{
	const struct freezer *f = &freezers[c->v2];
	int dir = cgroup_dir_of(c, "freezer");

	if (dir < 0)
		return err_set(e, ERR_UNSUPPORTED, "no freezer cgroup: it cannot be paused");
	if (put(dir, f->file, f->text[frozen]) < 0)
		return err_sys(e, "cgroup %s: %s", c->place.path, f->file);
	for (int i = 0; i < FREEZE_TRIES; i++) {
		if (!frozen || has_stopped(c, dir))
			return 0;
		sleep_ms(i < 20 ? 1 : 10);
		if (c->v2)
			continue;
		/* One that forks all the time may need more than one attempt. */
		if (i % 50 == 49 && put(dir, f->file, f->text[0]) == 0)
			sleep_ms(10);
		if (put(dir, f->file, f->text[1]) < 0)
			return 0; /* gone: nothing runs in it */
	}
	if (put(dir, f->file, f->text[0]) < 0)
		err_hint(e, "and it could not be thawed again");
	return err_set(e, ERR_SYSTEM, "cgroup %s: its processes do not stop", c->place.path);
}

int cgroup_frozen(const struct cgroup *c, struct err *e)
{
	int dir = cgroup_dir_of(c, "freezer");
	auto_buf struct buf text = BUF_INIT(64);

	if (dir < 0)
		return 0;
	if (file_read(dir, freezers[c->v2].file, &text, e) < 0)
		return -1;
	return text.data && text.data[0] == freezers[c->v2].text[1][0];
}

/* Stopped while it is read, so that none is missed that is just being made: as well as that goes,
 * for what does not stop is to get the signal all the same. */
int cgroup_signal(const struct cgroup *c, int sig, struct err *e)
{
	auto_free pid_t *pids = NULL;
	bool stopped;
	size_t n = 0;
	int was, rc;

	if (c->v2 && c->ndirs && sig == SIGKILL && put(c->dirs[0].dir, "cgroup.kill", "1") == 0)
		return 0;
	was = cgroup_frozen(c, e);
	if (was < 0)
		return -1;
	stopped = !was && cgroup_dir_of(c, "freezer") >= 0 && cgroup_freeze(c, true, NULL) == 0;
	rc = cgroup_pids(c, &pids, &n, e);
	for (size_t i = 0; i < n; i++)
		kill(pids[i], sig);
	/* Version 1's frozen ones do not even die. */
	if ((stopped || (was && sig == SIGKILL)) && cgroup_freeze(c, false, rc < 0 ? NULL : e) < 0)
		return -1;
	return rc;
}

/* ---- the end ---- */

static bool is_gone(const char *path)
{
	return sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

static int remove_all(const char *path, struct err *e)
{
	for (int tries = 0; !is_gone(path); tries++) {
		if (errno != EBUSY || tries == REMOVE_TRIES)
			return err_sys(e, "remove cgroup %s", path);
		auto_fd int at = sys_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (at >= 0 && walk(&at, NULL, 0) < 0)
			return err_set(
				e, ERR_SYSTEM, "remove cgroup %s: what is in it does not go", path);
		sleep_ms(tries < 20 ? 1 : 10);
	}
	return 0;
}

/* Where the kernel cannot kill a whole cgroup, a fork bomb is faster than we: stopped, read, and
 * killed when it goes on. */
static int kill_stopped(const struct cgroup_place *p, struct err *e)
{
	struct cgroup c;
	int rc;

	if (cgroup_open(&c, p, NULL, e) < 0)
		return -1;
	rc = cgroup_signal(&c, SIGKILL, e);
	cgroup_fini(&c);
	return rc;
}

static int destroy(const struct cgroup_place *p, struct err *e)
{
	struct cgroup c = {.v2 = cgroup_is_v2(), .place = *p};
	char path[CGROUP_FULL_PATH];
	bool killed = false;
	int rc = 0;

	if (cgroup_find(&c, e) < 0)
		return -1;
	for (size_t i = 0; i < c.ndirs; i++) {
		cgroup_full_path(path, c.dirs[i].hierarchy, p->path);
		if (is_gone(path)) /* mostly nothing is left in it */
			continue;
		if (!killed && kill_stopped(p, e) < 0)
			return -1;
		killed = true;
		if (remove_all(path, rc ? NULL : e) < 0)
			rc = -1;
	}
	return rc;
}

/* In a scope systemd would first ask processes to end, and wait: they are killed by us, and it
 * finds nothing to wait for. */
int cgroup_destroy(const struct cgroup_place *p, struct err *e)
{
	int rc = destroy(p, e);

	if (p->unit[0] && cgroup_systemd_stop(p, rc < 0 ? NULL : e) < 0)
		return -1;
	return rc;
}
