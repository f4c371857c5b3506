#include "images/convert.h"

#include "base/str.h"
#include "tests/unit/fixture.h"

/* ---- an image of two layers in a store ---- */

struct made {
	struct digest manifest;
	uint64_t size;
};

static void put_layer(
	struct fixture *f, struct layer *l, int32_t number, const char *prefix, enum codec codec)
{
	struct node **v = mem_array(tree_count(f->t), sizeof(struct node *));
	char path[TREE_PATH_MAX + 1];
	size_t n = 0;

	for (struct node *x = tree_root(f->t); x; x = tree_next(x)) {
		bool first = str_starts(node_path(x, path), prefix);

		if (first == (number == 0))
			v[n++] = x;
	}
	*l = (struct layer){.codec = codec, .level = 1};
	snprintf(l->id, sizeof(l->id), "part-%d", number);
	need(layer_write(l, number, v, n, f->p, &f->s, NULL, &f->e));
	free(v);
}

static struct made make_image(struct fixture *f, enum codec first, enum codec second)
{
	auto_json json_t *config = json_pack("{s:s, s:s, s:s}", "architecture", "amd64", "os",
		"linux", "created", "2026-01-02T03:04:05Z");
	struct layer layers[2];
	struct image_plan plan = {.layers = layers,
		.nlayers = 2,
		.config = config,
		.created = "2026-01-02T03:04:05Z"};
	struct made m;

	fixture_init(f);
	for (uint32_t i = 0; i < 40; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/f%u", i % 2 ? "one" : "two", i);
		put_file(f, path, i * 70001, i, &(struct attr){.mode = 0644, .mtime = i});
	}
	put_file(f, "two/again", 70001, 1, &(struct attr){.mode = 0600}); /* a chunk of both */
	tree_sort(f->t);
	put_layer(f, &layers[0], 0, "one", first);
	put_layer(f, &layers[1], 1, "one", second);
	need(pool_commit(f->p, &f->e));
	plan.tree = f->t;
	need(image_publish(&f->s, &plan, &m.manifest, &m.size, &f->e));
	pool_close(f->p); /* conversions open it */
	f->p = NULL;
	return m;
}

static struct converted convert(
	struct fixture *f, const struct digest *from, enum codec codec, int level)
{
	const struct convert_options o = {.codec = codec, .level = level};
	struct converted out;
	struct image im;

	need(image_load(&im, &f->s, from, &f->e));
	need(image_convert(&im, &f->s, NULL, NULL, &o, &out, NULL, &f->e));
	image_fini(&im);
	sys_close_ref(&out.hold);
	return out;
}

/* ---- what must hold ---- */

/* Every chunk is where the index says, in a layer of the manifest. */
static size_t chunks_are_there(struct fixture *f, struct image *im)
{
	static unsigned char stored[2 * CHUNK_SIZE], data[CHUNK_SIZE];
	auto_buf struct buf b = BUF_INIT(INDEX_BYTES_MAX);
	struct layer *layers;
	size_t n, count = 0;
	struct tree *t;

	need(image_index(im, &f->s, &b, &f->e));
	t = index_decode(b.data, b.len, &layers, &n, &f->e);
	assert_non_null(t);
	assert_int_equal(n + 1, im->nlayers);
	for (size_t i = 0; i < n; i++) {
		assert_memory_equal(&layers[i].digest, &im->layers[i].digest, DIGEST_SIZE);
		assert_memory_equal(&layers[i].diff_id, &im->layers[i].diff_id, DIGEST_SIZE);
		assert_true(layers[i].tar_size > 0);
	}
	for (struct node *x = tree_root(t); x; x = tree_next(x))
		for (uint32_t i = 0; i < x->a.nchunks; i++, count++) {
			const struct chunk *c = &x->a.chunks[i];
			struct digest d;
			int fd;

			assert_true(c->layer >= 0 && (size_t)c->layer < n);
			need(fd = store_blob_open(&f->s, &layers[c->layer].digest, NULL, &f->e));
			assert_int_equal(sys_pread_all(fd, stored, c->stored, (off_t)c->offset), 0);
			close(fd);
			need(codec_decode(
				layers[c->layer].codec, stored, c->stored, data, c->length, &f->e));
			d = digest_of(data, c->length);
			assert_memory_equal(&d, &c->digest, sizeof(d));
		}
	tree_free(t);
	free(layers);
	return count;
}

