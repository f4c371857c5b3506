#include "runtime/sync.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sys.h"

union control {
	char buf[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int sync_send(int sock, const struct sync_msg *m, int fd, struct err *e)
{
	return sys_send_fd(sock, m, sizeof(*m), fd) < 0 ? err_sys(e, "send to the other process")
							: 0;
}

static int take_fd(struct msghdr *h)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(h);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
		head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

int sync_recv(int sock, struct sync_msg *m, int *fd, struct err *e)
{
	struct iovec iov = {m, sizeof(*m)};
	union control c;
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c};
	auto_fd int passed = -1;
	bool reset = false;
	ssize_t n;

	/* A peer that has ended without reading all we sent shows as ECONNRESET once, before what
	 * it has sent itself: the reason. */
	for (;;) {
		h.msg_controllen = sizeof(c.buf);
		n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == ECONNRESET && !reset)
			reset = true;
		else if (n >= 0 || errno != EINTR)
			break;
	}
	if (fd)
		*fd = -1;
	if (n < 0 && errno != ECONNRESET)
		return err_sys(e, "receive from the other process");
	if (n <= 0) {
		*m = (struct sync_msg){.kind = SYNC_END};
		return 0;
	}
	passed = take_fd(&h);
	/* One size only: nothing in a message says how long it is (CVE-2021-43784). */
	if ((size_t)n != sizeof(*m) || h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return err_set(e, ERR_CORRUPT, "a message of %zd bytes between processes", n);
	m->err.file = "its process"; /* what came is a pointer of the other one's */
	if (m->err.kind > ERR_SYSTEM)
		m->err.kind = ERR_SYSTEM;
	m->err.text[sizeof(m->err.text) - 1] = '\0';
	m->err.hint[sizeof(m->err.hint) - 1] = '\0';
	if (fd)
		*fd = steal_fd(&passed);
	return 0;
}

int sync_expect(int sock, enum sync_kind kind, struct sync_msg *m, int *fd, struct err *e)
{
	if (sync_recv(sock, m, fd, e) < 0)
		return -1;
	if (m->kind == kind)
		return 0;
	if (m->kind != SYNC_FAILED)
		return err_set(e, ERR_SYSTEM, "the container's process ended during set-up");
	if (e)
		*e = m->err;
	return -1;
}

int sync_say(int sock, const struct sync_msg *m, struct err *e)
{
	struct err why = {0};
	struct sync_msg answer;

	if (sync_send(sock, m, -1, &why) == 0)
		return 0;
	if (why.sys == EPIPE)
		return sync_expect(sock, SYNC_NEVER, &answer, NULL, e);
	if (e)
		*e = why;
	return -1;
}

void sync_fail(int sock, int status, const struct err *e)
{
	struct sync_msg m = {.kind = SYNC_FAILED, .status = status, .err = *e};

	if (sync_send(sock, &m, -1, NULL) < 0)
		return; /* nobody is left to tell */
}
