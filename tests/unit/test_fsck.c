#include "images/fsck.h"

#include <sys/wait.h>

#include "base/file.h"
#include "images/gc.h"
#include "images/pool-sweep.h"
#include "tests/unit/small-image.h"

struct lines {
	char text[8192];
};

static void say(void *ctx, const char *text)
{
	struct lines *l = ctx;
	size_t n = strlen(l->text);

	snprintf(l->text + n, sizeof(l->text) - n, "%s\n", text);
}

static struct fsck check(struct fixture *f, struct lines *l, bool repair)
{
	struct fsck k = {.repair = repair, .say = say, .ctx = l};

	*l = (struct lines){0};
	need(fsck_run(&f->s, &k, &f->e));
	return k;
}

static void assert_said(const struct lines *l, const char *text)
{
	if (!strstr(l->text, text))
		fail_msg("'%s' lacks '%s'", l->text, text);
}

static struct chunk chunk_of(struct fixture *f, uint32_t seed)
{
	unsigned char data[5000];
	struct chunk c = {.length = sizeof(data), .block = CHUNK_NO_BLOCK};

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = data_at(i, seed);
	c.digest = digest_of(data, sizeof(data));
	f->p = pool_open(f->s.fd, false, &f->e);
	assert_non_null(f->p);
	need(pool_find(f->p, &c, &f->e));
	close_pool(f);
	return c;
}

static void spoil(struct fixture *f, const char *path, off_t at)
{
	auto_fd int fd = sys_openat(f->s.fd, path, O_RDWR, 0);

	assert_true(fd >= 0);
	assert_int_equal(sys_pwrite_all(fd, "oops", 4, at), 0);
}

static void spoil_chunk(struct fixture *f, uint32_t seed)
{
	struct chunk c = chunk_of(f, seed);

	assert_int_not_equal(c.block, CHUNK_NO_BLOCK);
	spoil(f, "pool/data", (off_t)c.block * POOL_BLOCK + 100);
}

static void forget_chunk(struct fixture *f, uint32_t seed)
{
	struct chunk c = chunk_of(f, seed), *v = &c;

	f->p = pool_open_alone(f->s.fd, &f->e);
	need(pool_forget(f->p, &v, 1, &f->e));
	close_pool(f);
}

static const uint32_t seeds[] = {1, 2, 3};

static void init(struct fixture *f, struct small_image *one)
{
	fixture_init(f);
	small_image(f, one, "one", seeds, 3);
	close_pool(f);
}

static void path_of(const char *folder, const struct digest *d, const char *end, char out[128])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, 128, "%s/%s%s", folder, digest_hex(d, hex), end);
}

TEST(a_store_that_is_right_has_no_faults)
{
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct lines l;
	struct fsck k;

	init(f, &one);
	k = check(f, &l, false);
	assert_int_equal(k.faults, 0);
	assert_int_equal(k.images, 1);
	assert_int_equal(k.chunks, 3);
	assert_int_equal(k.blobs, 4);
	assert_string_equal(l.text, "");
	fixture_fini(f);
}

TEST(an_empty_store_has_no_faults)
{
	struct fixture f_, *f = &f_;
	struct lines l;

	fixture_init(f);
	close_pool(f);
	assert_int_equal(check(f, &l, true).faults, 0);
	assert_int_equal(sys_remove_tree(f->s.fd, "pool"), 0);
	assert_int_equal(check(f, &l, true).faults, 0);
	fixture_fini(f);
}

TEST(a_damaged_chunk_is_named_with_its_image_and_file_and_repaired_from_its_layer)
{
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct lines l;
	struct fsck k;

	init(f, &one);
	spoil_chunk(f, 2);
	k = check(f, &l, false);
	assert_int_equal(k.faults, 1);
	assert_int_equal(k.repaired, 0);
	assert_said(&l, "one: 'file-2' is damaged");
	assert_null(strstr(l.text, "file-1"));
	assert_int_equal(small_verify(f, &one), -1);
	k = check(f, &l, true);
	assert_int_equal(k.faults, 1);
	assert_int_equal(k.repaired, 1);
	small_verify_well(f, &one);
	assert_int_equal(check(f, &l, false).faults, 0);
	fixture_fini(f);
}

