#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <seccomp.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "runtime/caps.h"
#include "runtime/confine.h"
#include "runtime/seccomp-profile.h"
#include "runtime/seccomp.h"
#include "tests/unit/bpf-run.h"

TEST(the_default_capabilities_are_dockers)
{
	assert_int_equal(confine_caps_default(), 0xa80425fb);
}

enum { ALLOW = SECCOMP_RET_ALLOW, ERR = SECCOMP_RET_ERRNO };

/* The default profile for a bounding set, compiled. */
static struct seccomp_prog profile(uint64_t caps)
{
	struct arena mem = {0};
	struct spec_seccomp s;
	struct seccomp_prog p;
	struct err e = {0};
	json_t *json = seccomp_profile(caps);
	struct at at = {NULL, "config.json", 0, json, &mem};

	assert_non_null(json);
	if (seccomp_read(&at, &s, &e) < 0 || seccomp_compile(&p, &s, &e) < 0)
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
	struct seccomp_prog p = profile(confine_caps_default());

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
	struct seccomp_prog p = profile(confine_caps_default());

	for (size_t i = 0; i < sizeof(dangerous) / sizeof(dangerous[0]); i++)
		if (ask(&p, dangerous[i], 0, 0) != (ERR | EPERM))
			fail_msg("%s is not refused", dangerous[i]);
	seccomp_prog_fini(&p);
}

TEST(a_granted_capability_allows_its_calls_and_no_others)
{
	struct seccomp_prog p = profile(confine_caps_default() | UINT64_C(1) << CAP_SYS_PTRACE |
					UINT64_C(1) << CAP_SYS_TIME);

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
	struct seccomp_prog p = profile(confine_caps_default());
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
	struct seccomp_prog p = profile(confine_caps_default());

	assert_true(p.n < 1000);
	seccomp_prog_fini(&p);
}

/* ---- beside the profile that podman and others start from ---- */

/* Docker's list as containers-common has it, which leaves what needs a capability to the kernel.
 * Names that the default capabilities allow there and not here, or here and not there, and why. */
static const struct {
	const char *names, *why;
} here_refused[] =
	{
		{"mount umount umount2 fsopen fsconfig fsmount fspick open_tree move_mount "
		 "mount_setattr "
		 "pivot_root setns unshare",
			"make and join mounts and namespaces: with CAP_SYS_ADMIN, as in Docker's "
			"own list"},
		{"clone3", "hides its flags behind a pointer: ENOSYS makes libc use clone, whose "
			   "flags a "
			   "filter sees"},
		{"ptrace pidfd_getfd", "with CAP_SYS_PTRACE: reach into another process"},
		{"syslog", "with CAP_SYSLOG or CAP_SYS_ADMIN: the host's kernel log"},
		{"reboot", "with CAP_SYS_BOOT"},
		{"get_mempolicy mbind set_mempolicy", "with CAP_SYS_NICE, as in Docker's own list"},
		{"keyctl", "keyrings belong to users, not to containers"},
		{"socketcall",
			"hides the family of a socket behind a pointer: libc has not used it since "
			"socket has a number of its own on 32 bits"},
		{"readdir syscall timerfd", "obsolete"},
},
  here_allowed[] = {
	  {"arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2 "
	   "riscv_flush_icache",
		  "exist on other architectures only, where that list has them too"},
	  {"cachestat fchmodat2 file_getattr futex_requeue futex_wait futex_waitv futex_wake "
	   "getxattrat listxattrat map_shadow_stack mseal removexattrat setxattrat",
		  "newer than that list: variants of calls that it allows"},
	  {"io_pgetevents io_pgetevents_time64", "wait as io_getevents does, which it allows"},
	  {"nice", "setpriority, which it allows, does the same"},
	  {"vmsplice", "moves the caller's own pages; in Docker's own list"},
};

