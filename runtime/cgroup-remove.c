/* The end of a cgroup: what runs in it is killed, what was made in it goes with it. */
#include "runtime/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <signal.h>
#include <time.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"
#include "runtime/cgroup-host.h"
#include "runtime/cgroup-systemd.h"
#include "runtime/cgroup-tasks.h"

/* Killed processes leave a moment later, those with much memory after a while: about 20 s. */
enum { TRIES = 2000 };

static int remove_folder(int above, const char *name, void *ctx)
{
	(void)ctx;
	/* Busy: another round. */
	return sys_unlinkat(above, name, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != EBUSY ? -1
												: 0;
}

/* One round: kill, and remove what is empty. */
static int clear(int dir)
{
	const struct cgroup_walk w = {.leave = remove_folder};

	return cgroup_kill_below(dir) < 0 ? -1 : cgroup_walk(dir, &w);
}

/* 0 when it is gone. */
static int remove_one(const char *path)
{
	return sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}

static int remove_all(const char *path, struct err *e)
{
	for (int tries = 0; remove_one(path) < 0; tries++) {
		struct timespec pause = {.tv_nsec = tries < 20 ? 1000000 : 10000000};

		if (errno != EBUSY || tries == TRIES)
			return err_sys(e, "remove cgroup %s", path);
		auto_fd int dir = sys_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (dir >= 0 && clear(dir) < 0)
			return err_set(
				e, ERR_SYSTEM, "remove cgroup %s: what is in it does not go", path);
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Where the kernel cannot kill a whole cgroup, a fork bomb is faster than we: stopped, read, and
 * killed when it goes on. */
static int kill_stopped(const struct cgroup_place *p, struct err *e)
{
	struct cgroup c;
	int rc;

	if (cgroup_open(&c, p, e) < 0)
		return -1;
	rc = c.ndirs ? cgroup_signal(&c, SIGKILL, e) : 0;
	cgroup_fini(&c);
	return rc;
}

static int destroy_v1(const struct cgroup_place *p, struct err *e)
{
	char path[CGROUP_PATH_MAX + 128];
	struct cgroup_lines lines;
	bool busy = false;
	int rc = 0;

	if (cgroup_lines_read(&lines, 0, false, e) < 0)
		return -1;
	for (size_t i = 0; i < lines.n; i++) { /* mostly nothing is left in it */
		snprintf(path, sizeof(path), CGROUP_ROOT "/%s%s", lines.v[i].hierarchy, p->path);
		busy = remove_one(path) < 0 || busy;
	}
	if (!busy)
		return 0;
	if (kill_stopped(p, e) < 0)
		return -1;
	for (size_t i = 0; i < lines.n; i++) {
		snprintf(path, sizeof(path), CGROUP_ROOT "/%s%s", lines.v[i].hierarchy, p->path);
		if (remove_all(path, rc ? NULL : e) < 0)
			rc = -1;
	}
	return rc;
}

/* In a scope systemd would first ask processes to end, and wait: they are killed by us, and it
 * finds nothing to wait for. */
int cgroup_destroy(const struct cgroup_place *p, struct err *e)
{
	char path[CGROUP_PATH_MAX + 128];
	int rc = 0;

	snprintf(path, sizeof(path), CGROUP_ROOT "%s", p->path);
	if (p->path[0])
		rc = cgroup_is_v2() ? remove_all(path, e) : destroy_v1(p, e);
	if (p->unit[0] && cgroup_systemd_stop(p, rc < 0 ? NULL : e) < 0)
		return -1;
	return rc;
}
