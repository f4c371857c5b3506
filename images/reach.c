#include "images/reach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/attached.h"
#include "images/layer-list.h"
#include "images/models.h"

enum {
	DOCUMENT_MAX = 8 << 20,
	DEPTH_MAX = 4, /* of indexes in indexes */
};

/* ---- documents ---- */

static json_t *load_document(struct store *s, const struct digest *d, struct err *e)
{
	auto_buf struct buf b = {0};
	json_t *j;

	if (store_blob_read(s, d, DOCUMENT_MAX, &b, e) < 0)
		return err_ctx(e, "manifest"), NULL;
	j = json_parse(b.data ? b.data : "", b.len, e);
	if (!j)
		err_ctx(e, "manifest");
	return j;
}

static int digest_in(const json_t *descriptor, struct digest *d, struct err *e)
{
	const char *text = json_str(descriptor, "digest", e);

	return text ? digest_parse(d, text, e) : -1;
}

/* fn for each image of an index that is here: it may name platforms that were never brought. */
static int each_nested(struct store *s, const json_t *index,
	int (*fn)(void *ctx, const struct digest *d, struct err *e), void *ctx, struct err *e)
{
	const json_t *o;
	struct digest d;
	size_t i;

	json_array_foreach (json_object_get(index, "manifests"), i, o)
		if (digest_in(o, &d, e) < 0 || (store_has(s, &d) && fn(ctx, &d, e) < 0))
			return -1;
	return 0;
}

/* ---- blobs ---- */

struct marking {
	struct store *s;
	struct digest_map *set;
	unsigned depth;
};

static int mark_attached(void *ctx, const struct digest *d, struct err *e)
{
	struct marking *m = ctx;
	int rc = 0;

	digest_map_add(m->set, d);
	if (m->depth < DEPTH_MAX) { /* an index that the image came with has signatures, too */
		m->depth++;
		rc = attached_blobs(m->s, d, mark_attached, m, e);
		m->depth--;
	}
	return rc;
}

/* What lies in ROOT/models is named by digests, too (models.h). */
static void mark_models(struct marking *m, const json_t *doc)
{
	struct models models;

	if (models_read(&models, doc, NULL) < 0) /* another tool's: it has nothing there */
		return;
	for (size_t i = 0; i < models.n; i++)
		digest_map_add(m->set, models.v[i].delivery == MODELS_ARTIFACT
					       ? &models.v[i].artifact
					       : &models.v[i].set);
	models_fini(&models);
}

static int mark(void *ctx, const struct digest *d, struct err *e)
{
	struct marking *m = ctx;
	auto_json json_t *doc = load_document(m->s, d, e);
	const json_t *o = json_object_get(doc, "config");
	struct digest x;
	int rc = 0;
	size_t i;

	if (!doc)
		return -1;
	digest_map_add(m->set, d);
	mark_models(m, doc);
	if (o) {
		if (digest_in(o, &x, e) < 0)
			return -1;
		digest_map_add(m->set, &x);
	}
	json_array_foreach (json_object_get(doc, "layers"), i, o) {
		if (digest_in(o, &x, e) < 0)
			return -1;
		digest_map_add(m->set, &x);
	}
	if (m->depth < DEPTH_MAX) {
		m->depth++;
		rc = each_nested(m->s, doc, mark, m, e);
		m->depth--;
	}
	return rc < 0 ? -1 : attached_blobs(m->s, d, mark_attached, m, e);
}

int reach_blobs(
	struct store *s, const struct digest *manifest, struct digest_map *set, struct err *e)
{
	struct marking m = {.s = s, .set = set};

	return mark(&m, manifest, e);
}

