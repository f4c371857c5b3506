#include <errno.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/seccomp.h"

enum { AGENT_SECONDS = 10 };

static long install(unsigned flags, const struct sock_fprog *prog)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);
}

bool seccomp_flag_works(unsigned flag)
{
	/* Without a program: a flag that is known gets as far as that. This one goes only with a
	 * listener. */
	if (flag == SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
		flag |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
	return install(flag, NULL) < 0 && errno == EFAULT;
}

int seccomp_install(const struct seccomp_prog *p, int *listener, struct err *e)
{
	const struct sock_fprog prog = {(unsigned short)p->n, p->code};
	unsigned flags = p->flags;
	long rc;

	*listener = -1;
	if (p->notifies)
		flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
	/* Both want the return value; this says which one has it. */
	if (p->notifies && flags & SECCOMP_FILTER_FLAG_TSYNC)
		flags |= SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
	rc = install(flags, &prog);
	if (rc < 0)
		return err_sys(e, "install the seccomp filter (%zu instructions)", p->n);
	if (p->notifies)
		*listener = (int)rc;
	else if (rc > 0)
		return err_set(
			e, ERR_SYSTEM, "install the seccomp filter: thread %ld has another", rc);
	return 0;
}

static int connect_agent(const char *path, struct err *e)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
	const struct timeval patience = {.tv_sec = AGENT_SECONDS};
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	if (str_copy(to.sun_path, sizeof(to.sun_path), path) < 0)
		return err_set(e, ERR_CORRUPT, "seccomp listenerPath: longer than %zu bytes",
			sizeof(to.sun_path) - 1);
	for (int i = 0; i < 2; i++) {
		auto_fd int sock = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);

		if (sock < 0 ||
			setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
			return err_sys(e, "socket");
		if (connect(sock, (const struct sockaddr *)&to, sizeof(to)) == 0)
			return steal_fd(&sock);
		if (errno != EPROTOTYPE)
			break;
	}
	return err_sys(e, "connect to the seccomp agent at %s", path);
}

int seccomp_send_listener(
	const struct spec_seccomp *s, int listener, const char *state, struct err *e)
{
	auto_fd int sock = connect_agent(s->listener_path, e);
	size_t len = strlen(state), done = 0;
	ssize_t n = 0;

	if (sock < 0)
		return -1;
	/* The descriptor goes with the first piece; a stream may take less than all at once. */
	for (; n >= 0 && done<len; done += n> 0 ? (size_t)n : 0)
		n = sys_send_fd(sock, state + done, len - done, done ? -1 : listener);
	return n < 0 ? err_sys(e, "send to the seccomp agent at %s", s->listener_path) : 0;
}
