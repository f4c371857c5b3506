#include "runtime/ns.h"

#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sys.h"

static const uint64_t flags[NS_KINDS] = {
	[NS_MOUNT] = CLONE_NEWNS,
	[NS_PID] = CLONE_NEWPID,
	[NS_NETWORK] = CLONE_NEWNET,
	[NS_IPC] = CLONE_NEWIPC,
	[NS_UTS] = CLONE_NEWUTS,
};

uint64_t ns_clone_flags(const struct spec *s)
{
	uint64_t all = 0;

	for (int k = 0; k < NS_KINDS; k++)
		if (s->namespaces[k])
			all |= flags[k];
	return all;
}

int ns_cgroup(const struct spec *s, struct err *e)
{
	if (s->namespaces[NS_CGROUP] && unshare(CLONE_NEWCGROUP) < 0)
		return err_sys(e, "new cgroup namespace");
	return 0;
}

static int loopback_up(struct err *e)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(e, "socket");
	if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
		return err_sys(e, "loopback up");
	return 0;
}

int ns_configure(const struct spec *s, struct err *e)
{
	if (s->hostname && sethostname(s->hostname, strlen(s->hostname)) < 0)
		return err_sys(e, "host name %s", s->hostname);
	if (s->domainname && setdomainname(s->domainname, strlen(s->domainname)) < 0)
		return err_sys(e, "domain name %s", s->domainname);
	return s->namespaces[NS_NETWORK] ? loopback_up(e) : 0;
}
