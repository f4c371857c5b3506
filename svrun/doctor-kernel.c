/* svrun doctor: the kernel's version and calls, filters, security modules. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/lsm.h"
#include "svrun/doctor.h"

static void check_version(struct doctor *d)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return;
	if (major < 5 || (major == 5 && minor < 15))
		found(d, "kernel.version", FINDING_ERROR, "install Linux 5.15 or newer",
			"Linux %s is too old", u.release);
	else
		found(d, "kernel.version", FINDING_OK, NULL, "Linux %s, %s", u.release, u.machine);
}

/* Whoever lacks rights sees most of what follows refused, and this first. */
static void check_rights(struct doctor *d)
{
	const char *status = look_text(d, AT_FDCWD, "/proc/self/status");
	const char *at = status ? strstr(status, "\nCapEff:") : NULL;
	uint64_t caps = at ? strtoull(at + sizeof("\nCapEff:"), NULL, 16) : 0;

	if (geteuid() != 0)
		found(d, "rights", FINDING_ERROR, "run svrun as root",
			"this is user %u, and svrun needs root", (unsigned)geteuid());
	else if (!(caps >> CAP_SYS_ADMIN & 1))
		found(d, "rights", FINDING_ERROR,
			"run svrun outside a container, or in one with CAP_SYS_ADMIN",
			"root without CAP_SYS_ADMIN: this is a container");
}

/* ---- system calls: each is made so that it can do nothing; ENOSYS says that it is not there,
 * and so does EPERM of a filter that does not know it ---- */

static long try_openat2(void)
{
	struct open_how how = {.flags = O_PATH, .resolve = RESOLVE_IN_ROOT};
	auto_fd int fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	return fd;
}

static long try_clone3(void)
{
	return syscall(SYS_clone3, NULL, (size_t)0); /* EINVAL: too small */
}

static long try_close_range(void)
{
	return syscall(SYS_close_range, ~0U, ~0U, 0);
}

static long try_pidfd(void)
{
	auto_fd int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);
}

static long try_mount_api(void)
{
	auto_fd int fd = sys_fsopen("tmpfs");

	return fd;
}

static long try_mount_setattr(void)
{
	return syscall(SYS_mount_setattr, -1, "", AT_EMPTY_PATH, NULL, (size_t)0); /* EINVAL */
}

static long try_bpf(void)
{
	return syscall(SYS_bpf, ~0U, NULL, 0); /* EINVAL, or EPERM of a kernel locked down */
}

static const struct {
	const char *id, *name, *since;
	long (*try)(void);
} calls[] = {
	{"kernel.openat2", "openat2", "5.6", try_openat2},
	{"kernel.clone3", "clone3", "5.3", try_clone3},
	{"kernel.pidfd", "pidfd_open, pidfd_send_signal", "5.3", try_pidfd},
	{"kernel.close-range", "close_range", "5.9", try_close_range},
	{"kernel.mount-api", "fsopen, fsmount, open_tree, move_mount", "5.2", try_mount_api},
	{"kernel.mount-setattr", "mount_setattr", "5.12", try_mount_setattr},
	{"kernel.bpf", "bpf", "4.15", try_bpf},
};

static void check_calls(struct doctor *d)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		long rc = calls[i].try();
		bool refused = rc < 0 && (errno == ENOSYS || errno == EPERM);

		if (!refused)
			found(d, calls[i].id, FINDING_OK, NULL, "%s: there", calls[i].name);
		else if (errno == ENOSYS)
			found(d, calls[i].id, FINDING_ERROR,
				arena_printf(&d->mem,
					"install Linux %s or newer, or take the "
					"filter away that hides it",
					calls[i].since),
				"%s: this kernel does not have it", calls[i].name);
		else
			found(d, calls[i].id, FINDING_ERROR,
				"run svrun as root, outside a container, or in one whose seccomp "
				"profile allows it",
				"%s: refused", calls[i].name);
	}
}

/* ---- filters ---- */

/* A filter that makes getppid fail, in force. */
static int try_seccomp(void *ctx)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	(void)ctx;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return errno;
	return syscall(SYS_getppid) < 0 && errno == ENOTTY ? 0 : ENOSYS;
}

static void check_seccomp(struct doctor *d)
{
	int sys = look_in_child(try_seccomp, NULL);

	if (sys == 0)
		found(d, "kernel.seccomp", FINDING_OK, NULL, "seccomp filters: they work");
	else
		found(d, "kernel.seccomp", FINDING_ERROR,
			"install a kernel with CONFIG_SECCOMP_FILTER", "seccomp filters: %s",
			strerror(sys));
}

/* ---- security modules ---- */

/* Not used, so that its absence harms nobody. */
static void check_landlock(struct doctor *d)
{
	long version = syscall(
		SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);

	if (version > 0)
		found(d, "kernel.landlock", FINDING_OK, NULL,
			"Landlock: version %ld (svrun does not need it)", version);
	else
		found(d, "kernel.landlock", FINDING_NOTE, NULL,
			"Landlock: not there (svrun does not need it)");
}

static void check_modules(struct doctor *d)
{
	const char *list = look_text(d, AT_FDCWD, "/sys/kernel/security/lsm");
	const char *enforcing = look_text(d, AT_FDCWD, "/sys/fs/selinux/enforce");
	const char *lockdown = look_text(d, AT_FDCWD, "/sys/kernel/security/lockdown");

	found(d, "kernel.lsm", FINDING_OK, NULL, "security modules: %s; AppArmor %s, SELinux %s",
		list ? list : "not told", lsm_has_apparmor() ? "on" : "off",
		!lsm_has_selinux()                    ? "off"
		: enforcing && str_eq(enforcing, "1") ? "enforcing"
						      : "permissive");
	if (lockdown && strstr(lockdown, "[confidentiality]"))
		found(d, "kernel.lockdown", FINDING_WARNING,
			"boot without lockdown=confidentiality when device filters fail to load",
			"the kernel is locked down for confidentiality, which keeps BPF programs "
			"from reading");
}

void doctor_kernel(struct doctor *d)
{
	check_version(d);
	check_rights(d);
	check_calls(d);
	check_seccomp(d);
	check_landlock(d);
	check_modules(d);
}
