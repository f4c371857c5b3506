#include "runtime/door.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/sys.h"

/* The address of name (a short one) in the folder dir: the path of the folder itself may be longer
 * than an address can be. */
static struct sockaddr_un address(int dir, const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir, name);
	return a;
}

int door_make(int dir, const char *name, struct err *e)
{
	struct sockaddr_un a = address(dir, name);
	auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return err_sys(e, "bind %s", name);
	return steal_fd(&fd);
}

int door_open(int door, struct err *e)
{
	int fd;

	do
		fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	return fd < 0 ? err_sys(e, "wait to be started") : fd;
}

bool door_is_open(int dir, const char *name)
{
	struct sockaddr_un a = address(dir, name);
	auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 && (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 || errno == EAGAIN);
}

int door_knock(int dir, const char *name, pid_t pid, struct err *e)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);
	struct sockaddr_un a = address(dir, name);
	auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return err_sys(e, "reach the created process");
	/* Who called listen(): the process that create left there, seen from here. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return err_sys(e, "peer of the socket");
	if (peer.pid != pid)
		return err_set(e, ERR_DENIED, "process %d answers instead of the container's, %d",
			(int)peer.pid, (int)pid);
	return steal_fd(&fd);
}
