#include "runtime/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"
#include "runtime/container.h"
#include "runtime/dev.h"
#include "runtime/helper.h"
#include "runtime/ns.h"
#include "runtime/process.h"
#include "runtime/procfs.h"
#include "runtime/sched.h"
#include "runtime/sync.h"

enum { EXEC_FAILED = 255 };

/* ---- the cgroup ---- */

static int descend(struct cgroup *c, size_t i, const char *path, struct err *e)
{
	struct cgroup_dir *d = &c->dirs[i];

	path += strspn(path, "/");
	if (!*path)
		return 0;
	auto_fd int dir = sys_open_beneath(d->dir, path, O_PATH | O_DIRECTORY, 0);
	if (dir < 0)
		return err_sys(e, "cgroup %s below the container's", path);
	close(d->dir);
	d->dir = steal_fd(&dir);
	return 0;
}

/* Is one of "cpu,memory" among the controllers of a hierarchy, "cpu,cpuacct"? */
static bool names_one(const char *hierarchy, const char *list, size_t n)
{
	auto_free char *copy = mem_printf("%.*s", (int)n, list);
	char *rest = copy, *name;

	while ((name = strsep(&rest, ",")))
		if (cgroup_names(hierarchy, name))
			return true;
	return false;
}

/* "PATH", or "CONTROLLER,...:PATH" */
static int enter_sub(struct cgroup *c, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	bool found = false;

	for (size_t i = 0; i < c->ndirs; i++) {
		const char *hierarchy = c->dirs[i].hierarchy;

		if (colon && !names_one(hierarchy, text, (size_t)(colon - text)))
			continue;
		found = true;
		if (descend(c, i, colon ? colon + 1 : text, e) < 0)
			return -1;
	}
	if (found)
		return 0;
	return err_set(e, ERR_NOT_FOUND, "cgroup %s: the container has no such cgroup", text);
}

/* Where the container's first process is, below its cgroup: with controllers passed on to those
 * below, that one takes no process itself. */
static int follow_first(const struct exec_options *o, struct err *e)
{
	const char *top = o->cgroup->place.path;
	char path[32], text[CGROUP_PATH_MAX + 256];
	const char *line;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)o->first);
	auto_fd int fd = sys_open(path, O_RDONLY, 0);
	n = fd < 0 ? -1 : sys_read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return err_sys(e, "%s", path);
	text[n] = '\0';
	if (syscall(SYS_pidfd_send_signal, o->pidfd, 0, NULL, 0) < 0) /* was it still that one? */
		return err_sys(e, "the container's first process");
	line = str_starts(text, "0::") ? text + 3 : strstr(text, "\n0::");
	text[strcspn(text, "\n")] = '\0';
	if (!line || !str_starts(line, top) || line[strlen(top)] != '/')
		return err_set(e, ERR_SYSTEM, "the container's cgroup takes no processes");
	return descend(o->cgroup, 0, line + strlen(top), e);
}

struct child {
	const struct exec_options *o;
	const struct cgroup *cgroup;
	int sync, pidfd, proc, master;
	int stdio[3];
};

/* ---- the helper: on the host's side of the pid namespace ---- */

static int step_cgroup(struct child *c, struct err *e)
{
	if (c->cgroup && cgroup_join(c->cgroup, e) < 0)
		return -1;
	return sched_affinity(c->o->process->exec_cpus_final, e);
}

/* Before the join: in a user namespace the kernel might not let us make one. One of our own pid
 * namespace knows the process inside, too. */
