#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/services.h"

static char dir[64];

/* Start the program that the manifest makes; its output goes to dir/out. */
static pid_t start(const struct manifest *m, const char *argument)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);
	auto_free char *path = mem_printf("%s/init", dir), *out = mem_printf("%s/out", dir);
	pid_t pid;

	services_program(m, &text);
	assert_int_equal(file_write(AT_FDCWD, path, text.data, text.len, 0755, NULL), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644);

		dup2(fd, 1);
		dup2(fd, 2);
		setenv("SVRUN_CPUS", "7", 1);
		execlp("perl", "perl", path, argument ? "--" : (char *)NULL, "sh", "-c", argument,
			(char *)NULL);
		_exit(99);
	}
	return pid;
}

static int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const char *output(struct buf *b)
{
	auto_free char *path = mem_printf("%s/out", dir);

	buf_fini(b);
	*b = BUF_INIT(1 << 20);
	if (access(path, F_OK) == 0)
		assert_int_equal(file_read(AT_FDCWD, path, b, NULL), 0);
	return b->data ? b->data : "";
}

/* Wait until the output has text. */
static void wait_for(const char *text)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);

	for (int i = 0; i < 3000; i++) {
		if (strstr(output(&b), text))
			return;
		usleep(10000);
	}
	fail_msg("no '%s' in '%s'", text, output(&b));
}

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/svrun-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return sys_remove_tree(AT_FDCWD, dir);
}

TEST(services_start_with_their_words_and_end_with_the_first_failure)
{
	const char *one[] = {"sh", "-c", "printf '%s %s %s\\n' \"$A'\\$\" \"$0\" \"$1\"", "it's",
		"a\\b${runtime:cpus}"};
	const char *two[] = {"sh", "-c", "exit 3"};
	struct pair env[] = {{"A", "x '\\ ${runtime:cpus}"}};
	struct manifest_service v[] = {
		{.id = "one", .argv = {one, 5}, .env = {env, 1}, .workdir = "/"},
		{.id = "two", .argv = {two, 3}}};
	struct manifest m = {.services = v, .nservices = 2};
	auto_buf struct buf b = {0};

	assert_int_equal(end_of(start(&m, NULL)), 3);
	assert_non_null(strstr(output(&b), "x '\\ 7'$ it's a\\b7\n"));
	assert_non_null(strstr(b.data, "init: two ended with status 3\n"));
}

TEST(a_signal_is_passed_on_and_nothing_starts_again)
{
	const char *one[] = {"sh", "-c", "trap 'echo got; exit 0' TERM; echo up; sleep 60 & wait"};
	const char *two[] = {"sh", "-c", "echo once"};
	struct manifest_service v[] = {{.id = "one", .argv = {one, 3}, .restart = RESTART_ALWAYS},
		{.id = "two", .argv = {two, 3}, .restart = RESTART_ON_FAILURE}};
	struct manifest m = {.services = v, .nservices = 2};
	pid_t pid = start(&m, NULL);
	auto_buf struct buf b = {0};

	/* Not before "two" has ended: the signal is for it too, and would be its status. */
	wait_for("up\n");
	wait_for("init: two ended with status 0\n");
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(end_of(pid), 0);
	assert_non_null(strstr(output(&b), "got\n"));
}

TEST(a_service_that_fails_starts_again)
{
	auto_free char *script =
		mem_printf("echo run >> %s/runs; [ $(wc -l < %s/runs) -ge 2 ]", dir, dir);
	const char *one[] = {"sh", "-c", script};
	struct manifest_service v[] = {
		{.id = "one", .argv = {one, 3}, .restart = RESTART_ON_FAILURE}};
	struct manifest m = {.services = v, .nservices = 1};

	assert_int_equal(end_of(start(&m, NULL)), 0);
}

TEST(one_program_behind_two_dashes_is_what_init_starts)
{
	struct manifest m = {0};
	auto_buf struct buf b = {0};
	pid_t pid;

	assert_int_equal(end_of(start(&m, "echo $PPID; exit 5")), 5);
	pid = start(&m, "trap 'exit 4' INT; echo up; sleep 60 & wait");
	wait_for("up\n");
	assert_int_equal(kill(pid, SIGINT), 0);
	assert_int_equal(end_of(pid), 4);
	assert_int_equal(end_of(start(&m, "exec /no/such/program")), 127);
	output(&b);
}

TEST(what_the_manifest_gets)
{
	const char *entry[] = {"/bin/app"}, *argv[] = {"a", "${runtime:cpus}"};
	struct pair env[] = {{"A", "1"}, {"Z", "1"}};
	struct manifest_service v[] = {{.id = "one", .argv = {argv, 2}}};
	struct manifest m = {.init = true,
		.entrypoint = {entry, 1},
		.icon = "art/icon.png",
		.readme = "README",
		.env = {env, 2}};

	services_apply(&m);
	assert_int_equal(m.nfiles, 3);
	assert_string_equal(m.files[0].dest, SERVICES_SHARE "/icon.png");
	assert_string_equal(m.files[1].dest, SERVICES_SHARE "/readme");
	assert_string_equal(m.files[2].dest, SERVICES_INIT);
	assert_int_equal(m.files[2].mode, 0755);
	assert_int_equal(m.entrypoint.n, 4);
	assert_string_equal(m.entrypoint.v[2], "--");
	assert_string_equal(m.entrypoint.v[3], "/bin/app");
	assert_int_equal(m.env.n, 2);
	arena_fini(&m.arena);

	m = (struct manifest){.services = v, .nservices = 1, .env = {env, 2}};
	services_apply(&m);
	assert_int_equal(m.entrypoint.n, 2);
	assert_int_equal(m.env.n, 5);
	assert_string_equal(m.env.v[1].name, "SVRUN_CPUS");
	assert_string_equal(m.env.v[4].name, "Z");
	arena_fini(&m.arena);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
RUN_TESTS(IN_FOLDER(services_start_with_their_words_and_end_with_the_first_failure),
	IN_FOLDER(a_signal_is_passed_on_and_nothing_starts_again),
	IN_FOLDER(a_service_that_fails_starts_again),
	IN_FOLDER(one_program_behind_two_dashes_is_what_init_starts),
	cmocka_unit_test(what_the_manifest_gets))
