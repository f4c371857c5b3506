#include "images/mount-keep.h"

#include "base/file.h"
#include "tests/unit/fixture.h"

static struct digest some(int i)
{
	return digest_of(&i, sizeof(i));
}

static bool kept(struct fixture *f, const struct digest *d)
{
	char hex[DIGEST_HEX + 1];
	auto_fd int folder = sys_openat(f->s.fd, "mnt", O_RDONLY | O_DIRECTORY, 0);
	int rc = mount_is_kept(folder, digest_hex(d, hex), &f->e);

	assert_true(rc >= 0);
	return rc > 0;
}

static void init(struct fixture *f)
{
	fixture_init(f);
	assert_int_equal(sys_mkdirat(f->s.fd, "mnt", 0700), 0);
}

static size_t count(struct fixture *f)
{
	struct digest *v;
	size_t n;

	need(mount_kept(&f->s, &v, &n, &f->e));
	for (size_t i = 1; i < n; i++)
		assert_true(memcmp(v[i - 1].b, v[i].b, DIGEST_SIZE) < 0);
	free(v);
	return n;
}

TEST(a_mount_is_kept_until_it_is_not)
{
	struct fixture fix, *f = &fix;
	struct digest a = some(1), b = some(2);

	init(f);
	assert_int_equal(count(f), 0);
	need(mount_keep(&f->s, &a, &f->e));
	need(mount_keep(&f->s, &b, &f->e));
	need(mount_keep(&f->s, &a, &f->e)); /* twice is once */
	assert_int_equal(count(f), 2);
	assert_true(kept(f, &a));
	need(mount_unkeep(&f->s, &a, &f->e));
	assert_false(kept(f, &a));
	assert_int_equal(count(f), 1);
	assert_int_equal(mount_unkeep(&f->s, &a, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_NOT_FOUND);
	fixture_fini(f);
}

TEST(a_mark_of_an_earlier_boot_means_nothing_and_goes)
{
	struct fixture fix, *f = &fix;
	struct digest a = some(1);
	char hex[DIGEST_HEX + 1], path[128];

	init(f);
	snprintf(path, sizeof(path), "mnt/%s.keep", digest_hex(&a, hex));
	need(file_write(f->s.fd, path, "another boot\n", 13, 0600, &f->e));
	assert_false(kept(f, &a));
	assert_int_equal(count(f), 0);
	assert_int_equal(faccessat(f->s.fd, path, F_OK, 0), -1);
	fixture_fini(f);
}

TEST(other_files_are_no_marks)
{
	struct fixture fix, *f = &fix;

	init(f);
	need(file_write(f->s.fd, "mnt/x.keep", "", 0, 0600, &f->e));
	need(file_write(f->s.fd,
		"mnt/zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz.keep", "", 0,
		0600, &f->e));
	assert_int_equal(count(f), 0);
	fixture_fini(f);
}

TEST(without_a_folder_of_mounts_nothing_is_kept)
{
	struct fixture fix, *f = &fix;
	struct digest a = some(1);

	fixture_init(f);
	assert_int_equal(count(f), 0);
	assert_int_equal(mount_unkeep(&f->s, &a, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_NOT_FOUND);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(a_mount_is_kept_until_it_is_not),
	cmocka_unit_test(a_mark_of_an_earlier_boot_means_nothing_and_goes),
	cmocka_unit_test(other_files_are_no_marks),
	cmocka_unit_test(without_a_folder_of_mounts_nothing_is_kept))
