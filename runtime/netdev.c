#include "runtime/netdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum { REPLY_SIZE = 32 * 1024, ADDRESSES_MAX = 256, REQUEST_SIZE = 256 };

/* ---- netlink ---- */

union request {
	struct nlmsghdr head;
	char bytes[REQUEST_SIZE];
};

/* A message with its fixed part, `size` bytes at body. */
static void begin(union request *r, int type, int flags, const void *body, size_t size)
{
	*r = (union request){.head = {.nlmsg_len = (uint32_t)NLMSG_LENGTH(size),
				     .nlmsg_type = (uint16_t)type,
				     .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)}};
	memcpy(NLMSG_DATA(&r->head), body, size);
}

static void attribute(union request *r, int type, const void *data, size_t size)
{
	struct rtattr a = {.rta_len = (uint16_t)RTA_LENGTH(size), .rta_type = (uint16_t)type};
	size_t at = NLMSG_ALIGN(r->head.nlmsg_len);

	if (at + RTA_SPACE(size) > sizeof(r->bytes))
		abort(); /* names and addresses are short */
	memcpy(r->bytes + at, &a, sizeof(a));
	memcpy(r->bytes + at + RTA_LENGTH(0), data, size);
	r->head.nlmsg_len = (uint32_t)(at + RTA_LENGTH(size));
}

/* The requests that give another interface the addresses of this one. */
struct addresses {
	int index;
	union request v[ADDRESSES_MAX];
	size_t n;
	bool more;
};

/* Those that an administrator gave it: permanent, and of global scope. Of their flags the kernel
 * takes what was asked for, not what was found out about them here. */
static void take_address(struct addresses *all, struct nlmsghdr *m)
{
	struct ifaddrmsg *a = NLMSG_DATA(m);
	unsigned left = (unsigned)IFA_PAYLOAD(m);

	if (m->nlmsg_type != RTM_NEWADDR || m->nlmsg_len < NLMSG_LENGTH(sizeof(*a)) ||
		(int)a->ifa_index != all->index || a->ifa_scope != RT_SCOPE_UNIVERSE ||
		!(a->ifa_flags & IFA_F_PERMANENT))
		return;
	all->more = all->n == ADDRESSES_MAX;
	if (all->more)
		return;
	union request *r = &all->v[all->n++];

	begin(r, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, a, sizeof(*a));
	for (struct rtattr *t = IFA_RTA(a); RTA_OK(t, left); t = RTA_NEXT(t, left))
		if (t->rta_type == IFA_LOCAL || t->rta_type == IFA_ADDRESS ||
			t->rta_type == IFA_BROADCAST || t->rta_type == IFA_FLAGS)
			attribute(r, t->rta_type, RTA_DATA(t), RTA_PAYLOAD(t));
}

/* The answer is waited for; the addresses in it (a dump's come in many messages) go to `all`. 0, or
 * -1 with errno. */
static int talk(int sock, const union request *r, struct addresses *all)
{
	auto_free char *reply = mem_alloc(REPLY_SIZE);

	if (send(sock, r, r->head.nlmsg_len, 0) < 0)
		return -1;
	for (;;) {
		struct nlmsghdr *m = (void *)reply;
		ssize_t n = recv(sock, reply, REPLY_SIZE, 0);
		unsigned left = n < 0 ? 0 : (unsigned)n;

		if (n < 0 && errno != EINTR)
			return -1;
		for (; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
			if (m->nlmsg_type == NLMSG_DONE)
				return 0;
			if (m->nlmsg_type == NLMSG_ERROR) {
				errno = -((struct nlmsgerr *)NLMSG_DATA(m))->error;
				return errno ? -1 : 0;
			}
			if (all)
				take_address(all, m);
		}
	}
}

/* ---- addresses ---- */

static int read_addresses(int sock, struct addresses *all)
{
	struct ifaddrmsg any = {.ifa_family = AF_UNSPEC};
	union request r;

	begin(&r, RTM_GETADDR, NLM_F_DUMP, &any, sizeof(any));
	if (talk(sock, &r, all) < 0)
		return -1;
	if (all->more)
		errno = E2BIG;
	return all->more ? -1 : 0;
}

