#include "images/usage.h"

#include "images/gc.h"
#include "tests/unit/small-image.h"

enum { CHUNK_BYTES = 8192 }; /* of a file of a small image */

static struct usage usage(struct fixture *f)
{
	struct usage u;

	need(usage_read(&f->s, &u, &f->e));
	return u;
}

/* What is used alone, what is shared and what is unused are all there is. */
static void assert_adds_up(const struct usage *u)
{
	uint64_t sum = u->shared + u->unused;

	for (size_t i = 0; i < u->n; i++) {
		sum += u->images[i].unique;
		assert_true(u->images[i].unique <= u->images[i].total);
	}
	assert_int_equal(sum, u->pool + u->blobs + u->others);
}

TEST(an_empty_store_uses_nothing)
{
	struct fixture f_, *f = &f_;
	struct usage u;

	fixture_init(f);
	close_pool(f);
	u = usage(f);
	assert_int_equal(u.n, 0);
	assert_int_equal(u.pool + u.blobs + u.others + u.shared + u.unused + u.cache, 0);
	usage_fini(&u);
	assert_int_equal(sys_remove_tree(f->s.fd, "pool"), 0);
	u = usage(f); /* without a pool, too */
	usage_fini(&u);
	fixture_fini(f);
}

TEST(what_images_share_is_told_from_what_they_have_alone)
{
	static const uint32_t a[] = {1, 2, 3}, b[] = {3, 4}, c[] = {5};
	struct fixture f_, *f = &f_;
	struct small_image one, two, lost;
	struct usage u;
	uint64_t alone, files;

	fixture_init(f);
	small_image(f, &one, "one", a, 3);
	need(store_name_set(&f->s, "same", &one.manifest, one.size, NULL, &f->e));
	close_pool(f);
	u = usage(f);
	assert_int_equal(u.n, 1);
	assert_int_equal(u.images[0].chunks, 3);
	assert_int_equal(u.pool, 3 * CHUNK_BYTES);
	assert_int_equal(u.images[0].total, u.images[0].unique);
	assert_int_equal(u.shared + u.unused, 0);
	assert_adds_up(&u);
	alone = u.images[0].total;
	files = u.blobs + u.others;
	usage_fini(&u);

	open_pool(f);
	small_image(f, &two, "two", b, 2);
	small_image(f, &lost, NULL, c, 1);
	close_pool(f);
	u = usage(f);
	assert_int_equal(u.n, 2);
	assert_int_equal(u.images[0].total, alone);
	assert_true(u.images[0].unique <= alone - CHUNK_BYTES); /* and the config, perhaps */
	assert_true(u.shared >= CHUNK_BYTES);
	assert_true(u.unused >= CHUNK_BYTES);
	assert_int_equal(u.pool, 5 * CHUNK_BYTES);
	assert_true(u.blobs + u.others > files);
	assert_adds_up(&u);
	usage_fini(&u);
	fixture_fini(f);
}

/* The promise of `unique` and `unused`. */
TEST(removing_an_image_and_collecting_gives_back_what_was_said)
{
	static const uint32_t a[] = {1, 2, 3}, b[] = {3, 4}, c[] = {5};
	struct fixture f_, *f = &f_;
	struct small_image one, two, lost;
	struct usage before, after;
	struct gc_report r;
	uint64_t disk;

	fixture_init(f);
	small_image(f, &one, "one", a, 3);
	small_image(f, &two, "two", b, 2);
	small_image(f, &lost, NULL, c, 1);
	close_pool(f);
	before = usage(f);
	disk = pool_disk_bytes(f);
	small_remove(f, &one, "one");
	need(gc_run(&f->s, false, &r, NULL, &f->e));
	after = usage(f);
	assert_int_equal(after.unused, 0);
	assert_int_equal(after.pool + after.blobs + after.others,
		before.pool + before.blobs + before.others - before.unused -
			before.images[0].unique);
	/* a file of many pieces may take a block for their list */
	assert_in_range(disk - pool_disk_bytes(f), before.pool - after.pool - 2 * POOL_BLOCK,
		before.pool - after.pool);
	assert_int_equal(r.pool_bytes, disk - pool_disk_bytes(f));
	assert_adds_up(&after);
	usage_fini(&before);
	usage_fini(&after);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(an_empty_store_uses_nothing),
	cmocka_unit_test(what_images_share_is_told_from_what_they_have_alone),
	cmocka_unit_test(removing_an_image_and_collecting_gives_back_what_was_said))
