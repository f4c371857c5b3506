#include "images/tree-chunks.h"

#include <string.h>

static int by_digest(const void *a, const void *b)
{
	const struct chunk *const *x = a, *const *y = b;

	return memcmp((*x)->digest.b, (*y)->digest.b, DIGEST_SIZE);
}

void tree_chunks_init(struct tree_chunks *c, struct tree *t)
{
	size_t cap = 0;

	*c = (struct tree_chunks){0};
	for (struct node *x = tree_root(t); x; x = tree_next(x))
		for (uint32_t i = 0; x->a.type == NODE_FILE && i < x->a.nchunks; i++) {
			mem_grow(&c->all, &cap, c->nall);
			c->all[c->nall++] = &x->a.chunks[i];
		}
	if (c->nall == 0)
		return;
	qsort(c->all, c->nall, sizeof(struct chunk *), by_digest);
	c->v = mem_array(c->nall, sizeof(struct chunk *));
	for (size_t i = 0; i < c->nall; i++)
		if (i == 0 || !digest_eq(&c->all[i]->digest, &c->v[c->n - 1]->digest))
			c->v[c->n++] = c->all[i];
}

void tree_chunks_fini(struct tree_chunks *c)
{
	free(c->all);
	free(c->v);
	*c = (struct tree_chunks){0};
}

int tree_chunks_spread(struct tree_chunks *c, struct err *e)
{
	const struct chunk *first = NULL;
	char text[DIGEST_TEXT + 1];

	for (size_t i = 0; i < c->nall; i++) {
		if (!first || !digest_eq(&first->digest, &c->all[i]->digest))
			first = c->all[i];
		if (c->all[i]->length != first->length)
			return err_set(e, ERR_CORRUPT, "chunk %s is both %u and %u bytes long",
				digest_text(&first->digest, text), first->length,
				c->all[i]->length);
		c->all[i]->block = first->block;
	}
	return 0;
}
