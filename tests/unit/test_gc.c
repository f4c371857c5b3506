#include "images/gc.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "base/file.h"
#include "images/mount-keep.h"
#include "images/pool-sweep.h"
#include "tests/unit/small-image.h"

static struct gc_report gc(struct fixture *f, bool dry)
{
	struct gc_report r;

	need(gc_run(&f->s, dry, &r, NULL, &f->e));
	return r;
}

/* Is the data of a file of that seed in the pool? */
static bool in_pool(struct fixture *f, uint32_t seed)
{
	unsigned char data[5000];
	struct chunk c = {.length = sizeof(data)};
	int rc;

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = data_at(i, seed);
	c.digest = digest_of(data, sizeof(data));
	f->p = pool_open(f->s.fd, false, &f->e);
	if (!f->p)
		fail_msg("%s", f->e.text);
	rc = pool_find(f->p, &c, &f->e);
	need(pool_check_space(f->p, &f->e));
	close_pool(f);
	assert_true(rc >= 0);
	return rc;
}

static void touch(struct fixture *f, const char *path, long age)
{
	struct timespec t[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
	auto_free char *dir = mem_strdup(path);

	*strrchr(dir, '/') = '\0';
	assert_int_equal(sys_mkdir_p(f->s.fd, dir, 0700), 0);
	need(file_write(f->s.fd, path, "x", 1, 0600, &f->e));
	assert_int_equal(utimensat(f->s.fd, path, t, 0), 0);
}

static bool exists(struct fixture *f, const char *path)
{
	struct stat st;

	return sys_fstatat(f->s.fd, path, &st, 0) == 0;
}

TEST(what_is_used_stays)
{
	static const uint32_t a[] = {1, 2}, b[] = {2, 3};
	struct fixture f_, *f = &f_;
	struct small_image one, two;
	struct gc_report r;

	fixture_init(f);
	small_image(f, &one, "one", a, 2);
	small_image(f, &two, "two", b, 2);
	need(store_name_set(&f->s, "again", &two.manifest, two.size, NULL, &f->e));
	close_pool(f);
	r = gc(f, false);
	assert_int_equal(r.kept_images, 2);
	assert_int_equal(r.blobs + r.chunks + r.others, 0);
	assert_int_equal(r.blob_bytes + r.pool_bytes + r.other_bytes, 0);
	small_verify_well(f, &one);
	small_verify_well(f, &two);
	assert_true(in_store(f, "erofs", &one.manifest, ".img"));
	fixture_fini(f);
}

TEST(what_a_removed_image_had_alone_is_given_back)
{
	static const uint32_t a[] = {1, 2, 3, 4}, b[] = {4, 5};
	struct fixture f_, *f = &f_;
	struct small_image one, two;
	struct gc_report r, dry;
	uint64_t before;

	fixture_init(f);
	small_image(f, &one, "one", a, 4);
	small_image(f, &two, "two", b, 2);
	close_pool(f);
	small_remove(f, &one, "one");
	assert_false(in_store(f, "blobs/sha256", &one.manifest, ""));
	assert_true(in_pool(f, 1));
	before = pool_disk_bytes(f);
	dry = gc(f, true);
	assert_int_equal(pool_disk_bytes(f), before);
	assert_true(in_pool(f, 1));
	r = gc(f, false);
	assert_int_equal(dry.chunks, 3);
	assert_int_equal(r.chunks, 3);
	assert_int_equal(dry.pool_bytes, 3 * 8192);
	assert_int_equal(r.pool_bytes, 3 * 8192);
	assert_int_equal(pool_disk_bytes(f), before - r.pool_bytes);
	assert_false(in_pool(f, 1));
	assert_true(in_pool(f, 4));
	small_verify_well(f, &two);
	r = gc(f, false);
	assert_int_equal(r.blobs + r.chunks + r.others, 0);
	fixture_fini(f);
}

/* An image without a name, as a pull or build that was killed leaves it: all of it goes. */
TEST(what_no_name_leads_to_goes_with_its_files)
{
	static const uint32_t a[] = {1, 2}, b[] = {2};
	struct fixture f_, *f = &f_;
	struct small_image lost, kept;
	struct digest other;
	struct gc_report r;

	fixture_init(f);
	small_image(f, &lost, NULL, a, 2);
	small_image(f, &kept, "kept", b, 1);
	close_pool(f);
	need(image_index_put(&f->s, &lost.manifest, "x", 1, &f->e));
	need(image_index_put(&f->s, &kept.manifest, "x", 1, &f->e));
	need(store_blob_put(&f->s, "stray", 5, &other, &f->e));
	touch(f, "layers/0123456789012345678901234567890123456789012345678901234567890123", 0);
	r = gc(f, false);
	assert_int_equal(r.kept_images, 1);
	assert_int_equal(r.chunks, 1);
	assert_int_equal(r.blobs, 5);  /* manifest, config, layer, index layer, stray */
	assert_int_equal(r.others, 3); /* metadata image, index, list */
	assert_true(r.blob_bytes >= 5 * 4096);
	assert_false(in_store(f, "blobs/sha256", &lost.manifest, ""));
	assert_false(in_store(f, "blobs/sha256", &other, ""));
	assert_false(in_store(f, "erofs", &lost.manifest, ".img"));
	assert_false(in_store(f, "indexes", &lost.manifest, ""));
	assert_true(in_store(f, "indexes", &kept.manifest, ""));
	small_verify_well(f, &kept);
	fixture_fini(f);
}

TEST(the_images_of_an_index_stay_with_it)
{
	static const uint32_t a[] = {1}, b[] = {2};
	struct fixture f_, *f = &f_;
	struct small_image one, two;
	char x[DIGEST_TEXT + 1], y[DIGEST_TEXT + 1], z[DIGEST_TEXT + 1];
	struct digest missing = digest_of("?", 1), index;
	auto_free char *text = NULL;
	struct gc_report r;

	fixture_init(f);
	small_image(f, &one, NULL, a, 1);
	small_image(f, &two, NULL, b, 1);
	text = mem_printf(
		"{\"schemaVersion\":2,\"mediaType\":\"" OCI_INDEX_TYPE "\",\"manifests\":["
		"{\"mediaType\":\"" OCI_MANIFEST_TYPE "\",\"digest\":\"%s\",\"size\":%d},"
		"{\"mediaType\":\"" OCI_MANIFEST_TYPE "\",\"digest\":\"%s\",\"size\":%d},"
		"{\"mediaType\":\"" OCI_MANIFEST_TYPE "\",\"digest\":\"%s\",\"size\":9}]}",
		digest_text(&one.manifest, x), (int)one.size, digest_text(&two.manifest, y),
		(int)two.size, digest_text(&missing, z));
	need(store_blob_put(&f->s, text, strlen(text), &index, &f->e));
	need(store_name_set(&f->s, "both", &index, strlen(text), NULL, &f->e));
	close_pool(f);
	r = gc(f, false);
	assert_int_equal(r.blobs + r.chunks + r.others, 0);
	small_verify_well(f, &one);
	small_verify_well(f, &two);
	need(store_name_remove(&f->s, "both", &f->e));
	need(image_delete(&f->s, &index, &f->e));
	assert_false(in_store(f, "blobs/sha256", &one.manifest, ""));
	assert_false(in_store(f, "erofs", &two.manifest, ".img"));
	r = gc(f, false);
	assert_int_equal(r.chunks, 2);
	fixture_fini(f);
}

TEST(an_image_that_is_mounted_stays_although_its_name_went)
{
	static const uint32_t a[] = {1, 2};
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct mount m;
	struct gc_report r;
	struct err e = {0};

	if (geteuid() != 0)
		skip();
	fixture_init(f);
	small_image(f, &one, "one", a, 2);
	close_pool(f);
	need(mount_open(&m, &f->s, &one.manifest, &f->e));
	need(store_name_remove(&f->s, "one", &f->e));
	assert_int_equal(image_claim(&f->s, &one.manifest, &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	r = gc(f, false);
	assert_int_equal(r.kept_images, 1);
	assert_int_equal(r.blobs + r.chunks + r.others, 0);
	small_verify_well(f, &one);
	mount_close(&m, &f->s);
	r = gc(f, false);
	assert_int_equal(r.kept_images, 0);
	assert_int_equal(r.chunks, 2);
	assert_int_equal(r.blobs, 4);
	need(mount_sweep(&f->s, &f->e));
	assert_false(in_store(f, "mnt", &one.manifest, ".lock"));
	fixture_fini(f);
}

TEST(an_image_that_is_mounted_to_look_at_stays)
{
	static const uint32_t a[] = {1};
	struct fixture f_, *f = &f_;
	struct small_image one;
	struct mount m;

	if (geteuid() != 0)
		skip();
	fixture_init(f);
	small_image(f, &one, "one", a, 1);
	close_pool(f);
	need(mount_open(&m, &f->s, &one.manifest, &f->e));
	need(mount_keep(&f->s, &one.manifest, &f->e));
	mount_close(&m, &f->s);
	need(store_name_remove(&f->s, "one", &f->e));
	assert_int_equal(gc(f, false).chunks, 0);
	small_verify_well(f, &one);
	need(mount_unkeep(&f->s, &one.manifest, &f->e));
	need(mount_sweep(&f->s, &f->e));
	assert_int_equal(gc(f, false).chunks, 1);
	fixture_fini(f);
}

TEST(of_an_image_that_cannot_be_read_nothing_goes_and_of_the_others_neither)
{
	static const uint32_t a[] = {1}, b[] = {2}, c[] = {3};
	struct fixture f_, *f = &f_;
	struct small_image one, two, lost;
	struct gc_report r;
	char path[128], hex[DIGEST_HEX + 1];

	fixture_init(f);
	small_image(f, &one, "one", a, 1);
	small_image(f, &two, "two", b, 1);
	small_image(f, &lost, NULL, c, 1);
	close_pool(f);
	snprintf(path, sizeof(path), "blobs/sha256/%s", digest_hex(&two.manifest, hex));
	need(file_write(f->s.fd, path, "{}", 2, 0600, &f->e));
	assert_int_equal(gc_run(&f->s, false, &r, NULL, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	hex[12] = '\0';
	assert_non_null(strstr(f->e.text, hex));
	assert_non_null(strstr(f->e.text, "nothing was removed"));
	assert_true(in_pool(f, 3));
	assert_true(in_store(f, "blobs/sha256", &lost.manifest, ""));
	assert_true(in_store(f, "erofs", &lost.manifest, ".img"));
	fixture_fini(f);
}

TEST(old_temporary_files_go_and_young_ones_stay)
{
	static const struct {
		const char *path;
		long age;
		bool stays;
	} files[] = {
		{"./.tmp.1.2", 7200, false},
		{"blobs/sha256/.tmp.1.2", 7200, false},
		{"blobs/sha256/.tmp.1.3", 60, true},
		{"blobs/sha256/notes", 7200, true},
		{"layers/.tmp.9.9", 7200, false},
		{"cache/partial/sha256-abc", 2 * 86400, false},
		{"cache/partial/sha256-abd", 7200, true},
		{"cache/sha256/abc", 2 * 86400, true},
	};
	struct fixture f_, *f = &f_;
	struct gc_report r;

	fixture_init(f);
	close_pool(f);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		touch(f, files[i].path, files[i].age);
	r = gc(f, false);
	assert_int_equal(r.others, 4);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (exists(f, files[i].path) != files[i].stays)
			fail_msg("%s", files[i].path);
	r = (struct gc_report){0};
	need(gc_cache(&f->s, false, &r, &f->e));
	assert_int_equal(r.others, 1);
	assert_false(exists(f, "cache/sha256/abc"));
	fixture_fini(f);
}

/* ---- killed ---- */

struct killer {
	size_t calls, die_at;
};

static bool keep_none(void *ctx, const struct digest *d)
{
	struct killer *k = ctx;

	(void)d;
	if (++k->calls == k->die_at)
		raise(SIGKILL);
	return false;
}

enum { MANY = 9000 };

static void put_many(struct fixture *f)
{
	for (uint32_t i = 0; i < MANY; i++) {
		struct chunk c;

		need(pool_put(f->p, &i, sizeof(i), &c, &f->e));
	}
	need(pool_commit(f->p, &f->e));
}

static int count(void *ctx, const struct chunk *c, struct err *e)
{
	(void)c;
	(void)e;
	++*(size_t *)ctx;
	return 1;
}

/* In the middle of a sweep some transactions are done and their space is not given back. */
TEST(a_sweep_that_was_killed_leaves_a_pool_that_is_right_and_the_next_one_ends_it)
{
	static const size_t points[] = {1, 4097, 5000, 8200, MANY};

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		struct killer k = {.die_at = points[i]}, none = {0};
		struct pool_sweep w = {.keep = keep_none, .ctx = &k};
		struct fixture f_, *f = &f_;
		size_t left = 0;
		pid_t pid;
		int status;

		fixture_init(f);
		put_many(f);
		close_pool(f);
		pid = fork();
		if (pid == 0) {
			f->p = pool_open_alone(f->s.fd, NULL);
			(void)!pool_sweep(f->p, &w, NULL);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		f->p = pool_open_alone(f->s.fd, &f->e);
		assert_non_null(f->p);
		need(pool_check_space(f->p, &f->e));
		need(pool_each(f->p, false, count, &left, &f->e));
		assert_int_equal(left, MANY - (points[i] - 1) / 4096 * 4096);
		w.ctx = &none;
		need(pool_sweep(f->p, &w, &f->e));
		assert_int_equal(w.chunks, left);
		assert_true(w.bytes >=
			    (uint64_t)(MANY - 1) * POOL_BLOCK); /* all of it, whoever freed it */
		need(pool_check_space(f->p, &f->e));
		assert_true(pool_disk_bytes(f) <= 2 * POOL_BLOCK);
		fixture_fini(f);
	}
}

TEST(a_collection_that_was_killed_anywhere_can_be_run_again)
{
	static const uint32_t a[] = {1, 2, 3}, b[] = {3, 4}, c[] = {9};
	struct fixture f_, *f = &f_;
	struct small_image one, two;
	struct gc_report r;

	fixture_init(f);
	small_image(f, &one, "one", a, 3);
	for (unsigned i = 0; i < 12; i++) {
		struct small_image lost;
		pid_t pid;
		int status;

		small_image(f, &two, "two", b, 2);
		small_image(f, &lost, NULL, c, 1);
		close_pool(f);
		small_remove(f, &two, "two");
		pid = fork();
		if (pid == 0) {
			(void)!gc_run(&f->s, false, &r, NULL, NULL);
			_exit(0);
		}
		usleep(i * 300);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		small_verify_well(f, &one);
		assert_true(in_pool(f, 3));
		open_pool(f);
	}
	close_pool(f);
	gc(f, false);
	assert_false(in_pool(f, 4));
	assert_false(in_pool(f, 9));
	small_verify_well(f, &one);
	fixture_fini(f);
}

/* ---- at the same time ---- */

enum { ROUNDS = 20 };

/* Builds images, names them, removes every other one. */
static void write_images(struct fixture *f, uint32_t base)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t seeds[] = {7, base + i, base + i + 1};
		struct small_image x;
		char name[32];

		snprintf(name, sizeof(name), "image-%u-%u", base, i);
		open_pool(f);
		small_image(f, &x, name, seeds, 3);
		close_pool(f);
		if (i % 2)
			small_remove(f, &x, name);
	}
}

static pid_t spawn(struct fixture *f, void (*fn)(struct fixture *f, uint32_t n), uint32_t n)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		fn(f, n);
		_exit(0);
	}
	return pid;
}

static void collect_often(struct fixture *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		gc(f, false);
}

static void wait_for(pid_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int status;

		assert_int_equal(waitpid(v[i], &status, 0), v[i]);
		assert_int_equal(status, 0);
	}
}

