#include "tests/unit/test.h"

#include "builder/lock-make.h"

static struct lock_deb deb(const char *name, const char *version, uint8_t sum)
{
	return (struct lock_deb){
		.name = name, .version = version, .arch = "amd64", .sha256 = {{sum}}};
}

TEST(two_locks_differ_in_lines_of_one_shape)
{
	struct lock_deb before[] = {deb("a", "1", 1), deb("b", "1", 1), deb("c", "1", 1)};
	struct lock_deb after[] = {deb("a", "1", 1), deb("b", "2", 2), deb("d", "1", 1)};
	struct lock_file f1 = {.path = "x", .sha256 = {{1}}}, f2 = {.path = "x", .sha256 = {{2}}};
	struct lock old = {.debs = before, .ndebs = 3, .files = &f1, .nfiles = 1},
		    now = {.debs = after, .ndebs = 3, .files = &f2, .nfiles = 1};
	auto_buf struct buf out = BUF_INIT(1 << 16);

	assert_int_equal(lock_diff(&old, &now, &out), 4);
	assert_string_equal(out.data, "deb b:amd64 1 (010000000000) -> 2 (020000000000)\n"
				      "deb c:amd64 1 (010000000000) -> gone\n"
				      "file x 010000000000 -> 020000000000\n"
				      "deb d:amd64 new: 1 (010000000000)\n");
}

TEST(a_version_that_is_the_same_with_other_bytes_is_a_difference)
{
	struct lock_deb before = deb("a", "1", 1), after = deb("a", "1", 2);
	struct lock old = {.debs = &before, .ndebs = 1}, now = {.debs = &after, .ndebs = 1};
	auto_buf struct buf out = BUF_INIT(1 << 16);

	assert_int_equal(lock_diff(&old, &now, &out), 1);
}

TEST(equal_locks_do_not_differ)
{
	struct lock_deb d = deb("a", "1", 1);
	struct lock old = {.debs = &d, .ndebs = 1};
	auto_buf struct buf out = BUF_INIT(1 << 16);

	assert_int_equal(lock_diff(&old, &old, &out), 0);
	assert_int_equal(out.len, 0);
}

RUN_TESTS(cmocka_unit_test(two_locks_differ_in_lines_of_one_shape),
	cmocka_unit_test(a_version_that_is_the_same_with_other_bytes_is_a_difference),
	cmocka_unit_test(equal_locks_do_not_differ))
