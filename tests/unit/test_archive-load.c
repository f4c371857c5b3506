#include "images/archive-load.h"

#include "base/str.h"
#include "images/archive-save.h"
#include "images/mount.h"
#include "images/tree-equal.h"
#include "tests/unit/archive.h"

/* ---- an image of our own in a store ---- */

static json_t *config(void)
{
	return json_pack("{s:s, s:s, s:{s:[s]}}", "architecture", "amd64", "os", "linux", "config",
		"Cmd", "/bin/su");
}

static void build(struct fixture *f, enum codec codec, struct digest *d, uint64_t *size)
{
	struct layer l = {.id = "all", .codec = codec, .level = 1};
	struct node **nodes = mem_array(tree_count(f->t), sizeof(*nodes));
	auto_json json_t *c = config();
	struct image_plan plan = {.tree = f->t,
		.layers = &l,
		.nlayers = 1,
		.config = c,
		.created = "2026-01-02T03:04:05Z"};
	size_t n = 0;

	for (struct node *x = tree_root(f->t); x; x = tree_next(x)) {
		for (uint32_t i = 0; i < x->a.nchunks; i++)
			x->a.chunks[i].layer = CHUNK_NO_LAYER;
		nodes[n++] = x;
	}
	need(layer_write(&l, 0, nodes, n, f->p, &f->s, NULL, &f->e));
	need(pool_commit(f->p, &f->e));
	need(image_publish(&f->s, &plan, d, size, &f->e));
	free(nodes);
}

static void init(struct fixture *f)
{
	fixture_init(f);
	pool_close(f->p); /* archive_load() opens it */
	f->p = NULL;
}

typedef int (*save_fn)(struct store *, const struct archive_saved *, size_t, struct outlet *,
	struct progress *, struct err *);

/* Save the image of d under these names to path. */
static int save(struct fixture *f, const struct digest *d, save_fn fn, const char *path,
	const char *const *names)
{
	struct archive_saved v[4];
	struct image im;
	struct outlet o;
	size_t n = 0;
	int rc;

	need(image_load(&im, &f->s, d, &f->e));
	for (; names[n]; n++) {
		v[n].im = &im;
		v[n].name = mem_strdup(names[n]);
	}
	need(outlet_open(&o, path, -1, NULL, &f->e));
	rc = fn(&f->s, v, n, &o, NULL, &f->e);
	if (rc == 0)
		rc = outlet_commit(&o, &f->e);
	outlet_close(&o);
	while (n-- > 0)
		free(v[n].name);
	image_fini(&im);
	return rc;
}

static int load_file(struct fixture *f, const char *path, const struct archive_load *how,
	struct archive_images *out)
{
	auto_fd int fd = sys_open(path, O_RDONLY, 0);

	assert_true(fd >= 0);
	f->e = (struct err){0};
	return archive_load(&f->s, NULL, fd, "x.tar", how, out, &f->e);
}

static void assert_same_tree(struct fixture *f, const struct digest *d, struct tree *want)
{
	auto_buf struct buf b = BUF_INIT(INDEX_BYTES_MAX);
	struct layer *layers;
	struct image im;
	struct tree *t;
	size_t n;

	need(image_load(&im, &f->s, d, &f->e));
	need(image_index(&im, &f->s, &b, &f->e));
	t = index_decode(b.data, b.len, &layers, &n, &f->e);
	assert_non_null(t);
	assert_int_equal(tree_count(t), tree_count(want));
	need(tree_equal(t, want, &f->e));
	tree_free(t);
	free(layers);
	image_fini(&im);
}

