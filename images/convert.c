#include "images/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "images/adopt.h"
#include "images/decompress.h"
#include "images/progress.h"
#include "images/publish.h"
#include "images/reframe.h"
#include "images/unpack.h"

enum { ZSTD_LEVEL = 3, GZIP_LEVEL = 6 };

struct convert {
	struct image *im;
	struct store *s;
	const struct convert_options *o;
	struct progress *progress;
	struct completer *completer;
	struct layer *layers; /* new ones, without the index layer */
	size_t nlayers;
	bool *kept; /* layers that stay */
	struct tree *tree;
	/* chunks of the new layers, by digest: open addressing, the first layer counts */
	struct chunk *map;
	size_t used, mapsize;
};

int convert_level(enum codec c)
{
	return c == CODEC_ZSTD ? ZSTD_LEVEL : c == CODEC_GZIP ? GZIP_LEVEL : 0;
}

/* ---- where chunks are now ---- */

static struct chunk *slot_of(struct chunk *map, size_t size, const struct digest *d)
{
	uint64_t at;

	memcpy(&at, d->b, sizeof(at));
	for (at &= size - 1; map[at].length && !digest_eq(&map[at].digest, d);)
		at = (at + 1) & (size - 1);
	return &map[at];
}

static void map_grow(struct convert *x)
{
	size_t size = x->mapsize ? 2 * x->mapsize : 1024;
	struct chunk *map = mem_array(size, sizeof(*map));

	for (size_t i = 0; i < x->mapsize; i++)
		if (x->map[i].length)
			*slot_of(map, size, &x->map[i].digest) = x->map[i];
	free(x->map);
	x->map = map;
	x->mapsize = size;
}

static void map_add(struct convert *x, const struct chunk *c, size_t layer)
{
	struct chunk *slot;

	if (2 * x->used >= x->mapsize)
		map_grow(x);
	slot = slot_of(x->map, x->mapsize, &c->digest);
	if (slot->length)
		return;
	*slot = *c;
	slot->layer = (int32_t)layer;
	x->used++;
}

static int place_chunk(struct convert *x, struct chunk *c, struct err *e)
{
	const struct chunk *found;
	char text[DIGEST_TEXT + 1];

	if (c->layer != CHUNK_NO_LAYER && x->kept[c->layer])
		return 0;
	found = x->mapsize ? slot_of(x->map, x->mapsize, &c->digest) : NULL;
	if (!found || found->length != c->length)
		return err_set(e, ERR_CORRUPT, "chunk %s of the image index is in no layer",
			digest_text(&c->digest, text));
	c->layer = found->layer;
	c->offset = found->offset;
	c->stored = found->stored;
	return 0;
}

static int place_chunks(struct convert *x, struct err *e)
{
	for (struct node *n = tree_root(x->tree); n; n = tree_next(n))
		for (uint32_t i = 0; i < n->a.nchunks; i++)
			if (place_chunk(x, &n->a.chunks[i], e) < 0)
				return -1;
	return 0;
}

/* ---- layers ---- */

/* A source that says how much of it has passed. */
struct counted {
	struct source source;
	struct source *in;
	struct progress *progress;
};

static int counted_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct counted *c = (struct counted *)s;
	int rc = source_next(c->in, data, n, e);

	if (rc > 0)
		progress_add(c->progress, *n);
	return rc;
}

static int reframe_fd(struct convert *x, size_t i, int fd, struct err *e)
{
	const struct image_layer *from = &x->im->layers[i];
	struct layer *l = &x->layers[i];
	struct chunk_list chunks = {0};
	struct counted counted = {.source.next = counted_next, .progress = x->progress};
	struct source_fd blob;
	struct decompress *tar;
	int rc = -1;

	source_fd_init(&blob, fd, from->size, l->id);
	counted.in = &blob.source;
	tar = decompress_new(from->codec, &counted.source, unpack_limit(from->size), l->id, e);
	if (tar)
		rc = reframe(l, decompress_source(tar), x->s, &chunks, NULL, e);
	decompress_free(tar);
	source_fd_fini(&blob);
	for (size_t k = 0; k < chunks.n; k++)
		map_add(x, &chunks.v[k], i);
	chunk_list_fini(&chunks);
	return rc;
}

