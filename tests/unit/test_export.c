/* Import and export, which are each other's way back. */
#include "images/export.h"

#include <zlib.h>

#include "base/str.h"
#include "images/import.h"
#include "images/tree-equal.h"
#include "tests/unit/archive.h"

static json_t *config(void)
{
	return json_pack("{s:s, s:s, s:{}}", "architecture", "amd64", "os", "linux", "config");
}

static int import(struct fixture *f, int fd, enum codec codec, struct digest *d)
{
	auto_json json_t *c = config();
	const struct image_import how = {.name = "x.tar", .codec = codec, .config = c};
	uint64_t size;

	f->e = (struct err){0};
	return image_import(&f->s, f->p, fd, &how, d, &size, &f->e);
}

/* Export an image to a file in the fixture's folder; its path, to free(). The pool is open in
 * the test, so it is closed meanwhile. */
static char *export(struct fixture *f, const struct digest *d, const char *name)
{
	char *path = mem_printf("%s/%s", f->path, name);
	struct image im;
	struct outlet o;

	pool_close(f->p);
	need(image_load(&im, &f->s, d, &f->e));
	need(outlet_open(&o, path, -1, NULL, &f->e));
	need(image_export(&im, &f->s, &o, NULL, &f->e));
	need(outlet_commit(&o, &f->e));
	outlet_close(&o);
	image_fini(&im);
	f->p = pool_open(f->s.fd, true, &f->e);
	assert_non_null(f->p);
	return path;
}

static int open_file(const char *path)
{
	int fd = sys_open(path, O_RDONLY, 0);

	assert_true(fd >= 0);
	return fd;
}

static struct tree *tree_of(struct fixture *f, const struct digest *d)
{
	struct image im;
	struct tree *t;

	need(image_load(&im, &f->s, d, &f->e));
	t = image_tree(&im, &f->s, NULL, NULL, &f->e);
	assert_non_null(t);
	image_fini(&im);
	return t;
}

/* The sample tree as a tar, straight from its nodes. */
static char *sample_tar(struct fixture *f)
{
	char *path = mem_printf("%s/sample.tar", f->path);
	unsigned char *data = mem_alloc(CHUNK_SIZE);
	struct outlet o;

	sample_tree(f);
	need(pool_commit(f->p, &f->e));
	need(outlet_open(&o, path, -1, NULL, &f->e));
	for (struct node *n = tree_root(f->t); n; n = tree_next(n)) {
		need(outlet_node(&o, n, &f->e));
		for (uint32_t i = 0; n->a.type == NODE_FILE && i < n->a.nchunks; i++) {
			need(pool_read(f->p, &n->a.chunks[i], data, &f->e));
			need(outlet_write(&o, data, n->a.chunks[i].length, &f->e));
		}
		need(outlet_end(&o, &f->e));
	}
	need(outlet_commit(&o, &f->e));
	outlet_close(&o);
	free(data);
	return path;
}

TEST(what_is_imported_is_the_tree_and_so_is_what_is_exported_and_imported_again)
{
	static const enum codec codecs[] = {CODEC_ZSTD, CODEC_GZIP, CODEC_NONE};
	struct fixture fix, *f = &fix;
	auto_free char *tar = NULL;

	fixture_init(f);
	tar = sample_tar(f);
	for (size_t i = 0; i < 3; i++) {
		auto_fd int fd = open_file(tar), again = -1;
		auto_free char *one = NULL, *two = NULL;
		auto_buf struct buf x = BUF_INIT(256 << 20), y = BUF_INIT(256 << 20);
		struct digest a, b;
		struct tree *t;

		need(import(f, fd, codecs[i], &a));
		t = tree_of(f, &a);
		need(tree_equal(t, f->t, &f->e));
		tree_free(t);
		one = export(f, &a, "one.tar");
		again = open_file(one);
		need(import(f, again, codecs[i], &b));
		assert_true(digest_eq(&a, &b));
		two = export(f, &b, "two.tar");
		need(file_read(AT_FDCWD, one, &x, &f->e));
		need(file_read(AT_FDCWD, two, &y, &f->e));
		assert_int_equal(x.len, y.len);
		assert_memory_equal(x.data, y.data, x.len);
	}
	fixture_fini(f);
}

TEST(a_tar_in_a_pipe_is_imported_and_the_image_is_as_new_as_its_newest_file)
{
	struct fixture fix, *f = &fix;
	struct hand_tar t = {0};
	struct image im;
	struct digest d;
	int fds[2];

	fixture_init(f);
	tar_text(&t, "a", "one");
	tar_finish(&t);
	assert_int_equal(sys_pipe(fds), 0);
	assert_int_equal(sys_write_all(fds[1], t.b.data, t.b.len), 0);
	sys_close_ref(&fds[1]);
	need(import(f, fds[0], CODEC_ZSTD, &d));
	sys_close_ref(&fds[0]);
	need(image_load(&im, &f->s, &d, &f->e));
	assert_string_equal(
		json_string_value(json_object_get(im.config, "created")), "1970-01-01T00:00:00Z");
	assert_true(im.has_index);
	image_fini(&im);
	buf_fini(&t.b);
	fixture_fini(f);
}

