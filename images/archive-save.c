#include "images/archive-save.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/archive-attached.h"
#include "images/decompress.h"
#include "images/progress.h"
#include "images/unpack.h"

enum { STEP = 256 << 10, DOCUMENT_MAX = 8 << 20 };

/* ---- what goes in ---- */

enum kind { MANIFEST, CONFIG, LAYER, ATTACHED }; /* in this order */

struct item {
	enum kind kind;
	struct digest key; /* that it is named by */
	struct digest blob;
	uint64_t size;          /* of the blob */
	const struct image *im; /* LAYER: one that has it, and which it is there */
	size_t layer;
	const char *text; /* ATTACHED: the blob, when it is not in the store */
};

struct items {
	struct item *v;
	size_t n, cap;
};

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return memcmp(x->key.b, y->key.b, DIGEST_SIZE);
}

static void add_item(struct items *l, struct item i)
{
	mem_grow(&l->v, &l->cap, l->n);
	l->v[l->n++] = i;
}

static bool has_item(const struct items *l, size_t n, enum kind kind, const struct digest *key)
{
	const struct item want = {.kind = kind, .key = *key};

	return n && bsearch(&want, l->v, n, sizeof(*l->v), by_key);
}

/* What is attached may be a blob of an image, too. */
static void drop_doubles(struct items *l)
{
	size_t n = 0, first = 0;

	while (first < l->n && l->v[first].kind != ATTACHED)
		first++;
	for (size_t i = 0; i < l->n; i++)
		if (i < first || !(has_item(l, first, MANIFEST, &l->v[i].key) ||
					 has_item(l, first, CONFIG, &l->v[i].key) ||
					 has_item(l, first, LAYER, &l->v[i].key)))
			l->v[n++] = l->v[i];
	l->n = n;
}

/* Sorted, each once. */
static void settle(struct items *l)
{
	size_t n = 0;

	if (l->n == 0)
		return;
	qsort(l->v, l->n, sizeof(*l->v), by_key);
	for (size_t i = 1; i < l->n; i++)
		if (by_key(&l->v[n], &l->v[i]) != 0)
			l->v[++n] = l->v[i];
	l->n = n + 1;
	drop_doubles(l);
}

static uint64_t config_size(const struct image *im)
{
	return (uint64_t)json_integer_value(
		json_object_get(json_object_get(im->manifest, "config"), "size"));
}

/* docker: layers by their DiffIDs, and no manifests; attached is NULL. */
static void list_items(struct items *l, const struct archive_saved *v, size_t n,
	const struct archive_attached *attached)
{
	bool docker = !attached;

	for (size_t i = 0; attached && i < attached->n; i++)
		add_item(l, (struct item){.kind = ATTACHED,
				    .key = attached->v[i].digest,
				    .blob = attached->v[i].digest,
				    .size = attached->v[i].size,
				    .text = attached->v[i].text});
	for (size_t i = 0; i < n; i++) {
		const struct image *im = v[i].im;

		if (!docker)
			add_item(l, (struct item){.kind = MANIFEST,
					    .key = im->manifest_digest,
					    .blob = im->manifest_digest,
					    .size = im->manifest_size});
		add_item(l, (struct item){.kind = CONFIG,
				    .key = im->config_digest,
				    .blob = im->config_digest,
				    .size = config_size(im)});
		for (size_t k = 0; k < im->nlayers; k++)
			add_item(l, (struct item){.kind = LAYER,
					    .key = docker ? im->layers[k].diff_id
							  : im->layers[k].digest,
					    .blob = im->layers[k].digest,
					    .size = im->layers[k].size,
					    .im = im,
					    .layer = k});
	}
	settle(l);
}

static uint64_t total_size(const struct items *l)
{
	uint64_t total = 0;

	for (size_t i = 0; i < l->n; i++)
		total += l->v[i].size;
	return total;
}

/* ---- copying ---- */

static int write_document(struct outlet *o, const char *name, const json_t *doc, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(DOCUMENT_MAX);

	json_text(doc, true, &b);
	return outlet_file(o, name, b.len, e) < 0 || outlet_write(o, b.data, b.len, e) < 0
		       ? -1
		       : outlet_end(o, e);
}

