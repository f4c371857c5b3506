#include "runtime/container.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/child.h"
#include "runtime/dev.h"
#include "runtime/helper.h"
#include "runtime/hooks.h"
#include "runtime/idmap.h"
#include "runtime/lsm.h"
#include "runtime/netdev.h"
#include "runtime/ns.h"
#include "runtime/process.h"
#include "runtime/procfs.h"
#include "runtime/rdt.h"
#include "runtime/rootfs.h"
#include "runtime/sync.h"

struct container {
	const struct container_options *o; /* while it is created */
	const struct spec *spec;
	char *id, *bundle;
	struct arena mem;
	struct mount_plan *mounts;
	struct cgroup_place place;
	struct cgroup cgroup;
	bool has_cgroup;
	pid_t pid; /* 0: none, or reaped */
	int pidfd, sync, terminal;
	int devices;  /* of dev_prepare(), while it is created; -1: none */
	bool started; /* START is sent */
	bool has_rdt;
};

/* Is there something that only we can do, and only when its namespaces exist? */
static bool needs_gate(const struct container *c)
{
	const struct spec *s = c->spec;

	return spec_new_ns(s, NS_USER) || *c->place.unit || s->rdt.given || s->nnet_devices;
}

static bool has_create_hooks(const struct spec *s)
{
	return s->hooks[HOOK_PRESTART].n || s->hooks[HOOK_CREATE_RUNTIME].n ||
	       s->hooks[HOOK_CREATE_CONTAINER].n;
}

/* Everything that can be found wrong without a process, found without one. */
static int prepare(struct container *c, struct err *e)
{
	const struct spec *s = c->spec;

	if (!s->root && spec_new_ns(s, NS_MOUNT))
		return err_set(e, ERR_CORRUPT, "config.json: missing key 'root'");
	if (lsm_check(&s->process, e) < 0 || procfs_check_sysctls(s, e) < 0 ||
		mounts_plan(s, &c->mem, &c->mounts, e) < 0)
		return -1;
	if (!*c->place.path && !*c->place.unit)
		return 0;
	if (cgroup_create(&c->cgroup, &c->place, &s->resources, e) < 0)
		return -1;
	c->has_cgroup = true;
	return 0;
}

/* ---- the clone ---- */

static pid_t clone_child(struct container *c, uint64_t more, struct err *e)
{
	int into = c->has_cgroup ? cgroup_clone_fd(&c->cgroup) : -1;
	struct clone_args a = {
		.flags = ns_clone_flags(c->spec) | CLONE_PIDFD | more,
		.pidfd = (uintptr_t)&c->pidfd,
		.exit_signal = more & CLONE_PARENT ? 0 : SIGCHLD,
	};
	long pid;

	if (into >= 0) {
		a.flags |= CLONE_INTO_CGROUP;
		a.cgroup = (unsigned)into;
	}
	pid = syscall(SYS_clone3, &a, sizeof(a));
	if (pid >= 0)
		return (pid_t)pid;
	err_sys(e, "clone into new namespaces");
	if (geteuid() != 0 && !spec_has_ns(c->spec, NS_USER))
		err_hint(e, "without root the config needs a user namespace");
	return -1;
}

/* /proc/PID/uid_map of a process that is not dumpable belongs to root: see child.c. */
static bool stays_seen(const struct container *c)
{
	return spec_new_ns(c->spec, NS_USER) && geteuid() != 0;
}

static pid_t join_and_clone(void *ctx, int *out, struct err *e)
{
	struct container *c = ctx;

	(void)out;
	/* Who is in the pid namespace already sees the child from its first moment. */
	if (!stays_seen(c))
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return ns_join(c->spec, e) < 0 ? -1 : clone_child(c, CLONE_PARENT, e);
}

static int spawn(struct container *c, int root, struct err *e)
{
	bool seen = stays_seen(c);
	char score[PROCESS_SCORE_SIZE];
	int pair[2];

	if (process_score(&c->spec->process, score, e) < 0)
		return -1;
	if (sys_socketpair(pair) < 0)
		return err_sys(e, "socketpair");
	auto_fd int theirs = pair[1];

	c->sync = pair[0];
	if (ns_needs_helper(c->spec)) {
		const struct helper h = {join_and_clone, c, -1, c->sync, &theirs, -1};

		c->pid = helper_clone(&h, &c->pidfd, e);
	} else {
		c->pid = clone_child(c, 0, e);
	}
	if (c->pid == 0) {
		struct child child = {c->o, c->mounts, c->has_cgroup ? &c->cgroup : NULL, root,
			c->devices, theirs, seen, needs_gate(c)};

		close(c->sync);
		child_main(&child);
	}
	if (process_score_back(score, c->pid < 0 ? NULL : e) == 0 && c->pid > 0)
		return 0;
	if (c->pid < 0)
		c->pid = 0;
	return -1;
}

