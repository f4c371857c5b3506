#include "tests/unit/test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/process.h"
#include "runtime/procfs.h"

static char dir[] = "/tmp/svrun-process-XXXXXX";
static char path_env[128];

static void put(const char *name, const char *text, mode_t mode)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = sys_open(path, O_CREAT | O_WRONLY, 0644);
	assert_int_equal(sys_write_all(fd, text, strlen(text)), 0);
	close(fd);
	assert_int_equal(chmod(path, mode), 0);
}

static int set_up(void **state)
{
	(void)state;
	strncpy(dir, "/tmp/svrun-process-XXXXXX", sizeof(dir));
	if (!mkdtemp(dir))
		return -1;
	put("plain", "x", 0644);
	put("noexec", "this is no program", 0755);
	put("lost", "#!/nowhere/interpreter\n", 0755);
	snprintf(path_env, sizeof(path_env), "PATH=/nonexistent:%s:/usr/bin:/bin", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return sys_remove_tree(AT_FDCWD, dir);
}

/* The text with every "DIR" replaced by the test's folder. */
static void expand(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text && n + sizeof(dir) < size; text++) {
		if (!str_starts(text, "DIR")) {
			out[n++] = *text;
			continue;
		}
		n += (size_t)snprintf(out + n, size - n, "%s", dir);
		text += 2;
	}
	out[n] = '\0';
}

static void refuse(const char *name, int want, const char *text)
{
	char file[128], message[1024];
	const char *argv[] = {file, NULL}, *envp[] = {path_env, NULL};
	struct strings args = {argv, 1}, env = {envp, 1};
	struct err e = {0};
	int status = 0;

	expand(file, sizeof(file), name);
	expand(message, sizeof(message), text);
	assert_int_equal(process_exec(&args, &env, &status, &e), -1);
	assert_string_equal(e.text, message);
	assert_int_equal(status, want);
	/* What needs no running to be found out is the same. */
	e = (struct err){0};
	status = 0;
	if (process_find(&args, &env, &status, &e) < 0) {
		assert_string_equal(e.text, message);
		assert_int_equal(status, want);
		return;
	}
	assert_true(strstr(name, "lost") || strstr(name, "noexec"));
}

TEST(a_program_that_cannot_be_run_says_why)
{
	refuse("", 127,
		"exec '': executable file not found in PATH (/nonexistent:DIR:/usr/bin:/bin)");
	refuse("no-such-program", 127,
		"exec 'no-such-program': executable file not found in PATH "
		"(/nonexistent:DIR:/usr/bin:/bin)");
	refuse("DIR/nothing", 127, "exec 'DIR/nothing': No such file or directory");
	refuse("DIR/lost", 127, "exec 'DIR/lost': No such file or directory");
	refuse("lost", 127, "exec 'DIR/lost': No such file or directory");
	refuse("DIR/plain", 126, "exec 'DIR/plain': Permission denied");
	refuse("plain", 126, "exec 'DIR/plain': Permission denied");
	refuse("DIR", 126, "exec 'DIR': Permission denied");
	refuse("DIR/noexec", 126, "exec 'DIR/noexec': Exec format error");
	refuse("noexec", 126, "exec 'DIR/noexec': Exec format error");
	refuse("DIR/plain/x", 127, "exec 'DIR/plain/x': Not a directory");
}

