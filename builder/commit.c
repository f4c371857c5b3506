#include "builder/commit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "builder/base-config.h"
#include "builder/compose.h"
#include "builder/group.h"
#include "builder/layer-cache.h"
#include "builder/upper.h"
#include "images/image.h"
#include "images/mount.h"

#define OCI "org.opencontainers.image."

enum { GZIP_LEVEL = 6, ZSTD_LEVEL = 3 };
/* RFC 3339 has four digits for the year. */
static const int64_t last_second = 253402300799; /* 9999-12-31T23:59:59Z */

struct committing {
	const struct commit *how;
	struct store *s;
	struct pool *pool;
	struct base_image base;
	struct composed c;
	struct groups g;
	char created[32];
};

/* ---- the image below ---- */

static int open_base(struct committing *x, struct err *e)
{
	struct base_image *b = &x->base;

	if (image_load(&b->image, x->s, &x->how->image, e) < 0)
		return err_ctx(e, "the container's image %s", x->how->name);
	b->tree = image_tree(&b->image, x->s, &b->layers, &b->nlayers, e);
	if (b->tree)
		return 0;
	image_fini(&b->image);
	return -1;
}

static void close_base(struct base_image *b)
{
	tree_free(b->tree);
	free(b->layers);
	image_fini(&b->image);
}

/* Who reads the layers below can read this one. */
static enum codec codec_of(const struct base_image *b)
{
	enum codec c = CODEC_ZSTD;

	for (size_t i = 0; i < b->nlayers; i++) {
		if (b->layers[i].codec == CODEC_ZSTD)
			return CODEC_ZSTD;
		if (b->layers[i].codec == CODEC_GZIP)
			c = CODEC_GZIP;
	}
	return c;
}

/* ---- what changed ---- */

static int read_changes(struct committing *x, struct err *e)
{
	const struct commit *how = x->how;
	struct upper u = {.dir = how->upper,
		.others = how->others,
		.instead = how->instead,
		.tree = x->c.tree,
		.pool = x->pool,
		.max_bytes = UINT64_MAX,
		.left_out = how->left_out,
		.ctx = how->ctx};
	uint32_t origin = compose_origin(
		&x->c, &(struct origin){.kind = ORIGIN_RUN, .name = "commit", .entry = SIZE_MAX});
	struct entries l = {0};
	int rc = upper_read(&u, &l, e);

	if (rc == 0)
		rc = compose_apply(&x->c, &l, origin, 0, e);
	entries_fini(&l);
	return rc;
}

/* All of it in one layer. */
static int write_layer(struct committing *x, struct err *e)
{
	enum codec codec = codec_of(&x->base);
	struct manifest_build how = {.strategy = LAYERS_SINGLE,
		.max_layers = UINT32_MAX,
		.codec = codec,
		.level = codec == CODEC_GZIP ? GZIP_LEVEL : ZSTD_LEVEL};
	uint64_t bytes = 0;
	int rc = group_tree(&x->g, &x->c, &how, e);

	for (size_t i = 0; rc == 0 && i < x->g.n; i++)
		bytes += x->g.v[i].bytes;
	progress_begin(x->how->progress, "compose", bytes);
	for (size_t i = 0; rc == 0 && i < x->g.n; i++) {
		struct group *v = &x->g.v[i];

		snprintf(v->layer.id, sizeof(v->layer.id), "commit");
		rc = layer_cache_write(&v->layer, (int32_t)(x->g.first + i), v->nodes, v->n,
			x->pool, x->s, false, x->how->progress, NULL, e);
	}
	progress_end(x->how->progress);
	return rc;
}

/* ---- the documents ---- */

