#include "images/complete.h"

#include "base/str.h"
#include "tests/unit/fixture.h"

/* ---- a pulled image: everything but its layers is in the store ---- */

struct pulled {
	struct image im;
	struct layer layers[2];
};

static unsigned depth_of(const struct node *n)
{
	return n->parent ? 1 + depth_of(n->parent) : 0;
}

/* Layer 0 is "a" and "zz", layer 1 the rest; each names the parents of what it holds, as the
 * builder does. Layer 1 names these two folders, too, and what is in them, as deep as `empty` says.
 */
static void put_layer(struct fixture *f, struct layer *l, int32_t number, unsigned empty)
{
	struct node **v = mem_array(2 * tree_count(f->t), sizeof(struct node *));
	size_t n = 0;

	for (struct node *x = tree_root(f->t); x; x = tree_next(x)) {
		struct node *top = x;

		while (top->parent && top->parent->parent)
			top = top->parent;
		bool first = top->parent && (str_eq(top->name, "a") || str_eq(top->name, "zz"));

		if (first == (number == 0) ||
			(first && x->a.type == NODE_DIR && depth_of(x) <= empty))
			v[n++] = x;
	}
	snprintf(l->id, sizeof(l->id), "part-%d", number);
	need(layer_write(l, number, v, n, f->p, &f->s, NULL, &f->e));
	free(v);
}

static void make_pulled_with(
	struct fixture *f, struct pulled *p, enum codec codec, int level, unsigned empty)
{
	auto_json json_t *config = json_pack("{s:s, s:s}", "architecture", "amd64", "os", "linux");
	struct image_plan plan = {.layers = p->layers,
		.nlayers = 2,
		.config = config,
		.created = "2026-01-02T03:04:05Z"};
	struct digest manifest;
	uint64_t size;

	fixture_init(f);
	for (uint32_t i = 0; i < 30; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/x%u/f%u", i % 2 ? "a" : "b", i % 3, i);
		put_file(f, path, i * 50021, i, &(struct attr){.mode = 0644, .mtime = i});
	}
	for (uint32_t i = 0; i < 20; i++) { /* folders that might be meant, and are not */
		char path[64];

		snprintf(path, sizeof(path), "a/y%u/z", i);
		put_node(f, path, &(struct attr){.type = NODE_DIR, .mode = 0755});
	}
	put_file(f, "zz/file", 99, 99, &(struct attr){.mode = 0644});
	put_node(f, "a/link", &(struct attr){.type = NODE_HARDLINK, .target = "a/x1/f1"});
	tree_sort(f->t);
	for (int32_t i = 0; i < 2; i++) {
		p->layers[i] = (struct layer){.codec = codec, .level = level};
		put_layer(f, &p->layers[i], i, empty);
	}
	need(pool_commit(f->p, &f->e));
	plan.tree = f->t;
	need(image_publish(&f->s, &plan, &manifest, &size, &f->e));
	for (size_t i = 0; i < 2; i++)
		need(store_blob_remove(&f->s, &p->layers[i].digest, &f->e));
	need(image_load(&p->im, &f->s, &manifest, &f->e));
	pool_close(f->p);
	f->p = NULL;
}

static void make_pulled(struct fixture *f, struct pulled *p, enum codec codec, int level)
{
	make_pulled_with(f, p, codec, level, 0);
}

static void fini(struct fixture *f, struct pulled *p)
{
	image_fini(&p->im);
	fixture_fini(f);
}

static bool is_whole(struct fixture *f, const struct layer *l)
{
	auto_buf struct buf b = {0};

	return store_has(&f->s, &l->digest) &&
	       store_blob_read(&f->s, &l->digest, l->size, &b, &f->e) == 0 && b.len == l->size;
}

static int complete(struct fixture *f, struct pulled *p)
{
	f->e = (struct err){0};
	return image_complete(&p->im, &f->s, NULL, NULL, NULL, &f->e);
}

