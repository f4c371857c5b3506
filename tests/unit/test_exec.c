#include "tests/unit/test.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/exec.h"
#include "runtime/process.h"

/* The container: a process with namespaces of its own in the host's tree, with a /proc and a
 * /dev/pts of its own. All that exec relies on is its pidfd and the spec. */

#define EXPECT(n, x)                                                                               \
	do {                                                                                       \
		if (!(x))                                                                          \
			return n;                                                                  \
	} while (0)

enum { NAMESPACES = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET };

static int first_process(int ready)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("proc", "/proc", "proc", 0, NULL) < 0 ||
		mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666") < 0 ||
		sethostname("inside", 6) < 0 || sys_write(ready, "x", 1) != 1)
		return 1;
	for (;;)
		pause();
}

static bool map_ids(pid_t pid)
{
	for (const char *const *p = (const char *const[]){"uid_map", "gid_map", NULL}; *p; p++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, *p);
		auto_fd int fd = sys_open(path, O_WRONLY, 0);
		if (fd < 0 || sys_write_all(fd, "0 100000 65536", 14) < 0)
			return false;
	}
	return true;
}

struct rig {
	struct spec spec;
	struct spec_process process;
	struct spec_idmap map;
	const char *argv[4], *envp[2];
	struct exec_options o;
	pid_t first;
	int pidfd;
	int out; /* what the process writes */
	struct exec x;
	struct err e;
	int status;
};

/* A process in between makes the namespaces. Its child's pid is what it sees, because it stays in
 * the test's pid namespace itself. */
