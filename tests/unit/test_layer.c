#include "images/layer.h"

#include <archive.h>
#include <archive_entry.h>

#include "images/tar.h"
#include "tests/unit/fixture.h"

static const struct layer kinds[] = {
	{.id = "plain", .codec = CODEC_NONE},
	{.id = "zstd", .codec = CODEC_ZSTD, .level = 3},
	{.id = "gzip", .codec = CODEC_GZIP, .level = 1},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct node **all_nodes(struct fixture *f, size_t *n)
{
	struct node **v = mem_array(tree_count(f->t), sizeof(struct node *));

	*n = 0;
	for (struct node *k = tree_root(f->t); k; k = tree_next(k))
		v[(*n)++] = k;
	return v;
}

static struct layer write_all(struct fixture *f, const struct layer *kind)
{
	size_t n;
	auto_free struct node **v = all_nodes(f, &n);
	struct layer l = *kind;

	need(layer_write(&l, 0, v, n, f->p, &f->s, NULL, &f->e));
	return l;
}

static struct archive *open_layer(struct fixture *f, const struct layer *l, int *fd)
{
	struct archive *a = archive_read_new();

	need(*fd = store_blob_open(&f->s, &l->digest, NULL, &f->e));
	archive_read_support_filter_all(a);
	archive_read_support_format_tar(a);
	if (archive_read_open_fd(a, *fd, 65536) != ARCHIVE_OK)
		fail_msg("%s", archive_error_string(a));
	return a;
}

static void compare_data(struct archive *a, const struct node *n)
{
	auto_free unsigned char *data = mem_alloc(n->a.size + 1);

	assert_int_equal(archive_read_data(a, data, n->a.size + 1), n->a.size);
	for (uint64_t i = 0; i < n->a.size; i++)
		if (data[i] != data_at(i, n->origin))
			fail_msg("%s: byte %llu", n->name, (unsigned long long)i);
}

static void compare_xattrs(struct archive_entry *en, const struct node *n)
{
	assert_int_equal(archive_entry_xattr_reset(en), n->a.nxattrs);
	for (uint32_t i = 0; i < n->a.nxattrs; i++) {
		const char *name;
		const void *value;
		size_t len;
		uint32_t k = 0;

		assert_int_equal(archive_entry_xattr_next(en, &name, &value, &len), ARCHIVE_OK);
		while (k < n->a.nxattrs && strcmp(n->a.xattrs[k].name, name) != 0)
			k++;
		assert_true(k < n->a.nxattrs);
		assert_int_equal(len, n->a.xattrs[k].len);
		assert_memory_equal(value, n->a.xattrs[k].value, len);
	}
}

static void compare_path(const char *got, const struct node *n)
{
	char want[TREE_PATH_MAX + 2];

	node_path(n, want);
	if (n->a.type == NODE_DIR)
		snprintf(want + strlen(want), 3, "%s", n->parent ? "/" : "./");
	assert_string_equal(got, want);
}

static unsigned file_type(const struct node *n)
{
	static const unsigned types[] = {
		[NODE_DIR] = AE_IFDIR,
		[NODE_FILE] = AE_IFREG,
		[NODE_SYMLINK] = AE_IFLNK,
		[NODE_FIFO] = AE_IFIFO,
		[NODE_CHAR] = AE_IFCHR,
		[NODE_BLOCK] = AE_IFBLK,
	};

	return types[n->a.type];
}

static void compare_member(struct archive *a, struct archive_entry *en, const struct node *n)
{
	char path[TREE_PATH_MAX + 1];

	compare_path(archive_entry_pathname(en), n);
	if (n->link) {
		assert_string_equal(archive_entry_hardlink(en), node_path(n->link, path));
		return;
	}
	assert_null(archive_entry_hardlink(en));
	assert_int_equal(archive_entry_filetype(en), file_type(n));
	assert_int_equal(archive_entry_perm(en), n->a.mode);
	assert_int_equal(archive_entry_uid(en), n->a.uid);
	assert_int_equal(archive_entry_gid(en), n->a.gid);
	assert_int_equal(archive_entry_mtime(en), n->a.mtime);
	assert_true(!archive_entry_uname(en) || !archive_entry_uname(en)[0]);
	if (n->a.type == NODE_SYMLINK)
		assert_string_equal(archive_entry_symlink(en), n->a.target);
	if (n->a.type == NODE_CHAR || n->a.type == NODE_BLOCK) {
		assert_int_equal(archive_entry_rdevmajor(en), n->a.major);
		assert_int_equal(archive_entry_rdevminor(en), n->a.minor);
	}
	compare_xattrs(en, n);
	if (n->a.type == NODE_FILE)
		compare_data(a, n);
}

TEST(libarchive_reads_back_the_tree_from_every_codec)
{
	for (size_t k = 0; k < KINDS; k++) {
		struct fixture f_, *f = &f_;
		struct archive_entry *en;
		struct archive *a;
		struct layer l;
		int fd, rc;

		fixture_init(f);
		sample_tree(f);
		l = write_all(f, &kinds[k]);
		a = open_layer(f, &l, &fd);
		for (struct node *n = tree_root(f->t); n; n = tree_next(n)) {
			rc = archive_read_next_header(a, &en);
			/* WARN: a name that is no UTF-8 */
			if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
				fail_msg("%s: %s", n->name, archive_error_string(a));
			compare_member(a, en, n);
			assert_int_equal(n->layer, 0);
		}
		assert_int_equal(archive_read_next_header(a, &en), ARCHIVE_EOF);
		archive_read_free(a);
		close(fd);
		fixture_fini(f);
	}
}

/* The whole of a file through a filter: what is left is the tar. */
static void unpack(struct fixture *f, const struct layer *l, struct digest *d, uint64_t *size)
{
	struct archive *a = archive_read_new();
	struct archive_entry *en;
	static char piece[65536];
	struct hash h;
	ssize_t n;
	int fd;

	need(fd = store_blob_open(&f->s, &l->digest, NULL, &f->e));
	archive_read_support_filter_all(a);
	archive_read_support_format_raw(a);
	assert_int_equal(archive_read_open_fd(a, fd, 65536), ARCHIVE_OK);
	assert_int_equal(archive_read_next_header(a, &en), ARCHIVE_OK);
	hash_init(&h, HASH_SHA256);
	for (*size = 0; (n = archive_read_data(a, piece, sizeof(piece))) > 0; *size += (uint64_t)n)
		hash_add(&h, piece, (size_t)n);
	assert_int_equal(n, 0);
	*d = hash_digest(&h);
	archive_read_free(a);
	close(fd);
}

TEST(diff_id_and_sizes_are_those_of_the_tar)
{
	for (size_t k = 0; k < KINDS; k++) {
		struct fixture f_, *f = &f_;
		struct digest d;
		struct layer l;
		uint64_t size;
		int fd;

		fixture_init(f);
		sample_tree(f);
		l = write_all(f, &kinds[k]);
		unpack(f, &l, &d, &size);
		assert_memory_equal(&d, &l.diff_id, sizeof(d));
		assert_int_equal(size, l.tar_size);
		need(fd = store_blob_open(&f->s, &l.digest, &size, &f->e));
		close(fd);
		assert_int_equal(size, l.size);
		fixture_fini(f);
	}
}

TEST(every_chunk_decodes_alone)
{
	static unsigned char stored[2 * CHUNK_SIZE], data[CHUNK_SIZE];

	for (size_t k = 0; k < KINDS; k++) {
		struct fixture f_, *f = &f_;
		struct layer l;
		int fd;

		fixture_init(f);
		sample_tree(f);
		l = write_all(f, &kinds[k]);
		need(fd = store_blob_open(&f->s, &l.digest, NULL, &f->e));
		for (struct node *n = tree_root(f->t); n; n = tree_next(n))
			for (uint32_t i = 0; i < n->a.nchunks; i++) {
				const struct chunk *c = &n->a.chunks[i];
				struct digest d;

				assert_int_equal(c->layer, 0);
				assert_true(c->stored <= sizeof(stored));
				if (l.codec == CODEC_NONE && i == 0)
					assert_int_equal(c->offset % TAR_ALIGN, 0);
				assert_int_equal(
					sys_pread_all(fd, stored, c->stored, (off_t)c->offset), 0);
				need(codec_decode(
					l.codec, stored, c->stored, data, c->length, &f->e));
				d = digest_of(data, c->length);
				assert_memory_equal(&d, &c->digest, sizeof(d));
			}
		close(fd);
		fixture_fini(f);
	}
}

TEST(two_writings_of_one_tree_are_equal)
{
	for (size_t k = 0; k < KINDS; k++) {
		struct layer l[2];

		for (int i = 0; i < 2; i++) {
			struct fixture f_, *f = &f_;

			fixture_init(f);
			if (i) /* other blocks of the pool, other addresses */
				put_file(f, "gone", 99999, 1000, &(struct attr){.mode = 0644});
			if (i)
				tree_remove(f->t, tree_find(f->t, "gone"));
			sample_tree(f);
			l[i] = write_all(f, &kinds[k]);
			fixture_fini(f);
		}
		assert_memory_equal(&l[0].digest, &l[1].digest, DIGEST_SIZE);
		assert_memory_equal(&l[0].diff_id, &l[1].diff_id, DIGEST_SIZE);
	}
}

TEST(thousands_of_small_files_and_links_stay_in_order)
{
	struct fixture f_, *f = &f_;
	struct archive_entry *en;
	struct archive *a;
	struct layer l;
	char path[64];
	int fd;

	fixture_init(f);
	for (uint32_t i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "d%u/f%05u", i % 7, i);
		put_file(f, path, i % 3000, i, &(struct attr){.mode = 0644, .mtime = i});
	}
	tree_sort(f->t);
	l = write_all(f, &kinds[1]);
	a = open_layer(f, &l, &fd);
	for (struct node *n = tree_next(tree_root(f->t)); n; n = tree_next(n)) {
		assert_int_equal(archive_read_next_header(a, &en), ARCHIVE_OK);
		compare_member(a, en, n);
	}
	assert_int_equal(archive_read_next_header(a, &en), ARCHIVE_EOF);
	archive_read_free(a);
	close(fd);
	fixture_fini(f);
}