/* All of src as the member that is open, hashed. */
static int pass(
	struct outlet *o, struct source *src, struct hash *h, struct progress *p, struct err *e)
{
	const void *data;
	size_t n;
	int rc;

	hash_init(h, HASH_SHA256);
	while ((rc = source_next(src, &data, &n, e)) > 0) {
		hash_add(h, data, n);
		if (outlet_write(o, data, n, e) < 0)
			return -1;
		progress_add(p, n);
	}
	return rc < 0 ? -1 : outlet_end(o, e);
}

static int copy_blob(struct store *s, const struct item *i, struct outlet *o, const char *name,
	struct progress *p, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	struct source_fd src;
	struct digest found;
	struct hash h;
	uint64_t size;
	auto_fd int fd = store_blob_open(s, &i->blob, &size, e);
	int rc;

	if (fd < 0)
		return -1;
	if (size != i->size)
		return err_set(e, ERR_CORRUPT,
			"blob %s: expected %" PRIu64 " bytes, found %" PRIu64,
			digest_hex(&i->blob, hex), i->size, size);
	if (outlet_file(o, name, size, e) < 0)
		return -1;
	source_fd_init(&src, fd, size, name);
	rc = pass(o, &src.source, &h, p, e);
	source_fd_fini(&src);
	if (rc < 0)
		return -1;
	found = hash_digest(&h);
	return digest_check(
		&i->blob, &found, e, "%s/blobs/sha256/%s", s->path, digest_hex(&i->blob, hex));
}

/* ---- OCI ---- */

/* attached: digest of the list of what is, or NULL. */
static json_t *describe(const struct archive_saved *a, const struct digest *attached)
{
	char text[DIGEST_TEXT + 1];
	const char *type = json_string_value(json_object_get(a->im->manifest, "mediaType"));
	json_t *o = json_pack("{s:s, s:s, s:I}", "mediaType", type ? type : OCI_MANIFEST_TYPE,
		"digest", digest_text(&a->im->manifest_digest, text), "size",
		(json_int_t)a->im->manifest_size);
	const json_t *arch = json_object_get(a->im->config, "architecture"),
		     *os = json_object_get(a->im->config, "os");

	if (json_is_string(arch) && json_is_string(os))
		json_object_set_new(o, "platform",
			json_pack("{s:s, s:s}", "architecture", json_string_value(arch), "os",
				json_string_value(os)));
	if (a->name || attached)
		json_object_set_new(o, "annotations",
			json_pack("{s:s*, s:s*}", REF_NAME, a->name, ATTACHED_ANNOTATION,
				attached ? digest_text(attached, text) : NULL));
	return o;
}

struct lists {
	struct archive_attached all;
	struct digest *v; /* by image */
	bool *has;
};

static int collect(
	struct lists *x, struct store *s, const struct archive_saved *v, size_t n, struct err *e)
{
	*x = (struct lists){.v = mem_array(n, sizeof(*x->v)), .has = mem_array(n, sizeof(*x->has))};
	for (size_t i = 0; i < n; i++) {
		int rc = archive_attached_add(&x->all, s, &v[i].im->manifest_digest, &x->v[i], e);

		if (rc < 0)
			return -1;
		x->has[i] = rc > 0;
	}
	if (x->all.left_out)
		warn("%zu attached things are not in the store whole: left out", x->all.left_out);
	return 0;
}

static void lists_fini(struct lists *x)
{
	archive_attached_fini(&x->all);
	free(x->v);
	free(x->has);
}

