#include "tests/unit/test.h"

#include "builder/group.h"

static const struct origin origins[] = {
	{.kind = ORIGIN_STATE, .name = "state"},
	{.kind = ORIGIN_DEB, .name = "libc6", .source = "glibc", .essential = true},
	{.kind = ORIGIN_DEB, .name = "libtorch1.13", .source = "pytorch"},
	{.kind = ORIGIN_NPM, .name = "minipass"},
	{.kind = ORIGIN_MODEL, .name = "tiny"},
	{.kind = ORIGIN_FILE, .name = "manifest"},
	{.kind = ORIGIN_WHEEL, .name = "requests"},
	{.kind = ORIGIN_SOURCE, .name = "webui"},
	{.kind = ORIGIN_RUN, .name = "compile"},
	{.kind = ORIGIN_RUN, .name = "link"},
};
enum { WHEEL = 6, SOURCE, COMPILE, LINK };

static void put(
	struct tree *t, const char *path, enum node_type type, uint64_t size, uint32_t origin)
{
	struct attr a = {.type = type, .mode = 0644, .size = 0};
	struct node *n = tree_put(t, path, &a, origin, NULL);

	assert_non_null(n);
	n->a.size = size;
}

static void make(struct composed *c)
{
	struct attr link = {.type = NODE_HARDLINK, .target = "usr/lib/libc.so"};

	*c = (struct composed){.tree = tree_new()};
	for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++)
		compose_origin(c, &origins[i]);
	put(c->tree, "usr/lib/libc.so", NODE_FILE, 100, 1);
	put(c->tree, "usr/lib/libtorch.so", NODE_FILE, 5000, 2);
	put(c->tree, "etc/torch.conf", NODE_FILE, 10, 2);
	put(c->tree, "var/lib/dpkg/status", NODE_FILE, 10, 0);
	put(c->tree, "opt/app/node_modules/minipass/index.js", NODE_FILE, 10, 3);
	put(c->tree, "models/tiny.gguf", NODE_FILE, 10, 4);
	put(c->tree, "opt/app/server.mjs", NODE_FILE, 10, 5);
	assert_non_null(tree_put(c->tree, "zz-libc.so", &link, 2, NULL));
	tree_sort(c->tree);
}

static const struct group *find(const struct groups *g, const char *id)
{
	static const struct group none;

	for (size_t i = 0; i < g->n; i++)
		if (strcmp(g->v[i].layer.id, id) == 0)
			return &g->v[i];
	return &none;
}

/* Names of a group's nodes, in order, joined by spaces. */
static const char *names(const struct group *g)
{
	static char out[4096];
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < g->n; i++)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s", i ? " " : "",
			g->nodes[i]->parent ? g->nodes[i]->name : "/");
	return out;
}

TEST(without_groups_every_kind_of_input_gets_its_layer)
{
	struct manifest_build b = {.strategy = LAYERS_GROUPS,
		.max_layers = 24,
		.codec = CODEC_ZSTD,
		.models_codec = CODEC_NONE};
	struct composed c;
	struct groups g;

	make(&c);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_int_equal(g.n, 5);
	assert_string_equal(
		names(find(&g, "debs")), "etc torch.conf usr lib libc.so libtorch.so zz-libc.so");
	assert_string_equal(names(find(&g, "files")), "opt app server.mjs");
	assert_string_equal(names(find(&g, "node")), "opt app node_modules minipass index.js");
	assert_string_equal(names(find(&g, "tiny")), "models tiny.gguf");
	assert_int_equal(find(&g, "tiny")->layer.codec, CODEC_NONE);
	assert_int_equal(find(&g, "debs")->layer.codec, CODEC_ZSTD);
	groups_fini(&g);
	compose_fini(&c);
}

