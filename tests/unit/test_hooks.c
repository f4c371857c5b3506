#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "runtime/hooks.h"

/* One hook that runs a shell script. */
static struct spec spec_with(struct spec_hook *h, const char **args)
{
	struct spec s = {.json = NULL};

	*h = (struct spec_hook){.path = "/bin/sh", .args = {args, 3}};
	s.hooks[HOOK_POSTSTART] = (struct spec_hooks){h, 1};
	return s;
}

static int run(const char *script, int seconds, const char *text, struct err *e)
{
	const char *args[] = {"sh", "-c", script, NULL};
	struct spec_hook h;
	struct spec s = spec_with(&h, args);

	*e = (struct err){0};
	if (seconds)
		h.timeout = (struct opt_i64){true, seconds};
	return hooks_run(&s, HOOK_POSTSTART, text, e);
}

TEST(a_hook_gets_the_state_and_an_empty_environment)
{
	struct err e;

	setenv("SECRET", "1", 1);
	if (run("test \"$(cat)\" = state && test -z \"$SECRET\" && test -z \"$HOME\" && "
		"test \"$(pwd)\" = / && test -z \"$(ls /proc/self/fd | grep -v '^[0-3]$')\"",
		    0, "state", &e) < 0)
		fail_msg("%s", e.text);
}

TEST(what_a_failing_hook_said_is_in_the_error)
{
	struct err e;

	assert_int_equal(run("echo one; echo two >&2; exit 3", 0, "", &e), -1);
	assert_string_equal(e.text, "poststart hook 0, /bin/sh: ended with status 3: one\ntwo\n");
	assert_int_equal(run("kill -9 $$", 0, "", &e), -1);
	assert_string_equal(e.text, "poststart hook 0, /bin/sh: killed by signal 9");
}

TEST(one_that_does_not_end_in_time_is_killed)
{
	struct err e;

	assert_int_equal(run("exec sleep 1000", 1, "", &e), -1);
	assert_string_equal(e.text, "poststart hook 0, /bin/sh: did not end within 1 s");
}

TEST(neither_unread_input_nor_a_daemon_with_our_output_is_waited_for)
{
	auto_free char *long_state = mem_alloc(1 << 20);
	struct err e;

	memset(long_state, 'x', (1 << 20) - 1);
	if (run("sleep 3 & exit 0", 0, long_state, &e) < 0)
		fail_msg("%s", e.text);
}

TEST(one_that_is_not_there_is_an_error)
{
	struct spec_hook h = {.path = "/no/such/hook"};
	struct spec s = {.json = NULL};
	struct err e;

	s.hooks[HOOK_POSTSTOP] = (struct spec_hooks){&h, 1};
	assert_int_equal(hooks_run(&s, HOOK_POSTSTOP, "", &e), -1);
	assert_string_equal(e.text, "poststop hook 0, /no/such/hook: ended with status 127: exec: "
				    "No such file or directory");
}

RUN_TESTS(cmocka_unit_test(a_hook_gets_the_state_and_an_empty_environment),
	cmocka_unit_test(what_a_failing_hook_said_is_in_the_error),
	cmocka_unit_test(one_that_does_not_end_in_time_is_killed),
	cmocka_unit_test(neither_unread_input_nor_a_daemon_with_our_output_is_waited_for),
	cmocka_unit_test(one_that_is_not_there_is_an_error))