static void round_trip(enum codec codec, save_fn fn, bool same_digest)
{
	static const char *const names[] = {"sample", "team/sample:1.2", NULL};
	struct fixture one, two, *f = &one;
	struct archive_load how = {0};
	struct archive_images out;
	struct digest d, found;
	uint64_t size;
	char path[] = "/tmp/svrun-test-XXXXXX";
	int fd = mkstemp(path);

	sys_close_ref(&fd);
	fixture_init(f);
	sample_tree(f);
	build(f, codec, &d, &size);
	need(save(f, &d, fn, path, names));
	f = &two;
	init(f);
	need(load_file(f, path, &how, &out));
	assert_int_equal(out.n, 1);
	assert_int_equal(json_array_size(out.v[0].names), 2);
	need(store_resolve(&f->s, "sample", &found, &f->e));
	assert_int_equal(digest_eq(&found, &d), same_digest);
	need(store_resolve(&f->s, "team/sample:1.2", &found, &f->e));
	assert_same_tree(f, &found, one.t);
	archive_images_fini(&out);
	/* again: all is there already */
	need(load_file(f, path, &how, &out));
	archive_images_fini(&out);
	fixture_fini(f);
	fixture_fini(&one);
	unlink(path);
}

TEST(an_oci_archive_brings_the_image_as_it_was)
{
	round_trip(CODEC_ZSTD, oci_archive_save, true);
	round_trip(CODEC_GZIP, oci_archive_save, true);
	round_trip(CODEC_NONE, oci_archive_save, true);
}

TEST(a_docker_archive_brings_the_same_files_in_plain_layers)
{
	round_trip(CODEC_ZSTD, docker_archive_save, false);
	round_trip(CODEC_GZIP, docker_archive_save, false);
	round_trip(CODEC_NONE, docker_archive_save, false);
}

/* ---- archives by hand ---- */

/* A store with an archive of one image in memory, to be altered. */
static void expect_fault(
	struct hand_tar *t, const struct archive_load *how, enum err_kind kind, const char *say)
{
	struct fixture fix, *f = &fix;
	struct archive_images out;
	struct store_name *v;
	auto_fd int fd = tar_open(t);
	size_t n;

	init(f);
	if (archive_load(&f->s, NULL, fd, "x.tar", how, &out, &f->e) == 0)
		fail_msg("loaded, though: %s", say);
	if (!strstr(f->e.text, say))
		fail_msg("'%s' lacks '%s'", f->e.text, say);
	assert_int_equal(f->e.kind, kind);
	need(store_names(&f->s, &v, &n, &f->e));
	assert_int_equal(n, 0);
	store_names_free(v, n);
	assert_int_equal(count_blobs(f), 0);
	buf_fini(&t->b);
	fixture_fini(f);
}

#define ZERO "0000000000000000000000000000000000000000000000000000000000000000"
#define INDEX_HEAD "{\"schemaVersion\":2,\"manifests\":["
#define DESC(digest, size)                                                                         \
	"{\"mediaType\":\"application/"                                                            \
	"vnd.oci.image.manifest.v1+json\",\"digest\":\"sha256:" digest "\",\"size\":" size         \
	",\"annotations\":{\"org.opencontainers.image.ref.name\":\"a\"}}"

