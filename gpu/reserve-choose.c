#include "gpu/reserve-choose.h"

#include <string.h>

void reserve_list(const struct gpu_inventory *i, struct gpu_grants *g)
{
	size_t cap = 0;

	for (size_t d = 0; d < i->n; d++) {
		if (i->v[d].excluded)
			continue;
		for (size_t m = 0; m < i->v[d].nmigs || m == 0; m++) {
			mem_grow(&g->v, &cap, g->n);
			g->v[g->n++] = (struct gpu_grant){
				&i->v[d], i->v[d].nmigs ? &i->v[d].migs[m] : NULL};
		}
	}
}

int reserve_kind(const struct gpu_grant *g)
{
	return (int)g->device->maker * 2 + (g->mig ? 1 : 0);
}

static size_t on_node(const struct gpu_grants *g, int node)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++)
		n += g->v[i].device && g->v[i].device->numa == node;
	return n;
}

/* The NUMA node to take from: of those that have enough the one with the fewest, so that the others
 * stay whole for those who need more; else that with the most. */
static int best_node(const struct gpu_grants *g, size_t want)
{
	size_t best = 0;
	int node = -1;

	for (size_t i = 0; i < g->n; i++) {
		size_t n = g->v[i].device ? on_node(g, g->v[i].device->numa) : 0;
		bool better = best >= want ? n >= want && n < best : n > best;

		if (n && (!best || better)) {
			best = n;
			node = g->v[i].device->numa;
		}
	}
	return node;
}

void reserve_choose(struct gpu_grants *from, size_t want, struct gpu_grants *g)
{
	g->v = realloc(g->v, (g->n + want) * sizeof(*g->v));
	if (!g->v)
		abort();
	while (want) {
		int node = best_node(from, want);

		for (size_t i = 0; i < from->n && want; i++) {
			if (!from->v[i].device || from->v[i].device->numa != node)
				continue;
			g->v[g->n++] = from->v[i];
			from->v[i].device = NULL;
			want--;
		}
	}
}
