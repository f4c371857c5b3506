#include "svrun/test-subject.h"

#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "builder/build.h"
#include "images/tree-chunks.h"

enum { DOCUMENT_MAX = 256 << 20 }; /* as manifest.c */

bool test_word_is_app(const char *word)
{
	auto_free char *named = mem_printf("manifests/%s/manifest.json", word);

	return access(word, F_OK) == 0 || (!strchr(word, '/') && access(named, F_OK) == 0);
}

const struct manifest *test_subject_manifest(const struct test_subject *x)
{
	return x->has_app ? &x->app.m : &x->parsed;
}

/* ---- an app ---- */

static int open_app(
	struct test_subject *x, const struct test_source *from, const char *mode, struct err *e)
{
	struct app_choice choice = from->choice;
	auto_free char *plain = NULL;
	struct err fault = {0};

	if (mode)
		choice.mode = mode;
	if (app_open(&x->app, from->word, &choice, e) < 0)
		return -1;
	x->has_app = true;
	build_names(&x->app.m, &x->own_name, &plain);
	x->name = x->own_name;
	if (lock_load_of(&x->lock, &x->app.m, &fault) < 0) {
		if (mode && fault.kind == ERR_NOT_FOUND)
			return 0; /* what is not locked is not built */
		if (e)
			*e = fault;
		return -1;
	}
	x->has_lock = true;
	x->built = from->image && (!mode || (from->choice.mode && str_eq(mode, from->choice.mode)));
	if (x->built)
		x->digest = *from->image;
	return lock_check(&x->lock, &x->app.m, e) < 0 ? -1 : 1;
}

/* The result of a build of this manifest and lock, whatever --compression it had. The bill does not
 * tell: two manifests may be built to the same image. */
static int is_current(const struct test_subject *x, struct store *s, struct err *e)
{
	static const enum codec codecs[] = {CODEC_NONE, CODEC_ZSTD, CODEC_GZIP};
	struct pool *p = pool_open(s->fd, false, e);
	char hex[DIGEST_HEX + 1];
	int rc = 0;

	if (!p)
		return -1;
	digest_hex(&x->digest, hex);
	for (size_t i = 0; rc == 0 && i <= sizeof(codecs) / sizeof(codecs[0]); i++) {
		struct digest key = build_key(&x->app.m, &x->lock, i ? &codecs[i - 1] : NULL);
		auto_free char *note = NULL;

		rc = pool_note_get(p, &key, &note, e);
		if (rc > 0)
			rc = str_eq(note, hex);
	}
	pool_close(p);
	return rc;
}

int test_subject_find(struct test_subject *x, struct store *s, struct err *e)
{
	struct err fault = {0};
	int rc;

	if (!x->has_app || x->built)
		return 1;
	if (store_resolve(s, x->name, &x->digest, &fault) < 0) {
		if (fault.kind == ERR_NOT_FOUND)
			return 0;
		if (e)
			*e = fault;
		return -1;
	}
	rc = is_current(x, s, e);
	if (rc == 0) {
		err_set(e, ERR_USAGE, "the image %s was not built from %s as it is now", x->name,
			x->app.m.path);
		return err_hint(e, "build it again: svrun image build %s", x->app.m.dir);
	}
	return rc;
}

/* ---- an image that was built here ---- */

/* The name of the image in another mode, as builds give them: the tag with the mode behind it. 1,
 * 0: there is none. */
static int find_mode(struct test_subject *x, const char *mode, struct store *s, struct err *e)
{
	struct store_name *v;
	size_t n;
	int rc = 0;

	if (store_names(s, &v, &n, e) < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		auto_free char *other = mem_printf("%s-%s", v[i].name, mode);

		if (!digest_eq(&v[i].manifest, &x->digest) || !strchr(v[i].name, ':'))
			continue;
		if (str_ends(v[i].name, other + strlen(v[i].name))) { /* it is that one */
			rc = 1;
			continue;
		}
		for (size_t k = 0; rc == 0 && k < n; k++)
			if (str_eq(v[k].name, other)) {
				x->digest = v[k].manifest;
				free(x->own_name);
				x->name = x->own_name = steal_ptr(&other);
				rc = 1;
				break;
			}
	}
	store_names_free(v, n);
	return rc;
}

/* The document that was built from is merged, and no longer has the modes; tests still name them.
 */
static void restore_modes(json_t *document)
{
	json_t *modes = json_object(), *t;
	size_t i;

	json_array_foreach (json_object_get(document, "tests"), i, t) {
		const char *mode = json_string_value(json_object_get(t, "mode"));

		if (mode)
			json_object_set_new(modes, mode, json_object());
	}
	if (json_object_size(modes))
		json_object_set(document, "modes", modes);
	json_decref(modes);
}

