#include "runtime/helper.h"

#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/sync.h"

static void end_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGQUIT);
}

int helper_signals(struct err *e)
{
	sigset_t set;
	int fd;

	end_signals(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(e, "signalfd") : fd;
}

void helper_await(int fd, int cancel)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = cancel, .events = POLLIN}};
	sigset_t set, before;

	while (poll(p, 2, -1) < 0 || !p[0].revents) {
		if (!p[1].revents)
			continue;
		/* It is pending: here it is delivered, unless we ignore it. */
		end_signals(&set);
		sigprocmask(SIG_UNBLOCK, &set, &before);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
}

/* The helper: 0 in its child, else it does not return. */
static pid_t help(const struct helper *h, int out)
{
	struct err e = {0};
	pid_t pid = h->clone(h->ctx, &out, &e);

	if (pid == 0) {
		close(out);
		return 0;
	}
	if (pid < 0 || sys_write_all(out, &pid, sizeof(pid)) < 0)
		sync_fail(*h->theirs, 125, &e);
	_exit(0);
}

static pid_t fork_into(int cgroup)
{
	struct clone_args a = {.exit_signal = SIGCHLD};

	if (cgroup >= 0) {
		a.flags = CLONE_INTO_CGROUP;
		a.cgroup = (unsigned)cgroup;
	}
	return (pid_t)syscall(SYS_clone3, &a, sizeof(a));
}

pid_t helper_clone(const struct helper *h, int *pidfd, struct err *e)
{
	struct sync_msg m;
	int p[2], status;
	pid_t helper, pid = 0;

	if (sys_pipe(p) < 0)
		return err_sys(e, "pipe");
	auto_fd int in = p[0];
	auto_fd int out = p[1];

	helper = fork_into(h->cgroup);
	if (helper < 0)
		return err_sys(e, "fork");
	if (helper == 0) {
		sys_close_ref(&in);
		return help(h, steal_fd(&out));
	}
	sys_close_ref(&out);
	/* Through a pipe: on the socket the child's own words may come first. */
	helper_await(in, h->cancel);
	if (sys_read_all(in, &pid, sizeof(pid)) < 0)
		pid = 0;
	while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
		;
	if (pid <= 0) {
		/* When a signal has ended it, it has said nothing, and nobody else will. */
		shutdown(h->ours, SHUT_RD);
		if (sync_expect(h->ours, SYNC_NEVER, &m, NULL, e) < 0)
			return -1;
		return err_set(e, ERR_SYSTEM, "the process that joins namespaces ended");
	}
	*pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (*pidfd >= 0)
		return pid;
	err_sys(e, "pidfd of the container's process");
	kill(pid, SIGKILL); /* our child, and not reaped: the pid is its own */
	waitpid(pid, &status, 0);
	return -1;
}
