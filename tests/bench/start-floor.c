/* What starting a container costs at least: the bare system calls of one whole start with the
 *config that scripts/bench-oci writes for all runtimes, from clone3 to the removal of the cgroup.
 *No document is read, no state kept and no name looked up twice, so a runtime can come near it
 *only.
 *
 *	start-floor ROOTFS [PROGRAM]     runs PROGRAM (/bin/true) there and returns its exit status
 *
 * What can overlap does: the parent writes the limits while the child mounts. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The last of linux/capability.h's that Debian 12 has, and the 14 of Docker's containers. */
enum { LAST_CAP = 40 };
static const uint64_t caps = 0xa80425fb;

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "start-floor: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static int must(long rc, const char *what)
{
	if (rc < 0)
		die(what);
	return (int)rc;
}

/* ---- cgroups ---- */

struct cgroup {
	bool v2;
	char name[32];
	size_t n;
	int roots[5], dirs[5];
};

static const char *const v1_controllers[] = {"devices", "memory", "pids", "cpu", "freezer"};

static void put(int dir, const char *file, const char *text)
{
	int fd = must(openat(dir, file, O_WRONLY | O_CLOEXEC), file);

	must(write(fd, text, strlen(text)), file);
	close(fd);
}

static void cgroup_make(struct cgroup *c)
{
	struct statfs fs;
	char path[64];

	must(statfs("/sys/fs/cgroup", &fs), "/sys/fs/cgroup");
	c->v2 = fs.f_type == CGROUP2_SUPER_MAGIC;
	c->n = c->v2 ? 1 : LEN(v1_controllers);
	snprintf(c->name, sizeof(c->name), "bench-floor-%d", getpid());
	for (size_t i = 0; i < c->n; i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", c->v2 ? "" : v1_controllers[i]);
		c->roots[i] = must(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), path);
		must(mkdirat(c->roots[i], c->name, 0755), "mkdir cgroup");
		c->dirs[i] = must(openat(c->roots[i], c->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			"open cgroup");
	}
}

/* The devices every container has, by number; minor -1 is any. */
static const struct {
	int major, minor;
} devices[] = {{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 1}, {5, 2}, {136, -1}};

static void device_rules_v1(int dir)
{
	char rule[32];

	put(dir, "devices.deny", "a");
	for (size_t i = 0; i < LEN(devices); i++) {
		if (devices[i].minor < 0)
			snprintf(rule, sizeof(rule), "c %d:* rwm", devices[i].major);
		else
			snprintf(rule, sizeof(rule), "c %d:%d rwm", devices[i].major,
				devices[i].minor);
		put(dir, "devices.allow", rule);
	}
	put(dir, "devices.allow", "c *:* m");
	put(dir, "devices.allow", "b *:* m");
}

#define INSN(op, d, s, o, i)                                                                       \
	(struct bpf_insn)                                                                          \
	{                                                                                          \
		.code = (op), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)               \
	}