static int write_index(struct outlet *o, const struct archive_saved *v, size_t n,
	const struct lists *x, struct err *e)
{
	json_t *list = json_array();
	auto_json json_t *index = json_pack("{s:i, s:s, s:o}", "schemaVersion", 2, "mediaType",
				 OCI_INDEX_TYPE, "manifests", list),
			 *layout = json_pack("{s:s}", "imageLayoutVersion", "1.0.0");

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(list, describe(&v[i], x->has[i] ? &x->v[i] : NULL));
		if (x->has[i] && v[i].referrers &&
			archive_attached_tags(
				&x->all, &v[i].im->manifest_digest, &x->v[i], list, e) < 0)
			return -1;
	}
	if (write_document(o, "oci-layout", layout, e) < 0 ||
		write_document(o, "index.json", index, e) < 0 || outlet_dir(o, "blobs", e) < 0)
		return -1;
	return outlet_dir(o, "blobs/sha256", e);
}

static int write_blob(
	struct store *s, const struct item *i, struct outlet *o, struct progress *p, struct err *e)
{
	char name[sizeof("blobs/sha256/") + DIGEST_HEX], hex[DIGEST_HEX + 1];

	snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(&i->key, hex));
	if (!i->text)
		return copy_blob(s, i, o, name, p, e);
	return outlet_file(o, name, i->size, e) < 0 ||
			       outlet_write(o, i->text, (size_t)i->size, e) < 0
		       ? -1
		       : outlet_end(o, e);
}

int oci_archive_save(struct store *s, const struct archive_saved *v, size_t n, struct outlet *o,
	struct progress *p, struct err *e)
{
	struct items l = {0};
	struct lists x;
	int rc = collect(&x, s, v, n, e);

	if (rc == 0) {
		list_items(&l, v, n, &x.all);
		progress_begin(p, "save", total_size(&l));
		rc = write_index(o, v, n, &x, e);
		for (size_t i = 0; i < l.n && rc == 0; i++)
			rc = write_blob(s, &l.v[i], o, p, e);
		progress_end(p);
	}
	free(l.v);
	lists_fini(&x);
	return rc;
}

/* ---- docker ---- */

static json_t *describe_docker(const struct archive_saved *a)
{
	char hex[DIGEST_HEX + 1];
	json_t *layers = json_array(), *tags = json_array();
	auto_free char *config = mem_printf("%s.json", digest_hex(&a->im->config_digest, hex));

	for (size_t i = 0; i < a->im->nlayers; i++) {
		auto_free char *name =
			mem_printf("%s.tar", digest_hex(&a->im->layers[i].diff_id, hex));

		json_array_append_new(layers, json_string(name));
	}
	if (a->name) { /* docker wants the tag said */
		const char *slash = strrchr(a->name, '/');
		auto_free char *name = mem_printf(
			"%s%s", a->name, strchr(slash ? slash : a->name, ':') ? "" : ":latest");

		json_array_append_new(tags, json_string(name));
	}
	return json_pack("{s:s, s:o, s:o}", "Config", config, "RepoTags", tags, "Layers", layers);
}

/* An image that is saved under two names is one image there. */
static json_t *docker_manifest(const struct archive_saved *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		auto_json json_t *o = describe_docker(&v[i]);
		const json_t *config = json_object_get(o, "Config");
		json_t *same = NULL, *old;
		size_t k;

		json_array_foreach (list, k, old)
			if (json_equal(json_object_get(old, "Config"), config))
				same = old;
		if (same)
			json_array_extend(
				json_object_get(same, "RepoTags"), json_object_get(o, "RepoTags"));
		else
			json_array_append(list, o);
	}
	return list;
}

static struct source *open_layer(const struct item *i, struct source_fd *src, int fd,
	struct decompress **d, const char *name, struct err *e)
{
	source_fd_init(src, fd, i->size, name);
	*d = decompress_new(
		i->im->layers[i->layer].codec, &src->source, unpack_limit(i->size), name, e);
	return *d ? decompress_source(*d) : NULL;
}

/* The length of a layer's tar, which its header must say before: the index knows it; without one
 * the layer is unpacked once more. */
static int tar_size(
	struct store *s, const struct item *i, const char *name, uint64_t *size, struct err *e)
{
	auto_fd int fd = store_blob_open(s, &i->blob, NULL, e);
	struct decompress *d = NULL;
	struct source_fd src;
	struct source *tar;
	const void *data;
	size_t n;
	int rc = -1;