static void same_content(struct fixture *f, const struct digest *a, const struct digest *b)
{
	struct image x, y;

	need(image_load(&x, &f->s, a, &f->e));
	need(image_load(&y, &f->s, b, &f->e));
	assert_int_equal(x.nlayers, y.nlayers);
	assert_memory_equal(&x.config_digest, &y.config_digest, DIGEST_SIZE);
	for (size_t i = 0; i < x.nlayers; i++)
		assert_memory_equal(&x.layers[i].diff_id, &y.layers[i].diff_id, DIGEST_SIZE);
	assert_int_equal(chunks_are_there(f, &x), chunks_are_there(f, &y));
	image_fini(&x);
	image_fini(&y);
}

TEST(every_codec_becomes_every_other_and_the_config_stays)
{
	static const enum codec codecs[] = {CODEC_NONE, CODEC_ZSTD, CODEC_GZIP};

	for (size_t from = 0; from < 3; from++)
		for (size_t to = 0; to < 3; to++) {
			struct fixture f_, *f = &f_;
			struct made m = make_image(f, codecs[from], CODEC_ZSTD);
			struct converted c = convert(f, &m.manifest, codecs[to], 0);
			struct image im;

			same_content(f, &m.manifest, &c.manifest);
			need(image_load(&im, &f->s, &c.manifest, &f->e));
			for (size_t i = 0; i + 1 < im.nlayers; i++)
				assert_string_equal(
					im.layers[i].media_type, codec_media_type(codecs[to]));
			assert_int_equal(im.manifest_size, c.size);
			image_fini(&im);
			fixture_fini(f);
		}
}

TEST(there_and_back_is_stable)
{
	struct fixture f_, *f = &f_;
	struct made m = make_image(f, CODEC_GZIP, CODEC_GZIP);
	struct converted z = convert(f, &m.manifest, CODEC_ZSTD, 0),
			 g = convert(f, &z.manifest, CODEC_GZIP, 0),
			 z2 = convert(f, &g.manifest, CODEC_ZSTD, 0);

	assert_memory_equal(&z.manifest, &z2.manifest, DIGEST_SIZE);
	same_content(f, &m.manifest, &g.manifest);
	fixture_fini(f);
}

TEST(layers_of_that_codec_stay_unless_a_level_is_asked_for)
{
	struct fixture f_, *f = &f_;
	struct made m = make_image(f, CODEC_GZIP, CODEC_ZSTD);
	struct converted c = convert(f, &m.manifest, CODEC_ZSTD, 0),
			 l = convert(f, &m.manifest, CODEC_ZSTD, 9);
	struct image a, b, d;

	need(image_load(&a, &f->s, &m.manifest, &f->e));
	need(image_load(&b, &f->s, &c.manifest, &f->e));
	need(image_load(&d, &f->s, &l.manifest, &f->e));
	assert_false(digest_eq(&a.layers[0].digest, &b.layers[0].digest));
	assert_true(digest_eq(&a.layers[1].digest, &b.layers[1].digest));
	assert_false(digest_eq(&a.layers[1].digest, &d.layers[1].digest));
	image_fini(&a);
	image_fini(&b);
	image_fini(&d);
	same_content(f, &m.manifest, &l.manifest);
	fixture_fini(f);
}

/* ---- images of others ---- */

/* The same layers and config without the index: what is known of it is kept beside it. */
static struct digest strip_index(struct fixture *f, const struct digest *own)
{
	auto_buf struct buf index = BUF_INIT(INDEX_BYTES_MAX), b = BUF_INIT(1 << 20);
	struct digest config, manifest;
	char text[DIGEST_TEXT + 1];
	struct image im;
	json_t *o;

	need(image_load(&im, &f->s, own, &f->e));
	need(image_index(&im, &f->s, &index, &f->e));
	json_array_remove(json_object_get(json_object_get(im.config, "rootfs"), "diff_ids"), 2);
	json_array_remove(json_object_get(im.config, "history"), 2);
	json_text(im.config, true, &b);
	need(store_blob_put(&f->s, b.data, b.len, &config, &f->e));
	o = json_object_get(im.manifest, "config");
	json_object_set_new(o, "digest", json_string(digest_text(&config, text)));
	json_object_set_new(o, "size", json_integer((json_int_t)b.len));
	json_object_set_new(o, "mediaType", json_string(DOCKER_CONFIG_TYPE));
	json_array_remove(json_object_get(im.manifest, "layers"), 2);
	json_object_set_new(
		im.manifest, "annotations", json_pack("{s:s}", "registry.example/kept", "yes"));
	json_object_set_new(im.manifest, "mediaType", json_string(DOCKER_MANIFEST_TYPE));
	json_text(im.manifest, true, &b);
	need(store_blob_put(&f->s, b.data, b.len, &manifest, &f->e));
	need(image_index_put(&f->s, &manifest, index.data, index.len, &f->e));
	image_fini(&im);
	return manifest;
}

