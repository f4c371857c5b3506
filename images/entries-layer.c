/* Laying one layer over the layers below. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "images/entries.h"

/* What hides is resolved before anything is removed: whether `bin` is a link must not depend on
 * which whiteout came first. */
struct hide {
	struct node *node; /* the object, or the folder whose children go */
	bool children;
};

struct layering {
	struct tree *t;
	const struct entries *l;
	struct hide *hides;
	size_t n, cap;
	const char **folders; /* that the layer brings, sorted; made when it is first needed */
	size_t nfolders;
};

/* ---- where a path leads in the layers below ---- */

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static void collect_folders(struct layering *x)
{
	if (x->folders)
		return;
	x->folders = mem_array(x->l->n + 1, sizeof(const char *));
	for (size_t i = 0; i < x->l->n; i++)
		if (x->l->v[i].kind == ENTRY_PUT && x->l->v[i].a.type == NODE_DIR)
			x->folders[x->nfolders++] = x->l->v[i].path;
	qsort(x->folders, x->nfolders, sizeof(const char *), by_text);
}

/* Does the layer put a folder of its own over a link on the way to path? */
static bool replaces_link(struct layering *x, const char *path)
{
	char prefix[TREE_PATH_MAX + 1];
	const char *key = prefix, *end = path;
	struct node *n;

	collect_folders(x);
	while (*end) {
		end = strchrnul(*end == '/' ? end + 1 : end, '/');
		memcpy(prefix, path, (size_t)(end - path));
		prefix[end - path] = '\0';
		n = tree_find(x->t, prefix);
		if ((!n || n->a.type != NODE_DIR) &&
			bsearch(&key, x->folders, x->nfolders, sizeof(const char *), by_text))
			return true;
	}
	return false;
}

/* The folder of the layers below that path (of len bytes) means; NULL: none. */
static struct node *folder_below(struct layering *x, const char *path, size_t len)
{
	char text[TREE_PATH_MAX + 1];
	struct node *n;

	memcpy(text, path, len);
	text[len] = '\0';
	n = tree_find(x->t, text);
	if (n && n->a.type == NODE_DIR)
		return n;
	if (replaces_link(x, text)) /* a new folder: nothing of it is below */
		return NULL;
	n = tree_resolve(x->t, text);
	return n && n->a.type == NODE_DIR ? n : NULL;
}

/* The object at leaf in dir. */
static struct node *child(struct tree *t, const struct node *dir, const char *leaf)
{
	char path[2 * TREE_PATH_MAX + 2];
	size_t n;

	if (!dir->parent)
		return tree_find(t, leaf);
	node_path(dir, path);
	n = strlen(path);
	snprintf(path + n, sizeof(path) - n, "/%s", leaf);
	return tree_find(t, path);
}

/* ---- hiding ---- */

static void add_hide(struct layering *x, const struct entry *en)
{
	const char *slash = strrchr(en->path, '/'), *leaf = slash ? slash + 1 : en->path;
	bool opaque = en->kind == ENTRY_OPAQUE;
	struct node *n = opaque ? folder_below(x, en->path, strlen(en->path))
				: folder_below(x, en->path, slash ? (size_t)(slash - en->path) : 0);

	if (n && !opaque)
		n = child(x->t, n, leaf);
	if (!n || (!opaque && !n->parent))
		return;
	mem_grow(&x->hides, &x->cap, x->n);
	x->hides[x->n++] = (struct hide){.node = n, .children = opaque};
	for (struct node *k = n; k; k = k->parent)
		k->scratch = 0;
}

/* scratch of a removed node and of all nodes that are looked at here: was it removed? What is below
 * it keeps its parents, so going up finds it. */
static void remove_node(struct tree *t, struct node *n)
{
	n->scratch = 1;
	tree_remove(t, n);
}

static bool is_gone(const struct node *n)
{
	while (n && !n->scratch)
		n = n->parent;
	return n != NULL;
}

static void hide_all(struct layering *x)
{
	for (size_t i = 0; i < x->l->n; i++)
		if (x->l->v[i].kind != ENTRY_PUT)
			add_hide(x, &x->l->v[i]);
	for (size_t i = 0; i < x->n; i++) {
		struct node *n = x->hides[i].node;

		if (is_gone(n))
			continue;
		if (!x->hides[i].children)
			remove_node(x->t, n);
		else
			while (n->child)
				remove_node(x->t, n->child);
	}
}

/* ---- putting ---- */

/* A folder with something in it stands where the object goes: it goes, with all below it. */
static int clear_place(struct tree *t, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char dir[TREE_PATH_MAX + 1];
	struct node *n;

	if (!*path)
		return err_set(e, ERR_CORRUPT, "the root is a folder");
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 0, path);
	n = tree_resolve(t, dir);
	n = n ? child(t, n, slash ? slash + 1 : path) : NULL;
	if (!n)
		return err_set(e, ERR_CORRUPT, "'%.200s' is in the way of itself", path);
	tree_remove(t, n);
	return 0;
}

static int put(struct tree *t, const struct entry *en, int32_t layer, struct err *e)
{
	struct err fault = {0};
	struct node *n = tree_put(t, en->path, &en->a, 0, &fault);

	if (!n && fault.kind == ERR_EXISTS) {
		if (clear_place(t, en->path, e) < 0)
			return -1;
		fault = (struct err){0};
		n = tree_put(t, en->path, &en->a, 0, &fault);
	}
	if (!n) {
		if (e)
			*e = fault;
		return -1;
	}
	n->layer = layer;
	return 0;
}

int entries_apply(struct tree *t, const struct entries *l, int32_t layer, struct err *e)
{
	struct layering x = {.t = t, .l = l};
	int rc = 0;

	hide_all(&x);
	free(x.hides);
	free(x.folders);
	for (size_t i = 0; rc == 0 && i < l->n; i++)
		if (l->v[i].kind == ENTRY_PUT && !l->v[i].pruned)
			rc = put(t, &l->v[i], layer, e);
	return rc;
}
