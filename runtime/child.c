#include "runtime/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/dev.h"
#include "runtime/door.h"
#include "runtime/hooks.h"
#include "runtime/ns.h"
#include "runtime/process.h"
#include "runtime/procfs.h"
#include "runtime/rootfs.h"
#include "runtime/sync.h"

/* State of the steps; descriptors are closed by exec or by exit. */
struct build {
	struct child *c;
	const struct spec *s;
	struct mounts_place place;
	int null, door;
	int master, slave;
	pid_t pid; /* ours, as the supervisor sees it; 0: not told */
};

/* ---- what the supervisor is waited for ---- */

static int tell(struct build *b, enum sync_kind kind, int fd, struct err *e)
{
	struct sync_msg m = {.kind = kind};

	return sync_send(b->c->sync, &m, fd, e);
}

static int hear(struct build *b, struct sync_msg *m, struct err *e)
{
	if (sync_recv(b->c->sync, m, NULL, e) < 0)
		return -1;
	if (m->kind == SYNC_END)
		_exit(125); /* the supervisor gave up, and has said why */
	if (m->pid)
		b->pid = m->pid;
	return 0;
}

/* Tell that we got here, and wait until the supervisor has done its part. */
static int pause_at(struct build *b, enum sync_kind kind, struct err *e)
{
	struct sync_msg m;

	if (tell(b, kind, -1, e) < 0 || hear(b, &m, e) < 0)
		return -1;
	return m.kind == SYNC_GO ? 0 : err_set(e, ERR_SYSTEM, "unexpected message %d", m.kind);
}

/* ---- steps ---- */

static int step_alone(struct build *b, struct err *e)
{
	/* First, so that no half-made container outlives a killed runtime and holds its locks. */
	if (process_follow(b->c->sync, e) < 0)
		return -1;
	/* Until exec this process is the runtime, with its memory and descriptors: nothing inside
	 * may look at it. (But a supervisor without root must be able to write to our
	 * /proc/PID/uid_map.) */
	if (!b->c->seen && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "PR_SET_DUMPABLE");
	if (process_session(b->c->o->keep_keyring, e) < 0)
		return -1;
	umask(0);
	if (b->c->gate && pause_at(b, SYNC_ALONE, e) < 0)
		return -1;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? err_sys(e, "PR_SET_DUMPABLE") : 0;
}

static int step_cgroup(struct build *b, struct err *e)
{
	if (b->c->cgroup && cgroup_join(b->c->cgroup, e) < 0)
		return -1;
	return ns_cgroup(b->s, e);
}

static int step_ids(struct build *b, struct err *e)
{
	return process_become_root(b->s, e);
}

static int step_names(struct build *b, struct err *e)
{
	return ns_configure(b->s, e);
}

static int step_root(struct build *b, struct err *e)
{
	/* Descriptors of the supervisor's mount namespace cannot be bound in this one: opened
	 * again. */
	b->place.bundle = sys_open(b->c->o->bundle, O_PATH | O_DIRECTORY, 0);
	/* The root of a user namespace may not get there: then the supervisor, who could, has
	 * opened what lies in it. */
	if (b->place.bundle < 0 && !(spec_has_ns(b->s, NS_USER) && errno == EACCES))
		return err_sys(e, "bundle %s", b->c->o->bundle);
	b->null = dev_null(e); /* before any file of the image can be met */
	if (b->null < 0)
		return -1;
	if (b->place.root < 0)
		b->place.root = rootfs_open(b->c->o->bundle, b->s->root, e);
	if (b->place.root < 0 || rootfs_attach(b->place.root, b->s, e) < 0)
		return -1;
	return own_mounts_add(&b->place.own, b->place.root, e);
}

static int step_mounts(struct build *b, struct err *e)
{
	return mounts_make(&b->place, b->c->mounts, b->s->nmounts, e);
}

static int step_devices(struct build *b, struct err *e)
{
	return dev_fill(b->place.root, b->s, &b->place.own, b->c->devices, e);
}

static int step_fill(struct build *b, struct err *e)
{
	const struct container_options *o = b->c->o;

	return o->fill ? o->fill(o->fill_ctx, b->place.root, b->place.own.ids, b->place.own.n, e) : 0;
}

/* An image may name a working directory that it does not have. */
static int step_workdir(struct build *b, struct err *e)
{
	if (!b->s->process.given)
		return 0;
	auto_fd int fd =
		mount_point(b->place.root, b->s->process.cwd, POINT_DIR, false, &b->place.own, e);

	return fd < 0 ? err_ctx(e, "working directory") : 0;
}

/* A procfs of the container's pid namespace, where anything is to be written to one: that of its
 * config, else one that is attached nowhere. */
static int step_procfs(struct build *b, struct err *e)
{
	const struct spec_process *p = &b->s->process;

	if (b->place.proc < 0 &&
		(b->s->sysctls.n || p->apparmor || p->selinux || spec_has_ns(b->s, NS_USER))) {
		b->place.proc = procfs_open(e);
		if (b->place.proc < 0)
			return -1;
	}
	return b->s->sysctls.n ? procfs_sysctls(b->place.proc, b->s, e) : 0;
}

static int step_masks(struct build *b, struct err *e)
{
	if (mounts_readonly(b->place.root, &b->s->readonly, e) < 0)
		return -1;
	return mounts_mask(b->place.root, b->null, &b->s->masked, e);
}

static int step_terminal(struct build *b, struct err *e)
{
	const struct spec_process *p = &b->s->process;

	if (!p->terminal)
		return 0;
	b->master = dev_terminal(b->place.root, &b->place.own, &b->slave, e);
	return b->master < 0 ? -1 : process_terminal(b->slave, p, e);
}

