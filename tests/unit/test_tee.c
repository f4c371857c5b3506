#include "images/tee.h"

#include "tests/unit/tar-make.h"
#include "tests/unit/test.h"

enum { SIZE = 3 << 20 };
static unsigned char bytes[SIZE];

static void fill_bytes(void)
{
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (unsigned char)(i * 11 + i / 4000);
}

TEST(what_passes_is_hashed)
{
	static const size_t steps[] = {1000, 32768, 100000, 1 << 20, 0};
	struct digest want;

	fill_bytes();
	want = digest_of(bytes, SIZE);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct mem_source m;
		struct tee *t;
		struct digest d;
		const void *p;
		size_t n, at = 0;

		mem_source_init(&m, bytes, SIZE, steps[i]);
		t = tee_new(&m.source, 0, SIZE, "bytes");
		while (source_next(tee_source(t), &p, &n, NULL) > 0) {
			assert_memory_equal(bytes + at, p, n);
			at += n;
			assert_int_equal(tee_bytes(t), at);
		}
		d = tee_digest(t);
		assert_true(digest_eq(&d, &want));
		tee_free(t);
		mem_source_fini(&m);
	}
}

/* Gives buffers in turn, each of which stays for LAG more calls. */
enum { LAG = 2, PIECE = 64 << 10 };
struct lagging {
	struct source source;
	size_t at;
	unsigned turn;
	unsigned char *buf[LAG + 1];
};

static int lagging_next(struct source *source, const void **data, size_t *n, struct err *e)
{
	struct lagging *s = (struct lagging *)source;
	unsigned char **b = &s->buf[s->turn++ % (LAG + 1)];

	(void)e;
	free(*b);
	*b = NULL;
	if (s->at == SIZE)
		return 0;
	*b = mem_dup(bytes + s->at, PIECE);
	s->at += PIECE;
	*data = *b;
	*n = PIECE;
	return 1;
}

TEST(the_hash_may_lag_behind_but_not_too_far)
{
	struct lagging s = {.source.next = lagging_next};
	struct digest d, want;
	struct tee *t;
	const void *p;
	size_t n;

	fill_bytes();
	want = digest_of(bytes, SIZE);
	t = tee_new(&s.source, LAG, SIZE, "bytes");
	while (source_next(tee_source(t), &p, &n, NULL) > 0)
		;
	d = tee_digest(t);
	assert_true(digest_eq(&d, &want));
	tee_free(t);
	for (size_t i = 0; i <= LAG; i++)
		free(s.buf[i]);
}

TEST(more_than_expected_is_refused)
{
	struct mem_source m;
	struct err e = {0};
	struct tee *t;
	const void *p;
	size_t n;

	mem_source_init(&m, bytes, 101, 50);
	t = tee_new(&m.source, 0, 100, "bytes");
	assert_int_equal(source_next(tee_source(t), &p, &n, &e), 1);
	assert_int_equal(source_next(tee_source(t), &p, &n, &e), 1);
	assert_int_equal(source_next(tee_source(t), &p, &n, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_string_equal(e.text, "bytes: more than the 100 bytes expected");
	tee_free(t);
	mem_source_fini(&m);
}

TEST(a_tee_may_go_before_the_end)
{
	struct mem_source m;
	struct tee *t;
	const void *p;
	size_t n;

	mem_source_init(&m, bytes, SIZE, 1 << 20);
	t = tee_new(&m.source, 0, SIZE, "bytes");
	assert_int_equal(source_next(tee_source(t), &p, &n, NULL), 1);
	tee_free(t);
	mem_source_fini(&m);
}

RUN_TESTS(cmocka_unit_test(what_passes_is_hashed),
	cmocka_unit_test(the_hash_may_lag_behind_but_not_too_far),
	cmocka_unit_test(more_than_expected_is_refused),
	cmocka_unit_test(a_tee_may_go_before_the_end))
