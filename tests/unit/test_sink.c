#include "images/sink.h"

#include <pthread.h>

#include "tests/unit/fixture.h"

struct put {
	struct fixture *f;
	struct sink *s;
	struct chunk *v;
	size_t n;
	uint32_t seed;
};

static uint32_t length_of(size_t i)
{
	static const uint32_t lengths[] = {
		1, 100, 4096, SINK_SMALL, SINK_SMALL + 1, 300 << 10, CHUNK_SIZE - 1, CHUNK_SIZE, 7};

	return lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
}

static void fill(unsigned char *p, uint32_t len, size_t i, uint32_t seed)
{
	for (uint32_t k = 0; k < len; k++)
		p[k] = data_at(k, (uint32_t)i * 16 + seed);
}

/* By both ways, small ones through buffers, too. */
static void *put_all(void *arg)
{
	struct put *x = arg;
	unsigned char *small = mem_alloc(SINK_SMALL);

	for (size_t i = 0; i < x->n; i++) {
		uint32_t len = length_of(i);
		struct digest d;

		x->v[i].layer = 77;
		if (len <= SINK_SMALL && i % 2) {
			fill(small, len, i, x->seed);
			d = digest_of(small, len);
			sink_add(x->s, small, len, &x->v[i], i % 3 ? NULL : &d);
			memset(small, 0, len);
		} else {
			unsigned char *p = sink_buffer(x->s);

			fill(p, len, i, x->seed);
			d = digest_of(p, len);
			sink_put(x->s, p, len, &x->v[i], i % 3 ? NULL : &d);
		}
		if (i % 10 == 0)
			sink_put(x->s, sink_buffer(x->s), 0, NULL, NULL);
	}
	free(small);
	return NULL;
}

static void check_all(const struct put *x)
{
	struct fixture *f = x->f;
	unsigned char *want = mem_alloc(CHUNK_SIZE), *have = mem_alloc(CHUNK_SIZE);

	for (size_t i = 0; i < x->n; i++) {
		uint32_t len = length_of(i);
		struct digest d;

		fill(want, len, i, x->seed);
		d = digest_of(want, len);
		assert_int_equal(x->v[i].length, len);
		assert_int_equal(x->v[i].layer, 77);
		assert_true(digest_eq(&x->v[i].digest, &d));
		need(pool_read(f->p, &x->v[i], have, &f->e));
		assert_memory_equal(want, have, len);
	}
	free(want);
	free(have);
}

TEST(what_is_handed_over_is_in_the_pool)
{
	static const struct {
		size_t threads, memory;
	} cases[] = {{1, 0}, {0, 0}, {4, 1}, {2, 16 << 20}};
	struct fixture fx, *f = &fx;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct put x = {.f = f, .n = 400, .seed = 3};

		fixture_init(f);
		x.v = mem_array(x.n, sizeof(*x.v));
		x.s = sink_new(f->p, cases[i].threads, cases[i].memory);
		put_all(&x);
		need(sink_wait(x.s, &f->e));
		check_all(&x);
		need(pool_commit(f->p, &f->e));
		sink_free(x.s);
		free(x.v);
		fixture_fini(f);
	}
}

TEST(several_threads_hand_over_at_the_same_time)
{
	struct fixture fx, *f = &fx;
	struct put x[4];
	pthread_t t[4];

	fixture_init(f);
	x[0].s = sink_new(f->p, 2, 8 << 20);
	for (uint32_t i = 0; i < 4; i++) {
		x[i] = (struct put){.f = f, .s = x[0].s, .n = 100, .seed = i / 2};
		x[i].v = mem_array(x[i].n, sizeof(*x[i].v));
		assert_int_equal(pthread_create(&t[i], NULL, put_all, &x[i]), 0);
	}
	for (size_t i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	need(sink_wait(x[0].s, &f->e));
	for (size_t i = 0; i < 4; i++) {
		check_all(&x[i]);
		free(x[i].v);
	}
	sink_free(x[0].s);
	fixture_fini(f);
}

TEST(freeing_waits_for_what_was_handed_over)
{
	struct fixture fx, *f = &fx;
	struct put x = {.f = f, .n = 50};

	fixture_init(f);
	x.v = mem_array(x.n, sizeof(*x.v));
	x.s = sink_new(f->p, 2, 4 << 20);
	put_all(&x);
	sink_free(x.s);
	check_all(&x);
	free(x.v);
	fixture_fini(f);
}

TEST(the_first_error_stays)
{
	static const size_t lengths[] = {5, 70 << 10, CHUNK_SIZE};
	struct fixture fx, *f = &fx;
	struct digest wrong = {{1, 2, 3}};
	struct chunk c[64] = {0};
	struct err again = {0};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct sink *s;

		fixture_init(f);
		s = sink_new(f->p, 2, 4 << 20);
		for (size_t k = 0; k < 64; k++) {
			unsigned char *p = sink_buffer(s);

			memset(p, (int)k, lengths[i]);
			sink_put(s, p, (uint32_t)lengths[i], &c[k], k == 20 ? &wrong : NULL);
		}
		assert_int_equal(sink_wait(s, &f->e), -1);
		assert_int_equal(f->e.kind, ERR_CORRUPT);
		assert_non_null(strstr(f->e.text, "010203"));
		assert_int_equal(sink_check(s, &again), -1);
		assert_string_equal(again.text, f->e.text);
		sink_add(s, "x", 1, &c[0], NULL);
		assert_int_equal(sink_wait(s, NULL), -1);
		sink_free(s);
		fixture_fini(f);
	}
}

RUN_TESTS(cmocka_unit_test(what_is_handed_over_is_in_the_pool),
	cmocka_unit_test(several_threads_hand_over_at_the_same_time),
	cmocka_unit_test(freeing_waits_for_what_was_handed_over),
	cmocka_unit_test(the_first_error_stays))
