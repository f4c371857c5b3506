/* What the kernel makes of a metadata image, compared with the tree it was made from. */
#include "images/mount-fs.h"

#include <errno.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "images/erofs.h"
#include "tests/unit/fixture.h"

struct mounted {
	struct fixture f;
	char image[96], pool[96], dir[96];
};

static void write_image(struct mounted *m)
{
	struct fixture *f = &m->f;
	int fd;

	snprintf(m->image, sizeof(m->image), "%s/image", f->path);
	snprintf(m->pool, sizeof(m->pool), "%s/pool/data", f->path);
	snprintf(m->dir, sizeof(m->dir), "%s/dir", f->path);
	need(pool_commit(f->p, &f->e));
	fd = open(m->image, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	need(erofs_write(f->t, (uint64_t)1 << 31, fd, &f->e));
	close(fd);
}

static void attach(struct mounted *m, enum mount_how how)
{
	struct fixture *f = &m->f;
	int fd;

	need(fd = mount_fs(m->image, m->pool, how, &f->e));
	assert_int_equal(mkdir(m->dir, 0700), 0);
	assert_int_equal(sys_move_mount(fd, "", AT_FDCWD, m->dir, MOVE_MOUNT_F_EMPTY_PATH), 0);
	close(fd);
}

static void detach(struct mounted *m)
{
	assert_int_equal(umount2(m->dir, 0), 0);
	assert_int_equal(rmdir(m->dir), 0);
}

static void compare_data(int fd, const struct node *n, uint32_t seed, const char *path)
{
	unsigned char *data = mem_alloc(n->a.size + 1);

	assert_int_equal(read(fd, data, n->a.size + 1), n->a.size);
	for (uint64_t i = 0; i < n->a.size; i++)
		if (data[i] != data_at(i, seed))
			fail_msg("%s: byte %llu differs", path, (unsigned long long)i);
	free(data);
}

static void compare_xattrs(const char *full, const struct node *n)
{
	static char list[70000], value[70000];
	ssize_t len = llistxattr(full, list, sizeof(list));
	uint32_t count = 0;

	if (len < 0)
		fail_msg("llistxattr %s: %s", full, strerror(errno));
	for (ssize_t i = 0; i < len; i += (ssize_t)strlen(list + i) + 1)
		count++;
	assert_int_equal(count, n->a.nxattrs);
	for (uint32_t i = 0; i < n->a.nxattrs; i++) {
		const struct xattr *x = &n->a.xattrs[i];

		assert_int_equal(lgetxattr(full, x->name, value, sizeof(value)), x->len);
		assert_memory_equal(value, x->value, x->len);
	}
}

static mode_t type_bits(const struct node *n)
{
	static const mode_t bits[] = {
		[NODE_DIR] = S_IFDIR,
		[NODE_FILE] = S_IFREG,
		[NODE_SYMLINK] = S_IFLNK,
		[NODE_FIFO] = S_IFIFO,
		[NODE_CHAR] = S_IFCHR,
		[NODE_BLOCK] = S_IFBLK,
	};

	return bits[n->a.type];
}

static void compare_node(struct mounted *m, const struct node *name, int check_data)
{
	static char full[2 * TREE_PATH_MAX], path[TREE_PATH_MAX + 1], target[TREE_PATH_MAX + 1];
	const struct node *n = name->link ? name->link : name;
	struct stat st;
	int fd;

	node_path(name, path);
	snprintf(full, sizeof(full), "%s/%s", m->dir, path);
	if (lstat(full, &st) < 0)
		fail_msg("lstat %s: %s", full, strerror(errno));
	assert_int_equal(st.st_mode, type_bits(n) | n->a.mode);
	assert_int_equal(st.st_uid, n->a.uid);
	assert_int_equal(st.st_gid, n->a.gid);
	assert_int_equal(st.st_mtime, n->a.mtime);
	assert_int_equal(st.st_nlink, n->nlink);
	assert_int_equal(st.st_ino, n->scratch);
	if (n->a.type == NODE_CHAR || n->a.type == NODE_BLOCK)
		assert_int_equal(st.st_rdev, makedev(n->a.major, n->a.minor));
	if (n->a.type == NODE_SYMLINK) {
		assert_int_equal(readlink(full, target, sizeof(target)), strlen(n->a.target));
		assert_memory_equal(target, n->a.target, strlen(n->a.target));
	}
	if (n->a.type == NODE_FILE) {
		assert_int_equal(st.st_size, n->a.size);
		fd = open(full, O_RDONLY);
		assert_true(fd >= 0);
		if (check_data)
			compare_data(fd, n, n->origin, path);
		close(fd);
	}
	compare_xattrs(full, n);
}

static void compare_tree(struct mounted *m)
{
	size_t n = 0;

	for (struct node *k = tree_root(m->f.t); k; k = tree_next(k), n++)
		compare_node(m, k, 1);
	assert_int_equal(n, tree_count(m->f.t));
}

/* Every name that readdir gives is in the tree, and none is missing. */
static void compare_listing(struct mounted *m)
{
	char command[512];
	size_t n = 0;
	FILE *p;

	snprintf(command, sizeof(command), "find %s -xdev -printf . ", m->dir);
	p = popen(command, "r");
	assert_non_null(p);
	while (fgetc(p) != EOF)
		n++;
	assert_int_equal(pclose(p), 0);
	assert_int_equal(n, tree_count(m->f.t));
}

static int root_only(void)
{
	if (geteuid() == 0)
		return 0;
	print_message("SKIPPED: mounting needs root\n");
	return 1;
}

static void sample_mounts_as(enum mount_how how)
{
	struct mounted m;

	if (root_only())
		return;
	fixture_init(&m.f);
	sample_tree(&m.f);
	write_image(&m);
	attach(&m, how);
	compare_tree(&m);
	compare_listing(&m);
	detach(&m);
	fixture_fini(&m.f);
}

TEST(the_kernel_shows_the_tree)
{
	sample_mounts_as(MOUNT_ANY);
}

TEST(loop_devices_show_the_same_tree)
{
	if (access("/dev/loop-control", R_OK | W_OK) < 0) {
		print_message("SKIPPED: no loop devices\n");
		return;
	}
	sample_mounts_as(MOUNT_BY_LOOP);
}

TEST(a_folder_of_a_hundred_thousand_names_is_found_and_listed)
{
	struct mounted m;
	char path[64];
	struct node *n;

	if (root_only())
		return;
	fixture_init(&m.f);
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(path, sizeof(path), "d/%x", i * 2654435761u);
		put_node(&m.f, path, &(struct attr){.type = NODE_FILE, .mode = 0644});
	}
	tree_sort(m.f.t);
	write_image(&m);
	attach(&m, MOUNT_ANY);
	compare_listing(&m);
	n = tree_find(m.f.t, "d")->child;
	for (unsigned i = 0; n; n = n->next, i++)
		if (i % 97 == 0)
			compare_node(&m, n, 1);
	detach(&m);
	fixture_fini(&m.f);
}