TEST(collections_beside_builds_and_each_other_take_nothing_that_is_used)
{
	struct fixture f_, *f = &f_;
	struct store_name *v;
	size_t n;
	pid_t pids[4];

	fixture_init(f);
	close_pool(f);
	pids[0] = spawn(f, write_images, 1000);
	pids[1] = spawn(f, write_images, 2000);
	pids[2] = spawn(f, collect_often, 15);
	pids[3] = spawn(f, collect_often, 15);
	wait_for(pids, 4);
	need(store_names(&f->s, &v, &n, &f->e));
	assert_int_equal(n, ROUNDS);
	for (size_t i = 0; i < n; i++) {
		struct small_image x = {.manifest = v[i].manifest};

		small_verify_well(f, &x);
	}
	store_names_free(v, n);
	gc(f, false);
	assert_false(in_pool(f, 1000 + ROUNDS));
	assert_true(in_pool(f, 7));
	fixture_fini(f);
}

static void mount_often(struct fixture *f, uint32_t n)
{
	struct small_image x;
	uint32_t seed = 77;

	open_pool(f);
	small_image(f, &x, "run", &seed, 1);
	close_pool(f);
	for (uint32_t i = 0; i < n; i++) {
		unsigned char data[5000];
		struct mount m;

		need(mount_open(&m, &f->s, &x.manifest, &f->e));

		auto_free char *path = mem_printf("%s/file-77", m.path);
		auto_fd int fd = open(path, O_RDONLY);

		assert_true(fd >= 0);
		assert_int_equal(sys_pread_all(fd, data, sizeof(data), 0), 0);
		for (uint32_t k = 0; k < sizeof(data); k++)
			assert_int_equal(data[k], data_at(k, 77));
		sys_close_ref(&fd);
		mount_close(&m, &f->s);
	}
}