/* The hooks of the supervisor's side, then those of ours, while the host's tree is still there. */
static int step_hooks(struct build *b, struct err *e)
{
	const struct spec_hooks *h = b->s->hooks;
	auto_free char *state = NULL;

	if (!h[HOOK_PRESTART].n && !h[HOOK_CREATE_RUNTIME].n && !h[HOOK_CREATE_CONTAINER].n)
		return 0;
	if (pause_at(b, SYNC_MOUNTED, e) < 0)
		return -1;
	state = hook_state_text(b->s, b->c->o->id, "created", b->pid, b->c->o->bundle);
	return hooks_run(b->s, HOOK_CREATE_CONTAINER, state, e);
}

static int step_pivot(struct build *b, struct err *e)
{
	if (mounts_seal(&b->place, e) < 0)
		return -1;
	return rootfs_pivot(b->place.root, b->s, b->c->o->no_pivot, e);
}

static int step_streams(struct build *b, struct err *e)
{
	const int tty[3] = {b->slave, b->slave, b->slave};

	return process_streams(b->slave >= 0 ? tty : b->c->o->stdio, &b->s->process.user, e);
}

/* In this order: each relies on what those before it made. Those marked need a mount namespace that
 * is ours to fill: one that was joined is what it is. */
static const struct {
	int (*step)(struct build *b, struct err *e);
	bool fills;
} steps[] = {
	{step_alone, false},
	{step_cgroup, false},
	{step_ids, false},
	{step_names, false},
	{step_root, true},
	{step_mounts, true},
	{step_devices, true},
	{step_fill, true},
	{step_workdir, true},
	{step_procfs, false},
	{step_masks, true},
	{step_terminal, true},
	{step_hooks, false},
	{step_pivot, true},
	{step_streams, false},
};

/* ---- from READY to the program ---- */

/* Nothing that leads out of the container stays open, from before the wait on: it may be long, and
 * whoever started us may wait for the end of a descriptor that we got from it. */
static int close_others(struct build *b, struct err *e)
{
	int *keep[] = {&b->c->sync, &b->door, &b->place.proc};

	return process_close_others(b->c->o->preserve_fds, keep, 3, e);
}

/* Live on without the supervisor that made us, until another one says START: one that connects and
 * goes away again (it was killed) has changed nothing. */
static int wait_at_door(struct build *b, struct sync_msg *m, struct err *e)
{
	if (listen(b->door, 1) < 0)
		return err_sys(e, "listen");
	if (process_unfollow(e) < 0 || tell(b, SYNC_READY, -1, e) < 0)
		return -1;
	do {
		sys_close_ref(&b->c->sync);
		b->c->sync = door_open(b->door, e);
		if (b->c->sync < 0 || sync_recv(b->c->sync, m, NULL, e) < 0)
			return -1;
	} while (m->kind == SYNC_END);
	sys_close_ref(&b->door);
	b->pid = m->pid;
	return 0;
}

static int wait_for_start(struct build *b, struct err *e)
{
	struct sync_msg m;

	if (hear(b, &m, e) < 0)
		return -1;
	if (m.kind == SYNC_DETACH && b->door >= 0 && wait_at_door(b, &m, e) < 0)
		return -1;
	if (m.kind != SYNC_START)
		return err_set(e, ERR_SYSTEM, "unexpected message %d", m.kind);
	return b->c->o->detach ? process_unfollow(e) : 0;
}

static int run_start_hooks(struct build *b, struct err *e)
{
	auto_free char *state = NULL;

	if (!b->s->hooks[HOOK_START_CONTAINER].n)
		return 0;
	state = hook_state_text(b->s, b->c->o->id, "created", b->pid, b->c->o->bundle);
	return hooks_run(b->s, HOOK_START_CONTAINER, state, e);
}

static int send_listener(void *ctx, int fd, struct err *e)
{
	struct build *b = ctx;

	return tell(b, SYNC_LISTENER, fd, e);
}

/* Who creates now and starts later wants to hear now. */
static int find_program(struct build *b, int *status, struct err *e)
{
	const struct spec_process *p = &b->s->process;

	return p->given && !b->c->o->at_once ? process_find(&p->args, &p->env, status, e) : 0;
}

static int become_program(struct build *b, int *status, struct err *e)
{
	const struct spec_process *p = &b->s->process;

	if (close_others(b, e) < 0 || wait_for_start(b, e) < 0)
		return -1;
	if (!p->given)
		return err_set(e, ERR_USAGE, "the config has no process to start");
	struct process_confinement how = {b->s, p, b->c->o->filter, b->place.proc,
		b->c->o->detach ? -1 : b->c->sync, send_listener, b};

	if (process_confine(&how, e) < 0)
		return -1;
	sys_close_ref(&b->place.proc);
	/* Programs of the image, and confined as its own is. */
	if (run_start_hooks(b, e) < 0)
		return -1;
	process_reset_signals();
	return process_exec(&p->args, &p->env, status, e);
}

void child_main(struct child *c)
{
	struct build b = {
		.c = c, .s = c->o->spec, .null = -1, .door = c->o->door, .master = -1, .slave = -1};
	bool fills = spec_new_ns(b.s, NS_MOUNT);
	struct err e = {0};
	int status = 125;

	b.place = (struct mounts_place){
		.spec = b.s, .root = c->root, .bundle = -1, .cgroup = c->cgroup, .proc = -1};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if ((fills || !steps[i].fills) && steps[i].step(&b, &e) < 0) {
			sync_fail(c->sync, status, &e);
			_exit(status);
		}
	if (find_program(&b, &status, &e) < 0 || tell(&b, SYNC_READY, b.master, &e) < 0 ||
		become_program(&b, &status, &e) < 0)
		sync_fail(c->sync, status, &e);
	_exit(status);
}
