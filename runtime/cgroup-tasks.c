/* What is done to all processes of a cgroup: count, freeze, signal. */
#include "runtime/cgroup-tasks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"

enum { DEPTH_MAX = 4096, FREEZE_TRIES = 1000 };

/* ---- the folders below ---- */

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

/* *at is the folder; it stays so. */
static int walk(int *at, const struct cgroup_walk *w, unsigned depth)
{
	auto_buf struct buf names = BUF_INIT(16 << 20);

	if (depth > DEPTH_MAX || (w->enter && w->enter(*at, w->ctx) < 0))
		return -1;
	if (children(*at, &names) < 0)
		return 0; /* gone */
	for (const char *name = names.data; name && name < names.data + names.len;
		name += strlen(name) + 1) {
		int below = sys_openat(*at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0), rc;

		if (below < 0)
			continue;
		close(*at);
		*at = below;
		rc = walk(at, w, depth + 1);
		below = sys_openat(*at, "..", O_PATH | O_DIRECTORY, 0);
		close(*at);
		*at = below;
		if (below < 0 || rc < 0 || (w->leave && w->leave(*at, name, w->ctx) < 0))
			return -1;
	}
	return 0;
}

int cgroup_walk(int top, const struct cgroup_walk *w)
{
	auto_fd int at = sys_openat(top, ".", O_PATH | O_DIRECTORY, 0);

	return at < 0 ? 0 : walk(&at, w, 0);
}

/* ---- processes ---- */

struct pids {
	pid_t *v;
	size_t n, cap;
};

static int add_pids(int dir, void *ctx)
{
	auto_buf struct buf text = BUF_INIT(CGROUP_PIDS_TEXT);
	struct pids *p = ctx;
	char *end;

	for (const char *s = cgroup_text(dir, "cgroup.procs", &text); *s;
		s = end + (*end == '\n')) {
		long pid = strtol(s, &end, 10);

		if (end == s)
			break;
		if (pid <= 0) /* of another pid namespace than ours */
			continue;
		mem_grow(&p->v, &p->cap, p->n);
		p->v[p->n++] = (pid_t)pid;
	}
	return 0;
}

static int pids_below(int dir, struct pids *p)
{
	const struct cgroup_walk w = {.enter = add_pids, .ctx = p};

	return cgroup_walk(dir, &w);
}

int cgroup_pids(const struct cgroup *c, pid_t **v, size_t *n, struct err *e)
{
	struct pids p = {0};

	if (c->ndirs && pids_below(cgroup_dir_of(c, c->v2 ? "" : "devices"), &p) < 0) {
		free(p.v);
		return err_set(e, ERR_SYSTEM, "cgroup %s: too much below it", c->place.path);
	}
	*v = p.v;
	*n = p.n;
	return 0;
}

int cgroup_kill_below(int dir)
{
	struct pids p = {0};
	auto_fd int all = sys_openat(dir, "cgroup.kill", O_WRONLY, 0);

	if (all >= 0 && sys_write_all(all, "1", 1) == 0)
		return 0;
	if (pids_below(dir, &p) < 0) {
		free(p.v);
		return -1;
	}
	for (size_t i = 0; i < p.n; i++)
		kill(p.v[i], SIGKILL);
	free(p.v);
	return 0;
}

/* ---- freezing ---- */

static void sleep_ms(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static int put(int dir, const char *file, const char *text)
{
	auto_fd int fd = sys_openat(dir, file, O_WRONLY, 0);

	return fd < 0 ? -1 : sys_write_all(fd, text, strlen(text));
}

/* Version 2: the kernel says when all have stopped. */
static bool stopped_v2(int dir)
{
	auto_buf struct buf text = BUF_INIT(4096);

	return cgroup_key(cgroup_text(dir, "cgroup.events", &text), "frozen") == 1;
}

/* Version 1: reading looks whether all have stopped. One that forks all the time may need more than
 * one attempt. */
static bool stopped_v1(int dir, int tries)
{
	auto_buf struct buf text = BUF_INIT(64);

	if (str_starts(cgroup_text(dir, "freezer.state", &text), "FROZEN"))
		return true;
	if (tries % 50 == 49 && put(dir, "freezer.state", "THAWED") == 0)
		sleep_ms(10);
	return put(dir, "freezer.state", "FROZEN") < 0; /* gone: nothing runs in it */
}

int cgroup_freeze(const struct cgroup *c, bool frozen, struct err *e)
{
	int dir = cgroup_dir_of(c, "freezer");
	const char *file = c->v2 ? "cgroup.freeze" : "freezer.state";

	if (dir < 0)
		return err_set(e, ERR_UNSUPPORTED, "no freezer cgroup: it cannot be paused");
	if (put(dir, file, c->v2 ? (frozen ? "1" : "0") : (frozen ? "FROZEN" : "THAWED")) < 0)
		return err_sys(e, "cgroup %s: %s", c->place.path, file);
	for (int i = 0; i < FREEZE_TRIES; i++) {
		if (!frozen || (c->v2 ? stopped_v2(dir) : stopped_v1(dir, i)))
			return 0;
		sleep_ms(i < 20 ? 1 : 10);
	}
	if (put(dir, file, c->v2 ? "0" : "THAWED") < 0)
		err_hint(e, "and it could not be thawed again");
	return err_set(e, ERR_SYSTEM, "cgroup %s: its processes do not stop", c->place.path);
}

int cgroup_frozen(const struct cgroup *c, struct err *e)
{
	int dir = cgroup_dir_of(c, "freezer");
	auto_buf struct buf text = BUF_INIT(64);

	if (dir < 0)
		return 0;
	if (file_read(dir, c->v2 ? "cgroup.freeze" : "freezer.state", &text, e) < 0)
		return -1;
	return text.data && (c->v2 ? text.data[0] == '1' : text.data[0] == 'F');
}

/* Stopped while it is read, so that none is missed that is just being made: as well as that goes,
 * for what does not stop is to get the signal all the same. */
int cgroup_signal(const struct cgroup *c, int sig, struct err *e)
{
	auto_free pid_t *pids = NULL;
	int was = cgroup_frozen(c, e), rc;
	bool stopped;
	size_t n = 0;

	if (was < 0)
		return -1;
	if (c->ndirs && sig == SIGKILL && c->v2 && cgroup_has(c, "", "cgroup.kill"))
		return cgroup_kill_below(c->dirs[0].dir);
	stopped = !was && cgroup_dir_of(c, "freezer") >= 0 && cgroup_freeze(c, true, NULL) == 0;
	rc = cgroup_pids(c, &pids, &n, e);
	for (size_t i = 0; i < n; i++)
		kill(pids[i], sig);
	/* Version 1's frozen ones do not even die. */
	if ((stopped || (was && sig == SIGKILL)) && cgroup_freeze(c, false, rc < 0 ? NULL : e) < 0)
		return -1;
	return rc;
}