static int step_procfs(struct child *c, struct err *e)
{
	const struct spec_process *p = c->o->process;

	if (!p->apparmor && !p->selinux && !spec_has_ns(c->o->spec, NS_USER))
		return 0;
	c->proc = procfs_open(e);
	return c->proc < 0 ? -1 : 0;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static int join_failed(const struct child *c, const char *what, struct err *e)
{
	if (has_ended(c->pidfd))
		return err_set(e, ERR_NOT_FOUND, "the container has ended");
	return err_sys(e, "%s", what);
}

static int step_join(struct child *c, struct err *e)
{
	bool user = spec_has_ns(c->o->spec, NS_USER);
	int all = 0, rc = 0;

	for (enum ns_kind k = 0; k < NS_KINDS; k++)
		if (spec_has_ns(c->o->spec, k) && k != NS_USER)
			all |= ns_flag(k);
	/* Namespaces that the host's root owns can be joined before the user namespace only, those
	 * of a user who is no root after it only. */
	if (all)
		rc = setns(c->pidfd, all);
	if (rc < 0 && !(user && errno == EPERM))
		return join_failed(c, "join the container's namespaces", e);
	/* EINVAL: we are in it already. */
	if (user && setns(c->pidfd, CLONE_NEWUSER | (rc < 0 ? all : 0)) < 0 && errno != EINVAL)
		return join_failed(c, "join the container's user namespace", e);
	return process_become_root(c->o->spec, e);
}

/* The child is seen by others of the container from its first moment, and with CAP_SYS_PTRACE they
 * may use what it has: so nothing that leads out of the container is left by then, no descriptor
 * and no root, and it is born not dumpable. */
static pid_t join_and_clone(void *ctx, int *out, struct err *e)
{
	struct child *c = ctx;
	struct clone_args a = {.flags = CLONE_PARENT};
	int *keep[] = {
		&c->sync, &c->pidfd, &c->proc, &c->stdio[0], &c->stdio[1], &c->stdio[2], out};
	pid_t pid;

	if (process_follow(c->sync, e) < 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "PR_SET_DUMPABLE");
	if (step_cgroup(c, e) < 0 || step_procfs(c, e) < 0 ||
		process_close_others(c->o->preserve_fds, keep, 7, e) < 0 || step_join(c, e) < 0)
		return -1;
	pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));
	/* A pid namespace whose first process has ended takes no more: ENOMEM. */
	return pid < 0 ? join_failed(c, "clone into the container", e) : pid;
}

/* ---- the child ---- */

static int step_alone(struct child *c, struct err *e)
{
	return process_follow(c->sync, e) < 0 ? -1 : process_session(c->o->keep_keyring, e);
}

static int step_streams(struct child *c, struct err *e)
{
	const struct spec_process *p = c->o->process;
	auto_fd int slave = -1;

	if (!p->terminal)
		return process_streams(c->stdio, &p->user, e);
	auto_fd int root = sys_open("/", O_PATH | O_DIRECTORY, 0);
	if (root < 0)
		return err_sys(e, "open /");
	c->master = dev_terminal(root, NULL, &slave, e);
	if (c->master < 0 || process_terminal(slave, p, e) < 0)
		return -1;
	return process_streams((int[]){slave, slave, slave}, &p->user, e);
}

static int tell(struct child *c, enum sync_kind kind, int fd, struct err *e)
{
	struct sync_msg m = {.kind = kind};

	return sync_send(c->sync, &m, fd, e);
}

/* Now without what was needed to get here. */
static int step_ready(struct child *c, struct err *e)
{
	int *keep[] = {&c->sync, &c->proc};

	if (tell(c, SYNC_READY, c->master, e) < 0)
		return -1;
	return process_close_others(c->o->preserve_fds, keep, 2, e);
}

static int (*const steps[])(struct child *c, struct err *e) = {
	step_alone, step_streams, step_ready};

static int send_listener(void *ctx, int fd, struct err *e)
{
	return tell(ctx, SYNC_LISTENER, fd, e);
}

static int become_program(struct child *c, int *status, struct err *e)
{
	const struct exec_options *o = c->o;
	struct process_confinement how = {o->spec, o->process, o->filter, c->proc,
		o->detach ? -1 : c->sync, send_listener, c};

	if ((o->detach && process_unfollow(e) < 0) || process_confine(&how, e) < 0)
		return -1;
	sys_close_ref(&c->proc);
	process_reset_signals();
	return process_exec(&o->process->args, &o->process->env, status, e);
}

