#include "tests/unit/test.h"

#include "builder/compose.h"

enum { EPOCH = 1000, RUN = 1 };

static void put(struct tree *t, const char *path, enum node_type type, uint32_t mode, int64_t mtime)
{
	struct attr a = {.type = type, .mode = mode, .mtime = mtime};

	assert_non_null(tree_put(t, path, &a, 0, NULL));
}

static void make(struct composed *c)
{
	*c = (struct composed){.tree = tree_new()};
	compose_origin(c, &(struct origin){.kind = ORIGIN_STATE, .name = "state"});
	assert_int_equal(
		compose_origin(c, &(struct origin){.kind = ORIGIN_RUN, .name = "one"}), RUN);
	put(c->tree, "usr", NODE_DIR, 0755, 10);
	put(c->tree, "usr/lib", NODE_DIR, 0755, 10);
	put(c->tree, "usr/lib/a", NODE_FILE, 0644, 10);
	assert_non_null(tree_put(c->tree, "lib",
		&(struct attr){.type = NODE_SYMLINK, .mode = 0777, .target = "usr/lib"}, 0, NULL));
	tree_sort(c->tree);
}

static struct entry *add(struct entries *l, const char *path, enum node_type type, uint32_t mode)
{
	struct entry *en = entries_add(l, path);

	en->a = (struct attr){.type = type, .mode = mode, .mtime = EPOCH + 5};
	return en;
}

static void apply(struct composed *c, struct entries *l)
{
	struct err e = {0};

	if (compose_apply(c, l, RUN, EPOCH, &e) < 0)
		fail_msg("%s", e.text);
	entries_fini(l);
}

static const struct node *at(struct composed *c, const char *path)
{
	return tree_find(c->tree, path);
}

TEST(a_folder_of_which_only_the_time_changed_stays_as_it_was)
{
	struct entries l = {0};
	struct composed c;

	make(&c);
	add(&l, "usr/lib", NODE_DIR, 0755);
	add(&l, "usr/lib/new", NODE_FILE, 0644);
	apply(&c, &l);
	assert_int_equal(at(&c, "usr/lib")->a.mtime, 10);
	assert_int_equal(at(&c, "usr/lib")->origin, 0);
	assert_int_equal(at(&c, "usr/lib/new")->origin, RUN);
	assert_int_equal(at(&c, "usr/lib/new")->a.mtime, EPOCH);
	compose_fini(&c);
}

TEST(a_folder_with_another_mode_is_the_steps)
{
	struct entries l = {0};
	struct composed c;

	make(&c);
	add(&l, "usr/lib", NODE_DIR, 0700);
	apply(&c, &l);
	assert_int_equal(at(&c, "usr/lib")->a.mode, 0700);
	assert_int_equal(at(&c, "usr/lib")->origin, RUN);
	assert_non_null(at(&c, "usr/lib/a"));
	compose_fini(&c);
}

TEST(what_was_removed_and_made_again_is_new)
{
	struct entries l = {0};
	struct composed c;

	make(&c);
	add(&l, "usr/lib", NODE_DIR, 0755); /* the whiteout counts before it, wherever it stands */
	entries_add(&l, "usr/lib")->kind = ENTRY_WHITEOUT;
	apply(&c, &l);
	assert_non_null(at(&c, "usr/lib"));
	assert_null(at(&c, "usr/lib/a"));
	assert_int_equal(at(&c, "usr/lib")->origin, RUN);
	compose_fini(&c);
}

TEST(a_link_is_no_folder_that_stays)
{
	struct entries l = {0};
	struct composed c;

	make(&c);
	add(&l, "lib", NODE_DIR, 0755);
	apply(&c, &l);
	assert_int_equal(at(&c, "lib")->a.type, NODE_DIR);
	assert_int_equal(at(&c, "lib")->origin, RUN);
	compose_fini(&c);
}

RUN_TESTS(cmocka_unit_test(a_folder_of_which_only_the_time_changed_stays_as_it_was),
	cmocka_unit_test(a_folder_with_another_mode_is_the_steps),
	cmocka_unit_test(what_was_removed_and_made_again_is_new),
	cmocka_unit_test(a_link_is_no_folder_that_stays))
