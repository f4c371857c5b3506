#include "runtime/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/dev.h"
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
	int null;
	int master, slave;
};

static int step_alone(struct build *b, struct err *e)
{
	/* First, so that no half-made container outlives a killed svrun and holds its locks. */
	if (process_follow(b->c->sync, e) < 0)
		return -1;
	/* Until exec this process is svrun, with svrun's memory and descriptors: nothing inside may
	 * look at it. Its own session: no way to the host's terminal (TIOCSTI). */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "PR_SET_DUMPABLE");
	if (setsid() < 0)
		return err_sys(e, "setsid");
	/* And its own session keyring: what the host's session holds is not for it. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return err_sys(e, "new session keyring");
	umask(0);
	return 0;
}

static int step_cgroup(struct build *b, struct err *e)
{
	if (b->c->cgroup && cgroup_join(b->c->cgroup, e) < 0)
		return -1;
	return ns_cgroup(b->s, e);
}

static int step_names(struct build *b, struct err *e)
{
	return ns_configure(b->s, e);
}

static int step_root(struct build *b, struct err *e)
{
	/* Descriptors of the supervisor's mount namespace cannot be bound in this one: opened
	 * again. */
	b->place.bundle = sys_open(b->c->bundle, O_PATH | O_DIRECTORY, 0);
	if (b->place.bundle < 0)
		return err_sys(e, "bundle %s", b->c->bundle);
	b->null = dev_null(e); /* before any file of the image can be met */
	if (b->null < 0 || rootfs_attach(b->c->root, e) < 0)
		return -1;
	return own_mounts_add(&b->place.own, b->c->root, e);
}

static int step_mounts(struct build *b, struct err *e)
{
	return mounts_make(&b->place, b->c->mounts, b->s->nmounts, e);
}

static int step_devices(struct build *b, struct err *e)
{
	return dev_fill(b->c->root, b->s, &b->place.own, e);
}

/* An image may name a working directory that it does not have. */
static int step_workdir(struct build *b, struct err *e)
{
	auto_fd int fd =
		mount_point(b->c->root, b->s->process.cwd, POINT_DIR, false, &b->place.own, e);

	return fd < 0 ? err_ctx(e, "working directory") : 0;
}

static int step_sysctls(struct build *b, struct err *e)
{
	return b->s->nsysctls ? procfs_sysctls(b->place.proc, b->s, e) : 0;
}

static int step_masks(struct build *b, struct err *e)
{
	if (mounts_readonly(b->c->root, &b->s->readonly, e) < 0)
		return -1;
	return mounts_mask(b->c->root, b->null, &b->s->masked, e);
}

static int step_terminal(struct build *b, struct err *e)
{
	const struct spec_process *p = &b->s->process;
	struct winsize size = {
		.ws_row = (unsigned short)p->rows, .ws_col = (unsigned short)p->columns};

	if (!p->terminal)
		return 0;
	b->master = dev_terminal(b->c->root, &b->place.own, &b->slave, e);
	if (b->master < 0)
		return -1;
	if (p->rows && ioctl(b->master, TIOCSWINSZ, &size) < 0)
		return err_sys(e, "terminal size");
	if (ioctl(b->slave, TIOCSCTTY, 0) < 0)
		return err_sys(e, "controlling terminal");
	if (fchown(b->slave, p->user.uid, (gid_t)-1) < 0)
		return err_sys(e, "owner of the terminal");
	for (int i = 0; i < 3; i++)
		b->c->stdio[i] = b->slave;
	return 0;
}

static int step_pivot(struct build *b, struct err *e)
{
	return rootfs_pivot(b->c->root, b->s->root_readonly, e);
}

/* A pipe of another user can't be opened again through /dev/stdout. Pipes only: chown of a file or
 * of a terminal would reach out of the container. */
