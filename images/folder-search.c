#include "images/folder-search.h"

#include <stdlib.h>

enum { DEPTH_MAX = 6 }; /* of folders that are tried */

/* A chunk of which the index says where its frame is in this layer. */
struct place {
	struct node *node;
	struct chunk *chunk;
	uint64_t offset;
	uint32_t stored;
	bool told; /* of several with the same data the index tells of the first */
};

struct search {
	struct folder_search *s;
	struct place *v;
	size_t n;
};

static void list_places(struct search *x)
{
	uint64_t end = 0;
	size_t cap = 0;

	for (struct node *k = tree_root(x->s->tree); k; k = tree_next(k))
		for (uint32_t i = 0; k->scratch == x->s->mark && i < k->a.nchunks; i++) {
			struct chunk *c = &k->a.chunks[i];

			if (c->layer != x->s->number)
				continue;
			mem_grow(&x->v, &cap, x->n);
			x->v[x->n++] = (struct place){.node = k,
				.chunk = c,
				.offset = c->offset,
				.stored = c->stored,
				.told = c->offset >= end};
			end = c->offset >= end ? c->offset + c->stored : end;
		}
}

static void restore(struct search *x)
{
	for (size_t i = 0; i < x->n; i++) {
		x->v[i].chunk->layer = x->s->number;
		x->v[i].chunk->offset = x->v[i].offset;
		x->v[i].chunk->stored = x->v[i].stored;
	}
}

/* The first place that came out elsewhere. */
static size_t first_wrong(const struct search *x)
{
	size_t i = 0;

	while (i < x->n && (!x->v[i].told || x->v[i].chunk->offset == x->v[i].offset))
		i++;
	return i;
}

/* Write what is marked. */
static int attempt(struct search *x, size_t *wrong, struct err *e)
{
	struct folder_search *s = x->s;
	auto_free struct node **v = mem_array(tree_count(s->tree), sizeof(struct node *));
	size_t n = 0;
	int rc;

	s->tries--;
	for (struct node *k = tree_root(s->tree); k; k = tree_next(k))
		if (k->scratch == s->mark)
			v[n++] = k;
	for (size_t i = 0; i < x->n; i++)
		x->v[i].chunk->layer = CHUNK_NO_LAYER;
	rc = s->attempt(s->ctx, v, n, e);
	*wrong = first_wrong(x);
	return rc;
}

/* The last node that is known to stand where it should when place `wrong` does not. */
static struct node *node_before(const struct search *x, size_t wrong)
{
	while (wrong > 0)
		if (x->v[--wrong].told)
			return x->v[wrong].node;
	return tree_root(x->s->tree);
}

static unsigned depth_of(const struct node *n)
{
	unsigned depth = 0;

	for (; n->parent; n = n->parent)
		depth++;
	return depth;
}

/* Folders near the root first: those are the ones that a layer has without anything in them. */
static bool may_be_missing(const struct search *x, const struct node *n, unsigned depth)
{
	return n->a.type == NODE_DIR && n->scratch != x->s->mark && n->layer >= 0 &&
	       n->layer < x->s->number && depth_of(n) == depth;
}

static int look(struct search *x, size_t wrong, struct node *after, size_t missing, struct err *e);

/* With this folder, too? */
static int try_folder(struct search *x, size_t wrong, struct node *k, size_t missing, struct err *e)
{
	size_t next;
	int rc;

	k->scratch = x->s->mark;
	rc = attempt(x, &next, e);
	if (rc == 0 && next > wrong)
		rc = look(x, next, node_before(x, next), missing - 1, e);
	else if (rc == 0 && next == x->n) /* no place tells the last ones apart */
		rc = look(x, next, k, missing - 1, e);
	if (rc == 0)
		k->scratch = 0;
	return rc;
}

/* Place `wrong` is the first that came out elsewhere (x->n: none did, yet the layer is another
 * one): try the folders that stand before it, after `after`. */
static int look(struct search *x, size_t wrong, struct node *after, size_t missing, struct err *e)
{
	const struct node *end = wrong < x->n ? x->v[wrong].node : NULL;

	if (missing == 0)
		return 0;
	for (unsigned depth = 1; depth <= DEPTH_MAX; depth++)
		for (struct node *k = tree_next(after); k && k != end; k = tree_next(k)) {
			int rc;

			if (!may_be_missing(x, k, depth))
				continue;
			rc = x->s->tries ? try_folder(x, wrong, k, missing, e) : 0;
			if (rc != 0 || x->s->tries == 0)
				return rc;
		}
	return 0;
}

int folder_search(struct folder_search *s, struct err *e)
{
	struct search x = {.s = s};
	size_t wrong;
	int rc;

	list_places(&x);
	rc = attempt(&x, &wrong, e);
	if (rc == 0)
		rc = look(&x, wrong, node_before(&x, wrong), s->missing, e);
	restore(&x);
	free(x.v);
	return rc;
}