static int reframe_layer(struct convert *x, size_t i, struct err *e)
{
	const struct digest *d = &x->im->layers[i].digest;
	struct blob_writer w;
	int rc;

	if (store_has(x->s, d)) {
		auto_fd int fd = store_blob_open(x->s, d, NULL, e);

		return fd < 0 ? -1 : reframe_fd(x, i, fd, e);
	}
	if (completer_layer(x->completer, i, &w, e) < 0)
		return -1;
	if (lseek(w.fd, 0, SEEK_SET) < 0)
		rc = err_sys(e, "read layer %zu", i);
	else
		rc = reframe_fd(x, i, w.fd, e);
	store_blob_abort(&w);
	return rc;
}

static int convert_layer(struct convert *x, size_t i, const struct layer *old, struct err *e)
{
	const struct image_layer *from = &x->im->layers[i];
	struct layer *l = &x->layers[i];

	*l = (struct layer){.codec = x->o->codec,
		.level = x->o->level ? x->o->level : convert_level(x->o->codec),
		.digest = from->digest,
		.diff_id = from->diff_id,
		.size = from->size,
		.tar_size = old ? old->tar_size : 0};
	snprintf(l->id, sizeof(l->id), "layer %zu", i);
	x->kept[i] = old && x->im->has_index && from->codec == x->o->codec && !x->o->level;
	if (!x->kept[i])
		return reframe_layer(x, i, e);
	progress_add(x->progress, from->size);
	return 0;
}

static int convert_layers(struct convert *x, const struct layer *old, size_t nold, struct err *e)
{
	uint64_t total = 0;

	for (size_t i = 0; i < x->nlayers; i++)
		total += x->im->layers[i].size;
	progress_begin(x->progress, "convert", total);
	for (size_t i = 0; i < x->nlayers; i++)
		if (convert_layer(x, i, i < nold ? &old[i] : NULL, e) < 0)
			return -1;
	progress_end(x->progress);
	return 0;
}

/* The index must speak of the layers that the manifest has. */
static int check_layers(
	const struct convert *x, const struct layer *old, size_t nold, struct err *e)
{
	if (x->im->has_index &&
		(x->im->nlayers == 0 ||
			!digest_eq(&x->im->layers[x->nlayers].digest, &x->im->index.layer)))
		return err_set(e, ERR_UNSUPPORTED, "the index is not in the last layer");
	if (nold > x->nlayers)
		return err_set(e, ERR_CORRUPT,
			"the index speaks of %zu layers, the manifest of %zu", nold, x->nlayers);
	for (size_t i = 0; x->im->has_index && i < nold; i++)
		if (!digest_eq(&old[i].digest, &x->im->layers[i].digest) ||
			old[i].codec != x->im->layers[i].codec)
			return err_set(e, ERR_CORRUPT,
				"layer %zu is another one in the index than in the manifest", i);
	return 0;
}

/* ---- documents ---- */

/* The config is what it was, unless the index layer is new to it. */
static int put_config(struct convert *x, const struct layer *index, json_t *manifest, struct err *e)
{
	auto_json json_t *config = NULL;
	json_t *history;
	const char *created;
	struct digest d = x->im->config_digest;
	uint64_t size;
	char text[DIGEST_TEXT + 1];

	if (json_u64(json_object_get(x->im->manifest, "config"), "size", INT64_MAX, &size, e) < 0)
		return err_ctx(e, "/config");
	if (!x->im->has_index) {
		config = json_deep_copy(x->im->config);
		history = json_object_get(config, "history");
		created = json_string_value(json_object_get(config, "created"));
		json_array_append_new(
			json_object_get(json_object_get(config, "rootfs"), "diff_ids"),
			json_string(digest_text(&index->diff_id, text)));
		if (json_array_size(history)) /* else it says nothing of any layer */
			json_array_append_new(
				history, json_pack("{s:s, s:s}", "created",
						 created ? created : "1970-01-01T00:00:00Z",
						 "created_by", "svrun layer index"));
		if (publish_document(x->s, config, &d, &size, e) < 0)
			return -1;
	}
	json_object_set_new(manifest, "config", publish_descriptor(OCI_CONFIG_TYPE, &d, size));
	return 0;
}