static void give_pipe(int fd, const struct spec_user *u)
{
	struct statfs fs;

	if (u->uid && fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC &&
		fchown(fd, u->uid, u->gid) < 0)
		return; /* it can be used all the same, only not opened again */
}

static int step_stdio(struct build *b, struct err *e)
{
	int copy[3];

	/* Copies first: any of the three may stand where another one goes. */
	for (int i = 0; i < 3; i++) {
		copy[i] = fcntl(b->c->stdio[i], F_DUPFD_CLOEXEC, 3);
		if (copy[i] < 0)
			return err_sys(e, "standard stream %d", i);
	}
	for (int i = 0; i < 3; i++) {
		if (sys_dup3(copy[i], i, 0) < 0)
			return err_sys(e, "standard stream %d", i);
		close(copy[i]);
		give_pipe(i, &b->s->process.user);
	}
	return 0;
}

/* In this order: each relies on what those before it made. */
static int (*const steps[])(struct build *b, struct err *e) = {step_alone, step_cgroup, step_names,
	step_root, step_mounts, step_devices, step_workdir, step_sysctls, step_masks, step_terminal,
	step_pivot, step_stdio};

static void fail(int sync, int status, const struct err *e)
{
	struct sync_msg m = {SYNC_FAILED, status, *e};

	if (sync_send(sync, &m, -1, NULL) < 0)
		_exit(125); /* nobody is left to tell */
	_exit(status);
}

/* Signals as after boot: what svrun ignores or blocks is its own business. */
static void reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int wait_for_start(int sync, struct err *e)
{
	struct sync_msg m;

	if (sync_recv(sync, &m, NULL, e) < 0)
		return -1;
	if (m.kind != SYNC_START)
		_exit(125); /* the supervisor gave up, and has said why */
	return 0;
}

/* Nothing but 0-2 may be open when the program's name is looked up: /proc/self/fd/N would lead out
 * (CVE-2024-21626). The socket, which tells how exec went, leads nowhere; it and the procfs move to
 * the lowest numbers. */
static int close_others(struct build *b, struct err *e)
{
	int sync = fcntl(b->c->sync, F_DUPFD_CLOEXEC, 5);
	int proc = b->place.proc < 0 ? -1 : fcntl(b->place.proc, F_DUPFD_CLOEXEC, 5);

	if (sync < 0 || sys_dup3(sync, 3, O_CLOEXEC) < 0)
		return err_sys(e, "move the socket");
	if (proc >= 0 && sys_dup3(proc, 4, O_CLOEXEC) < 0)
		return err_sys(e, "move the procfs");
	b->c->sync = 3;
	b->place.proc = proc < 0 ? -1 : 4;
	if (sys_close_range(proc < 0 ? 4 : 5, ~0U, 0) < 0)
		return err_sys(e, "close_range");
	return 0;
}

static int become_program(struct build *b, int *status, struct err *e)
{
	const struct spec_process *p = &b->s->process;

	if (wait_for_start(b->c->sync, e) < 0 || close_others(b, e) < 0)
		return -1;
	if (process_confine(b->s, b->c->filter, b->place.proc, b->c->sync, e) < 0)
		return -1;
	sys_close_ref(&b->place.proc);
	reset_signals();
	return process_exec(&p->args, &p->env, status, e);
}

void child_main(struct child *c)
{
	struct build b = {.c = c, .s = c->spec, .null = -1, .master = -1, .slave = -1};
	struct sync_msg ready = {.kind = SYNC_READY};
	struct err e = {0};
	int status = 125;

	b.place = (struct mounts_place){.root = c->root,
		.bundle = -1,
		.cgroup = c->cgroup,
		.cgroup_ns = c->spec->namespaces[NS_CGROUP],
		.proc = -1};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i](&b, &e) < 0)
			fail(c->sync, status, &e);
	if (sync_send(c->sync, &ready, b.master, &e) < 0 || become_program(&b, &status, &e) < 0)
		fail(c->sync, status, &e);
	_exit(status);
}