TEST(layouts_that_are_not_whole_are_refused_and_leave_nothing)
{
	static const struct {
		const char *index, *say;
		enum err_kind kind;
	} cases[] = {
		{"{", "index.json", ERR_CORRUPT},
		{"[]", "manifests", ERR_CORRUPT},
		{"{\"manifests\":{}}", "manifests", ERR_CORRUPT},
		{"{\"manifests\":[]}", "no image in it", ERR_CORRUPT},
		{INDEX_HEAD DESC(ZERO, "3") "]}", "'blobs/sha256/" ZERO "' is missing",
			ERR_CORRUPT},
		{INDEX_HEAD DESC("xyz", "3") "]}", "/manifests/0", ERR_CORRUPT},
		{INDEX_HEAD DESC(ZERO, "-3") "]}", "/manifests/0", ERR_CORRUPT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hand_tar t = {0};
		const struct archive_load how = {0};

		tar_text(&t, "index.json", cases[i].index);
		tar_text(&t, "something", "else");
		tar_finish(&t);
		expect_fault(&t, &how, cases[i].kind, cases[i].say);
	}
}

/* A docker archive: config with this rootfs, manifest.json with these layers. */
static void docker_tar(struct hand_tar *t, const char *diff_ids, const char *layers)
{
	auto_free char *c = mem_printf("{\"architecture\":\"amd64\",\"os\":\"linux\","
				       "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[%s]}}",
		diff_ids);
	auto_free char *m =
		mem_printf("[{\"Config\":\"c.json\",\"RepoTags\":[\"host.example:5000/a/b:t\"],"
			   "\"Layers\":[%s]}]",
			layers);

	tar_text(t, "c.json", c);
	tar_text(t, "manifest.json", m);
}

static void empty_layer(struct hand_tar *t, const char *name, char hex[DIGEST_HEX + 1])
{
	static const char zeros[1024];
	struct digest d = digest_of(zeros, sizeof(zeros));

	tar_file(t, name, zeros, sizeof(zeros));
	digest_hex(&d, hex);
}

TEST(docker_archives_that_lie_are_refused_and_leave_nothing)
{
	static const struct {
		const char *ids, *layers, *say;
	} cases[] = {
		{"\"sha256:" ZERO "\"", "\"l.tar\"", "x.tar: l.tar: expected sha256:" ZERO},
		{"\"sha256:" ZERO "\"", "", "0 layers, 1 diff_ids"},
		{"", "\"l.tar\"", "1 layers, 0 diff_ids"},
		{"\"sha256:" ZERO "\"", "\"../l.tar\"", ".."},
		{"\"sha256:" ZERO "\"", "\"none.tar\"", "'none.tar' is missing"},
		{"\"sha256:" ZERO "\"", "7", "/Layers/0: expected string"},
		{"\"md5:0\"", "\"l.tar\"", "diff_ids"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hand_tar t = {0};
		const struct archive_load how = {0};
		char hex[DIGEST_HEX + 1];

		empty_layer(&t, "l.tar", hex);
		docker_tar(&t, cases[i].ids, cases[i].layers);
		tar_finish(&t);
		expect_fault(&t, &how, ERR_CORRUPT, cases[i].say);
	}
}

static void one_image(struct hand_tar *t)
{
	char hex[DIGEST_HEX + 1];
	auto_free char *id = NULL;

	empty_layer(t, "1/layer.tar", hex);
	tar_link(t, "2/layer.tar", '2', "../1/layer.tar");
	tar_text(t, "1/VERSION", "1.0");
	id = mem_printf("\"sha256:%s\",\"sha256:%s\"", hex, hex);
	docker_tar(t, id, "\"1/layer.tar\",\"2/layer.tar\"");
	tar_finish(t);
}

TEST(links_between_layers_are_followed_and_only_what_is_used_stays)
{
	struct fixture fix, *f = &fix;
	struct hand_tar t = {0};
	struct archive_images out;
	const struct archive_load how = {0};
	struct digest d;

	init(f);
	one_image(&t);
	{
		auto_fd int fd = tar_open(&t);

		need(archive_load(&f->s, NULL, fd, "x.tar", &how, &out, &f->e));
	}
	need(store_resolve(&f->s, "host.example:5000/a/b:t", &d, &f->e));
	assert_true(digest_eq(&d, &out.v[0].manifest));
	assert_int_equal(count_blobs(f), 3); /* manifest, config, the layer */
	archive_images_fini(&out);
	buf_fini(&t.b);
	fixture_fini(f);
}

TEST(a_new_name_takes_the_place_of_the_archives)
{
	struct fixture fix, *f = &fix;
	struct hand_tar t = {0};
	struct archive_images out;
	const struct archive_load how = {.rename = "mine:2"};
	struct digest d;

	init(f);
	one_image(&t);
	{
		auto_fd int fd = tar_open(&t);

		need(archive_load(&f->s, NULL, fd, "x.tar", &how, &out, &f->e));
	}
	need(store_resolve(&f->s, "mine:2", &d, &f->e));
	assert_int_equal(store_resolve(&f->s, "host.example:5000/a/b:t", &d, &f->e), -1);
	archive_images_fini(&out);
	buf_fini(&t.b);
	fixture_fini(f);
}

TEST(an_archive_that_is_none_says_what_it_lacks)
{
	struct hand_tar t = {0};
	const struct archive_load how = {0};

	tar_text(&t, "bin/sh", "x");
	tar_finish(&t);
	expect_fault(&t, &how, ERR_CORRUPT, "no index.json and no manifest.json");
}

/* ---- saving ---- */

TEST(the_same_image_gives_the_same_archive)
{
	static const char *const names[] = {"sample", NULL};
	static const save_fn fns[] = {oci_archive_save, docker_archive_save};
	struct fixture fix, *f = &fix;
	struct digest d;
	uint64_t size;

	fixture_init(f);
	sample_tree(f);
	build(f, CODEC_ZSTD, &d, &size);
	for (size_t i = 0; i < 2; i++) {
		auto_free char *a = mem_printf("%s/a.tar", f->path),
			       *b = mem_printf("%s/b.tar", f->path);
		auto_buf struct buf x = BUF_INIT(256 << 20), y = BUF_INIT(256 << 20);

		need(save(f, &d, fns[i], a, names));
		need(save(f, &d, fns[i], b, names));
		need(file_read(AT_FDCWD, a, &x, &f->e));
		need(file_read(AT_FDCWD, b, &y, &f->e));
		assert_int_equal(x.len, y.len);
		assert_memory_equal(x.data, y.data, x.len);
	}
	fixture_fini(f);
}

TEST(a_damaged_layer_is_told_and_no_file_stays)
{
	static const char *const names[] = {"sample", NULL};
	static const save_fn fns[] = {oci_archive_save, docker_archive_save};
	struct fixture fix, *f = &fix;
	struct image im;
	struct digest d;
	uint64_t size;
	struct stat st;

	fixture_init(f);
	sample_tree(f);
	build(f, CODEC_NONE, &d, &size);
	need(image_load(&im, &f->s, &d, &f->e));
	{
		char hex[DIGEST_HEX + 1];
		auto_free char *path =
			mem_printf("blobs/sha256/%s", digest_hex(&im.layers[0].digest, hex));
		auto_fd int fd = sys_openat(f->s.fd, path, O_RDWR, 0);

		assert_int_equal(sys_pwrite_all(fd, "!", 1, 100000), 0);
	}
	for (size_t i = 0; i < 2; i++) {
		auto_free char *a = mem_printf("%s/a.tar", f->path);

		f->e = (struct err){0};
		assert_int_equal(save(f, &d, fns[i], a, names), -1);
		assert_int_equal(f->e.kind, ERR_CORRUPT);
		assert_int_equal(stat(a, &st), -1);
	}
	image_fini(&im);
	fixture_fini(f);
}

RUN_TESTS(cmocka_unit_test(an_oci_archive_brings_the_image_as_it_was),
	cmocka_unit_test(a_docker_archive_brings_the_same_files_in_plain_layers),
	cmocka_unit_test(layouts_that_are_not_whole_are_refused_and_leave_nothing),
	cmocka_unit_test(docker_archives_that_lie_are_refused_and_leave_nothing),
	cmocka_unit_test(links_between_layers_are_followed_and_only_what_is_used_stays),
	cmocka_unit_test(a_new_name_takes_the_place_of_the_archives),
	cmocka_unit_test(an_archive_that_is_none_says_what_it_lacks),
	cmocka_unit_test(the_same_image_gives_the_same_archive),
	cmocka_unit_test(a_damaged_layer_is_told_and_no_file_stays))
