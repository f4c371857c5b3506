/* What a step sees, and the digest of that. */
#include <string.h>

#include "base/str.h"
#include "builder/steps-private.h"

/* ---- a part of the tree ---- */

static bool listed(const struct strings *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i], s))
			return true;
	return false;
}

/* A source or a file that the step does not name as its input. */
static bool is_other_input(const struct steps *s, const struct step *st, const struct node *n)
{
	const struct origin *o = &s->c->origins[n->origin];
	const struct manifest *m = s->x->m;
	char path[TREE_PATH_MAX + 1];

	if (!st->inputs || n->a.type == NODE_DIR)
		return false;
	if (o->kind == ORIGIN_SOURCE)
		return !listed(st->inputs, o->name);
	if (o->kind != ORIGIN_FILE)
		return false;
	node_path(n, path);
	for (size_t i = 0; i < m->nfiles; i++)
		if (m->files[i].id && str_eq(m->files[i].dest + 1, path))
			return !listed(st->inputs, m->files[i].id);
	return false;
}

static bool is_seen(const struct steps *s, const struct step *st, const struct node *n)
{
	if (!n->parent)
		return true;
	if (st->sees && !(st->sees >> s->c->origins[n->origin].kind & 1))
		return false;
	return !is_other_input(s, st, n);
}

static int copy_node(
	struct steps *s, const struct step *st, struct tree *t, const struct node *n, struct err *e)
{
	char path[TREE_PATH_MAX + 1], target[TREE_PATH_MAX + 1];
	struct attr a = n->a;
	struct node *copy;

	node_path(n, path);
	if (n->link) {
		node_path(n->link, target);
		a = n->link->a;
		if (is_seen(s, st, n->link) && tree_find(t, target))
			a = (struct attr){.type = NODE_HARDLINK, .target = target};
	}
	copy = tree_put(t, path, &a, n->origin, e);
	return copy ? 0 : -1;
}

int step_view(struct steps *s, const struct step *st, bool copy, struct tree **out, bool *own,
	struct err *e)
{
	struct tree *t;

	*own = copy || st->sees || st->inputs;
	*out = s->c->tree;
	if (!*own)
		return 0;
	t = tree_new();
	for (struct node *n = tree_root(s->c->tree); n; n = tree_next(n))
		if (is_seen(s, st, n) && copy_node(s, st, t, n, e) < 0) {
			tree_free(t);
			return -1;
		}
	tree_sort(t);
	*out = t;
	return 0;
}

/* ---- its digest ---- */

static void add_number(struct hash *h, uint64_t v)
{
	uint8_t b[8];

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(v >> (8 * i));
	hash_add(h, b, sizeof(b));
}

static void add_text(struct hash *h, const char *s)
{
	hash_add(h, s, strlen(s) + 1);
}

static void add_attr(struct hash *h, const struct attr *a)
{
	add_number(h, (uint64_t)a->type << 32 | a->mode);
	add_number(h, (uint64_t)a->uid << 32 | a->gid);
	add_number(h, (uint64_t)a->mtime);
	if (a->type == NODE_SYMLINK)
		add_text(h, a->target);
	if (a->type == NODE_CHAR || a->type == NODE_BLOCK)
		add_number(h, (uint64_t)a->major << 32 | a->minor);
	add_number(h, a->type == NODE_FILE ? a->size : 0);
	for (uint32_t i = 0; i < a->nchunks; i++)
		hash_add(h, a->chunks[i].digest.b, DIGEST_SIZE);
	add_number(h, a->nxattrs);
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		add_text(h, a->xattrs[i].name);
		add_number(h, a->xattrs[i].len);
		hash_add(h, a->xattrs[i].value, a->xattrs[i].len);
	}
}

struct digest step_tree_digest(struct tree *t)
{
	char path[TREE_PATH_MAX + 1];
	struct hash h;

	hash_init(&h, HASH_SHA256);
	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		add_text(&h, node_path(n, path));
		if (n->link) {
			add_number(&h, NODE_HARDLINK);
			add_text(&h, node_path(n->link, path));
		} else {
			add_attr(&h, &n->a);
		}
	}
	return hash_digest(&h);
}