static int add_addresses(int sock, int index, struct addresses *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct ifaddrmsg *a = NLMSG_DATA(&all->v[i].head);

		a->ifa_index = (unsigned)index;
		if (talk(sock, &all->v[i], NULL) < 0)
			return -1;
	}
	return 0;
}

/* ---- moving ---- */

/* An interface's index differs between namespaces; it is found by its name in that of sock. -1:
 * errno. */
static int find_link(int sock, const char *name)
{
	struct ifreq r = {.ifr_ifindex = 0};

	if (str_copy(r.ifr_name, sizeof(r.ifr_name), name) < 0) {
		errno = ENODEV;
		return -1;
	}
	return ioctl(sock, SIOCGIFINDEX, &r) < 0 ? -1 : r.ifr_ifindex;
}

static int send_away(int sock, int index, int ns, const char *name)
{
	struct ifinfomsg link = {.ifi_index = index};
	union request r;

	begin(&r, RTM_NEWLINK, NLM_F_ACK, &link, sizeof(link));
	attribute(&r, IFLA_NET_NS_FD, &ns, sizeof(ns));
	attribute(&r, IFLA_IFNAME, name, strlen(name) + 1);
	return talk(sock, &r, NULL);
}

static int set_up(int sock, int index)
{
	struct ifinfomsg link = {.ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	union request r;

	begin(&r, RTM_NEWLINK, NLM_F_ACK, &link, sizeof(link));
	return talk(sock, &r, NULL);
}

struct side {
	int ns, sock;
};

/* The interface `name` of `from` becomes `as` of `to`, with its addresses. The kernel takes it down
 * and forgets the addresses on the way. */
static int move_one(const struct side *from, const struct side *to, const char *name,
	const char *as, struct err *e)
{
	auto_free struct addresses *all = mem_alloc(sizeof(*all));
	int index;

	all->index = find_link(from->sock, name);
	if (all->index < 0 && errno == ENODEV)
		return err_set(
			e, ERR_NOT_FOUND, "linux.netDevices: there is no interface '%s'", name);
	if (all->index < 0 || read_addresses(from->sock, all) < 0)
		return err_sys(e, "linux.netDevices: addresses of %s", name);
	if (send_away(from->sock, all->index, to->ns, as) < 0)
		return err_sys(e, "linux.netDevices: move %s", name);
	index = find_link(to->sock, as);
	if (index >= 0 && add_addresses(to->sock, index, all) == 0 && set_up(to->sock, index) == 0)
		return 0;
	err_sys(e, "linux.netDevices: %s in its new namespace", name);
	if (send_away(to->sock, index, from->ns, name) < 0)
		err_hint(e, "and it could not be taken back");
	return -1;
}

static int move_all(
	const struct spec *s, const struct side *from, const struct side *to, struct err *e)
{
	for (size_t i = 0; i < s->nnet_devices; i++) {
		const struct spec_net_device *d = &s->net_devices[i];

		if (move_one(from, to, d->name, d->new_name ? d->new_name : d->name, e) == 0)
			continue;
		while (d-- > s->net_devices)
			if (move_one(to, from, d->new_name ? d->new_name : d->name, d->name, NULL) <
				0)
				err_hint(e, "and %s could not be taken back", d->name);
		return -1;
	}
	return 0;
}

/* A socket belongs to the namespace in which it was made. */
static int open_sockets(struct side *here, struct side *there, struct err *e)
{
	here->sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (setns(there->ns, CLONE_NEWNET) < 0)
		return err_sys(e, "enter the container's network namespace");
	there->sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (setns(here->ns, CLONE_NEWNET) < 0)
		abort(); /* to go on in the container's would be worse than anything */
	return here->sock < 0 || there->sock < 0 ? err_sys(e, "netlink") : 0;
}

int netdev_move(const struct spec *s, pid_t pid, struct err *e)
{
	char path[32];

	if (!s->nnet_devices)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	auto_fd int own = sys_open("/proc/self/ns/net", O_RDONLY, 0);
	auto_fd int theirs = sys_open(path, O_RDONLY, 0);
	if (own < 0 || theirs < 0)
		return err_sys(e, "network namespace");
	struct side here = {own, -1}, there = {theirs, -1};
	int rc = open_sockets(&here, &there, e) < 0 ? -1 : move_all(s, &here, &there, e);

	sys_close_ref(&here.sock);
	sys_close_ref(&there.sock);
	return rc;
}
