#include "svrun/gpu-hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

static char *lock_path(const struct gpu_host *h, const struct gpu_device *g)
{
	return mem_printf("%s/held/%s", h->run, g->bus);
}

static int refuse(int lock, const struct gpu_device *g, struct err *e)
{
	char who[32] = "";

	if (sys_pread(lock, who, sizeof(who) - 1, 0) < 0)
		who[0] = '\0';
	who[strspn(who, "0123456789")] = '\0';
	err_set(e, ERR_EXISTS, "GPU %u (%s) is held by process %s", g->index, g->bus,
		who[0] ? who : "?");
	return err_hint(e, "one `svrun gpu hold` is enough for a GPU");
}

static int take_lock(const struct gpu_host *h, const struct gpu_device *g, struct err *e)
{
	auto_free char *folder = mem_printf("%s/held", h->run), *path = lock_path(h, g);
	char pid[32];
	int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());

	if (sys_mkdir_p(AT_FDCWD, folder, 0755) < 0)
		return err_sys(e, "make %s", folder);
	auto_fd int lock = sys_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);

	if (lock < 0)
		return err_sys(e, "open %s", path);
	if (sys_flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? refuse(lock, g, e) : err_sys(e, "lock %s", path);
	if (sys_ftruncate(lock, 0) < 0 || sys_pwrite_all(lock, pid, (size_t)n, 0) < 0)
		return err_sys(e, "write %s", path);
	return steal_fd(&lock);
}

int gpu_hold(
	const struct gpu_host *h, const struct gpu_device *g, int *node, int *lock, struct err *e)
{
	const struct gpu_node *n = &g->nodes.v[0];

	if (g->nodes.n == 0)
		return err_set(e, ERR_NOT_FOUND, "GPU %u has no device node", g->index);
	if (gpu_node_check(h, n, e) < 0)
		return -1;
	auto_fd int locked = take_lock(h, g, e);

	if (locked < 0)
		return -1;
	auto_free char *path = mem_printf("%s%s", h->prefix, n->path);
	/* The driver starts the GPU before this returns: seconds, when it was asleep. */
	int fd = sys_open(path, O_RDWR, 0);

	if (fd < 0) {
		err_sys(e, "open %s", path);
		return err_hint(e, errno == ENXIO ? "the driver is not loaded: modprobe nvidia"
						  : "dmesg tells why: svrun doctor --cuda");
	}
	*node = fd;
	*lock = steal_fd(&locked);
	return 0;
}

bool gpu_hold_is(const struct gpu_host *h, const struct gpu_device *g)
{
	auto_free char *path = lock_path(h, g);
	auto_fd int lock = sys_open(path, O_RDONLY | O_NOFOLLOW, 0);

	return lock >= 0 && sys_flock(lock, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

int notify_manager(const char *line, struct err *e)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = path ? strlen(path) : 0;

	if (n == 0)
		return 0;
	if (n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return err_set(e, ERR_USAGE, "NOTIFY_SOCKET: %s is no socket's path", path);
	memcpy(to.sun_path, path, n);
	if (path[0] == '@') /* in the abstract name space */
		to.sun_path[0] = '\0';
	auto_fd int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (s < 0 || sendto(s, line, strlen(line), MSG_NOSIGNAL, (struct sockaddr *)&to,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		return err_sys(e, "NOTIFY_SOCKET: %s", path);
	return 0;
}
