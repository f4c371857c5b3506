#include "images/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct attr dir = {.type = NODE_DIR, .mode = 0755};
static const struct attr file = {.type = NODE_FILE, .mode = 0644, .uid = 1, .gid = 2, .mtime = 5};

static struct node *put(struct tree *t, const char *path, const struct attr *a)
{
	struct err e = {0};
	struct node *n = tree_put(t, path, a, 7, &e);

	if (!n)
		fail_msg("put %s: %s", path, e.text);
	return n;
}

static struct node *put_link(struct tree *t, const char *path, const char *target)
{
	return put(t, path, &(struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = target});
}

static struct node *put_hard(struct tree *t, const char *path, const char *target)
{
	return put(t, path, &(struct attr){.type = NODE_HARDLINK, .target = target});
}

static void refuse(struct tree *t, const char *path, const struct attr *a, enum err_kind kind,
	const char *text)
{
	struct err e = {0};

	assert_null(tree_put(t, path, a, 0, &e));
	assert_int_equal(e.kind, kind);
	if (!strstr(e.text, text))
		fail_msg("'%s' lacks '%s'", e.text, text);
}

/* All paths in order, one a line. */
static void assert_paths(struct tree *t, const char *want)
{
	char got[8192] = "", path[TREE_PATH_MAX + 1];
	size_t len = 0, count = 0;

	for (struct node *n = tree_root(t); n; n = tree_next(n), count++)
		len += (size_t)snprintf(got + len, sizeof(got) - len, "%s\n", node_path(n, path));
	assert_string_equal(got, want);
	assert_int_equal(count, tree_count(t));
}

static void names_are_cleaned_or_refused(void **state)
{
	static const struct {
		const char *in, *out; /* NULL: refused */
	} cases[] = {
		{"a", "a"},
		{"./a/b/", "a/b"},
		{"/a//b/./c", "a/b/c"},
		{"./", ""},
		{"", ""},
		{"...", "..."},
		{"..", NULL},
		{"a/../b", NULL},
		{"a/..", NULL},
		{"a/.wh.b", NULL},
		{".wh..wh..opq", NULL},
		{"a.wh.b", "a.wh.b"},
	};
	char out[TREE_PATH_MAX + 1];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = (struct err){0};
		if (cases[i].out) {
			assert_int_equal(tree_clean_path(cases[i].in, out, &e), 0);
			assert_string_equal(out, cases[i].out);
		} else {
			assert_int_equal(tree_clean_path(cases[i].in, out, &e), -1);
			assert_int_equal(e.kind, ERR_CORRUPT);
		}
	}
}

static void limits_of_names_hold_exactly(void **state)
{
	char out[TREE_PATH_MAX + 1], name[2 * TREE_PATH_MAX + 2];
	struct err e = {0};

	(void)state;
	memset(name, 'x', sizeof(name));
	name[TREE_NAME_MAX] = '\0';
	assert_int_equal(tree_check_path(name, &e), 0);
	memcpy(name + TREE_NAME_MAX, "x", 2);
	assert_int_equal(tree_check_path(name, &e), -1);
	assert_non_null(strstr(e.text, "255"));

	for (size_t i = 0; i < TREE_DEPTH_MAX + 1; i++)
		memcpy(name + 2 * i, "a/", 2);
	name[2 * TREE_DEPTH_MAX] = '\0';
	assert_int_equal(tree_clean_path(name, out, &e), 0); /* 256 and a final slash */
	memcpy(name + 2 * TREE_DEPTH_MAX, "a", 2);
	assert_int_equal(tree_clean_path(name, out, &e), -1);
	assert_non_null(strstr(e.text, "256"));

	memset(name, 'y', sizeof(name));
	for (size_t i = 200; i < sizeof(name); i += 200)
		name[i] = '/';
	name[TREE_PATH_MAX] = '\0';
	assert_int_equal(tree_check_path(name, &e), 0);
	name[TREE_PATH_MAX] = 'y';
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(tree_check_path(name, &e), -1);
	assert_int_equal(tree_clean_path(name, out, &e), -1);
	assert_non_null(strstr(e.text, "4095"));
}

