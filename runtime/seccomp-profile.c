#include "runtime/seccomp-profile.h"

#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

/* The policy, as data. Rows are tried from above; the first that fits decides.
 *
 * A call is allowed when what it does is bound by the namespaces, the capabilities and the cgroup
 * of the container anyway. Not in the list, and so refused: everything that makes or joins
 * namespaces or mounts, loads code into the kernel (modules, kexec, bpf), traces other processes or
 * takes their descriptors, sees host-wide state (perf, kcmp, lookup_dcookie, syslog), keeps kernel
 * objects that are not namespaced (keyrings, io_uring, userfaultfd), sets the clock, or is
 * obsolete.
 *
 * names: separated by white space; names that an architecture lacks do no harm.
 * cap: the row counts only when the container's bounding set has it (0 is CAP_CHOWN, so + 1).
 * unless: the row counts only when it has not. */
struct row {
	const char *names;
	int cap, unless;
	int error; /* refuse with this errno; 0: allow */
	int arg;   /* index + 1 of an argument that must satisfy (arg & mask) == value; 0: none */
	unsigned long mask, value;
};

#define CAP(c) .cap = CAP_##c + 1
#define UNLESS(c) .unless = CAP_##c + 1
/* Only the low 32 bits: the kernel ignores the others where it takes an int, so a filter that
 * looked at them could be passed by. */
#define INT_ARG(i, v) .arg = (i) + 1, .mask = 0xffffffff, .value = (v)
#define NO_BITS(i, bits) .arg = (i) + 1, .mask = (bits), .value = 0

/* A time namespace is not among them: its bit is part of clone's signal, so that only unshare and
 * clone3, which are not for those without CAP_SYS_ADMIN, can make one. */
#define NS_FLAGS                                                                                   \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
		CLONE_NEWPID | CLONE_NEWNET)

