#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "svrun/console.h"

static char dir[] = "/tmp/svrun-console-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	strncpy(dir, "/tmp/svrun-console-XXXXXX", sizeof(dir));
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return sys_remove_tree(AT_FDCWD, dir);
}

static int listen_at(const char *path, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_int_equal(str_copy(a.sun_path, sizeof(a.sun_path), path), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* As engines do: one message that is not empty, one descriptor. */
static int take(int sock)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c;
	char data[64];
	struct iovec iov = {data, sizeof(data)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c};
	struct cmsghdr *head;
	int fd = -1;

	h.msg_controllen = sizeof(c.buf);
	assert_int_equal(recvmsg(sock, &h, MSG_CMSG_CLOEXEC), strlen("/dev/ptmx"));
	assert_memory_equal(data, "/dev/ptmx", strlen("/dev/ptmx"));
	head = CMSG_FIRSTHDR(&h);
	assert_non_null(head);
	assert_int_equal(head->cmsg_type, SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

static void send_and_take(const char *path, const char *bind_path)
{
	auto_fd int server = listen_at(bind_path, SOCK_STREAM);
	struct err e = {0};
	auto_fd int client = console_connect(path, &e);
	auto_fd int peer = -1, got = -1, master = posix_openpt(O_RDWR | O_NOCTTY);
	struct stat a, b;

	if (client < 0)
		fail_msg("%s", e.text);
	peer = accept(server, NULL, NULL);
	assert_int_equal(console_send(client, master, &e), 0);
	got = take(peer);
	assert_int_equal(sys_fstat(got, &a) | sys_fstat(master, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_rdev, b.st_rdev);
}

TEST(the_master_reaches_the_engine)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/socket", dir);
	send_and_take(path, path);
}

TEST(a_path_longer_than_an_address_is_fine)
{
	char folder[256], path[320];

	snprintf(folder, sizeof(folder), "%s/", dir);
	memset(folder + strlen(folder), 'x', 150);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(path, sizeof(path), "%s/socket", folder);
	assert_int_equal(chdir(folder), 0);
	send_and_take(path, "socket");
	assert_int_equal(chdir("/"), 0);
}

static void refuse(const char *path, enum err_kind kind, const char *why)
{
	char text[256];
	struct err e = {0};

	assert_int_equal(console_connect(path, &e), -1);
	snprintf(text, sizeof(text), "console socket %s: %s", path, why);
	assert_string_equal(e.text, text);
	assert_int_equal(e.kind, kind);
}

TEST(what_is_no_socket_to_connect_to_is_refused)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/nothing", dir);
	refuse(path, ERR_NOT_FOUND, "No such file or directory");
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = sys_open(path, O_CREAT | O_WRONLY, 0600);
	refuse(path, ERR_USAGE, "not a socket");
	close(fd);
	snprintf(path, sizeof(path), "%s/datagrams", dir);
	fd = listen_at(path, SOCK_DGRAM);
	refuse(path, ERR_USAGE, "not a stream socket");
	close(fd);
	snprintf(path, sizeof(path), "%s/closed", dir);
	close(listen_at(path, SOCK_STREAM));
	refuse(path, ERR_SYSTEM, "Connection refused");
	refuse(dir, ERR_USAGE, "not a socket");
}

TEST(an_engine_that_hung_up_is_an_error_and_no_signal)
{
	struct err e = {0};
	char path[64];

	snprintf(path, sizeof(path), "%s/socket", dir);
	auto_fd int server = listen_at(path, SOCK_STREAM);
	auto_fd int client = console_connect(path, &e);
	auto_fd int master = posix_openpt(O_RDWR | O_NOCTTY);

	close(accept(server, NULL, NULL));
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(console_send(client, master, &e), -1);
	assert_string_equal(e.text, "send the terminal to the console socket: Broken pipe");
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(UNIT(the_master_reaches_the_engine), UNIT(a_path_longer_than_an_address_is_fine),
	UNIT(what_is_no_socket_to_connect_to_is_refused),
	UNIT(an_engine_that_hung_up_is_an_error_and_no_signal))