static void refuse(const void *p, size_t n, const char *say)
{
	struct fixture fix, *f = &fix;
	auto_fd int fd = file_of(p, n);
	struct digest d;

	fixture_init(f);
	assert_int_equal(import(f, fd, CODEC_ZSTD, &d), -1);
	if (!strstr(f->e.text, say))
		fail_msg("'%s' lacks '%s'", f->e.text, say);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	fixture_fini(f);
}

TEST(what_is_no_root_file_system_is_refused)
{
	struct hand_tar cut = {0}, outside = {0}, empty = {0};

	refuse("", 0, "x.tar");
	refuse("hello", 5, "x.tar");
	refuse("\x1f\x8b\x08\x00", 4, "x.tar");
	refuse("\x28\xb5\x2f\xfd\x00", 5, "x.tar");
	refuse("\xfd"
	       "7zXZ\0\0\0",
		8, "x.tar");
	refuse("BZh9AAAA", 8, "x.tar");
	tar_file(&cut, "a", "0123456789", 10);
	refuse(cut.b.data, 512 + 5, "x.tar");
	buf_fini(&cut.b);
	tar_text(&outside, "../a", "x");
	tar_finish(&outside);
	refuse(outside.b.data, outside.b.len, "..");
	buf_fini(&outside.b);
	tar_finish(&empty);
	refuse(empty.b.data, empty.b.len, "no file in it");
	buf_fini(&empty.b);
}

/* 3 GiB of zeros in 3 MB: more than 1 GiB and 256 times that. */
TEST(a_bomb_is_stopped)
{
	struct fixture fix, *f = &fix;
	struct hand_tar t = {0};
	unsigned char *zeros = mem_alloc(1 << 20), *out = mem_alloc(1 << 20);
	z_stream z = {0};
	struct digest d;
	auto_fd int fd = memfd_create("bomb", MFD_CLOEXEC);

	fixture_init(f);
	tar_header_by_hand(&t, "zeros", '0', "", 3ull << 30);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	for (int i = -1; i < 3; i++) { /* the flushed zeros, then the same again and again */
		z.next_in = i < 0 ? (unsigned char *)t.b.data : zeros;
		z.avail_in = i < 0 ? (unsigned)t.b.len : 1 << 20;
		z.next_out = out;
		z.avail_out = 1 << 20;
		assert_int_equal(deflate(&z, Z_FULL_FLUSH), Z_OK);
		for (int k = 0; k < (i == 2 ? 2200 : 1); k++)
			assert_int_equal(sys_write_all(fd, out, (1 << 20) - z.avail_out), 0);
	}
	deflateEnd(&z);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(import(f, fd, CODEC_ZSTD, &d), -1);
	if (!strstr(f->e.text, "unpacks to more than"))
		fail_msg("%s", f->e.text);
	buf_fini(&t.b);
	free(zeros);
	free(out);
	fixture_fini(f);
}

TEST(a_chunk_that_is_wrong_in_the_pool_is_told_with_the_files_name)
{
	struct fixture fix, *f = &fix;
	struct hand_tar t = {0};
	struct digest d;
	struct image im;
	struct outlet o;
	struct stat st;
	auto_free char *path = NULL;

	fixture_init(f);
	tar_text(&t, "some/file", "content");
	tar_finish(&t);
	{
		auto_fd int fd = tar_open(&t);

		need(import(f, fd, CODEC_ZSTD, &d));
	}
	{
		struct tree *tree = tree_of(f, &d);
		struct node *n = tree_find(tree, "some/file");

		assert_int_equal(pool_find(f->p, &n->a.chunks[0], &f->e), 1);
		assert_int_equal(
			sys_pwrite_all(pool_fd(f->p), "X", 1, n->a.chunks[0].block * POOL_BLOCK),
			0);
		tree_free(tree);
	}
	pool_close(f->p);
	f->p = NULL;
	path = mem_printf("%s/out.tar", f->path);
	need(image_load(&im, &f->s, &d, &f->e));
	need(outlet_open(&o, path, -1, NULL, &f->e));
	assert_int_equal(image_export(&im, &f->s, &o, NULL, &f->e), -1);
	outlet_close(&o);
	if (!strstr(f->e.text, "some/file") || !strstr(f->e.text, "expected sha256:"))
		fail_msg("%s", f->e.text);
	assert_int_equal(stat(path, &st), -1);
	image_fini(&im);
	buf_fini(&t.b);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(
		  what_is_imported_is_the_tree_and_so_is_what_is_exported_and_imported_again),
	cmocka_unit_test(a_tar_in_a_pipe_is_imported_and_the_image_is_as_new_as_its_newest_file),
	cmocka_unit_test(what_is_no_root_file_system_is_refused),
	cmocka_unit_test(a_bomb_is_stopped),
	cmocka_unit_test(a_chunk_that_is_wrong_in_the_pool_is_told_with_the_files_name))
