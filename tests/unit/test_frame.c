#include "images/frame.h"

#include "base/mem.h"
#include "tests/unit/test.h"

enum { N = 100000 };

static unsigned char input[N];

static void fill(unsigned step)
{
	for (size_t i = 0; i < N; i++)
		input[i] = (unsigned char)((i / step) * 2654435761u >> 13);
}

static size_t encode(struct encoder *x, enum codec c, const void *in, size_t n, unsigned char **out)
{
	struct err e = {0};
	size_t len;

	*out = mem_alloc(frame_bound(c, n));
	if (encoder_frame(x, in, n, *out, &len, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(len <= frame_bound(c, n));
	return len;
}

static struct encoder *new_encoder(enum codec c)
{
	struct err e = {0};
	struct encoder *x = encoder_new(c, 3, &e);

	if (!x)
		fail_msg("%s", e.text);
	return x;
}

TEST(what_went_before_does_not_change_a_frame)
{
	for (enum codec c = CODEC_NONE; c <= CODEC_GZIP; c++) {
		struct encoder *used = new_encoder(c);
		unsigned char *a, *b;
		size_t n, m;

		for (size_t len = 1; len < N; len = len * 3 + 1) {
			struct encoder *fresh = new_encoder(c);

			fill(3);
			encode(used, c, input, N, &a); /* leaves its traces */
			free(a);
			fill(5);
			n = encode(used, c, input + len % 7, len - len % 7 ? len - len % 7 : 1, &a);
			m = encode(
				fresh, c, input + len % 7, len - len % 7 ? len - len % 7 : 1, &b);
			assert_int_equal(n, m);
			assert_memory_equal(a, b, n);
			free(a);
			free(b);
			encoder_free(fresh);
		}
		encoder_free(used);
	}
}

TEST(frames_decode_to_exactly_their_length_or_not_at_all)
{
	for (enum codec c = CODEC_NONE; c <= CODEC_GZIP; c++) {
		auto_free unsigned char *out = mem_alloc(N + 1), *stored = NULL;
		struct encoder *x = new_encoder(c);
		struct err e = {0};
		size_t n;

		fill(4);
		n = encode(x, c, input, N, &stored);
		assert_int_equal(codec_decode(c, stored, n, out, N, &e), 0);
		assert_memory_equal(out, input, N);
		assert_int_equal(codec_decode(c, stored, n, out, N - 1, &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_int_equal(codec_decode(c, stored, n, out, N + 1, NULL), -1);
		assert_int_equal(codec_decode(c, stored, n - 1, out, N, NULL), -1);
		assert_int_equal(codec_decode(c, stored, 0, out, N, NULL), -1);
		assert_int_equal(codec_decode(c, stored, 5, out, N, NULL), -1);
		encoder_free(x);
	}
}

TEST(bytes_behind_a_frame_are_refused)
{
	for (enum codec c = CODEC_ZSTD; c <= CODEC_GZIP; c++) {
		auto_free unsigned char *out = mem_alloc(N), *stored = NULL, *twice = NULL;
		struct encoder *x = new_encoder(c);
		size_t n;

		n = encode(x, c, input, N / 2, &stored);
		twice = mem_alloc(2 * n);
		memcpy(twice, stored, n);
		memcpy(twice + n, stored, n);
		assert_int_equal(codec_decode(c, twice, 2 * n, out, N / 2, NULL), -1);
		assert_int_equal(codec_decode(c, twice, 2 * n, out, N / 2 * 2, NULL), -1);
		assert_int_equal(codec_decode(c, twice, n + 1, out, N / 2, NULL), -1);
		encoder_free(x);
	}
}

TEST(data_that_do_not_compress_fit_the_bound)
{
	static unsigned char noise[1 << 20];
	uint32_t r = 1;

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (unsigned char)((r = r * 1664525u + 1013904223u) >> 24);
	for (enum codec c = CODEC_NONE; c <= CODEC_GZIP; c++)
		for (size_t n = 1; n <= sizeof(noise); n *= 4) {
			struct encoder *x = new_encoder(c);
			unsigned char *out;

			encode(x, c, noise, n, &out);
			free(out);
			encoder_free(x);
		}
}

TEST(codecs_have_names)
{
	enum codec c;

	assert_int_equal(codec_parse("zstd", &c), 0);
	assert_int_equal(c, CODEC_ZSTD);
	assert_int_equal(codec_parse("none", &c), 0);
	assert_int_equal(c, CODEC_NONE);
	assert_int_equal(codec_parse("lz4", &c), -1);
	assert_string_equal(codec_name(CODEC_GZIP), "gzip");
	assert_string_equal(
		codec_media_type(CODEC_GZIP), "application/vnd.oci.image.layer.v1.tar+gzip");
}

RUN_TESTS(cmocka_unit_test(what_went_before_does_not_change_a_frame),
	cmocka_unit_test(frames_decode_to_exactly_their_length_or_not_at_all),
	cmocka_unit_test(bytes_behind_a_frame_are_refused),
	cmocka_unit_test(data_that_do_not_compress_fit_the_bound),
	cmocka_unit_test(codecs_have_names))