TEST(collections_beside_instances_that_start_and_end_do_no_harm)
{
	struct fixture f_, *f = &f_;
	pid_t pids[3];

	if (geteuid() != 0)
		skip();
	fixture_init(f);
	close_pool(f);
	pids[0] = spawn(f, mount_often, 40);
	pids[1] = spawn(f, collect_often, 20);
	pids[2] = spawn(f, write_images, 3000);
	wait_for(pids, 3);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(what_is_used_stays),
	cmocka_unit_test(what_a_removed_image_had_alone_is_given_back),
	cmocka_unit_test(what_no_name_leads_to_goes_with_its_files),
	cmocka_unit_test(the_images_of_an_index_stay_with_it),
	cmocka_unit_test(an_image_that_is_mounted_stays_although_its_name_went),
	cmocka_unit_test(an_image_that_is_mounted_to_look_at_stays),
	cmocka_unit_test(of_an_image_that_cannot_be_read_nothing_goes_and_of_the_others_neither),
	cmocka_unit_test(old_temporary_files_go_and_young_ones_stay),
	cmocka_unit_test(
		a_sweep_that_was_killed_leaves_a_pool_that_is_right_and_the_next_one_ends_it),
	cmocka_unit_test(a_collection_that_was_killed_anywhere_can_be_run_again),
	cmocka_unit_test(collections_beside_builds_and_each_other_take_nothing_that_is_used),
	cmocka_unit_test(collections_beside_instances_that_start_and_end_do_no_harm))
