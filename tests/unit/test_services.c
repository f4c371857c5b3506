#include "tests/unit/test.h"

#include <arpa/inet.h>
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

/* In front of the program: its clock goes on by 5 seconds each time that it looks. */
#define FAST_CLOCK                                                                                 \
	"use POSIX; no warnings; my $t = 0; *POSIX::times = sub { $t += 500 };"                    \
	"*POSIX::sysconf = sub { 100 }; do shift or die $@"

/* Start the program that the manifest makes; its output goes to dir/out. */
static pid_t start_by(const struct manifest *m, const char *argument, bool fast)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);
	auto_free char *path = mem_printf("%s/init", dir), *out = mem_printf("%s/out", dir);
	pid_t pid;

	services_program(m, &text);
	assert_int_equal(file_write(AT_FDCWD, path, text.data, text.len, 0755, NULL), 0);
	unlink(out); /* what the one before said */
	pid = fork();
	if (pid == 0) {
		int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644);

		dup2(fd, 1);
		dup2(fd, 2);
		setenv("SVRUN_CPUS", "7", 1);
		execlp("perl", "perl", "-e", fast ? FAST_CLOCK : "do shift or die $@", path,
			argument ? "--" : (char *)NULL, "sh", "-c", argument, (char *)NULL);
		_exit(99);
	}
	return pid;
}

static pid_t start(const struct manifest *m, const char *argument)
{
	return start_by(m, argument, false);
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

TEST(it_starts_again_after_pauses_that_grow)
{
	auto_free char *script =
		mem_printf("echo run >> %s/runs; [ $(wc -l < %s/runs) -ge 8 ]", dir, dir);
	const char *one[] = {"sh", "-c", script};
	struct manifest_service v[] = {
		{.id = "one", .argv = {one, 3}, .restart = RESTART_ON_FAILURE}};
	struct manifest m = {.services = v, .nservices = 1};
	auto_buf struct buf b = {0};
	const char *at;

	assert_int_equal(end_of(start_by(&m, NULL, true)), 0);
	at = output(&b);
	for (size_t i = 0; i < 7; i++) {
		static const int pauses[] = {1, 2, 4, 8, 16, 30, 30};
		auto_free char *line =
			mem_printf("init: one ended with status 1; again in %d s\n", pauses[i]);

		assert_ptr_equal(strstr(at, line), at);
		at += strlen(line);
	}
	assert_string_equal(at, "");
}

/* A program for `perl -e` that listens on $ARGV[0] once there is the file $ARGV[1]. */
#define LISTEN                                                                                     \
	"use Socket; socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_REUSEADDR, " \
	"1);"                                                                                      \
	"bind(S, sockaddr_in($ARGV[0], INADDR_LOOPBACK)) or die; select undef, undef, undef, "     \
	"0.05 "                                                                                    \
	"until -e $ARGV[1]; listen(S, 9); print qq(listens\n); STDOUT->flush; sleep 60"

/* A port that nobody has. */
static uint32_t free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	close(fd);
	return ntohs(a.sin_port);
}

TEST(a_service_waits_for_the_ports_of_those_it_is_after)
{
	auto_free char *go = mem_printf("%s/go", dir), *port = NULL;
	uint32_t number = free_port(), udp = 1;
	const char *one[] = {"perl", "-e", LISTEN, NULL, go};
	const char *two[] = {"sh", "-c", "echo two"}, *three[] = {"sh", "-c", "echo three"};
	const char *first = "one", *second[] = {"two", "one"};
	struct manifest_service v[] = {
		{.id = "one", .argv = {one, 5}, .ports = &number, .nports = 1},
		{.id = "two", .argv = {two, 3}, .after = {&first, 1}, .ports = &udp, .nports = 1},
		{.id = "three", .argv = {three, 3}, .after = {second, 2}},
		{.id = "four", .argv = {three, 3}}};
	struct manifest_port ports[] = {{.port = 1, .protocol = "udp"}};
	struct manifest m = {.services = v, .nservices = 4, .ports = ports, .nports = 1};
	auto_buf struct buf b = {0};
	pid_t pid;

	port = mem_printf("%u", number);
	one[3] = port;
	pid = start(&m, NULL);
	wait_for("init: four ended with status 0\n"); /* it waits for nobody */
	assert_null(strstr(output(&b), "two\n"));
	assert_int_equal(file_write(AT_FDCWD, go, "", 0, 0644, NULL), 0);
	wait_for("init: two ended with status 0\n");
	wait_for("init: three ended with status 0\n");
	assert_true(strstr(output(&b), "listens\n") < strstr(b.data, "two\n"));
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(end_of(pid), 0); /* ended by what it was sent */
	assert_null(strstr(output(&b), "nothing listens"));
}

