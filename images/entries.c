#include "images/entries.h"

void entries_fini(struct entries *l)
{
	arena_fini(&l->arena);
	free(l->v);
	*l = (struct entries){0};
}

struct entry *entries_add(struct entries *l, const char *path)
{
	struct entry *en;

	mem_grow(&l->v, &l->cap, l->n);
	en = &l->v[l->n++];
	*en = (struct entry){.path = arena_strdup(&l->arena, path)};
	return en;
}
