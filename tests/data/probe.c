/* What security.bats runs inside containers: tries something, and says what came of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int failures;

static void refused(const char *name, long rc)
{
	if (rc >= 0 || (errno != EPERM && errno != ENOSYS && errno != EAFNOSUPPORT)) {
		printf("%s: returned %ld, %s\n", name, rc, rc < 0 ? strerror(errno) : "no error");
		failures++;
	}
}

#define TRY(name, ...) refused(#name, syscall(SYS_##name, __VA_ARGS__))

/* Each dangerous call is refused by the filter: with nonsense for arguments, which would fail in another
 * way had the kernel looked at them. */
static void calls(void)
{
	char buf[64] = "";

	TRY(acct, -1);
	TRY(add_key, -1, -1, -1, -1, -1);
	TRY(bpf, -1, -1, -1);
	TRY(clock_settime, -1, -1);
	TRY(clone, CLONE_NEWUSER | 17, 0, 0, 0, 0);
	TRY(clone, CLONE_NEWNS | 17, 0, 0, 0, 0);
	TRY(clone3, -1, -1);
	TRY(delete_module, -1, -1);
	TRY(fanotify_init, -1, -1);
	TRY(finit_module, -1, -1, -1);
	TRY(fsconfig, -1, -1, -1, -1, -1);
	TRY(fsmount, -1, -1, -1);
	TRY(fsopen, -1, -1);
	TRY(fspick, -1, -1, -1);
	TRY(init_module, -1, -1, -1);
	TRY(io_uring_setup, -1, -1);
	TRY(io_uring_enter, -1, -1, -1, -1, -1, -1);
	TRY(io_uring_register, -1, -1, -1, -1);
	TRY(kcmp, -1, -1, -1, -1, -1);
	TRY(kexec_load, -1, -1, -1, -1);
	TRY(keyctl, -1, -1, -1, -1, -1);
	TRY(mount, -1, -1, -1, -1, -1);
	TRY(mount_setattr, -1, -1, -1, -1, -1);
	TRY(move_mount, -1, -1, -1, -1, -1);
	TRY(move_pages, -1, -1, -1, -1, -1, -1);
	TRY(open_by_handle_at, -1, -1, -1);
	TRY(open_tree, -1, -1, -1);
	TRY(perf_event_open, -1, -1, -1, -1, -1);
	TRY(personality, ADDR_NO_RANDOMIZE);
	TRY(pidfd_getfd, -1, -1, -1);
	TRY(pivot_root, -1, -1);
	TRY(process_madvise, -1, -1, -1, -1, -1);
	TRY(ptrace, 0, 0, 0, 0);
	TRY(quotactl, -1, -1, -1, -1);
	TRY(reboot, -1, -1, -1, -1);
	TRY(request_key, -1, -1, -1, -1);
	TRY(setdomainname, buf, 1);
	TRY(sethostname, buf, 1);
	TRY(setns, -1, -1);
	TRY(settimeofday, -1, -1);
	TRY(socket, AF_VSOCK, SOCK_STREAM, 0);
	TRY(socket, AF_ALG, SOCK_SEQPACKET, 0);
	TRY(swapon, -1, -1);
	TRY(syslog, 3, buf, sizeof(buf));
	TRY(umount2, -1, -1);
	TRY(unshare, CLONE_NEWUSER);
	TRY(unshare, CLONE_NEWNS);
	TRY(userfaultfd, -1);
	TRY(vhangup, 0);
	refused("a call of the future", syscall(1000, 0));
#ifdef __x86_64__
	TRY(iopl, 3);
	TRY(ioperm, -1, -1, -1);
	/* The same table, entered as an x32 program does. */
	refused("x32 call", syscall(0x40000000 | 39));
#endif
}

static void terminal(void)
{
	char c = 'x';

	refused("TIOCSTI", ioctl(0, TIOCSTI, &c));
	refused("TIOCSTI with high bits", syscall(SYS_ioctl, 0, 0xf00000000 | TIOCSTI, &c));
	refused("TIOCLINUX", ioctl(0, TIOCLINUX, &c));
}

/* Make a device node, and open it. */
static void device(const char *path, mode_t type, unsigned major, unsigned minor)
{
	int rc = mknod(path, type | 0666, makedev(major, minor));

	printf("mknod %s: %s\n", path, rc ? strerror(errno) : "made");
	rc = open(path, O_RDWR);
	refused(path, rc);
}

static void devices(void)
{
	static const char *const dirs[] = {"/", "/dev", "/dev/shm", "/tmp"};
	char path[64];

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		int rc;

		snprintf(path, sizeof(path), "%s/kmsg-%zu", dirs[i], i);
		rc = mknod(path, S_IFCHR | 0666, makedev(1, 11));
		if (rc == 0 && open(path, O_RDONLY) >= 0) {
			printf("opened %s\n", path);
			failures++;
		}
	}
	device("/dev/disk", S_IFBLK, 254, 0);
	device("/dev/fuse", S_IFCHR, 10, 229);
}

/* Open what fd is a second time, for writing or reading. */
static void reopen(int fd, int flags)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags);
	printf("%s\n", again < 0 ? strerror(errno) : "opened");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "calls") == 0)
		calls();
	else if (strcmp(what, "terminal") == 0)
		terminal();
	else if (strcmp(what, "devices") == 0)
		devices();
	else if (strcmp(what, "reopen") == 0 && argc == 4)
		reopen(atoi(argv[2]), strcmp(argv[3], "w") == 0 ? O_WRONLY : O_RDONLY);
	else if (strcmp(what, "survive") == 0) {
		prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
		puts("ready");
		fflush(stdout);
		sleep(1000);
	} else if (strcmp(what, "ids") == 0)
		printf("%u %u %u %u\n", getuid(), geteuid(), getgid(), getegid());
	else
		failures++;
	return failures ? 1 : 0;
}
