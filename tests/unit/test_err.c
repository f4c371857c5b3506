#include "tests/unit/test.h"

#include <errno.h>
#include <limits.h>

#include "base/err.h"

TEST(context_wraps_and_the_nearest_hint_stays)
{
	struct err e = {0};

	errno = ENOSPC;
	assert_int_equal(err_sys(&e, "write %s", "pool.0"), -1);
	err_hint(&e, "free space");
	err_ctx(&e, "read layer %s", "ab12");
	err_hint(&e, "something else");
	err_ctx(&e, "run llama");
	assert_string_equal(
		e.text, "run llama: read layer ab12: write pool.0: No space left on device");
	assert_string_equal(e.hint, "free space");
	assert_int_equal(e.kind, ERR_SYSTEM);
	assert_int_equal(e.sys, ENOSPC);
}

TEST(the_kind_comes_from_errno)
{
	struct err e = {0};

	errno = ENOENT;
	err_sys(&e, "x");
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	errno = EPERM;
	err_sys(&e, "x");
	assert_int_equal(e.kind, ERR_DENIED);
	errno = EEXIST;
	err_sys(&e, "x");
	assert_int_equal(e.kind, ERR_EXISTS);
}

TEST(nobody_cares_about_a_null_error)
{
	assert_int_equal(err_set(NULL, ERR_USAGE, "x"), -1);
	assert_int_equal(err_sys(NULL, "x"), -1);
	assert_int_equal(err_ctx(NULL, "x"), -1);
	assert_int_equal(err_hint(NULL, "x"), -1);
}

TEST(an_error_crosses_a_pipe_in_one_write_and_long_text_is_cut)
{
	struct err e = {0};
	char longer[4000];

	assert_true(sizeof(struct err) <= PIPE_BUF);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	err_set(&e, ERR_CORRUPT, "%s", longer);
	for (int i = 0; i < 10; i++)
		err_ctx(&e, "%s", longer);
	assert_true(strlen(e.text) < sizeof(e.text));
}

TEST(what_a_terminal_would_obey_is_not_printed)
{
	struct err e = {0};
	FILE *f = tmpfile(), *old = stderr;
	char text[200] = {0};

	assert_non_null(f);
	err_set(&e, ERR_CORRUPT, "member 'a\033[2J\b\x7f\xc3\xa9\xc2\x9b'\n\tand more");
	err_hint(&e, "\033c");
	stderr = f;
	err_print(&e, "svrun");
	stderr = old;
	rewind(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	assert_string_equal(text, "svrun: member 'a?[2J??\xc3\xa9?"
				  "?'\n\tand more\nhint: ?c\n");
	fclose(f);
}

RUN_TESTS(cmocka_unit_test(context_wraps_and_the_nearest_hint_stays),
	cmocka_unit_test(the_kind_comes_from_errno),
	cmocka_unit_test(nobody_cares_about_a_null_error),
	cmocka_unit_test(an_error_crosses_a_pipe_in_one_write_and_long_text_is_cut),
	cmocka_unit_test(what_a_terminal_would_obey_is_not_printed))