/* clang-format off */
static const struct row rows[] = {
	/* Typing into a terminal or its console on behalf of its user. */
	{.names = "ioctl", .error = EPERM, INT_ARG(1, TIOCSTI)},
	{.names = "ioctl", .error = EPERM, INT_ARG(1, TIOCLINUX)},
	/* Sockets that reach the hypervisor or parse requests in the kernel's crypto layer;
	 * the rest of the families are bound by the network namespace. */
	{.names = "socket", .error = EPERM, INT_ARG(0, AF_VSOCK)},
	{.names = "socket", .error = EAFNOSUPPORT, INT_ARG(0, AF_ALG)},
	{.names = "ioctl socket"},

	/* Execution domains that switch off randomisation or map the zero page stay out. */
	{.names = "personality", INT_ARG(0, PER_LINUX)},
	{.names = "personality", INT_ARG(0, PER_LINUX32)},
	{.names = "personality", INT_ARG(0, UNAME26)},
	{.names = "personality", INT_ARG(0, UNAME26 | PER_LINUX32)},
	{.names = "personality", INT_ARG(0, 0xffffffff)}, /* asks */

	/* clone3 hides its flags behind a pointer: ENOSYS makes libc use clone. */
	{.names = "clone clone3 unshare setns", CAP(SYS_ADMIN)},
	{.names = "clone", UNLESS(SYS_ADMIN), NO_BITS(0, NS_FLAGS)},
	{.names = "clone3", .error = ENOSYS, UNLESS(SYS_ADMIN)},
	{.names = "io_uring_setup io_uring_enter io_uring_register", .error = ENOSYS},

	/* Processes, threads, signals. */
	{.names =
		"execve execveat exit exit_group fork vfork wait4 waitid waitpid getpid getppid "
		"gettid getpgid getpgrp getsid setpgid setsid kill tkill tgkill rt_sigqueueinfo "
		"rt_tgsigqueueinfo pidfd_open pidfd_send_signal pause rt_sigaction rt_sigpending "
		"rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 "
		"sigaction sigaltstack signal sigpending sigprocmask sigreturn sigsuspend "
		"restart_syscall signalfd signalfd4 prctl arch_prctl set_tid_address "
		"set_robust_list get_robust_list set_thread_area get_thread_area set_tls "
		"modify_ldt rseq membarrier futex futex_time64 futex_waitv futex_wake futex_wait "
		"futex_requeue getcpu process_vm_readv process_vm_writev process_mrelease"},
	{.names =
		"sched_getaffinity sched_getattr sched_getparam sched_get_priority_max "
		"sched_get_priority_min sched_getscheduler sched_rr_get_interval "
		"sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam "
		"sched_setscheduler sched_yield getpriority setpriority nice ioprio_get "
		"ioprio_set"},
	{.names = "seccomp landlock_add_rule landlock_create_ruleset landlock_restrict_self"},

	/* Identity: bound by the capability sets. */
	{.names =
		"getuid getuid32 geteuid geteuid32 getgid getgid32 getegid getegid32 getgroups "
		"getgroups32 getresuid getresuid32 getresgid getresgid32 setuid setuid32 setgid "
		"setgid32 setreuid setreuid32 setregid setregid32 setresuid setresuid32 setresgid "
		"setresgid32 setfsuid setfsuid32 setfsgid setfsgid32 setgroups setgroups32 capget "
		"capset"},

	/* Memory. */
	{.names =
		"brk mmap mmap2 mprotect munmap mremap madvise mincore mlock mlock2 mlockall "
		"munlock munlockall msync remap_file_pages memfd_create memfd_secret pkey_alloc "
		"pkey_free pkey_mprotect map_shadow_stack mseal cachestat"},

	/* Files. */
	{.names =
		"open openat openat2 creat close close_range read readv pread64 preadv preadv2 "
		"write writev pwrite64 pwritev pwritev2 lseek _llseek dup dup2 dup3 fcntl fcntl64 "
		"flock ftruncate ftruncate64 truncate truncate64 fallocate fsync fdatasync sync "
		"syncfs sync_file_range sync_file_range2 arm_sync_file_range readahead fadvise64 "
		"fadvise64_64 arm_fadvise64_64 copy_file_range sendfile sendfile64 splice tee "
		"vmsplice pipe pipe2"},
	{.names =
		"stat stat64 lstat lstat64 fstat fstat64 fstatat64 newfstatat statx "
		"statfs statfs64 fstatfs fstatfs64 access faccessat faccessat2 "
		"readlink readlinkat getdents getdents64 getcwd chdir fchdir umask "
		"name_to_handle_at utime utimes utimensat utimensat_time64 futimesat"},
	{.names =
		"mkdir mkdirat mknod mknodat rmdir unlink unlinkat rename renameat renameat2 link "
		"linkat symlink symlinkat chmod fchmod fchmodat fchmodat2 chown chown32 lchown "
		"lchown32 fchown fchown32 fchownat"},
	{.names =
		"getxattr lgetxattr fgetxattr getxattrat setxattr lsetxattr fsetxattr setxattrat "
		"listxattr llistxattr flistxattr listxattrat removexattr lremovexattr "
		"fremovexattr removexattrat file_getattr"},
	{.names = "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch fanotify_mark"},
	{.names = "chroot", CAP(SYS_CHROOT)},

	/* Waiting for things. */
	{.names =
		"poll ppoll ppoll_time64 select _newselect pselect6 pselect6_time64 epoll_create "
		"epoll_create1 epoll_ctl epoll_ctl_old epoll_wait epoll_wait_old epoll_pwait "
		"epoll_pwait2 eventfd eventfd2 io_setup io_destroy io_submit io_cancel "
		"io_getevents io_pgetevents io_pgetevents_time64"},

	/* Sockets and System V IPC. */
	{.names =
		"socketpair bind listen accept accept4 connect getsockname getpeername getsockopt "
		"setsockopt shutdown send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg "
		"recvmmsg_time64"},
	{.names =
		"ipc msgctl msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time64 "
		"shmat shmctl shmdt shmget mq_getsetattr mq_notify mq_open mq_timedreceive "
		"mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink"},

	/* Time (reading it; setting needs a capability besides, adjtimex checks for itself). */
	{.names =
		"time times gettimeofday clock_gettime clock_gettime64 clock_getres "
		"clock_getres_time64 clock_nanosleep clock_nanosleep_time64 nanosleep adjtimex "
		"clock_adjtime clock_adjtime64 alarm getitimer setitimer timer_create "
		"timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime "
		"timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime "
		"timerfd_settime64"},

	/* Limits and facts. */
	{.names =
		"getrlimit ugetrlimit setrlimit prlimit64 getrusage sysinfo uname "
		"getrandom"},
	{.names = "cacheflush breakpoint riscv_flush_icache"},

	/* What a granted capability would be useless without. */
	{.names =
		"mount umount umount2 fsopen fsconfig fsmount fspick open_tree open_tree_attr "
		"move_mount mount_setattr pivot_root statmount listmount sethostname "
		"setdomainname quotactl quotactl_fd fanotify_init lookup_dcookie bpf "
		"perf_event_open syslog file_setattr",
		CAP(SYS_ADMIN)},
	{.names = "ptrace kcmp pidfd_getfd process_madvise", CAP(SYS_PTRACE)},
	{.names = "open_by_handle_at", CAP(DAC_READ_SEARCH)},
	{.names = "reboot", CAP(SYS_BOOT)},
	{.names = "init_module finit_module delete_module", CAP(SYS_MODULE)},
	{.names = "acct", CAP(SYS_PACCT)},
	{.names = "iopl ioperm", CAP(SYS_RAWIO)},
	{.names = "settimeofday stime clock_settime clock_settime64", CAP(SYS_TIME)},
	{.names = "vhangup", CAP(SYS_TTY_CONFIG)},
	{.names = "get_mempolicy mbind set_mempolicy set_mempolicy_home_node", CAP(SYS_NICE)},
	{.names = "syslog", CAP(SYSLOG)},
	{.names = "bpf", CAP(BPF)},
	{.names = "perf_event_open", CAP(PERFMON)},
};
/* clang-format on */