static void missing_folders_are_made_and_sorted(void **state)
{
	struct tree *t = tree_new();
	struct node *n;

	(void)state;
	put(t, "z/b", &file);
	put(t, "z/a", &file);
	put(t, "a-b", &file);
	put(t, "a/x", &file);
	put(t, "z", &(struct attr){.type = NODE_DIR, .mode = 01777, .uid = 9});
	tree_sort(t);
	assert_paths(t, "\na\na/x\na-b\nz\nz/a\nz/b\n");
	n = tree_find(t, "a");
	assert_int_equal(n->a.mode, 0755);
	assert_int_equal(n->a.mtime, 5);
	assert_int_equal(n->origin, 7);
	assert_int_equal(tree_find(t, "z")->a.mode, 01777);
	assert_int_equal(tree_find(t, "z")->a.uid, 9);
	assert_int_equal(tree_root(t)->nlink, 4);
	assert_int_equal(tree_find(t, "z/a")->nlink, 1);
	assert_null(tree_find(t, "z/c"));
	tree_free(t);
}

static void the_folder_part_follows_links(void **state)
{
	struct tree *t = tree_new();

	(void)state;
	put_link(t, "bin", "usr/bin"); /* dangling as yet */
	put(t, "bin/sh", &file);
	put_link(t, "abs", "/usr/bin/../lib");
	put(t, "abs/x", &file);
	put_link(t, "up", "../../../usr");
	put(t, "up/y", &file);
	put_link(t, "usr/bin/sh", "dash"); /* the last component is not followed */
	put(t, "bin/sh", &file);
	tree_sort(t);
	assert_paths(t, "\nabs\nbin\nup\nusr\nusr/bin\nusr/bin/sh\nusr/lib\nusr/lib/x\nusr/y\n");
	assert_int_equal(tree_find(t, "usr/bin/sh")->a.type, NODE_FILE);
	assert_ptr_equal(tree_resolve(t, "bin/sh"), tree_find(t, "usr/bin/sh"));
	assert_ptr_equal(tree_resolve(t, "bin"), tree_find(t, "usr/bin"));
	assert_ptr_equal(tree_resolve(t, ""), tree_root(t));
	assert_null(tree_find(t, "bin/sh"));
	assert_null(tree_resolve(t, "bin/none"));
	assert_null(tree_resolve(t, "bin/sh/x"));
	tree_free(t);
}

static void loops_and_files_as_folders_are_refused(void **state)
{
	struct tree *t = tree_new();
	char name[16], target[16];

	(void)state;
	put_link(t, "a", "b");
	put_link(t, "b", "a");
	put(t, "f", &file);
	refuse(t, "a/x", &file, ERR_CORRUPT, "links");
	refuse(t, "f/x", &file, ERR_CORRUPT, "folder");
	refuse(t, "f/x/y", &file, ERR_CORRUPT, "folder");
	assert_null(tree_resolve(t, "a"));
	put(t, "l0", &dir);
	for (int i = 1; i <= 41; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		snprintf(target, sizeof(target), "l%d", i - 1);
		put_link(t, name, target);
	}
	put(t, "l40/ok", &file);
	refuse(t, "l41/no", &file, ERR_CORRUPT, "40");
	tree_free(t);
}

static void links_cannot_lead_beyond_the_limits(void **state)
{
	struct tree *t = tree_new();
	char deep[2 * 200 + 1], wide[TREE_PATH_MAX + 1], path[TREE_PATH_MAX + 1];

	(void)state;
	for (size_t i = 0; i < 200; i++)
		memcpy(deep + 2 * i, "d/", 3);
	deep[399] = '\0';
	put_link(t, "deep", deep);
	put(t, "deep/x", &file);
	snprintf(path, sizeof(path), "deep/%s", deep);
	refuse(t, path, &file, ERR_CORRUPT, "256");
	memset(wide, 'w', sizeof(wide));
	for (size_t i = 200; i < sizeof(wide); i += 200)
		wide[i] = '/';
	wide[4000] = '\0';
	put_link(t, "wide", wide);
	memset(path, 'p', sizeof(path));
	memcpy(path, "wide/", 5);
	path[5 + 94] = '\0';
	put(t, path, &file);
	path[5 + 94] = 'p';
	path[5 + 95] = '\0';
	refuse(t, path, &file, ERR_CORRUPT, "4095");
	for (struct node *n = tree_root(t); n; n = tree_next(n))
		node_path(n, path); /* asserts its bound */
	tree_free(t);
}

