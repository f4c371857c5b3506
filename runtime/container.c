#include "runtime/container.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "runtime/cgroup.h"
#include "runtime/child.h"
#include "runtime/ns.h"
#include "runtime/rootfs.h"
#include "runtime/sync.h"

struct container {
	const struct spec *spec;
	struct arena mem;
	struct mount_plan *mounts;
	struct seccomp_prog filter;
	struct cgroup cgroup;
	bool has_cgroup;
	pid_t pid; /* 0: none, or reaped */
	int pidfd, sync, terminal;
	bool at_once;
};

/* Everything that can be found wrong without a process, found without one. */
static int prepare(struct container *c, struct err *e)
{
	const struct spec *s = c->spec;

	if (!s->process.given)
		return err_set(e, ERR_UNSUPPORTED, "the config has no process");
	if (mounts_plan(s, &c->mem, &c->mounts, e) < 0)
		return -1;
	if (s->has_seccomp && seccomp_compile(&c->filter, &s->seccomp, e) < 0)
		return -1;
	if (!s->cgroup_path)
		return 0;
	if (cgroup_create(&c->cgroup, s->cgroup_path, &s->resources, e) < 0)
		return -1;
	c->has_cgroup = true;
	return 0;
}

static pid_t clone_child(struct container *c, struct err *e)
{
	int into = c->has_cgroup ? cgroup_clone_fd(&c->cgroup) : -1;
	struct clone_args a = {
		.flags = ns_clone_flags(c->spec) | CLONE_PIDFD,
		.pidfd = (uintptr_t)&c->pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (into >= 0) {
		a.flags |= CLONE_INTO_CGROUP;
		a.cgroup = (unsigned)into;
	}
	pid = syscall(SYS_clone3, &a, sizeof(a));
	if (pid < 0) {
		err_sys(e, "clone into new namespaces");
		return err_hint(e, "svrun needs root; running without comes in a later version");
	}
	return (pid_t)pid;
}

static int spawn(struct container *c, const struct container_options *o, int root, struct err *e)
{
	int pair[2];

	if (sys_socketpair(pair) < 0)
		return err_sys(e, "socketpair");
	auto_fd int theirs = pair[1];

	c->sync = pair[0];
	c->pid = clone_child(c, e);
	if (c->pid == 0) {
		struct child child = {c->spec, c->mounts, c->has_cgroup ? &c->cgroup : NULL,
			c->spec->has_seccomp ? &c->filter : NULL, o->bundle, root,
			{o->stdio[0], o->stdio[1], o->stdio[2]}, theirs};

		close(c->sync);
		child_main(&child);
	}
	if (c->pid < 0) {
		c->pid = 0;
		return -1;
	}
	return 0;
}

/* The next message, which should be `kind`. *status is what a failed child says. */
static int expect(struct container *c, enum sync_kind kind, int *fd, int *status, struct err *e)
{
	struct sync_msg m;

	*status = 125;
	if (sync_recv(c->sync, &m, fd, e) < 0)
		return -1;
	if (m.kind == kind)
		return 0;
	if (m.kind == SYNC_FAILED) {
		*status = m.status;
		if (e)
			*e = m.err;
		return -1;
	}
	return err_set(e, ERR_SYSTEM, "the container's first process ended during set-up");
}

static int send_start(struct container *c, struct err *e)
{
	struct sync_msg start = {.kind = SYNC_START};

	return sync_send(c->sync, &start, -1, e);
}

static int create(struct container *c, const struct container_options *o, struct err *e)
{
	int status;

	if (prepare(c, e) < 0)
		return -1;
	auto_fd int opened = o->root < 0 ? rootfs_open(o->bundle, c->spec->root, e) : -1;
	if (o->root < 0 && opened < 0)
		return -1;
	if (spawn(c, o, o->root < 0 ? opened : o->root, e) < 0)
		return -1;
	/* While the child mounts. It starts nothing before START. */
	if (c->has_cgroup && cgroup_limit(&c->cgroup, &c->spec->resources, e) < 0)
		return -1;
	/* Waiting for this in the child costs two changes of process, on a busy host much more. */
	if (c->at_once && send_start(c, e) < 0)
		return -1;
	return expect(c, SYNC_READY, &c->terminal, &status, e);
}

int container_create(struct container **out, const struct container_options *o, struct err *e)
{
	struct container *c = mem_alloc(sizeof(*c));

	c->spec = o->spec;
	c->at_once = o->at_once;
	c->pidfd = c->sync = c->terminal = -1;
	if (create(c, o, e) == 0) {
		*out = c;
		return 0;
	}
	if (container_delete(c, NULL) < 0)
		err_hint(e, "and its cgroup could not be removed");
	return -1;
}

int container_start(struct container *c, int *status, struct err *e)
{
	*status = 125;
	if (!c->at_once && send_start(c, e) < 0)
		return -1;
	return expect(c, SYNC_END, NULL, status, e);
}

pid_t container_pid(const struct container *c)
{
	return c->pid;
}

int container_pidfd(const struct container *c)
{
	return c->pidfd;
}

int container_take_terminal(struct container *c)
{
	return steal_fd(&c->terminal);
}

int container_reap(struct container *c, int *status, struct err *e)
{
	int raw;

	while (waitpid(c->pid, &raw, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for the container");
	c->pid = 0;
	*status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
	return 0;
}

bool container_out_of_memory(const struct container *c)
{
	return c->has_cgroup && cgroup_out_of_memory(&c->cgroup);
}

int container_delete(struct container *c, struct err *e)
{
	int rc = 0, status;

	if (!c)
		return 0;
	if (c->pid) {
		kill(c->pid, SIGKILL); /* the first process of a pid namespace takes all with it */
		if (container_reap(c, &status, NULL) < 0)
			c->pid = 0;
	}
	cgroup_fini(&c->cgroup);
	if (c->has_cgroup)
		rc = cgroup_destroy(c->spec->cgroup_path, e);
	sys_close_ref(&c->pidfd);
	sys_close_ref(&c->sync);
	sys_close_ref(&c->terminal);
	seccomp_prog_fini(&c->filter);
	arena_fini(&c->mem);
	free(c);
	return rc;
}