static void between(bool user, int ids, int ready)
{
	char byte;
	pid_t pid;

	if (unshare(user ? NAMESPACES | CLONE_NEWUSER : NAMESPACES) < 0)
		_exit(1);
	if (user &&
		(sys_write(ids, "x", 1) != 1 || sys_read(ids, &byte, 1) != 1 ||
			syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0))
		_exit(1);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) /* a change of user would have cleared it */
		_exit(1);
	pid = fork();
	if (pid == 0)
		_exit(first_process(ready));
	if (sys_write(ids, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	for (;;)
		pause();
}

static pid_t make_container(bool user)
{
	int ready[2], ids[2];
	pid_t helper, pid = -1;
	char byte;

	if (sys_pipe(ready) < 0 || sys_socketpair(ids) < 0)
		return -1;
	helper = fork();
	if (helper == 0)
		between(user, ids[1], ready[1]);
	if (user && (sys_read(ids[0], &byte, 1) != 1 || !map_ids(helper) ||
			    sys_write(ids[0], "x", 1) != 1))
		return -1;
	close(ids[1]);
	close(ready[1]);
	if (sys_read_all(ids[0], &pid, sizeof(pid)) < 0 || sys_read_all(ready[0], &byte, 1) < 0)
		pid = -1;
	close(ids[0]);
	close(ready[0]);
	return pid;
}

static int rig_init(struct rig *r, const char *script, bool user)
{
	int p[2];

	*r = (struct rig){.pidfd = -1, .out = -1};
	r->first = make_container(user);
	EXPECT(1, r->first > 0);
	r->pidfd = (int)syscall(SYS_pidfd_open, r->first, 0);
	EXPECT(2, r->pidfd >= 0 && sys_pipe(p) == 0);
	for (int k = NS_MOUNT; k <= NS_UTS; k++)
		r->spec.namespaces[k].given = true;
	r->map = (struct spec_idmap){0, 100000, 65536};
	r->spec.namespaces[NS_USER].given = user;
	r->spec.uids = r->spec.gids = (struct spec_idmaps){&r->map, user ? 1 : 0};
	r->envp[0] = "PATH=/usr/bin:/bin";
	r->argv[0] = "sh";
	r->argv[1] = "-c";
	r->argv[2] = script;
	r->process = (struct spec_process){.given = true, .cwd = "/"};
	r->process.args = (struct strings){r->argv, 3};
	r->process.env = (struct strings){r->envp, 1};
	r->out = p[0];
	r->o = (struct exec_options){.spec = &r->spec,
		.process = &r->process,
		.pidfd = r->pidfd,
		.first = r->first,
		.stdio = {sys_open("/dev/null", O_RDWR, 0), p[1], p[1]},
		.id = "t",
		.bundle = "/"};
	return 0;
}

/* Start it, and read what it writes until it ends. */
static int run(struct rig *r, char *text, size_t size)
{
	siginfo_t info = {0};
	size_t n = 0;
	ssize_t got;

	if (exec_start(&r->x, &r->o, &r->status, &r->e) < 0)
		return -1;
	close(r->o.stdio[1]);
	while (n + 1 < size && (got = sys_read(r->x.terminal >= 0 ? r->x.terminal : r->out,
					text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	if (waitid(P_PIDFD, (id_t)r->x.pidfd, &info, WEXITED) < 0)
		return -1;
	r->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	exec_fini(&r->x);
	return 0;
}

static void in_child(int (*fn)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int runs_inside(void)
{
	struct rig r;
	char text[512], pids[64] = "", path[64];

	EXPECT(1, rig_init(&r, "uname -n; readlink /proc/self/ns/pid; exit 7", false) == 0);
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)r.first);
	EXPECT(2, readlink(path, pids, sizeof(pids) - 1) > 0);
	EXPECT(3, run(&r, text, sizeof(text)) == 0 && r.status == 7);
	EXPECT(4, str_starts(text, "inside\npid:["));
	EXPECT(5, strncmp(text + strlen("inside\n"), pids, strlen(pids)) == 0);
	return 0;
}

TEST(a_process_runs_in_the_containers_namespaces)
{
	in_child(runs_inside);
}

static int no_more_descriptors(void)
{
	struct rig r;
	char text[512];

	EXPECT(1, rig_init(&r,
			  "i=3; while [ $i -lt 64 ]; do [ ! -e /proc/self/fd/$i ] || echo $i; "
			  "i=$((i+1)); done",
			  false) == 0);
	for (int fd = 20; fd < 30; fd++)
		EXPECT(2, dup2(0, fd) == fd);
	EXPECT(3, run(&r, text, sizeof(text)) == 0);
	if (*text) {
		fprintf(stderr, "open: %s", text);
		return 4;
	}
	return 0;
}

TEST(no_descriptor_but_the_streams_gets_in)
{
	in_child(no_more_descriptors);
}

static int fails_with(const char *file, const char *cwd, int status, const char *want)
{
	struct rig r;
	char text[16];

	EXPECT(1, rig_init(&r, "", false) == 0);
	r.argv[0] = file;
	r.argv[1] = NULL;
	r.process.args.n = 1;
	r.process.cwd = cwd;
	EXPECT(2, run(&r, text, sizeof(text)) == -1);
	if (r.status != status || !str_eq(r.e.text, want)) {
		fprintf(stderr, "%d: %s\n", r.status, r.e.text);
		return 3;
	}
	EXPECT(4, r.x.pidfd == -1 && waitpid(r.x.pid, NULL, 0) < 0); /* reaped */
	return 0;
}

static int not_there(void)
{
	return fails_with(
		"/no/such/file", "/", 127, "exec '/no/such/file': No such file or directory");
}

static int not_found(void)
{
	return fails_with("no-such-program", "/", 127,
		"exec 'no-such-program': executable file not found in PATH (/usr/bin:/bin)");
}

static int no_program(void)
{
	return fails_with("/etc/passwd", "/", 126, "exec '/etc/passwd': Permission denied");
}

static int no_directory(void)
{
	return fails_with("/bin/true", "/no/such/dir", 255,
		"working directory /no/such/dir: No such file or directory");
}

TEST(why_it_could_not_start_is_told_and_nothing_is_left)
{
	in_child(not_there);
	in_child(not_found);
	in_child(no_program);
	in_child(no_directory);
}

static int on_a_terminal(void)
{
	struct rig r;
	char text[256];

	EXPECT(1, rig_init(&r,
			  "tty; stty size; test -t 0 -a -t 1 -a -t 2 && stat -c %u:%U /dev/pts/0",
			  false) == 0);
	r.process.terminal = true;
	r.process.rows = 33;
	r.process.columns = 77;
	EXPECT(2, run(&r, text, sizeof(text)) == 0 && r.status == 0);
	if (!str_starts(text, "/dev/pts/0\r\n33 77\r\n0:")) {
		fprintf(stderr, "%s", text);
		return 3;
	}
	return 0;
}

TEST(a_terminal_is_of_the_containers_own_devpts)
{
	in_child(on_a_terminal);
}

static int in_user_namespace(void)
{
	struct rig r;
	char text[512];

	EXPECT(1, rig_init(&r, "id -u; id -g; cat /proc/self/uid_map | tr -s ' '", true) == 0);
	EXPECT(2, run(&r, text, sizeof(text)) == 0 && r.status == 0);
	if (!str_eq(text, "0\n0\n 0 100000 65536\n")) {
		fprintf(stderr, "%s", text);
		return 3;
	}
	return 0;
}

TEST(root_of_a_user_namespace_is_its_root)
{
	in_child(in_user_namespace);
}

static int has_ended(void)
{
	struct pollfd p;
	struct rig r;
	char text[16];

	EXPECT(1, rig_init(&r, "true", false) == 0);
	EXPECT(2, kill(r.first, SIGKILL) == 0);
	p = (struct pollfd){.fd = r.pidfd, .events = POLLIN};
	EXPECT(3, poll(&p, 1, 10000) == 1);
	EXPECT(4, run(&r, text, sizeof(text)) == -1 && r.status == 255);
	EXPECT(5, str_eq(r.e.text, "the container has ended"));
	return 0;
}

TEST(a_container_that_has_ended_takes_no_process)
{
	in_child(has_ended);
}

static int no_such_cgroup(void)
{
	static const char *const texts[] = {"sub", "memory:sub", "nothing:sub"};
	struct cgroup none = {.ndirs = 0};
	struct rig r;
	char text[16];

	for (size_t i = 0; i < 3; i++) {
		const char *one = texts[i];

		EXPECT(1, rig_init(&r, "true", false) == 0);
		r.o.cgroup = &none;
		r.o.sub_cgroups = (struct strings){&one, 1};
		EXPECT(2, run(&r, text, sizeof(text)) == -1 && r.e.kind == ERR_NOT_FOUND);
		EXPECT(3, str_starts(r.e.text, "cgroup ") &&
				  str_ends(r.e.text, "the container has no such cgroup"));
	}
	return 0;
}

TEST(a_cgroup_that_is_not_there_is_an_error)
{
	in_child(no_such_cgroup);
}

/* The helper is in the container's cgroup before it joins namespaces: whoever ends that ends it. */
static int helper_killed(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setns, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};
	struct rig r;
	char text[16];

	EXPECT(1, rig_init(&r, "true", false) == 0);
	EXPECT(2, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
			  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
	alarm(20); /* it must not be waited for */
	EXPECT(3, run(&r, text, sizeof(text)) == -1 && r.status == 255);
	EXPECT(4, strstr(r.e.text, "ended") != NULL);
	return 0;
}

TEST(a_helper_that_is_killed_is_an_error)
{
	in_child(helper_killed);
}

/* Does the process go on when the one that started it is gone? */
static int lives_on(bool detach)
{
	struct rig r;
	struct pollfd p;
	pid_t pid, inside = 0;
	int status, pipefd[2];
	bool alive;

	EXPECT(1, rig_init(&r, "sleep 30", false) == 0 && sys_pipe(pipefd) == 0);
	pid = fork();
	if (pid == 0) {
		r.o.detach = detach;
		if (exec_start(&r.x, &r.o, &r.status, &r.e) < 0)
			_exit(1);
		_exit(sys_write(pipefd[1], &r.x.pid, sizeof(r.x.pid)) == sizeof(r.x.pid) ? 0 : 2);
	}
	EXPECT(2, sys_read_all(pipefd[0], &inside, sizeof(inside)) == 0);
	auto_fd int fd = (int)syscall(SYS_pidfd_open, inside, 0);
	EXPECT(3, waitpid(pid, &status, 0) == pid && status == 0);
	p = (struct pollfd){.fd = fd, .events = POLLIN};
	alive = fd >= 0 && poll(&p, 1, detach ? 100 : 10000) == 0;
	if (fd >= 0)
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	return alive == detach ? 0 : 4;
}

static int dies_too(void)
{
	return lives_on(false);
}

static int detached(void)
{
	return lives_on(true);
}

TEST(a_process_dies_with_its_runtime_unless_it_is_detached)
{
	in_child(dies_too);
	in_child(detached);
}

static int as_it_was(void)
{
	struct stat before, after;
	struct rig r;
	char text[64];

	EXPECT(1, rig_init(&r, "true", false) == 0 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1);
	EXPECT(2, run(&r, text, sizeof(text)) == 0);
	EXPECT(3, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1);
	EXPECT(4, sys_fstatat(AT_FDCWD, "/proc/self/ns/pid", &before, 0) == 0);
	EXPECT(5, sys_fstatat(AT_FDCWD, "/proc/self/ns/pid_for_children", &after, 0) == 0);
	EXPECT(6, before.st_ino == after.st_ino);
	return 0;
}

TEST(the_runtime_is_as_it_was_afterwards)
{
	in_child(as_it_was);
}

RUN_TESTS(cmocka_unit_test(a_process_runs_in_the_containers_namespaces),
	cmocka_unit_test(no_descriptor_but_the_streams_gets_in),
	cmocka_unit_test(why_it_could_not_start_is_told_and_nothing_is_left),
	cmocka_unit_test(a_terminal_is_of_the_containers_own_devpts),
	cmocka_unit_test(root_of_a_user_namespace_is_its_root),
	cmocka_unit_test(a_container_that_has_ended_takes_no_process),
	cmocka_unit_test(a_cgroup_that_is_not_there_is_an_error),
	cmocka_unit_test(a_helper_that_is_killed_is_an_error),
	cmocka_unit_test(a_process_dies_with_its_runtime_unless_it_is_detached),
	cmocka_unit_test(the_runtime_is_as_it_was_afterwards))
