#include "tests/unit/zip-make.h"

#include "base/str.h"
#include "builder/zip.h"

static const struct zip_limits limits = {.members = 100, .file = 1 << 20, .all = 2 << 20};

static int open_all(int fd, struct buf *out, struct err *e)
{
	auto_zip struct zip z = {.fd = -1};
	int rc = zip_open(&z, fd, "test.zip", &limits, e);

	for (size_t i = 0; rc == 0 && i < z.n; i++)
		rc = zip_read_all(&z, &z.v[i], out, e);
	close(fd);
	return rc;
}

static void is_refused(struct hand_zip *z, const char *code, const char *why)
{
	auto_buf struct buf out = BUF_INIT(4 << 20);
	struct err e = {0};

	assert_int_equal(open_all(zip_finish(z), &out, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	if (!str_starts(e.text, code) || !strstr(e.text, why))
		fail_msg("expected %s: %s, got: %s", code, why, e.text);
}

TEST(stored_and_deflated_members_are_read)
{
	struct hand_zip z;
	auto_buf struct buf out = BUF_INIT(4 << 20);
	auto_free char *big = mem_alloc(300000);
	struct err e = {0};

	memset(big, 'x', 300000);
	zip_begin(&z);
	zip_add(&z, "a", "stored ", 7);
	z.method = 8;
	zip_add(&z, "b/c", big, 300000);
	z.method = 8;
	zip_add(&z, "empty", "", 0);
	if (open_all(zip_finish(&z), &out, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(out.len, 300007);
	assert_memory_equal(out.data, "stored xxx", 10);
}

TEST(an_archive_without_members_is_one)
{
	struct hand_zip z;
	auto_buf struct buf out = BUF_INIT(100);

	zip_begin(&z);
	assert_int_equal(open_all(zip_finish(&z), &out, NULL), 0);
}

TEST(headers_that_disagree_are_refused)
{
	struct hand_zip z;

	zip_begin(&z);
	z.local_name = "b";
	zip_add(&z, "a", "1", 1);
	is_refused(&z, "SV170", "something else in its own header");
	zip_begin(&z);
	z.method = 8;
	z.local_method = 9;
	zip_add(&z, "a", "1", 1);
	is_refused(&z, "SV170", "something else in its own header");
	zip_begin(&z);
	z.wrong_crc = 1;
	zip_add(&z, "a", "1", 1);
	is_refused(&z, "SV170", "is not what its size and CRC say");
	zip_begin(&z);
	z.claimed = 5;
	zip_add(&z, "a", "1", 1);
	is_refused(&z, "SV170", "is stored with two sizes");
	zip_begin(&z);
	z.method = 8;
	z.claimed = 2;
	zip_add(&z, "a", "123", 3);
	is_refused(&z, "SV170", "more data than its size says");
	zip_begin(&z);
	z.method = 8;
	z.claimed = 4;
	zip_add(&z, "a", "123", 3);
	is_refused(&z, "SV170", "is not what its size and CRC say");
}

TEST(members_that_share_bytes_are_refused)
{
	struct hand_zip z;

	zip_begin(&z);
	zip_add(&z, "same", "12345678", 8);
	z.shift = 4 + 26 + 4 + 8;
	z.claimed = 0;
	zip_add(&z, "same", "12345678", 8);
	is_refused(&z, "SV170", "reaches into another one");
}

TEST(what_cannot_be_read_is_refused)
{
	struct hand_zip z;

	zip_begin(&z);
	z.flags = 1;
	zip_add(&z, "a", "1", 1);
	is_refused(&z, "SV170", "is encrypted");
	zip_begin(&z);
	z.method = 14;
	zip_add(&z, "a", "1", 1);
	is_refused(&z, "SV170", "neither stored nor deflated");
}

TEST(limits_hold_before_anything_is_unpacked)
{
	auto_free char *big = mem_alloc(3 << 20);
	struct hand_zip z;

	zip_begin(&z);
	z.method = 8;
	zip_add(&z, "a", big, (1 << 20) + 1);
	is_refused(&z, "SV172", "more than the limit of 1048576");
	zip_begin(&z);
	for (unsigned i = 0; i < 3; i++) {
		z.method = 8;
		zip_add(&z, "a", big, 1 << 20);
	}
	is_refused(&z, "SV172", "2097152 of all files");
	zip_begin(&z);
	for (unsigned i = 0; i < 101; i++)
		zip_add(&z, "a", "", 0);
	is_refused(&z, "SV172", "101 members");
	zip_begin(&z);
	z.method = 8;
	z.claimed = 1 << 20;
	zip_add(&z, "a", "1", 1);
	is_refused(&z, "SV170", "claims more bytes than it can have");
}

TEST(an_archive_that_was_cut_or_grew_is_refused)
{
	struct hand_zip z;
	struct stat st;
	auto_free char *data = NULL;
	int fd;

	zip_begin(&z);
	zip_add(&z, "a", "12345", 5);
	fd = zip_finish(&z);
	assert_int_equal(fstat(fd, &st), 0);
	data = mem_alloc((size_t)st.st_size + 1);
	assert_int_equal(sys_pread_all(fd, data, (size_t)st.st_size, 0), 0);
	close(fd);
	for (size_t n = 0; n <= (size_t)st.st_size + 1; n++) {
		auto_buf struct buf out = BUF_INIT(100);
		struct err e = {0};

		if (n == (size_t)st.st_size)
			continue;
		assert_int_equal(open_all(file_of(data, n), &out, &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
	}
}

RUN_TESTS(cmocka_unit_test(stored_and_deflated_members_are_read),
	cmocka_unit_test(an_archive_without_members_is_one),
	cmocka_unit_test(headers_that_disagree_are_refused),
	cmocka_unit_test(members_that_share_bytes_are_refused),
	cmocka_unit_test(what_cannot_be_read_is_refused),
	cmocka_unit_test(limits_hold_before_anything_is_unpacked),
	cmocka_unit_test(an_archive_that_was_cut_or_grew_is_refused))
