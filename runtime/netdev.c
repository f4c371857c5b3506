#include "runtime/netdev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum { REPLY_SIZE = 32 * 1024, ADDRESSES_MAX = 256, REQUEST_SIZE = 512 };

/* ---- netlink ---- */

struct request {
	union {
		struct nlmsghdr head;
		char bytes[REQUEST_SIZE];
	};
};

/* A message with its fixed part, `size` bytes at body. */
static void begin(struct request *r, uint16_t type, uint16_t flags, const void *body, size_t size)
{
	*r = (struct request){.head = {.nlmsg_len = (uint32_t)NLMSG_LENGTH(size),
				      .nlmsg_type = type,
				      .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)}};
	memcpy(NLMSG_DATA(&r->head), body, size);
}

static void attribute(struct request *r, uint16_t type, const void *data, size_t size)
{
	struct rtattr a = {.rta_len = (uint16_t)RTA_LENGTH(size), .rta_type = type};
	size_t at = NLMSG_ALIGN(r->head.nlmsg_len);

	if (at + RTA_SPACE(size) > sizeof(r->bytes))
		abort(); /* names and addresses are short */
	memcpy(r->bytes + at, &a, sizeof(a));
	memcpy(r->bytes + at + RTA_LENGTH(0), data, size);
	r->head.nlmsg_len = (uint32_t)(at + RTA_LENGTH(size));
}

static int open_netlink(struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? err_sys(e, "netlink") : fd;
}

/* Send, and let each() see every message of the answer (a dump's are many). 0, or -1 with errno. */
static int talk(int sock, const struct request *r,
	void (*each)(void *ctx, const struct nlmsghdr *m), void *ctx)
{
	auto_free char *reply = mem_alloc(REPLY_SIZE);

	if (send(sock, r->bytes, r->head.nlmsg_len, 0) < 0)
		return -1;
	for (;;) {
		int left = (int)recv(sock, reply, REPLY_SIZE, 0);

		if (left < 0 && errno == EINTR)
			continue;
		if (left < 0)
			return -1;
		for (char *p = reply; left >= (int)NLMSG_HDRLEN;) {
			struct nlmsghdr *m = (struct nlmsghdr *)(void *)p;

			if (m->nlmsg_len < NLMSG_HDRLEN || m->nlmsg_len > (unsigned)left ||
				m->nlmsg_type == NLMSG_DONE)
				return 0;
			if (m->nlmsg_type == NLMSG_ERROR) {
				errno = -((struct nlmsgerr *)NLMSG_DATA(m))->error;
				return errno ? -1 : 0;
			}
			if (each)
				each(ctx, m);
			left -= (int)NLMSG_ALIGN(m->nlmsg_len);
			p += NLMSG_ALIGN(m->nlmsg_len);
		}
	}
}

/* ---- addresses ---- */

struct address {
	struct ifaddrmsg head;
	unsigned char local[16], peer[16], broadcast[4];
	bool has_local, has_peer, has_broadcast;
	uint32_t flags;
};

struct addresses {
	unsigned index; /* of the interface */
	struct address v[ADDRESSES_MAX];
	size_t n;
	bool more;
};

static void take_attribute(struct address *a, const struct rtattr *r)
{
	size_t n = RTA_PAYLOAD(r), size = a->head.ifa_family == AF_INET ? 4 : 16;
	const void *p = (const char *)r + RTA_LENGTH(0);

	if (r->rta_type == IFA_LOCAL && n == size) {
		memcpy(a->local, p, n);
		a->has_local = true;
	} else if (r->rta_type == IFA_ADDRESS && n == size) {
		memcpy(a->peer, p, n);
		a->has_peer = true;
	} else if (r->rta_type == IFA_BROADCAST && n == sizeof(a->broadcast)) {
		memcpy(a->broadcast, p, n);
		a->has_broadcast = true;
	} else if (r->rta_type == IFA_FLAGS && n == sizeof(a->flags)) {
		memcpy(&a->flags, p, n);
	}
}

/* Those that an administrator gave it: permanent, and of global scope. */
static void take_address(void *ctx, const struct nlmsghdr *m)
{
	struct addresses *all = ctx;
	struct address a = {.has_local = false};
	int left = (int)m->nlmsg_len - (int)NLMSG_LENGTH(sizeof(a.head));
	const struct rtattr *r;

	if (m->nlmsg_type != RTM_NEWADDR || left < 0)
		return;
	memcpy(&a.head, (const char *)m + NLMSG_LENGTH(0), sizeof(a.head));
	a.flags = a.head.ifa_flags;
	r = (const struct rtattr *)(const void *)((const char *)m +
						  NLMSG_LENGTH(NLMSG_ALIGN(sizeof(a.head))));
	while (RTA_OK(r, left)) {
		take_attribute(&a, r);
		left -= (int)RTA_ALIGN(r->rta_len);
		r = (const struct rtattr *)(const void *)((const char *)r + RTA_ALIGN(r->rta_len));
	}
	if (a.head.ifa_index != all->index || a.head.ifa_scope != RT_SCOPE_UNIVERSE ||
		!(a.flags & IFA_F_PERMANENT) || (!a.has_local && !a.has_peer))
		return;
	if (all->n < ADDRESSES_MAX)
		all->v[all->n++] = a;
	else
		all->more = true;
}