static bool is_listed(const char *names, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = strstr(names, name); p; p = strstr(p + 1, name))
		if ((p == names || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
			return true;
	return false;
}

/* Are all of the rule's conditions on capabilities and architectures met? */
static bool applies(const json_t *rule, uint64_t caps)
{
	const json_t *in = json_object_get(rule, "includes");
	const json_t *out = json_object_get(rule, "excludes");
	size_t i;
	json_t *v;
	bool arch = !json_array_size(json_object_get(in, "arches"));

	json_array_foreach (json_object_get(in, "caps"), i, v)
		if (!(caps >> caps_number(json_string_value(v)) & 1))
			return false;
	json_array_foreach (json_object_get(out, "caps"), i, v)
		if (caps >> caps_number(json_string_value(v)) & 1)
			return false;
	json_array_foreach (json_object_get(in, "arches"), i, v)
		arch |= str_eq(json_string_value(v), "amd64");
	return arch;
}

/* Names that some rule allows, in whatever circumstances; an object of nulls. */
static json_t *allowed(const json_t *profile, uint64_t caps)
{
	json_t *set = json_object(), *rule, *name;
	size_t i, k;

	json_array_foreach (json_object_get(profile, "syscalls"), i, rule) {
		if (!str_eq(json_string_value(json_object_get(rule, "action")), "SCMP_ACT_ALLOW") ||
			!applies(rule, caps))
			continue;
		json_array_foreach (json_object_get(rule, "names"), k, name)
			json_object_set_new(set, json_string_value(name), json_null());
	}
	return set;
}

#define EXPLAINED(table, name)                                                                     \
	({                                                                                         \
		bool found_ = false;                                                               \
		for (size_t i_ = 0; i_ < sizeof(table) / sizeof((table)[0]); i_++)                 \
			found_ |= is_listed((table)[i_].names, name);                              \
		found_;                                                                            \
	})

TEST(every_difference_from_the_usual_profile_has_a_reason)
{
	struct buf text = BUF_INIT(1 << 20);
	struct err e = {0};
	json_t *theirs, *ours, *profile, *v;
	size_t explained = 0;
	const char *name;

	if (access("/usr/share/containers/seccomp.json", R_OK) < 0) {
		print_message("skipped: no /usr/share/containers/seccomp.json\n");
		skip();
	}
	assert_int_equal(file_read(AT_FDCWD, "/usr/share/containers/seccomp.json", &text, &e), 0);
	profile = json_parse(text.data, text.len, &e);
	assert_non_null(profile);
	theirs = allowed(profile, confine_caps_default());
	json_decref(profile);
	profile = seccomp_profile(confine_caps_default());
	ours = allowed(profile, confine_caps_default());
	json_decref(profile);
	json_object_foreach (theirs, name, v) {
		bool there = json_object_get(ours, name);

		if (there == EXPLAINED(here_refused, name))
			fail_msg("%s: allowed there, %s here", name, there ? "and" : "and not");
		explained += !there;
	}
	json_object_foreach (ours, name, v) {
		bool there = json_object_get(theirs, name);

		if (there == EXPLAINED(here_allowed, name))
			fail_msg("%s: allowed here, %s there", name, there ? "and" : "and not");
		explained += !there;
	}
	/* Nor does a table tell of a difference that is none. */
	assert_int_equal(explained, 26 + 24);
	json_decref(theirs);
	json_decref(ours);
	buf_fini(&text);
}

RUN_TESTS(cmocka_unit_test(the_default_capabilities_are_dockers),
	cmocka_unit_test(the_default_profile_decides_by_arguments),
	cmocka_unit_test(the_default_profile_refuses_every_dangerous_call),
	cmocka_unit_test(a_granted_capability_allows_its_calls_and_no_others),
	cmocka_unit_test(calls_newer_than_the_list_do_not_exist),
	cmocka_unit_test(the_default_profile_is_a_small_program),
	cmocka_unit_test(every_difference_from_the_usual_profile_has_a_reason))
