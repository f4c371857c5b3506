#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/sys.h"
#include "svrun/relay.h"

/* One relay between two pipes: the test writes in[1] and reads out[0]. */
struct rig {
	int in[2], out[2];
	struct relay r;
};

static void rig_init(struct rig *g)
{
	assert_int_equal(sys_pipe(g->in), 0);
	assert_int_equal(sys_pipe(g->out), 0);
	assert_int_equal(fcntl(g->in[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fcntl(g->out[1], F_SETFL, O_NONBLOCK), 0);
	relay_init(&g->r, g->in[0], g->out[1]);
}

/* Run it until there is nothing to do. Returns the number of rounds. */
static int settle(struct rig *g)
{
	struct pollfd p[2];
	int rounds = 0;

	for (;;) {
		relay_want(&g->r, p);
		if (poll(p, 2, 0) <= 0)
			return rounds;
		relay_step(&g->r, p);
		if (++rounds > 100000)
			fail_msg("it spins");
	}
}

TEST(bytes_go_through_and_the_end_follows_them)
{
	struct rig g;
	char buf[16];

	rig_init(&g);
	assert_int_equal(write(g.in[1], "hello", 5), 5);
	close(g.in[1]);
	settle(&g);
	assert_int_equal(read(g.out[0], buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(read(g.out[0], buf, sizeof(buf)), 0);
	assert_true(relay_done(&g.r));
	close(g.out[0]);
	relay_fini(&g.r);
}

TEST(a_slow_reader_holds_the_writer_back)
{
	struct rig g;
	size_t sent = 0, got = 0;
	char buf[4096];
	ssize_t n;

	rig_init(&g);
	assert_int_equal(fcntl(g.in[1], F_SETFL, O_NONBLOCK), 0);
	memset(buf, 'x', sizeof(buf));
	for (int i = 0; i < 1000; i++) {
		n = write(g.in[1], buf, sizeof(buf));
		sent += n > 0 ? (size_t)n : 0;
		settle(&g);
	}
	/* Two pipes and the buffer, no more: nothing grows. */
	assert_true(sent <= 2 * 65536 + RELAY_SIZE);
	close(g.in[1]);
	assert_int_equal(fcntl(g.out[0], F_SETFL, O_NONBLOCK), 0);
	for (;;) {
		settle(&g);
		n = read(g.out[0], buf, sizeof(buf));
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	assert_int_equal(got, sent);
	close(g.out[0]);
	relay_fini(&g.r);
}

TEST(a_write_that_fails_is_remembered_unless_the_reader_went_away)
{
	struct rig g;

	rig_init(&g);
	close(g.out[1]);
	close(g.out[0]);
	g.r.to = sys_open("/dev/full", O_WRONLY, 0);
	assert_int_equal(write(g.in[1], "x", 1), 1);
	settle(&g);
	assert_true(relay_done(&g.r));
	assert_int_equal(g.r.error, ENOSPC);
	close(g.in[1]);
	relay_fini(&g.r);

	signal(SIGPIPE, SIG_IGN);
	rig_init(&g);
	assert_int_equal(write(g.in[1], "x", 1), 1);
	close(g.out[0]);
	settle(&g);
	assert_int_equal(g.r.error, 0);
	close(g.in[1]);
	relay_fini(&g.r);
}

TEST(the_end_is_typed_on_a_keyboard)
{
	static const struct {
		const char *sent, *typed;
	} cases[] = {{"", "\004"}, {"line\n", "line\n\004"}, {"no newline", "no newline\004\004"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig g;
		char buf[32];
		ssize_t n;

		rig_init(&g);
		g.r.typed = true;
		n = write(g.in[1], cases[i].sent, strlen(cases[i].sent));
		assert_int_equal(n, strlen(cases[i].sent));
		close(g.in[1]);
		settle(&g);
		n = read(g.out[0], buf, sizeof(buf));
		assert_int_equal(n, strlen(cases[i].typed));
		assert_memory_equal(buf, cases[i].typed, (size_t)n);
		close(g.out[0]);
		relay_fini(&g.r);
	}
}

TEST(a_reader_that_goes_away_ends_the_writer)
{
	struct rig g;

	signal(SIGPIPE, SIG_IGN);
	rig_init(&g);
	close(g.out[0]);
	assert_int_equal(write(g.in[1], "x", 1), 1);
	settle(&g);
	assert_true(relay_done(&g.r));
	assert_int_equal(write(g.in[1], "x", 1), -1); /* EPIPE */
	close(g.in[1]);
	relay_fini(&g.r);
}

TEST(an_idle_relay_waits)
{
	struct rig g;

	rig_init(&g);
	assert_int_equal(settle(&g), 0);
	close(g.in[1]);
	close(g.out[0]);
	relay_fini(&g.r);
}

RUN_TESTS(cmocka_unit_test(bytes_go_through_and_the_end_follows_them),
	cmocka_unit_test(a_slow_reader_holds_the_writer_back),
	cmocka_unit_test(a_write_that_fails_is_remembered_unless_the_reader_went_away),
	cmocka_unit_test(the_end_is_typed_on_a_keyboard),
	cmocka_unit_test(a_reader_that_goes_away_ends_the_writer),
	cmocka_unit_test(an_idle_relay_waits))