TEST(an_empty_layer_is_the_end_of_a_tar)
{
	for (size_t k = 0; k < KINDS; k++) {
		static const char end[TAR_END];
		struct digest d = digest_of(end, sizeof(end));
		struct fixture f_, *f = &f_;
		struct layer l = kinds[k];
		struct node *root;

		fixture_init(f);
		need(layer_write(&l, 0, NULL, 0, f->p, &f->s, NULL, &f->e));
		assert_memory_equal(&l.diff_id, &d, sizeof(d));
		root = tree_root(f->t); /* a root like any other needs no member */
		l = kinds[k];
		need(layer_write(&l, 0, &root, 1, f->p, &f->s, NULL, &f->e));
		assert_memory_equal(&l.diff_id, &d, sizeof(d));
		assert_int_equal(l.tar_size, TAR_END);
		fixture_fini(f);
	}
}

TEST(the_first_layer_of_a_chunk_stays)
{
	struct fixture f_, *f = &f_;
	struct layer l = kinds[1];
	struct chunk *c;
	struct node *v[2];

	fixture_init(f);
	v[0] = put_file(f, "a", 100, 1, &(struct attr){.mode = 0644});
	v[1] = put_file(f, "b", 200, 2, &(struct attr){.mode = 0644});
	tree_sort(f->t);
	c = &v[0]->a.chunks[0];
	c->layer = 0;
	c->offset = 4711;
	c->stored = 42;
	need(layer_write(&l, 1, v, 2, f->p, &f->s, NULL, &f->e));
	assert_int_equal(c->layer, 0);
	assert_int_equal(c->offset, 4711);
	assert_int_equal(v[1]->a.chunks[0].layer, 1);
	fixture_fini(f);
}