TEST(a_path_pattern_wins_and_hard_links_stay_with_their_object)
{
	const char *os[] = {"deb:?essential"}, *torch[] = {"deb:libtorch*"},
		   *etc[] = {"path:/etc/**", "path:/var/lib/dpkg/**"};
	struct layer_group groups[] = {{"os", {os, 1}}, {"torch", {torch, 1}}, {"etc", {etc, 2}}};
	struct manifest_build b = {
		.strategy = LAYERS_GROUPS, .max_layers = 24, .groups = groups, .ngroups = 3};
	struct composed c;
	struct groups g;

	make(&c);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_string_equal(names(find(&g, "os")), "usr lib libc.so zz-libc.so");
	assert_string_equal(names(find(&g, "torch")), "etc usr lib libtorch.so");
	assert_string_equal(names(find(&g, "etc")), "etc torch.conf var lib dpkg status");
	groups_fini(&g);
	compose_fini(&c);
}

TEST(a_group_called_like_an_implicit_one_takes_its_place)
{
	const char *min[] = {"path:/opt/app/**"};
	struct layer_group groups[] = {{"files", {min, 1}}};
	struct manifest_build b = {
		.strategy = LAYERS_GROUPS, .max_layers = 24, .groups = groups, .ngroups = 1};
	struct composed c;
	struct groups g;

	make(&c);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_string_equal(
		names(find(&g, "files")), "opt app node_modules minipass index.js server.mjs");
	for (size_t i = 1; i < g.n; i++)
		assert_string_not_equal(g.v[i].layer.id, "files");
	groups_fini(&g);
	compose_fini(&c);
}

TEST(the_biggest_sources_get_the_layers_that_the_budget_allows)
{
	struct manifest_build b = {.strategy = LAYERS_ORIGIN, .max_layers = 11};
	struct composed c;
	struct groups g;

	make(&c);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_true(find(&g, "pytorch")->n > 0);
	assert_true(find(&g, "glibc")->n == 0);
	assert_true(find(&g, "debs")->n > 0);
	groups_fini(&g);
	compose_fini(&c);
}

TEST(layers_of_steps_come_last_in_their_order)
{
	const char *first[] = {"run:link"}, *py[] = {"whl:req*"}, *src[] = {"source:webui"};
	struct layer_group groups[] = {{"linked", {first, 1}}, {"py", {py, 1}}, {"src", {src, 1}}};
	struct manifest_build b = {
		.strategy = LAYERS_GROUPS, .max_layers = 24, .groups = groups, .ngroups = 3};
	struct composed c;
	struct groups g;

	make(&c);
	put(c.tree, "usr/lib/python3/requests.py", NODE_FILE, 10, WHEEL);
	put(c.tree, "opt/webui/app.py", NODE_FILE, 10, SOURCE);
	put(c.tree, "out/a.o", NODE_FILE, 10, COMPILE);
	put(c.tree, "out/a", NODE_FILE, 10, LINK);
	tree_sort(c.tree);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_string_equal(names(find(&g, "py")), "usr lib python3 requests.py");
	assert_string_equal(names(find(&g, "src")), "opt webui app.py");
	assert_string_equal(g.v[g.n - 2].layer.id, "compile");
	assert_string_equal(names(&g.v[g.n - 2]), "out a.o");
	assert_string_equal(g.v[g.n - 1].layer.id, "linked");
	assert_string_equal(names(&g.v[g.n - 1]), "out a");
	groups_fini(&g);
	compose_fini(&c);
}

TEST(squash_makes_one_layer_of_everything)
{
	struct manifest_build b = {.strategy = LAYERS_GROUPS, .max_layers = 2, .squash = true};
	struct composed c;
	struct groups g;

	make(&c);
	put(c.tree, "out/a", NODE_FILE, 10, LINK);
	tree_sort(c.tree);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_int_equal(g.n, 1);
	groups_fini(&g);
	compose_fini(&c);
}

/* ---- a base ---- */