static json_t *split(const char *names)
{
	json_t *out = json_array();

	for (const char *p = names; *p;) {
		size_t n = strcspn(p, " ");

		if (n)
			json_array_append_new(out, json_stringn_nocheck(p, n));
		p += n + (p[n] == ' ');
	}
	return out;
}

static json_t *rule(const struct row *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "names", split(r->names));
	json_object_set_new(
		o, "action", json_string(r->error ? "SCMP_ACT_ERRNO" : "SCMP_ACT_ALLOW"));
	if (r->error)
		json_object_set_new(o, "errnoRet", json_integer(r->error));
	if (r->arg)
		json_object_set_new(o, "args",
			json_pack("[{s:i, s:I, s:I, s:s}]", "index", r->arg - 1, "value",
				(json_int_t)r->mask, "valueTwo", (json_int_t)r->value, "op",
				"SCMP_CMP_MASKED_EQ"));
	return o;
}

json_t *seccomp_profile(uint64_t caps)
{
	json_t *syscalls = json_array();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];

		if (r->cap && !(caps >> (r->cap - 1) & 1))
			continue;
		if (r->unless && caps >> (r->unless - 1) & 1)
			continue;
		json_array_append_new(syscalls, rule(r));
	}
	return json_pack("{s:s, s:i, s:o, s:[s], s:o}", "defaultAction", "SCMP_ACT_ERRNO",
		"defaultErrnoRet", EPERM, "architectures",
#if defined(__x86_64__)
		json_pack("[s, s]", "SCMP_ARCH_X86_64", "SCMP_ARCH_X86"),
#elif defined(__aarch64__)
		json_pack("[s, s]", "SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"),
#else
#error "the seccomp profile knows x86-64 and arm64"
#endif
		/* Without it kernels before 5.16 slow every filtered process down (no speculative
		 * store bypass), for a protection that only matters inside one process. */
		"flags", "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "syscalls", syscalls);
}
