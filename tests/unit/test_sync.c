#include "tests/unit/test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "runtime/sync.h"

TEST(a_message_arrives_whole_with_its_error)
{
	struct sync_msg m = {.kind = SYNC_FAILED, .status = 127}, got;
	int pair[2];

	err_set(&m.err, ERR_NOT_FOUND, "exec '%s'", "x");
	err_hint(&m.err, "a hint");
	assert_int_equal(sys_socketpair(pair), 0);
	assert_int_equal(sync_send(pair[0], &m, -1, NULL), 0);
	assert_int_equal(sync_recv(pair[1], &got, NULL, NULL), 0);
	assert_int_equal(got.kind, SYNC_FAILED);
	assert_int_equal(got.status, 127);
	assert_int_equal(got.err.kind, ERR_NOT_FOUND);
	assert_string_equal(got.err.text, "exec 'x'");
	assert_string_equal(got.err.hint, "a hint");
	close(pair[0]);
	assert_int_equal(sync_recv(pair[1], &got, NULL, NULL), 0);
	assert_int_equal(got.kind, SYNC_END);
	close(pair[1]);
}

TEST(a_descriptor_comes_along_and_is_closed_when_nobody_takes_it)
{
	struct sync_msg m = {.kind = SYNC_READY};
	struct stat a, b;
	int pair[2], pipefd[2], fd;
	char c;

	assert_int_equal(sys_socketpair(pair), 0);
	assert_int_equal(sys_pipe(pipefd), 0);
	assert_int_equal(sync_send(pair[0], &m, pipefd[1], NULL), 0);
	assert_int_equal(sync_recv(pair[1], &m, &fd, NULL), 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(pipefd[1], &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	assert_int_equal(sync_send(pair[0], &m, pipefd[1], NULL), 0);
	close(pipefd[1]);
	assert_int_equal(sync_recv(pair[1], &m, NULL, NULL), 0);
	assert_int_equal(read(pipefd[0], &c, 1), 0); /* no writer is left */
	close(pipefd[0]);
	close(pair[0]);
	close(pair[1]);
}

/* It has ended with our message unread: what it said is told, not that it is gone. */
TEST(why_a_process_ended_is_heard_whatever_it_left_unread)
{
	struct sync_msg start = {.kind = SYNC_START}, m;
	struct err why = {0}, e = {0};
	int pair[2];

	err_set(&why, ERR_DENIED, "too bad");
	for (int sent_before = 0; sent_before < 2; sent_before++) {
		assert_int_equal(sys_socketpair(pair), 0);
		if (sent_before)
			assert_int_equal(sync_send(pair[0], &start, -1, NULL), 0);
		sync_fail(pair[1], 3, &why);
		close(pair[1]);
		e = (struct err){0};
		if (sent_before)
			assert_int_equal(sync_expect(pair[0], SYNC_READY, &m, NULL, &e), -1);
		else
			assert_int_equal(sync_say(pair[0], &start, &e), -1);
		assert_string_equal(e.text, "too bad");
		close(pair[0]);
	}
	assert_int_equal(sys_socketpair(pair), 0);
	close(pair[1]);
	assert_int_equal(sync_say(pair[0], &start, &e), -1);
	close(pair[0]);
}

TEST(a_message_of_another_size_is_refused)
{
	static const char big[sizeof(struct sync_msg) + 1] = {SYNC_READY};
	static const size_t sizes[] = {1, sizeof(struct sync_msg) - 1, sizeof(big)};
	struct sync_msg m;

	for (size_t i = 0; i < 3; i++) {
		int pair[2];

		assert_int_equal(sys_socketpair(pair), 0);
		assert_int_equal(send(pair[0], big, sizes[i], 0), sizes[i]);
		assert_int_equal(sync_recv(pair[1], &m, NULL, NULL), -1);
		close(pair[0]);
		close(pair[1]);
	}
}

RUN_TESTS(cmocka_unit_test(why_a_process_ended_is_heard_whatever_it_left_unread),
	cmocka_unit_test(a_message_arrives_whole_with_its_error),
	cmocka_unit_test(a_descriptor_comes_along_and_is_closed_when_nobody_takes_it),
	cmocka_unit_test(a_message_of_another_size_is_refused))
