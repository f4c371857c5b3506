#include "builder/rebase.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/models.h"
#include "images/mount.h"
#include "images/pool.h"
#include "images/tree-attr.h"
#include "images/tree-chunks.h"

/* One image, and what its index says. */
struct part {
	struct image image;
	struct tree *tree;
	struct layer *layers;
	size_t n;
};

struct work {
	const struct rebase *r;
	struct store *s;
	struct part image, old, onto; /* onto's tree becomes the result */
	struct layer *layers;
	size_t nlayers;
	struct tree_chunks known; /* of onto */
	struct node **above;      /* of the image's tree: what its upper layers brought */
	size_t nabove, cap;
};

static int part_open(struct part *p, struct store *s, const struct digest *d, struct err *e)
{
	char text[DIGEST_TEXT + 1];

	if (image_load(&p->image, s, d, e) == 0)
		p->tree = image_tree(&p->image, s, &p->layers, &p->n, e);
	return p->tree ? 0 : err_ctx(e, "%s", digest_text(d, text));
}

static void part_close(struct part *p)
{
	tree_free(p->tree);
	free(p->layers);
	image_fini(&p->image);
}

int rebase_base_of(const struct image *im, struct digest *d, const char **name, struct err *e)
{
	const json_t *a = json_object_get(im->manifest, "annotations");
	const char *text = json_string_value(json_object_get(a, BASE_DIGEST_ANNOTATION));

	*name = json_string_value(json_object_get(a, BASE_NAME_ANNOTATION));
	if (!text)
		return 0;
	return digest_parse(d, text, e) < 0 ? err_ctx(e, "annotation " BASE_DIGEST_ANNOTATION) : 1;
}

static int check_below(const struct work *w, struct err *e)
{
	const struct part *im = &w->image, *old = &w->old;

	for (size_t i = 0; i < old->n; i++)
		if (i >= im->n || !digest_eq(&im->layers[i].digest, &old->layers[i].digest)) {
			err_set(e, ERR_USAGE, "layer %zu of the old base is not in the image", i);
			return err_hint(e, "--from names the base that the image is on");
		}
	return 0;
}

/* ---- what may not be ---- */

static const struct attr *attr_of(const struct node *n)
{
	return n->link ? &n->link->a : &n->a;
}

/* But for times, which say nothing of what it is. */
static bool same_object(const struct node *a, const struct node *b)
{
	const struct attr *x = attr_of(a), *y = attr_of(b);

	return x->type == y->type && x->mode == y->mode && x->uid == y->uid && x->gid == y->gid &&
	       (x->type != NODE_FILE || attr_same_data(x, y)) &&
	       (x->type != NODE_SYMLINK || str_eq(x->target, y->target)) && x->major == y->major &&
	       x->minor == y->minor && attr_same_xattrs(x, y);
}

static int refuse(const char *path, const char *why, struct err *e)
{
	char text[STR_SHOWN];

	err_set(e, ERR_UNSUPPORTED, "/%s %s", str_shown(path, text), why);
	return err_hint(e, "build the image again on the new base");
}

/* A layer above has something at path. */
static int check_over(struct work *w, const struct node *n, const char *path, struct err *e)
{
	const struct node *was = tree_find(w->old.tree, path);
	const struct node *is = tree_find(w->onto.tree, path);
	bool folders = is && is->a.type == NODE_DIR && n->a.type == NODE_DIR;

	if (!is || (was && same_object(was, is)))
		return 0;
	if (same_object(n, is))
		return 0;
	if (folders)
		return refuse(
			path, "has another mode or owner in the new base than in the image", e);
	return refuse(path,
		was ? "was changed by a layer above, and is not in the new base what it was in "
		      "the old one"
		    : "is in the new base, too, with other contents",
		e);
}

/* Was anything hidden in a folder that a layer above has named? By a whiteout of each name, or of
 * the whole folder: merged, both look the same. */
static int check_hidden(struct work *w, const struct node *n, const char *path, struct err *e)
{
	const struct node *was = tree_find(w->old.tree, path), *is = tree_find(w->onto.tree, path);
	char child[TREE_PATH_MAX + 1];
	bool hidden = false;

	if (n->a.type != NODE_DIR || !was || was->a.type != NODE_DIR || !is)
		return 0;
	for (const struct node *c = was->child; c && !hidden; c = c->next)
		hidden = !tree_find(w->image.tree, node_path(c, child));
	for (const struct node *c = is->child; c && hidden; c = c->next)
		if (!tree_find(w->old.tree, node_path(c, child)) &&
			!tree_find(w->image.tree, child))
			return refuse(
				child, "is new in a folder of which layers above hide a part", e);
	return 0;
}