int reach_all_blobs(struct store *s, struct digest_map *set, struct err *e)
{
	auto_free struct digest *v = NULL;
	char hex[DIGEST_HEX + 1];
	size_t n = 0;

	if (store_manifests(s, &v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (reach_blobs(s, &v[i], set, e) < 0) {
			err_ctx(e, "keep all blobs, as image %.12s might use them",
				digest_hex(&v[i], hex));
			return err_hint(
				e, "remove that image first: svrun image rm sha256:%s", hex);
		}
	return 0;
}

/* ---- images ---- */

struct images {
	struct store *s;
	int (*fn)(void *ctx, struct image *im, struct err *e);
	void *ctx;
	unsigned depth;
};

static int each_image(void *ctx, const struct digest *d, struct err *e)
{
	struct images *x = ctx;
	auto_json json_t *doc = load_document(x->s, d, e);
	struct err fault = {0};
	struct image im;
	int rc = 0;

	if (!doc)
		return -1;
	if (json_object_get(doc, "manifests")) {
		if (x->depth < DEPTH_MAX) {
			x->depth++;
			rc = each_nested(x->s, doc, each_image, x, e);
			x->depth--;
		}
		return rc;
	}
	if (image_load(&im, x->s, d, &fault) < 0) {
		if (fault.kind == ERR_UNSUPPORTED) /* a signature, say */
			return 0;
		if (e)
			*e = fault;
		return -1;
	}
	rc = x->fn(x->ctx, &im, e);
	image_fini(&im);
	return rc;
}

int reach_images(struct store *s, const struct digest *manifest,
	int (*fn)(void *ctx, struct image *im, struct err *e), void *ctx, struct err *e)
{
	struct images x = {.s = s, .fn = fn, .ctx = ctx};

	return each_image(&x, manifest, e);
}

/* ---- chunks ---- */

int reach_tree_chunks(
	struct store *s, struct image *im, reach_chunk_fn *fn, void *ctx, struct err *e)
{
	struct tree *t;
	int rc = 0;

	if (!image_is_indexed(im, s))
		return 0;
	t = image_tree(im, s, NULL, NULL, e);
	if (!t)
		return -1;
	for (struct node *x = tree_root(t); x && rc == 0; x = tree_next(x))
		for (uint32_t i = 0; x->a.type == NODE_FILE && i < x->a.nchunks && rc == 0; i++)
			rc = fn(ctx, x, &x->a.chunks[i], e);
	tree_free(t);
	return rc;
}

static int list_chunks(struct store *s, const struct digest *layer, const char *kind,
	reach_chunk_fn *fn, void *ctx, struct err *e)
{
	struct layer_list l;
	int rc = layer_list_load(s, layer, kind, &l, e);

	if (rc <= 0)
		return rc;
	rc = 0;
	for (size_t i = 0; i < l.entries.n && rc == 0; i++)
		for (uint32_t k = 0; k < l.entries.v[i].a.nchunks && rc == 0; k++)
			rc = fn(ctx, NULL, &l.entries.v[i].a.chunks[k], e);
	layer_list_fini(&l);
	return rc;
}

int reach_chunks(struct store *s, struct image *im, reach_chunk_fn *fn, void *ctx, struct err *e)
{
	int rc = reach_tree_chunks(s, im, fn, ctx, e);

	for (size_t i = 0; i < im->nlayers && rc == 0; i++) {
		rc = list_chunks(s, &im->layers[i].digest, LAYER_LIST_WHOLE, fn, ctx, e);
		if (rc == 0)
			rc = list_chunks(s, &im->layers[i].digest, LAYER_LIST_TOC, fn, ctx, e);
	}
	return rc;
}

/* ---- folders ---- */

static bool parse_name(const char *name, const char *suffix, struct digest *d)
{
	char hex[DIGEST_HEX + 1];

	if (strlen(name) != DIGEST_HEX + strlen(suffix) || !str_ends(name, suffix))
		return false;
	snprintf(hex, sizeof(hex), "%.*s", DIGEST_HEX, name);
	return digest_from_hex(d, hex) == 0;
}

int reach_files(struct store *s, const char *folder, const char *suffix,
	int (*fn)(void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e),
	void *ctx, struct err *e)
{
	struct dirent *x;
	struct digest d;
	DIR *dir;
	int rc = store_folder(s, folder, &dir, e);

	if (rc <= 0)
		return rc;
	rc = 0;
	while (rc == 0 && (x = readdir(dir)))
		if (parse_name(x->d_name, suffix, &d))
			rc = fn(ctx, dirfd(dir), x->d_name, &d, e);
	closedir(dir);
	return rc;
}

/* ---- roots ---- */

struct roots {
	struct store *s;
	struct digest_map seen;
	int (*fn)(void *ctx, const struct digest *manifest, struct err *e);
	void *ctx;
};

static int named_roots(struct roots *r, struct err *e)
{
	auto_free struct digest *v = NULL;
	struct digest_map tops = {0};
	size_t n = 0;
	int rc = store_manifests(r->s, &v, &n, e);

	for (size_t i = 0; i < n && rc == 0; i++) {
		if (digest_map_find(&tops, &v[i]))
			continue;
		digest_map_add(&tops, &v[i]);
		digest_map_add(&r->seen, &v[i]);
		/* what an index names is run under its own digest; of a damaged one, fn has to
		 * make something */
		(void)!reach_blobs(r->s, &v[i], &r->seen, NULL);
		rc = r->fn(r->ctx, &v[i], e);
	}
	digest_map_fini(&tops);
	return rc;
}

static int held_root(void *ctx, int dirfd, const char *name, const struct digest *d, struct err *e)
{
	struct roots *r = ctx;
	int used;

	(void)dirfd;
	(void)name;
	if (digest_map_find(&r->seen, d))
		return 0;
	used = image_in_use(r->s, d, e);
	return used <= 0 ? used : r->fn(r->ctx, d, e);
}

int reach_roots(struct store *s, int (*fn)(void *ctx, const struct digest *manifest, struct err *e),
	void *ctx, struct err *e)
{
	struct roots r = {.s = s, .fn = fn, .ctx = ctx};
	int rc = named_roots(&r, e);

	if (rc == 0)
		rc = reach_files(s, "mnt", ".lock", held_root, &r, e);
	digest_map_fini(&r.seen);
	return rc;
}
