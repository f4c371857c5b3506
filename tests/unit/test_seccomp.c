#include "tests/unit/test.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/str.h"
#include "runtime/caps.h"
#include "runtime/seccomp-profile.h"
#include "runtime/seccomp.h"
#include "tests/unit/bpf-run.h"

enum { ALLOW = SECCOMP_RET_ALLOW, ERR = SECCOMP_RET_ERRNO };

/* The default profile for a bounding set, compiled. */
static struct seccomp_prog profile(uint64_t caps)
{
	struct arena mem = {0};
	struct spec_seccomp s;
	struct seccomp_prog p;
	struct err e = {0};
	json_t *json = seccomp_profile(caps);
	struct at at = {NULL, "config.json", 0, json};

	assert_non_null(json);
	if (seccomp_read(&at, &s, &mem, &e) < 0 || seccomp_compile(&p, &s, &e) < 0)
		fail_msg("%s", e.text);
	arena_fini(&mem);
	json_decref(json);
	return p;
}

static uint32_t ask(const struct seccomp_prog *p, const char *name, uint64_t a0, uint64_t a1)
{
	int nr = seccomp_syscall_resolve_name(name);
	struct seccomp_data d = {.nr = nr, .arch = seccomp_arch_native(), .args = {a0, a1}};

	if (nr < 0)
		fail_msg("no system call '%s'", name);
	return bpf_run(p->code, p->n, &d);
}

struct question {
	const char *name;
	uint64_t a0, a1;
	uint32_t want;
};

static const struct question defaults[] = {
	{"read", 0, 0, ALLOW}, {"execve", 0, 0, ALLOW}, {"ioctl", 0, TCGETS, ALLOW},
	{"ioctl", 0, TIOCSTI, ERR | EPERM},
	{"ioctl", 0, UINT64_C(0xffffffff00000000) | TIOCSTI, ERR | EPERM},
	{"ioctl", 0, TIOCLINUX, ERR | EPERM}, {"socket", AF_INET, 0, ALLOW},
	{"socket", AF_UNIX, 0, ALLOW}, {"socket", AF_VSOCK, 0, ERR | EPERM},
	{"socket", UINT64_C(0x100000000) | AF_VSOCK, 0, ERR | EPERM},
	{"socket", AF_ALG, 0, ERR | EAFNOSUPPORT}, {"personality", PER_LINUX, 0, ALLOW},
	{"personality", PER_LINUX32, 0, ALLOW}, {"personality", 0xffffffff, 0, ALLOW},
	{"personality", ADDR_NO_RANDOMIZE, 0, ERR | EPERM},
	{"personality", MMAP_PAGE_ZERO, 0, ERR | EPERM},
	{"personality", READ_IMPLIES_EXEC, 0, ERR | EPERM},
	{"clone", CLONE_VM | CLONE_THREAD, 0, ALLOW}, {"clone", SIGCHLD, 0, ALLOW},
	{"clone", CLONE_NEWUSER | SIGCHLD, 0, ERR | EPERM},
	{"clone", CLONE_NEWNS | SIGCHLD, 0, ERR | EPERM},
	{"clone", CLONE_NEWCGROUP, 0, ERR | EPERM}, {"clone3", 0, 0, ERR | ENOSYS},
	{"io_uring_setup", 0, 0, ERR | ENOSYS},
	{"chroot", 0, 0, ALLOW}, /* CAP_SYS_CHROOT is among the defaults */
};

/* What Docker's list refuses without further capabilities, and ptrace. */
static const char *const dangerous[] = {"acct", "add_key", "bpf", "clock_settime", "create_module",
	"delete_module", "fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
	"get_kernel_syms", "get_mempolicy", "init_module", "ioperm", "iopl", "kcmp",
	"kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mbind", "mount",
	"mount_setattr", "move_mount", "move_pages", "migrate_pages", "nfsservctl",
	"open_by_handle_at", "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root",
	"process_madvise", "ptrace", "query_module", "quotactl", "quotactl_fd", "reboot",
	"request_key", "set_mempolicy", "setdomainname", "sethostname", "setns", "settimeofday",
	"swapoff", "swapon", "_sysctl", "sysfs", "syslog", "umount2", "unshare", "uselib",
	"userfaultfd", "ustat", "vhangup"};

TEST(the_default_profile_decides_by_arguments)
{
	struct seccomp_prog p = profile(caps_default());

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		const struct question *q = &defaults[i];

		if (ask(&p, q->name, q->a0, q->a1) != q->want)
			fail_msg("%s(%#llx, %#llx): %#x", q->name, (unsigned long long)q->a0,
				(unsigned long long)q->a1, ask(&p, q->name, q->a0, q->a1));
	}
	seccomp_prog_fini(&p);
}

TEST(the_default_profile_refuses_every_dangerous_call)
{
	struct seccomp_prog p = profile(caps_default());

	for (size_t i = 0; i < sizeof(dangerous) / sizeof(dangerous[0]); i++)
		if (ask(&p, dangerous[i], 0, 0) != (ERR | EPERM))
			fail_msg("%s is not refused", dangerous[i]);
	seccomp_prog_fini(&p);
}

