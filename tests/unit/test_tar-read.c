#include "images/tar-read.h"

#include "tests/unit/fixture.h"
#include "base/str.h"
#include "tests/unit/tar-make.h"

enum { MAX = 64 << 20 };
static const size_t steps[] = {1, 7, 512, 1000, 0};

struct reading {
	struct mem_source src;
	struct tar_reader *r;
	const struct tar_member *m;
	struct err e;
};

static void reading_init(struct reading *x, const struct buf *b, size_t step)
{
	*x = (struct reading){0};
	mem_source_init(&x->src, b->data, b->len, step);
	x->r = tar_reader_new(&x->src.source, "t");
}

static void reading_fini(struct reading *x)
{
	tar_reader_free(x->r);
	mem_source_fini(&x->src);
}

static int next(struct reading *x)
{
	return tar_reader_next(x->r, &x->m, &x->e);
}

static void must_next(struct reading *x)
{
	if (next(x) != 1)
		fail_msg("%s", x->e.text);
}

/* The first member of the tar, and why there is none. */
static void refused(const struct buf *b, enum err_kind kind, const char *text)
{
	struct reading x;
	int rc;

	reading_init(&x, b, 100);
	while ((rc = next(&x)) > 0)
		;
	assert_int_equal(rc, -1);
	if (x.e.kind != kind || !strstr(x.e.text, text) || !str_starts(x.e.text, "t: tar: byte "))
		fail_msg("%d, '%s', not '%s'", x.e.kind, x.e.text, text);
	reading_fini(&x);
}

