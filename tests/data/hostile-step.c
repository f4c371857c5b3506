/* What steps.bats runs as a build step, as root: tries to get out, or to leave in the image what no
 * image may hold, and says what it could do that it must not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int failures;

static void must_fail(const char *what, long rc)
{
	if (rc < 0)
		return;
	printf("%s: it worked\n", what);
	failures++;
}

static void must_work(const char *what, long rc)
{
	if (rc >= 0)
		return;
	printf("%s: %s\n", what, strerror(errno));
	failures++;
}

#define MUST_FAIL(call) must_fail(#call, (long)(call))
#define MUST_WORK(call) must_work(#call, (long)(call))

static void get_out(void)
{
	static const char *const files[] = {"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/modprobe", "/sys/kernel/uevent_helper",
		"/sys/fs/cgroup/cgroup.procs", "/sys/kernel/mm/transparent_hugepage/enabled",
		"/dev/mem", "/dev/kmsg", "/dev/loop-control", "/dev/fuse"};
	struct sched_param fifo = {.sched_priority = 1};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		must_fail(files[i], open(files[i], O_WRONLY));
	MUST_FAIL(mount("none", "/out", "tmpfs", 0, NULL));
	MUST_FAIL(mount(NULL, "/proc", NULL, MS_REMOUNT | MS_BIND, NULL));
	MUST_FAIL(umount2("/proc", MNT_DETACH));
	MUST_FAIL(syscall(SYS_open_tree, AT_FDCWD, "/", 1));
	MUST_FAIL(syscall(SYS_fsopen, "tmpfs", 0));
	MUST_FAIL(unshare(CLONE_NEWUSER));
	MUST_FAIL(unshare(CLONE_NEWNS));
	MUST_FAIL(syscall(SYS_bpf, 0, NULL, 0));
	MUST_FAIL(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1));
	MUST_FAIL(syscall(SYS_add_key, "user", "x", "x", 1, KEY_SPEC_PROCESS_KEYRING));
	MUST_FAIL(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
	MUST_FAIL(syscall(SYS_init_module, NULL, 0, ""));
	MUST_FAIL(syscall(SYS_kexec_load, 0, 0, NULL, 0));
	MUST_FAIL(syscall(SYS_reboot, 0xfee1dead, 672274793, 0x89abcdef, NULL));
	MUST_FAIL(syscall(SYS_open_by_handle_at, -1, NULL, 0));
	MUST_FAIL(syscall(SYS_io_uring_setup, 1, NULL));
	MUST_FAIL(syscall(SYS_userfaultfd, 0));
	MUST_FAIL(sethostname("x", 1));
	MUST_FAIL(socket(AF_PACKET, SOCK_RAW, 0));
	MUST_FAIL(socket(AF_INET, SOCK_RAW, 1));
	MUST_FAIL(sched_setscheduler(0, SCHED_FIFO, &fifo));
	MUST_FAIL(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL)); /* of the first process: nobody */
	MUST_FAIL(kill(2, SIGKILL));                             /* there is no process but ours */
}

/* Device nodes, and what an overlay keeps for itself. */
static void fool_the_overlay(void)
{
	static const char *const names[] = {"trusted.overlay.opaque", "trusted.overlay.redirect",
		"trusted.overlay.metacopy", "trusted.overlay.whiteout", "trusted.x"};

	MUST_FAIL(mknod("/out/null", S_IFCHR | 0666, makedev(1, 3)));
	MUST_FAIL(mknod("/out/disk", S_IFBLK | 0666, makedev(8, 0)));
	MUST_FAIL(mknod("/out/whiteout", S_IFCHR | 0666, makedev(0, 0)));
	MUST_FAIL(renameat2(AT_FDCWD, "/data/in", AT_FDCWD, "/out/in", RENAME_WHITEOUT));
	MUST_WORK(mkdir("/out/folder", 0755));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		must_fail(names[i], setxattr("/out/folder", names[i], "y", 1, 0));
	MUST_WORK(setxattr("/out/folder", "user.overlay.opaque", "y", 1, 0));
	MUST_FAIL(link("/proc/self/exe", "/out/exe"));
	MUST_FAIL(link("/etc/hosts", "/out/hosts")); /* a file of the host's memory */
}

/* What is allowed, and harmless. */
static void leave_things(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "/out/socket"};
	int s = socket(AF_UNIX, SOCK_STREAM, 0), fd = open("/out/setuid", O_WRONLY | O_CREAT, 0755);

	MUST_WORK(bind(s, (struct sockaddr *)&a, sizeof(a)));
	MUST_WORK(mkfifo("/out/fifo", 0644));
	MUST_WORK(write(fd, "x", 1));
	MUST_WORK(fchmod(fd, 06755));
	MUST_WORK(link("/data/in", "/out/hard"));
	MUST_WORK(symlink("/../../../etc/shadow", "/out/link"));
	MUST_WORK(mkdir("/out/a\nb", 0755));
}

/* Nobody but our own is in reach. */
static void kill_all(void)
{
	pid_t child = fork();

	if (child == 0) {
		kill(-1, SIGKILL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

/* More than any path reaches. */
static void dig(void)
{
	char name[201];

	memset(name, 'd', 200);
	name[200] = '\0';
	MUST_WORK(chdir("/out"));
	for (int i = 0; i < 30; i++)
		if (mkdir(name, 0755) < 0 || chdir(name) < 0)
			must_work("dig", -1);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "dig") == 0) {
		dig();
		return failures > 0;
	}
	get_out();
	fool_the_overlay();
	leave_things();
	kill_all();
	return failures > 0;
}