static void add_layer(json_t *list, const struct layer *l)
{
	json_array_append_new(
		list, publish_descriptor(codec_media_type(l->codec), &l->digest, l->size));
}

/* What else the manifest says is kept. What a layer's annotations say is of bytes that are gone. */
static int put_manifest(struct convert *x, struct digest *manifest, uint64_t *size, struct err *e)
{
	auto_json json_t *m = json_deep_copy(x->im->manifest);
	json_t *layers = json_array(), *annotations = json_object_get(m, "annotations");
	struct index_place place;
	struct layer index;
	char text[256];

	json_object_set_new(m, "layers", layers);
	if (!json_is_object(annotations)) {
		annotations = json_object();
		json_object_set_new(m, "annotations", annotations);
	}
	if (publish_index(x->s, x->tree, x->layers, x->nlayers, &index, &place, e) < 0 ||
		index_place_format(&place, text) < 0 || put_config(x, &index, m, e) < 0)
		return -1;
	for (size_t i = 0; i < x->nlayers; i++)
		add_layer(layers, &x->layers[i]);
	add_layer(layers, &index);
	json_object_set_new(annotations, INDEX_ANNOTATION, json_string(text));
	json_object_set_new(m, "mediaType", json_string(OCI_MANIFEST_TYPE));
	json_object_set_new(m, "schemaVersion", json_integer(2));
	return publish_document(x->s, m, manifest, size, e);
}

/* An image that svrun did not make and never adopted has no index to start from. */
static int have_index(struct image *im, struct store *s, const struct config *c, const char *source,
	struct progress *p, struct err *e)
{
	struct pool *pool;
	int rc;

	if (image_is_indexed(im, s))
		return 0;
	if (image_complete(im, s, c, source, p, e) < 0)
		return -1;
	pool = pool_open(s->fd, true, e);
	if (!pool)
		return -1;
	rc = image_adopt(im, s, pool, p, e);
	pool_close(pool);
	return rc;
}

static int convert(struct convert *x, struct converted *out, struct err *e)
{
	auto_buf struct buf index = BUF_INIT(INDEX_BYTES_MAX);
	auto_free struct layer *old = NULL;
	size_t nold = 0;

	if (image_index(x->im, x->s, &index, e) < 0)
		return -1;
	x->tree = index_decode(index.data, index.len, &old, &nold, e);
	buf_fini(&index); /* layers take memory enough */
	if (!x->tree || check_layers(x, old, nold, e) < 0 || convert_layers(x, old, nold, e) < 0 ||
		place_chunks(x, e) < 0)
		return -1;
	return put_manifest(x, &out->manifest, &out->size, e);
}

int image_convert(struct image *im, struct store *s, const struct config *c, const char *source,
	const struct convert_options *o, struct converted *out, struct progress *p, struct err *e)
{
	struct convert x = {.im = im, .s = s, .o = o, .progress = p};
	auto_fd int hold = -1;
	char hex[DIGEST_HEX + 1];
	int rc = -1;

	x.nlayers = im->nlayers - (im->has_index && im->nlayers);
	x.layers = mem_array(x.nlayers, sizeof(*x.layers));
	x.kept = mem_array(x.nlayers, sizeof(*x.kept));
	x.completer = completer_new(im, s, c, source, NULL);
	completer_reach(x.completer, o->plain_http, o->insecure);
	if (have_index(im, s, c, source, p, e) == 0 && (hold = pool_hold(s->fd, e)) >= 0)
		rc = convert(&x, out, e);
	completer_free(x.completer);
	tree_free(x.tree);
	free(x.layers);
	free(x.kept);
	free(x.map);
	if (rc < 0)
		return err_ctx(e, "convert image %.12s", digest_hex(&im->manifest_digest, hex));
	out->hold = steal_fd(&hold);
	return 0;
}
