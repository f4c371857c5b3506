#include "runtime/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/process.h"

enum { SAID_MAX = 1000, START_FAILED = 127 };

/* The state of a container; pid 0: none. Source: runtime-spec runtime.md "State". */
static json_t *state_of(
	const struct spec *s, const char *id, const char *status, pid_t pid, const char *bundle)
{
	json_t *annotations = s->annotations.n ? json_object() : NULL;

	for (size_t i = 0; i < s->annotations.n; i++)
		json_object_set_new(annotations, s->annotations.v[i].name,
			json_string(s->annotations.v[i].value));
	return json_pack("{s:s, s:s, s:s, s:s, s:o*, s:o*}", "ociVersion", SPEC_VERSION, "id", id,
		"status", status, "bundle", bundle, "pid", pid ? json_integer(pid) : NULL,
		"annotations", annotations);
}

char *hook_state_text(
	const struct spec *s, const char *id, const char *status, pid_t pid, const char *bundle)
{
	auto_json json_t *o = state_of(s, id, status, pid, bundle);

	return json_dumps(o, JSON_COMPACT);
}

char *hook_agent_text(const struct spec *s, const char *id, const char *status, pid_t first,
	pid_t process, const char *bundle)
{
	const char *metadata = s->seccomp.listener_metadata;
	auto_json json_t *o = json_pack("{s:s, s:[s], s:i, s:s, s:o}", "ociVersion", SPEC_VERSION,
		"fds", "seccompFd", "pid", process, "metadata", metadata ? metadata : "", "state",
		state_of(s, id, status, first, bundle));

	return json_dumps(o, JSON_COMPACT);
}

/* The forked child: never returns. */
static void become_hook(const struct spec_hook *h, int in, int out)
{
	static const char *const nothing[] = {NULL};
	const char *const only[] = {h->path, NULL};
	const char *const *args = h->args.n ? h->args.v : only;
	const char *const *env = h->env.n ? h->env.v : nothing;

	/* Not longer than the runtime that waits for it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	process_reset_signals();
	umask(022); /* ours is 0: nodes and folders get their modes as they are asked for */
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir("/") < 0 ||
		sys_close_range(3, ~0U, 0) < 0)
		_exit(START_FAILED);
	execve(h->path, (char *const *)(uintptr_t)args, (char *const *)(uintptr_t)env);
	dprintf(2, "exec: %s", strerror(errno));
	_exit(START_FAILED);
}

/* Until it has ended; killed when it takes longer than its timeout. */
static int wait_for(const struct spec_hook *h, pid_t pid, int *status, struct err *e)
{
	double until = sys_now_ms() + 1e3 * (double)h->timeout.v;
	auto_fd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n;

	if (fd < 0)
		return err_sys(e, "pidfd of a hook");
	do {
		double left = until - sys_now_ms();

		n = poll(&p, 1, !h->timeout.set ? -1 : left > 0 ? (int)left + 1 : 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for a hook");
	return n <= 0 ? err_set(e, ERR_SYSTEM, "did not end within %lld s", (long long)h->timeout.v)
		      : 0;
}

/* What it wrote, the end of it, as part of an error. */
static int failed(int status, int out, struct err *e)
{
	char said[SAID_MAX + 1];
	off_t size = lseek(out, 0, SEEK_END);
	ssize_t n = sys_pread(out, said, SAID_MAX, size > SAID_MAX ? size - SAID_MAX : 0);

	said[n > 0 ? n : 0] = '\0';
	str_plain(said, "\n\t");
	return err_set(e, ERR_SYSTEM, "%s %d%s%s",
		WIFEXITED(status) ? "ended with status" : "killed by signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), *said ? ": " : "",
		said);
}

/* Files in memory, not pipes: a hook that does not read its input, or leaves a daemon that keeps
 * its output open, is not waited for. */
static int text_file(const char *name, const char *text, struct err *e)
{
	auto_fd int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || sys_write_all(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "%s of a hook", name);
	return steal_fd(&fd);
}

static int run(const struct spec_hook *h, const char *state, struct err *e)
{
	auto_fd int in = text_file("stdin", state, e);
	auto_fd int out = in < 0 ? -1 : text_file("output", "", e);
	int status;
	pid_t pid;

	if (out < 0)
		return -1;
	pid = fork();
	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0)
		become_hook(h, in, out);
	if (wait_for(h, pid, &status, e) < 0)
		return -1;
	return status == 0 ? 0 : failed(status, out, e);
}

int hooks_run(const struct spec *s, enum hook_kind kind, const char *state, struct err *e)
{
	const struct spec_hooks *h = &s->hooks[kind];

	for (size_t i = 0; i < h->n; i++)
		if (run(&h->v[i], state, e) < 0)
			return err_ctx(e, "%s hook %zu, %.200s", hook_name(kind), i, h->v[i].path);
	return 0;
}
