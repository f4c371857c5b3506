#include "images/image.h"

#include <stdlib.h>
#include <sys/file.h>

#include "base/file.h"
#include "base/str.h"
#include "images/frame.h"
#include "images/mount-image.h"
#include "images/mount.h"
#include "images/verify-layer.h"
#include "tests/unit/fixture.h"

static const enum codec codecs[] = {CODEC_ZSTD, CODEC_GZIP, CODEC_NONE};
enum { LAYERS = 3 };

/* ---- an image in a store ---- */

struct built {
	struct digest manifest;
	uint64_t size;
	struct layer layers[LAYERS];
};

static json_t *config(void)
{
	return json_pack("{s:s, s:s, s:s, s:{s:[s]}}", "architecture", "amd64", "os", "linux",
		"created", "2026-01-02T03:04:05Z", "config", "Cmd", "/bin/su");
}

/* All names of one object must be in one layer. */
static size_t layer_of(const char *path)
{
	if (str_starts(path, "files/") || str_starts(path, "links/") || str_starts(path, "aa/") ||
		str_starts(path, "zz/"))
		return 1;
	return str_starts(path, "xattr/") ? 2 : 0;
}

/* The sample tree, cut into a layer of each codec. */
static void build(struct fixture *f, struct built *b)
{
	struct node **nodes[LAYERS];
	size_t n[LAYERS] = {0};
	auto_json json_t *c = config();
	struct image_plan plan = {.tree = f->t,
		.layers = b->layers,
		.nlayers = LAYERS,
		.config = c,
		.created = "2026-01-02T03:04:05Z"};

	*b = (struct built){0};
	for (size_t i = 0; i < LAYERS; i++)
		nodes[i] = mem_array(tree_count(f->t) + 1, sizeof(struct node *));
	for (struct node *x = tree_root(f->t); x; x = tree_next(x)) {
		char path[TREE_PATH_MAX + 1];
		size_t to = layer_of(node_path(x, path));

		if (x->a.type == NODE_DIR)
			for (size_t i = 0; i < LAYERS; i++)
				nodes[i][n[i]++] = x;
		else
			nodes[to][n[to]++] = x;
	}
	for (int32_t i = 0; i < LAYERS; i++) {
		b->layers[i].codec = codecs[i];
		b->layers[i].level = 1;
		snprintf(b->layers[i].id, sizeof(b->layers[i].id), "part-%d", (int)i);
		need(layer_write(&b->layers[i], i, nodes[i], n[i], f->p, &f->s, NULL, &f->e));
		free(nodes[i]);
	}
	need(pool_commit(f->p, &f->e));
	need(image_publish(&f->s, &plan, &b->manifest, &b->size, &f->e));
	need(mount_prepare(&f->s, &b->manifest, f->t, &f->e));
}

static void init(struct fixture *f, struct built *b)
{
	fixture_init(f);
	sample_tree(f);
	build(f, b);
	need(store_name_set(&f->s, "sample", &b->manifest, b->size, NULL, &f->e));
	pool_close(f->p); /* image_verify() opens it */
	f->p = NULL;
}

static void load(struct fixture *f, struct image *im, const struct digest *d)
{
	need(image_load(im, &f->s, d, &f->e));
}

static int verify(struct fixture *f, const struct built *b, struct image_verify *v)
{
	struct image im;
	int rc;

	f->e = (struct err){0};
	load(f, &im, &b->manifest);
	rc = image_verify(&im, &f->s, v, NULL, &f->e);
	image_fini(&im);
	return rc;
}

static void verify_well(struct fixture *f, const struct built *b, size_t repaired)
{
	struct image_verify v = {.repair = repaired > 0};

	if (verify(f, b, &v) < 0)
		fail_msg("%s", f->e.text);
	if (repaired != SIZE_MAX)
		assert_int_equal(v.repaired, repaired);
	assert_true(v.chunks > 10);
}

static void verify_fault(
	struct fixture *f, const struct built *b, bool repair, const char *text, const char *hint)
{
	struct image_verify v = {.repair = repair};

	assert_int_equal(verify(f, b, &v), -1);
	if (!strstr(f->e.text, text))
		fail_msg("'%s' lacks '%s'", f->e.text, text);
	if (!strstr(f->e.hint, hint))
		fail_msg("'%s' lacks '%s'", f->e.hint, hint);
}