static void on_a_base(struct composed *c)
{
	static const char *paths[] = {
		"etc", "etc/gone", "etc/kept", "opt", "opt/all", "opt/all/gone"};
	uint32_t base;

	*c = (struct composed){.tree = tree_new(), .nbase = 2};
	compose_origin(c, &origins[0]);
	base = compose_origin(c, &(struct origin){.kind = ORIGIN_BASE, .name = "base"});
	compose_origin(c, &(struct origin){.kind = ORIGIN_FILE, .name = "manifest"});
	put(c->tree, "etc/kept", NODE_FILE, 10, base);
	put(c->tree, "opt", NODE_DIR, 0, base);
	for (struct node *n = tree_root(c->tree); n; n = tree_next(n))
		n->layer = 1;
	c->base_paths = mem_dup(paths, sizeof(paths));
	c->nbase_paths = 6;
}

TEST(what_the_base_brought_stays_and_what_is_gone_of_it_gets_a_whiteout)
{
	struct manifest_build b = {.strategy = LAYERS_GROUPS, .max_layers = 24};
	struct composed c;
	struct groups g;

	on_a_base(&c);
	put(c.tree, "etc/new", NODE_FILE, 10, 2);
	tree_sort(c.tree);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.first, 2);
	/* of opt/all its own whiteout is enough */
	assert_string_equal(names(&g.v[0]), "etc new .wh.gone opt .wh.all");
	groups_fini(&g);
	compose_fini(&c);
}

TEST(an_image_that_only_removes_has_a_layer_of_whiteouts)
{
	struct manifest_build b = {.strategy = LAYERS_GROUPS, .max_layers = 24};
	struct composed c;
	struct groups g;

	on_a_base(&c);
	tree_sort(c.tree);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_int_equal(g.n, 1);
	assert_string_equal(names(&g.v[0]), "etc .wh.gone opt .wh.all");
	groups_fini(&g);
	compose_fini(&c);
}

TEST(a_new_name_of_an_object_of_the_base_takes_the_object_along)
{
	struct manifest_build b = {.strategy = LAYERS_GROUPS, .max_layers = 24};
	struct attr link = {.type = NODE_HARDLINK, .target = "etc/kept"};
	struct composed c;
	struct groups g;

	on_a_base(&c);
	c.nbase_paths = 0;
	assert_non_null(tree_put(c.tree, "zz", &link, 2, NULL));
	tree_sort(c.tree);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_string_equal(names(&g.v[0]), "etc kept zz");
	groups_fini(&g);
	compose_fini(&c);
}

TEST(a_root_folder_alone_makes_no_layer)
{
	struct manifest_build b = {.strategy = LAYERS_GROUPS, .max_layers = 24};
	struct composed c = {.tree = tree_new()};
	struct groups g;

	compose_origin(&c, &origins[0]);
	tree_sort(c.tree);
	assert_int_equal(group_tree(&g, &c, &b, NULL), 0);
	assert_int_equal(g.n, 0);
	groups_fini(&g);
	compose_fini(&c);
}

TEST(too_many_layers_are_refused)
{
	struct manifest_build b = {.strategy = LAYERS_GROUPS, .max_layers = 3};
	struct composed c;
	struct groups g;
	struct err e = {0};

	make(&c);
	assert_int_equal(group_tree(&g, &c, &b, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	assert_string_equal(e.text, "5 layers and the index, but build.layers.max is 3");
	compose_fini(&c);
}

RUN_TESTS(cmocka_unit_test(without_groups_every_kind_of_input_gets_its_layer),
	cmocka_unit_test(a_path_pattern_wins_and_hard_links_stay_with_their_object),
	cmocka_unit_test(a_group_called_like_an_implicit_one_takes_its_place),
	cmocka_unit_test(the_biggest_sources_get_the_layers_that_the_budget_allows),
	cmocka_unit_test(layers_of_steps_come_last_in_their_order),
	cmocka_unit_test(squash_makes_one_layer_of_everything),
	cmocka_unit_test(what_the_base_brought_stays_and_what_is_gone_of_it_gets_a_whiteout),
	cmocka_unit_test(an_image_that_only_removes_has_a_layer_of_whiteouts),
	cmocka_unit_test(a_new_name_of_an_object_of_the_base_takes_the_object_along),
	cmocka_unit_test(a_root_folder_alone_makes_no_layer),
	cmocka_unit_test(too_many_layers_are_refused))
