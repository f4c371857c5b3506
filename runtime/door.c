#include "runtime/door.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"

/* The address of name in the folder dir: the path of the folder itself may be longer than an
 * address can be. */
static int address(int dir, const char *name, struct sockaddr_un *a, struct err *e)
{
	int n;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof(a->sun_path))
		return err_set(e, ERR_USAGE, "socket %.40s: name too long", name);
	return 0;
}

static int new_socket(struct err *e)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	return fd < 0 ? err_sys(e, "socket") : fd;
}

int door_make(int dir, const char *name, struct err *e)
{
	struct sockaddr_un a;
	auto_fd int fd = new_socket(e);

	if (fd < 0 || address(dir, name, &a, e) < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
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
	struct sockaddr_un a;
	auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 && address(dir, name, &a, NULL) == 0 &&
	       (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 || errno == EAGAIN);
}

int door_knock(int dir, const char *name, pid_t pid, struct err *e)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);
	struct sockaddr_un a;
	auto_fd int fd = new_socket(e);

	if (fd < 0 || address(dir, name, &a, e) < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return err_sys(e, "reach the created process");
	/* Who called listen(): the process that create left there, seen from here. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return err_sys(e, "peer of the socket");
	if (peer.pid != pid)
		return err_set(e, ERR_DENIED, "process %d answers instead of the container's, %d",
			(int)peer.pid, (int)pid);
	return steal_fd(&fd);
}
