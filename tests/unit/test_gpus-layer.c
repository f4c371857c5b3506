#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "svrun/gpus-layer.h"

struct fixture {
	char run[40], image[48];
	struct gpu_host host;
	struct gpu_edits x;
};

static int make(void **state)
{
	struct fixture *f = mem_alloc(sizeof(*f));

	snprintf(f->run, sizeof(f->run), "/tmp/svrun-layer.XXXXXX");
	assert_non_null(mkdtemp(f->run));
	snprintf(f->image, sizeof(f->image), "%s/image", f->run);
	assert_int_equal(sys_mkdirat(AT_FDCWD, f->image, 0755), 0);
	f->host = (struct gpu_host){-1, -1, -1, -1, "", f->run};
	gpu_edits_init(&f->x);
	*state = f;
	return 0;
}

static int drop(void **state)
{
	struct fixture *f = *state;

	gpu_edits_fini(&f->x);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->run), 0);
	free(f);
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)

/* What of the layer comes into a root; the layer stays locked until the test ends. */
static int layer_of(struct fixture *f, const char *digest)
{
	const struct gpus_layer_image image = {f->image, digest};
	struct err e = {0};
	int fd, root;

	if (geteuid() != 0)
		skip(); /* an overlay is mounted */
	if (gpus_layer_open(&f->x, &f->host, &image, &fd, &e) < 0)
		fail_msg("%s", e.text);
	if (fd < 0)
		return -1;
	root = sys_openat(fd, "root", O_RDONLY | O_DIRECTORY, 0);
	sys_close_ref(&fd);
	return root;
}

static int layer(struct fixture *f)
{
	return layer_of(f, "sha256:1");
}

static bool has(int fd, const char *path)
{
	return faccessat(fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void add_mount(struct fixture *f, const char *source, const char *destination)
{
	const struct edit_mount m = {.source = source, .destination = destination};

	gpu_edits_mount(&f->x, &m);
}

TEST(nothing_to_be_in_it_is_no_layer)
{
	struct fixture *f = *state;

	gpu_edits_env(&f->x, "A", "1");
	assert_int_equal(layer(f), -1);
}

TEST(links_and_mount_points_are_in_it)
{
	struct fixture *f = *state;
	char target[16] = "";

	gpu_edits_link(&f->x, "/usr/bin/nvidia-smi", "/usr/local/x");
	gpu_edits_link(&f->x, "/top", "t");
	add_mount(f, "/etc", "/usr/local/nvidia");
	add_mount(f, "/etc/passwd", "/run/a/socket");
	add_mount(f, "/nonexistent", "/gone");
	auto_fd int fd = layer(f);

	assert_true(readlinkat(fd, "usr/bin/nvidia-smi", target, sizeof(target) - 1) > 0);
	assert_string_equal(target, "/usr/local/x");
	assert_true(has(fd, "top") && has(fd, "usr/local/nvidia/.") && has(fd, "run/a/socket"));
	assert_false(has(fd, "run/a/socket/.") || has(fd, "gone"));
}

TEST(the_same_edits_have_the_same_layer_and_others_another)
{
	struct fixture *f = *state;
	struct stat one, same, other, image;

	gpu_edits_link(&f->x, "/a", "b");
	auto_fd int fd = layer(f);
	auto_fd int again = layer(f);
	auto_fd int elsewhere = layer_of(f, "sha256:2");
	gpu_edits_link(&f->x, "/a", "c");
	auto_fd int third = layer(f);

	assert_int_equal(sys_fstat(fd, &one) + sys_fstat(again, &same) + sys_fstat(third, &other) +
				 sys_fstat(elsewhere, &image),
		0);
	assert_int_not_equal(one.st_ino, image.st_ino);
	assert_int_equal(one.st_ino, same.st_ino);
	assert_int_not_equal(one.st_ino, other.st_ino);
}

/* A spec is the host's own, but may be wrong; what has no place is left to gpu_edits_fill(). */
TEST(nothing_of_it_leads_out)
{
	static const char *const paths[] = {"/../out", "/a/../../out", "relative", "/", "", "//out",
		"/dev/x", "/dev", "/proc/x", "/sys/y", "/way/out", "/link/x", "/link/y/z"};
	struct fixture *f = *state;
	auto_free char *outside = mem_printf("%s/outside", f->run);

	assert_int_equal(sys_mkdirat(AT_FDCWD, outside, 0755), 0);
	gpu_edits_link(&f->x, "/link", outside);
	gpu_edits_link(&f->x, "/way", outside);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		gpu_edits_link(&f->x, paths[i], "target");
	auto_fd int fd = layer(f);
	auto_free char *x = mem_printf("%s/x", outside), *out = mem_printf("%s/out", outside),
		       *y = mem_printf("%s/y", outside);

	assert_true(has(fd, "link") && has(fd, "way"));
	assert_false(
		has(AT_FDCWD, x) || has(AT_FDCWD, y) || has(AT_FDCWD, out) || has(fd, "../out"));
	assert_false(has(fd, "dev") || has(fd, "proc") || has(fd, "sys"));
}

RUN_TESTS(CASE(nothing_to_be_in_it_is_no_layer), CASE(links_and_mount_points_are_in_it),
	CASE(the_same_edits_have_the_same_layer_and_others_another), CASE(nothing_of_it_leads_out))