static char *path_of(const char *folder, const struct digest *d, const char *end, char out[128])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, 128, "%s/%s%s", folder, digest_hex(d, hex), end);
	return out;
}

static char *blob_path(const struct digest *d, char out[128])
{
	return path_of("blobs/sha256", d, "", out);
}

/* Flip a bit of a file. */
static void alter(struct fixture *f, const char *path, off_t at)
{
	unsigned char c;
	auto_fd int fd = sys_openat(f->s.fd, path, O_RDWR, 0);

	assert_true(fd >= 0);
	assert_int_equal(sys_pread_all(fd, &c, 1, at), 0);
	c ^= 4;
	assert_int_equal(sys_pwrite_all(fd, &c, 1, at), 0);
}

static bool exists(struct fixture *f, const char *path)
{
	struct stat st;

	return sys_fstatat(f->s.fd, path, &st, 0) == 0;
}

/* ---- publishing and loading ---- */

TEST(a_published_image_loads_with_all_that_it_was_made_of)
{
	struct fixture fix, *f = &fix;
	struct built b;
	struct image im;
	const json_t *history, *h;

	init(f, &b);
	load(f, &im, &b.manifest);
	assert_int_equal(im.nlayers, LAYERS + 1);
	assert_int_equal(im.manifest_size, b.size);
	assert_true(im.has_index);
	for (size_t i = 0; i < LAYERS; i++) {
		assert_true(digest_eq(&im.layers[i].digest, &b.layers[i].digest));
		assert_true(digest_eq(&im.layers[i].diff_id, &b.layers[i].diff_id));
		assert_int_equal(im.layers[i].size, b.layers[i].size);
		assert_int_equal(im.layers[i].codec, codecs[i]);
	}
	assert_true(digest_eq(&im.index.layer, &im.layers[LAYERS].digest));
	history = json_object_get(im.config, "history");
	assert_int_equal(json_array_size(history), LAYERS + 1);
	h = json_array_get(history, 1);
	assert_string_equal(
		json_string_value(json_object_get(h, "created_by")), "svrun layer part-1");
	assert_string_equal(
		json_string_value(json_object_get(h, "created")), "2026-01-02T03:04:05Z");
	assert_string_equal(json_string_value(json_object_get(im.config, "architecture")), "amd64");
	image_fini(&im);
	fixture_fini(f);
}

TEST(the_same_tree_makes_the_same_image_in_another_store)
{
	struct fixture one, two, *f = &one, *g = &two;
	struct built a, b;

	init(f, &a);
	init(g, &b);
	assert_true(digest_eq(&a.manifest, &b.manifest));
	fixture_fini(f);
	fixture_fini(g);
}

#define D "sha256:0000000000000000000000000000000000000000000000000000000000000000"
#define OCI "application/vnd.oci.image."
#define LAYER "{\"mediaType\":\"" OCI "layer.v1.tar\",\"digest\":\"" D "\",\"size\":1}"

