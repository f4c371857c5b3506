#include "images/pull-own.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/chunk-fetch.h"
#include "images/mount.h"
#include "images/progress.h"
#include "images/pull.h"
#include "images/registry.h"
#include "images/tree-chunks.h"

/* An image and what its index says. */
struct own {
	struct image *im;
	struct tree *tree;
	struct layer *layers;
	size_t nlayers;
	struct progress_line **lines; /* by layer; NULL where nothing is fetched */
};

static void own_fini(struct own *o)
{
	tree_free(o->tree);
	free(o->layers);
	free(o->lines);
}

static int own_load(struct own *o, struct image *im, struct store *s, struct err *e)
{
	*o = (struct own){.im = im};
	o->tree = image_tree(im, s, &o->layers, &o->nlayers, e);
	if (!o->tree)
		return -1;
	o->lines = mem_array(o->nlayers + 1, sizeof(struct progress_line *));
	return 0;
}

/* What the layer was made of: "svrun layer apt-torch" in the history. */
static const char *layer_label(const struct image *im, size_t i, char out[64])
{
	const char *by = json_string_value(json_object_get(
		json_array_get(json_object_get(im->config, "history"), i), "created_by"));
	char hex[DIGEST_HEX + 1];

	if (by && str_starts(by, "svrun layer "))
		snprintf(out, 64, "%.40s", by + strlen("svrun layer "));
	else
		snprintf(out, 64, "%.12s", digest_hex(&im->layers[i].digest, hex));
	return out;
}

static void begin_lines(struct own *o, struct chunk *const *v, size_t n, struct progress *p)
{
	auto_free uint64_t *bytes = mem_array(o->nlayers + 1, sizeof(*bytes));
	uint64_t total = 0;
	char label[64];

	for (size_t i = 0; i < n; i++)
		if (v[i]->layer >= 0 && (size_t)v[i]->layer < o->nlayers) {
			bytes[v[i]->layer] += v[i]->stored;
			total += v[i]->stored;
		}
	progress_begin(p, "pull", total);
	for (size_t i = 0; i < o->nlayers; i++)
		if (bytes[i])
			o->lines[i] = progress_line(p, layer_label(o->im, i, label), bytes[i]);
}

static int fetch_missing(struct own *o, struct tree_chunks *c, struct pool *pool,
	struct download *d, struct progress *p, bool *fetched, struct err *e)
{
	auto_free struct chunk **missing = mem_array(c->n + 1, sizeof(struct chunk *));
	struct chunk_fetch f = {.download = d,
		.pool = pool,
		.layers = o->layers,
		.nlayers = o->nlayers,
		.lines = o->lines};
	size_t n = 0;
	int rc;

	if (pool_find_all(pool, c->v, c->n, e) < 0)
		return -1;
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i]->block == CHUNK_NO_BLOCK) {
			if (c->v[i]->layer == CHUNK_NO_LAYER)
				return 1;
			missing[n++] = c->v[i];
		}
	*fetched = n > 0;
	begin_lines(o, missing, n, p);
	rc = chunk_fetch(&f, missing, n, e);
	for (size_t i = 0; rc == 0 && i < o->nlayers; i++)
		progress_line_end(o->lines[i], NULL);
	progress_end(p);
	return rc < 0 ? -1 : tree_chunks_spread(c, e);
}

int pull_own(struct image *im, struct store *s, struct pool *pool, struct download *d,
	struct progress *p, bool *fetched, struct err *e)
{
	struct own o;
	struct tree_chunks c;
	int rc;

	if (own_load(&o, im, s, e) < 0)
		return -1;
	tree_chunks_init(&c, o.tree);
	rc = fetch_missing(&o, &c, pool, d, p, fetched, e);
	if (rc == 0) /* 1: its index does not say where all is */
		rc = pool_commit_soon(pool, e);
	if (rc == 0)
		rc = mount_prepare(s, &im->manifest_digest, o.tree, e);
	tree_chunks_fini(&c);
	own_fini(&o);
	return rc;
}
