/* A store with a pool in a temporary folder, and a tree with one of everything. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "images/pool.h"
#include "images/store.h"
#include "images/tree.h"
#include "tests/unit/test.h"

#define MAYBE_UNUSED __attribute__((unused))
#define need(call)                                                                                 \
	do {                                                                                       \
		struct err *need_e_ = &f->e;                                                       \
		f->e = (struct err){0};                                                            \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, need_e_->text);                                  \
	} while (0)

struct fixture {
	char path[64];
	struct store s;
	struct pool *p;
	struct tree *t;
	struct err e;
};

static MAYBE_UNUSED void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.path = "/tmp/svrun-test-XXXXXX"};
	assert_non_null(mkdtemp(f->path));
	need(store_open(&f->s, f->path, true, &f->e));
	f->p = pool_open(f->s.fd, true, &f->e);
	if (!f->p)
		fail_msg("%s", f->e.text);
	f->t = tree_new();
}

static MAYBE_UNUSED void fixture_fini(struct fixture *f)
{
	tree_free(f->t);
	pool_close(f->p);
	store_close(&f->s);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->path), 0);
}

/* Byte i of a file that was made with this seed. */
static MAYBE_UNUSED unsigned char data_at(uint64_t i, uint32_t seed)
{
	return (unsigned char)((i * 2654435761u + (i >> 12) * 40503u + seed * 97u) >> 7);
}

static MAYBE_UNUSED struct node *put_node(struct fixture *f, const char *path, const struct attr *a)
{
	struct node *n = tree_put(f->t, path, a, 0, &f->e);

	if (!n)
		fail_msg("%s: %s", path, f->e.text);
	return n;
}

static MAYBE_UNUSED struct node *put_file(
	struct fixture *f, const char *path, uint64_t size, uint32_t seed, const struct attr *base)
{
	struct attr a = *base;
	unsigned char *data = mem_alloc(CHUNK_SIZE);
	struct node *n;

	a.type = NODE_FILE;
	a.size = size;
	a.nchunks = (uint32_t)((size + CHUNK_SIZE - 1) / CHUNK_SIZE);
	a.chunks = mem_array(a.nchunks, sizeof(*a.chunks));
	for (uint32_t k = 0; k < a.nchunks; k++) {
		uint64_t at = (uint64_t)k * CHUNK_SIZE;
		uint32_t len = (uint32_t)(size - at < CHUNK_SIZE ? size - at : CHUNK_SIZE);

		for (uint32_t i = 0; i < len; i++)
			data[i] = data_at(at + i, seed);
		need(pool_put(f->p, data, len, &a.chunks[k], &f->e));
		a.chunks[k].layer = CHUNK_NO_LAYER;
	}
	n = put_node(f, path, &a);
	n->origin = seed;
	free(a.chunks);
	free(data);
	return n;
}

