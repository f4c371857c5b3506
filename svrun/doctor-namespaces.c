/* svrun doctor: namespaces, each made in a child, and the settings that forbid them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "svrun/doctor.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static const struct kind {
	const char *id, *name, *limit;
	int flag;
	enum finding_level level; /* when it cannot be made */
} kinds[] = {
	{"namespace.mount", "mount", "mnt", CLONE_NEWNS, FINDING_ERROR},
	{"namespace.pid", "pid", "pid", CLONE_NEWPID, FINDING_ERROR},
	{"namespace.network", "network", "net", CLONE_NEWNET, FINDING_ERROR},
	{"namespace.ipc", "ipc", "ipc", CLONE_NEWIPC, FINDING_ERROR},
	{"namespace.uts", "uts", "uts", CLONE_NEWUTS, FINDING_ERROR},
	{"namespace.cgroup", "cgroup", "cgroup", CLONE_NEWCGROUP, FINDING_ERROR},
	{"namespace.user", "user", "user", CLONE_NEWUSER, FINDING_WARNING},
	{"namespace.time", "time", "time", CLONE_NEWTIME, FINDING_NOTE},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int try_unshare(void *ctx)
{
	const struct kind *k = ctx;

	return unshare(k->flag) < 0 ? errno : 0;
}

static void check_kind(struct doctor *d, const struct kind *k)
{
	struct kind copy = *k;
	int sys = look_in_child(try_unshare, &copy);
	auto_free char *path = mem_printf("/proc/sys/user/max_%s_namespaces", k->limit);
	const char *advice = "install a kernel that has it, or run svrun outside a container";

	if (sys == 0) {
		found(d, k->id, FINDING_OK, NULL, "%s namespaces: can be made", k->name);
		return;
	}
	if (look_number(d, AT_FDCWD, path) == 0 || sys == ENOSPC)
		advice = arena_printf(&d->mem,
			"raise the limit: sysctl -w user.max_%s_namespaces=15000", k->limit);
	else if (sys == EPERM)
		advice = "run svrun as root, outside a container";
	found(d, k->id, k->level, advice, "%s namespaces: %s", k->name, strerror(sys));
}

/* Settings of distributions, each of which makes user namespaces root's alone. */
static void check_sysctls(struct doctor *d)
{
	static const struct {
		const char *path, *name;
		long long value;
	} v[] = {
		{"/proc/sys/kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone",
			0},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
			"kernel.apparmor_restrict_unprivileged_userns", 1},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		if (look_number(d, AT_FDCWD, v[i].path) == v[i].value)
			found(d, "namespace.user-sysctl", FINDING_NOTE, NULL,
				"%s is %lld: only root makes user namespaces (enough for svrun as "
				"root)",
				v[i].name, v[i].value);
}

/* ---- mounts with other owners ---- */

/* A user namespace that maps 0 to 1000, to be kept open; -1 with errno. */
static int other_userns(void)
{
	int ready[2], fd = -1;
	char path[64], byte;
	pid_t pid;

	if (sys_pipe(ready) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		sys_close_ref(&ready[0]);
		if (unshare(CLONE_NEWUSER) == 0 && sys_write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	sys_close_ref(&ready[1]);
	if (pid > 0 && sys_read(ready[0], &byte, 1) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
		auto_fd int map = sys_open(path, O_WRONLY, 0);

		if (map >= 0 && sys_write_all(map, "0 1000 1", 8) == 0) {
			snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
			auto_fd int groups = sys_open(path, O_WRONLY, 0);

			if (groups >= 0 && sys_write_all(groups, "0 1000 1", 8) == 0) {
				snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
				fd = sys_open(path, O_RDONLY, 0);
			}
		}
	}
	sys_close_ref(&ready[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return fd;
}

/* A clone of / as svrun would make it of a volume. EINVAL: this file system cannot. */
static int try_idmap(void *ctx)
{
	const char *path = ctx;
	auto_fd int ns = other_userns();
	auto_fd int tree = sys_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | O_CLOEXEC);
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP};

	if (ns < 0 || tree < 0)
		return errno ? errno : EPERM;
	attr.userns_fd = (unsigned)ns;
	return sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0 ? errno : 0;
}

static void check_idmap(struct doctor *d)
{
	char root[] = "/";
	int sys = look_in_child(try_idmap, root);

	if (sys == 0)
		found(d, "kernel.idmap", FINDING_OK, NULL, "mounts with other owners: they work");
	else
		found(d, "kernel.idmap", FINDING_NOTE, NULL,
			"mounts with other owners: not of / (%s); only options idmap and ridmap of "
			"a mount need them",
			strerror(sys));
}

void doctor_namespaces(struct doctor *d)
{
	for (size_t i = 0; i < KINDS; i++)
		check_kind(d, &kinds[i]);
	check_sysctls(d);
	check_idmap(d);
}
