#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

/* A file in memory, not a pipe: writing to it needs no waiting for a child that does not read, and
 * no SIGPIPE. */
static int open_input(const struct proc *p, struct err *e)
{
	auto_fd int fd =
		p->in ? memfd_create("stdin", MFD_CLOEXEC) : sys_open("/dev/null", O_RDONLY, 0);

	if (fd < 0 ||
		(p->in && (sys_write_all(fd, p->in, p->in_size) < 0 || lseek(fd, 0, SEEK_SET) < 0)))
		return err_sys(e, "stdin of %s", p->argv[0]);
	return steal_fd(&fd);
}

static int spawn(const struct proc *p, int in, int out, int errfd, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	int rc;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, in, 0);
	posix_spawn_file_actions_adddup2(&fa, out, 1);
	posix_spawn_file_actions_adddup2(&fa, errfd, 2);
	if (p->dir)
		posix_spawn_file_actions_addchdir_np(&fa, p->dir);
	posix_spawnattr_init(&attr);
	if (p->group)
		posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
	rc = posix_spawnp(pid, p->argv[0], &fa, &attr, (char *const *)(uintptr_t)p->argv,
		p->env ? (char *const *)(uintptr_t)p->env : environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&fa);
	errno = rc;
	return rc ? -1 : 0;
}

/* Read what is there into b (or nowhere), or hand it to p->take. 1: more may come, 0: end, -1: too
 * long. */
static int drain(int fd, struct buf *b, const struct proc *p, struct err *e)
{
	char tmp[32768];
	ssize_t n = sys_read(fd, tmp, sizeof(tmp));
	int rc;

	if (n <= 0)
		return 0;
	if (p)
		rc = p->take(p->ctx, tmp, (size_t)n, e) < 0 ? -1 : 1;
	else
		rc = b && buf_add(b, tmp, (size_t)n, e) < 0 ? -1 : 1;
	explicit_bzero(tmp, (size_t)n);
	return rc;
}

/* For poll(): -1 without a limit. */
static int left_ms(double until)
{
	double left = until - sys_now_ms();

	return until <= 0 ? -1 : left <= 0 ? 0 : left > 1e9 ? 1000000000 : (int)left + 1;
}

/* Until both outputs and the process itself (fds, in this order) have ended: it may live on without
 * them, and what it started may hold them longer. */
static int collect(struct pollfd fds[3], const struct proc *p, struct err *e)
{
	double until = p->seconds ? sys_now_ms() + 1e3 * p->seconds : 0;
	struct buf *bufs[2] = {p->out, p->errout};

	while (fds[0].fd >= 0 || fds[1].fd >= 0 || fds[2].fd >= 0) {
		int n = poll(fds, 3, left_ms(until));

		if (n == 0)
			return err_set(e, ERR_SYSTEM, "%s did not end within %u s", p->argv[0],
				p->seconds);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "wait for %s", p->argv[0]);
		for (int i = 0; i < 3; i++) {
			int rc;

			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			rc = i < 2 ? drain(fds[i].fd, bufs[i], i == 0 && p->take ? p : NULL, e) : 0;
			if (rc < 0)
				return err_ctx(e, "output of %s", p->argv[0]);
			if (rc == 0)
				fds[i].fd = -1;
		}
	}
	return 0;
}

/* Kill what is to be killed (rc: what became of it) and wait for it. Its group is killed while the
 * leader is not yet waited for: until then no other group can have the number. */
static int reap(const struct proc *p, pid_t pid, int pidfd, int rc, int *status, struct err *e)
{
	enum { KILLED_MS = 2000 };
	struct pollfd end = {pidfd, POLLIN, 0};

	if (p->group)
		kill(-pid, SIGKILL);
	else if (rc < 0)
		kill(pid, SIGKILL);
	if (p->group && rc < 0 && poll(&end, 1, KILLED_MS) == 0)
		return err_ctx(e, "killed, and held up in the kernel (process %d)", (int)pid);
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return rc < 0 ? rc : err_sys(e, "wait for %s", p->argv[0]);
	return rc;
}

int proc_run(const struct proc *p, struct err *e)
{
	auto_fd int in = open_input(p, e), pidfd = -1;
	int out[2], errs[2], status, rc;
	pid_t pid;

	if (in < 0)
		return -1;
	if (sys_pipe(out) < 0)
		return err_sys(e, "pipe");
	auto_fd int out_r = out[0], out_w = out[1];

	if (sys_pipe(errs) < 0)
		return err_sys(e, "pipe");
	auto_fd int err_r = errs[0], err_w = errs[1];

	if (spawn(p, in, out_w, err_w, &pid) < 0)
		return err_sys(e, "run %s", p->argv[0]);
	sys_close_ref(&out_w);
	sys_close_ref(&err_w);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	rc = pidfd < 0 ? err_sys(e, "pidfd of %s", p->argv[0])
		       : collect((struct pollfd[]){{out_r, POLLIN, 0}, {err_r, POLLIN, 0},
					 {pidfd, POLLIN, 0}},
				 p, e);
	if (reap(p, pid, pidfd, rc, &status, e) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int proc_check(const struct proc *p, struct err *e)
{
	auto_buf struct buf own = BUF_INIT(1 << 20);
	struct proc q = *p;
	const char *said;
	size_t n;
	int rc;

	if (!q.errout)
		q.errout = &own;
	rc = proc_run(&q, e);
	if (rc <= 0)
		return rc;
	said = q.errout->data ? q.errout->data : "";
	n = strlen(said);
	return err_set(e, ERR_SYSTEM, "%s ended with status %d: %s", p->argv[0], rc,
		said + (n > 1000 ? n - 1000 : 0));
}
