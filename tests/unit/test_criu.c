/* Talking to criu. The other side is this program itself, started under a name that says how it is
 * to answer. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "svrun/criu.h"

/* ---- as criu ---- */

enum { RPC = 3 };

static void say(const void *p, size_t n)
{
	if (send(RPC, p, n, MSG_NOSIGNAL) < 0)
		_exit(3);
}

#define SAY(text) say(text, sizeof(text) - 1)

/* criu_resp: type 1, success 2, restore 4 {pid 1}, notify 5 {script 1, pid 2}, errno 7. */
#define DUMPED "\x08\x01\x10\x01"
#define FAILED "\x08\x01\x10\x00\x38\x05"
#define NOTE "\x08\x06\x10\x01\x2a\x0c\x0a\x0apre-resume"

static const struct {
	const char *name, *text;
	size_t n;
} answers[] = {
	{"cut", "\x08", 1},
	{"no-message", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11},
	{"too-long-inside", "\x08\x06\x10\x01\x2a\x7f\x0a", 7},
	{"length-overflows", "\x2a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
	{"another-kind", "\x08\x09\x10\x01", 4},
	{"no-success", "\x08\x01", 2},
	{"bad-wire", "\x0f\x01", 2},
};

static void send_fd(void)
{
	char text[] = "\x08\x06\x10\x01\x2a\x13\x0a\x11orphan-pts-master";
	struct iovec iov = {text, sizeof(text) - 1};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c = {.buf = {0}};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c};
	struct cmsghdr *head;
	int fd = 0;

	h.msg_controllen = sizeof(c.buf);
	head = CMSG_FIRSTHDR(&h);
	*head = (struct cmsghdr){
		CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	if (sendmsg(RPC, &h, 0) < 0)
		_exit(3);
}

/* What we were asked, as hex on stdout; our environment and descriptors. */
static void tell(const unsigned char *request, ssize_t n)
{
	extern char **environ;

	for (ssize_t i = 0; i < n; i++)
		printf("%02x", request[i]);
	printf("\n");
	for (char **v = environ; *v; v++)
		printf("%s\n", *v);
	for (int fd = 0; fd < 256; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d ", fd);
	fflush(stdout);
}

static int act(const char *name)
{
	unsigned char request[4096];
	ssize_t n = recv(RPC, request, sizeof(request), 0);

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (str_eq(name, answers[i].name)) {
			say(answers[i].text, answers[i].n);
			pause();
		}
	if (str_eq(name, "dies"))
		return 1;
	if (str_eq(name, "fails")) {
		SAY(FAILED);
		pause();
	}
	if (str_starts(name, "note")) {
		if (str_eq(name, "note-fd"))
			send_fd();
		else
			SAY(NOTE);
		/* {type NOTIFY, success} */
		if (recv(RPC, request, sizeof(request), 0) != 4 || request[3] != 1)
			pause();
	}
	if (str_starts(name, "random"))
		say(name + strlen("random"), strlen(name + strlen("random")));
	if (str_eq(name, "tells"))
		tell(request, n);
	SAY(DUMPED);
	return str_eq(name, "bad-status") ? 7 : 0;
}

/* ---- as runtime ---- */

struct seen {
	unsigned notes;
	bool fail, fd;
	char script[64];
};

static int note(void *ctx, const struct criu_note *n, struct err *e)
{
	struct seen *s = ctx;

	s->notes++;
	s->fd = n->fd >= 0 && fcntl(n->fd, F_GETFD) >= 0;
	snprintf(s->script, sizeof(s->script), "%s", n->script);
	return s->fail ? err_set(e, ERR_DENIED, "not this") : 0;
}

static char folder[] = "/tmp/test_criu.XXXXXX";

static int ask(const char *name, struct seen *s, int out, struct err *e)
{
	char path[300], self[300];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	auto_buf struct buf opts = BUF_INIT(1000);
	auto_fd int dir = sys_open(folder, O_RDONLY | O_DIRECTORY, 0);
	const struct criu_options o = {.program = path,
		.kind = CRIU_DUMP,
		.opts = &opts,
		.log_dir = dir,
		.log = "log",
		.stdio = {-1, out, -1},
		.fds = &dir,
		.nfds = 1,
		.note = note,
		.ctx = s};
	pid_t pid;

	assert_true(n > 0);
	self[n] = '\0';
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_true(symlink(self, path) == 0 || errno == EEXIST);
	criu_put_int(&opts, CRIU_PID, 300);
	criu_put_str(&opts, CRIU_ROOT, "/r");
	criu_put_pair(&opts, CRIU_EXT_MOUNT, "a", "bc", 0);
	criu_put_pair(&opts, CRIU_INHERIT_FD, "k", NULL, 4);
	return criu_run(&o, &pid, e);
}

TEST(the_request_is_what_rpc_proto_says)
{
	struct seen s = {0};
	struct err e = {0};
	int p[2];
	char text[4096];
	ssize_t n;

	setenv("SECRET", "1", 1);
	assert_int_equal(sys_pipe(p), 0);
	assert_int_equal(ask("tells", &s, p[1], &e), 0);
	close(p[1]);
	n = read(p[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	close(p[0]);
	/* type 1; opts: pid 300, root "/r", ext_mnt {"a", "bc"}, inherit_fd {"k", 4} */
	assert_string_equal(text,
		"0801121910ac026a022f72ba01070a01611202"
		"6263da01050a016b1004\n"
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
		"0 1 2 3 4 ");
}

TEST(answers_that_are_none_are_errors)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct seen s = {0};
		struct err e = {0};

		if (ask(answers[i].name, &s, -1, &e) == 0)
			fail_msg("%s was taken", answers[i].name);
		assert_int_not_equal(e.kind, ERR_NONE);
	}
}

TEST(any_bytes_are_answered_in_time)
{
	srand(1);
	for (int i = 0; i < 60; i++) {
		char name[40] = "random";
		size_t n = 1 + (size_t)rand() % 20, at = strlen(name);
		struct seen s = {0};
		struct err e = {0};

		for (size_t k = 0; k < n; k++) {
			char c = (char)(1 + rand() % 255);

			name[at + k] = c == '/' ? '.' : c;
		}
		name[at + n] = '\0';
		/* Either it fails, or the answer behind it counts. */
		assert_true(ask(name, &s, -1, &e) == 0 || e.kind != ERR_NONE);
	}
}

TEST(notes_are_heard_and_can_stop_it)
{
	struct seen s = {0}, fd = {0}, stop = {.fail = true};
	struct err e = {0};

	assert_int_equal(ask("note", &s, -1, &e), 0);
	assert_int_equal(s.notes, 1);
	assert_string_equal(s.script, "pre-resume");
	assert_false(s.fd);
	assert_int_equal(ask("note-fd", &fd, -1, &e), 0);
	assert_string_equal(fd.script, "orphan-pts-master");
	assert_true(fd.fd);
	assert_int_equal(ask("note", &stop, -1, &e), -1);
	assert_string_equal(e.text, "not this");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(failures_quote_the_log)
{
	static const char log[] = "(00.1) Warn  (a.c:1): w\n(00.2) Error (a.c:2): one\n"
				  "(00.3)      7: Error (b.c:3): two \033[1m\n";
	struct seen s = {0};
	struct err e = {0}, dead = {0}, bad = {0};
	auto_fd int dir = sys_open(folder, O_RDONLY | O_DIRECTORY, 0);
	auto_fd int fd = sys_openat(dir, "log", O_WRONLY | O_CREAT, 0600);

	assert_int_equal(write(fd, log, sizeof(log) - 1), sizeof(log) - 1);
	assert_int_equal(ask("fails", &s, -1, &e), -1);
	assert_string_equal(e.text, "Error (a.c:2): one: Error (b.c:3): two ?[1m: criu failed (5)");
	assert_int_equal(ask("dies", &s, -1, &dead), -1);
	assert_non_null(strstr(dead.text, "criu died"));
	assert_int_equal(ask("bad-status", &s, -1, &bad), -1);
	assert_non_null(strstr(bad.text, "ended with status"));
}

TEST(a_program_that_is_not_there_is_named)
{
	auto_buf struct buf opts = BUF_INIT(10);
	const struct criu_options o = {.program = "/nowhere/criu",
		.kind = CRIU_DUMP,
		.opts = &opts,
		.log_dir = -1,
		.log = "log",
		.stdio = {-1, -1, -1}};
	struct err e = {0};
	pid_t pid;

	assert_int_equal(criu_run(&o, &pid, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, "/nowhere/criu"));
	assert_non_null(strstr(e.hint, "--criu"));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_request_is_what_rpc_proto_says),
		cmocka_unit_test(answers_that_are_none_are_errors),
		cmocka_unit_test(any_bytes_are_answered_in_time),
		cmocka_unit_test(notes_are_heard_and_can_stop_it),
		cmocka_unit_test(failures_quote_the_log),
		cmocka_unit_test(a_program_that_is_not_there_is_named),
	};
	int rc;

	if (argc == 4 && str_eq(argv[2], "swrk"))
		return act(strrchr(argv[0], '/') + 1);
	if (!mkdtemp(folder))
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	sys_remove_tree(AT_FDCWD, folder);
	return rc;
}
