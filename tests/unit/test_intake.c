#include "images/intake.h"

#include <zlib.h>
#include <zstd.h>

#include "base/str.h"
#include "tests/unit/archive.h"

static void init(struct fixture *f)
{
	fixture_init(f);
	pool_close(f->p); /* whoever has it open keeps blobs from being removed */
	f->p = NULL;
}

static int take(struct fixture *f, struct intake *in, struct hand_tar *t)
{
	auto_fd int fd = tar_open(t);
	int rc;

	f->e = (struct err){0};
	rc = intake_stream(in, &f->s, fd, "x.tar", NULL, &f->e);
	buf_fini(&t->b);
	return rc;
}

static void assert_file(struct fixture *f, struct intake *in, const char *name, const char *text)
{
	struct intake_file file;
	struct digest d = digest_of(text, strlen(text));

	if (intake_get(in, name, &file, &f->e) < 0)
		fail_msg("%s: %s", name, f->e.text);
	assert_true(digest_eq(&file.digest, &d));
	assert_int_equal(file.size, strlen(text));
	assert_true(store_has(&f->s, &d));
}

static void assert_fault(const struct fixture *f, const char *say)
{
	if (!strstr(f->e.text, say))
		fail_msg("'%s' lacks '%s'", f->e.text, say);
}

TEST(files_become_blobs_and_are_found_by_any_spelling_of_their_name)
{
	struct fixture fix, *f = &fix;
	struct intake in;
	struct hand_tar t = {0};
	struct intake_file file;

	init(f);
	tar_header_by_hand(&t, "dir/", '5', "", 0);
	tar_text(&t, "./dir/a", "one");
	tar_text(&t, "b", "two");
	tar_text(&t, "empty", "");
	tar_finish(&t);
	need(take(f, &in, &t));
	assert_file(f, &in, "dir/a", "one");
	assert_file(f, &in, "./dir//a", "one");
	assert_file(f, &in, "b", "two");
	assert_file(f, &in, "empty", "");
	assert_int_equal(intake_find(&in, "c", &file, &f->e), 0);
	assert_int_equal(intake_get(&in, "c", &file, &f->e), -1);
	assert_fault(f, "x.tar: 'c' is missing");
	intake_fini(&in);
	assert_int_equal(count_blobs(f), 0);
	fixture_fini(f);
}

TEST(what_the_store_had_before_stays)
{
	struct fixture fix, *f = &fix;
	struct intake in;
	struct hand_tar t = {0};
	struct digest d;

	init(f);
	need(store_blob_put(&f->s, "two", 3, &d, &f->e));
	tar_text(&t, "a", "one");
	tar_text(&t, "b", "two");
	tar_finish(&t);
	need(take(f, &in, &t));
	assert_int_equal(count_blobs(f), 2);
	intake_fini(&in);
	assert_int_equal(count_blobs(f), 1);
	assert_true(store_has(&f->s, &d));
	fixture_fini(f);
}

TEST(while_others_write_to_the_pool_blobs_stay)
{
	struct fixture fix, *f = &fix;
	struct intake in;
	struct hand_tar t = {0};

	init(f);
	tar_text(&t, "a", "one");
	tar_finish(&t);
	need(take(f, &in, &t));
	f->p = pool_open(f->s.fd, true, &f->e);
	assert_non_null(f->p);
	intake_fini(&in);
	assert_int_equal(count_blobs(f), 1);
	fixture_fini(f);
}

TEST(links_are_followed_by_name_inside_the_archive)
{
	struct fixture fix, *f = &fix;
	struct intake in;
	struct hand_tar t = {0};

	init(f);
	tar_link(&t, "id2/layer.tar", '2', "../id1/layer.tar"); /* before what it leads to */
	tar_text(&t, "id1/layer.tar", "layer");
	tar_link(&t, "id3/layer.tar", '2', ".././id2//layer.tar");
	tar_link(&t, "hard", '1', "./id1/layer.tar");
	tar_finish(&t);
	need(take(f, &in, &t));
	assert_file(f, &in, "id2/layer.tar", "layer");
	assert_file(f, &in, "id3/layer.tar", "layer");
	assert_file(f, &in, "hard", "layer");
	intake_fini(&in);
	fixture_fini(f);
}

