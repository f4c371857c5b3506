#include "images/pool-pending.h"

#include <assert.h>
#include <string.h>

enum { SLOTS_FIRST = 1024 };

void pending_init(struct pending *p)
{
	*p = (struct pending){.nslots = SLOTS_FIRST};
	p->slots = mem_array(p->nslots, sizeof(struct pending_chunk *));
}

void pending_fini(struct pending *p)
{
	free(p->slots);
	free(p->sorted);
	arena_fini(&p->arena);
	*p = (struct pending){0};
}

/* Where the chunk is, or belongs. */
static struct pending_chunk **slot_of(const struct pending *p, const struct digest *d)
{
	size_t i;

	memcpy(&i, d->b, sizeof(i)); /* a sha256 is as good a hash as any */
	for (;; i++) {
		struct pending_chunk **slot = &p->slots[i & (p->nslots - 1)];

		if (!*slot || digest_eq(&(*slot)->digest, d))
			return slot;
	}
}

struct pending_chunk *pending_find(const struct pending *p, const struct digest *d)
{
	return *slot_of(p, d);
}

static void grow(struct pending *p)
{
	struct pending_chunk **old = p->slots;
	size_t n = p->nslots;

	p->nslots = 2 * n;
	p->slots = mem_array(p->nslots, sizeof(struct pending_chunk *));
	for (size_t i = 0; i < n; i++)
		if (old[i])
			*slot_of(p, &old[i]->digest) = old[i];
	free(old);
}

void pending_claim(struct pending *p, const struct chunk *c)
{
	struct pending_chunk **slot = slot_of(p, &c->digest);

	p->busy++;
	if (*slot) {
		(*slot)->state = PENDING_BUSY;
		return;
	}
	*slot = arena_alloc(&p->arena, sizeof(**slot));
	**slot = (struct pending_chunk){
		.digest = c->digest, .length = c->length, .state = PENDING_BUSY};
	if (++p->n > p->nslots / 2)
		grow(p);
}

void pending_settle(struct pending *p, const struct chunk *c, enum pending_state state)
{
	struct pending_chunk *x = pending_find(p, &c->digest);

	assert(x && x->state == PENDING_BUSY);
	x->state = state;
	x->block = c->block;
	p->busy--;
	if (state == PENDING_WRITTEN)
		p->written++;
}

static int by_digest(const void *a, const void *b)
{
	const struct pending_chunk *const *x = a, *const *y = b;

	return memcmp((*x)->digest.b, (*y)->digest.b, DIGEST_SIZE);
}

struct pending_chunk *const *pending_sorted(struct pending *p)
{
	size_t n = 0;

	free(p->sorted);
	p->sorted = mem_array(p->written + 1, sizeof(struct pending_chunk *));
	for (size_t i = 0; i < p->nslots; i++)
		if (p->slots[i] && p->slots[i]->state == PENDING_WRITTEN)
			p->sorted[n++] = p->slots[i];
	assert(n == p->written);
	qsort(p->sorted, n, sizeof(struct pending_chunk *), by_digest);
	return p->sorted;
}

void pending_recorded(struct pending *p)
{
	for (size_t i = 0; i < p->nslots; i++)
		if (p->slots[i] && p->slots[i]->state == PENDING_WRITTEN)
			p->slots[i]->state = PENDING_RECORDED;
	p->written = 0;
}