static void same_attr(const struct tar_member *m, const struct node *n)
{
	static const char types[] = {[NODE_DIR] = '5',
		[NODE_FILE] = '0',
		[NODE_SYMLINK] = '2',
		[NODE_HARDLINK] = '1',
		[NODE_FIFO] = '6',
		[NODE_CHAR] = '3',
		[NODE_BLOCK] = '4'};
	const struct attr *a = n->link ? &n->link->a : &n->a;
	char path[TREE_PATH_MAX + 1], clean[TREE_PATH_MAX + 1], target[TREE_PATH_MAX + 1];
	struct err e = {0};

	if (tree_clean_path(m->name, clean, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(clean, node_path(n, path));
	assert_int_equal(m->type, types[n->a.type]);
	assert_int_equal(m->mode, a->mode);
	assert_int_equal(m->uid, a->uid);
	assert_int_equal(m->gid, a->gid);
	assert_int_equal(m->mtime, a->mtime);
	assert_int_equal(m->size, n->a.type == NODE_FILE ? a->size : 0);
	if (n->a.type == NODE_SYMLINK)
		assert_string_equal(m->target, a->target);
	else
		assert_string_equal(m->target, n->link ? node_path(n->link, target) : "");
	if (n->a.type == NODE_CHAR || n->a.type == NODE_BLOCK) {
		assert_int_equal(m->major, a->major);
		assert_int_equal(m->minor, a->minor);
	}
	assert_int_equal(m->nxattrs, n->link ? 0 : a->nxattrs);
	for (uint32_t i = 0; i < m->nxattrs; i++) {
		assert_string_equal(m->xattrs[i].name, a->xattrs[i].name);
		assert_int_equal(m->xattrs[i].len, a->xattrs[i].len);
		assert_memory_equal(m->xattrs[i].value, a->xattrs[i].value, a->xattrs[i].len);
	}
}

TEST(what_our_writer_writes_is_read_back)
{
	struct fixture fx, *f = &fx;
	auto_buf struct buf b = BUF_INIT(MAX);
	struct reading x;

	fixture_init(f);
	sample_tree(f);
	for (struct node *n = tree_root(f->t); n; n = tree_next(n)) {
		static char zeros[4 << 20];

		if (!tar_has_member(n))
			continue;
		need(tar_header(&b, n, b.len, n->a.size % 2 == 1, &f->e));
		if (n->a.type == NODE_FILE)
			make_data(&b, zeros, n->a.size);
	}
	make_end(&b);
	for (size_t i = 1; i < sizeof(steps) / sizeof(steps[0]); i++) {
		reading_init(&x, &b, steps[i]);
		for (struct node *n = tree_root(f->t); n; n = tree_next(n))
			if (tar_has_member(n)) {
				must_next(&x);
				same_attr(x.m, n);
			}
		assert_int_equal(next(&x), 0);
		assert_int_equal(tar_reader_offset(x.r), b.len);
		reading_fini(&x);
	}
	fixture_fini(f);
}

/* A tar with all that headers can be. */
static void make_all(struct buf *b)
{
	static char name[3000], long_link[300];
	struct buf r = BUF_INIT(MAX);

	memset(name, 'n', sizeof(name) - 1);
	memset(long_link, 'l', sizeof(long_link) - 1);
	make_extended(b, 'g', "13 comment=a\n", 13);
	make_dir(b, "./");
	make_file(b, "one", "1");
	make_extended(b, 'L', name, sizeof(name));
	make_file(b, "cut", "a file with a long name");
	make_extended(b, 'K', long_link, sizeof(long_link));
	make_link(b, "link", '2', "cut");
	make_record(&r, "path", "p/\xff", 3);
	make_record(&r, "SCHILY.xattr.user.b", "1\0\n2", 4);
	make_record(&r, "SCHILY.xattr.user.a", "", 0);
	make_record(&r, "SCHILY.xattr.user.b", "later", 5);
	make_extended(b, 'x', r.data, r.len);
	make_file(b, "short", "");
	make_file(b, "last", "x");
	make_end(b);
	buf_put(b, "trailing bytes, not even a block", 32);
	buf_fini(&r);
}

TEST(every_byte_is_given_once_and_in_order)
{
	auto_buf struct buf b = BUF_INIT(MAX);

	make_all(&b);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		auto_buf struct buf all = BUF_INIT(MAX);
		struct reading x;
		const void *p;
		size_t n;
		unsigned members = 0;

		reading_init(&x, &b, steps[i]);
		for (; next(&x) > 0; members++) {
			assert_int_equal(x.m->raw_at, all.len);
			assert_true(x.m->raw_at <= x.m->header_at);
			assert_true(x.m->header_at < x.m->data_at);
			assert_int_equal(x.m->header_at % TAR_BLOCK, 0);
			assert_int_equal(x.m->data_at % TAR_BLOCK, 0);
			buf_put(&all, x.m->raw, x.m->data_at - x.m->raw_at);
			assert_int_equal(x.m->data_at, all.len);
			while (tar_reader_take(x.r, 3, &p, &n, &x.e) > 0)
				buf_put(&all, p, n);
			assert_int_equal(x.m->data_at + x.m->size, all.len);
		}
		assert_int_equal(members, 6);
		while (tar_reader_rest(x.r, &p, &n, &x.e) > 0)
			buf_put(&all, p, n);
		assert_string_equal(x.e.text, "");
		assert_int_equal(all.len, b.len);
		assert_memory_equal(all.data, b.data, b.len);
		assert_int_equal(tar_reader_offset(x.r), b.len);
		reading_fini(&x);
	}
}

TEST(long_names_and_records_win_over_the_block)
{
	auto_buf struct buf b = BUF_INIT(MAX);
	struct reading x;

	make_all(&b);
	reading_init(&x, &b, 0);
	must_next(&x);
	assert_string_equal(x.m->name, "./");
	must_next(&x);
	assert_string_equal(x.m->name, "one");
	must_next(&x);
	assert_int_equal(strlen(x.m->name), 2999);
	assert_int_equal(x.m->size, 23);
	must_next(&x);
	assert_string_equal(x.m->name, "link");
	assert_int_equal(strlen(x.m->target), 299);
	must_next(&x);
	assert_string_equal(x.m->name, "p/\xff");
	assert_int_equal(x.m->nxattrs, 2);
	assert_string_equal(x.m->xattrs[0].name, "user.a");
	assert_int_equal(x.m->xattrs[0].len, 0);
	assert_string_equal(x.m->xattrs[1].name, "user.b");
	assert_int_equal(x.m->xattrs[1].len, 5);
	assert_memory_equal(x.m->xattrs[1].value, "later", 5);
	must_next(&x);
	assert_string_equal(x.m->name, "last");
	assert_int_equal(x.m->nxattrs, 0);
	reading_fini(&x);
}

/* A file of one header, its field at `at` set to text. */
static void make_field(struct buf *b, size_t at, const char *text, size_t n)
{
	char *h = make_head(b, &(struct head){.name = "f", .type = '3'});

	memset(h + at, 0, at == 124 || at == 136 ? 12 : 8);
	memcpy(h + at, text, n);
	make_sum(h);
}

TEST(numbers_are_octal_or_base_256)
{
	static const struct {
		size_t at, n;
		const char *text;
		int64_t value;
	} cases[] = {
		{136, 12, "00000000012\0", 10},
		{136, 4, "  12", 10},
		{136, 4, "12 \0", 10},
		{136, 0, "", 0},
		{136, 12, "777777777777", 0777777777777},
		{136, 12, "\x80\0\0\0\0\0\0\0\0\0\1\0", 256},
		{136, 12, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", INT64_MAX},
		{136, 12, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", -1},
		{136, 12, "\xff\xff\xff\xff\x80\0\0\0\0\0\0\0", INT64_MIN},
		{108, 8, "0000012\0", 10},
		{108, 8, "\x80\0\0\0\xff\xff\xff\xfe", 4294967294},
		{116, 8, "\x80\0\0\0\0\0\1\1", 257},
		{329, 8, "0000377\0", 255},
		{337, 8, "\x80\0\0\0\xff\xff\xff\xff", 4294967295},
		{100, 8, "0104755\0", 04755},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(MAX);
		struct reading x;
		int64_t v;

		make_field(&b, cases[i].at, cases[i].text, cases[i].n);
		reading_init(&x, &b, 0);
		must_next(&x);
		v = cases[i].at == 100   ? x.m->mode
		    : cases[i].at == 108 ? x.m->uid
		    : cases[i].at == 116 ? x.m->gid
		    : cases[i].at == 329 ? x.m->major
		    : cases[i].at == 337 ? x.m->minor
					 : x.m->mtime;
		if (v != cases[i].value)
			fail_msg("%zu: %jd", i, (intmax_t)v);
		reading_fini(&x);
	}
}

TEST(numbers_that_are_none_are_refused)
{
	static const struct {
		size_t at, n;
		const char *text, *error;
	} cases[] = {
		{100, 3, "1x2", "mode is no number"},
		{136, 1, "9", "mtime is no number"},
		{136, 1, "-", "mtime is no number"},
		{136, 12, "\x80\0\0\0\x80\0\0\0\0\0\0\0", "mtime is no number"},
		{136, 12, "\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff", "mtime is no number"},
		{136, 12, "\x80\1\0\0\0\0\0\0\0\0\0\0", "mtime is no number"},
		{108, 8, "\x80\0\0\0\xff\xff\xff\xff", "uid that is not within 32 bits"},
		{116, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", "gid that is not within 32 bits"},
		{124, 12, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "negative size"},
		{329, 8, "\x80\0\0\1\0\0\0\0", "device number"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(MAX);

		make_field(&b, cases[i].at, cases[i].text, cases[i].n);
		refused(&b, ERR_CORRUPT, cases[i].error);
	}
}

TEST(records_say_what_they_say)
{
	static const struct {
		const char *key, *value;
		uint64_t size;
		uint32_t uid, gid;
		int64_t mtime;
	} cases[] = {
		{"uid", "4294967294", 0, 4294967294u, 2, 3},
		{"gid", "77", 0, 1, 77, 3},
		{"mtime", "12", 0, 1, 2, 12},
		{"mtime", "12.999999999", 0, 1, 2, 12},
		{"mtime", "-12", 0, 1, 2, -12},
		{"mtime", "-12.0", 0, 1, 2, -12},
		{"mtime", "-12.5", 0, 1, 2, -13},
		{"mtime", "0.5", 0, 1, 2, 0},
		{"mtime", "", 0, 1, 2, 3},
		{"uid", "", 0, 1, 2, 3},
		{"atime", "nonsense", 0, 1, 2, 3},
		{"LIBARCHIVE.xattr.user.a", "x", 0, 1, 2, 3},
		{"hdrcharset", "BINARY", 0, 1, 2, 3},
		{"SCHILY.xattr.", "no name", 0, 1, 2, 3},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(MAX);
		struct reading x;

		make_x(&b, cases[i].key, cases[i].value);
		make_head(&b, &(struct head){.name = "f", .uid = 1, .gid = 2, .mtime = 3});
		reading_init(&x, &b, 0);
		must_next(&x);
		if (x.m->size != cases[i].size || x.m->uid != cases[i].uid ||
			x.m->gid != cases[i].gid || x.m->mtime != cases[i].mtime || x.m->nxattrs)
			fail_msg("%zu: %s=%s", i, cases[i].key, cases[i].value);
		reading_fini(&x);
	}
}

TEST(records_that_are_none_are_refused)
{
	static const struct {
		const char *text;
		size_t n;
		const char *error;
	} cases[] = {
		{"x", 1, "record at 0: its length"},
		{"9999999999999999999999 a=b\n", 27, "record at 0: its length"},
		{"30 path=a\n", 10, "record at 0: its length"},
		{"9 path=a\n1 \n", 12, "record at 9: its length"},
		{"8 path=a\n", 9, "record at 0: its length"},
		{"3 \n", 3, "its key"},
		{"5 =a\n", 5, "its key"},
		{"6 pat\n", 6, "its key"},
		{"10 p\0th=a\n", 10, "its key"},
		{"10 path=\0\n", 10, "a NUL in its value"},
		{"10 uid=1x\n", 10, "'1x' is no number"},
		{"10 uid=-1\n", 10, "'-1' is no number"},
		{"18 uid=4294967295\n", 18, "not within 32 bits"},
		{"29 size=99999999999999999999\n", 29, "is no number"},
		{"11 size=-1\n", 11, "is no number"},
		{"11 mtime=-\n", 11, "is no time"},
		{"13 mtime=1.x\n", 13, "is no time"},
		{"16 mtime=1.2.3.4\n", 16, "its length"},
		{"29 mtime=9223372036854775807\n", 29, "is no time"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(MAX);

		make_extended(&b, 'x', cases[i].text, cases[i].n);
		make_file(&b, "f", "");
		refused(&b, ERR_CORRUPT, cases[i].error);
	}
}

TEST(sparse_files_are_refused_as_such)
{
	auto_buf struct buf b = BUF_INIT(MAX), c = BUF_INIT(MAX), d = BUF_INIT(MAX);

	make_x(&b, "GNU.sparse.major", "1");
	make_file(&b, "f", "");
	refused(&b, ERR_UNSUPPORTED, "sparse file (record GNU.sparse.major)");
	make_head(&c, &(struct head){.name = "f", .type = 'S'});
	refused(&c, ERR_UNSUPPORTED, "'f' is a sparse file");
	make_extended(&d, 'g', "22 GNU.sparse.size=10\n", 22);
	make_file(&d, "f", "");
	refused(&d, ERR_UNSUPPORTED, "sparse");
}

TEST(global_headers_are_checked_and_have_no_effect)
{
	auto_buf struct buf b = BUF_INIT(MAX), c = BUF_INIT(MAX);
	struct reading x;

	make_x(&b, "uid", "7");
	make_extended(&b, 'g', "9 path=b\n12 size=512\n11 mtime=5\n", 32);
	make_file(&b, "a", "");
	make_file(&b, "b", "");
	reading_init(&x, &b, 0);
	must_next(&x);
	assert_string_equal(x.m->name, "a");
	assert_int_equal(x.m->uid, 7);
	assert_int_equal(x.m->size, 0);
	must_next(&x);
	assert_int_equal(x.m->uid, 0);
	assert_int_equal(x.m->mtime, 0);
	reading_fini(&x);
	make_extended(&c, 'g', "nonsense", 8);
	make_file(&c, "a", "");
	refused(&c, ERR_CORRUPT, "record at 0: its length");
}

TEST(names_of_each_flavour)
{
	auto_buf struct buf b = BUF_INIT(MAX);
	struct reading x;
	char *h;

	h = make_head(&b, &(struct head){.name = "name", .type = '5'});
	memcpy(h + 345, "pre/fix", 7);
	make_sum(h);
	h = make_head(&b, &(struct head){.name = "gnu"});
	memcpy(h + 257, "ustar  ", 8);
	memcpy(h + 345, "0000000", 7); /* atime there */
	make_sum(h);
	h = make_head(&b, &(struct head){.name = "star"});
	memset(h + 345, 'p', 155);
	memcpy(h + 508, "tar", 4);
	make_sum(h);
	h = make_head(&b, &(struct head){.name = "v7/", .v7 = true});
	h[156] = '\0';
	make_sum(h);
	h = make_head(&b, &(struct head){.name = "old", .v7 = true});
	h[156] = '\0';
	make_sum(h);
	make_head(&b, &(struct head){.name = "seven", .type = '7'});
	h = make_head(&b, &(struct head){.name = ""});
	memset(h, 'n', 100);
	memset(h + 345, 'p', 155);
	make_sum(h);
	reading_init(&x, &b, 0);
	must_next(&x);
	assert_string_equal(x.m->name, "pre/fix/name");
	must_next(&x);
	assert_string_equal(x.m->name, "gnu");
	must_next(&x);
	assert_int_equal(strlen(x.m->name), 131 + 1 + 4);
	must_next(&x);
	assert_string_equal(x.m->name, "v7/");
	assert_int_equal(x.m->type, '5');
	must_next(&x);
	assert_int_equal(x.m->type, '0');
	must_next(&x);
	assert_int_equal(x.m->type, '0');
	must_next(&x);
	assert_int_equal(strlen(x.m->name), 256);
	assert_int_equal(next(&x), 0);
	reading_fini(&x);
}

TEST(what_is_no_file_has_no_data_whatever_its_size_says)
{
	static const char types[] = "123456";

	for (const char *t = types; *t; t++) {
		auto_buf struct buf b = BUF_INIT(MAX);
		struct reading x;

		make_head(&b, &(struct head){.name = "a", .type = *t, .size = 5000, .link = "x"});
		make_file(&b, "b", "");
		reading_init(&x, &b, 0);
		must_next(&x);
		assert_int_equal(x.m->size, 0);
		must_next(&x);
		assert_string_equal(x.m->name, "b");
		reading_fini(&x);
	}
}

TEST(the_end_comes_with_zero_blocks_or_with_the_end_of_the_stream)
{
	static const struct {
		size_t cut; /* bytes that are left of: header, 1 byte and padding, 2 zero blocks */
		int members;
		const char *error;
	} cases[] = {
		{0, 0, NULL},
		{511, 0, "the tar ends in the middle of a header"},
		{512, 1, "ends in the middle of 'f'"},
		{513, 1, NULL},
		{1023, 1, NULL},
		{1024, 1, NULL},
		{1025, 1, "the tar ends in the middle of a header"},
		{1536, 1, NULL},
		{1537, 1, "the tar ends in the middle of a header"},
		{2048, 1, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(MAX);
		struct reading x;
		int members = 0, rc;

		make_file(&b, "f", "1");
		make_end(&b);
		b.len = cases[i].cut;
		reading_init(&x, &b, 99);
		while ((rc = next(&x)) > 0)
			members++;
		assert_int_equal(members, cases[i].members);
		if (rc != (cases[i].error ? -1 : 0) ||
			(cases[i].error && !strstr(x.e.text, cases[i].error)))
			fail_msg("%zu: %d, %s", i, rc, x.e.text);
		reading_fini(&x);
	}
}

TEST(a_member_behind_one_zero_block_is_refused)
{
	auto_buf struct buf b = BUF_INIT(MAX);

	make_end(&b);
	b.len = TAR_BLOCK;
	make_file(&b, "f", "");
	refused(&b, ERR_CORRUPT, "one zero block, and then more members");
}

TEST(extended_headers_need_a_member_and_are_bounded)
{
	auto_buf struct buf b = BUF_INIT(MAX), c = BUF_INIT(MAX), d = BUF_INIT(MAX),
			    g = BUF_INIT(MAX);
	static char big[TAR_EXTENDED_MAX + 1];

	memset(big, 'a', sizeof(big));
	make_x(&b, "path", "f");
	make_end(&b);
	refused(&b, ERR_CORRUPT, "an extended header without a member");
	make_head(&c, &(struct head){.name = "x", .type = 'x', .size = sizeof(big)});
	refused(&c, ERR_CORRUPT, "extended header of 1048577 bytes, the limit is 1048576");
	make_head(&d, &(struct head){.name = "x", .type = 'L', .size = 077777777777});
	refused(&d, ERR_CORRUPT, "the limit is 1048576");
	for (int i = 0; i < 5; i++)
		make_extended(&g, 'L', big, sizeof(big) - 1);
	make_file(&g, "f", "");
	refused(&g, ERR_CORRUPT, "headers of a member: longer than the limit of 4194304 bytes");
}

TEST(a_thousand_xattrs_are_enough)
{
	auto_buf struct buf b = BUF_INIT(MAX), r = BUF_INIT(MAX);

	for (unsigned i = 0; i <= TAR_RECORDS_XATTRS_MAX; i++)
		make_record(&r, "SCHILY.xattr.user.a", "v", 1);
	make_extended(&b, 'x', r.data, r.len);
	make_file(&b, "f", "");
	refused(&b, ERR_CORRUPT, "more than 1024 extended attributes");
}

TEST(checksums_are_checked_and_may_be_signed)
{
	auto_buf struct buf b = BUF_INIT(MAX), c = BUF_INIT(MAX);
	struct reading x;
	char *h;
	int sum = 0;

	h = make_head(&b, &(struct head){.name = "f\xff\xff"});
	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += (signed char)h[i];
	snprintf(h + 148, 8, "%06o", (unsigned)sum);
	reading_init(&x, &b, 0);
	must_next(&x);
	reading_fini(&x);
	make_file(&c, "ok", "1234");
	h = make_head(&c, &(struct head){.name = "f"});
	h[0] = 'g';
	refused(&c, ERR_CORRUPT, "byte 1024: not a tar header: its checksum is wrong");
}

RUN_TESTS(cmocka_unit_test(what_our_writer_writes_is_read_back),
	cmocka_unit_test(every_byte_is_given_once_and_in_order),
	cmocka_unit_test(long_names_and_records_win_over_the_block),
	cmocka_unit_test(numbers_are_octal_or_base_256),
	cmocka_unit_test(numbers_that_are_none_are_refused),
	cmocka_unit_test(records_say_what_they_say),
	cmocka_unit_test(records_that_are_none_are_refused),
	cmocka_unit_test(sparse_files_are_refused_as_such),
	cmocka_unit_test(global_headers_are_checked_and_have_no_effect),
	cmocka_unit_test(names_of_each_flavour),
	cmocka_unit_test(what_is_no_file_has_no_data_whatever_its_size_says),
	cmocka_unit_test(the_end_comes_with_zero_blocks_or_with_the_end_of_the_stream),
	cmocka_unit_test(a_member_behind_one_zero_block_is_refused),
	cmocka_unit_test(extended_headers_need_a_member_and_are_bounded),
	cmocka_unit_test(a_thousand_xattrs_are_enough),
	cmocka_unit_test(checksums_are_checked_and_may_be_signed))