TEST(a_program_is_found_in_the_path_and_gets_only_its_own_environment)
{
	const char *argv[] = {"sh", "-c", "test \"$(env | grep -c LEAK)\" = 0 && exit 42", NULL};
	const char *envp[] = {path_env, NULL};
	struct strings args = {argv, 3}, env = {envp, 1};
	int status;
	pid_t pid;

	setenv("LEAK", "1", 1);
	pid = fork();
	if (pid == 0) {
		process_exec(&args, &env, &status, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 42);
	unsetenv("LEAK");
}

TEST(a_limit_that_can_be_set_is_set)
{
	struct spec_rlimit r = {"RLIMIT_NOFILE", RLIMIT_NOFILE, 100, 200};
	struct rlimit got;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (process_rlimit(&r, NULL) < 0 || getrlimit(RLIMIT_NOFILE, &got) < 0)
			_exit(1);
		_exit(got.rlim_cur == 100 && got.rlim_max == 200 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* As an ordinary user, who may lower and not raise. */
static int raise_limit(void)
{
	struct spec_rlimit lower = {"RLIMIT_NOFILE", RLIMIT_NOFILE, 100, 100};
	struct spec_rlimit raise = {"RLIMIT_NOFILE", RLIMIT_NOFILE, 100, 200};
	struct err e = {0};

	if (geteuid() == 0 && setuid(65534) < 0)
		return 1;
	if (process_rlimit(&lower, NULL) < 0 || process_rlimit(&raise, &e) == 0)
		return 2;
	return str_eq(e.text, "RLIMIT_NOFILE: cannot raise the hard limit to 200") &&
			       str_eq(e.hint, "this host allows at most 100 to a process without "
					      "CAP_SYS_RESOURCE")
		       ? 0
		       : 3;
}

TEST(a_hard_limit_above_the_hosts_is_an_error_that_says_so)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(raise_limit());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Run fn in a child; 0 is what it should return. */
static void in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define EXPECT(n, x)                                                                               \
	do {                                                                                       \
		if (!(x))                                                                          \
			return n;                                                                  \
	} while (0)

/* ---- descriptors ---- */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int close_others(void)
{
	int a, b, none = -1, *keep[] = {&a, &none, &b};
	struct stat want_a, want_b, got;
	int pair[2];

	EXPECT(1, process_close_others(0, NULL, 0, NULL) == 0);
	for (int fd = 3; fd < 8; fd++)
		EXPECT(2, dup2(0, fd) == fd);
	EXPECT(3, sys_socketpair(pair) == 0 && dup2(pair[0], 500) == 500);
	/* Each stands where the other is to go. */
	b = dup2(pair[0], 5);
	a = dup2(pair[1], 6);
	EXPECT(4, sys_fstat(a, &want_a) == 0 && sys_fstat(b, &want_b) == 0);
	EXPECT(5, process_close_others(2, keep, 3, NULL) == 0);
	EXPECT(6, a == 5 && b == 6 && none == -1);
	EXPECT(7, sys_fstat(a, &got) == 0 && got.st_ino == want_a.st_ino);
	EXPECT(8, sys_fstat(b, &got) == 0 && got.st_ino == want_b.st_ino);
	EXPECT(9, fcntl(a, F_GETFD) == FD_CLOEXEC && fcntl(b, F_GETFD) == FD_CLOEXEC);
	EXPECT(10, is_open(0) && is_open(3) && is_open(4));
	for (int fd = 7; fd < 1024; fd++)
		EXPECT(11, !is_open(fd));
	return 0;
}

TEST(nothing_stays_open_but_streams_preserved_and_kept_descriptors)
{
	in_child(close_others);
}

static int cross_streams(void)
{
	const struct spec_user u = {.uid = 0};
	struct stat st[3], got;
	int p[2];

	EXPECT(1, sys_pipe(p) == 0 && dup2(p[0], 0) == 0 && dup2(p[1], 1) == 1);
	for (int i = 0; i < 3; i++)
		EXPECT(2, sys_fstat(i, &st[i]) == 0);
	EXPECT(3, process_streams((int[]){2, 0, 1}, &u, NULL) == 0);
	for (int i = 0; i < 3; i++) {
		EXPECT(4, sys_fstat(i, &got) == 0 && got.st_ino == st[(i + 2) % 3].st_ino);
		EXPECT(5, fcntl(i, F_GETFD) == 0);
	}
	return 0;
}

TEST(streams_may_stand_where_others_go)
{
	in_child(cross_streams);
}

static int give_pipes(void)
{
	const struct spec_user u = {.uid = 1234, .gid = 5678};
	struct stat st;
	char file[96];
	int p[2], fd;

	snprintf(file, sizeof(file), "%s/plain", dir);
	fd = sys_open(file, O_RDONLY, 0);
	EXPECT(1, sys_pipe(p) == 0 && fd >= 0);
	EXPECT(2, process_streams((int[]){fd, p[1], p[1]}, &u, NULL) == 0);
	EXPECT(3, sys_fstat(1, &st) == 0 && st.st_uid == 1234 && st.st_gid == 5678);
	EXPECT(4, sys_fstat(0, &st) == 0 && st.st_uid == 0);
	return 0;
}

TEST(a_pipe_is_given_to_the_user_and_a_file_is_not)
{
	if (geteuid() != 0)
		skip();
	in_child(give_pipes);
}

/* ---- CAP_MKNOD ---- */

#define RULE(t, ma, mi, a) ((struct spec_device_rule){true, t, {true, ma}, {true, mi}, a})
#define ANY_MINOR(t, ma, a) ((struct spec_device_rule){true, t, {true, ma}, {false, 0}, a})
#define ALL(t, a) ((struct spec_device_rule){true, t, {false, 0}, {false, 0}, a})

TEST(who_is_granted_a_device_makes_no_nodes)
{
	enum { RW = DEVICE_READ | DEVICE_WRITE };
	static const struct {
		struct spec_device_rule rule;
		bool want;
	} cases[] = {
		{RULE('c', 1, 3, RW), false},     /* null */
		{ANY_MINOR('c', 136, RW), false}, /* terminals */
		{RULE('c', 10, 200, RW), false},  /* tun, by older engines */
		{ALL('c', DEVICE_MKNOD), false},  /* opens nothing */
		{ALL('b', DEVICE_MKNOD), false},
		{RULE('c', 195, 0, RW), true},
		{ANY_MINOR('c', 195, DEVICE_READ), true},
		{ANY_MINOR('c', 1, RW), true}, /* mem, too */
		{RULE('b', 1, 3, RW), true},   /* not the null device */
		{RULE('b', 8, 0, DEVICE_READ), true},
		{ALL('c', RW), true},
		{ALL('a', RW), false}, /* all there are */
		{ALL('a', RW | DEVICE_MKNOD), false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spec_device_rule v[] = {
			{.allow = false, .type = 'a', .access = 7}, cases[i].rule};
		struct spec s = {.resources = {.devices = v, .ndevices = 2}};

		if (process_withholds_mknod(&s) != cases[i].want)
			fail_msg("case %zu", i);
	}
}

TEST(who_has_a_node_of_a_device_makes_no_others)
{
	struct spec_device d = {.path = "/dev/fuse", .type = S_IFCHR, .major = 10, .minor = 229};
	struct spec s = {.devices = &d, .ndevices = 1};

	assert_true(process_withholds_mknod(&s));
	d.type = S_IFIFO;
	assert_false(process_withholds_mknod(&s));
	d = (struct spec_device){.path = "/dev/nil", .type = S_IFCHR, .major = 1, .minor = 3};
	assert_false(process_withholds_mknod(&s));
}

/* ---- confinement ---- */

/* The line of /proc/self/status that begins with name, without it. */
static const char *status_line(const char *name)
{
	static char text[8192];
	char *line;
	ssize_t n;

	auto_fd int fd = sys_open("/proc/self/status", O_RDONLY, 0);
	n = fd < 0 ? -1 : sys_read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return "";
	text[n] = '\0';
	line = strstr(text, name);
	if (!line)
		return "";
	line += strlen(name) + 1;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static bool status_is(const char *name, const char *want)
{
	const char *found = status_line(name);

	if (str_eq(found, want))
		return true;
	fprintf(stderr, "%s '%s', expected '%s'\n", name, found, want);
	return false;
}

static uint64_t bit(int cap)
{
	return UINT64_C(1) << cap;
}

static int confine(const struct spec *s, int follow, struct err *e)
{
	struct process_confinement c = {
		.spec = s, .process = &s->process, .proc = -1, .follow = follow};

	return process_confine(&c, e);
}

static int confine_user(void)
{
	uint32_t groups[] = {7, 9};
	struct spec s = {
		.process = {.given = true,
			.cwd = "/",
			.no_new_privs = true,
			.user = {.uid = 1234,
				.gid = 5678,
				.groups = groups,
				.ngroups = 2,
				.umask = {true, 027}},
			.caps = {bit(CAP_KILL) | bit(CAP_CHOWN), bit(CAP_KILL) | bit(CAP_CHOWN),
				bit(CAP_KILL), bit(CAP_KILL), bit(CAP_KILL)}}};
	struct err e = {0};
	int signal_of_death = -1;

	EXPECT(1, confine(&s, -1, &e) == 0);
	EXPECT(2, status_is("CapBnd:", "0000000000000021") &&
			  status_is("CapPrm:", "0000000000000021"));
	EXPECT(3, status_is("CapEff:", "0000000000000020"));
	EXPECT(4, status_is("CapInh:", "0000000000000020") &&
			  status_is("CapAmb:", "0000000000000020"));
	EXPECT(5, status_is("Uid:", "1234\t1234\t1234\t1234"));
	EXPECT(6, status_is("Gid:", "5678\t5678\t5678\t5678") && status_is("Groups:", "7 9 "));
	EXPECT(7, status_is("NoNewPrivs:", "1") && status_is("Umask:", "0027"));
	EXPECT(8, prctl(PR_GET_PDEATHSIG, &signal_of_death) == 0 && signal_of_death == 0);
	return 0;
}

static int confine_followed(void)
{
	struct spec s = {
		.process = {.given = true, .cwd = "/", .user = {.uid = 1234, .gid = 1234}}};
	int pair[2], signal_of_death = -1;

	EXPECT(1, sys_socketpair(pair) == 0 && confine(&s, pair[0], NULL) == 0);
	EXPECT(2, prctl(PR_GET_PDEATHSIG, &signal_of_death) == 0 && signal_of_death == SIGKILL);
	EXPECT(3, status_is("CapBnd:", "0000000000000000") &&
			  status_is("CapPrm:", "0000000000000000"));
	EXPECT(4, status_is("Groups:", " ") && status_is("Umask:", "0022"));
	EXPECT(5, status_is("NoNewPrivs:", "0"));
	EXPECT(6, process_unfollow(NULL) == 0);
	EXPECT(7, prctl(PR_GET_PDEATHSIG, &signal_of_death) == 0 && signal_of_death == 0);
	return 0;
}

static int confine_with_device(void)
{
	struct spec_device d = {.path = "/dev/fuse", .type = S_IFCHR, .major = 10, .minor = 229};
	uint64_t set = bit(CAP_KILL) | bit(CAP_MKNOD);
	struct spec s = {.devices = &d,
		.ndevices = 1,
		.process = {.given = true, .cwd = "/", .caps = {set, set, set, set, set}}};

	EXPECT(1, confine(&s, -1, NULL) == 0);
	for (const char *const *p = (const char *const[]){"CapBnd:", "CapPrm:", "CapEff:",
		     "CapInh:", "CapAmb:", NULL};
		*p; p++)
		EXPECT(2, status_is(*p, "0000000000000020"));
	return 0;
}

TEST(sets_ids_and_groups_are_exactly_those_asked_for)
{
	if (geteuid() != 0)
		skip();
	in_child(confine_user);
	in_child(confine_followed);
	in_child(confine_with_device);
}

/* Only the user may enter it, as on a file system that knows root as nobody. */
static int enter_as_user(void)
{
	struct spec s = {.process = {.given = true, .user = {.uid = 1234, .gid = 1234}}};
	char path[96], now[96];
	struct caps none = {0};

	snprintf(path, sizeof(path), "%s/his", dir);
	s.process.cwd = path;
	EXPECT(1, chmod(dir, 0711) == 0 && mkdir(path, 0700) == 0 && chown(path, 1234, 1234) == 0);
	/* Without the capabilities that get root everywhere. */
	none.permitted = none.effective = bit(CAP_SETUID) | bit(CAP_SETGID) | bit(CAP_SETPCAP);
	EXPECT(2, caps_apply(&none, NULL) == 0 && chdir(path) < 0 && chdir("/") == 0);
	EXPECT(3, confine(&s, -1, NULL) == 0);
	EXPECT(4, getcwd(now, sizeof(now)) && str_eq(now, path));
	return 0;
}

TEST(a_directory_that_only_the_user_may_enter_is_entered_as_the_user)
{
	if (geteuid() != 0)
		skip();
	in_child(enter_as_user);
}

static int notify_nobody(void)
{
	struct sock_filter allow = {.code = BPF_RET | BPF_K, .k = 0x7fff0000};
	struct seccomp_prog filter = {.code = &allow, .n = 1, .notifies = true};
	struct spec s = {.process = {.given = true, .cwd = "/", .no_new_privs = true}};
	struct process_confinement c = {
		.spec = &s, .process = &s.process, .filter = &filter, .proc = -1, .follow = -1};
	struct err e = {0};

	EXPECT(1, process_confine(&c, &e) < 0);
	EXPECT(2, str_eq(e.text, "seccomp: nobody takes its notifications"));
	return 0;
}

TEST(a_filter_that_notifies_nobody_is_refused)
{
	if (geteuid() != 0)
		skip();
	in_child(notify_nobody);
}

static bool score_is(const char *want)
{
	auto_fd int proc = procfs_host(NULL);
	char now[16];

	return procfs_read(proc, "self/oom_score_adj", now, sizeof(now), NULL) == 0 &&
	       str_eq(now, want);
}

static int oom_score(void)
{
	struct spec_process p = {.oom_score_adj = {true, 500}}, none = {.given = true};
	char before[PROCESS_SCORE_SIZE], own[PROCESS_SCORE_SIZE];
	struct err e = {0};

	EXPECT(1, process_score(&none, before, NULL) == 0 && !*before);
	EXPECT(2, process_score(&p, own, NULL) == 0 && *own && score_is("500"));
	EXPECT(3, process_score_back(own, NULL) == 0 && score_is(own));
	EXPECT(4, process_score(&p, before, NULL) == 0);
	/* Who may not lower it may ask for what it is. */
	EXPECT(5, setuid(1234) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
	EXPECT(6, process_score(&p, before, NULL) == 0 && !*before);
	EXPECT(7, process_score_back(before, NULL) == 0 && score_is("500"));
	p.oom_score_adj.v = -1000;
	EXPECT(8, process_score(&p, before, &e) < 0);
	EXPECT(9, str_starts(e.text, "process.oomScoreAdj: write '-1000' to self/oom_score_adj: "));
	return 0;
}

TEST(the_oom_score_is_set_and_what_it_is_already_can_be_asked_for)
{
	if (geteuid() != 0)
		skip();
	in_child(oom_score);
}

static int reset_signals(void)
{
	sigset_t set;

	sigfillset(&set);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	EXPECT(1, sigprocmask(SIG_SETMASK, &set, NULL) == 0);
	process_reset_signals();
	EXPECT(2, status_is("SigBlk:", "0000000000000000"));
	EXPECT(3, status_is("SigIgn:", "0000000000000000"));
	return 0;
}

TEST(signals_are_as_after_boot)
{
	in_child(reset_signals);
}

static int see_home(const char *given, const char *want)
{
	char script[128];
	const char *argv[] = {"sh", "-c", script, NULL}, *envp[] = {path_env, given, NULL};
	struct strings args = {argv, 3}, env = {envp, given ? 2 : 1};
	int status;

	snprintf(script, sizeof(script), "test \"$HOME\" = '%s'", want);
	process_exec(&args, &env, &status, NULL);
	return 1;
}

static int home_of_root(void)
{
	return see_home(NULL, "/root");
}

static int home_given(void)
{
	return see_home("HOME=/given", "/given");
}

static int home_empty(void)
{
	return see_home("HOME=", "/root");
}

static int home_of_nobody_known(void)
{
	return setuid(54321) < 0 ? 2 : see_home(NULL, "/");
}

TEST(without_a_home_a_program_gets_its_users)
{
	in_child(home_given);
	if (geteuid() != 0)
		skip();
	in_child(home_of_root);
	in_child(home_empty);
	assert_int_equal(chmod(dir, 0755), 0);
	in_child(home_of_nobody_known);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(UNIT(a_program_that_cannot_be_run_says_why),
	UNIT(a_program_is_found_in_the_path_and_gets_only_its_own_environment),
	UNIT(a_limit_that_can_be_set_is_set),
	UNIT(a_hard_limit_above_the_hosts_is_an_error_that_says_so),
	UNIT(nothing_stays_open_but_streams_preserved_and_kept_descriptors),
	UNIT(streams_may_stand_where_others_go),
	UNIT(a_pipe_is_given_to_the_user_and_a_file_is_not),
	UNIT(who_is_granted_a_device_makes_no_nodes),
	UNIT(who_has_a_node_of_a_device_makes_no_others),
	UNIT(sets_ids_and_groups_are_exactly_those_asked_for),
	UNIT(a_directory_that_only_the_user_may_enter_is_entered_as_the_user),
	UNIT(a_filter_that_notifies_nobody_is_refused),
	UNIT(the_oom_score_is_set_and_what_it_is_already_can_be_asked_for),
	UNIT(signals_are_as_after_boot), UNIT(without_a_home_a_program_gets_its_users))