static int parse_bill(struct test_subject *x, struct err *e)
{
	auto_json json_t *document = json_parse(x->bill.document, strlen(x->bill.document), e);
	auto_buf struct buf text = BUF_INIT(DOCUMENT_MAX);
	struct complaints c = {0};
	int rc;

	if (!document)
		return -1;
	restore_modes(document);
	json_text(document, true, &text);
	rc = manifest_parse(&x->parsed, x->name, text.data, text.len, NULL, &c, e);
	if (rc < 0 && c.count)
		fputs(c.text.data, stderr);
	complaints_fini(&c);
	if (rc < 0)
		return err_ctx(e, "manifest of %s", x->name);
	x->has_parsed = true;
	if (lock_parse(&x->lock, x->name, x->bill.lock_text, strlen(x->bill.lock_text), e) < 0)
		return err_ctx(e, "lock of %s", x->name);
	x->has_lock = true;
	return 1;
}

static int open_image(struct test_subject *x, const struct test_source *from, const char *mode,
	struct store *s, struct err *e)
{
	int rc;

	x->name = x->own_name = mem_strdup(from->word);
	if (store_resolve(s, from->word, &x->digest, e) < 0)
		return -1;
	rc = mode ? find_mode(x, mode, s, e) : 1;
	if (rc <= 0)
		return rc;
	if (bill_load(&x->bill, s, &x->digest, from->word, e) < 0)
		return err_ctx(e, "tests of %s", from->word);
	x->has_bill = true;
	return parse_bill(x, e);
}

int test_subject_open(struct test_subject *x, const struct test_source *from, const char *mode,
	struct store *s, struct err *e)
{
	int rc;

	*x = (struct test_subject){.has_app = false};
	rc = from->is_app ? open_app(x, from, mode, e) : open_image(x, from, mode, s, e);
	if (rc <= 0)
		test_subject_close(x);
	return rc;
}

void test_subject_close(struct test_subject *x)
{
	test_subject_unload(x);
	if (x->has_lock)
		lock_fini(&x->lock);
	if (x->has_bill)
		bill_fini(&x->bill);
	if (x->has_parsed)
		manifest_fini(&x->parsed);
	if (x->has_app)
		app_close(&x->app);
	free(x->own_name);
	*x = (struct test_subject){.has_app = false};
}

/* ---- its files ---- */

static int find_chunks(struct test_subject *x, struct err *e)
{
	struct tree_chunks c;
	int rc;

	tree_chunks_init(&c, x->tree);
	rc = pool_find_all(x->pool, c.v, c.n, e);
	if (rc == 0)
		rc = tree_chunks_spread(&c, e);
	for (size_t i = 0; rc == 0 && i < c.n; i++)
		if (c.v[i]->block == CHUNK_NO_BLOCK) {
			rc = err_set(
				e, ERR_CORRUPT, "%s: the pool lacks some of its data", x->name);
			err_hint(e, "svrun image verify --repair %s", x->name);
		}
	tree_chunks_fini(&c);
	return rc;
}

static int load(struct test_subject *x, struct store *s, struct err *e)
{
	if (image_load(&x->image, s, &x->digest, e) < 0)
		return -1;
	x->has_image = true;
	x->tree = image_tree(&x->image, s, NULL, NULL, e);
	if (!x->tree)
		return -1;
	x->pool = pool_open(s->fd, false, e);
	if (!x->pool || find_chunks(x, e) < 0)
		return -1;
	if (!x->has_bill && bill_load(&x->bill, s, &x->digest, x->name, e) < 0)
		return -1;
	x->has_bill = true;
	return 0;
}

int test_subject_load(struct test_subject *x, struct store *s, struct err *e)
{
	if (x->pool)
		return 0;
	if (load(x, s, e) == 0)
		return 0;
	test_subject_unload(x);
	return -1;
}

void test_subject_unload(struct test_subject *x)
{
	if (x->pool)
		pool_close(x->pool);
	if (x->tree)
		tree_free(x->tree);
	if (x->has_image)
		image_fini(&x->image);
	x->pool = NULL;
	x->tree = NULL;
	x->has_image = false;
}

struct tested test_subject_tested(struct test_subject *x)
{
	return (struct tested){.m = test_subject_manifest(x),
		.l = x->has_lock ? &x->lock : NULL,
		.image = x->has_image ? &x->image : NULL,
		.tree = x->tree,
		.pool = x->pool,
		.bill = x->has_bill ? &x->bill : NULL};
}
