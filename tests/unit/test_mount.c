#include "images/mount.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "images/layer.h"
#include "images/mount-image.h"
#include "tests/unit/fixture.h"

/* An image by any digest: with its tree at hand, nothing else of it is asked for. */
static const struct digest image = {{0xab, 0xcd}};

static int init(struct fixture *f)
{
	if (geteuid() != 0) {
		print_message("SKIPPED: mounting needs root\n");
		return -1;
	}
	fixture_init(f);
	sample_tree(f);
	need(pool_commit(f->p, &f->e));
	need(mount_prepare(&f->s, &image, f->t, &f->e));
	return 0;
}

static int mounts_below(const char *path)
{
	char line[4096];
	FILE *p = fopen("/proc/self/mountinfo", "r");
	int n = 0;

	assert_non_null(p);
	while (fgets(line, sizeof(line), p))
		n += strstr(line, path) != NULL;
	fclose(p);
	return n;
}

static void assert_readable(const struct mount *m)
{
	auto_free char *file = mem_printf("%s/files/size-100", m->path);
	unsigned char data[128];
	int fd = open(file, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, data, sizeof(data)), 100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(data[i], data_at(i, 3));
	close(fd);
}

static void path_in_store(struct fixture *f, char out[256], const char *folder, const char *ending)
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, 256, "%.60s/%s/%s%s", f->path, folder, digest_hex(&image, hex), ending);
}

TEST(the_last_share_unmounts)
{
	struct fixture f_, *f = &f_;
	struct mount a, b;

	if (init(f) < 0)
		return;
	need(mount_open(&a, &f->s, &image, &f->e));
	assert_readable(&a);
	need(mount_open(&b, &f->s, &image, &f->e));
	assert_int_equal(mounts_below(f->path), 1);
	mount_close(&a, &f->s);
	assert_int_equal(mounts_below(f->path), 1);
	assert_readable(&b);
	need(mount_sweep(&f->s, &f->e)); /* in use: stays */
	assert_readable(&b);
	mount_close(&b, &f->s);
	assert_int_equal(mounts_below(f->path), 0);
	need(mount_open(&a, &f->s, &image, &f->e)); /* and again */
	assert_readable(&a);
	mount_close(&a, &f->s);
	fixture_fini(f);
}

