#include "tests/unit/test.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/archive.h"

/* ---- a pool in a scratch folder, and what it holds ---- */

struct fixture {
	char dir[32];
	int fd;
	struct pool *pool;
	struct entries out;
	struct err e;
};

static void setup(struct fixture *f)
{
	*f = (struct fixture){.dir = "/tmp/svrun-test-XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	f->fd = sys_open(f->dir, O_RDONLY | O_DIRECTORY, 0);
	assert_true(f->fd >= 0);
	f->pool = pool_open(f->fd, true, &f->e);
	if (!f->pool)
		fail_msg("%s", f->e.text);
}

static void teardown(struct fixture *f)
{
	entries_fini(&f->out);
	pool_close(f->pool);
	close(f->fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
}

static const struct entry *find(const struct fixture *f, const char *path)
{
	for (size_t i = 0; i < f->out.n; i++)
		if (str_eq(f->out.v[i].path, path))
			return &f->out.v[i];
	return NULL;
}

/* All the bytes of a file, from the pool; to be freed. */
static unsigned char *content(const struct fixture *f, const struct attr *a)
{
	unsigned char *data = mem_alloc((size_t)a->size + 1);
	size_t at = 0;

	for (uint32_t i = 0; i < a->nchunks; i++) {
		assert_int_equal(pool_read(f->pool, &a->chunks[i], data + at, NULL), 0);
		at += a->chunks[i].length;
	}
	assert_int_equal(at, a->size);
	return data;
}

/* ---- archives by hand: no library writes the hostile ones ---- */

static void put_header(
	struct buf *b, const char *name, char type, const char *link, uint64_t size, unsigned mode)
{
	static const char magic[8] = {'u', 's', 't', 'a', 'r', 0, '0', '0'};
	char h[512] = {0};
	unsigned sum = 8 * ' ';

	snprintf(h, 100, "%s", name);
	snprintf(h + 100, 8, "%07o", mode);
	snprintf(h + 108, 8, "%07o", 7u);
	snprintf(h + 116, 8, "%07o", 8u);
	snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
	snprintf(h + 136, 12, "%011o", 1234u);
	h[156] = type;
	snprintf(h + 157, 100, "%s", link);
	memcpy(h + 257, magic, sizeof(magic));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += i >= 148 && i < 156 ? 0 : (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	buf_put(b, h, sizeof(h));
}

static void put_data(struct buf *b, const void *p, size_t n)
{
	static const char zeros[512];

	buf_put(b, p, n);
	buf_put(b, zeros, (512 - n % 512) % 512);
}

static void put_file(struct buf *b, const char *name, const char *text)
{
	put_header(b, name, '0', "", strlen(text), 0644);
	put_data(b, text, strlen(text));
}

static void put_end(struct buf *b)
{
	static const char zeros[1024];

	buf_put(b, zeros, sizeof(zeros));
}

static const struct archive_rules plain = {.name = "x.tar",
	.max_bytes = 64 << 20,
	.max_file = 32 << 20,
	.max_entries = 1000,
	.mtime = -1};

static int unpack(struct fixture *f, const struct buf *b, const struct archive_rules *r)
{
	auto_archive struct archive *a =
		archive_open_mem(b->data, b->len, ARCHIVE_FILTER_NONE, r->name, &f->e);

	return a ? archive_unpack(a, r, f->pool, &f->out, &f->e) : -1;
}

static void refused(const struct buf *b, const struct archive_rules *r, const char *words)
{
	struct fixture f;

	setup(&f);
	assert_int_equal(unpack(&f, b, r), -1);
	assert_int_equal(f.e.kind, ERR_CORRUPT);
	if (!strstr(f.e.text, words) || !str_starts(f.e.text, r->name))
		fail_msg("'%s' does not start with '%s' or lacks '%s'", f.e.text, r->name, words);
	teardown(&f);
}

/* ---- tests ---- */

TEST(members_become_entries)
{
	struct fixture f;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	const struct entry *en;

	put_header(&b, "./", '5', "", 0, 0755);
	put_header(&b, "./d/", '5', "", 0, 02750);
	put_file(&b, "./d/f", "hello");
	put_header(&b, "./d/empty", '0', "", 0, 04755);
	put_header(&b, "./d/hard", '1', "./d/f", 0, 0644);
	put_header(&b, "./d/soft", '2', "/etc/../x", 0, 0777);
	put_header(&b, "./d/fifo", '6', "", 0, 0600);
	put_end(&b);
	setup(&f);
	if (unpack(&f, &b, &plain) < 0)
		fail_msg("%s", f.e.text);
	assert_int_equal(f.out.n, 7);
	en = find(&f, "");
	assert_true(en && en->a.type == NODE_DIR);
	en = find(&f, "d");
	assert_true(en && en->a.type == NODE_DIR && en->a.mode == 02750);
	en = find(&f, "d/f");
	assert_true(en && en->a.type == NODE_FILE && en->a.size == 5 && en->a.nchunks == 1);
	assert_int_equal(en->a.mtime, 1234);
	assert_true(en->a.uid == 0 && en->a.gid == 0);

	auto_free unsigned char *data = content(&f, &en->a);

	assert_string_equal(data, "hello");
	en = find(&f, "d/empty");
	assert_true(en && en->a.size == 0 && en->a.nchunks == 0 && en->a.mode == 04755);
	en = find(&f, "d/hard");
	assert_true(en && en->a.type == NODE_HARDLINK);
	assert_string_equal(en->a.target, "d/f");
	en = find(&f, "d/soft");
	assert_true(en && en->a.type == NODE_SYMLINK);
	assert_string_equal(en->a.target, "/etc/../x");
	en = find(&f, "d/fifo");
	assert_true(en && en->a.type == NODE_FIFO);
	teardown(&f);
}

TEST(owner_mode_and_time_follow_the_rules)
{
	struct fixture f;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct archive_rules r = plain;

	put_header(&b, "package/", '5', "", 0, 0700);
	put_header(&b, "package/run", '0', "", 0, 0711);
	put_header(&b, "package/read", '0', "", 0, 0666);
	put_header(&b, "stray", '0', "", 3, 0666);
	put_data(&b, "abc", 3);
	put_end(&b);
	r.strip = 1;
	r.prefix = "opt/app";
	r.keep_owner = r.plain_modes = true;
	r.mtime = 99;
	setup(&f);
	if (unpack(&f, &b, &r) < 0)
		fail_msg("%s", f.e.text);
	assert_int_equal(f.out.n, 2); /* "package/" itself and the stray file are stripped away */
	assert_int_equal(find(&f, "opt/app/run")->a.mode, 0755);
	assert_int_equal(find(&f, "opt/app/read")->a.mode, 0644);
	assert_int_equal(find(&f, "opt/app/read")->a.mtime, 99);
	assert_int_equal(find(&f, "opt/app/read")->a.uid, 7);
	assert_int_equal(find(&f, "opt/app/read")->a.gid, 8);
	teardown(&f);
}

TEST(a_big_file_is_cut_into_chunks)
{
	enum { SIZE = 2 * CHUNK_SIZE + 12345 };
	struct fixture f;
	auto_buf struct buf b = BUF_INIT(8 << 20);
	auto_free unsigned char *data = mem_alloc(SIZE);
	const struct entry *en;

	for (size_t i = 0; i < SIZE; i++)
		data[i] = (unsigned char)(i * 2654435761u >> 13);
	put_header(&b, "big", '0', "", SIZE, 0644);
	put_data(&b, data, SIZE);
	put_end(&b);
	setup(&f);
	if (unpack(&f, &b, &plain) < 0)
		fail_msg("%s", f.e.text);
	en = find(&f, "big");
	assert_int_equal(en->a.nchunks, 3);
	assert_int_equal(en->a.chunks[0].length, CHUNK_SIZE);
	assert_int_equal(en->a.chunks[2].length, 12345);

	auto_free unsigned char *found = content(&f, &en->a);

	assert_memory_equal(found, data, SIZE);
	teardown(&f);
}

/* A GNU sparse file (old format): 4 bytes at 1 MiB - 2, size 3 MiB. */
TEST(holes_are_zeros)
{
	struct fixture f;
	auto_buf struct buf b = BUF_INIT(8 << 20);
	unsigned sum = 0;

	put_header(&b, "sparse", 'S', "", 512, 0644);
	memcpy(b.data + 257, "ustar  ", 8);
	snprintf(b.data + 386, 12, "%011o", (1u << 20) - 2);
	snprintf(b.data + 398, 12, "%011o", 512u);
	snprintf(b.data + 483, 12, "%011o", 3u << 20);
	memset(b.data + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += (unsigned char)b.data[i];
	snprintf(b.data + 148, 8, "%06o", sum);
	memset(b.data + 512, 0, b.len - 512);

	char data[512];

	memset(data, 'x', sizeof(data));
	put_data(&b, data, sizeof(data));
	put_end(&b);
	setup(&f);
	if (unpack(&f, &b, &plain) < 0)
		fail_msg("%s", f.e.text);

	const struct attr *a = &find(&f, "sparse")->a;

	assert_int_equal(a->size, 3 << 20);
	assert_int_equal(a->nchunks, 3);

	auto_free unsigned char *found = content(&f, a);

	for (size_t i = 0; i < 3u << 20; i++)
		if (found[i] != (i >= (1u << 20) - 2 && i < (1u << 20) + 510 ? 'x' : 0))
			fail_msg("byte %zu is %d", i, found[i]);
	teardown(&f);
}

static void put_pax(struct buf *b, const char *key, const char *value, size_t len)
{
	auto_free char *rec = mem_alloc(len + 64);
	size_t body = strlen(key) + len + 3, total = body + 1;
	char digits[16];

	while (total != body + (size_t)snprintf(digits, sizeof(digits), "%zu", total))
		total++;
	snprintf(rec, len + 64, "%zu %s=", total, key);
	memcpy(rec + strlen(rec), value, len);
	rec[total - 1] = '\n';
	put_header(b, "pax", 'x', "", total, 0644);
	put_data(b, rec, total);
}

TEST(names_are_bytes)
{
	static const char *const names[] = {
		"caf\xc3\xa9",  /* composed */
		"cafe\xcc\x81", /* decomposed: another file */
		"b\xff\xfe",    /* no UTF-8 at all */
		"new\nline",
	};
	struct fixture f;
	auto_buf struct buf b = BUF_INIT(1 << 20);

	for (size_t i = 0; i < 4; i++)
		put_file(&b, names[i], "x");
	for (size_t i = 0; i < 4; i++) {
		auto_free char *long_name = mem_printf("pax/%s", names[i]);

		put_pax(&b, "path", long_name, strlen(long_name));
		put_file(&b, "short", "x");
	}
	put_end(&b);
	setup(&f);
	if (unpack(&f, &b, &plain) < 0)
		fail_msg("%s", f.e.text);
	assert_int_equal(f.out.n, 8);
	for (size_t i = 0; i < 4; i++) {
		auto_free char *long_name = mem_printf("pax/%s", names[i]);

		assert_non_null(find(&f, names[i]));
		assert_non_null(find(&f, long_name));
	}
	teardown(&f);
}

TEST(only_capabilities_of_the_extended_attributes_are_kept)
{
	static const char cap[20] = {1, 0, 0, 2, 0, 4};
	struct fixture f;
	auto_buf struct buf b = BUF_INIT(1 << 20);

	put_pax(&b, "SCHILY.xattr.security.capability", cap, sizeof(cap));
	put_file(&b, "ping", "x");
	put_pax(&b, "SCHILY.xattr.user.comment", "abc", 3);
	put_file(&b, "note", "x");
	put_end(&b);
	setup(&f);
	if (unpack(&f, &b, &plain) < 0)
		fail_msg("%s", f.e.text);

	const struct attr *a = &find(&f, "ping")->a;

	assert_int_equal(a->nxattrs, 1);
	assert_string_equal(a->xattrs[0].name, "security.capability");
	assert_int_equal(a->xattrs[0].len, sizeof(cap));
	assert_memory_equal(a->xattrs[0].value, cap, sizeof(cap));
	assert_int_equal(find(&f, "note")->a.nxattrs, 0);
	teardown(&f);
}

TEST(hostile_members_are_refused_by_name)
{
	static const struct {
		const char *name, *link;
		char type;
		uint64_t size;
		const char *words;
	} cases[] = {
		{"../x", "", '0', 0, "'../x'"},
		{"a/../../x", "", '0', 0, "'a/../../x'"},
		{"/etc/passwd", "", '0', 0, "'/etc/passwd' has an absolute name"},
		{"h", "/etc/passwd", '1', 0, "'h' is a hard link to an absolute name"},
		{"h", "../../etc/passwd", '1', 0, "'../../etc/passwd'"},
		{"h", "", '1', 0, "'h' is of an unknown type"},
		{"s", "", '2', 0, "'s' is a link to nothing"},
		{"null", "", '3', 0, "'null' is a device node"},
		{"sda", "", '4', 0, "'sda' is a device node"},
		{"./", "x", '2', 0, "'./' is the root, but no folder"},
		{"a/.wh.b", "", '0', 0, "'a/.wh.b'"},
		{"huge", "", '0', 5ull << 30, "'huge' is too big, more than the limit of 33554432"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(1 << 20);

		put_file(&b, "innocent", "x");
		put_header(&b, cases[i].name, cases[i].type, cases[i].link, cases[i].size, 0644);
		put_end(&b);
		refused(&b, &plain, cases[i].words);
	}
}

TEST(one_name_twice_is_refused)
{
	auto_buf struct buf b = BUF_INIT(1 << 20), dirs = BUF_INIT(1 << 20);
	struct fixture f;

	put_file(&b, "a", "x");
	put_file(&b, "b", "x");
	put_file(&b, "./a", "y");
	put_end(&b);
	refused(&b, &plain, "'a' is there twice");
	put_header(&dirs, "d", '5', "", 0, 0755);
	put_header(&dirs, "d/", '5', "", 0, 0700);
	put_end(&dirs);
	setup(&f);
	assert_int_equal(unpack(&f, &dirs, &plain), 0);
	teardown(&f);
}

TEST(limits_are_named)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct archive_rules r = plain;

	put_file(&b, "one", "0123456789");
	put_file(&b, "two", "0123456789");
	put_header(&b, "link", '2', "x", 0, 0777);
	put_end(&b);
	r.max_file = 9;
	refused(&b, &r, "'one' is too big, more than the limit of 9");
	r = plain;
	r.max_bytes = 19;
	refused(&b, &r, "'two' makes all files too big, more than the limit of 19");
	r = plain;
	r.max_entries = 2;
	refused(&b, &r, "'link' is one too many, more than the limit of 2");
	r = plain;
	r.no_links = true;
	refused(&b, &r, "'link' is neither a file nor a folder");
}

TEST(a_path_100000_deep_is_refused)
{
	enum { DEPTH = 100000 };
	auto_buf struct buf b = BUF_INIT(1 << 20);
	auto_free char *path = mem_alloc(2 * DEPTH + 2);

	for (size_t i = 0; i < 2 * (size_t)DEPTH; i++)
		path[i] = i % 2 ? '/' : 'a';
	path[(size_t)2 * DEPTH] = 'f';
	put_header(&b, "././@LongLink", 'L', "", 2 * DEPTH + 2, 0644);
	put_data(&b, path, 2 * DEPTH + 2);
	put_file(&b, "short", "x");
	put_end(&b);
	refused(&b, &plain, "'a/a/a/");
}

TEST(a_truncated_archive_is_named)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);

	put_header(&b, "cut", '0', "", 100000, 0644);
	put_data(&b, "abc", 3);
	refused(&b, &plain, "runcated");
}

/* 64 MiB of zeros in some ten kB: the limit stops it on the way. */
TEST(a_bomb_is_stopped_at_the_limit)
{
	enum { OUT = 1 << 20 };
	static char zeros[1 << 20];
	auto_free char *mem = mem_alloc(OUT);
	struct archive *w = archive_write_new();
	struct archive_entry *en = archive_entry_new();
	struct archive_rules r = plain;
	struct fixture f;
	size_t used = 0;

	archive_write_add_filter_xz(w);
	archive_write_set_format_ustar(w);
	assert_int_equal(archive_write_open_memory(w, mem, OUT, &used), ARCHIVE_OK);
	archive_entry_set_pathname(en, "zeros");
	archive_entry_set_filetype(en, AE_IFREG);
	archive_entry_set_size(en, 16 * (int64_t)sizeof(zeros));
	for (int k = 0; k < 4; k++) {
		char name[] = {'z', (char)('0' + k), '\0'};

		archive_entry_set_pathname(en, name);
		assert_int_equal(archive_write_header(w, en), ARCHIVE_OK);
		for (int i = 0; i < 16; i++)
			assert_true(archive_write_data(w, zeros, sizeof(zeros)) > 0);
	}
	archive_entry_free(en);
	archive_write_free(w);
	assert_true(used < 100000);

	r.max_bytes = 40 << 20;
	setup(&f);

	auto_archive struct archive *a =
		archive_open_mem(mem, used, ARCHIVE_FILTER_XZ, "bomb.tar.xz", &f.e);

	assert_non_null(a);
	assert_int_equal(archive_unpack(a, &r, f.pool, &f.out, &f.e), -1);
	assert_non_null(strstr(f.e.text, "'z2' makes all files too big"));
	archive_close_ref(&a);

	auto_archive struct archive *cut =
		archive_open_mem(mem, used / 2, ARCHIVE_FILTER_XZ, "cut.tar.xz", &f.e);

	assert_non_null(cut);
	r.name = "cut.tar.xz";
	assert_int_equal(archive_unpack(cut, &r, f.pool, &f.out, &f.e), -1);
	assert_int_equal(f.e.kind, ERR_CORRUPT);
	assert_true(str_starts(f.e.text, "cut.tar.xz: "));
	teardown(&f);
}

TEST(a_filter_inside_a_filter_is_no_tar)
{
	static const char text[] = "not an archive at all, whatever the compression says";
	struct fixture f;

	setup(&f);

	auto_archive struct archive *a =
		archive_open_mem(text, sizeof(text), ARCHIVE_FILTER_GZIP, "x.tar.gz", &f.e);

	if (a)
		assert_int_equal(archive_unpack(a, &plain, f.pool, &f.out, &f.e), -1);
	assert_int_equal(f.e.kind, ERR_CORRUPT);
	assert_true(str_starts(f.e.text, "x.tar.gz: "));
	teardown(&f);
}

TEST(a_range_of_a_file_is_read_and_no_more)
{
	struct fixture f;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	int fd = memfd_create("range", MFD_CLOEXEC);

	setup(&f);
	put_file(&b, "in", "range");
	put_end(&b);
	assert_int_equal(sys_pwrite_all(fd, "garbage", 7, 0), 0);
	assert_int_equal(sys_pwrite_all(fd, b.data, b.len, 7), 0);

	auto_archive struct archive *a =
		archive_open_fd(fd, 7, b.len, ARCHIVE_FILTER_NONE, "x.tar", &f.e);

	assert_non_null(a);
	assert_int_equal(archive_unpack(a, &plain, f.pool, &f.out, &f.e), 0);
	assert_int_equal(f.out.n, 1);
	archive_close_ref(&a);
	a = archive_open_fd(fd, 7, 514, ARCHIVE_FILTER_NONE, "x.tar", &f.e);
	assert_non_null(a);
	assert_int_equal(archive_unpack(a, &plain, f.pool, &f.out, &f.e), -1);
	close(fd);
	teardown(&f);
}

TEST(content_is_chunked_and_hashed)
{
	enum { SIZE = CHUNK_SIZE + 5 };
	struct fixture f;
	auto_free unsigned char *data = mem_alloc(SIZE);
	int fd = memfd_create("content", MFD_CLOEXEC);
	struct attr a = {0}, b = {0};
	struct digest d, want;

	for (size_t i = 0; i < SIZE; i++)
		data[i] = (unsigned char)(i / 7);
	want = digest_of(data, SIZE);
	assert_int_equal(sys_pwrite_all(fd, data, SIZE, 0), 0);
	setup(&f);
	assert_int_equal(content_from_fd(fd, "m", f.pool, &f.out.arena, &a, &d, &f.e), 0);
	assert_true(digest_eq(&d, &want));
	assert_int_equal(content_from_mem(data, SIZE, f.pool, &f.out.arena, &b, &f.e), 0);
	assert_true(a.size == SIZE && a.nchunks == 2 && b.size == SIZE && b.nchunks == 2);
	assert_memory_equal(&a.chunks[1].digest, &b.chunks[1].digest, sizeof(d));

	auto_free unsigned char *found = content(&f, &a);

	assert_memory_equal(found, data, SIZE);
	assert_int_equal(content_from_mem("", 0, f.pool, &f.out.arena, &b, &f.e), 0);
	assert_true(b.size == 0 && b.nchunks == 0);
	close(fd);
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(members_become_entries),
	cmocka_unit_test(owner_mode_and_time_follow_the_rules),
	cmocka_unit_test(a_big_file_is_cut_into_chunks), cmocka_unit_test(holes_are_zeros),
	cmocka_unit_test(names_are_bytes),
	cmocka_unit_test(only_capabilities_of_the_extended_attributes_are_kept),
	cmocka_unit_test(hostile_members_are_refused_by_name),
	cmocka_unit_test(one_name_twice_is_refused), cmocka_unit_test(limits_are_named),
	cmocka_unit_test(a_path_100000_deep_is_refused),
	cmocka_unit_test(a_truncated_archive_is_named),
	cmocka_unit_test(a_bomb_is_stopped_at_the_limit),
	cmocka_unit_test(a_filter_inside_a_filter_is_no_tar),
	cmocka_unit_test(a_range_of_a_file_is_read_and_no_more),
	cmocka_unit_test(content_is_chunked_and_hashed))