static void refuse(struct hand_tar *t, const char *say)
{
	struct fixture fix, *f = &fix;
	struct intake in;

	init(f);
	if (take(f, &in, t) == 0)
		fail_msg("taken, though: %s", say);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	assert_fault(f, say);
	intake_fini(&in);
	assert_int_equal(count_blobs(f), 0);
	fixture_fini(f);
}

TEST(names_and_links_that_lead_outside_are_refused)
{
	static const struct {
		const char *name;
		char type;
		const char *target, *say;
	} cases[] = {
		{"../a", '0', "", ".."},
		{"a/../../b", '0', "", ".."},
		{"a", '2', "../b", "leads outside"},
		{"a/b", '2', "../../c", "leads outside"},
		{"a", '2', "/etc/passwd", "absolute"},
		{"a", '1', "../b", ".."},
		{"a", '3', "", "neither a file"},
		{"a", '6', "", "neither a file"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hand_tar t = {0};

		tar_text(&t, "first", "some bytes");
		tar_link(&t, cases[i].name, cases[i].type, cases[i].target);
		tar_finish(&t);
		refuse(&t, cases[i].say);
	}
}

TEST(links_in_a_circle_are_an_error_when_they_are_asked_for)
{
	struct fixture fix, *f = &fix;
	struct intake in;
	struct hand_tar t = {0};
	struct intake_file file;

	init(f);
	tar_link(&t, "a", '2', "b");
	tar_link(&t, "b", '2', "a");
	tar_finish(&t);
	need(take(f, &in, &t));
	assert_int_equal(intake_find(&in, "a", &file, &f->e), -1);
	assert_fault(f, "circle");
	intake_fini(&in);
	fixture_fini(f);
}

TEST(a_name_may_come_twice_only_with_the_same_bytes)
{
	struct fixture fix, *f = &fix;
	struct intake in;
	struct hand_tar same = {0}, other = {0}, link = {0};

	init(f);
	tar_text(&same, "a", "x");
	tar_text(&same, "./a", "x");
	tar_finish(&same);
	need(take(f, &in, &same));
	assert_file(f, &in, "a", "x");
	intake_fini(&in);
	fixture_fini(f);
	tar_text(&other, "a", "x");
	tar_text(&other, "a", "y");
	tar_finish(&other);
	refuse(&other, "'a' is there twice");
	tar_text(&link, "a", "x");
	tar_link(&link, "a", '2', "b");
	tar_finish(&link);
	refuse(&link, "'a' is there twice");
}

TEST(a_blob_must_be_what_its_name_says)
{
	struct hand_tar wrong = {0}, odd = {0};

	tar_text(&wrong,
		"blobs/sha256/0000000000000000000000000000000000000000000000000000000000000000",
		"x");
	tar_finish(&wrong);
	refuse(&wrong, "expected sha256:0000");
	tar_text(&odd, "blobs/sha256/abc", "x");
	tar_finish(&odd);
	refuse(&odd, "is no blob's name");
}

TEST(what_is_cut_off_or_no_tar_is_refused)
{
	struct hand_tar cut = {0}, noise = {0}, none = {0}, claim = {0};

	tar_file(&cut, "a", "0123456789", 10);
	cut.b.len = 512 + 5;
	refuse(&cut, "x.tar");
	for (int i = 0; i < 2000; i++)
		tar_raw(&noise, "noise", 5);
	refuse(&noise, "x.tar");
	tar_raw(&none, "", 0);
	refuse(&none, "x.tar is empty");
	tar_header_by_hand(&claim, "a", '0', "", 4ull << 30); /* it says 4 GiB, and has none */
	tar_finish(&claim);
	refuse(&claim, "x.tar");
}

static void compress_zstd(struct hand_tar *t)
{
	size_t bound = ZSTD_compressBound(t->b.len);
	char *out = mem_alloc(bound);
	size_t n = ZSTD_compress(out, bound, t->b.data, t->b.len, 1);

	assert_false(ZSTD_isError(n));
	t->b.len = 0;
	tar_raw(t, out, n);
	free(out);
}

TEST(a_compressed_tar_is_unpacked)
{
	struct fixture fix, *f = &fix;
	struct intake in;
	struct hand_tar t = {0};

	init(f);
	tar_text(&t, "a", "one");
	tar_finish(&t);
	compress_zstd(&t);
	need(take(f, &in, &t));
	assert_file(f, &in, "a", "one");
	intake_fini(&in);
	fixture_fini(f);
}

TEST(the_first_bytes_of_a_file_tell_its_codec)
{
	static const struct {
		const char *data;
		size_t n;
		enum codec codec;
	} cases[] = {
		{"\x1f\x8b\x08", 3, CODEC_GZIP},
		{"\x28\xb5\x2f\xfd", 4, CODEC_ZSTD},
		{"\x28\xb5\x2f", 3, CODEC_NONE},
		{"", 0, CODEC_NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture fix, *f = &fix;
		struct intake in;
		struct hand_tar t = {0};
		struct intake_file file;

		init(f);
		tar_file(&t, "a", cases[i].data, cases[i].n);
		tar_finish(&t);
		need(take(f, &in, &t));
		need(intake_get(&in, "a", &file, &f->e));
		assert_int_equal(file.codec, cases[i].codec);
		intake_fini(&in);
		fixture_fini(f);
	}
}

TEST(a_folder_gives_only_what_is_in_it)
{
	struct fixture fix, *f = &fix;
	struct intake in;
	struct intake_file file;
	char dir[] = "/tmp/svrun-test-XXXXXX";
	int fd;

	init(f);
	assert_non_null(mkdtemp(dir));
	fd = sys_open(dir, O_RDONLY | O_DIRECTORY, 0);
	need(file_write(fd, "a", "one", 3, 0644, &f->e));
	assert_int_equal(sys_symlinkat("a", fd, "inside"), 0);
	assert_int_equal(sys_symlinkat("/etc/passwd", fd, "outside"), 0);
	assert_int_equal(sys_symlinkat("../../etc/passwd", fd, "above"), 0);
	assert_int_equal(mkfifoat(fd, "pipe", 0600), 0);
	need(intake_folder(&in, &f->s, dir, NULL, &f->e));
	assert_file(f, &in, "a", "one");
	assert_file(f, &in, "inside", "one");
	assert_int_equal(intake_find(&in, "none", &file, &f->e), 0);
	assert_int_equal(intake_find(&in, "outside", &file, &f->e), -1);
	assert_int_equal(intake_find(&in, "above", &file, &f->e), -1);
	f->e = (struct err){0};
	assert_int_equal(intake_find(&in, "pipe", &file, &f->e), -1);
	assert_fault(f, "is no regular file");
	assert_int_equal(intake_find(&in, "../a", &file, &f->e), -1);
	intake_fini(&in);
	sys_close_ref(&fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, dir), 0);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(files_become_blobs_and_are_found_by_any_spelling_of_their_name),
	cmocka_unit_test(what_the_store_had_before_stays),
	cmocka_unit_test(while_others_write_to_the_pool_blobs_stay),
	cmocka_unit_test(links_are_followed_by_name_inside_the_archive),
	cmocka_unit_test(names_and_links_that_lead_outside_are_refused),
	cmocka_unit_test(links_in_a_circle_are_an_error_when_they_are_asked_for),
	cmocka_unit_test(a_name_may_come_twice_only_with_the_same_bytes),
	cmocka_unit_test(a_blob_must_be_what_its_name_says),
	cmocka_unit_test(what_is_cut_off_or_no_tar_is_refused),
	cmocka_unit_test(a_compressed_tar_is_unpacked),
	cmocka_unit_test(the_first_bytes_of_a_file_tell_its_codec),
	cmocka_unit_test(a_folder_gives_only_what_is_in_it))