/* r0 = allowed: one of the devices, or only to make a node. */
static void device_rules_v2(int dir)
{
	struct bpf_insn code[64];
	size_t n = 0;
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE}, attach = {0};

	code[n++] = INSN(BPF_LDX | BPF_W | BPF_MEM, 2, 1, 0, 0); /* access << 16 | type */
	code[n++] = INSN(BPF_LDX | BPF_W | BPF_MEM, 4, 1, 4, 0); /* major */
	code[n++] = INSN(BPF_LDX | BPF_W | BPF_MEM, 5, 1, 8, 0); /* minor */
	code[n++] = INSN(BPF_ALU | BPF_RSH | BPF_K, 2, 0, 0, 16);
	code[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
	code[n++] = INSN(BPF_JMP | BPF_JNE | BPF_K, 2, 0, 1, BPF_DEVCG_ACC_MKNOD);
	code[n++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (size_t i = 0; i < LEN(devices); i++) {
		bool any = devices[i].minor < 0;

		code[n++] = INSN(BPF_JMP | BPF_JNE | BPF_K, 4, 0, any ? 1 : 2, devices[i].major);
		if (!any)
			code[n++] = INSN(BPF_JMP | BPF_JNE | BPF_K, 5, 0, 1, devices[i].minor);
		code[n++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	}
	code[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
	code[n++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	load.insns = (uintptr_t)code;
	load.insn_cnt = (uint32_t)n;
	load.license = (uintptr_t) "GPL";
	attach.attach_bpf_fd =
		(uint32_t)must(syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load)), "bpf load");
	attach.target_fd = (uint32_t)dir;
	attach.attach_type = BPF_CGROUP_DEVICE;
	attach.attach_flags = BPF_F_ALLOW_MULTI;
	must(syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof(attach)), "bpf attach");
	close((int)attach.attach_bpf_fd);
}

static void cgroup_limit(const struct cgroup *c)
{
	if (c->v2) {
		/* A host whose controllers are of version 1 can show version 2 without any. */
		if (faccessat(c->dirs[0], "memory.max", F_OK, 0) < 0)
			return;
		put(c->dirs[0], "memory.max", "536870912");
		put(c->dirs[0], "pids.max", "512");
		put(c->dirs[0], "cpu.weight", "50");
		put(c->dirs[0], "cpu.max", "100000 100000");
		return;
	}
	put(c->dirs[1], "memory.limit_in_bytes", "536870912");
	put(c->dirs[2], "pids.max", "512");
	put(c->dirs[3], "cpu.shares", "512");
	put(c->dirs[3], "cpu.cfs_period_us", "100000");
	put(c->dirs[3], "cpu.cfs_quota_us", "100000");
}

static void cgroup_remove(const struct cgroup *c)
{
	for (size_t i = 0; i < c->n; i++)
		while (unlinkat(c->roots[i], c->name, AT_REMOVEDIR) < 0) {
			if (errno != EBUSY)
				die("remove cgroup");
			usleep(50);
		}
}

/* ---- mounts: all below the root's descriptor ---- */

static int new_fs(const char *type, uint64_t attrs, size_t n, const char *const (*options)[2])
{
	int fs = must(fsopen(type, FSOPEN_CLOEXEC), type), mnt;

	for (size_t i = 0; i < n; i++)
		must(fsconfig(fs, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0),
			options[i][0]);
	must(fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), type);
	mnt = must(fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attrs), type);
	close(fs);
	return mnt;
}

static void attach(int mnt, int dir, const char *path)
{
	must(move_mount(mnt, "", dir, path, MOVE_MOUNT_F_EMPTY_PATH), path);
	close(mnt);
}

/* A copy of what is mounted at path, if it exists. */
static int copy(int dir, const char *path, unsigned flags)
{
	return open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);
}

static void read_only(int mnt)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	must(mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof(attr)), "mount_setattr");
}

enum {
	SAFE = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
};