static void only_empty_folders_are_replaced(void **state)
{
	struct tree *t = tree_new();
	struct node *n;

	(void)state;
	put(t, "d/x", &file);
	n = put(t, "e", &dir);
	refuse(t, "d", &file, ERR_EXISTS, "not empty");
	refuse(t, "", &file, ERR_EXISTS, "'':");
	assert_ptr_equal(put(t, "e", &file), n);
	assert_int_equal(n->a.type, NODE_FILE);
	assert_ptr_equal(put(t, "e", &dir), n);
	put(t, "", &(struct attr){.type = NODE_DIR, .mode = 0700});
	assert_int_equal(tree_root(t)->a.mode, 0700);
	assert_non_null(tree_find(t, "d/x"));
	tree_free(t);
}

static void a_copy_owns_what_it_points_to(void **state)
{
	struct tree *t = tree_new();
	char value[] = "value", name[] = "user.x", target[] = "target";
	struct xattr x = {name, value, 5};
	struct chunk c = {.length = 3};
	struct node *n, *l;

	(void)state;
	n = put(t, "f",
		&(struct attr){.type = NODE_FILE,
			.mode = 0104644,
			.size = 3,
			.chunks = &c,
			.nchunks = 1,
			.xattrs = &x,
			.nxattrs = 1});
	l = put_link(t, "l", target);
	memset(value, 'X', 5);
	memset(name, 'X', 6);
	memset(target, 'X', 6);
	c.length = 4;
	assert_string_equal(n->a.xattrs[0].name, "user.x");
	assert_memory_equal(n->a.xattrs[0].value, "value", 5);
	assert_int_equal(n->a.chunks[0].length, 3);
	assert_int_equal(n->a.mode, 04644);
	assert_string_equal(l->a.target, "target");
	tree_free(t);
}

