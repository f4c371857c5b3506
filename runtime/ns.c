#include "runtime/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/procfs.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static const struct {
	const char *name; /* in config.json */
	const char *file; /* in /proc/PID/ns */
	int flag;
} kinds[NS_KINDS] = {
	[NS_MOUNT] = {"mount", "mnt", CLONE_NEWNS},
	[NS_PID] = {"pid", "pid", CLONE_NEWPID},
	[NS_NETWORK] = {"network", "net", CLONE_NEWNET},
	[NS_IPC] = {"ipc", "ipc", CLONE_NEWIPC},
	[NS_UTS] = {"uts", "uts", CLONE_NEWUTS},
	[NS_CGROUP] = {"cgroup", "cgroup", CLONE_NEWCGROUP},
	[NS_USER] = {"user", "user", CLONE_NEWUSER},
	[NS_TIME] = {"time", "time", CLONE_NEWTIME},
};

const char *ns_name(enum ns_kind k)
{
	return kinds[k].name;
}

int ns_flag(enum ns_kind k)
{
	return kinds[k].flag;
}

uint64_t ns_clone_flags(const struct spec *s)
{
	uint64_t all = 0;

	for (enum ns_kind k = 0; k < NS_KINDS; k++)
		if (spec_new_ns(s, k) && k != NS_CGROUP && k != NS_TIME)
			all |= (uint64_t)kinds[k].flag;
	return all;
}

int ns_cgroup(const struct spec *s, struct err *e)
{
	if (spec_new_ns(s, NS_CGROUP) && unshare(CLONE_NEWCGROUP) < 0)
		return err_sys(e, "new cgroup namespace");
	return 0;
}

/* ---- joining ---- */

bool ns_needs_helper(const struct spec *s)
{
	for (enum ns_kind k = 0; k < NS_KINDS; k++)
		if (s->namespaces[k].given && s->namespaces[k].path)
			return true;
	return spec_new_ns(s, NS_TIME);
}

/* Are we in it already? Entering one's own user namespace again is EINVAL. */
static bool is_ours(int fd, enum ns_kind k)
{
	char path[32];
	struct stat a, b;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[k].file);
	return sys_fstat(fd, &a) == 0 && sys_fstatat(AT_FDCWD, path, &b, 0) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int open_one(const struct spec *s, enum ns_kind k, struct err *e)
{
	const char *path = s->namespaces[k].path;
	auto_fd int fd = sys_open(path, O_RDONLY, 0);
	int type;

	if (fd < 0)
		return err_sys(e, "%s namespace %s", kinds[k].name, path);
	type = ioctl(fd, NS_GET_NSTYPE);
	if (type < 0)
		return err_set(e, ERR_CORRUPT, "%s is no namespace", path);
	if (type != kinds[k].flag)
		return err_set(e, ERR_CORRUPT, "%s is no %s namespace", path, kinds[k].name);
	return steal_fd(&fd);
}

/* Some belong to the user namespace that we come from, some to the one that is joined: what the
 * first does not permit is tried again in the second. The mount namespace goes last: the paths of
 * the others were opened in ours. */
static int join_all(const int fds[NS_KINDS], struct err *e)
{
	static const enum ns_kind order[] = {
		NS_NETWORK, NS_IPC, NS_UTS, NS_PID, NS_CGROUP, NS_TIME, NS_MOUNT};
	bool done[NS_KINDS] = {false};
	bool user = fds[NS_USER] >= 0;

	for (int pass = user ? 0 : 1; pass < 2; pass++) {
		for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
			enum ns_kind k = order[i];

			if (fds[k] < 0 || done[k])
				continue;
			done[k] = setns(fds[k], kinds[k].flag) == 0;
			if (!done[k] && (pass == 1 || errno != EPERM))
				return err_sys(e, "join %s namespace", kinds[k].name);
		}
		if (pass == 0 && !is_ours(fds[NS_USER], NS_USER) &&
			setns(fds[NS_USER], CLONE_NEWUSER) < 0)
			return err_sys(e, "join user namespace");
	}
	return 0;
}

static int write_offsets(const struct spec *s, struct err *e)
{
	const struct {
		const char *name;
		const struct spec_time_offset *o;
	} clocks[] = {{"monotonic", &s->monotonic}, {"boottime", &s->boottime}};
	auto_fd int proc = procfs_open(e);

	if (proc < 0)
		return -1;
	for (size_t i = 0; i < 2; i++) {
		char line[64];

		if (!clocks[i].o->set)
			continue;
		snprintf(line, sizeof(line), "%s %" PRId64 " %" PRIu32, clocks[i].name,
			clocks[i].o->secs, clocks[i].o->nanosecs);
		if (procfs_write(proc, "self/timens_offsets", line, e) < 0)
			return err_ctx(e, "linux.timeOffsets");
	}
	return 0;
}

int ns_join(const struct spec *s, struct err *e)
{
	int fds[NS_KINDS], rc = 0;

	for (enum ns_kind k = 0; k < NS_KINDS; k++)
		fds[k] = -1;
	/* No process enters a new one before its offsets are written; the child does by being
	 * cloned. */
	if (spec_new_ns(s, NS_TIME)) {
		if (unshare(CLONE_NEWTIME) < 0)
			rc = err_sys(e, "new time namespace");
		else
			rc = write_offsets(s, e);
	}
	for (enum ns_kind k = 0; k < NS_KINDS && rc == 0; k++)
		if (s->namespaces[k].given && s->namespaces[k].path) {
			fds[k] = open_one(s, k, e);
			rc = fds[k] < 0 ? -1 : 0;
		}
	if (rc == 0)
		rc = join_all(fds, e);
	for (enum ns_kind k = 0; k < NS_KINDS; k++)
		sys_close_ref(&fds[k]);
	return rc;
}

/* ---- in the child ---- */

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
	return spec_new_ns(s, NS_NETWORK) ? loopback_up(e) : 0;
}