/* ---- the supervisor's side of what child.c does ---- */

static int say(const struct container *c, enum sync_kind kind, struct err *e)
{
	struct sync_msg m = {.kind = kind, .pid = c->pid};

	return sync_say(c->sync, &m, e);
}

/* It has ended without a word: what the kernel knows of that. */
static int explain_end(struct container *c, struct err *e)
{
	siginfo_t info = {0};

	if (waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOWAIT) < 0 ||
		info.si_code != CLD_KILLED)
		return -1;
	err_set(e, ERR_SYSTEM, "the container's process was killed by signal %d during set-up",
		info.si_status);
	if (info.si_status == SIGKILL && container_out_of_memory(c))
		err_hint(e, "linux.resources.memory.limit is too low to start in");
	return -1;
}

static int expect(struct container *c, enum sync_kind kind, int *fd, struct err *e)
{
	struct sync_msg m = {.kind = SYNC_NEVER};

	if (c->o && c->o->wait && c->o->wait(c->o->wait_ctx, c->sync, e) < 0)
		return -1;
	if (sync_expect(c->sync, kind, &m, fd, e) == 0)
		return 0;
	return m.kind == SYNC_END ? explain_end(c, e) : -1;
}

/* It waits, alone in its new namespaces. */
static int at_gate(struct container *c, struct err *e)
{
	const struct spec *s = c->spec;

	if (expect(c, SYNC_ALONE, NULL, e) < 0)
		return -1;
	if (spec_new_ns(s, NS_USER) && idmap_write(c->pid, &s->uids, &s->gids, e) < 0)
		return -1;
	if (c->has_cgroup && cgroup_scope(&c->cgroup, c->pid, &s->resources, e) < 0)
		return -1;
	if (s->rdt.given) {
		c->has_rdt = true;
		if (rdt_apply(s, c->id, c->pid, e) < 0)
			return -1;
	}
	if (s->nnet_devices && netdev_move(s, c->pid, e) < 0)
		return -1;
	return say(c, SYNC_GO, e);
}

static int at_hooks(struct container *c, struct err *e)
{
	auto_free char *state = NULL;

	if (expect(c, SYNC_MOUNTED, NULL, e) < 0)
		return -1;
	state = hook_state_text(c->spec, c->id, "creating", c->pid, c->bundle);
	if (hooks_run(c->spec, HOOK_PRESTART, state, e) < 0 ||
		hooks_run(c->spec, HOOK_CREATE_RUNTIME, state, e) < 0)
		return -1;
	return say(c, SYNC_GO, e);
}

static int send_start(struct container *c, struct err *e)
{
	c->started = true;
	return say(c, SYNC_START, e);
}

static int follow_child(struct container *c, struct err *e)
{
	bool gate = needs_gate(c), hooks = has_create_hooks(c->spec);

	if (gate && at_gate(c, e) < 0)
		return -1;
	/* While the child mounts. It starts nothing before START. */
	if (c->has_cgroup && (cgroup_limit(&c->cgroup, &c->spec->resources, e) < 0 ||
				     cgroup_give(&c->cgroup, c->spec, e) < 0))
		return -1;
	/* Waiting for this in the child costs two changes of process, on a busy host much more. */
	if (c->o->at_once && !hooks && send_start(c, e) < 0)
		return -1;
	if (hooks && at_hooks(c, e) < 0)
		return -1;
	if (expect(c, SYNC_READY, &c->terminal, e) < 0)
		return -1;
	return c->o->at_once && hooks ? send_start(c, e) : 0;
}

/* Without root the root folder, and what is bound, can be copied only inside a user namespace: the
 * child does it then. */
static int open_trees(struct container *c, int *root, struct err *e)
{
	bool ours = spec_new_ns(c->spec, NS_MOUNT) && geteuid() == 0;

	*root = -1;
	if (!ours)
		return 0;
	auto_fd int bundle = sys_open(c->bundle, O_PATH | O_DIRECTORY, 0);
	if (bundle < 0)
		return err_sys(e, "bundle %s", c->bundle);
	if (c->o->root < 0) {
		*root = rootfs_open(c->bundle, c->spec->root, e);
		if (*root < 0)
			return -1;
	}
	if (mounts_open(c->mounts, c->spec, bundle, e) < 0)
		return -1;
	return dev_prepare(c->spec, &c->devices, e);
}

