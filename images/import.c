#include "images/import.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "images/entries.h"
#include "images/expand.h"
#include "images/mount.h"
#include "images/progress.h"
#include "images/sink.h"
#include "images/unpack.h"

enum { SINK_MEMORY = 24 << 20 };

/* RFC 3339 has four digits for the year. */
static const int64_t last_second = 253402300799; /* 9999-12-31T23:59:59Z */

static int unpack(
	struct pool *p, int fd, const struct image_import *how, struct entries *l, struct err *e)
{
	struct expand *x = expand_new(fd, how->name, how->progress, e);
	struct unpack u = {.name = how->name, .codec = CODEC_NONE, .size = UNPACK_UNKNOWN};
	struct sink *sink;
	int rc;

	if (!x)
		return -1;
	sink = sink_new(p, 0, SINK_MEMORY);
	rc = unpack_layer(&u, expand_source(x), sink, l, e);
	if (rc == 0)
		rc = sink_wait(sink, e);
	sink_free(sink);
	expand_free(x);
	if (rc == 0 && l->n == 0)
		return err_set(e, ERR_CORRUPT, "%s: no file in it", how->name);
	return rc;
}

static struct tree *make_tree(struct pool *p, int fd, const struct image_import *how, struct err *e)
{
	struct entries l = {0};
	struct tree *t = tree_new();

	progress_begin(how->progress, "unpack", 0);
	if (unpack(p, fd, how, &l, e) < 0 || entries_apply(t, &l, 0, e) < 0) {
		tree_free(t);
		t = NULL;
	} else {
		tree_sort(t);
	}
	progress_end(how->progress);
	entries_fini(&l);
	return t;
}

/* What the sink told the list of objects, which the tree has a copy of, says nothing of layers. */
static struct node **list_nodes(struct tree *t, size_t *n)
{
	struct node **v = mem_array(tree_count(t), sizeof(*v));

	*n = 0;
	for (struct node *x = tree_root(t); x; x = tree_next(x)) {
		for (uint32_t i = 0; i < x->a.nchunks; i++)
			x->a.chunks[i].layer = CHUNK_NO_LAYER;
		v[(*n)++] = x;
	}
	return v;
}

static int write_layer(struct store *s, struct pool *p, struct tree *t,
	const struct image_import *how, struct layer *l, struct err *e)
{
	size_t n;
	auto_free struct node **nodes = list_nodes(t, &n);
	uint64_t total = 0;
	int rc;

	for (size_t i = 0; i < n; i++)
		total += nodes[i]->a.type == NODE_FILE ? nodes[i]->a.size : 0;
	*l = (struct layer){.id = "import",
		.codec = how->codec,
		.level = how->level                 ? how->level
			 : how->codec == CODEC_GZIP ? 6
						    : 3};
	progress_begin(how->progress, "compose", total);
	rc = layer_write(l, 0, nodes, n, p, s, how->progress, e);
	progress_end(how->progress);
	return rc;
}

static void newest(struct tree *t, char out[32])
{
	int64_t latest = 0;
	time_t at;
	struct tm tm;

	for (struct node *n = tree_root(t); n; n = tree_next(n))
		if (!n->link && n->a.mtime > latest)
			latest = n->a.mtime;
	at = (time_t)(latest < last_second ? latest : last_second);
	gmtime_r(&at, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static int publish(struct store *s, struct pool *p, struct tree *t, const struct image_import *how,
	struct digest *manifest, uint64_t *size, struct err *e)
{
	struct layer layer;
	char created[32];
	auto_json json_t *config = json_copy(how->config);
	struct image_plan plan = {
		.tree = t, .layers = &layer, .nlayers = 1, .config = config, .created = created};

	newest(t, created);
	json_object_set_new(config, "created", json_string(created));
	if (write_layer(s, p, t, how, &layer, e) < 0 || pool_commit(p, e) < 0 ||
		image_publish(s, &plan, manifest, size, e) < 0)
		return -1;
	return mount_prepare(s, manifest, t, e);
}

int image_import(struct store *s, struct pool *p, int fd, const struct image_import *how,
	struct digest *manifest, uint64_t *size, struct err *e)
{
	struct tree *t = make_tree(p, fd, how, e);
	int rc = t ? publish(s, p, t, how, manifest, size, e) : -1;

	tree_free(t);
	return rc;
}