/* One of everything. The seed of a file's data is its origin. */
static MAYBE_UNUSED void sample_tree(struct fixture *f)
{
	static char big[60000], target[TREE_PATH_MAX + 1], name[TREE_NAME_MAX + 1],
		path[TREE_PATH_MAX + 1];
	struct xattr some[] = {
		{"security.capability", "\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0", 20},
		{"trusted.empty", "", 0}, {"user.text", "value", 5}};
	struct xattr large[] = {{"trusted.big", big, sizeof(big)}, {"user.a", "1", 1}};
	struct xattr link[] = {{"trusted.link", "on a link", 9}};
	const struct attr plain = {.mode = 0644, .mtime = 1700000000};
	struct attr a = {.type = NODE_DIR, .mode = 0755, .mtime = 1600000000};
	static const uint64_t sizes[] = {0, 1, 100, 4095, 4096, 4097, 65536, CHUNK_SIZE - 1,
		CHUNK_SIZE, CHUNK_SIZE + 1, 3 * CHUNK_SIZE + 5};

	for (uint32_t i = 0, x = 1; i < sizeof(big); i++)
		big[i] = (char)((x = x * 1664525u + 1013904223u) >> 24);
	memset(target, 't', TREE_PATH_MAX);
	memset(name, 'n', TREE_NAME_MAX);
	put_node(f, "", &a);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(path, sizeof(path), "files/size-%llu", (unsigned long long)sizes[i]);
		put_file(f, path, sizes[i], i + 1, &plain);
	}
	put_file(f, "copies/of-size-100", 100, 3, &plain);
	put_file(f, name, 10, 50, &plain);
	put_file(f, "bin/su", 5000, 51,
		&(struct attr){.mode = 04755, .uid = 0, .gid = 42, .mtime = 1});
	put_file(f, "owner", 7, 52,
		&(struct attr){.mode = 0, .uid = 4000000000u, .gid = 3000000, .mtime = -5});
	put_file(f, "late", 7, 53, &(struct attr){.mode = 0600, .mtime = (int64_t)1 << 34});
	put_file(
		f, "xattr/some", 9, 54, &(struct attr){.mode = 0755, .xattrs = some, .nxattrs = 3});
	put_file(f, "xattr/large", 9000, 55,
		&(struct attr){.mode = 0755, .xattrs = large, .nxattrs = 2});
	put_file(f, "xattr/empty-file", 0, 56,
		&(struct attr){.mode = 0755, .xattrs = large, .nxattrs = 2});
	put_node(f, "xattr/dir",
		&(struct attr){.type = NODE_DIR, .mode = 0700, .xattrs = some, .nxattrs = 3});
	put_node(f, "xattr/dir-large",
		&(struct attr){.type = NODE_DIR, .mode = 01777, .xattrs = large, .nxattrs = 2});
	put_node(f, "xattr/link",
		&(struct attr){.type = NODE_SYMLINK,
			.mode = 0777,
			.target = "x",
			.xattrs = link,
			.nxattrs = 1});
	put_node(f, "links/short",
		&(struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = "/etc/passwd"});
	put_node(f, "links/long",
		&(struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = target});
	target[150] = '\0';
	put_node(f, "links/150",
		&(struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = target});
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = {"links/hard-1", "zz/hard-2", "aa/hard-0"};

		a = (struct attr){.type = NODE_HARDLINK, .target = "files/size-4097"};
		put_node(f, names[i], &a)->origin = tree_find(f->t, a.target)->origin;
	}
	put_node(f, "links/hard-soft",
		&(struct attr){.type = NODE_HARDLINK, .target = "links/short"});
	put_node(f, "dev/null",
		&(struct attr){.type = NODE_CHAR, .mode = 0666, .major = 1, .minor = 3});
	put_node(f, "dev/disk",
		&(struct attr){.type = NODE_BLOCK,
			.mode = 0660,
			.gid = 6,
			.major = 4095,
			.minor = 1048575});
	put_node(f, "dev/pipe", &(struct attr){.type = NODE_FIFO, .mode = 0600});
	put_node(f, "odd/..a", &(struct attr){.type = NODE_FIFO, .mode = 0600});
	put_node(f, "odd/...", &(struct attr){.type = NODE_DIR, .mode = 0755});
	put_node(f, "odd/!first", &(struct attr){.type = NODE_FIFO, .mode = 0600});
	put_node(f, "odd/.-between", &(struct attr){.type = NODE_FIFO, .mode = 0600});
	put_node(f, "odd/a\nb\xc3\xa9\xff", &(struct attr){.type = NODE_FIFO, .mode = 0600});
	for (size_t i = 0; i < TREE_DEPTH_MAX; i++)
		memcpy(path + 2 * i, "d/", 3);
	path[2 * TREE_DEPTH_MAX - 1] = '\0';
	put_file(f, path, 20, 60, &plain);
	for (unsigned i = 0; i < 400; i++) { /* several blocks of entries */
		snprintf(path, sizeof(path), "many/entry-%u-%.*s", i, (int)(i % 60), name);
		put_node(f, path,
			&(struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = path});
	}
	tree_sort(f->t);
}

#endif
