#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup.h"
#include "tests/unit/own-mounts.h"

static struct cgroup_place at;

static int set_up(void **state)
{
	(void)state;
	at = (struct cgroup_place){0};
	snprintf(at.path, sizeof(at.path), "/svrun/cgroups-test-%d", (int)getpid());
	return 0;
}

static void need_cgroups(void)
{
	if (geteuid() != 0 || access("/sys/fs/cgroup", W_OK) < 0)
		skip();
}

/* Where the folder of the cgroup is in one hierarchy. */
static void place(char *out, size_t size, const char *controller)
{
	struct statfs fs;

	statfs("/sys/fs/cgroup", &fs);
	snprintf(out, size, "/sys/fs/cgroup/%s%s",
		fs.f_type == CGROUP2_SUPER_MAGIC ? "" : controller, at.path);
}

static bool exists(const char *controller)
{
	char p[1300];

	place(p, sizeof(p), controller);
	return access(p, F_OK) == 0;
}

static void need(int rc, const struct err *e)
{
	if (rc < 0)
		fail_msg("%s (%s)", e->text, e->hint);
}

static pid_t start(const struct cgroup *c)
{
	int into = cgroup_clone_fd(c);
	struct clone_args a = {.flags = into < 0 ? 0 : CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = into < 0 ? 0 : (unsigned)into};
	pid_t pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));

	if (pid == 0) {
		struct err e = {0};

		if (cgroup_join(c, &e) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	return pid;
}

/* The child has entered when the cgroup says so. */
static void await_member(const char *controller)
{
	struct timespec ms = {.tv_nsec = 1000000};
	char p[1400], c;

	place(p, sizeof(p), controller);
	snprintf(p + strlen(p), sizeof(p) - strlen(p), "/cgroup.procs");
	for (int i = 0; i < 2000; i++) {
		auto_fd int fd = sys_open(p, O_RDONLY, 0);

		if (fd >= 0 && read(fd, &c, 1) == 1)
			return;
		nanosleep(&ms, NULL);
	}
	fail_msg("nobody entered %s", p);
}

TEST(a_cgroup_is_made_limited_entered_and_removed_with_what_is_in_it)
{
	struct spec_resources r = {.memory_limit = {true, 64 << 20},
		.pids = {true, 20},
		.cpu_quota = {true, 50000},
		.cpu_period = {true, 100000}};
	struct err e = {0};
	struct cgroup c;
	double begun;
	int status;
	pid_t pid;

	need_cgroups();
	need(cgroup_create(&c, &at, &r, &e), &e);
	need(cgroup_limit(&c, &r, &e), &e);
	begun = sys_now_ms();
	pid = start(&c);
	await_member("pids");
	printf("# entered in %.1f ms\n", sys_now_ms() - begun);
	cgroup_fini(&c);
	need(cgroup_destroy(&at, &e), &e);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_false(exists("pids"));
	assert_false(exists("memory"));
	need(cgroup_destroy(&at, &e), &e); /* fine again */
}

TEST(one_that_is_in_use_is_not_taken_over)
{
	struct spec_resources r = {0};
	struct err e = {0};
	struct cgroup c, again;
	int status;
	pid_t pid;

	need_cgroups();
	need(cgroup_create(&c, &at, &r, &e), &e);
	need(cgroup_limit(&c, &r, &e), &e);
	pid = start(&c);
	await_member("devices");
	assert_int_equal(cgroup_create(&again, &at, &r, &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	assert_int_equal(kill(pid, 0), 0); /* untouched */
	cgroup_fini(&c);
	need(cgroup_destroy(&at, &e), &e);
	waitpid(pid, &status, 0);
}

TEST(an_empty_one_that_was_left_behind_is_taken_over)
{
	struct spec_resources r = {0};
	struct err e = {0};
	struct cgroup c;

	need_cgroups();
	need(cgroup_create(&c, &at, &r, &e), &e);
	cgroup_fini(&c);
	need(cgroup_create(&c, &at, &r, &e), &e);
	cgroup_fini(&c);
	need(cgroup_destroy(&at, &e), &e);
}

TEST(a_limit_that_the_kernel_refuses_names_itself)
{
	struct spec_resources r = {.cpu_quota = {true, 1}, .cpu_period = {true, 100000}};
	struct err e = {0};
	struct cgroup c;

	need_cgroups();
	need(cgroup_create(&c, &at, &r, &e), &e);
	assert_int_equal(cgroup_limit(&c, &r, &e), -1);
	assert_true(strstr(e.text, "cpu.") != NULL);
	cgroup_fini(&c);
	need(cgroup_destroy(&at, &e), &e);
}

/* Where that many levels are made: the pids hierarchy, or the one of version 2. */
static void nest(int levels)
{
	char p[1300];

	place(p, sizeof(p), "pids");
	auto_fd int dir = sys_open(p, O_PATH | O_DIRECTORY, 0);
	assert_true(dir >= 0);
	for (int i = 0; i < levels; i++) {
		int next;

		assert_int_equal(sys_mkdirat(dir, "n", 0755), 0);
		assert_int_equal(sys_mkdirat(dir, "sibling", 0755), 0);
		next = sys_openat(dir, "n", O_PATH | O_DIRECTORY, 0);
		close(dir);
		dir = next;
	}
}

TEST(what_was_made_inside_goes_too_however_deep)
{
	struct spec_resources r = {0};
	struct err e = {0};
	struct cgroup c;

	need_cgroups();
	need(cgroup_create(&c, &at, &r, &e), &e);
	cgroup_fini(&c);
	nest(300);
	need(cgroup_destroy(&at, &e), &e);
	assert_false(exists("pids"));
}

TEST(its_processes_are_counted_stopped_and_signalled)
{
	struct spec_resources r = {0};
	auto_free pid_t *pids = NULL;
	struct err e = {0};
	struct cgroup made, c;
	int status;
	pid_t pid;
	size_t n;

	need_cgroups();
	need(cgroup_create(&made, &at, &r, &e), &e);
	pid = start(&made);
	await_member("devices");
	await_member("freezer");
	cgroup_fini(&made);
	need(cgroup_open(&c, &at, NULL, &e), &e);
	need(cgroup_pids(&c, &pids, &n, &e), &e);
	assert_int_equal(n, 1);
	assert_int_equal(pids[0], pid);
	assert_int_equal(cgroup_frozen(&c, &e), 0);
	need(cgroup_freeze(&c, true, &e), &e);
	assert_int_equal(cgroup_frozen(&c, &e), 1);
	need(cgroup_signal(&c, SIGTERM, &e), &e); /* waits for it */
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(cgroup_frozen(&c, &e), 1);
	need(cgroup_freeze(&c, false, &e), &e);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGTERM);
	cgroup_fini(&c);
	need(cgroup_destroy(&at, &e), &e);
	need(cgroup_open(&c, &at, NULL, &e), &e); /* nothing there: fine */
	assert_int_equal(c.ndirs, 0);
	assert_int_equal(cgroup_clone_fd(&c), -1);
	assert_int_equal(cgroup_freeze(&c, true, &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
}

TEST(a_frozen_one_can_be_killed_and_removed)
{
	struct spec_resources r = {0};
	struct err e = {0};
	struct cgroup c;
	int status;
	pid_t pid;

	need_cgroups();
	need(cgroup_create(&c, &at, &r, &e), &e);
	pid = start(&c);
	await_member("freezer");
	need(cgroup_freeze(&c, true, &e), &e);
	cgroup_fini(&c);
	need(cgroup_destroy(&at, &e), &e);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_false(exists("freezer"));
}

TEST(a_limit_without_a_cgroup_names_its_field)
{
	struct spec_resources r = {.cpu_shares = {true, 100}};
	struct cgroup_place lacks = {.may_lack = true};
	struct err e = {0};
	struct cgroup c;

	assert_int_equal(cgroup_create(&c, &lacks, &r, &e), -1);
	assert_non_null(strstr(e.text, "/linux/resources/cpu/shares"));
	r.cpu_shares.v = 0;
	need(cgroup_create(&c, &lacks, &r, &e), &e);
	assert_int_equal(c.ndirs, 0);
	need(cgroup_limit(&c, &r, &e), &e);
	need(cgroup_join(&c, &e), &e);
	need(cgroup_destroy(&c.place, &e), &e);
}

TEST(the_root_is_no_cgroup_for_a_container)
{
	struct err e = {0};

	assert_int_equal(cgroup_place(&at, "/", "x", false, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
}

/* Is the process in it, in the hierarchies that /proc/PID/cgroup shows? */
static size_t memberships(pid_t pid)
{
	auto_buf struct buf text = BUF_INIT(1 << 16);
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	assert_int_equal(file_read(AT_FDCWD, path, &text, NULL), 0);
	for (const char *p = text.data; (p = strstr(p, at.path)); p++)
		n++;
	return n;
}

TEST(a_process_joins_all_of_one_that_is_opened_for_one_controller)
{
	struct spec_resources r = {0};
	struct err e = {0};
	struct cgroup made, c;
	int status;
	pid_t pid;

	need_cgroups();
	need(cgroup_create(&made, &at, &r, &e), &e);
	need(cgroup_open(&c, &at, "freezer", &e), &e);
	assert_int_equal(cgroup_frozen(&c, &e), 0);
	pid = start(&c);
	await_member("cpu"); /* by its path, as it is not the freezer */
	await_member("freezer");
	for (int i = 0; i < 1000 && memberships(pid) < made.ndirs; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(memberships(pid), made.ndirs);
	cgroup_fini(&c);
	cgroup_fini(&made);
	need(cgroup_destroy(&at, &e), &e);
	waitpid(pid, &status, 0);
}

/* Where a hierarchy was, a plain folder has a file of that name. */
static void join_what_is_none(int top)
{
	static const char *const only[] = {"freezer", NULL};
	struct err e = {0};
	char dir[1300];
	struct stat st;

	(void)top;
	place(dir, sizeof(dir), "pids");
	assert_int_equal(sys_mount("t", "/sys/fs/cgroup/pids", "tmpfs", 0, NULL), 0);
	assert_int_equal(sys_mkdir_p(AT_FDCWD, dir, 0755), 0);
	snprintf(dir + strlen(dir), sizeof(dir) - strlen(dir), "/tasks");
	put(dir, "", 0644);
	for (int i = 0; i < 2; i++) {
		struct cgroup c;

		need(cgroup_open(&c, &at, only[i], &e), &e);
		need(cgroup_join(&c, &e), &e);
		assert_int_equal(sys_fstatat(AT_FDCWD, dir, &st, 0), 0);
		assert_int_equal(st.st_size, 0);
		cgroup_fini(&c);
	}
}

TEST(nothing_is_written_that_is_not_on_a_file_system_of_cgroups)
{
	struct spec_resources r = {0};
	struct err e = {0};
	struct cgroup c;

	need_cgroups();
	if (cgroup_is_v2())
		skip();
	need(cgroup_create(&c, &at, &r, &e), &e);
	cgroup_fini(&c);
	with_own_mounts(join_what_is_none);
	need(cgroup_destroy(&at, &e), &e);
}

#define UNIT(name) cmocka_unit_test_setup(name, set_up)
RUN_TESTS(UNIT(a_cgroup_is_made_limited_entered_and_removed_with_what_is_in_it),
	UNIT(one_that_is_in_use_is_not_taken_over),
	UNIT(an_empty_one_that_was_left_behind_is_taken_over),
	UNIT(a_limit_that_the_kernel_refuses_names_itself),
	UNIT(what_was_made_inside_goes_too_however_deep),
	UNIT(its_processes_are_counted_stopped_and_signalled),
	UNIT(a_frozen_one_can_be_killed_and_removed),
	UNIT(a_process_joins_all_of_one_that_is_opened_for_one_controller),
	UNIT(nothing_is_written_that_is_not_on_a_file_system_of_cgroups),
	UNIT(a_limit_without_a_cgroup_names_its_field), UNIT(the_root_is_no_cgroup_for_a_container))
