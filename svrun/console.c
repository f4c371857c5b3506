#include "svrun/console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/sys.h"

int console_connect(const char *path, struct err *e)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;

	/* Opened first, so that a path longer than an address can hold is fine. */
	auto_fd int file = sys_open(path, O_PATH, 0);
	if (file < 0)
		return err_sys(e, "console socket %s", path);
	if (sys_fstat(file, &st) < 0 || !S_ISSOCK(st.st_mode))
		return err_set(e, ERR_USAGE, "console socket %s: not a socket", path);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", file);
	auto_fd int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return err_sys(e, "socket");
	if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return steal_fd(&sock);
	if (errno == EPROTOTYPE)
		return err_set(e, ERR_USAGE, "console socket %s: not a stream socket", path);
	return err_sys(e, "console socket %s", path);
}

int console_send(int sock, int master, struct err *e)
{
	static const char name[] = "/dev/ptmx"; /* what the other side shows it as; not empty */

	return sys_send_fd(sock, name, sizeof(name) - 1, master) < 0
		       ? err_sys(e, "send the terminal to the console socket")
		       : 0;
}