TEST(a_hard_link_away_from_its_object_is_refused)
{
	struct fixture f_, *f = &f_;
	struct layer l = kinds[1];
	struct node *link;

	fixture_init(f);
	put_file(f, "a", 100, 1, &(struct attr){.mode = 0644});
	link = put_node(f, "b", &(struct attr){.type = NODE_HARDLINK, .target = "a"});
	tree_sort(f->t);
	assert_int_equal(layer_write(&l, 1, &link, 1, f->p, &f->s, NULL, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_UNSUPPORTED);
	assert_non_null(strstr(f->e.text, "'b'"));
	fixture_fini(f);
}

TEST(bad_data_in_the_pool_do_not_get_into_a_layer)
{
	struct fixture f_, *f = &f_;
	struct layer l = kinds[1];
	size_t n;
	struct node *file, **v;

	fixture_init(f);
	sample_tree(f);
	file = tree_find(f->t, "bin/su");
	v = all_nodes(f, &n);
	assert_int_equal(
		pwrite(pool_fd(f->p), "x", 1, file->a.chunks[0].block * POOL_BLOCK + 77), 1);
	assert_int_equal(layer_write(&l, 0, v, n, f->p, &f->s, NULL, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f->e.text, "expected"));
	free(v);
	fixture_fini(f);
}

TEST(levels_that_do_not_exist_are_refused)
{
	static const struct layer bad[] = {
		{.codec = CODEC_ZSTD, .level = 0},
		{.codec = CODEC_ZSTD, .level = 20},
		{.codec = CODEC_GZIP, .level = 0},
		{.codec = CODEC_GZIP, .level = 10},
	};
	struct fixture f_, *f = &f_;

	fixture_init(f);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct layer l = bad[i];

		f->e = (struct err){0};
		assert_int_equal(layer_write(&l, 0, NULL, 0, f->p, &f->s, NULL, &f->e), -1);
		assert_int_equal(f->e.kind, ERR_USAGE);
	}
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(libarchive_reads_back_the_tree_from_every_codec),
	cmocka_unit_test(diff_id_and_sizes_are_those_of_the_tar),
	cmocka_unit_test(every_chunk_decodes_alone),
	cmocka_unit_test(two_writings_of_one_tree_are_equal),
	cmocka_unit_test(thousands_of_small_files_and_links_stay_in_order),
	cmocka_unit_test(an_empty_layer_is_the_end_of_a_tar),
	cmocka_unit_test(the_first_layer_of_a_chunk_stays),
	cmocka_unit_test(a_hard_link_away_from_its_object_is_refused),
	cmocka_unit_test(bad_data_in_the_pool_do_not_get_into_a_layer),
	cmocka_unit_test(levels_that_do_not_exist_are_refused))