static void make_dev(int root)
{
	static const char *const dev_options[][2] = {{"mode", "755"}, {"size", "65536k"}},
				 *const pts_options[][2] = {{"ptmxmode", "0666"}, {"mode", "0620"},
					 {"gid", "5"}},
				 *const shm_options[][2] = {{"mode", "1777"}, {"size", "65536k"}};
	static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
	static const char *const links[][2] = {{"/proc/self/fd", "fd"},
		{"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
		{"/proc/self/fd/2", "stderr"}, {"/proc/kcore", "core"}, {"pts/ptmx", "ptmx"}};
	int dev = new_fs("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_STRICTATIME, 2, dev_options);

	for (size_t i = 0; i < LEN(nodes); i++)
		must(mknodat(dev, nodes[i], S_IFCHR | 0666,
			     makedev((unsigned)devices[i].major, (unsigned)devices[i].minor)),
			nodes[i]);
	for (size_t i = 0; i < LEN(links); i++)
		must(symlinkat(links[i][0], dev, links[i][1]), links[i][1]);
	must(mkdirat(dev, "pts", 0755), "dev/pts");
	must(mkdirat(dev, "shm", 0755), "dev/shm");
	must(mkdirat(dev, "mqueue", 0755), "dev/mqueue");
	attach(dev, root, "dev");
	attach(new_fs("devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 3, pts_options), root,
		"dev/pts");
	attach(new_fs("tmpfs", SAFE, 2, shm_options), root, "dev/shm");
	attach(new_fs("mqueue", SAFE, 0, NULL), root, "dev/mqueue");
}

/* Version 1: a folder of binds, one for each hierarchy. */
static void mount_cgroup(const struct cgroup *c, int root)
{
	if (c->v2) {
		attach(new_fs("cgroup2", SAFE | MOUNT_ATTR_RDONLY, 0, NULL), root, "sys/fs/cgroup");
		return;
	}
	static const char *const options[][2] = {{"mode", "755"}};
	char path[96];
	int top = new_fs("tmpfs", SAFE, 1, options);

	for (size_t i = 0; i < c->n; i++)
		must(mkdirat(top, v1_controllers[i], 0755), v1_controllers[i]);
	attach(top, root, "sys/fs/cgroup");
	int at = must(openat(root, "sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC), "cgroup");
	for (size_t i = 0; i < c->n; i++) {
		struct mount_attr attr = {.attr_set = SAFE | MOUNT_ATTR_RDONLY};
		int mnt;

		/* By path: the parent's descriptors are of mounts in another namespace. */
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/%s", v1_controllers[i], c->name);
		mnt = must(copy(AT_FDCWD, path, 0), path);

		must(mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof(attr)), "cgroup");
		attach(mnt, at, v1_controllers[i]);
	}
	close(at);
}

/* Folders are covered by copies of one empty file system, files by /dev/null. */
static void mask(int root)
{
	static const char *const files[] = {"proc/kcore", "proc/keys", "proc/latency_stats",
		"proc/timer_list", "proc/timer_stats", "proc/sched_debug"},
				 *const folders[] = {"proc/asound", "proc/acpi", "proc/scsi",
					 "sys/firmware", "sys/devices/virtual/powercap"},
				 *const kept[] = {"proc/bus", "proc/fs", "proc/irq", "proc/sys",
					 "proc/sysrq-trigger"};
	int empty = -1, mnt;

	for (size_t i = 0; i < LEN(files); i++) {
		if (faccessat(root, files[i], F_OK, 0) == 0)
			attach(must(copy(root, "dev/null", 0), "dev/null"), root, files[i]);
	}
	for (size_t i = 0; i < LEN(folders); i++) {
		if (faccessat(root, folders[i], F_OK, 0) < 0)
			continue;
		if (empty < 0) {
			attach(new_fs("tmpfs", SAFE | MOUNT_ATTR_RDONLY, 0, NULL), root,
				folders[i]);
			empty = must(openat(root, folders[i], O_PATH | O_CLOEXEC), folders[i]);
		} else {
			attach(must(copy(empty, "", AT_EMPTY_PATH), "mask"), root, folders[i]);
		}
	}
	for (size_t i = 0; i < LEN(kept); i++) {
		mnt = copy(root, kept[i], 0);
		if (mnt < 0)
			continue;
		read_only(mnt);
		attach(mnt, root, kept[i]);
	}
}

static void mounts(const struct cgroup *c, const char *rootfs)
{
	struct mount_attr slave = {.propagation = MS_SLAVE};
	int root;

	must(mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &slave, sizeof(slave)), "slave");
	attach(must(copy(AT_FDCWD, rootfs, 0), rootfs), AT_FDCWD, rootfs);
	root = must(open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC), rootfs);
	attach(new_fs("proc", SAFE, 0, NULL), root, "proc");
	make_dev(root);
	attach(new_fs("sysfs", SAFE | MOUNT_ATTR_RDONLY, 0, NULL), root, "sys");
	mount_cgroup(c, root);
	mask(root);
	must(fchdir(root), "fchdir");
	must(syscall(SYS_pivot_root, ".", "."), "pivot_root");
	must(umount2(".", MNT_DETACH), "umount");
	must(chdir("/"), "chdir");
}

/* ---- confinement ---- */

/* System calls that containers may not use, by number on x86-64: what makes the filter as long as
 * that of an engine's profile. For another architecture only its length means something. */
static const uint16_t denied[] = {103, 134, 136, 139, 153, 155, 156, 159, 161, 163, 164, 165, 166,
	167, 168, 169, 170, 171, 172, 173, 174, 175, 176, 177, 178, 179, 180, 212, 227, 237, 238,
	239, 246, 248, 249, 250, 256, 272, 279, 298, 300, 303, 304, 308, 310, 311, 312, 313, 320,
	321, 323, 425, 426, 427, 428, 429, 430, 431, 432, 433, 435, 438, 440, 442, 443};

/* A balanced tree over denied[from..to): the way a good compiler of filters does it. */
static size_t filter_tree(struct sock_filter *f, size_t n, size_t from, size_t to)
{
	size_t mid = (from + to) / 2, jump;

	if (from == to) {
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		return n;
	}
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied[mid], 0, 1);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, denied[mid], 0, 1);
	jump = n++;
	n = filter_tree(f, n, from, mid);
	f[jump] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)(n - jump - 1));
	return filter_tree(f, n, mid + 1, to);
}

