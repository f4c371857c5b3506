#include "tests/unit/test.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/proc.h"

static int run(const char *script, struct buf *out, struct err *e)
{
	const char *const argv[] = {"sh", "-c", script, NULL};

	return proc_run(&(struct proc){.argv = argv, .out = out}, e);
}

TEST(output_and_status_come_back)
{
	auto_buf struct buf b = BUF_INIT(100);

	assert_int_equal(run("echo hi; echo no >&2; exit 3", &b, NULL), 3);
	assert_string_equal(b.data, "hi\n");
	assert_int_equal(run("kill -9 $$", NULL, NULL), 137);
}

TEST(too_much_output_is_an_error_and_does_not_hang)
{
	auto_buf struct buf b = BUF_INIT(100);
	struct err e = {0};

	assert_int_equal(run("yes", &b, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
}

TEST(a_failed_check_quotes_stderr)
{
	const char *const argv[] = {"sh", "-c", "echo broken >&2; exit 1", NULL};
	const char *const none[] = {"/nonexistent/program", NULL};
	struct err e = {0};

	assert_int_equal(proc_check(&(struct proc){.argv = argv}, &e), -1);
	assert_string_equal(e.text, "sh ended with status 1: broken\n");
	assert_int_equal(proc_check(&(struct proc){.argv = none}, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
}

TEST(what_is_given_is_read_on_stdin)
{
	const char *const argv[] = {"wc", "-c", NULL};
	const char *const none[] = {"true", NULL};
	auto_buf struct buf b = BUF_INIT(100);
	auto_free char *big = mem_alloc(1 << 20);

	assert_int_equal(
		proc_run(&(struct proc){.argv = argv, .out = &b, .in = big, .in_size = 1 << 20},
			NULL),
		0);
	assert_string_equal(b.data, "1048576\n");
	b.len = 0;
	assert_int_equal(
		proc_run(&(struct proc){.argv = argv, .out = &b, .in = "", .in_size = 0}, NULL), 0);
	assert_string_equal(b.data, "0\n");
	/* one that does not read it */
	assert_int_equal(
		proc_run(&(struct proc){.argv = none, .in = big, .in_size = 1 << 20}, NULL), 0);
}

TEST(what_does_not_end_is_killed)
{
	static const char *const scripts[] = {
		"sleep 100", "exec >&- 2>&-; sleep 100", "sleep 100 & exec sleep 100"};

	for (size_t i = 0; i < 3; i++) {
		const char *const argv[] = {"sh", "-c", scripts[i], NULL};
		struct err e = {0};

		assert_int_equal(proc_run(&(struct proc){.argv = argv, .seconds = 1}, &e), -1);
		assert_int_equal(e.kind, ERR_SYSTEM);
		if (!strstr(e.text, "did not end within 1 s"))
			fail_msg("%s", e.text);
	}
}

/* `sleep` holds the output open, and outlives the shell that started it. */
TEST(a_group_is_gone_with_its_leader)
{
	const char *const argv[] = {"sh", "-c", "sleep 100 & echo $!; exec sleep 100", NULL};
	auto_buf struct buf b = BUF_INIT(100);
	struct err e = {0};
	pid_t pid;
	int status;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* so that we can wait for it */
	assert_int_equal(
		proc_run(&(struct proc){.argv = argv, .out = &b, .seconds = 1, .group = true}, &e),
		-1);
	assert_string_equal(e.text, "sh did not end within 1 s");
	pid = (pid_t)strtol(b.data, NULL, 10);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

RUN_TESTS(cmocka_unit_test(what_is_given_is_read_on_stdin),
	cmocka_unit_test(a_group_is_gone_with_its_leader),
	cmocka_unit_test(what_does_not_end_is_killed),
	cmocka_unit_test(output_and_status_come_back),
	cmocka_unit_test(too_much_output_is_an_error_and_does_not_hang),
	cmocka_unit_test(a_failed_check_quotes_stderr))