TEST(what_a_killed_process_left_is_swept)
{
	struct fixture f_, *f = &f_;
	struct mount m;
	pid_t pid;
	int status;

	if (init(f) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		if (mount_open(&m, &f->s, &image, NULL) < 0)
			_exit(1);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(mounts_below(f->path), 1);
	need(mount_sweep(&f->s, &f->e));
	assert_int_equal(mounts_below(f->path), 0);
	fixture_fini(f);
}

TEST(a_mount_in_which_somebody_stands_is_left_alone)
{
	struct fixture f_, *f = &f_;
	struct mount m;
	int inside;

	if (init(f) < 0)
		return;
	need(mount_open(&m, &f->s, &image, &f->e));
	inside = open(m.path, O_RDONLY | O_DIRECTORY);
	mount_close(&m, &f->s);
	assert_int_equal(mounts_below(f->path), 1);
	need(mount_sweep(&f->s, &f->e));
	assert_int_equal(mounts_below(f->path), 1);
	close(inside);
	need(mount_sweep(&f->s, &f->e));
	assert_int_equal(mounts_below(f->path), 0);
	fixture_fini(f);
}

TEST(a_deleted_image_leaves_nothing)
{
	struct fixture f_, *f = &f_;
	char lock[256], dir[256];
	struct mount m;

	if (init(f) < 0)
		return;
	path_in_store(f, lock, "mnt", ".lock");
	path_in_store(f, dir, "mnt", "");
	need(mount_open(&m, &f->s, &image, &f->e));
	need(mount_image_remove(&f->s, &image, &f->e));
	need(mount_sweep(&f->s, &f->e));
	assert_readable(&m);
	mount_close(&m, &f->s);
	assert_int_equal(access(lock, F_OK), 0);
	need(mount_sweep(&f->s, &f->e));
	assert_int_equal(access(lock, F_OK), -1);
	assert_int_equal(access(dir, F_OK), -1);
	f->e = (struct err){0};
	assert_int_equal(mount_open(&m, &f->s, &image, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_NOT_FOUND);
	fixture_fini(f);
}

/* A lock file that is swept away while somebody waits for it. */
TEST(a_lock_without_a_name_is_not_trusted)
{
	struct fixture f_, *f = &f_;
	struct mount m;
	char lock[256];
	int fd, status;
	pid_t pid;

	if (init(f) < 0)
		return;
	assert_int_equal(sys_mkdirat(f->s.fd, "mnt", 0700), 0);
	path_in_store(f, lock, "mnt", ".lock");
	fd = open(lock, O_RDWR | O_CREAT, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	pid = fork();
	if (pid == 0) {
		struct stat a, b;

		close(fd);
		if (mount_open(&m, &f->s, &image, NULL) < 0 || fstat(m.lock, &a) < 0 ||
			stat(lock, &b) < 0)
			_exit(1);
		mount_close(&m, &f->s);
		_exit(a.st_ino == b.st_ino ? 0 : 2);
	}
	usleep(50000);
	assert_int_equal(unlink(lock), 0);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fixture_fini(f);
}

static void open_and_close(struct fixture *f, unsigned seed)
{
	for (int i = 0; i < 60; i++) {
		struct err e = {0};
		struct mount m;
		char file[300];

		if (mount_open(&m, &f->s, &image, &e) < 0) {
			fprintf(stderr, "%s\n", e.text);
			_exit(1);
		}
		snprintf(file, sizeof(file), "%.200s/files/size-100", m.path);
		for (unsigned k = 0; k < (seed + (unsigned)i) % 3; k++)
			if (access(file, R_OK) < 0)
				_exit(2);
		mount_close(&m, &f->s);
		if (i % 8 == 0 && mount_sweep(&f->s, &e) < 0) {
			fprintf(stderr, "%s\n", e.text);
			_exit(3);
		}
	}
	_exit(0);
}

TEST(many_processes_at_once_never_lose_the_mount)
{
	enum { PROCESSES = 6 };
	struct fixture f_, *f = &f_;
	pid_t pid[PROCESSES];
	int status;

	if (init(f) < 0)
		return;
	for (unsigned i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			open_and_close(f, i);
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	need(mount_sweep(&f->s, &f->e));
	assert_int_equal(mounts_below(f->path), 0);
	fixture_fini(f);
}

TEST(a_cut_off_image_is_not_mounted_but_made_again)
{
	struct fixture f_, *f = &f_;
	struct mount m;
	char img[256];

	if (init(f) < 0)
		return;
	path_in_store(f, img, "erofs", ".img");
	assert_int_equal(truncate(img, 20000), 0);
	f->e = (struct err){0};
	assert_int_equal(mount_open(&m, &f->s, &image, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_NOT_FOUND);
	f->e = (struct err){0};
	assert_int_equal(mount_image_check(&f->s, &image, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	need(mount_prepare(&f->s, &image, f->t, &f->e));
	need(mount_image_check(&f->s, &image, &f->e));
	need(mount_open(&m, &f->s, &image, &f->e));
	assert_readable(&m);
	mount_close(&m, &f->s);
	fixture_fini(f);
}

/* The sha256 that a metadata image ends in. */
static int read_trailer_digest(struct fixture *f, const struct digest *manifest, struct digest *d)
{
	char name[128], hex[DIGEST_HEX + 1];
	struct stat st;
	int fd, rc;

	snprintf(name, sizeof(name), "erofs/%s.img", digest_hex(manifest, hex));
	fd = openat(f->s.fd, name, O_RDONLY);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	rc = sys_pread_all(fd, d, sizeof(*d), st.st_size - (off_t)sizeof(*d));
	close(fd);
	return rc;
}

static struct digest publish(struct fixture *f)
{
	auto_free struct node **v = mem_array(tree_count(f->t), sizeof(struct node *));
	auto_json json_t *config =
		json_pack("{s:s, s:s, s:{}}", "architecture", "amd64", "os", "linux", "config");
	struct layer l = {.id = "all", .codec = CODEC_ZSTD, .level = 1};
	struct image_plan plan = {.tree = f->t,
		.layers = &l,
		.nlayers = 1,
		.config = config,
		.created = "2024-01-01T00:00:00Z"};
	struct digest manifest;
	uint64_t size;
	size_t n = 0;

	for (struct node *k = tree_root(f->t); k; k = tree_next(k))
		v[n++] = k;
	need(layer_write(&l, 0, v, n, f->p, &f->s, NULL, &f->e));
	need(image_publish(&f->s, &plan, &manifest, &size, &f->e));
	return manifest;
}

TEST(a_missing_image_is_made_from_the_index_and_the_pool)
{
	struct fixture f_, *f = &f_;
	struct digest manifest, other;
	struct mount m;

	if (init(f) < 0)
		return;
	manifest = publish(f);
	assert_int_equal(mount_image_ready(&f->s, &manifest, &f->e), 0);
	need(mount_open(&m, &f->s, &manifest, &f->e));
	assert_readable(&m);
	mount_close(&m, &f->s);
	/* byte for byte what the tree at hand gives */
	assert_int_equal(read_trailer_digest(f, &manifest, &other), 0);
	assert_int_equal(read_trailer_digest(f, &image, &manifest), 0);
	assert_memory_equal(&manifest, &other, sizeof(other));
	fixture_fini(f);
}

TEST(an_altered_image_is_found_by_checking)
{
	struct fixture f_, *f = &f_;
	char img[256];
	int fd;

	if (init(f) < 0)
		return;
	path_in_store(f, img, "erofs", ".img");
	fd = open(img, O_RDWR);
	assert_int_equal(sys_pwrite_all(fd, "x", 1, 9999), 0);
	close(fd);
	f->e = (struct err){0};
	assert_int_equal(mount_image_ready(&f->s, &image, &f->e), 1); /* it looks only at the end */
	assert_int_equal(mount_image_check(&f->s, &image, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f->e.text, "expected sha256:"));
	assert_non_null(strstr(f->e.text, "found sha256:"));
	fixture_fini(f);
}

TEST(a_share_in_a_mounted_image_is_quick)
{
	enum { TIMES = 200 };
	struct fixture f_, *f = &f_;
	struct mount m, more[TIMES];
	double start, first, others, again;

	if (init(f) < 0)
		return;
	start = sys_now_ms();
	need(mount_open(&m, &f->s, &image, &f->e));
	first = sys_now_ms() - start;
	start = sys_now_ms();
	for (int i = 0; i < TIMES; i++)
		need(mount_open(&more[i], &f->s, &image, &f->e));
	others = (sys_now_ms() - start) / TIMES;
	for (int i = 0; i < TIMES; i++)
		mount_close(&more[i], &f->s);
	start = sys_now_ms();
	mount_close(&m, &f->s);
	again = sys_now_ms() - start;
	print_message("first %.3f ms, each other %.4f ms, unmount %.3f ms\n", first, others, again);
	assert_true(others < 2); /* 0.02 on a quiet machine */
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(the_last_share_unmounts),
	cmocka_unit_test(what_a_killed_process_left_is_swept),
	cmocka_unit_test(a_mount_in_which_somebody_stands_is_left_alone),
	cmocka_unit_test(a_deleted_image_leaves_nothing),
	cmocka_unit_test(a_lock_without_a_name_is_not_trusted),
	cmocka_unit_test(many_processes_at_once_never_lose_the_mount),
	cmocka_unit_test(a_cut_off_image_is_not_mounted_but_made_again),
	cmocka_unit_test(a_missing_image_is_made_from_the_index_and_the_pool),
	cmocka_unit_test(an_altered_image_is_found_by_checking),
	cmocka_unit_test(a_share_in_a_mounted_image_is_quick))