TEST(an_empty_tree_mounts)
{
	struct mounted m;

	if (root_only())
		return;
	fixture_init(&m.f);
	tree_sort(m.f.t);
	write_image(&m);
	attach(&m, MOUNT_ANY);
	compare_tree(&m);
	compare_listing(&m);
	detach(&m);
	fixture_fini(&m.f);
}

TEST(the_mount_is_read_only_nosuid_and_nodev)
{
	struct mounted m;
	char line[4096];
	int found = 0;
	FILE *p;

	if (root_only())
		return;
	fixture_init(&m.f);
	sample_tree(&m.f);
	write_image(&m);
	attach(&m, MOUNT_ANY);
	p = fopen("/proc/self/mountinfo", "r");
	assert_non_null(p);
	while (fgets(line, sizeof(line), p))
		if (strstr(line, m.dir)) {
			assert_non_null(strstr(line, " ro,nosuid,nodev"));
			found++;
		}
	fclose(p);
	assert_int_equal(found, 1);
	snprintf(line, sizeof(line), "%s/new", m.dir);
	assert_int_equal(mkdir(line, 0700), -1);
	assert_int_equal(errno, EROFS);
	detach(&m);
	fixture_fini(&m.f);
}

TEST(what_is_no_image_is_refused_as_corrupt)
{
	struct mounted m;
	struct fixture *f = &m.f;

	if (root_only())
		return;
	fixture_init(&m.f);
	tree_sort(m.f.t);
	write_image(&m);
	assert_int_equal(truncate(m.image, 1024), 0);
	assert_int_equal(truncate(m.image, 8192), 0); /* the superblock is zero now */
	f->e = (struct err){0};
	assert_int_equal(mount_fs(m.image, m.pool, MOUNT_ANY, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f->e.text, m.image));
	f->e = (struct err){0};
	assert_int_equal(mount_fs("/none", m.pool, MOUNT_ANY, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_NOT_FOUND);
	fixture_fini(&m.f);
}

RUN_TESTS(cmocka_unit_test(the_kernel_shows_the_tree),
	cmocka_unit_test(loop_devices_show_the_same_tree),
	cmocka_unit_test(a_folder_of_a_hundred_thousand_names_is_found_and_listed),
	cmocka_unit_test(an_empty_tree_mounts),
	cmocka_unit_test(the_mount_is_read_only_nosuid_and_nodev),
	cmocka_unit_test(what_is_no_image_is_refused_as_corrupt))
