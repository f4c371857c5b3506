#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/process.h"

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

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(UNIT(a_program_that_cannot_be_run_says_why),
	UNIT(a_program_is_found_in_the_path_and_gets_only_its_own_environment),
	UNIT(a_limit_that_can_be_set_is_set),
	UNIT(a_hard_limit_above_the_hosts_is_an_error_that_says_so))