TEST(a_granted_capability_allows_its_calls_and_no_others)
{
	struct seccomp_prog p = profile(
		caps_default() | UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_SYS_TIME);

	assert_int_equal(ask(&p, "ptrace", 0, 0), ALLOW);
	assert_int_equal(ask(&p, "settimeofday", 0, 0), ALLOW);
	assert_int_equal(ask(&p, "mount", 0, 0), ERR | EPERM);
	seccomp_prog_fini(&p);
	p = profile(UINT64_C(1) << CAP_SYS_ADMIN);
	assert_int_equal(ask(&p, "mount", 0, 0), ALLOW);
	assert_int_equal(ask(&p, "clone", CLONE_NEWNS, 0), ALLOW);
	assert_int_equal(ask(&p, "clone3", 0, 0), ALLOW);
	assert_int_equal(ask(&p, "chroot", 0, 0), ERR | EPERM);
	assert_int_equal(ask(&p, "ioctl", 0, TIOCSTI), ERR | EPERM);
	seccomp_prog_fini(&p);
}

TEST(calls_newer_than_the_list_do_not_exist)
{
	struct seccomp_prog p = profile(caps_default());
	struct seccomp_data d = {.nr = 600, .arch = seccomp_arch_native()};

	assert_int_equal(bpf_run(p.code, p.n, &d), ERR | ENOSYS);
	d.nr = 452; /* fchmodat2: newer than libseccomp's table, in the profile */
	assert_int_equal(bpf_run(p.code, p.n, &d), ALLOW);
	d.nr = 457; /* statmount: known, not in the profile */
	assert_int_equal(bpf_run(p.code, p.n, &d), ERR | EPERM);
	d.arch = AUDIT_ARCH_PPC64;
	assert_int_equal(bpf_run(p.code, p.n, &d), ERR | ENOSYS);
	seccomp_prog_fini(&p);
}

TEST(the_default_profile_is_a_small_program)
{
	struct seccomp_prog p = profile(caps_default());

	assert_true(p.n < 1000);
	seccomp_prog_fini(&p);
}

static void refuse(const char *text, enum err_kind kind, const char *message)
{
	struct err e = {0};
	struct arena mem = {0};
	struct spec_seccomp s;
	json_t *json = json_parse(text, strlen(text), &e);
	struct at top = {NULL, "c", 0, NULL}, at = {&top, "seccomp", 0, json};

	assert_non_null(json);
	if (seccomp_read(&at, &s, &mem, &e) == 0)
		fail_msg("accepted: %s", text);
	assert_int_equal(e.kind, kind);
	assert_string_equal(e.text, message);
	arena_fini(&mem);
	json_decref(json);
}

TEST(errors_name_the_place)
{
#define D "\"defaultAction\": \"SCMP_ACT_ERRNO\""
	refuse("{}", ERR_CORRUPT, "c: /seccomp: missing key 'defaultAction'");
	refuse("{\"defaultAction\": \"SCMP_ACT_NOTIFY\"}", ERR_UNSUPPORTED,
		"c: /seccomp/defaultAction: unknown value 'SCMP_ACT_NOTIFY'");
	refuse("{" D ", \"defaultErrnoRet\": 70000}", ERR_CORRUPT,
		"c: /seccomp: errnoRet 70000 does not fit the action");
	refuse("{" D ", \"architectures\": [\"SCMP_ARCH_VAX\"]}", ERR_UNSUPPORTED,
		"c: /seccomp/architectures/0: unknown value 'SCMP_ARCH_VAX'");
	refuse("{" D ", \"listenerPath\": \"/x\"}", ERR_UNSUPPORTED,
		"c: /seccomp/listenerPath: not supported by this version");
	refuse("{" D ", \"syscalls\": [{\"names\": [], \"action\": \"SCMP_ACT_ALLOW\"}]}",
		ERR_CORRUPT, "c: /seccomp/syscalls/0: names: empty");
	refuse("{" D ", \"syscalls\": [{\"names\": [\"read\"], \"action\": \"SCMP_ACT_ALLOW\", "
	       "\"errnoRet\": 1}]}",
		ERR_CORRUPT, "c: /seccomp/syscalls/0: errnoRet 1 does not fit the action");
	refuse("{" D ", \"syscalls\": [{\"names\": [\"read\"], \"action\": \"SCMP_ACT_ALLOW\", "
	       "\"args\": [{\"index\": 6, \"value\": 0, \"op\": \"SCMP_CMP_EQ\"}]}]}",
		ERR_CORRUPT,
		"c: /seccomp/syscalls/0/args/0: index 6: a system call has 6 arguments");
	refuse("{" D ", \"syscalls\": [{\"names\": [\"read\", 7], \"action\": "
	       "\"SCMP_ACT_ALLOW\"}]}",
		ERR_CORRUPT, "c: /seccomp/syscalls/0/names/1: expected a string");
}

RUN_TESTS(cmocka_unit_test(the_default_profile_decides_by_arguments),
	cmocka_unit_test(the_default_profile_refuses_every_dangerous_call),
	cmocka_unit_test(a_granted_capability_allows_its_calls_and_no_others),
	cmocka_unit_test(calls_newer_than_the_list_do_not_exist),
	cmocka_unit_test(the_default_profile_is_a_small_program),
	cmocka_unit_test(errors_name_the_place))
