/* What a stranger's archive attaches to an image. */
#include "images/archive-attached.h"

#include "base/str.h"
#include "tests/unit/archive.h"

/* One image's list of n things with so many layers each, all of them the same blob. */
struct world {
	struct fixture f;
	struct hand_tar t;
	struct digest image;
	json_t *list;
};

static void blob(struct world *w, const char *text, size_t n, struct digest *d)
{
	char name[sizeof("blobs/sha256/") + DIGEST_HEX], hex[DIGEST_HEX + 1];

	*d = digest_of(text, n);
	snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(d, hex));
	tar_file(&w->t, name, text, n);
}

static json_t *describe(const char *type, const struct digest *d, size_t n)
{
	char text[DIGEST_TEXT + 1];

	return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", digest_text(d, text),
		"size", (json_int_t)n);
}

static void thing(struct world *w, size_t number, size_t nlayers)
{
	struct digest one = digest_of("{}", 2), d;
	json_t *layers = json_array(), *o;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	auto_json json_t *doc = json_pack("{s:i, s:o, s:o, s:o, s:{s:I}}", "schemaVersion", 2,
		"config", describe("x", &one, 2), "layers", layers, "subject",
		describe("x", &w->image, 2), "annotations", "n", (json_int_t)number);

	for (size_t i = 0; i < nlayers; i++)
		json_array_append_new(layers, describe("x", &one, 2));
	json_text(doc, true, &b);
	blob(w, b.data, b.len, &d);
	o = describe("application/vnd.oci.image.manifest.v1+json", &d, b.len);
	json_object_set_new(o, "artifactType", json_string("a"));
	json_array_append_new(w->list, o);
}

/* Load the archive, and say how many things are attached then. */
static int load(struct world *w, int *attached)
{
	auto_json json_t *doc = json_pack("{s:O}", "manifests", w->list), *image = NULL;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	auto_fd int fd = -1;
	char text[DIGEST_TEXT + 1];
	struct fixture *f = &w->f;
	struct intake in;
	struct digest d;
	int rc;

	json_text(doc, true, &b);
	blob(w, b.data, b.len, &d);
	image = json_pack("{s:{s:s}}", "annotations", ATTACHED_ANNOTATION, digest_text(&d, text));
	tar_finish(&w->t);
	fd = tar_open(&w->t);
	need(intake_stream(&in, &f->s, fd, "x.tar", NULL, &f->e));
	rc = archive_attached_load(&in, NULL, image, &w->image, &f->e);
	*attached = archive_attached_count(&f->s, &w->image, NULL);
	intake_fini(&in);
	return rc;
}

TEST(what_is_attached_is_bounded_and_listed_as_one)
{
	static const struct {
		size_t things, layers;
		const char *want; /* NULL: all are listed */
	} cases[] = {
		{128, 1, NULL},
		{31, 512, NULL},
		{129, 1, "at most 128 things"},
		{1, 513, "more than 512 layers"},
		{40, 512, "more than 16384 attached things and layers"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w = {.list = json_array(), .image = digest_of("image", 5)};
		struct digest d;
		int n = -1, rc;

		fixture_init(&w.f);
		blob(&w, "{}", 2, &d);
		for (size_t k = 0; k < cases[i].things; k++)
			thing(&w, k, cases[i].layers);
		rc = load(&w, &n);
		if ((rc < 0) != (cases[i].want != NULL))
			fail_msg("%zu of %zu: %s", cases[i].things, cases[i].layers, w.f.e.text);
		if (cases[i].want && !strstr(w.f.e.text, cases[i].want))
			fail_msg("'%s' lacks '%s'", w.f.e.text, cases[i].want);
		assert_int_equal(n, rc < 0 ? 0 : cases[i].things);
		json_decref(w.list);
		buf_fini(&w.t.b);
		fixture_fini(&w.f);
	}
}

RUN_TESTS(cmocka_unit_test(what_is_attached_is_bounded_and_listed_as_one))