TEST(layers_of_every_codec_and_level_are_made_again)
{
	static const struct {
		enum codec codec;
		int level;
	} cases[] = {{CODEC_NONE, 0}, {CODEC_ZSTD, 3}, {CODEC_ZSTD, 1}, {CODEC_ZSTD, 12},
		{CODEC_GZIP, 3}, {CODEC_GZIP, 6}, {CODEC_GZIP, 9}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f_, *f = &f_;
		struct pulled p;

		make_pulled(f, &p, cases[i].codec, cases[i].level);
		if (complete(f, &p) < 0)
			fail_msg("%zu: %s", i, f->e.text);
		for (size_t k = 0; k < 2; k++)
			assert_true(is_whole(f, &p.layers[k]));
		fini(f, &p);
	}
}

TEST(folders_that_the_index_does_not_tell_of_are_found)
{
	static const struct {
		enum codec codec;
		int level;
	} cases[] = {{CODEC_ZSTD, 3}, {CODEC_GZIP, 6}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f_, *f = &f_;
		struct pulled p;

		make_pulled_with(f, &p, cases[i].codec, cases[i].level, 1);
		if (complete(f, &p) < 0)
			fail_msg("%zu: %s", i, f->e.text);
		for (size_t k = 0; k < 2; k++)
			assert_true(is_whole(f, &p.layers[k]));
		fini(f, &p);
	}
}

TEST(a_completer_stores_nothing)
{
	struct fixture f_, *f = &f_;
	struct blob_writer w;
	struct completer *x;
	struct pulled p;
	struct digest d;

	make_pulled(f, &p, CODEC_ZSTD, 3);
	x = completer_new(&p.im, &f->s, NULL, NULL, NULL);
	need(completer_layer(x, 1, &w, &f->e));
	d = store_blob_digest(&w);
	assert_memory_equal(&d, &p.layers[1].digest, DIGEST_SIZE);
	assert_int_equal(w.size, p.layers[1].size);
	store_blob_abort(&w);
	assert_false(store_has(&f->s, &d));
	completer_free(x);
	fini(f, &p);
}

TEST(what_the_pool_lacks_is_said)
{
	struct fixture f_, *f = &f_;
	struct pulled p;

	make_pulled(f, &p, CODEC_ZSTD, 3);
	assert_int_equal(sys_remove_tree(f->s.fd, "pool"), 0);
	need((f->p = pool_open(f->s.fd, true, &f->e)) ? 0 : -1);
	pool_close(f->p);
	f->p = NULL;
	assert_int_equal(complete(f, &p), -1);
	assert_int_equal(f->e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(f->e.text, "layer 0"));
	assert_non_null(strstr(f->e.text, "came from no registry"));
	assert_non_null(strstr(f->e.text, "the pool lacks"));
	fini(f, &p);
}

TEST(bytes_that_come_out_otherwise_are_not_stored)
{
	struct fixture f_, *f = &f_;
	struct pulled p;

	make_pulled_with(f, &p, CODEC_ZSTD, 3, 2); /* more than can be found */
	assert_int_equal(complete(f, &p), -1);
	assert_int_equal(f->e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(f->e.text, "its tar comes out otherwise"));
	assert_false(store_has(&f->s, &p.layers[1].digest));
	fini(f, &p);
}

TEST(an_image_that_is_whole_needs_nothing)
{
	struct fixture f_, *f = &f_;
	struct pulled p;

	make_pulled(f, &p, CODEC_NONE, 0);
	need(complete(f, &p));
	assert_int_equal(sys_remove_tree(f->s.fd, "pool"), 0);
	need(complete(f, &p));
	fini(f, &p);
}

RUN_TESTS(cmocka_unit_test(layers_of_every_codec_and_level_are_made_again),
	cmocka_unit_test(folders_that_the_index_does_not_tell_of_are_found),
	cmocka_unit_test(a_completer_stores_nothing), cmocka_unit_test(what_the_pool_lacks_is_said),
	cmocka_unit_test(bytes_that_come_out_otherwise_are_not_stored),
	cmocka_unit_test(an_image_that_is_whole_needs_nothing))
