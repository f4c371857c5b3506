#include "images/tar.h"

#include "tests/unit/test.h"

static size_t header_size(
	const struct attr *a, const char *path, uint64_t at, bool align, struct buf *b)
{
	struct tree *t = tree_new();
	struct err e = {0};
	struct node *n = tree_put(t, path, a, 0, &e);

	if (!n)
		fail_msg("%s", e.text);
	b->len = 0;
	if (tar_header(b, n, at, align, &e) < 0)
		fail_msg("%s", e.text);
	tree_free(t);
	return b->len;
}

TEST(only_what_ustar_cannot_say_gets_an_extended_header)
{
	static char name100[101], name101[102];
	struct xattr x = {"user.a", "1", 1};
	const struct {
		const char *path;
		struct attr a;
		const char *record; /* NULL: a plain header */
	} cases[] = {
		{"a", {.type = NODE_FIFO}, NULL},
		{name100, {.type = NODE_FIFO}, NULL},
		{name101, {.type = NODE_FIFO}, " path=nnnnn"},
		{name100, {.type = NODE_DIR}, " path=nnnnn"}, /* with its slash */
		{"\xc3\xa9", {.type = NODE_FIFO}, "11 path=\xc3\xa9\n"},
		{"\xff", {.type = NODE_FIFO}, "21 hdrcharset=BINARY\n9 path=\xff\n"},
		{"a", {.type = NODE_SYMLINK, .target = name100}, NULL},
		{"a", {.type = NODE_SYMLINK, .target = name101}, "115 linkpath=nn"},
		{"a", {.type = NODE_FIFO, .uid = 2097151, .gid = 2097151}, NULL},
		{"a", {.type = NODE_FIFO, .uid = 2097152}, "15 uid=2097152\n"},
		{"a", {.type = NODE_FIFO, .gid = 4294967295u}, "18 gid=4294967295\n"},
		{"a", {.type = NODE_FIFO, .mtime = 8589934591}, NULL},
		{"a", {.type = NODE_FIFO, .mtime = 8589934592}, "20 mtime=8589934592\n"},
		{"a", {.type = NODE_FIFO, .mtime = -1}, "12 mtime=-1\n"},
		{"a", {.type = NODE_FIFO, .xattrs = &x, .nxattrs = 1},
			"25 SCHILY.xattr.user.a=1\n"},
	};
	auto_buf struct buf b = BUF_INIT(TAR_HEADER_MAX);

	memset(name100, 'n', 100);
	memset(name101, 'n', 101);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = header_size(&cases[i].a, cases[i].path, 0, false, &b);

		assert_int_equal(n, cases[i].record ? 3 * TAR_BLOCK : TAR_BLOCK);
		if (cases[i].record && !strstr(b.data + TAR_BLOCK, cases[i].record))
			fail_msg("%zu: '%.60s'", i, b.data + TAR_BLOCK);
		assert_memory_equal(b.data + n - TAR_BLOCK + 257,
			"ustar\0"
			"00",
			8);
	}
}

static uint64_t number(const char *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		v = v * 8 + (uint64_t)(p[i] - '0');
	return v;
}

/* Every header block must add up, and the records must fill exactly what the extended header says.
 */
static void check_headers(const struct buf *b)
{
	size_t at = 0, records;

	for (; at < b->len; at += TAR_BLOCK) {
		const unsigned char *h = (const unsigned char *)b->data + at;
		uint64_t sum = 8 * ' ';

		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += i < 148 || i >= 156 ? h[i] : 0;
		assert_int_equal(number(b->data + at + 148, 8), sum);
		if (h[156] != 'x')
			continue;
		records = number(b->data + at + 124, 12);
		for (const char *r = b->data + at + TAR_BLOCK, *end = r + records; r < end;) {
			size_t len = strtoul(r, NULL, 10);

			assert_true(len > 0 && len <= (size_t)(end - r));
			assert_int_equal(r[len - 1], '\n');
			r += len;
		}
		at += (records + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	}
}

TEST(aligned_data_begin_on_4096_bytes_wherever_the_member_begins)
{
	auto_buf struct buf b = BUF_INIT(TAR_HEADER_MAX);
	struct xattr x = {"user.a", NULL, 0};
	static char value[1200];

	memset(value, 'v', sizeof(value));
	x.value = value;
	for (x.len = 0; x.len < sizeof(value); x.len++)
		for (uint64_t at = 0; at < 2 * TAR_ALIGN; at += TAR_BLOCK) {
			struct attr a = {
				.type = NODE_FIFO, .nxattrs = x.len % 3 ? 1 : 0, .xattrs = &x};
			size_t n = header_size(&a, "file", at, true, &b);

			assert_int_equal((at + n) % TAR_ALIGN, 0);
			check_headers(&b);
		}
}

TEST(sizes_beyond_8_gib_are_said)
{
	auto_buf struct buf b = BUF_INIT(TAR_HEADER_MAX);
	uint64_t size = (uint64_t)8 << 30;
	struct attr a = {.type = NODE_FILE, .size = size, .nchunks = (uint32_t)(size / CHUNK_SIZE)};

	a.chunks = mem_array(a.nchunks + 1, sizeof(*a.chunks));
	assert_int_equal(header_size(&a, "big", 0, false, &b), 3 * TAR_BLOCK);
	assert_non_null(strstr(b.data + TAR_BLOCK, "19 size=8589934592\n"));
	a.size--;
	assert_int_equal(header_size(&a, "big", 0, false, &b), TAR_BLOCK);
	assert_int_equal(number(b.data + 124, 12), size - 1);
	free(a.chunks);
}

TEST(a_name_that_pax_cannot_hold_is_refused)
{
	struct xattr x = {"user.a=b", "1", 1};
	struct attr a = {.type = NODE_FIFO, .nxattrs = 1, .xattrs = &x};
	auto_buf struct buf b = BUF_INIT(TAR_HEADER_MAX);
	struct tree *t = tree_new();
	struct err e = {0};
	struct node *n = tree_put(t, "f", &a, 0, &e);

	assert_non_null(n);
	assert_int_equal(tar_header(&b, n, 0, false, &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
	assert_non_null(strstr(e.text, "user.a=b"));
	tree_free(t);
}

TEST(a_root_like_any_other_has_no_member)
{
	struct tree *t = tree_new();
	struct node *n = tree_root(t);

	assert_false(tar_has_member(n));
	assert_non_null(tree_put(t, "", &(struct attr){.type = NODE_DIR, .mode = 0700}, 0, NULL));
	assert_true(tar_has_member(n));
	tree_free(t);
}

RUN_TESTS(cmocka_unit_test(only_what_ustar_cannot_say_gets_an_extended_header),
	cmocka_unit_test(aligned_data_begin_on_4096_bytes_wherever_the_member_begins),
	cmocka_unit_test(sizes_beyond_8_gib_are_said),
	cmocka_unit_test(a_name_that_pax_cannot_hold_is_refused),
	cmocka_unit_test(a_root_like_any_other_has_no_member))
