#include "tests/unit/test.h"

#include "images/tree-equal.h"

static struct chunk chunks[2] = {{.length = CHUNK_SIZE}, {.length = 5}};

/* A tree with one of everything; `change` makes one of the objects another. */
static struct tree *make(int change)
{
	struct xattr x = {.name = "user.a", .value = change == 1 ? "v" : "w", .len = 1};
	struct attr dir = {.type = NODE_DIR, .mode = change == 2 ? 0700 : 0755},
		    file = {.type = NODE_FILE,
			    .mode = 0644,
			    .uid = change == 3,
			    .gid = change == 4,
			    .mtime = change == 5,
			    .size = CHUNK_SIZE + 5,
			    .chunks = chunks,
			    .nchunks = 2,
			    .xattrs = &x,
			    .nxattrs = change == 6 ? 0 : 1},
		    symlink = {.type = NODE_SYMLINK,
			    .mode = 0777,
			    .target = change == 7 ? "x" : "y"},
		    device = {.type = change == 8 ? NODE_BLOCK : NODE_CHAR,
			    .mode = 0600,
			    .major = 1,
			    .minor = change == 9 ? 3 : 5},
		    hard = {.type = NODE_HARDLINK,
			    .target = change == 10 ? "dir/other" : "dir/file"};
	struct tree *t = tree_new();

	chunks[1].digest.b[0] = change == 11;
	assert_non_null(tree_put(t, "dir", &dir, 0, NULL));
	assert_non_null(tree_put(t, "dir/file", &file, 0, NULL));
	assert_non_null(tree_put(t, "dir/other", &file, 0, NULL));
	assert_non_null(tree_put(t, change == 12 ? "Link" : "link", &symlink, 0, NULL));
	assert_non_null(tree_put(t, "null", &device, 0, NULL));
	assert_non_null(tree_put(t, "hard", &hard, 0, NULL));
	if (change == 13)
		assert_non_null(tree_put(t, "zz", &symlink, 0, NULL));
	tree_sort(t);
	return t;
}

TEST(equal_trees_are_equal)
{
	struct tree *a = make(0), *b = make(0);
	struct err e = {0};

	if (tree_equal(a, b, &e) < 0)
		fail_msg("%s", e.text);
	tree_free(a);
	tree_free(b);
}

TEST(every_difference_is_found_and_named)
{
	static const char *const say[] = {"", "extended attributes", "mode", "owner", "owner",
		"time", "extended attributes", "target", "type", "device", "links", "content",
		"path", "in one of them only"};

	for (int i = 1; i < (int)(sizeof(say) / sizeof(say[0])); i++) {
		struct tree *a = make(0), *b = make(i);
		struct err e = {0};

		if (tree_equal(a, b, &e) == 0 || !strstr(e.text, say[i]))
			fail_msg("change %d: '%s' lacks '%s'", i, e.text, say[i]);
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_int_equal(tree_equal(b, a, NULL), -1);
		tree_free(a);
		tree_free(b);
	}
}

RUN_TESTS(cmocka_unit_test(equal_trees_are_equal),
	cmocka_unit_test(every_difference_is_found_and_named))
