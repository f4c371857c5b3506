#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/seccomp.h"

static const char filter[] =
	"{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"listenerPath\": \"/x\", \"flags\": "
	"[\"SECCOMP_FILTER_FLAG_TSYNC\"], \"syscalls\": [{\"names\": [\"getppid\"], \"action\": "
	"\"SCMP_ACT_NOTIFY\"}]}";
enum { ANSWER = 4242, FINE = 7 };

static struct seccomp_prog compile(const char *text)
{
	struct err e = {0};
	struct arena mem = {0};
	struct at at = {NULL, "c", 0, json_parse(text, strlen(text), &e), &mem};
	struct spec_seccomp s;
	struct seccomp_prog p;

	if (seccomp_read(&at, &s, &e) < 0 || seccomp_compile(&p, &s, &e) < 0)
		fail_msg("%s", e.text);
	json_decref(at.v);
	arena_fini(&mem);
	return p;
}

/* An agent's socket; returns it, and its path. */
static int agent(int type, char dir[32], char path[64])
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(dir, 32, "/tmp/svrun-agent-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, 64, "%s/s", dir);
	assert_int_equal(str_copy(at.sun_path, sizeof(at.sun_path), path), 0);
	assert_int_equal(bind(sock, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(sock, 1), 0);
	return sock;
}

/* In a process of its own: filter itself, hand the listener out, ask. */
static int filtered(const char *path, const char *state)
{
	struct spec_seccomp s = {.listener_path = path};
	struct seccomp_prog p = compile(filter);
	int listener = -1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		seccomp_install(&p, &listener, NULL) < 0 || listener < 0)
		return 1;
	if (seccomp_send_listener(&s, listener, state, NULL) < 0)
		return 2;
	close(listener);
	return syscall(SYS_getppid) == ANSWER ? FINE : 3;
}

/* What came over the connection; returns the descriptor that came with it. */
static int take(int sock, char *text, size_t size)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {text, size - 1};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC), more;
	int fd = -1;

	assert_true(n > 0);
	assert_non_null(CMSG_FIRSTHDR(&h));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fd));
	while ((more = recv(sock, text + n, size - 1 - (size_t)n, 0)) > 0)
		n += more;
	text[n] = '\0';
	return fd;
}

static void answer(int listener)
{
	struct seccomp_notif ask = {0};
	struct seccomp_notif_resp reply = {.val = ANSWER};

	assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ask), 0);
	assert_int_equal(ask.data.nr, SYS_getppid);
	reply.id = ask.id;
	assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply), 0);
}

TEST(an_agent_gets_the_listener_with_the_state_and_answers)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
	static const char sent[] = "{\"ociVersion\":\"1.3.0\",\"fds\":[\"seccompFd\"]}";

	for (int i = 0; i < 2; i++) {
		char dir[32], path[64], text[256];
		auto_fd int sock = agent(types[i], dir, path);
		int status, conn, listener;
		pid_t pid = fork();

		if (pid == 0)
			_exit(filtered(path, sent));
		conn = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
		assert_true(conn >= 0);
		listener = take(conn, text, sizeof(text));
		assert_true(listener >= 0);
		assert_string_equal(text, sent);
		answer(listener);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(WEXITSTATUS(status), FINE);
		close(conn);
		close(listener);
		assert_int_equal(sys_remove_tree(AT_FDCWD, dir), 0);
	}
}

TEST(without_an_agent_there_is_an_error_that_names_it)
{
	static const char long_path[] =
		"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	struct spec_seccomp s = {.listener_path = "/tmp/svrun-no-agent"};
	struct err e = {0};

	assert_int_equal(seccomp_send_listener(&s, 0, "{}", &e), -1);
	assert_string_equal(e.text,
		"connect to the seccomp agent at /tmp/svrun-no-agent: No such file or directory");
	s.listener_path = long_path;
	e = (struct err){0};
	assert_int_equal(seccomp_send_listener(&s, 0, "{}", &e), -1);
	assert_string_equal(e.text, "seccomp listenerPath: longer than 107 bytes");
}

TEST(a_filter_without_notifications_has_no_listener)
{
	struct seccomp_prog p =
		compile("{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": "
			"[\"getppid\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 13}]}");
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		int listener = 5;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
			seccomp_install(&p, &listener, NULL) < 0 || listener != -1)
			_exit(1);
		_exit(syscall(SYS_getppid) < 0 && errno == EACCES ? FINE : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), FINE);
	seccomp_prog_fini(&p);
}

TEST(a_program_that_the_kernel_refuses_is_an_error)
{
	struct sock_filter bad = {BPF_JMP | BPF_JA, 0, 0, 5};
	const struct seccomp_prog p = {.code = &bad, .n = 1};
	struct err e = {0};
	int listener;

	assert_int_equal(seccomp_install(&p, &listener, &e), -1);
	assert_string_equal(
		e.text, "install the seccomp filter (1 instructions): Invalid argument");
}

RUN_TESTS(cmocka_unit_test(an_agent_gets_the_listener_with_the_state_and_answers),
	cmocka_unit_test(without_an_agent_there_is_an_error_that_names_it),
	cmocka_unit_test(a_filter_without_notifications_has_no_listener),
	cmocka_unit_test(a_program_that_the_kernel_refuses_is_an_error))
