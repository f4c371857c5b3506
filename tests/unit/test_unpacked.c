#include "tests/unit/fixture.h"

#include "base/file.h"
#include "builder/unpacked.h"

static const struct digest key = {{1, 2, 3}};

/* A package with a file of two chunks, a link, a pruned file and two control files. */
static void make(struct fixture *f, struct deb *d)
{
	struct attr file = {.mode = 0755, .mtime = 7};
	struct node *n = put_file(f, "usr/bin/x", CHUNK_SIZE + 5, 9, &file);
	struct entry *en;

	*d = (struct deb){.name = "x", .version = "1", .arch = "all", .control = "Package: x\n"};
	d->files = arena_alloc(&d->arena, 2 * sizeof(*d->files));
	d->nfiles = 2;
	d->files[0] = (struct deb_file){.name = "md5sums", .data = "a\0b", .len = 3, .mode = 0644};
	d->files[1] = (struct deb_file){.name = "postinst", .data = "#!", .len = 2, .mode = 0755};
	en = entries_add(&d->data, "usr/bin/x");
	en->a = n->a;
	en = entries_add(&d->data, "usr/bin/y");
	en->a = (struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = "x"};
	en = entries_add(&d->data, "usr/share/doc/x");
	en->a = (struct attr){.type = NODE_FILE, .mode = 0644};
	en->pruned = true;
}

static void keep(struct fixture *f, const struct deb *d)
{
	struct unpacked_queue q;

	unpacked_queue_init(&q, &f->s, f->p);
	need(unpacked_add(&q, &key, d, &d->data, &f->e));
	assert_false(unpacked_has(&f->s, &key)); /* not before its chunks are recorded */
	need(unpacked_flush(&q, &f->e));
	unpacked_queue_fini(&q);
}

TEST(a_package_comes_back_as_it_was_with_its_chunks_found)
{
	struct fixture fix, *f = &fix;
	struct deb d, back = {0};

	fixture_init(f);
	make(f, &d);
	keep(f, &d);
	assert_true(unpacked_has(&f->s, &key));
	assert_int_equal(unpacked_load(&f->s, f->p, &key, &back, &back.data, &f->e), 1);
	assert_string_equal(back.name, "x");
	assert_string_equal(back.version, "1");
	assert_string_equal(back.arch, "all");
	assert_null(back.multi_arch);
	assert_string_equal(back.control, "Package: x\n");
	assert_int_equal(back.nfiles, 2);
	assert_int_equal(back.files[0].len, 3);
	assert_memory_equal(back.files[0].data, "a\0b", 4);
	assert_int_equal(back.files[1].mode, 0755);
	assert_int_equal(back.data.n, 3);
	assert_int_equal(back.data.v[0].a.nchunks, 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(back.data.v[0].a.chunks[i].block, d.data.v[0].a.chunks[i].block);
	assert_string_equal(back.data.v[1].a.target, "x");
	assert_true(back.data.v[2].pruned);
	assert_int_equal(unpacked_bytes(&back.data), CHUNK_SIZE + 5);
	deb_fini(&back);
	deb_fini(&d);
	fixture_fini(f);
}

TEST(a_list_whose_chunks_are_gone_counts_as_missing)
{
	struct fixture fix, *f = &fix;
	struct entries l = {0}, back = {0};
	struct chunk c = {.digest = {{5}}, .length = 3, .block = 0};
	struct entry *en;
	struct unpacked_queue q;

	fixture_init(f);
	en = entries_add(&l, "a");
	en->a = (struct attr){
		.type = NODE_FILE, .mode = 0644, .size = 3, .chunks = &c, .nchunks = 1};
	unpacked_queue_init(&q, &f->s, f->p);
	need(unpacked_add(&q, &key, NULL, &l, &f->e));
	need(unpacked_flush(&q, &f->e));
	unpacked_queue_fini(&q);
	assert_int_equal(unpacked_load(&f->s, f->p, &key, NULL, &back, &f->e), 0);
	assert_int_equal(back.n, 0);
	entries_fini(&l);
	fixture_fini(f);
}

/* Every byte that is another, and every end that comes too soon. */
TEST(a_damaged_file_counts_as_missing)
{
	struct fixture fix, *f = &fix;
	auto_buf struct buf whole = BUF_INIT(1 << 20);
	struct deb d, back = {0};

	fixture_init(f);
	make(f, &d);
	keep(f, &d);
	assert_int_equal(cache_file_get(&f->s, "cache/unpacked", &key, &whole, &f->e), 1);
	for (size_t i = 0; i < whole.len; i++) {
		whole.data[i] ^= 1;
		need(cache_file_put(&f->s, "cache/unpacked", &key, whole.data, whole.len, &f->e));
		if (unpacked_load(&f->s, f->p, &key, &back, &back.data, &f->e) != 0)
			fail_msg("byte %zu was another, and nobody saw it", i);
		whole.data[i] ^= 1;
	}
	for (size_t n = 0; n < whole.len; n++) {
		need(cache_file_put(&f->s, "cache/unpacked", &key, whole.data, n, &f->e));
		if (unpacked_load(&f->s, f->p, &key, &back, &back.data, &f->e) != 0)
			fail_msg("cut off after %zu bytes, and nobody saw it", n);
	}
	deb_fini(&d);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(a_package_comes_back_as_it_was_with_its_chunks_found),
	cmocka_unit_test(a_list_whose_chunks_are_gone_counts_as_missing),
	cmocka_unit_test(a_damaged_file_counts_as_missing))