static int create(struct container *c, struct err *e)
{
	auto_fd int opened = -1;
	int rc;

	if (prepare(c, e) < 0)
		return -1;
	rc = open_trees(c, &opened, e);
	if (rc == 0)
		rc = spawn(c, c->o->root < 0 ? opened : c->o->root, e);
	mounts_close(c->mounts, c->spec->nmounts);
	sys_close_ref(&c->devices);
	return rc < 0 ? -1 : follow_child(c, e);
}

int container_create(struct container **out, const struct container_options *o, struct err *e)
{
	struct container *c = mem_alloc(sizeof(*c));

	c->o = o;
	c->spec = o->spec;
	c->id = mem_strdup(o->id);
	c->bundle = mem_strdup(o->bundle);
	c->place = o->cgroup;
	c->pidfd = c->sync = c->terminal = c->devices = -1;
	if (create(c, e) == 0) {
		c->o = NULL;
		*out = c;
		return 0;
	}
	if (container_delete(c, NULL) < 0)
		err_hint(e, "and its cgroup could not be removed");
	return -1;
}

int container_wait_started(const struct container_start *o, int *status, struct err *e)
{
	for (;;) {
		auto_free char *text = NULL;
		auto_fd int fd = -1;
		struct sync_msg m;

		if (sync_recv(o->sock, &m, &fd, e) < 0)
			return -1;
		if (m.kind == SYNC_END)
			return 0;
		if (m.kind == SYNC_FAILED) {
			*status = m.status;
			if (e)
				*e = m.err;
			return -1;
		}
		if (m.kind != SYNC_LISTENER || fd < 0)
			return err_set(e, ERR_SYSTEM, "unexpected message %d", m.kind);
		text = hook_agent_text(o->spec, o->id, o->status, o->first, o->pid, o->bundle);
		if (seccomp_send_listener(&o->spec->seccomp, fd, text, e) < 0)
			return -1;
	}
}

int container_start_at(const struct container_start *o, int *status, struct err *e)
{
	struct sync_msg start = {.kind = SYNC_START, .pid = o->pid};

	*status = 125;
	if (sync_say(o->sock, &start, e) < 0)
		return -1;
	return container_wait_started(o, status, e);
}

int container_start(struct container *c, int *status, struct err *e)
{
	const struct container_start o = {
		c->spec, c->id, c->bundle, "created", c->pid, c->pid, c->sync};

	*status = 125;
	if (!c->started && send_start(c, e) < 0)
		return -1;
	return container_wait_started(&o, status, e);
}

pid_t container_pid(const struct container *c)
{
	return c->pid;
}

int container_pidfd(const struct container *c)
{
	return c->pidfd;
}

const struct cgroup_place *container_cgroup(const struct container *c)
{
	return c->has_cgroup ? &c->cgroup.place : &c->place;
}

int container_take_terminal(struct container *c)
{
	return steal_fd(&c->terminal);
}

bool container_out_of_memory(const struct container *c)
{
	return c->has_cgroup && cgroup_oom_kills(&c->cgroup) > 0;
}

bool container_out_of_pids(const struct container *c)
{
	return c->has_cgroup && cgroup_pids_refused(&c->cgroup) > 0;
}

static void container_free(struct container *c)
{
	cgroup_fini(&c->cgroup);
	sys_close_ref(&c->pidfd);
	sys_close_ref(&c->sync);
	sys_close_ref(&c->terminal);
	arena_fini(&c->mem);
	free(c->id);
	free(c->bundle);
	free(c);
}

int container_release(struct container *c, struct err *e)
{
	/* It answers when it no longer depends on us: before that our end would be its own. */
	if (!c->started && (say(c, SYNC_DETACH, e) < 0 || expect(c, SYNC_READY, NULL, e) < 0))
		return -1;
	container_free(c);
	return 0;
}

int container_delete(struct container *c, struct err *e)
{
	siginfo_t info;
	int rc = 0;

	if (!c)
		return 0;
	if (c->pid) {
		/* The first process of a pid namespace takes all with it. One that was reaped is
		 * not there any more, and no other can have its pidfd. */
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
		while (waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | __WALL) < 0 &&
			errno == EINTR)
			;
	}
	if (c->has_cgroup)
		rc = cgroup_destroy(&c->cgroup.place, e);
	if (c->has_rdt && rdt_remove(c->spec, c->id, rc ? NULL : e) < 0)
		rc = -1;
	container_free(c);
	return rc;
}
