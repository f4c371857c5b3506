#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/cache.h"

struct fixture {
	char dir[32];
	struct store s;
	struct err e;
};

static void setup(struct fixture *f)
{
	*f = (struct fixture){.dir = "/tmp/svrun-test-XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	f->s.path = f->dir;
	f->s.fd = sys_open(f->dir, O_RDONLY | O_DIRECTORY, 0);
	assert_true(f->s.fd >= 0);
	assert_int_equal(sys_mkdir_p(f->s.fd, "cache/sha256", 0755), 0);
	assert_int_equal(sys_mkdir_p(f->s.fd, "cache/sha512", 0755), 0);
}

static void teardown(struct fixture *f)
{
	close(f->s.fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
}

static struct input input_of(const char *text, enum hash_kind kind)
{
	struct input in = {.name = "thing 1.0", .url = "http://localhost/thing", .kind = kind};
	struct hash h;

	hash_init(&h, kind);
	hash_add(&h, text, strlen(text));
	hash_final(&h, in.digest);
	in.size = strlen(text);
	in.max = in.size;
	return in;
}

static void put(struct fixture *f, const struct input *in, const char *text)
{
	char name[CACHE_NAME];
	int fd = sys_openat(f->s.fd, cache_name(in, name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

TEST(a_name_is_the_kind_and_the_digest_in_hex)
{
	struct input a = input_of("", HASH_SHA256), b = input_of("", HASH_SHA512);
	char name[CACHE_NAME];

	assert_string_equal(cache_name(&a, name),
		"cache/sha256/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_string_equal(cache_name(&b, name),
		"cache/sha512/cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
		"47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e");
}

TEST(what_is_there_opens_and_verifies)
{
	static const enum hash_kind kinds[] = {HASH_SHA256, HASH_SHA512};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < 2; i++) {
		struct input in = input_of("hello", kinds[i]);
		int fd;

		assert_false(cache_has(&f.s, &in));
		put(&f, &in, "hello");
		assert_true(cache_has(&f.s, &in));
		fd = cache_open(&f.s, &in, &f.e);
		assert_true(fd >= 0);
		assert_int_equal(cache_verify(&f.s, &in, fd, &f.e), 0);
		in.size = 0; /* unknown */
		assert_int_equal(cache_verify(&f.s, &in, fd, &f.e), 0);
		close(fd);
	}
	teardown(&f);
}

TEST(what_is_not_there_is_not_found_by_name)
{
	struct input in = input_of("hello", HASH_SHA256);
	struct fixture f;

	setup(&f);
	assert_int_equal(cache_open(&f.s, &in, &f.e), -1);
	assert_int_equal(f.e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(f.e.text, "thing 1.0"));
	teardown(&f);
}

TEST(an_altered_file_is_named_with_both_digests_and_dropped)
{
	static const char *const altered[] = {"hellO", "hell", "hello, and more", ""};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < 4; i++) {
		struct input in = input_of("hello", HASH_SHA256);
		int fd;

		if (i == 2)
			in.size = 0;
		put(&f, &in, altered[i]);
		fd = cache_open(&f.s, &in, &f.e);
		assert_true(fd >= 0);
		assert_int_equal(cache_verify(&f.s, &in, fd, &f.e), -1);
		close(fd);
		assert_int_equal(f.e.kind, ERR_CORRUPT);
		assert_non_null(strstr(f.e.text, "thing 1.0"));
		assert_non_null(strstr(f.e.text, f.dir));
		assert_non_null(strstr(f.e.text, "expected "));
		assert_non_null(strstr(f.e.text, "found "));
		assert_non_null(strstr(f.e.hint, "fetches it again"));
		assert_false(cache_has(&f.s, &in));
	}
	teardown(&f);
}

TEST(a_link_in_the_cache_is_not_followed)
{
	struct input in = input_of("hello", HASH_SHA256);
	char name[CACHE_NAME];
	struct fixture f;

	setup(&f);
	assert_int_equal(sys_symlinkat("/etc/passwd", f.s.fd, cache_name(&in, name)), 0);
	assert_int_equal(cache_open(&f.s, &in, &f.e), -1);
	assert_int_equal(f.e.kind, ERR_SYSTEM);
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(a_name_is_the_kind_and_the_digest_in_hex),
	cmocka_unit_test(what_is_there_opens_and_verifies),
	cmocka_unit_test(what_is_not_there_is_not_found_by_name),
	cmocka_unit_test(an_altered_file_is_named_with_both_digests_and_dropped),
	cmocka_unit_test(a_link_in_the_cache_is_not_followed))