static void __attribute__((noreturn)) child_main(struct child *c)
{
	struct err e = {0};
	int status = EXEC_FAILED;
	size_t i = 0;

	while (i < sizeof(steps) / sizeof(steps[0]) && steps[i](c, &e) == 0)
		i++;
	if (i < sizeof(steps) / sizeof(steps[0]) || become_program(c, &status, &e) < 0)
		sync_fail(c->sync, status, &e);
	_exit(status);
}

/* ---- the parent ---- */

static int spawn(struct exec *x, const struct exec_options *o, int sock, int theirs, int cancel,
	struct err *e)
{
	const struct cgroup *own = o->cgroup && o->cgroup->ndirs ? o->cgroup : NULL;
	struct child c = {
		o, own, theirs, o->pidfd, -1, -1, {o->stdio[0], o->stdio[1], o->stdio[2]}};
	struct helper h = {
		join_and_clone, &c, own ? cgroup_clone_fd(own) : -1, sock, &c.sync, cancel};
	struct err why = {0};

	x->pid = helper_clone(&h, &x->pidfd, &why);
	if (x->pid < 0 && own && own->v2 && !o->sub_cgroups.n &&
		(why.sys == EBUSY || why.sys == EOPNOTSUPP)) {
		if (follow_first(o, e) < 0)
			return -1;
		h.cgroup = cgroup_clone_fd(own);
		x->pid = helper_clone(&h, &x->pidfd, &why);
	}
	if (x->pid == 0)
		child_main(&c);
	if (x->pid < 0 && e)
		*e = why;
	return x->pid < 0 ? -1 : 0;
}

static int wait_started(struct exec *x, const struct exec_options *o, int sock, int cancel,
	int *status, struct err *e)
{
	const struct container_start start = {
		o->spec, o->id, o->bundle, "running", o->first, x->pid, sock};
	struct sync_msg m;

	helper_await(sock, cancel); /* from READY on it may run, and signals are for it */
	if (sync_expect(sock, SYNC_READY, &m, &x->terminal, e) == 0)
		return container_wait_started(&start, status, e);
	if (m.kind == SYNC_FAILED)
		*status = m.status;
	return -1;
}

void exec_kill(struct exec *x)
{
	siginfo_t info;

	if (x->pidfd < 0)
		return;
	syscall(SYS_pidfd_send_signal, x->pidfd, SIGKILL, NULL, 0);
	while (waitid(P_PIDFD, (id_t)x->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
}

static int start(struct exec *x, const struct exec_options *o, int *status, struct err *e)
{
	char score[PROCESS_SCORE_SIZE];
	int pair[2], rc;

	for (size_t i = 0; i < o->sub_cgroups.n; i++)
		if (enter_sub(o->cgroup, o->sub_cgroups.v[i], e) < 0)
			return -1;
	if (sched_affinity(o->process->exec_cpus_initial, e) < 0)
		return -1;
	if (sys_socketpair(pair) < 0)
		return err_sys(e, "socketpair");
	auto_fd int sock = pair[0];
	auto_fd int theirs = pair[1];
	auto_fd int cancel = helper_signals(e);

	if (cancel < 0 || process_score(o->process, score, e) < 0)
		return -1;
	rc = spawn(x, o, sock, theirs, cancel, e);
	if (process_score_back(score, rc < 0 ? NULL : e) < 0 || rc < 0)
		return -1;
	sys_close_ref(&theirs);
	return wait_started(x, o, sock, cancel, status, e);
}

int exec_start(struct exec *x, const struct exec_options *o, int *status, struct err *e)
{
	*x = (struct exec){.pidfd = -1, .terminal = -1};
	*status = EXEC_FAILED;
	if (start(x, o, status, e) == 0)
		return 0;
	exec_kill(x);
	exec_fini(x);
	return -1;
}

void exec_fini(struct exec *x)
{
	sys_close_ref(&x->pidfd);
	sys_close_ref(&x->terminal);
}
