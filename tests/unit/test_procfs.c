#include "tests/unit/test.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/procfs.h"

#define EXPECT(n, x)                                                                               \
	do {                                                                                       \
		if (!(x))                                                                          \
			return n;                                                                  \
	} while (0)

static void in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* One sysctl, and the namespaces that the container has of its own. */
struct one {
	struct spec_pair pair;
	struct spec s;
};

static void set_one(struct one *o, const char *name, const char *value, enum ns_kind ns)
{
	*o = (struct one){.pair = {name, value}};
	o->s.sysctls = (struct spec_pairs){&o->pair, 1};
	o->s.namespaces[ns].given = true;
}

static void refuse(const char *name, enum ns_kind ns, enum err_kind kind, const char *text)
{
	auto_fd int proc = sys_open("/proc", O_PATH | O_DIRECTORY, 0);
	struct err e = {0};
	struct one o;

	set_one(&o, name, "1", ns);
	assert_int_equal(procfs_sysctls(proc, &o.s, &e), -1);
	assert_string_equal(e.text, text);
	assert_int_equal(e.kind, kind);
}

TEST(only_sysctls_of_the_containers_namespaces_can_be_set)
{
	static const struct {
		const char *name;
		enum ns_kind ns;
	} cases[] = {
		{"kernel.core_pattern", NS_NETWORK},
		{"kernel/core_pattern", NS_NETWORK},
		{"vm.overcommit_memory", NS_IPC},
		{"net.ipv4.ip_forward", NS_IPC},
		{"net/ipv4/ip_forward", NS_IPC},
		{"kernel.shmmax", NS_NETWORK},
		{"kernel.domainname", NS_IPC},
		{"user.max_user_namespaces", NS_PID},
		{"net", NS_NETWORK},
		{"kernel.msg.x", NS_IPC},
		{"fs.file-max", NS_IPC},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128];

		snprintf(text, sizeof(text), "sysctl %s would change the host", cases[i].name);
		refuse(cases[i].name, cases[i].ns, ERR_DENIED, text);
	}
}

TEST(a_name_leads_nowhere_else)
{
	refuse("net/../kernel/core_pattern", NS_NETWORK, ERR_USAGE,
		"sysctl 'net/../kernel/core_pattern'");
	refuse("net//ipv4", NS_NETWORK, ERR_USAGE, "sysctl 'net//ipv4'");
	refuse("net...kernel", NS_NETWORK, ERR_USAGE, "sysctl 'net...kernel'");
	refuse("net.//.kernel", NS_NETWORK, ERR_USAGE, "sysctl 'net.//.kernel'");
	refuse("", NS_NETWORK, ERR_USAGE, "sysctl ''");
	refuse(".net", NS_NETWORK, ERR_USAGE, "sysctl '.net'");
	refuse("net.", NS_NETWORK, ERR_USAGE, "sysctl 'net.'");
	refuse("net.nothing.like.that", NS_NETWORK, ERR_NOT_FOUND,
		"sysctl net.nothing.like.that: open sys/net/nothing/like/that: No such file or "
		"directory");
}

TEST(a_namespace_that_is_our_own_is_not_the_containers)
{
	struct err e = {0};
	struct one o;

	set_one(&o, "net.ipv4.ip_forward", "1", NS_NETWORK);
	assert_int_equal(procfs_check_sysctls(&o.s, &e), 0);
	o.s.namespaces[NS_NETWORK].path = "/proc/self/ns/net";
	assert_int_equal(procfs_check_sysctls(&o.s, &e), -1);
	assert_string_equal(e.text, "sysctl net.ipv4.ip_forward would change the host");
	/* Any other: where it leads is found out when it is joined. */
	o.s.namespaces[NS_NETWORK].path = "/proc/self/ns/uts";
	assert_int_equal(procfs_check_sysctls(&o.s, &e), 0);
}

TEST(the_host_name_is_set_in_one_place)
{
	auto_fd int proc = sys_open("/proc", O_PATH | O_DIRECTORY, 0);
	struct err e = {0};
	struct one o;

	set_one(&o, "kernel.hostname", "x", NS_UTS);
	assert_int_equal(procfs_check_sysctls(&o.s, &e), -1);
	assert_string_equal(e.text, "sysctl kernel.hostname: that is what hostname is for");
	set_one(&o, "kernel/domainname", "x", NS_UTS);
	assert_int_equal(procfs_check_sysctls(&o.s, &e), 0);
	o.s.domainname = "y";
	e = (struct err){0};
	assert_int_equal(procfs_sysctls(proc, &o.s, &e), -1);
	assert_string_equal(e.text, "sysctl kernel/domainname: the config has a domainname, too");
}

static int set_and_read(int proc, const char *name, const char *value, const char *file)
{
	char now[64];
	struct one o;

	set_one(&o, name, value, NS_NETWORK);
	EXPECT(10, procfs_sysctls(proc, &o.s, NULL) == 0);
	EXPECT(11, procfs_read(proc, file, now, sizeof(now), NULL) == 0);
	EXPECT(12, str_eq(now, value));
	return 0;
}

