#include "tests/unit/fixture.h"

#include "builder/layer-cache.h"

struct list {
	struct node **v;
	size_t n, cap;
};

static struct list all_of(struct tree *t)
{
	struct list l = {0};

	tree_sort(t);
	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		mem_grow(&l.v, &l.cap, l.n);
		l.v[l.n++] = n;
	}
	return l;
}

static void forget_layers(struct list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		l->v[i]->layer = CHUNK_NO_LAYER;
		for (uint32_t k = 0; k < l->v[i]->a.nchunks; k++)
			l->v[i]->a.chunks[k].layer = CHUNK_NO_LAYER;
	}
}

TEST(a_layer_with_the_same_objects_is_written_once_and_its_chunks_are_where_they_were)
{
	struct fixture fix, *f = &fix;
	struct layer first = {.id = "a", .codec = CODEC_ZSTD, .level = 3},
		     second = {.id = "another name", .codec = CODEC_ZSTD, .level = 3};
	struct build_count count = {0};
	struct list l;
	struct chunk *places;
	size_t n = 0, chunks = 0;

	fixture_init(f);
	sample_tree(f);
	l = all_of(f->t);
	need(layer_cache_write(&first, 0, l.v, l.n, f->p, &f->s, false, NULL, &count, &f->e));
	assert_int_equal(count.layers_written, 1);
	for (size_t i = 0; i < l.n; i++)
		chunks += l.v[i]->a.nchunks;
	places = mem_array(chunks, sizeof(*places));
	for (size_t i = 0; i < l.n; i++)
		for (uint32_t k = 0; k < l.v[i]->a.nchunks; k++)
			places[n++] = l.v[i]->a.chunks[k];
	forget_layers(&l);
	need(layer_cache_write(&second, 4, l.v, l.n, f->p, &f->s, false, NULL, &count, &f->e));
	assert_int_equal(count.layers_written, 1);
	assert_int_equal(count.layers_reused, 1);
	assert_memory_equal(&second.digest, &first.digest, sizeof(first.digest));
	assert_memory_equal(&second.diff_id, &first.diff_id, sizeof(first.diff_id));
	assert_int_equal(second.size, first.size);
	assert_int_equal(second.tar_size, first.tar_size);
	n = 0;
	for (size_t i = 0; i < l.n; i++)
		for (uint32_t k = 0; k < l.v[i]->a.nchunks; k++, n++) {
			assert_int_equal(l.v[i]->a.chunks[k].layer, 4);
			assert_int_equal(l.v[i]->a.chunks[k].stored, places[n].stored);
			assert_int_equal(l.v[i]->a.chunks[k].offset, places[n].offset);
		}
	free(places);
	free(l.v);
	fixture_fini(f);
}

/* Each changes one thing about a node, a layer or the store; the layer must be written again. */
TEST(anything_else_about_an_object_or_the_packing_makes_another_layer)
{
	struct fixture fix, *f = &fix;
	struct layer layer = {.codec = CODEC_ZSTD, .level = 3}, other = layer;
	struct attr a = {.mode = 0644, .mtime = 5};
	struct digest key, now;
	struct node *n;
	struct list l;

	fixture_init(f);
	n = put_file(f, "etc/x", 100, 1, &a);
	l = all_of(f->t);
	key = layer_key(&layer, l.v, l.n);
#define CHANGES(what, undo)                                                                        \
	do {                                                                                       \
		what;                                                                              \
		now = layer_key(&other, l.v, l.n);                                                 \
		assert_memory_not_equal(&now, &key, sizeof(key));                                  \
		undo;                                                                              \
		now = layer_key(&other, l.v, l.n);                                                 \
		assert_memory_equal(&now, &key, sizeof(key));                                      \
	} while (0)
	CHANGES(n->a.mode = 0600, n->a.mode = 0644);
	CHANGES(n->a.uid = 1, n->a.uid = 0);
	CHANGES(n->a.gid = 1, n->a.gid = 0);
	CHANGES(n->a.mtime = 6, n->a.mtime = 5);
	CHANGES(n->name = "y", n->name = "x");
	CHANGES(n->a.chunks[0].digest.b[31] ^= 1, n->a.chunks[0].digest.b[31] ^= 1);
	CHANGES(n->a.size = 99, n->a.size = 100);
	CHANGES(other.level = 4, other.level = 3);
	CHANGES(other.codec = CODEC_GZIP, other.codec = CODEC_ZSTD);
	/* a tar that is not compressed has no level */
	other = layer = (struct layer){.codec = CODEC_NONE, .level = 1};
	key = layer_key(&layer, l.v, l.n);
	other.level = 9;
	now = layer_key(&other, l.v, l.n);
	assert_memory_equal(&now, &key, sizeof(key));
	free(l.v);
	fixture_fini(f);
}

TEST(a_record_without_its_blob_is_worth_nothing)
{
	struct fixture fix, *f = &fix;
	struct layer layer = {.codec = CODEC_GZIP, .level = 6};
	struct build_count count = {0};
	struct digest first;
	struct list l;

	fixture_init(f);
	put_file(f, "etc/x", 100, 1, &(struct attr){.mode = 0644});
	l = all_of(f->t);
	need(layer_cache_write(&layer, 0, l.v, l.n, f->p, &f->s, false, NULL, &count, &f->e));
	first = layer.digest;
	need(store_blob_remove(&f->s, &first, &f->e));
	forget_layers(&l);
	need(layer_cache_write(&layer, 0, l.v, l.n, f->p, &f->s, false, NULL, &count, &f->e));
	assert_int_equal(count.layers_written, 2);
	assert_memory_equal(&layer.digest, &first, sizeof(first));
	assert_true(store_has(&f->s, &first));
	free(l.v);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(
		  a_layer_with_the_same_objects_is_written_once_and_its_chunks_are_where_they_were),
	cmocka_unit_test(anything_else_about_an_object_or_the_packing_makes_another_layer),
	cmocka_unit_test(a_record_without_its_blob_is_worth_nothing))