TEST(a_chunk_that_the_pool_lacks_is_put_there_from_its_layer)
{
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct lines l;
	struct fsck k;

	init(f, &one);
	forget_chunk(f, 3);
	k = check(f, &l, false);
	assert_int_equal(k.faults, 1);
	assert_said(&l, "one: 'file-3' is not whole");
	k = check(f, &l, true);
	assert_int_equal(k.repaired, 1);
	assert_int_equal(check(f, &l, false).faults, 0);
	fixture_fini(f);
}

TEST(a_damaged_chunk_that_no_image_has_is_forgotten)
{
	static const uint32_t lost_seed[] = {9};
	struct fixture f_, *f = &f_;
	struct small_image one, lost;
	struct lines l;
	struct fsck k;

	init(f, &one);
	open_pool(f);
	small_image(f, &lost, NULL, lost_seed, 1);
	close_pool(f);
	spoil_chunk(f, 9);
	k = check(f, &l, true);
	assert_int_equal(k.faults, 1);
	assert_int_equal(k.repaired, 1);
	assert_int_equal(chunk_of(f, 9).block, CHUNK_NO_BLOCK);
	small_verify_well(f, &one);
	fixture_fini(f);
}

TEST(what_cannot_be_had_again_stays_a_fault_that_is_named)
{
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct lines l;
	struct fsck k;
	char path[128];

	init(f, &one);
	spoil_chunk(f, 2);
	path_of("blobs/sha256", &one.layer.digest, "", path);
	assert_int_equal(sys_unlinkat(f->s.fd, path, 0), 0);
	k = check(f, &l, true);
	assert_int_equal(k.faults, 2);
	assert_int_equal(k.repaired, 0);
	assert_said(&l, "one: layer 0 is not in the store");
	assert_said(&l, "could not be had");
	fixture_fini(f);
}

/* A layer that is not here is none of one's own images' faults when it can be fetched. */
TEST(layers_of_an_image_that_came_from_a_registry_may_be_away)
{
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct lines l;
	char path[128];

	init(f, &one);
	need(store_name_set(&f->s, "one", &one.manifest, one.size, "127.0.0.1:1/none", &f->e));
	path_of("blobs/sha256", &one.layer.digest, "", path);
	assert_int_equal(sys_unlinkat(f->s.fd, path, 0), 0);
	assert_int_equal(check(f, &l, false).faults, 0);
	small_verify_well(f, &one);
	fixture_fini(f);
}

TEST(damaged_blobs_are_named_and_go_when_they_can_be_had_again)
{
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct digest stray;
	struct lines l;
	struct fsck k;
	char layer[128], other[128];

	init(f, &one);
	need(store_blob_put(&f->s, "a stray blob", 12, &stray, &f->e));
	path_of("blobs/sha256", &stray, "", other);
	path_of("blobs/sha256", &one.layer.digest, "", layer);
	spoil(f, other, 0);
	spoil(f, layer, 30);
	k = check(f, &l, true);
	assert_int_equal(k.faults, 2);
	assert_int_equal(k.repaired, 1);
	assert_said(&l, layer);
	assert_false(in_store(f, "blobs/sha256", &stray, ""));
	assert_true(in_store(f, "blobs/sha256", &one.layer.digest, ""));
	need(store_name_set(&f->s, "one", &one.manifest, one.size, "127.0.0.1:1/none", &f->e));
	k = check(f, &l, true);
	assert_int_equal(k.faults, 1);
	assert_int_equal(k.repaired, 1);
	assert_false(in_store(f, "blobs/sha256", &one.layer.digest, ""));
	fixture_fini(f);
}

TEST(a_damaged_metadata_image_is_removed_and_made_again)
{
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct lines l;
	struct fsck k;
	char path[128];

	init(f, &one);
	path_of("erofs", &one.manifest, ".img", path);
	spoil(f, path, 2000);
	k = check(f, &l, false);
	assert_int_equal(k.faults, 1);
	assert_said(&l, path);
	k = check(f, &l, true);
	assert_int_equal(k.repaired, 1);
	assert_false(in_store(f, "erofs", &one.manifest, ".img"));
	need(mount_prepare(&f->s, &one.manifest, NULL, &f->e));
	assert_int_equal(check(f, &l, false).faults, 0);
	fixture_fini(f);
}