/* ---- the tree ---- */

/* A chunk may lie in a layer of the old base, when that had the same bytes: then where the new base
 * has them, or nowhere that an index could say (who pulls reads the whole layer). */
static void place_chunk(const struct work *w, struct chunk *c)
{
	size_t lo = 0, hi = w->known.n;

	if (c->layer >= (int32_t)w->old.n) {
		c->layer += (int32_t)w->onto.n - (int32_t)w->old.n;
		return;
	}
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (memcmp(w->known.v[mid]->digest.b, c->digest.b, DIGEST_SIZE) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < w->known.n && digest_eq(&w->known.v[lo]->digest, &c->digest)) {
		*c = *w->known.v[lo];
		return;
	}
	c->layer = CHUNK_NO_LAYER;
	c->offset = c->stored = 0;
}

/* Another name of the same object that the base has: the upper layer's is a link to that. */
static const struct node *name_in_base(const struct work *w, const struct node *n)
{
	for (const struct node *k = n->ring_next; k && k != n; k = k->ring_next)
		if (k->layer < (int32_t)w->old.n)
			return k;
	return NULL;
}

static int put(struct work *w, const struct node *n, struct err *e)
{
	char path[TREE_PATH_MAX + 1], target[TREE_PATH_MAX + 1];
	const struct node *base = name_in_base(w, n);
	struct attr a = n->a;
	struct node *made, *is;

	node_path(n, path);
	if (check_over(w, n, path, e) < 0 || check_hidden(w, n, path, e) < 0)
		return -1;
	if (base && check_over(w, base, node_path(base, target), e) < 0)
		return -1;
	if (base || n->link)
		a = (struct attr){
			.type = NODE_HARDLINK, .target = node_path(base ? base : n->link, target)};
	is = tree_find(w->onto.tree, path);
	if (is && is->parent && (is->a.type != NODE_DIR || a.type != NODE_DIR))
		tree_remove(w->onto.tree, is);
	made = tree_put(w->onto.tree, path, &a, 0, e);
	if (!made)
		return -1;
	made->layer = n->layer + (int32_t)w->onto.n - (int32_t)w->old.n;
	for (uint32_t i = 0; i < made->a.nchunks; i++)
		place_chunk(w, &made->a.chunks[i]);
	return 0;
}

static struct node *next_beside(struct node *n)
{
	while (n && !n->next)
		n = n->parent;
	return n ? n->next : NULL;
}

/* What the old base had, and the image has no more: a whiteout says so, which still works. */
static void remove_hidden(struct work *w)
{
	char path[TREE_PATH_MAX + 1];
	struct node *next;

	for (struct node *n = tree_next(tree_root(w->old.tree)); n; n = next) {
		bool gone = !tree_find(w->image.tree, node_path(n, path));
		struct node *is = gone ? tree_find(w->onto.tree, path) : NULL;

		next = gone ? next_beside(n) : tree_next(n);
		if (is)
			tree_remove(w->onto.tree, is);
	}
}

/* The folders that upper layers name so that what is in them has a place. They have the times of
 * the old base there. */
static int settle_parents(struct work *w, const struct node *n, struct err *e)
{
	char path[TREE_PATH_MAX + 1];

	for (n = n->parent; n; n = n->parent) {
		struct node *is = tree_find(w->onto.tree, node_path(n, path));

		if (n->layer >= (int32_t)w->old.n)
			continue;
		if (!is && !tree_find(w->old.tree, path)) /* made on the way */
			continue;
		if (!is || is->a.type != NODE_DIR)
			return refuse(path,
				"is a folder that layers above write to, and no folder "
				"in the new base",
				e);
		if (check_over(w, n, path, e) < 0)
			return -1;
		if (w->image.image.has_index)
			is->a.mtime = n->a.mtime;
	}
	return 0;
}

static int make_tree(struct work *w, struct err *e)
{
	for (struct node *n = tree_root(w->image.tree); n; n = tree_next(n))
		if (n->layer >= (int32_t)w->old.n) {
			mem_grow(&w->above, &w->cap, w->nabove);
			w->above[w->nabove++] = n;
		}
	remove_hidden(w);
	for (size_t i = 0; i < w->nabove; i++)
		if (settle_parents(w, w->above[i], e) < 0 || put(w, w->above[i], e) < 0)
			return -1;
	tree_sort(w->onto.tree);
	return 0;
}

