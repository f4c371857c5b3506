#include "tests/unit/test.h"

#include <stdatomic.h>
#include <unistd.h>

#include "images/workers.h"

enum { N = 1000 };

struct seen {
	atomic_int made[N];
	size_t slots[16], taken, fail_make, fail_take;
};

static int each(void *ctx, size_t i, struct err *e)
{
	struct seen *s = ctx;

	if (i == s->fail_make)
		return err_set(e, ERR_CORRUPT, "item %zu", i);
	atomic_fetch_add(&s->made[i], 1);
	return 0;
}

static int make(void *ctx, size_t i, size_t slot, struct err *e)
{
	struct seen *s = ctx;

	if (i % 97 == 0)
		usleep(500);
	s->slots[slot] = i;
	return each(ctx, i, e);
}

static int take(void *ctx, size_t i, size_t slot, struct err *e)
{
	struct seen *s = ctx;

	if (i == s->fail_take)
		return err_set(e, ERR_CORRUPT, "take %zu", i);
	if (i != s->taken++ || s->slots[slot] != i)
		return err_set(e, ERR_CORRUPT, "out of order");
	return 0;
}

TEST(every_index_is_done_once)
{
	struct seen s = {.fail_make = N};

	assert_int_equal(workers_each(N, 4, each, &s, NULL), 0);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(s.made[i], 1);
	assert_int_equal(workers_each(0, 4, each, &s, NULL), 0);
}

TEST(the_first_error_stops_the_work)
{
	struct seen s = {.fail_make = 10};
	struct err e = {0};

	assert_int_equal(workers_each(N, 4, each, &s, &e), -1);
	assert_string_equal(e.text, "item 10");
	assert_int_equal(s.made[N - 1], 0);
}

static int pipe_of(struct seen *s, struct err *e)
{
	struct workers_pipe p = {
		.n = N, .threads = 3, .slots = 5, .make = make, .take = take, .ctx = s};

	return workers_ordered(&p, e);
}

TEST(a_pipe_takes_in_order_whatever_the_threads_do)
{
	struct seen s = {.fail_make = N, .fail_take = N};
	struct err e = {0};

	if (pipe_of(&s, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(s.taken, N);
}

TEST(a_pipe_ends_on_an_error_on_either_side)
{
	struct seen a = {.fail_make = 500, .fail_take = N}, b = {.fail_make = N, .fail_take = 3};
	struct err e = {0};

	assert_int_equal(pipe_of(&a, &e), -1);
	assert_string_equal(e.text, "item 500");
	assert_int_equal(pipe_of(&b, &e), -1);
	assert_string_equal(e.text, "take 3");
}

RUN_TESTS(cmocka_unit_test(every_index_is_done_once),
	cmocka_unit_test(the_first_error_stops_the_work),
	cmocka_unit_test(a_pipe_takes_in_order_whatever_the_threads_do),
	cmocka_unit_test(a_pipe_ends_on_an_error_on_either_side))
