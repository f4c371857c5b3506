/* svrun doctor: cgroups. One is made as for a container, with its device filter, a child is put
 * into it that tries to open a device which is not allowed, and it is removed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/cgroup.h"
#include "svrun/doctor.h"

/* ---- what there is ---- */

static void check_v2(struct doctor *d, const char *mount)
{
	static const char *const needed[] = {"cpu", "memory", "pids", "io", "cpuset"};
	auto_free char *path = mem_printf("%s/cgroup.controllers", mount);
	const char *list = look_text(d, AT_FDCWD, path);

	if (!list) {
		found(d, "cgroup.controllers", FINDING_ERROR,
			"mount cgroup2 on /sys/fs/cgroup, or boot with systemd",
			"%s cannot be read", path);
		return;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!look_word(list, needed[i]))
			found(d, "cgroup.controllers", i < 3 ? FINDING_WARNING : FINDING_NOTE,
				"delegate it to svrun's slice (systemd: Delegate=yes), or boot "
				"with the "
				"controller on",
				"no controller %s: limits that need it are refused", needed[i]);
	found(d, "cgroup.version", FINDING_OK, NULL, "cgroups: version 2, controllers %s", list);
}

static void check_v1(struct doctor *d)
{
	static const char *const needed[] = {"devices", "cpu", "memory", "pids", "freezer"};
	const char *mine = look_text(d, AT_FDCWD, "/proc/self/cgroup");
	auto_free char *spaced = mine ? mem_strdup(mine) : NULL;

	for (char *c = spaced; c && *c; c++)
		if (*c == ':')
			*c = ' ';
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!look_word(spaced, needed[i]))
			found(d, "cgroup.controllers", i == 0 ? FINDING_ERROR : FINDING_WARNING,
				"mount the controller (mount -t cgroup -o NAME), or boot with "
				"version 2",
				"no controller %s: limits that need it are refused", needed[i]);
	found(d, "cgroup.version", FINDING_NOTE, NULL,
		"cgroups: version 1%s; version 2 alone starts containers faster",
		access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0 ? ", beside a version 2 "
									   "without controllers"
									 : "");
}

/* ---- one, really ---- */

/* Devices that hosts have and no container gets unless asked: opening them does nothing. */
static const char *const forbidden[] = {"/dev/kmsg", "/dev/fuse", "/dev/loop-control", "/dev/hwrng",
	"/dev/cpu_dma_latency", "/dev/mem"};
enum { FORBIDDEN = sizeof(forbidden) / sizeof(forbidden[0]) };

static const char *openable(void)
{
	for (size_t i = 0; i < FORBIDDEN; i++) {
		auto_fd int fd = sys_open(forbidden[i], O_RDONLY | O_NONBLOCK, 0);

		if (fd >= 0)
			return forbidden[i];
	}
	return NULL;
}

/* In the cgroup: 0 when the filter works. */
static int look_inside(const char *device)
{
	auto_fd int null = sys_open("/dev/null", O_RDWR, 0);

	if (null < 0)
		return errno;
	auto_fd int fd = device ? sys_open(device, O_RDONLY | O_NONBLOCK, 0) : -1;

	return !device || (fd < 0 && errno == EPERM) ? 0 : EBADF;
}

/* Version 2: cloned into it, as containers are; version 1: the child moves itself. */
static int try_cgroup(const struct cgroup *c, const char *device)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	int status, fd = cgroup_clone_fd(c);
	long pid;

	if (fd >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)fd;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return errno;
	if (pid == 0) {
		struct err e = {0};

		_exit(fd < 0 && cgroup_join(c, &e) < 0 ? (e.sys ? e.sys : EPERM)
						       : look_inside(device));
	}
	while (waitpid((pid_t)pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static void report(struct doctor *d, int sys, const char *device)
{
	if (sys == EBADF)
		found(d, "cgroup.devices", FINDING_ERROR,
			"give no devices to containers on this host before that is repaired: "
			"look whether "
			"CONFIG_CGROUP_BPF or CONFIG_CGROUP_DEVICE is on",
			"the device filter does not hold: %s could be opened in a cgroup that "
			"denies it",
			device);
	else if (sys != 0)
		found(d, "cgroup.enter", FINDING_ERROR,
			"see that svrun's cgroup is writable and not in a threaded or full one",
			"a process could not be put into a cgroup: %s", strerror(sys));
	else if (!device)
		found(d, "cgroup.devices", FINDING_NOTE, NULL,
			"the device filter is set; no device was at hand to see it hold");
	else
		found(d, "cgroup.devices", FINDING_OK, NULL,
			"a cgroup with its device filter: made, entered; %s was denied in it",
			device);
}

static void check_one(struct doctor *d)
{
	auto_free char *id = mem_printf("svrun-doctor-%d", (int)getpid());
	auto_free char *path = mem_printf("/%s", id);
	const struct spec_resources none = {0};
	const char *device = openable();
	struct cgroup_place place;
	struct cgroup c;
	struct err e = {0};

	if (cgroup_place(&place, path, id, false, &e) < 0 ||
		cgroup_create(&c, &place, &none, &e) < 0) {
		found_err(d, "cgroup.make", FINDING_ERROR, &e,
			"run svrun as root, where its cgroup is delegated to it");
		return;
	}
	report(d, try_cgroup(&c, device), device);
	cgroup_fini(&c);
	if (cgroup_destroy(&place, &e) < 0)
		found_err(d, "cgroup.remove", FINDING_WARNING, &e, "remove it with rmdir");
}

void doctor_cgroups(struct doctor *d)
{
	if (cgroup_is_v2())
		check_v2(d, "/sys/fs/cgroup");
	else
		check_v1(d);
	check_one(d);
}