/* ---- the documents ---- */

static json_t *annotations_of(const struct work *w)
{
	char text[DIGEST_TEXT + 1];
	const json_t *a = json_object_get(w->image.image.manifest, "annotations");
	json_t *out = a ? json_deep_copy(a) : json_object();

	json_object_del(out, INDEX_ANNOTATION);
	json_object_set_new(out, BASE_NAME_ANNOTATION, json_string(w->r->onto_name));
	json_object_set_new(out, BASE_DIGEST_ANNOTATION,
		json_string(digest_text(&w->onto.image.manifest_digest, text)));
	return out;
}

static void join_layers(struct work *w)
{
	size_t above = w->image.n - w->old.n;

	w->nlayers = w->onto.n + above;
	w->layers = mem_array(w->nlayers, sizeof(*w->layers));
	memcpy(w->layers, w->onto.layers, w->onto.n * sizeof(*w->layers));
	memcpy(w->layers + w->onto.n, w->image.layers + w->old.n, above * sizeof(*w->layers));
}

/* Layers that are not in the store can be had from one repository. */
static int find_source(const struct work *w, char **source, struct err *e)
{
	auto_free char *one = store_source(w->s, &w->image.image.manifest_digest),
		       *two = store_source(w->s, &w->onto.image.manifest_digest);
	bool upper = false, lower = false;

	for (size_t i = 0; i < w->nlayers; i++)
		if (!store_has(w->s, &w->layers[i].digest)) {
			upper = upper || i >= w->onto.n;
			lower = lower || i < w->onto.n;
		}
	if (upper && lower && (!one || !two || !str_eq(one, two))) {
		err_set(e, ERR_UNSUPPORTED,
			"layers of the image and of the new base are in two repositories");
		return err_hint(
			e, "push the base to %s first, and rebase onto that", one ? one : "");
	}
	*source = upper ? steal_ptr(&one) : lower ? steal_ptr(&two) : NULL;
	return 0;
}

static int publish(struct work *w, struct digest *manifest, struct err *e)
{
	const struct image *im = &w->image.image;
	auto_json json_t *config = rebase_config(
				 im->config, w->old.image.config, w->onto.image.config),
			 *annotations = annotations_of(w),
			 *history = rebase_history(im, w->old.n, w->onto.image.config, w->onto.n);
	const char *created = json_string_value(json_object_get(im->config, "created"));
	auto_free char *source = NULL;
	struct image_plan plan = {.tree = w->onto.tree,
		.layers = w->layers,
		.nlayers = w->nlayers,
		.config = config,
		.annotations = annotations,
		.created = created ? created : "1970-01-01T00:00:00Z",
		.nbase = w->nlayers, /* all of them have a history */
		.base_history = history};
	auto_fd int hold = -1;
	uint64_t size;

	if (find_source(w, &source, e) < 0)
		return -1;
	hold = pool_hold(w->s->fd, e);
	if (hold < 0 || image_publish(w->s, &plan, manifest, &size, e) < 0 ||
		models_attach(w->s, manifest, e) < 0 || mount_prepare(w->s, manifest, NULL, e) < 0)
		return -1;
	return store_name_set(w->s, w->r->name, manifest, size, source, e);
}

static int rebase(struct work *w, struct digest *manifest, struct err *e)
{
	if (part_open(&w->image, w->s, &w->r->image, e) < 0 ||
		part_open(&w->old, w->s, &w->r->old, e) < 0 ||
		part_open(&w->onto, w->s, &w->r->onto, e) < 0 || check_below(w, e) < 0)
		return -1;
	tree_chunks_init(&w->known, w->onto.tree);
	join_layers(w);
	return make_tree(w, e) < 0 ? -1 : publish(w, manifest, e);
}

int image_rebase(struct store *s, const struct rebase *r, struct digest *manifest, struct err *e)
{
	struct work w = {.r = r, .s = s};
	int rc = rebase(&w, manifest, e);

	tree_chunks_fini(&w.known);
	free(w.above);
	free(w.layers);
	part_close(&w.image);
	part_close(&w.old);
	part_close(&w.onto);
	return rc;
}
