#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/sys.h"

extern char **environ;

static int spawn(const struct proc *p, int out, int errfd, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	int rc;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, out, 1);
	posix_spawn_file_actions_adddup2(&fa, errfd, 2);
	if (p->dir)
		posix_spawn_file_actions_addchdir_np(&fa, p->dir);
	rc = posix_spawnp(pid, p->argv[0], &fa, NULL, (char *const *)(uintptr_t)p->argv,
		p->env ? (char *const *)(uintptr_t)p->env : environ);
	posix_spawn_file_actions_destroy(&fa);
	errno = rc;
	return rc ? -1 : 0;
}

/* Read what is there into b (or nowhere). 1: more may come, 0: end, -1: too long. */
static int drain(int fd, struct buf *b, struct err *e)
{
	char tmp[8192];
	ssize_t n = sys_read(fd, tmp, sizeof(tmp));

	if (n <= 0)
		return 0;
	return b && buf_add(b, tmp, (size_t)n, e) < 0 ? -1 : 1;
}

static int collect(int out, struct buf *ob, int errfd, struct buf *eb, struct err *e)
{
	struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = errfd, .events = POLLIN}};
	struct buf *bufs[2] = {ob, eb};

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_sys(e, "poll");
		for (int i = 0; i < 2; i++) {
			int rc;

			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			rc = drain(fds[i].fd, bufs[i], e);
			if (rc < 0)
				return -1;
			if (rc == 0)
				fds[i].fd = -1;
		}
	}
	return 0;
}

int proc_run(const struct proc *p, struct err *e)
{
	int out[2], errs[2], status, rc;
	pid_t pid;

	if (sys_pipe(out) < 0)
		return err_sys(e, "pipe");
	auto_fd int out_r = out[0];
	auto_fd int out_w = out[1];

	if (sys_pipe(errs) < 0)
		return err_sys(e, "pipe");
	auto_fd int err_r = errs[0];
	auto_fd int err_w = errs[1];

	if (spawn(p, out_w, err_w, &pid) < 0)
		return err_sys(e, "run %s", p->argv[0]);
	sys_close_ref(&out_w);
	sys_close_ref(&err_w);
	rc = collect(out_r, p->out, err_r, p->errout, e);
	if (rc < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (rc < 0)
		return err_ctx(e, "output of %s", p->argv[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int proc_check(const struct proc *p, struct err *e)
{
	auto_buf struct buf own = BUF_INIT(1 << 20);
	struct proc q = *p;
	const char *tail;
	int rc;

	if (!q.errout)
		q.errout = &own;
	rc = proc_run(&q, e);
	if (rc <= 0)
		return rc;
	tail = q.errout->data ? q.errout->data : "";
	if (strlen(tail) > 1000)
		tail += strlen(tail) - 1000;
	return err_set(e, ERR_SYSTEM, "%s ended with status %d: %s", p->argv[0], rc, tail);
}