TEST(documents_that_are_no_image_are_refused)
{
	/* %s: the config's descriptor */
	static const struct {
		const char *config, *manifest;
		enum err_kind kind;
		const char *say;
	} cases[] = {
		{"{}", "{", ERR_CORRUPT, "manifest"},
		{"{}", "[]", ERR_CORRUPT, "schemaVersion"},
		{"{}", "{\"schemaVersion\":1}", ERR_CORRUPT, "schemaVersion is not 2"},
		{"{}", "{\"schemaVersion\":2,\"mediaType\":\"" OCI "index.v1+json\"}",
			ERR_UNSUPPORTED, "is not an image manifest"},
		{"{}", "{\"schemaVersion\":2,\"manifests\":[],\"layers\":[],\"config\":%s}",
			ERR_CORRUPT, "a manifest that is also an index"},
		{"{}", "{\"schemaVersion\":2,\"config\":%s}", ERR_CORRUPT, "layers"},
		{"{}", "{\"schemaVersion\":2,\"layers\":[]}", ERR_CORRUPT, "config"},
		{"{}", "{\"schemaVersion\":2,\"layers\":[],\"config\":%s}", ERR_CORRUPT, "rootfs"},
		{"{\"rootfs\":{\"diff_ids\":[]}}",
			"{\"schemaVersion\":2,\"layers\":[" LAYER "],\"config\":%s}", ERR_CORRUPT,
			"1 layers, but 0 diff_ids"},
		{"{\"rootfs\":{\"diff_ids\":[\"sha256:1\"]}}",
			"{\"schemaVersion\":2,\"layers\":[" LAYER "],\"config\":%s}", ERR_CORRUPT,
			"/rootfs/diff_ids/0"},
		{"{\"rootfs\":{\"diff_ids\":[5]}}",
			"{\"schemaVersion\":2,\"layers\":[" LAYER "],\"config\":%s}", ERR_CORRUPT,
			"/rootfs/diff_ids/0"},
		{"{}",
			"{\"schemaVersion\":2,\"config\":%s,\"layers\":[{\"mediaType\":\"text/"
			"plain\",\"digest\":\"" D "\",\"size\":1}]}",
			ERR_UNSUPPORTED, "'text/plain' is no layer"},
		{"{}",
			"{\"schemaVersion\":2,\"config\":%s,\"layers\":[{\"mediaType\":\"" OCI
			"layer.v1.tar\",\"digest\":\"" D "\",\"size\":-1}]}",
			ERR_CORRUPT, "/layers/0: key 'size'"},
		{"{}",
			"{\"schemaVersion\":2,\"config\":%s,\"layers\":[{\"mediaType\":\"" OCI
			"layer.v1.tar\",\"digest\":\"md5:0\",\"size\":1}]}",
			ERR_CORRUPT, "'md5:0'"},
		{"{}",
			"{\"schemaVersion\":2,\"layers\":[],\"config\":{\"mediaType\":\"x\","
			"\"digest\":\"" D "\",\"size\":1}}",
			ERR_UNSUPPORTED, "'x' is not that of a container image"},
		{"{}",
			"{\"schemaVersion\":2,\"layers\":[],\"config\":{\"mediaType\":\"" OCI
			"config.v1+json\",\"digest\":\"" D "\",\"size\":1}}",
			ERR_NOT_FOUND, D},
		{"{\"rootfs\":{\"diff_ids\":[]}}",
			"{\"schemaVersion\":2,\"layers\":[],\"config\":%s,\"annotations\":{"
			"\"run.svrun.index\":\"1:nonsense\"}}",
			ERR_CORRUPT, "run.svrun.index"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture fix, *f = &fix;
		struct image im;
		struct digest d;
		char text[DIGEST_TEXT + 1];
		auto_free char *descriptor = NULL, *doc = mem_strdup(cases[i].manifest);
		char *hole = strstr(doc, "%s");

		fixture_init(f);
		assert_int_equal(
			store_blob_put(&f->s, cases[i].config, strlen(cases[i].config), &d, NULL),
			0);
		descriptor = mem_printf("{\"mediaType\":\"" OCI
					"config.v1+json\",\"digest\":\"%s\",\"size\":%zu}",
			digest_text(&d, text), strlen(cases[i].config));
		if (hole) {
			char *whole;

			*hole = '\0';
			whole = mem_printf("%s%s%s", doc, descriptor, hole + 2);
			free(doc);
			doc = whole;
		}
		assert_int_equal(store_blob_put(&f->s, doc, strlen(doc), &d, NULL), 0);
		assert_int_equal(image_load(&im, &f->s, &d, &f->e), -1);
		if (f->e.kind != cases[i].kind || !strstr(f->e.text, cases[i].say))
			fail_msg("case %zu: '%s' (%s) lacks '%s'", i, f->e.text,
				err_kind_name(f->e.kind), cases[i].say);
		fixture_fini(f);
	}
}

TEST(an_index_in_a_layer_that_another_tool_replaced_is_none)
{
	struct fixture fix, *f = &fix;
	struct image im;
	struct digest d;
	char text[DIGEST_TEXT + 1];
	static const char config[] = "{\"rootfs\":{\"diff_ids\":[]}}";
	auto_free char *doc = NULL;

	fixture_init(f);
	need(store_blob_put(&f->s, config, sizeof(config) - 1, &d, &f->e));
	doc = mem_printf("{\"schemaVersion\":2,\"layers\":[],\"config\":{\"mediaType\":\"" OCI
			 "config.v1+json\",\"digest\":\"%s\",\"size\":%zu},\"annotations\":{"
			 "\"run.svrun.index\":\"1:" D ":0:1:%064d\"}}",
		digest_text(&d, text), sizeof(config) - 1, 0);
	need(store_blob_put(&f->s, doc, strlen(doc), &d, &f->e));
	need(image_load(&im, &f->s, &d, &f->e));
	assert_false(im.has_index);
	assert_false(image_is_indexed(&im, &f->s));
	image_fini(&im);
	fixture_fini(f);
}

/* umoci, buildah and others keep annotations when they add a layer. */
TEST(an_index_with_a_layer_on_top_of_it_is_none)
{
	struct fixture fix, *f = &fix;
	struct built b;
	struct image im;
	struct digest d;
	auto_json json_t *m = NULL, *c = NULL;
	auto_buf struct buf out = BUF_INIT(1 << 20);
	json_t *layers, *ids;

	init(f, &b);
	load(f, &im, &b.manifest);
	assert_true(im.has_index);
	m = json_deep_copy(im.manifest);
	c = json_deep_copy(im.config);
	image_fini(&im);
	layers = json_object_get(m, "layers");
	json_array_append(layers, json_array_get(layers, 0));
	ids = json_object_get(json_object_get(c, "rootfs"), "diff_ids");
	json_array_append(ids, json_array_get(ids, 0));
	json_text(c, true, &out);
	need(store_blob_put(&f->s, out.data, out.len, &d, &f->e));
	{
		char text[DIGEST_TEXT + 1];

		json_object_set_new(m, "config",
			json_pack("{s:s, s:s, s:I}", "mediaType", OCI_CONFIG_TYPE, "digest",
				digest_text(&d, text), "size", (json_int_t)out.len));
	}
	json_text(m, true, &out);
	need(store_blob_put(&f->s, out.data, out.len, &d, &f->e));
	load(f, &im, &d);
	assert_false(im.has_index);
	image_fini(&im);
	fixture_fini(f);
}

TEST(a_manifest_with_too_many_layers_is_refused)
{
	struct fixture fix, *f = &fix;
	struct image im;
	struct digest d;
	auto_buf struct buf b = BUF_INIT(1 << 20);

	fixture_init(f);
	buf_printf(&b, "{\"schemaVersion\":2,\"layers\":[");
	for (int i = 0; i < 513; i++)
		buf_printf(&b, "%s%s", i ? "," : "", LAYER);
	buf_printf(&b, "]}");
	assert_int_equal(store_blob_put(&f->s, b.data, b.len, &d, NULL), 0);
	assert_int_equal(image_load(&im, &f->s, &d, &f->e), -1);
	assert_non_null(strstr(f->e.text, "513 layers, more than the limit of 512"));
	fixture_fini(f);
}

/* ---- verifying ---- */

TEST(an_image_that_is_well_is_found_well)
{
	struct fixture fix, *f = &fix;
	struct built b;

	init(f, &b);
	verify_well(f, &b, 0);
	fixture_fini(f);
}

TEST(a_damaged_layer_is_named_and_repair_makes_room_for_a_new_one)
{
	for (size_t i = 0; i < LAYERS; i++) {
		struct fixture fix, *f = &fix;
		struct built b;
		char path[128], want[DIGEST_TEXT + 1];

		init(f, &b);
		blob_path(&b.layers[i].digest, path);
		alter(f, path, (off_t)b.layers[i].size / 2);
		verify_fault(f, &b, false, path, "--repair removes it");
		assert_non_null(strstr(f->e.text, digest_text(&b.layers[i].digest, want)));
		assert_non_null(strstr(f->e.text, "found sha256:"));
		assert_true(exists(f, path));
		verify_fault(f, &b, true, path, "it was removed: svrun image build");
		assert_false(exists(f, path));
		verify_fault(f, &b, true, want, "svrun image build makes it again");
		f->p = pool_open(f->s.fd, true, &f->e);
		build(f, &b);
		pool_close(f->p);
		f->p = NULL;
		verify_well(f, &b, 0);
		fixture_fini(f);
	}
}

TEST(a_cut_off_layer_is_named_with_both_lengths)
{
	struct fixture fix, *f = &fix;
	struct built b;
	char path[128], text[256];
	int fd;

	init(f, &b);
	blob_path(&b.layers[0].digest, path);
	fd = sys_openat(f->s.fd, path, O_RDWR, 0);
	assert_int_equal(sys_ftruncate(fd, 1000), 0);
	close(fd);
	snprintf(text, sizeof(text), "%s: expected %llu bytes, found 1000", path,
		(unsigned long long)b.layers[0].size);
	verify_fault(f, &b, false, text, "--repair");
	fixture_fini(f);
}

TEST(a_damaged_index_is_named)
{
	struct fixture fix, *f = &fix;
	struct built b;
	struct image im;
	char path[128];

	init(f, &b);
	load(f, &im, &b.manifest);
	blob_path(&im.index.layer, path);
	alter(f, path, (off_t)im.index.offset + 40);
	verify_fault(f, &b, false, path, "--repair");
	image_fini(&im);
	fixture_fini(f);
}

static off_t place_of(struct fixture *f, const char *path)
{
	return (off_t)tree_find(f->t, path)->a.chunks[0].block * POOL_BLOCK;
}

TEST(altered_chunks_are_repaired_from_their_layers)
{
	struct fixture fix, *f = &fix;
	struct built b;

	init(f, &b);
	alter(f, "pool/data", place_of(f, "files/size-65536") + 4096); /* gzip */
	verify_fault(f, &b, false, "pool/data", "verify --repair");
	alter(f, "pool/data", place_of(f, "bin/su"));           /* zstd */
	alter(f, "pool/data", place_of(f, "xattr/large") + 17); /* plain */
	verify_well(f, &b, 3);
	verify_well(f, &b, 0);
	fixture_fini(f);
}

TEST(a_pool_that_was_moved_aside_is_filled_again)
{
	struct fixture fix, *f = &fix;
	struct built b;
	struct image_verify v = {.repair = true};

	init(f, &b);
	assert_int_equal(mount_image_ready(&f->s, &b.manifest, NULL), 1);
	assert_int_equal(sys_renameat(f->s.fd, "pool", f->s.fd, "aside"), 0);
	verify_fault(f, &b, false, "pool", "--repair");
	assert_int_equal(mount_image_ready(&f->s, &b.manifest, NULL), 0); /* not of this pool */
	if (verify(f, &b, &v) < 0)
		fail_msg("%s", f->e.text);
	assert_int_equal(v.repaired, v.chunks);
	assert_int_equal(mount_image_ready(&f->s, &b.manifest, NULL), 1);
	verify_well(f, &b, 0);
	fixture_fini(f);
}

TEST(a_damaged_metadata_image_is_made_again)
{
	struct fixture fix, *f = &fix;
	struct built b;
	char path[128];

	init(f, &b);
	path_of("erofs", &b.manifest, ".img", path);
	alter(f, path, 5000);
	verify_fault(f, &b, false, path, "--repair makes it again");
	verify_well(f, &b, 1);
	assert_int_equal(sys_unlinkat(f->s.fd, path, 0), 0);
	verify_well(f, &b, 0); /* a missing one is simply made */
	assert_true(exists(f, path));
	fixture_fini(f);
}

TEST(a_layer_is_unpacked_up_to_its_limit_and_must_have_its_diff_id)
{
	struct fixture fix, *f = &fix;
	struct built b;
	struct image im;
	bool damaged;

	init(f, &b);
	load(f, &im, &b.manifest);
	for (size_t i = 0; i < LAYERS; i++) {
		uint64_t size = b.layers[i].tar_size;

		need(layer_verify(&f->s, &im.layers[i], size, NULL, &damaged, &f->e));
		assert_int_equal(
			layer_verify(&f->s, &im.layers[i], size - 1, NULL, &damaged, &f->e), -1);
		assert_false(damaged);
		assert_non_null(strstr(f->e.text, "unpacks to more than"));
		im.layers[i].diff_id.b[0] ^= 1;
		assert_int_equal(
			layer_verify(&f->s, &im.layers[i], size, NULL, &damaged, &f->e), -1);
		assert_false(damaged);
		assert_non_null(strstr(f->e.text, "DiffID: expected sha256:"));
		im.layers[i].diff_id.b[0] ^= 1;
	}
	image_fini(&im);
	fixture_fini(f);
}

TEST(a_layer_that_ends_in_the_middle_is_refused)
{
	static const char *const say[] = {
		"ends in the middle of a zstd frame", "ends in the middle of a gzip member"};

	for (size_t i = 0; i < 2; i++) {
		struct fixture fix, *f = &fix;
		struct built b;
		char path[128];
		auto_buf struct buf whole = BUF_INIT(64 << 20);
		struct image_layer l = {.codec = codecs[i]};
		bool damaged;

		init(f, &b);
		need(file_read(f->s.fd, blob_path(&b.layers[i].digest, path), &whole, &f->e));
		l.size = whole.len - 3;
		need(store_blob_put(&f->s, whole.data, whole.len - 3, &l.digest, &f->e));
		assert_int_equal(layer_verify(&f->s, &l, UINT64_MAX, NULL, &damaged, &f->e), -1);
		assert_non_null(strstr(f->e.text, say[i]));
		whole.data[whole.len / 2] ^= 0x55; /* and one that is no such thing */
		whole.data[0] ^= 0x55;
		need(store_blob_put(&f->s, whole.data, whole.len - 3, &l.digest, &f->e));
		assert_int_equal(layer_verify(&f->s, &l, UINT64_MAX, NULL, &damaged, &f->e), -1);
		assert_non_null(strstr(f->e.text, i ? "gzip: " : "zstd: "));
		fixture_fini(f);
	}
}

TEST(a_layer_of_one_big_frame_is_unpacked_to_its_end)
{
	static unsigned char zeros[3 << 20];

	for (size_t i = 0; i < LAYERS; i++) {
		struct fixture fix, *f = &fix;
		struct encoder *x = encoder_new(codecs[i], 1, NULL);
		size_t n;
		auto_free void *frame = mem_alloc(frame_bound(codecs[i], sizeof(zeros)));
		struct image_layer l = {
			.codec = codecs[i], .diff_id = digest_of(zeros, sizeof(zeros))};
		bool damaged;

		fixture_init(f);
		need(encoder_frame(x, zeros, sizeof(zeros), frame, &n, &f->e));
		l.size = n;
		need(store_blob_put(&f->s, frame, n, &l.digest, &f->e));
		need(layer_verify(&f->s, &l, sizeof(zeros), NULL, &damaged, &f->e));
		encoder_free(x);
		fixture_fini(f);
	}
}

/* ---- deleting ---- */

TEST(a_deleted_image_takes_only_what_no_other_one_uses)
{
	struct fixture fix, *f = &fix;
	struct built a, b;
	struct image im;
	char path[128], img[128];
	int claim;

	init(f, &a);
	f->p = pool_open(f->s.fd, true, &f->e);
	put_file(f, "bin/one-more", 33, 99, &(struct attr){.mode = 0755});
	tree_sort(f->t);
	build(f, &b); /* the other two layers are the same */
	assert_false(digest_eq(&a.layers[0].digest, &b.layers[0].digest));
	assert_true(digest_eq(&a.layers[1].digest, &b.layers[1].digest));
	need(store_name_set(&f->s, "other", &b.manifest, b.size, NULL, &f->e));
	load(f, &im, &a.manifest);
	pool_close(f->p); /* who has it open may count on blobs: then nothing is deleted */
	f->p = NULL;

	claim = image_claim(&f->s, &a.manifest, &f->e);
	assert_true(claim >= 0);
	need(image_delete(&f->s, &a.manifest, &f->e)); /* it has a name: nothing happens */
	assert_true(exists(f, blob_path(&a.manifest, path)));
	need(store_name_remove(&f->s, "sample", &f->e));
	need(image_delete(&f->s, &a.manifest, &f->e));
	close(claim);
	assert_false(exists(f, blob_path(&a.manifest, path)));
	assert_false(exists(f, blob_path(&a.layers[0].digest, path)));
	assert_false(exists(f, blob_path(&im.config_digest, path)));
	assert_false(exists(f, blob_path(&im.index.layer, path)));
	assert_false(exists(f, path_of("erofs", &a.manifest, ".img", img)));
	image_fini(&im);
	verify_well(f, &b, 0);
	fixture_fini(f);
}

TEST(blobs_that_an_index_of_another_tool_uses_stay)
{
	struct fixture fix, *f = &fix;
	struct built b;
	struct digest index, image;
	char m[DIGEST_TEXT + 1], path[128];
	auto_free char *list = NULL, *names = NULL;

	init(f, &b);
	/* as `skopeo copy --all` writes it: an index without a name, which names our manifest */
	list = mem_printf("{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\",\"size\":1},"
			  "{\"digest\":\"" D "\",\"size\":1}]}",
		digest_text(&b.manifest, m));
	need(store_blob_put(&f->s, list, strlen(list), &index, &f->e));
	names = mem_printf("{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\",\"size\":1}]}",
		digest_text(&index, m));
	need(file_write(f->s.fd, "index.json", names, strlen(names), 0644, &f->e));
	need(image_delete(&f->s, &b.manifest, &f->e));
	assert_true(exists(f, blob_path(&b.manifest, path)));
	assert_true(exists(f, blob_path(&b.layers[0].digest, path)));
	image = digest_of("{}", 2);
	need(image_delete(&f->s, &image, &f->e));
	fixture_fini(f);
}

TEST(while_another_manifest_is_damaged_no_blob_is_deleted)
{
	struct fixture fix, *f = &fix;
	struct built b;
	struct digest other;
	char path[128];

	init(f, &b);
	need(store_blob_put(
		&f->s, "{\"schemaVersion\":2,\"layers\":[],\"config\":{}}", 44, &other, &f->e));
	other = b.manifest; /* the damaged one is ours; what is deleted is an unnamed one */
	alter(f, blob_path(&b.manifest, path), 5);
	other.b[0] ^= 1;
	f->e = (struct err){0};
	assert_int_equal(image_delete(&f->s, &other, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f->e.text, "keep all blobs"));
	assert_true(exists(f, blob_path(&b.layers[0].digest, path)));
	/* the damaged one itself can go */
	need(store_name_remove(&f->s, "sample", &f->e));
	need(image_delete(&f->s, &b.manifest, &f->e));
	assert_false(exists(f, blob_path(&b.manifest, path)));
	fixture_fini(f);
}

TEST(an_image_in_use_is_not_claimed)
{
	struct fixture fix, *f = &fix;
	struct built b;
	char path[128];
	int fd, claim;

	init(f, &b);
	claim = image_claim(&f->s, &b.manifest, &f->e);
	assert_true(claim >= 0);
	close(claim);
	fd = sys_openat(f->s.fd, path_of("mnt", &b.manifest, ".lock", path), O_RDWR, 0);
	assert_int_equal(sys_flock(fd, LOCK_SH), 0); /* as mount_open() does */
	assert_int_equal(image_claim(&f->s, &b.manifest, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_EXISTS);
	assert_non_null(strstr(f->e.text, "in use by a running instance"));
	close(fd);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(a_published_image_loads_with_all_that_it_was_made_of),
	cmocka_unit_test(the_same_tree_makes_the_same_image_in_another_store),
	cmocka_unit_test(documents_that_are_no_image_are_refused),
	cmocka_unit_test(an_index_in_a_layer_that_another_tool_replaced_is_none),
	cmocka_unit_test(an_index_with_a_layer_on_top_of_it_is_none),
	cmocka_unit_test(a_manifest_with_too_many_layers_is_refused),
	cmocka_unit_test(an_image_that_is_well_is_found_well),
	cmocka_unit_test(a_damaged_layer_is_named_and_repair_makes_room_for_a_new_one),
	cmocka_unit_test(a_cut_off_layer_is_named_with_both_lengths),
	cmocka_unit_test(a_damaged_index_is_named),
	cmocka_unit_test(altered_chunks_are_repaired_from_their_layers),
	cmocka_unit_test(a_pool_that_was_moved_aside_is_filled_again),
	cmocka_unit_test(a_damaged_metadata_image_is_made_again),
	cmocka_unit_test(a_layer_is_unpacked_up_to_its_limit_and_must_have_its_diff_id),
	cmocka_unit_test(a_layer_that_ends_in_the_middle_is_refused),
	cmocka_unit_test(a_layer_of_one_big_frame_is_unpacked_to_its_end),
	cmocka_unit_test(a_deleted_image_takes_only_what_no_other_one_uses),
	cmocka_unit_test(blobs_that_an_index_of_another_tool_uses_stay),
	cmocka_unit_test(while_another_manifest_is_damaged_no_blob_is_deleted),
	cmocka_unit_test(an_image_in_use_is_not_claimed))
