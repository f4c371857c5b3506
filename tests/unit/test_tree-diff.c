#include "images/tree-diff.h"

#include "base/mem.h"
#include "tests/unit/test.h"

/* What was found, as text: "A a/b", "M x content,mode". */
struct lines {
	char text[4096];
};

static int found(void *ctx, const char *path, const struct node *a, const struct node *b,
	unsigned what, struct err *e)
{
	struct lines *l = ctx;
	size_t n = strlen(l->text);

	(void)e;
	n += (size_t)snprintf(l->text + n, sizeof(l->text) - n, "%c /%s",
		!a   ? 'A'
		: !b ? 'D'
		     : 'M',
		path);
	for (size_t i = 0; i < 8; i++)
		if (what & 1u << i)
			n += (size_t)snprintf(
				l->text + n, sizeof(l->text) - n, " %s", diff_names[i]);
	snprintf(l->text + n, sizeof(l->text) - n, "\n");
	return 0;
}

static void put(struct tree *t, const char *path, struct attr a)
{
	struct err e = {0};

	if (!tree_put(t, path, &a, 0, &e))
		fail_msg("%s: %s", path, e.text);
}

static struct attr file(const char *data, struct chunk *c)
{
	size_t n = strlen(data);

	*c = (struct chunk){.digest = digest_of(data, n), .length = (uint32_t)n};
	return (struct attr){
		.type = NODE_FILE, .mode = 0644, .size = n, .chunks = c, .nchunks = n > 0};
}

static void check(struct tree *a, struct tree *b, unsigned mask, const char *want)
{
	struct lines l = {0};
	const struct tree_diff d = {.mask = mask, .found = found, .ctx = &l};
	struct err e = {0};

	tree_sort(a);
	tree_sort(b);
	assert_int_equal(tree_diff(&d, a, b, &e), 0);
	assert_string_equal(l.text, want);
	tree_free(a);
	tree_free(b);
}

TEST(equal_trees_differ_in_nothing)
{
	struct tree *t[2];
	struct chunk c;

	for (int i = 0; i < 2; i++) {
		t[i] = tree_new();
		put(t[i], "a/b", file("x", &c));
		put(t[i], "a/l", (struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = "b"});
		put(t[i], "z", (struct attr){.type = NODE_HARDLINK, .target = "a/b"});
	}
	check(t[0], t[1], DIFF_ALL, "");
}

TEST(every_attribute_is_told_by_its_name)
{
	struct xattr x = {"user.a", "1", 1}, y = {"user.a", "2", 1};
	struct chunk c;
	const struct {
		struct attr a, b;
		const char *say;
	} cases[] = {
		{file("x", &c), file("x", &c), ""},
		{{.type = NODE_FIFO}, {.type = NODE_DIR}, "M /f type\n"},
		{{.type = NODE_FIFO, .mode = 0600}, {.type = NODE_FIFO, .mode = 04600},
			"M /f mode\n"},
		{{.type = NODE_FIFO, .uid = 1}, {.type = NODE_FIFO}, "M /f owner\n"},
		{{.type = NODE_FIFO, .gid = 1}, {.type = NODE_FIFO}, "M /f owner\n"},
		{{.type = NODE_FIFO, .mtime = 1}, {.type = NODE_FIFO}, "M /f mtime\n"},
		{{.type = NODE_SYMLINK, .target = "a"}, {.type = NODE_SYMLINK, .target = "b"},
			"M /f target\n"},
		{{.type = NODE_CHAR, .major = 1}, {.type = NODE_CHAR, .major = 2}, "M /f device\n"},
		{{.type = NODE_BLOCK, .minor = 1}, {.type = NODE_BLOCK}, "M /f device\n"},
		{{.type = NODE_FIFO, .xattrs = &x, .nxattrs = 1},
			{.type = NODE_FIFO, .xattrs = &y, .nxattrs = 1}, "M /f xattrs\n"},
		{{.type = NODE_FIFO, .xattrs = &x, .nxattrs = 1}, {.type = NODE_FIFO},
			"M /f xattrs\n"},
		{{.type = NODE_FIFO, .mode = 1, .uid = 1, .mtime = 1}, {.type = NODE_FIFO},
			"M /f mode owner mtime\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tree *a = tree_new(), *b = tree_new();

		put(a, "f", cases[i].a);
		put(b, "f", cases[i].b);
		check(a, b, DIFF_ALL, cases[i].say);
	}
}

TEST(content_is_what_its_chunks_say)
{
	struct tree *a = tree_new(), *b = tree_new();
	struct chunk c;

	put(a, "f", file("x", &c));
	put(b, "f", file("y", &c));
	put(a, "g", file("", &c));
	put(b, "g", file("y", &c));
	check(a, b, DIFF_ALL, "M /f content\nM /g content\n");
}

TEST(what_is_masked_does_not_count)
{
	struct tree *a = tree_new(), *b = tree_new();

	put(a, "f", (struct attr){.type = NODE_FIFO, .mtime = 5, .mode = 0600});
	put(b, "f", (struct attr){.type = NODE_FIFO, .mtime = 6, .mode = 0600});
	check(a, b, DIFF_ALL & ~(unsigned)DIFF_MTIME, "");
}

TEST(folders_come_before_what_is_in_them_and_all_of_it_is_told)
{
	struct tree *a = tree_new(), *b = tree_new();
	const struct attr fifo = {.type = NODE_FIFO, .mode = 0600};

	put(a, "gone/x/y", fifo);
	put(a, "kind", (struct attr){.type = NODE_DIR, .mode = 0755});
	put(a, "kind/old", fifo);
	put(b, "kind", fifo);
	put(a, "kind2", fifo);
	put(b, "kind2/new", fifo);
	put(b, "new", fifo);
	check(a, b, DIFF_ALL,
		"D /gone\nD /gone/x\nD /gone/x/y\nM /kind type\nD /kind/old\n"
		"M /kind2 type\nA /kind2/new\nA /new\n");
}

TEST(hard_links_are_the_object_that_they_name)
{
	struct tree *a = tree_new(), *b = tree_new();
	struct chunk c;

	put(a, "f", file("x", &c));
	put(a, "g", (struct attr){.type = NODE_HARDLINK, .target = "f"});
	put(b, "f", file("x", &c));
	put(b, "g", file("x", &c));
	put(a, "h", (struct attr){.type = NODE_HARDLINK, .target = "f"});
	put(b, "h", file("y", &c));
	check(a, b, DIFF_ALL, "M /h content\n");
}

TEST(the_root_counts)
{
	struct tree *a = tree_new(), *b = tree_new();

	put(a, "", (struct attr){.type = NODE_DIR, .mode = 0700});
	check(a, b, DIFF_ALL, "M / mode\n");
}

RUN_TESTS(cmocka_unit_test(equal_trees_differ_in_nothing),
	cmocka_unit_test(every_attribute_is_told_by_its_name),
	cmocka_unit_test(content_is_what_its_chunks_say),
	cmocka_unit_test(what_is_masked_does_not_count),
	cmocka_unit_test(folders_come_before_what_is_in_them_and_all_of_it_is_told),
	cmocka_unit_test(hard_links_are_the_object_that_they_name),
	cmocka_unit_test(the_root_counts))