	if (fd < 0)
		return -1;
	tar = open_layer(i, &src, fd, &d, name, e);
	for (*size = 0; tar && (rc = source_next(tar, &data, &n, e)) > 0;)
		*size += n;
	decompress_free(d);
	source_fd_fini(&src);
	return rc;
}

static int copy_layer(struct store *s, const struct item *i, uint64_t size, struct outlet *o,
	const char *name, struct progress *p, struct err *e)
{
	auto_fd int fd = store_blob_open(s, &i->blob, NULL, e);
	struct decompress *d = NULL;
	struct source_fd src;
	struct source *tar;
	struct digest found;
	struct hash h;
	int rc;

	if (fd < 0 || outlet_file(o, name, size, e) < 0)
		return -1;
	tar = open_layer(i, &src, fd, &d, name, e);
	rc = tar ? pass(o, tar, &h, p, e) : -1;
	decompress_free(d);
	source_fd_fini(&src);
	if (rc < 0)
		return -1;
	found = hash_digest(&h);
	return digest_check(&i->key, &found, e, "DiffID of layer %zu", i->layer);
}

/* Lengths of all layers' tars that the images' indexes know, by blob, into a JSON object. */
static void known_sizes(struct store *s, const struct archive_saved *v, size_t n, json_t *sizes)
{
	for (size_t i = 0; i < n; i++) {
		auto_buf struct buf b = {0};
		auto_free struct layer *layers = NULL;
		char hex[DIGEST_HEX + 1];
		size_t nlayers = 0;

		if (image_index(v[i].im, s, &b, NULL) < 0)
			continue;
		tree_free(index_decode(b.data, b.len, &layers, &nlayers, NULL));
		for (size_t k = 0; k < nlayers; k++)
			if (layers[k].tar_size)
				json_object_set_new(sizes, digest_hex(&layers[k].digest, hex),
					json_integer((json_int_t)layers[k].tar_size));
	}
}

static int save_layer(struct store *s, const struct item *i, const json_t *sizes, struct outlet *o,
	struct progress *p, struct err *e)
{
	char name[DIGEST_HEX + sizeof(".tar")], hex[DIGEST_HEX + 1];
	const json_t *known = json_object_get(sizes, digest_hex(&i->blob, hex));
	uint64_t size = (uint64_t)json_integer_value(known);

	snprintf(name, sizeof(name), "%s.tar", digest_hex(&i->key, hex));
	if (i->im->layers[i->layer].codec == CODEC_NONE)
		return copy_blob(s, i, o, name, p, e);
	if (!known && tar_size(s, i, name, &size, e) < 0)
		return -1;
	return copy_layer(s, i, size, o, name, p, e);
}

int docker_archive_save(struct store *s, const struct archive_saved *v, size_t n, struct outlet *o,
	struct progress *p, struct err *e)
{
	auto_json json_t *manifest = docker_manifest(v, n), *sizes = json_object();
	struct items l = {0};
	int rc;

	for (size_t i = 0; i < n; i++) {
		int attached = archive_attached_count(s, &v[i].im->manifest_digest, e);

		if (attached < 0)
			return -1;
		if (attached)
			warn("a docker archive has no place for the %d things attached to %s: left "
			     "out",
				attached, v[i].name ? v[i].name : "the image");
	}
	list_items(&l, v, n, NULL);
	known_sizes(s, v, n, sizes);
	progress_begin(p, "save", 0);
	rc = write_document(o, "manifest.json", manifest, e);
	for (size_t i = 0; i < l.n && rc == 0; i++) {
		char name[DIGEST_HEX + sizeof(".json")], hex[DIGEST_HEX + 1];

		if (l.v[i].kind == LAYER) {
			rc = save_layer(s, &l.v[i], sizes, o, p, e);
			continue;
		}
		snprintf(name, sizeof(name), "%s.json", digest_hex(&l.v[i].key, hex));
		rc = copy_blob(s, &l.v[i], o, name, p, e);
	}
	progress_end(p);
	free(l.v);
	return rc;
}
