#include "images/decompress.h"

#include "tests/unit/tar-make.h"
#include "tests/unit/test.h"

enum { SIZE = 1500000, MAX = 64 << 20 };
static unsigned char bytes[SIZE];
static const size_t steps[] = {1, 1000, 65536, 0};
static const enum codec codecs[] = {CODEC_NONE, CODEC_GZIP, CODEC_ZSTD};

/* Somewhat compressible. */
static void fill_bytes(void)
{
	uint32_t x = 1;

	for (size_t i = 0; i < SIZE; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = i % 3 ? (unsigned char)(x >> 29) : (unsigned char)(i >> 8);
	}
}

static int unpack(enum codec c, const void *p, size_t n, size_t step, uint64_t max, struct buf *out,
	struct err *e)
{
	struct mem_source m;
	struct decompress *d;
	const void *data;
	size_t k;
	int rc;

	*e = (struct err){0};
	mem_source_init(&m, p, n, step);
	d = decompress_new(c, &m.source, max, "blob", e);
	assert_non_null(d);
	while ((rc = source_next(decompress_source(d), &data, &k, e)) > 0) {
		assert_true(k > 0);
		buf_put(out, data, k);
	}
	decompress_free(d);
	mem_source_fini(&m);
	return rc;
}

static void gives(enum codec c, const struct buf *packed, const void *want, size_t n)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		auto_buf struct buf out = BUF_INIT(MAX);
		struct err e;

		if (steps[i] == 1 && packed->len > 100000)
			continue;
		if (unpack(c, packed->data, packed->len, steps[i], n, &out, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(out.len, n);
		assert_true(n == 0 || memcmp(out.data, want, n) == 0);
	}
}

static void fails(enum codec c, const void *p, size_t n, uint64_t max, const char *text)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		auto_buf struct buf out = BUF_INIT(MAX);
		struct err e;

		if (steps[i] == 1 && n > 100000)
			continue;
		assert_int_equal(unpack(c, p, n, steps[i], max, &out, &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_true(out.len <= max);
		if (!strstr(e.text, text))
			fail_msg("'%s', not '%s'", e.text, text);
	}
}

TEST(what_was_packed_is_unpacked)
{
	static const size_t sizes[] = {1, 1000, 65536, 262144, 262145, SIZE};

	fill_bytes();
	for (size_t c = 0; c < 3; c++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			auto_buf struct buf b = BUF_INIT(MAX);

			make_packed(codecs[c], bytes, sizes[i], &b);
			gives(codecs[c], &b, bytes, sizes[i]);
		}
}

TEST(several_members_or_frames_are_one_stream)
{
	fill_bytes();
	for (size_t c = 0; c < 3; c++) {
		auto_buf struct buf b = BUF_INIT(MAX);
		size_t at = 0;

		for (size_t n = 1; at + n < 200000; at += n, n = n * 3 + 1) {
			make_packed(codecs[c], bytes + at, n, &b);
			make_packed(codecs[c], bytes, 0, &b);
		}
		gives(codecs[c], &b, bytes, at);
	}
}

TEST(what_decoders_skip_is_skipped)
{
	static const char skippable[] = "\x50\x2a\x4d\x18\5\0\0\0hello";
	static const char carrier[] =
		"\x1f\x8b\x08\x04\0\0\0\0\0\xff\5\0SV\1\0x\3\0\0\0\0\0\0\0\0\0";
	auto_buf struct buf z = BUF_INIT(MAX), g = BUF_INIT(MAX);
	static const char zeros[3000];

	buf_put(&z, skippable, sizeof(skippable) - 1);
	make_packed(CODEC_ZSTD, "abc", 3, &z);
	buf_put(&z, skippable, sizeof(skippable) - 1);
	make_packed(CODEC_ZSTD, "def", 3, &z);
	buf_put(&z, skippable, sizeof(skippable) - 1);
	gives(CODEC_ZSTD, &z, "abcdef", 6);
	make_packed(CODEC_GZIP, "abc", 3, &g);
	buf_put(&g, carrier, sizeof(carrier) - 2);
	buf_put(&g, zeros, sizeof(zeros));
	make_packed(CODEC_GZIP, "def", 3, &g);
	buf_put(&g, zeros, sizeof(zeros));
	gives(CODEC_GZIP, &g, "abcdef", 6);
}