static void filter(void)
{
	static struct sock_filter f[2048];
	static const uint32_t archs[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_I386};
	struct sock_fprog prog;
	size_t n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	for (size_t i = 0; i < LEN(archs); i++) {
		size_t jump;

		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, archs[i], 1, 0);
		jump = n++;
		f[n++] = (struct sock_filter)BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
		n = filter_tree(f, n, 0, LEN(denied));
		f[jump] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)(n - jump - 1));
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	prog = (struct sock_fprog){.len = (unsigned short)n, .filter = f};
	must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog), "seccomp");
}

static void confine(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{(uint32_t)caps, (uint32_t)caps, 0}, {(uint32_t)(caps >> 32), 0, 0}};

	/* Without no_new_privs, which Docker does not set, the filter needs CAP_SYS_ADMIN. */
	filter();
	for (int cap = 0; cap <= LAST_CAP; cap++)
		if (!(caps >> cap & 1))
			must(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0), "bounding set");
	must(syscall(SYS_setgroups, 0, NULL), "setgroups");
	must(syscall(SYS_setresgid, 0, 0, 0), "setgid");
	must(syscall(SYS_setresuid, 0, 0, 0), "setuid");
	must(syscall(SYS_capset, &head, data), "capset");
}

static void loopback(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");

	must(ioctl(fd, SIOCSIFFLAGS, &r), "lo");
	close(fd);
}

_Noreturn static void child(
	const struct cgroup *c, const char *rootfs, const char *program, int limited)
{
	char *const argv[] = {(char[]){"true"}, NULL}, *const env[] = {
							       (char[]){"PATH=/usr/bin:/bin"},
							       NULL};
	char byte;

	must(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "pdeathsig");
	must(setsid(), "setsid");
	if (c->v2)
		must(unshare(CLONE_NEWCGROUP), "cgroup namespace");
	else
		for (size_t i = 0; i < c->n; i++)
			put(c->dirs[i], "tasks", "0");
	umask(0);
	must(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, c->name), "keyring");
	loopback();
	must(sethostname("bench", 5), "hostname");
	mounts(c, rootfs);
	umask(022);
	must(read(limited, &byte, 1), "limits");
	must(close_range(3, ~0u, 0), "close_range");
	confine();
	execve(program, argv, env);
	die(program);
}

int main(int argc, char **argv)
{
	struct cgroup c;
	struct clone_args args = {.exit_signal = SIGCHLD,
		.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS};
	int limited[2], status;
	pid_t pid;

	if (argc < 2 || argc > 3) {
		fputs("start-floor ROOTFS [PROGRAM]\n", stderr);
		return 2;
	}
	must(pipe2(limited, O_CLOEXEC), "pipe");
	cgroup_make(&c);
	/* Before there is a child: between the first rule and the last it could make no node. */
	(c.v2 ? device_rules_v2 : device_rules_v1)(c.dirs[0]);
	if (c.v2) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (__u64)c.dirs[0];
	}
	pid = must(syscall(SYS_clone3, &args, sizeof(args)), "clone3");
	if (pid == 0) {
		close(limited[1]);
		child(&c, argv[1], argc > 2 ? argv[2] : "/bin/true", limited[0]);
	}
	cgroup_limit(&c);
	close(limited[1]);
	must(waitpid(pid, &status, 0), "wait");
	cgroup_remove(&c);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