TEST(an_image_whose_documents_are_damaged_is_a_fault_and_the_others_are_looked_at)
{
	static const uint32_t other[] = {7};
	struct fixture f_, *f = &f_;
	struct small_image one, two;
	struct lines l;
	struct fsck k;
	char path[128];

	init(f, &one);
	open_pool(f);
	small_image(f, &two, "two", other, 1);
	close_pool(f);
	path_of("blobs/sha256", &one.manifest, "", path);
	spoil(f, path, 10);
	spoil_chunk(f, 7);
	k = check(f, &l, false);
	assert_int_equal(k.faults, 3);
	assert_said(&l, "one: manifest");
	assert_said(&l, "is not what its name says");
	assert_said(&l, "two: 'file-7' is damaged");
	fixture_fini(f);
}

TEST(a_pool_that_was_moved_aside_is_filled_again)
{
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct lines l;
	struct fsck k;

	init(f, &one);
	assert_int_equal(sys_remove_tree(f->s.fd, "pool"), 0);
	k = check(f, &l, true);
	assert_int_equal(k.faults, 4); /* three chunks, and the metadata image is of another pool */
	assert_int_equal(k.repaired, 4);
	small_verify_well(f, &one);
	assert_int_equal(check(f, &l, false).faults, 0);
	fixture_fini(f);
}

static int flag(void *ctx, const struct chunk *c, struct err *e)
{
	(void)e;
	*(struct chunk *)ctx = *c;
	return 0;
}

/* Two processes wrote the same data at the same time: either copy mends the other. */
TEST(a_second_copy_is_looked_at_and_mended_from_the_first)
{
	static const uint32_t seed[] = {1};
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct chunk twin = {.block = CHUNK_NO_BLOCK};
	struct lines l;
	struct fsck k;
	char path[128];
	int fds[2], go[2], status;
	pid_t pid;

	fixture_init(f);
	close_pool(f);
	assert_int_equal(sys_pipe(fds), 0);
	assert_int_equal(sys_pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		char c;

		open_pool(f);
		put_file(f, "file-1", 5000, 1, &(struct attr){.mode = 0644});
		(void)!write(fds[1], "x", 1);
		(void)!read(go[0], &c, 1); /* the parent has recorded its own */
		need(pool_commit(f->p, &f->e));
		close_pool(f);
		_exit(0);
	}
	assert_int_equal(sys_read_all(fds[0], path, 1), 0);
	open_pool(f);
	small_image(f, &one, "one", seed, 1);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	need(pool_each(f->p, true, flag, &twin, &f->e));
	close_pool(f);
	assert_int_not_equal(twin.block, CHUNK_NO_BLOCK);
	spoil(f, "pool/data", (off_t)twin.block * POOL_BLOCK + 5);
	k = check(f, &l, true);
	assert_int_equal(k.faults, 1);
	assert_int_equal(k.repaired, 1);
	assert_said(&l, "a second copy");
	assert_int_equal(check(f, &l, false).faults, 0);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(go[i]);
	}
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(a_pool_that_was_moved_aside_is_filled_again),
	cmocka_unit_test(a_second_copy_is_looked_at_and_mended_from_the_first),
	cmocka_unit_test(a_store_that_is_right_has_no_faults),
	cmocka_unit_test(an_empty_store_has_no_faults),
	cmocka_unit_test(
		a_damaged_chunk_is_named_with_its_image_and_file_and_repaired_from_its_layer),
	cmocka_unit_test(a_chunk_that_the_pool_lacks_is_put_there_from_its_layer),
	cmocka_unit_test(a_damaged_chunk_that_no_image_has_is_forgotten),
	cmocka_unit_test(what_cannot_be_had_again_stays_a_fault_that_is_named),
	cmocka_unit_test(layers_of_an_image_that_came_from_a_registry_may_be_away),
	cmocka_unit_test(damaged_blobs_are_named_and_go_when_they_can_be_had_again),
	cmocka_unit_test(a_damaged_metadata_image_is_removed_and_made_again),
	cmocka_unit_test(
		an_image_whose_documents_are_damaged_is_a_fault_and_the_others_are_looked_at))