/* The time of the newest file that is new; without one, that of the image below. */
static void set_created(struct committing *x, json_t *config)
{
	int64_t latest = -1;
	time_t at;
	struct tm tm;

	for (size_t i = 0; i < x->g.n; i++)
		for (size_t k = 0; k < x->g.v[i].n; k++) {
			const struct node *n = x->g.v[i].nodes[k];

			if (n->layer == (int32_t)(x->g.first + i) && !n->link &&
				n->a.mtime > latest)
				latest = n->a.mtime;
		}
	if (latest < 0) {
		const char *old = json_string_value(json_object_get(config, "created"));

		snprintf(x->created, sizeof(x->created), "%.31s",
			old ? old : "1970-01-01T00:00:00Z");
		return;
	}
	at = (time_t)(latest < last_second ? latest : last_second);
	gmtime_r(&at, &tm);
	strftime(x->created, sizeof(x->created), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_set_new(config, "created", json_string(x->created));
}

static int apply_changes(const struct committing *x, json_t *config, struct err *e)
{
	for (size_t i = 0; i < x->how->changes.n; i++)
		if (commit_change(config, x->how->changes.v[i], e) < 0)
			return -1;
	return 0;
}

static json_t *make_history(const struct committing *x)
{
	json_t *history = base_history(x->base.image.config, x->base.nlayers),
	       *entry = json_pack(
		       "{s:s, s:s}", "created", x->created, "created_by", "svrun image commit");

	if (x->how->message)
		json_object_set_new(entry, "comment", json_string(x->how->message));
	if (x->g.n == 0)
		json_object_set_new(entry, "empty_layer", json_true());
	json_array_append_new(history, entry);
	return history;
}

static json_t *make_annotations(const struct committing *x)
{
	json_t *old = json_object_get(x->base.image.manifest, "annotations"),
	       *a = json_is_object(old) ? json_deep_copy(old) : json_object();
	char text[DIGEST_TEXT + 1];

	json_object_del(a, INDEX_ANNOTATION);
	json_object_set_new(a, OCI "created", json_string(x->created));
	json_object_set_new(a, OCI "base.name", json_string(x->how->name));
	json_object_set_new(a, OCI "base.digest", json_string(digest_text(&x->how->image, text)));
	return a;
}

static int publish(struct committing *x, struct digest *manifest, uint64_t *size, struct err *e)
{
	size_t n = x->base.nlayers + x->g.n;
	auto_json json_t *config = json_deep_copy(x->base.image.config), *history = NULL,
			 *annotations = NULL;
	auto_free struct layer *layers = mem_array(n, sizeof(*layers));

	set_created(x, config);
	if (apply_changes(x, config, e) < 0)
		return -1;
	history = make_history(x);
	annotations = make_annotations(x);
	memcpy(layers, x->base.layers, x->base.nlayers * sizeof(*layers));
	for (size_t i = 0; i < x->g.n; i++)
		layers[x->base.nlayers + i] = x->g.v[i].layer;
	struct image_plan plan = {.tree = x->c.tree,
		.layers = layers,
		.nlayers = n,
		.config = config,
		.annotations = annotations,
		.created = x->created,
		.nbase = n, /* the history is whole already */
		.base_history = history};
	if (pool_commit(x->pool, e) < 0 || image_publish(x->s, &plan, manifest, size, e) < 0)
		return -1;
	return mount_prepare(x->s, manifest, x->c.tree, e);
}

/* ---- all of it ---- */

static char *source_of(const struct committing *x)
{
	for (size_t i = 0; i < x->base.nlayers; i++)
		if (!store_has(x->s, &x->base.layers[i].digest))
			return store_source(x->s, &x->how->image);
	return NULL;
}

static int make(struct committing *x, struct digest *manifest, uint64_t *size, struct err *e)
{
	compose_origin(&x->c, &(struct origin){.kind = ORIGIN_STATE, .name = "state"});
	compose_base(&x->c, &x->base);
	if (compose_find_chunks(&x->c, x->pool, e) < 0)
		return err_ctx(e, "image %s", x->how->name);
	if (read_changes(x, e) < 0 || write_layer(x, e) < 0)
		return -1;
	return publish(x, manifest, size, e);
}

int commit_image(struct store *s, struct pool *p, const struct commit *c, struct digest *manifest,
	uint64_t *size, char **source, struct err *e)
{
	struct committing x = {.how = c, .s = s, .pool = p};
	int rc;

	*source = NULL;
	if (open_base(&x, e) < 0)
		return -1;
	rc = make(&x, manifest, size, e);
	if (rc == 0)
		*source = source_of(&x);
	groups_fini(&x.g);
	compose_fini(&x.c);
	close_base(&x.base);
	return rc;
}