TEST(an_image_of_others_gets_an_index_layer_and_the_rest_stays)
{
	struct fixture f_, *f = &f_;
	struct made m = make_image(f, CODEC_GZIP, CODEC_GZIP);
	struct digest foreign = strip_index(f, &m.manifest);
	struct converted c = convert(f, &foreign, CODEC_GZIP, 0);
	const json_t *history;
	struct image a, b;

	need(image_load(&a, &f->s, &foreign, &f->e));
	need(image_load(&b, &f->s, &c.manifest, &f->e));
	assert_false(a.has_index);
	assert_true(b.has_index);
	assert_int_equal(b.nlayers, a.nlayers + 1);
	for (size_t i = 0; i < a.nlayers; i++)
		assert_memory_equal(&a.layers[i].diff_id, &b.layers[i].diff_id, DIGEST_SIZE);
	history = json_object_get(b.config, "history");
	assert_int_equal(json_array_size(history), 3);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(history, 2), "created_by")),
		"svrun layer index");
	assert_string_equal(
		json_string_value(json_object_get(b.manifest, "mediaType")), OCI_MANIFEST_TYPE);
	assert_string_equal(
		json_string_value(json_object_get(
			json_object_get(b.manifest, "annotations"), "registry.example/kept")),
		"yes");
	chunks_are_there(f, &b);
	image_fini(&a);
	image_fini(&b);
	fixture_fini(f);
}

/* ---- absent layers ---- */

static void remove_layers(struct fixture *f, const struct digest *manifest)
{
	struct image im;

	need(image_load(&im, &f->s, manifest, &f->e));
	for (size_t i = 0; i + 1 < im.nlayers; i++)
		need(store_blob_remove(&f->s, &im.layers[i].digest, &f->e));
	image_fini(&im);
}

TEST(absent_layers_are_had_for_the_while_and_not_kept)
{
	struct fixture f_, *f = &f_;
	struct made m = make_image(f, CODEC_ZSTD, CODEC_ZSTD);
	struct image im;
	struct converted c;

	remove_layers(f, &m.manifest);
	c = convert(f, &m.manifest, CODEC_GZIP, 0);
	need(image_load(&im, &f->s, &m.manifest, &f->e));
	assert_false(store_has(&f->s, &im.layers[0].digest));
	image_fini(&im);
	need(image_load(&im, &f->s, &c.manifest, &f->e));
	chunks_are_there(f, &im);
	image_fini(&im);
	fixture_fini(f);
}

TEST(a_layer_that_is_another_one_is_refused)
{
	struct fixture f_, *f = &f_;
	const struct convert_options o = {.codec = CODEC_GZIP};
	struct made m = make_image(f, CODEC_NONE, CODEC_NONE);
	char hex[DIGEST_HEX + 1], path[256];
	struct converted out;
	struct image im;
	int fd;

	need(image_load(&im, &f->s, &m.manifest, &f->e));
	snprintf(path, sizeof(path), "%.64s/blobs/sha256/%s", f->path,
		digest_hex(&im.layers[1].digest, hex));
	assert_true((fd = open(path, O_WRONLY)) >= 0);
	assert_int_equal(pwrite(fd, "x", 1, 5000), 1);
	close(fd);
	assert_int_equal(image_convert(&im, &f->s, NULL, NULL, &o, &out, NULL, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f->e.text, "layer 1"));
	image_fini(&im);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(every_codec_becomes_every_other_and_the_config_stays),
	cmocka_unit_test(there_and_back_is_stable),
	cmocka_unit_test(layers_of_that_codec_stay_unless_a_level_is_asked_for),
	cmocka_unit_test(an_image_of_others_gets_an_index_layer_and_the_rest_stays),
	cmocka_unit_test(absent_layers_are_had_for_the_while_and_not_kept),
	cmocka_unit_test(a_layer_that_is_another_one_is_refused))