TEST(what_ends_early_is_refused)
{
	auto_buf struct buf z = BUF_INIT(MAX), g = BUF_INIT(MAX), two = BUF_INIT(MAX);

	fill_bytes();
	make_packed(CODEC_ZSTD, bytes, 300, &z);
	for (size_t n = 0; n < z.len; n++)
		fails(CODEC_ZSTD, z.data, n, MAX, "truncated zstd data");
	make_packed(CODEC_GZIP, bytes, 300, &g);
	for (size_t n = 0; n < g.len; n++)
		fails(CODEC_GZIP, g.data, n, MAX, "truncated gzip data");
	make_packed(CODEC_GZIP, bytes, SIZE, &two);
	fails(CODEC_GZIP, two.data, two.len - 1, MAX, "truncated gzip data");
	fails(CODEC_GZIP, two.data, two.len / 2, MAX, "truncated gzip data");
	make_packed(CODEC_GZIP, bytes, 300, &two);
	fails(CODEC_GZIP, two.data, two.len - 4, MAX, "truncated gzip data");
}

TEST(what_is_damaged_is_refused)
{
	auto_buf struct buf g = BUF_INIT(MAX);

	fill_bytes();
	make_packed(CODEC_GZIP, bytes, 1000, &g);
	g.data[g.len - 8] ^= 1;
	fails(CODEC_GZIP, g.data, g.len, MAX, "wrong gzip checksum");
	g.data[g.len - 8] ^= 1;
	buf_put(&g, "garbage", 7);
	fails(CODEC_GZIP, g.data, g.len, MAX, "bytes behind the end of the gzip data");
	fails(CODEC_GZIP, "not gzip at all, but long enough", 32, MAX, "invalid gzip data");
	fails(CODEC_ZSTD, "not zstd at all, but long enough", 32, MAX, "zstd: ");
}

TEST(windows_beyond_128_mib_are_refused)
{
	auto_buf struct buf b = BUF_INIT(MAX);
	/* a frame header without a content size: window descriptor of 2^28 */
	static const unsigned char frame[] = {
		0x28, 0xb5, 0x2f, 0xfd, 0x00, (28 - 10) << 3, 0x01, 0x00, 0x00};

	buf_put(&b, frame, sizeof(frame));
	fails(CODEC_ZSTD, b.data, b.len, MAX, "zstd: Frame requires too much memory");
	b.data[5] = (char)((27 - 10) << 3);
	gives(CODEC_ZSTD, &b, NULL, 0);
}

TEST(a_bomb_ends_at_the_limit)
{
	static unsigned char zeros[8 << 20];

	for (size_t c = 1; c < 3; c++) {
		auto_buf struct buf b = BUF_INIT(MAX);

		make_packed(codecs[c], zeros, sizeof(zeros), &b);
		assert_true(b.len < 100000);
		gives(codecs[c], &b, zeros, sizeof(zeros));
		fails(codecs[c], b.data, b.len, sizeof(zeros) - 1,
			"blob: unpacks to more than the limit of 8388607 bytes");
		fails(codecs[c], b.data, b.len, 0, "the limit of 0 bytes");
	}
}

RUN_TESTS(cmocka_unit_test(what_was_packed_is_unpacked),
	cmocka_unit_test(several_members_or_frames_are_one_stream),
	cmocka_unit_test(what_decoders_skip_is_skipped),
	cmocka_unit_test(what_ends_early_is_refused), cmocka_unit_test(what_is_damaged_is_refused),
	cmocka_unit_test(windows_beyond_128_mib_are_refused),
	cmocka_unit_test(a_bomb_ends_at_the_limit))