TEST(who_waits_for_a_port_in_vain_is_told_to_end_or_starts)
{
	const char *one[] = {"sh", "-c", "echo up; exec sleep 60"},
		   *failed[] = {"sh", "-c", "exit 3"}, *ended[] = {"sh", "-c", "exit 0"};
	const char *two[] = {"sh", "-c", "echo two"};
	const char *first = "one";
	uint32_t port = free_port();
	struct manifest_service v[] = {{.id = "one", .argv = {one, 3}, .ports = &port, .nports = 1},
		{.id = "two", .argv = {two, 3}, .after = {&first, 1}}};
	struct manifest m = {.services = v, .nservices = 2};
	auto_free char *warning = mem_printf(
		"init: one: nothing listens on port %u; what is after it starts\n", port);
	auto_buf struct buf b = {0};
	pid_t pid = start(&m, NULL);

	wait_for("up\n");
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(end_of(pid), 0);
	assert_string_equal(output(&b), "up\ninit: one ended with status 0\n");

	pid = start_by(&m, NULL, true); /* a minute is over soon */
	wait_for("two\n");
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(end_of(pid), 0);
	assert_non_null(strstr(output(&b), warning));

	v[0].argv.v = failed; /* one that has ended never listens */
	assert_int_equal(end_of(start(&m, NULL)), 3);
	assert_non_null(strstr(output(&b), warning));
	assert_non_null(strstr(b.data, "two\n"));
	v[0].argv.v = ended;
	alarm(30);
	assert_int_equal(end_of(start(&m, NULL)), 0);
	alarm(0);
	assert_non_null(strstr(output(&b), warning));
	assert_non_null(strstr(b.data, "two\n"));
}

TEST(only_a_signal_that_all_were_sent_is_no_failure)
{
	const char *one[] = {"sh", "-c", "echo up; kill -KILL $$"};
	const char *two[] = {"sh", "-c", "trap 'exit 143' TERM; echo two; sleep 60 & wait"};
	struct manifest_service v[] = {
		{.id = "one", .argv = {one, 3}}, {.id = "two", .argv = {two, 3}}};
	struct manifest m = {.services = v + 1, .nservices = 1, .stop_signal = "SIGRTMIN+3"};
	pid_t pid = start(&m, NULL);

	wait_for("two\n");
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(end_of(pid), 143); /* its own exit status, not the signal */
	two[2] = "echo two; exec sleep 60";
	pid = start(&m, NULL);
	wait_for("two\n");
	assert_int_equal(kill(pid, SIGRTMIN + 3), 0);
	assert_int_equal(end_of(pid), 0);
	m.services = v;
	m.nservices = 2;
	pid = start(&m, NULL);
	wait_for("init: one ended with status 137\n");
	wait_for("two\n");
	assert_int_equal(kill(pid, SIGINT), 0);
	assert_int_equal(end_of(pid), 137);
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
	pid = start(&m, "echo up; exec sleep 60");
	wait_for("up\n");
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(end_of(pid), 143); /* as it would be without init */
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
	IN_FOLDER(it_starts_again_after_pauses_that_grow),
	IN_FOLDER(a_service_waits_for_the_ports_of_those_it_is_after),
	IN_FOLDER(who_waits_for_a_port_in_vain_is_told_to_end_or_starts),
	IN_FOLDER(only_a_signal_that_all_were_sent_is_no_failure),
	IN_FOLDER(one_program_behind_two_dashes_is_what_init_starts),
	cmocka_unit_test(what_the_manifest_gets))
