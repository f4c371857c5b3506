#include "tests/unit/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/netdev.h"

#define EXPECT(n, x)                                                                               \
	do {                                                                                       \
		if (!(x))                                                                          \
			return n;                                                                  \
	} while (0)

/* The "host": a network namespace of the test's own. */
static void in_host(int (*fn)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0 || system("ip link help 2>/dev/null; test $? != 127") != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWNET) < 0 ? 100 : fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The "container": a process with another one. */
static pid_t start_container(void)
{
	char byte;
	int p[2];
	pid_t pid;

	if (sys_pipe(p) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || unshare(CLONE_NEWNET) < 0 ||
			sys_write(p[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(p[1]);
	if (sys_read(p[0], &byte, 1) != 1)
		return -1;
	close(p[0]);
	return pid;
}

static int ip(const char *command)
{
	char line[256];

	snprintf(line, sizeof(line), "ip %s >/dev/null 2>&1", command);
	return system(line);
}

/* Does `ip COMMAND`, in the network namespace of pid (0: ours), print text? */
static bool shows(pid_t pid, const char *command, const char *text)
{
	char line[512];

	if (pid)
		snprintf(line, sizeof(line), "nsenter -t %d -n ip %s 2>&1 | grep -qF -- '%s'",
			(int)pid, command, text);
	else
		snprintf(line, sizeof(line), "ip %s 2>&1 | grep -qF -- '%s'", command, text);
	return system(line) == 0;
}

static int keeps_addresses(void)
{
	struct spec_net_device d[] = {{"host0", "eth0"}, {"host1", NULL}};
	struct spec s = {.net_devices = d, .nnet_devices = 2};
	struct err e = {0};
	pid_t c = start_container();

	EXPECT(1, c > 0);
	EXPECT(2, ip("link add host0 mtu 1400 type veth peer name peer0") == 0);
	EXPECT(3, ip("link add host1 type veth peer name peer1") == 0);
	EXPECT(4, ip("link set host0 up") == 0 && ip("link set peer0 up") == 0);
	EXPECT(5, ip("addr add 10.9.8.7/24 brd 10.9.8.255 dev host0") == 0);
	EXPECT(6, ip("addr add 10.9.9.1 peer 10.9.9.2/32 dev host0") == 0);
	EXPECT(7, ip("addr add fd00:9::7/64 dev host0 nodad") == 0 &&
			  ip("addr add 10.9.7.1/24 metric 77 dev host0 noprefixroute") == 0);
	if (netdev_move(&s, c, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 8;
	}
	EXPECT(9, shows(c, "addr show eth0", "inet 10.9.8.7/24 brd 10.9.8.255 scope global eth0"));
	EXPECT(10, shows(c, "addr show eth0", "inet 10.9.9.1 peer 10.9.9.2/32 scope global"));
	EXPECT(11, shows(c, "addr show eth0", "inet6 fd00:9::7/64 scope global nodad"));
	EXPECT(16, shows(c, "addr show eth0",
			   "inet 10.9.7.1/24 metric 77 scope global noprefixroute"));
	EXPECT(12, shows(c, "link show eth0", "mtu 1400") && shows(c, "link show eth0", ",UP"));
	EXPECT(13, shows(c, "link show host1", ",UP"));
	EXPECT(14, shows(0, "link show host0", "does not exist"));
	EXPECT(15, shows(0, "link show host1", "does not exist"));
	return 0;
}

TEST(interfaces_arrive_with_their_addresses_and_up)
{
	in_host(keeps_addresses);
}

static int goes_back(void)
{
	struct spec_net_device d[] = {{"host0", "eth0"}, {"nothing", NULL}};
	struct spec s = {.net_devices = d, .nnet_devices = 2};
	struct err e = {0};
	pid_t c = start_container();

	EXPECT(1, c > 0);
	EXPECT(2, ip("link add host0 type veth peer name peer0") == 0);
	EXPECT(3, ip("addr add 10.9.8.7/24 dev host0") == 0);
	EXPECT(4, netdev_move(&s, c, &e) < 0 && e.kind == ERR_NOT_FOUND);
	EXPECT(5, str_eq(e.text, "linux.netDevices: there is no interface 'nothing'"));
	EXPECT(6, shows(0, "addr show host0", "10.9.8.7/24"));
	EXPECT(7, shows(c, "link show eth0", "does not exist"));
	return 0;
}

TEST(what_was_moved_goes_back_when_another_cannot)
{
	in_host(goes_back);
}

static int name_taken(void)
{
	struct spec_net_device d = {"host0", "lo"};
	struct spec s = {.net_devices = &d, .nnet_devices = 1};
	struct err e = {0};
	pid_t c = start_container();

	EXPECT(1, c > 0 && ip("link add host0 type veth peer name peer0") == 0);
	EXPECT(2, netdev_move(&s, c, &e) < 0 && e.kind == ERR_EXISTS);
	EXPECT(3, str_eq(e.text, "linux.netDevices: move host0: File exists"));
	EXPECT(4, shows(0, "link show host0", "host0"));
	return 0;
}

TEST(a_name_that_is_taken_inside_is_an_error)
{
	in_host(name_taken);
}

static int stays_here(void)
{
	struct spec_net_device d = {"host0", NULL};
	struct spec s = {.net_devices = &d, .nnet_devices = 1};
	struct stat before, after;
	pid_t c = start_container();

	EXPECT(1, c > 0 && ip("link add host0 type veth peer name peer0") == 0);
	EXPECT(2, sys_fstatat(AT_FDCWD, "/proc/self/ns/net", &before, 0) == 0);
	EXPECT(3, netdev_move(&s, c, NULL) == 0);
	EXPECT(4, sys_fstatat(AT_FDCWD, "/proc/self/ns/net", &after, 0) == 0);
	EXPECT(5, before.st_ino == after.st_ino);
	EXPECT(6, netdev_move(&(struct spec){.nnet_devices = 0}, c, NULL) == 0);
	return 0;
}

TEST(the_caller_stays_in_its_namespace)
{
	in_host(stays_here);
}

RUN_TESTS(cmocka_unit_test(interfaces_arrive_with_their_addresses_and_up),
	cmocka_unit_test(what_was_moved_goes_back_when_another_cannot),
	cmocka_unit_test(a_name_that_is_taken_inside_is_an_error),
	cmocka_unit_test(the_caller_stays_in_its_namespace))
