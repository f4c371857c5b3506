#include "tests/unit/test.h"

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

RUN_TESTS(cmocka_unit_test(output_and_status_come_back),
	cmocka_unit_test(too_much_output_is_an_error_and_does_not_hang),
	cmocka_unit_test(a_failed_check_quotes_stderr))
