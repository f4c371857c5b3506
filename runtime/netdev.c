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
#include "base/sys.h"

enum { REPLY_SIZE = 32 * 1024, DUMP_MAX = 1 << 20 };

/* ---- netlink ---- */

/* The answer is waited for; what it consists of (a dump's comes in many messages) goes to `dump`.
 * 0, or -1 with errno. */
static int talk(int sock, const struct nlmsghdr *request, struct buf *dump)
{
	auto_free char *reply = mem_alloc(REPLY_SIZE);

	if (send(sock, request, request->nlmsg_len, 0) < 0)
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
			if (dump && buf_add(dump, m, NLMSG_ALIGN(m->nlmsg_len), NULL) < 0) {
				errno = E2BIG;
				return -1;
			}
		}
	}
}

/* ---- addresses ---- */

static int read_addresses(int sock, struct buf *all)
{
	const struct {
		struct nlmsghdr head;
		struct ifaddrmsg any;
	} r = {{sizeof(r), RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, 0, 0},
		{.ifa_family = AF_UNSPEC}};

	return talk(sock, &r.head, all);
}

/* Give interface `to` the addresses that an administrator gave `from`: permanent, and of global
 * scope. What told of them becomes the request to make them, without the label, which has the name
 * of the interface. Of their flags the kernel takes what was asked for, not what was found out. */
static int add_addresses(int sock, int to, int from, const struct buf *all)
{
	unsigned left = (unsigned)all->len;

	for (struct nlmsghdr *m = (void *)all->data; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
		struct ifaddrmsg *a = NLMSG_DATA(m);
		unsigned rest = (unsigned)IFA_PAYLOAD(m);

		if (m->nlmsg_type != RTM_NEWADDR || m->nlmsg_len < NLMSG_LENGTH(sizeof(*a)) ||
			(int)a->ifa_index != from || a->ifa_scope != RT_SCOPE_UNIVERSE ||
			!(a->ifa_flags & IFA_F_PERMANENT))
			continue;
		for (struct rtattr *t = IFA_RTA(a); RTA_OK(t, rest); t = RTA_NEXT(t, rest))
			if (t->rta_type == IFA_LABEL)
				t->rta_type = IFA_UNSPEC;
		m->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
		a->ifa_index = (unsigned)to;
		if (talk(sock, m, NULL) < 0)
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

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	return ioctl(sock, SIOCGIFINDEX, &r) < 0 ? -1 : r.ifr_ifindex;
}

static int send_away(int sock, int index, int ns, const char *name)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
		struct rtattr ns_head;
		int ns;
		struct rtattr name_head;
		char name[IFNAMSIZ];
	} r = {.head = {sizeof(r), RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 0, 0},
		.link = {.ifi_index = index},
		.ns_head = {RTA_LENGTH(sizeof(r.ns)), IFLA_NET_NS_FD},
		.ns = ns,
		.name_head = {RTA_LENGTH(sizeof(r.name)), IFLA_IFNAME}};

	snprintf(r.name, sizeof(r.name), "%s", name);
	return talk(sock, &r.head, NULL);
}

static int set_up(int sock, int index)
{
	const struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} r = {{sizeof(r), RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 0, 0},
		{.ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP}};

	return talk(sock, &r.head, NULL);
}

struct side {
	int ns, sock;
};

/* The interface `name` of `from` becomes `as` of `to`, with its addresses. The kernel takes it down
 * and forgets the addresses on the way. */
static int move_one(const struct side *from, const struct side *to, const char *name,
	const char *as, struct err *e)
{
	auto_buf struct buf all = BUF_INIT(DUMP_MAX);
	int before = find_link(from->sock, name), index;

	if (before < 0 && errno == ENODEV)
		return err_set(
			e, ERR_NOT_FOUND, "linux.netDevices: there is no interface '%s'", name);
	if (before < 0 || read_addresses(from->sock, &all) < 0)
		return err_sys(e, "linux.netDevices: addresses of %s", name);
	if (send_away(from->sock, before, to->ns, as) < 0)
		return err_sys(e, "linux.netDevices: move %s", name);
	index = find_link(to->sock, as);
	if (index >= 0 && add_addresses(to->sock, index, before, &all) == 0 &&
		set_up(to->sock, index) == 0)
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