static int read_addresses(int sock, unsigned index, struct addresses *all)
{
	struct ifaddrmsg any = {.ifa_family = AF_UNSPEC};
	struct request r;

	*all = (struct addresses){.index = index};
	begin(&r, RTM_GETADDR, NLM_F_DUMP, &any, sizeof(any));
	if (talk(sock, &r, take_address, all) < 0)
		return -1;
	if (all->more)
		errno = E2BIG;
	return all->more ? -1 : 0;
}

static int add_addresses(int sock, unsigned index, const struct addresses *all)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct address *a = &all->v[i];
		size_t size = a->head.ifa_family == AF_INET ? 4 : 16;
		struct ifaddrmsg head = a->head;
		struct request r;
		/* What was found out about it here (duplicates) is not known there. */
		uint32_t flags = a->flags & (IFA_F_NODAD | IFA_F_NOPREFIXROUTE | IFA_F_HOMEADDRESS);

		head.ifa_index = index;
		head.ifa_flags = 0;
		begin(&r, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &head,
			sizeof(head));
		if (a->has_local)
			attribute(&r, IFA_LOCAL, a->local, size);
		if (a->has_peer)
			attribute(&r, IFA_ADDRESS, a->peer, size);
		if (a->has_broadcast)
			attribute(&r, IFA_BROADCAST, a->broadcast, sizeof(a->broadcast));
		attribute(&r, IFA_FLAGS, &flags, sizeof(flags));
		if (talk(sock, &r, NULL, NULL) < 0)
			return -1;
	}
	return 0;
}

/* ---- moving ---- */

/* An interface's index differs between namespaces; it is found by its name in that of sock. */
static void take_link(void *ctx, const struct nlmsghdr *m)
{
	struct ifinfomsg head;

	if (m->nlmsg_type != RTM_NEWLINK || m->nlmsg_len < NLMSG_LENGTH(sizeof(head)))
		return;
	memcpy(&head, (const char *)m + NLMSG_LENGTH(0), sizeof(head));
	*(unsigned *)ctx = (unsigned)head.ifi_index;
}

static int find_link(int sock, const char *name, unsigned *index)
{
	struct ifinfomsg any = {.ifi_family = AF_UNSPEC};
	struct request r;

	*index = 0;
	begin(&r, RTM_GETLINK, NLM_F_ACK, &any, sizeof(any));
	attribute(&r, IFLA_IFNAME, name, strlen(name) + 1);
	if (talk(sock, &r, take_link, index) < 0)
		return -1;
	if (!*index)
		errno = ENODEV;
	return *index ? 0 : -1;
}

static int send_away(int sock, unsigned index, int ns, const char *name)
{
	struct ifinfomsg link = {.ifi_index = (int)index};
	struct request r;
	uint32_t fd = (uint32_t)ns;

	begin(&r, RTM_NEWLINK, NLM_F_ACK, &link, sizeof(link));
	attribute(&r, IFLA_NET_NS_FD, &fd, sizeof(fd));
	attribute(&r, IFLA_IFNAME, name, strlen(name) + 1);
	return talk(sock, &r, NULL, NULL);
}

static int set_up(int sock, unsigned index)
{
	struct ifinfomsg link = {
		.ifi_index = (int)index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	struct request r;

	begin(&r, RTM_NEWLINK, NLM_F_ACK, &link, sizeof(link));
	return talk(sock, &r, NULL, NULL);
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
	unsigned index;

	if (find_link(from->sock, name, &index) < 0) {
		if (errno == ENODEV)
			return err_set(e, ERR_NOT_FOUND,
				"linux.netDevices: there is no interface '%s'", name);
		return err_sys(e, "linux.netDevices: %s", name);
	}
	if (read_addresses(from->sock, index, all) < 0)
		return err_sys(e, "linux.netDevices: addresses of %s", name);
	if (send_away(from->sock, index, to->ns, as) < 0)
		return err_sys(e, "linux.netDevices: move %s", name);
	if (find_link(to->sock, as, &index) < 0 || add_addresses(to->sock, index, all) < 0 ||
		set_up(to->sock, index) < 0) {
		err_sys(e, "linux.netDevices: %s in its new namespace", name);
		if (send_away(to->sock, index, from->ns, name) < 0)
			err_hint(e, "and it could not be taken back");
		return -1;
	}
	return 0;
}

static const char *name_inside(const struct spec_net_device *d)
{
	return d->new_name ? d->new_name : d->name;
}

static int move_all(
	const struct spec *s, const struct side *from, const struct side *to, struct err *e)
{
	for (size_t i = 0; i < s->nnet_devices; i++) {
		const struct spec_net_device *d = &s->net_devices[i];

		if (move_one(from, to, d->name, name_inside(d), e) == 0)
			continue;
		while (i-- > 0) {
			d = &s->net_devices[i];
			if (move_one(to, from, name_inside(d), d->name, NULL) < 0)
				err_hint(e, "and %s could not be taken back", d->name);
		}
		return -1;
	}
	return 0;
}

/* A socket belongs to the namespace in which it was made. */
static int open_side(struct side *there, int own, struct err *e)
{
	if (setns(there->ns, CLONE_NEWNET) < 0)
		return err_sys(e, "enter the container's network namespace");
	there->sock = open_netlink(e);
	if (setns(own, CLONE_NEWNET) < 0)
		abort(); /* to go on in the container's would be worse than anything */
	return there->sock < 0 ? -1 : 0;
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
	if (open_side(&there, own, e) < 0)
		return -1;
	here.sock = open_netlink(e);
	int rc = here.sock < 0 ? -1 : move_all(s, &here, &there, e);
	sys_close_ref(&here.sock);
	sys_close_ref(&there.sock);
	return rc;
}