static int spellings(void)
{
	static const char forward[] = "sys/net/ipv4/ip_forward";
	static const char dotted[] = "sys/net/ipv4/conf/a.1/forwarding";
	int proc;

	EXPECT(1, unshare(CLONE_NEWNET) == 0);
	EXPECT(2, system("ip link add a.1 type veth peer name b 2>/dev/null") == 0);
	proc = procfs_open(NULL);
	EXPECT(3, proc >= 0);
	EXPECT(4, set_and_read(proc, "net.ipv4.ip_forward", "1", forward) == 0);
	EXPECT(5, set_and_read(proc, "net/ipv4/ip_forward", "0", forward) == 0);
	EXPECT(6, set_and_read(proc, "net.ipv4.conf.a/1.forwarding", "1", dotted) == 0);
	EXPECT(7, set_and_read(proc, "net/ipv4/conf/a.1/forwarding", "0", dotted) == 0);
	return 0;
}

TEST(names_are_as_sysctl_8_takes_them)
{
	if (geteuid() != 0 || system("ip link help 2>/dev/null; test $? != 127") != 0)
		skip();
	in_child(spellings);
}

TEST(what_is_not_on_a_procfs_is_not_written_to)
{
	char path[] = "/tmp/svrun-procfs-XXXXXX";
	struct err e = {0};
	int dir, fd;

	assert_non_null(mkdtemp(path));
	dir = sys_open(path, O_PATH | O_DIRECTORY, 0);
	fd = sys_openat(dir, "file", O_CREAT | O_WRONLY, 0644);
	assert_int_equal(procfs_write(dir, "file", "x", &e), -1);
	assert_string_equal(e.text, "file is not on a procfs");
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	assert_int_equal(procfs_write(-1, "file", "x", &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
	close(fd);
	close(dir);
	assert_int_equal(sys_remove_tree(AT_FDCWD, path), 0);
}

TEST(links_out_of_the_procfs_are_not_followed)
{
	int proc = sys_open("/proc", O_PATH | O_DIRECTORY, 0);
	struct err e = {0};

	assert_int_equal(procfs_write(proc, "self/cwd/x", "x", &e), -1);
	assert_int_equal(procfs_write(proc, "../etc/x", "x", &e), -1);
	close(proc);
}

/* Another file of procfs, bound over the one that is meant (CVE-2025-52881). */
static int overmounted(void)
{
	struct err e = {0};
	int proc, own;

	EXPECT(1, unshare(CLONE_NEWNS) == 0);
	EXPECT(2, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	EXPECT(3, mount("/proc/self/comm", "/proc/self/oom_score_adj", NULL, MS_BIND, NULL) == 0);
	proc = sys_open("/proc", O_PATH | O_DIRECTORY, 0);
	EXPECT(4, procfs_write(proc, "self/oom_score_adj", "7", &e) < 0);
	EXPECT(5, str_eq(e.text, "open self/oom_score_adj: Invalid cross-device link"));
	/* Our own is nobody else's. */
	own = procfs_open(NULL);
	EXPECT(6, own >= 0 && procfs_write(own, "self/oom_score_adj", "7", NULL) == 0);
	return 0;
}

TEST(what_is_mounted_over_a_file_of_procfs_is_not_written_to)
{
	if (geteuid() != 0)
		skip();
	in_child(overmounted);
}

static int first_of_its_namespace(void)
{
	char text[512];
	int proc = procfs_open(NULL);

	EXPECT(1, getpid() == 1 && proc >= 0);
	EXPECT(2, procfs_read(proc, "1/stat", text, sizeof(text), NULL) == 0);
	EXPECT(3, str_starts(text, "1 (test_procfs)"));
	EXPECT(4, procfs_read(proc, "2/stat", text, sizeof(text), NULL) < 0);
	return 0;
}

static int in_pid_namespace(void)
{
	int status;
	pid_t pid;

	EXPECT(1, unshare(CLONE_NEWPID) == 0);
	pid = fork();
	if (pid == 0)
		_exit(first_of_its_namespace());
	EXPECT(2, waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(our_own_procfs_shows_our_own_pid_namespace)
{
	if (geteuid() != 0)
		skip();
	in_child(in_pid_namespace);
}

TEST(a_file_longer_than_expected_is_an_error)
{
	auto_fd int proc = sys_open("/proc", O_PATH | O_DIRECTORY, 0);
	struct err e = {0};
	char text[8];

	assert_int_equal(procfs_read(proc, "self/status", text, sizeof(text), &e), -1);
	assert_string_equal(e.text, "self/status is longer than expected");
}

RUN_TESTS(cmocka_unit_test(only_sysctls_of_the_containers_namespaces_can_be_set),
	cmocka_unit_test(a_name_leads_nowhere_else),
	cmocka_unit_test(a_namespace_that_is_our_own_is_not_the_containers),
	cmocka_unit_test(the_host_name_is_set_in_one_place),
	cmocka_unit_test(names_are_as_sysctl_8_takes_them),
	cmocka_unit_test(what_is_not_on_a_procfs_is_not_written_to),
	cmocka_unit_test(links_out_of_the_procfs_are_not_followed),
	cmocka_unit_test(what_is_mounted_over_a_file_of_procfs_is_not_written_to),
	cmocka_unit_test(our_own_procfs_shows_our_own_pid_namespace),
	cmocka_unit_test(a_file_longer_than_expected_is_an_error))
