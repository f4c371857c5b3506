#include "tests/unit/test.h"

#include "base/mem.h"

TEST(an_arena_keeps_small_and_big_pieces)
{
	struct arena a = {0};
	char *small = arena_strdup(&a, "x"), *big = arena_alloc(&a, 1 << 20), *next;

	memset(big, 'b', 1 << 20);
	for (int i = 0; i < 100000; i++)
		arena_printf(&a, "%d", i);
	next = arena_strndup(&a, "hello", 4);
	assert_string_equal(small, "x");
	assert_string_equal(next, "hell");
	assert_true((uintptr_t)next % 16 == 0);
	arena_fini(&a);
	assert_null(a.last);
}

TEST(a_buffer_stops_at_its_ceiling)
{
	auto_buf struct buf b = BUF_INIT(10);
	struct err e = {0};

	assert_int_equal(buf_add(&b, "0123456789", 10, &e), 0);
	assert_int_equal(buf_add(&b, "x", 1, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_string_equal(b.data, "0123456789");
	assert_int_equal(buf_add(&b, "", SIZE_MAX, &e), -1);
}

TEST(a_vector_grows_by_doubling)
{
	int *v = NULL;
	size_t cap = 0;

	for (size_t n = 0; n < 1000; n++) {
		mem_grow(&v, &cap, n);
		v[n] = (int)n;
	}
	assert_int_equal(v[999], 999);
	free(v);
}

RUN_TESTS(cmocka_unit_test(an_arena_keeps_small_and_big_pieces),
	cmocka_unit_test(a_buffer_stops_at_its_ceiling),
	cmocka_unit_test(a_vector_grows_by_doubling))
