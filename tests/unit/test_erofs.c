#include "images/erofs.h"

#include <sys/wait.h>

#include "base/proc.h"
#include "images/digest.h"
#include "tests/unit/fixture.h"

static void write_image(struct fixture *f, const char *name)
{
	int fd = openat(f->s.fd, name, O_RDWR | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	need(erofs_write(f->t, (uint64_t)1 << 31, fd, &f->e));
	close(fd);
}

static struct digest image_digest(struct fixture *f, const char *name)
{
	auto_free unsigned char *p = NULL;
	struct stat st;
	int fd = openat(f->s.fd, name, O_RDONLY);

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size % 4096, 0);
	p = mem_alloc((size_t)st.st_size);
	assert_int_equal(sys_pread_all(fd, p, (size_t)st.st_size, 0), 0);
	close(fd);
	return digest_of(p, (size_t)st.st_size);
}

static int fsck(struct fixture *f, const char *name)
{
	auto_free char *device = mem_printf("--device=%s/pool/data", f->path);
	auto_free char *extract = mem_printf("--extract=%s/out", f->path);
	auto_free char *image = mem_printf("%s/%s", f->path, name);
	const char *argv[] = {"fsck.erofs", device, extract, image, NULL};
	int rc;

	need(rc = proc_run(&(struct proc){.argv = argv}, &f->e));
	return rc;
}

TEST(fsck_erofs_accepts_and_extracts_the_image)
{
	struct fixture f_, *f = &f_;
	auto_free char *out = NULL;
	struct stat st;
	int fd;

	if (system("command -v fsck.erofs >/dev/null") != 0) {
		print_message("SKIPPED: fsck.erofs is not installed\n");
		return;
	}
	fixture_init(f);
	sample_tree(f);
	need(pool_commit(f->p, &f->e));
	write_image(f, "image");
	assert_int_equal(fsck(f, "image"), 0);
	out = mem_printf("%s/out/files/size-1048577", f->path);
	assert_int_equal(stat(out, &st), 0);
	assert_int_equal(st.st_size, CHUNK_SIZE + 1);
	/* and it does look: the root's first name is no longer in order */
	fd = openat(f->s.fd, "image", O_RDWR);
	assert_int_equal(sys_pwrite_all(fd, "\xff\xff\xff\xff", 4, 40 * 32 + 64), 0);
	close(fd);
	assert_int_not_equal(fsck(f, "image"), 0);
	fixture_fini(f);
}

TEST(the_same_tree_gives_the_same_image)
{
	struct fixture f_, *f = &f_;
	struct digest a, b;

	fixture_init(f);
	sample_tree(f);
	write_image(f, "one");
	write_image(f, "two");
	a = image_digest(f, "one");
	b = image_digest(f, "two");
	assert_memory_equal(&a, &b, sizeof(a));
	fixture_fini(f);
}

TEST(blocks_beyond_what_erofs_addresses_are_refused)
{
	struct fixture f_, *f = &f_;
	struct chunk c = {.length = 5, .block = UINT32_MAX};
	struct attr a = {.type = NODE_FILE, .mode = 0644, .size = 5, .chunks = &c, .nchunks = 1};
	int fd;

	fixture_init(f);
	put_node(f, "far/file", &a);
	tree_sort(f->t);
	fd = openat(f->s.fd, "image", O_RDWR | O_CREAT, 0600);
	assert_int_equal(erofs_write(f->t, (uint64_t)1 << 33, fd, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_UNSUPPORTED);
	assert_non_null(strstr(f->e.text, "'file'"));
	tree_find(f->t, "far/file")->a.chunks[0].block = UINT32_MAX - 1;
	need(erofs_write(f->t, (uint64_t)1 << 33, fd, &f->e));
	close(fd);
	fixture_fini(f);
}

TEST(the_root_has_the_first_place)
{
	struct fixture f_, *f = &f_;
	unsigned char super[128];
	int fd;

	fixture_init(f);
	sample_tree(f);
	write_image(f, "image");
	fd = openat(f->s.fd, "image", O_RDONLY);
	assert_int_equal(sys_pread_all(fd, super, sizeof(super), 1024), 0);
	assert_memory_equal(super, "\xe2\xe1\xf5\xe0", 4);
	assert_int_equal(super[14] | super[15] << 8, 40);
	close(fd);
	fixture_fini(f);
}

TEST(a_full_disk_is_named)
{
	struct fixture f_, *f = &f_;
	int fd = open("/dev/full", O_WRONLY);

	if (fd < 0) {
		print_message("SKIPPED: no /dev/full\n");
		return;
	}
	fixture_init(f);
	sample_tree(f);
	assert_int_equal(erofs_write(f->t, (uint64_t)1 << 31, fd, &f->e), -1);
	assert_non_null(strstr(f->e.text, "No space left"));
	assert_true(f->e.hint[0] != '\0');
	close(fd);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(fsck_erofs_accepts_and_extracts_the_image),
	cmocka_unit_test(the_same_tree_gives_the_same_image),
	cmocka_unit_test(blocks_beyond_what_erofs_addresses_are_refused),
	cmocka_unit_test(the_root_has_the_first_place), cmocka_unit_test(a_full_disk_is_named))