static void bad_attributes_are_refused(void **state)
{
	static const struct xattr twice[] = {{"user.a", "", 0}, {"user.a", "", 0}};
	static const struct xattr kind[] = {{"system.nfs4_acl", "", 0}};
	static const struct xattr empty[] = {{"user.", "", 0}};
	static char zeros[TREE_XATTR_VALUE_MAX + 1];
	static const struct xattr large[] = {{"user.a", zeros, sizeof(zeros)}};
	static const struct xattr sum[] = {
		{"user.a", zeros, 65535}, {"user.b", zeros, 65535}, {"user.c", zeros, 10}};
	struct xattr many[TREE_XATTRS_MAX + 1] = {{0}};
	const struct {
		struct attr a;
		const char *text;
	} cases[] = {
		{{.type = NODE_SYMLINK}, "target"},
		{{.type = NODE_SYMLINK, .target = ""}, "target"},
		{{.type = NODE_HARDLINK, .target = "none"}, "does not exist"},
		{{.type = NODE_HARDLINK, .target = "../f"}, "'..'"},
		{{.type = NODE_HARDLINK, .target = "d"}, "is a folder"},
		{{.type = NODE_CHAR, .major = 4096}, "device"},
		{{.type = NODE_BLOCK, .minor = 1 << 20}, "device"},
		{{.type = NODE_FIFO, .nxattrs = TREE_XATTRS_MAX + 1, .xattrs = many}, "64"},
		{{.type = NODE_FIFO, .nxattrs = 2, .xattrs = (struct xattr *)(uintptr_t)twice},
			"twice"},
		{{.type = NODE_FIFO, .nxattrs = 1, .xattrs = (struct xattr *)(uintptr_t)kind},
			"nfs4"},
		{{.type = NODE_FIFO, .nxattrs = 1, .xattrs = (struct xattr *)(uintptr_t)empty},
			"user."},
		{{.type = NODE_FIFO, .nxattrs = 1, .xattrs = (struct xattr *)(uintptr_t)large},
			"65535"},
		{{.type = NODE_FIFO, .nxattrs = 3, .xattrs = (struct xattr *)(uintptr_t)sum},
			"131072"},
	};
	struct tree *t = tree_new();

	(void)state;
	put(t, "d", &dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refuse(t, "x", &cases[i].a, ERR_CORRUPT, cases[i].text);
	assert_int_equal(tree_count(t), 2);
	tree_free(t);
}

static void hard_links_share_one_object(void **state)
{
	struct tree *t = tree_new();
	struct node *b, *a, *c;

	(void)state;
	put_link(t, "usrbin", "usr/bin");
	b = put(t, "usr/bin/b", &file);
	a = put_hard(t, "usr/bin/a", "./usrbin/b");
	c = put_hard(t, "c", "usr/bin/a"); /* a link to a link is a link to the object */
	assert_ptr_equal(a->link, b);
	assert_ptr_equal(c->link, b);
	assert_ptr_equal(put_hard(t, "usr/bin/b", "c"), b); /* already that name */
	assert_null(b->link);
	tree_sort(t);
	/* c comes first in the walk, so it is the object now */
	assert_null(c->link);
	assert_int_equal(c->a.type, NODE_FILE);
	assert_int_equal(c->a.uid, 1);
	assert_ptr_equal(a->link, c);
	assert_ptr_equal(b->link, c);
	assert_int_equal(b->a.type, NODE_HARDLINK);
	assert_int_equal(c->nlink, 3);
	assert_int_equal(a->nlink, 3);
	tree_free(t);
}

static void an_object_outlives_its_first_name(void **state)
{
	struct tree *t = tree_new();
	struct node *b, *c;

	(void)state;
	put(t, "d/a", &file);
	b = put_hard(t, "b", "d/a");
	put_hard(t, "d/z", "b");
	c = put_hard(t, "c", "d/z");
	put(t, "d/a", &(struct attr){.type = NODE_FIFO}); /* replaced */
	assert_null(b->link);
	assert_int_equal(b->a.mtime, 5);
	assert_int_equal(tree_find(t, "d/a")->a.type, NODE_FIFO);
	put_hard(t, "d/a", "c"); /* and back */
	tree_remove(t, b);
	assert_null(tree_find(t, "b"));
	assert_int_equal(tree_find(t, "d/z")->a.type, NODE_FILE);
	tree_remove(t, tree_find(t, "d")); /* the object and a link at once */
	assert_null(c->link);
	assert_int_equal(c->a.uid, 1);
	tree_sort(t);
	assert_int_equal(c->nlink, 1);
	assert_paths(t, "\nc\n");
	tree_free(t);
}

static void removal_keeps_the_rest(void **state)
{
	struct tree *t = tree_new();

	(void)state;
	put(t, "a/x/1", &file);
	put(t, "a/y/2", &file);
	put(t, "a/z/3", &file);
	tree_remove(t, tree_find(t, "a/y"));
	assert_null(tree_find(t, "a/y/2"));
	tree_sort(t);
	assert_paths(t, "\na\na/x\na/x/1\na/z\na/z/3\n");
	tree_remove(t, tree_find(t, "a/x"));
	put(t, "a/x", &file);
	tree_remove(t, tree_find(t, "a/z"));
	tree_sort(t);
	assert_paths(t, "\na\na/x\n");
	tree_free(t);
}

static void a_hundred_thousand_names_are_quick(void **state)
{
	struct tree *t = tree_new();
	char path[64];

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(path, sizeof(path), "d/%x", i * 2654435761u);
		put(t, path, &file);
	}
	for (unsigned i = 0; i < 50000; i++) {
		snprintf(path, sizeof(path), "d/%x", i * 2654435761u);
		tree_remove(t, tree_find(t, path));
	}
	tree_sort(t);
	assert_int_equal(tree_count(t), 50002);
	for (struct node *n = tree_find(t, "d")->child; n->next; n = n->next)
		assert_true(strcmp(n->name, n->next->name) < 0);
	tree_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_cleaned_or_refused),
		cmocka_unit_test(limits_of_names_hold_exactly),
		cmocka_unit_test(missing_folders_are_made_and_sorted),
		cmocka_unit_test(the_folder_part_follows_links),
		cmocka_unit_test(loops_and_files_as_folders_are_refused),
		cmocka_unit_test(links_cannot_lead_beyond_the_limits),
		cmocka_unit_test(only_empty_folders_are_replaced),
		cmocka_unit_test(a_copy_owns_what_it_points_to),
		cmocka_unit_test(bad_attributes_are_refused),
		cmocka_unit_test(hard_links_share_one_object),
		cmocka_unit_test(an_object_outlives_its_first_name),
		cmocka_unit_test(removal_keeps_the_rest),
		cmocka_unit_test(a_hundred_thousand_names_are_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
