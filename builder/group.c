#include "builder/group.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/glob.h"
#include "images/tar.h"

/* Slots are the manifest's own groups first, then these, then one for each model, then one for each
 * step. */
enum {
	IMPLICIT_DEBS,
	IMPLICIT_PYTHON,
	IMPLICIT_NODE,
	IMPLICIT_SOURCES,
	IMPLICIT_STATE,
	IMPLICIT_FILES,
	IMPLICIT_MODELS
};
static const char *const implicit_ids[] = {"debs", "python", "node", "sources", "state", "files"};
static const uint32_t no_slot = UINT32_MAX; /* what the base brought */

struct grouping {
	const struct composed *c;
	const struct manifest_build *b;
	const char **sources; /* ORIGIN strategy: the source packages with a layer of their own */
	size_t nsources;
	size_t first_implicit; /* slot of IMPLICIT_DEBS */
	size_t nmodels;
	uint32_t *by_origin; /* slot of each origin */
	size_t nslots;
	const char **ids;
	bool *models;    /* slots that hold models only */
	uint32_t *steps; /* by slot: the first step (its origin) that may be in it; 0: none */
};

static bool matches_origin(const char *pattern, const struct origin *o)
{
	static const struct {
		const char *prefix;
		enum origin_kind kind;
	} kinds[] = {{"deb:", ORIGIN_DEB}, {"npm:", ORIGIN_NPM}, {"model:", ORIGIN_MODEL},
		{"whl:", ORIGIN_WHEEL}, {"source:", ORIGIN_SOURCE}, {"run:", ORIGIN_RUN}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *glob = pattern + strlen(kinds[i].prefix);

		if (!str_starts(pattern, kinds[i].prefix) || o->kind != kinds[i].kind)
			continue;
		return str_eq(glob, "?essential") ? o->essential : glob_matches(glob, o->name);
	}
	return false;
}

/* A group of the manifest that is called like an implicit one takes its place. */
static uint32_t slot_named(const struct grouping *g, uint32_t implicit)
{
	for (size_t i = 0; g->b->strategy == LAYERS_GROUPS && i < g->b->ngroups; i++)
		if (str_eq(g->b->groups[i].id, implicit_ids[implicit]))
			return (uint32_t)i;
	return (uint32_t)g->first_implicit + implicit;
}

static uint32_t implicit_slot(
	const struct grouping *g, const struct origin *o, size_t *model, size_t *step)
{
	static const uint32_t of_kind[] = {
		[ORIGIN_DEB] = IMPLICIT_DEBS,
		[ORIGIN_WHEEL] = IMPLICIT_PYTHON,
		[ORIGIN_NPM] = IMPLICIT_NODE,
		[ORIGIN_SOURCE] = IMPLICIT_SOURCES,
		[ORIGIN_STATE] = IMPLICIT_STATE,
		[ORIGIN_BASE] = IMPLICIT_STATE,
		[ORIGIN_FILE] = IMPLICIT_FILES,
	};

	if (g->b->squash)
		return slot_named(g, IMPLICIT_FILES);
	if (o->kind == ORIGIN_MODEL)
		return (uint32_t)(g->first_implicit + IMPLICIT_MODELS + (*model)++);
	if (g->b->strategy == LAYERS_SINGLE)
		return slot_named(g, IMPLICIT_FILES);
	if (o->kind == ORIGIN_RUN)
		return (uint32_t)(g->first_implicit + IMPLICIT_MODELS + g->nmodels + (*step)++);
	return slot_named(g, of_kind[o->kind]);
}

static int wanted_slot(const struct grouping *g, const struct origin *o)
{
	if (g->b->squash)
		return -1;
	if (g->b->strategy == LAYERS_ORIGIN && o->kind == ORIGIN_DEB)
		for (size_t i = 0; i < g->nsources; i++)
			if (str_eq(g->sources[i], o->source))
				return (int)i;
	if (g->b->strategy != LAYERS_GROUPS)
		return -1;
	for (size_t i = 0; i < g->b->ngroups; i++)
		for (size_t k = 0; k < g->b->groups[i].match.n; k++)
			if (matches_origin(g->b->groups[i].match.v[k], o))
				return (int)i;
	return -1;
}

static void slot_origins(struct grouping *g)
{
	size_t model = 0, step = 0;

	for (uint32_t i = 0; i < g->c->norigins; i++) {
		const struct origin *o = &g->c->origins[i];
		uint32_t implicit = implicit_slot(g, o, &model, &step);
		int wanted = wanted_slot(g, o);
		uint32_t slot = wanted >= 0 ? (uint32_t)wanted : implicit;

		g->by_origin[i] = slot;
		if (implicit >= g->first_implicit + IMPLICIT_MODELS)
			g->ids[implicit] = o->name;
		if (o->kind == ORIGIN_RUN && !g->steps[slot])
			g->steps[slot] = i;
	}
	for (size_t i = 0; i < g->nmodels; i++)
		g->models[g->first_implicit + IMPLICIT_MODELS + i] = true;
	for (size_t i = 0; g->b->strategy == LAYERS_GROUPS && i < g->b->ngroups; i++) {
		const struct strings *match = &g->b->groups[i].match;

		g->models[i] = match->n > 0;
		for (size_t k = 0; k < match->n; k++)
			g->models[i] = g->models[i] && str_starts(match->v[k], "model:");
	}
}

static uint32_t slot_of(const struct grouping *g, const struct node *n)
{
	char path[TREE_PATH_MAX + 2];

	if (n->layer != CHUNK_NO_LAYER)
		return no_slot;
	if (g->b->strategy == LAYERS_GROUPS && g->b->ngroups && !g->b->squash) {
		path[0] = '/';
		node_path(n, path + 1);
		for (size_t i = 0; i < g->b->ngroups; i++)
			for (size_t k = 0; k < g->b->groups[i].match.n; k++) {
				const char *pattern = g->b->groups[i].match.v[k];

				if (str_starts(pattern, "path:") && glob_matches(pattern + 5, path))
					return (uint32_t)i;
			}
	}
	return g->by_origin[n->origin];
}

/* ---- the ORIGIN strategy: which source packages are worth a layer ---- */

struct source_size {
	const char *name;
	uint64_t bytes;
};

static int bigger(const void *a, const void *b)
{
	const struct source_size *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->name, y->name);
}

static size_t sizes_of_sources(const struct composed *c, struct source_size *v)
{
	auto_free uint64_t *bytes = mem_array(c->norigins, sizeof(*bytes));
	size_t n = 0;

	for (const struct node *x = tree_root(c->tree); x;
		x = tree_next((struct node *)(uintptr_t)x))
		bytes[x->origin] += x->a.type == NODE_FILE ? x->a.size : 0;
	for (size_t i = 0; i < c->norigins; i++) {
		size_t k = 0;

		if (c->origins[i].kind != ORIGIN_DEB)
			continue;
		while (k < n && !str_eq(v[k].name, c->origins[i].source))
			k++;
		if (k == n)
			v[n++] = (struct source_size){.name = c->origins[i].source};
		v[k].bytes += bytes[i];
	}
	qsort(v, n, sizeof(*v), bigger);
	return n;
}

static void pick_sources(struct grouping *g, uint32_t budget)
{
	auto_free struct source_size *v = mem_array(g->c->norigins, sizeof(*v));
	size_t n = sizes_of_sources(g->c, v);

	g->nsources = n < budget ? n : budget;
	g->sources = mem_array(g->nsources, sizeof(const char *));
	for (size_t i = 0; i < g->nsources; i++)
		g->sources[i] = v[i].name;
}

static void grouping_init(struct grouping *g)
{
	bool kinds[ORIGIN_BASE + 1] = {false};
	size_t steps = 0, taken = 1; /* the index layer */

	for (size_t i = 0; i < g->c->norigins; i++) {
		kinds[g->c->origins[i].kind] = true;
		g->nmodels += g->c->origins[i].kind == ORIGIN_MODEL;
		steps += g->c->origins[i].kind == ORIGIN_RUN;
	}
	for (size_t i = 0; i <= ORIGIN_BASE; i++)
		taken += kinds[i] && i != ORIGIN_MODEL && i != ORIGIN_RUN;
	taken += g->nmodels + steps;
	if (g->b->strategy == LAYERS_ORIGIN) {
		pick_sources(g, g->b->max_layers > taken ? g->b->max_layers - (uint32_t)taken : 0);
		g->first_implicit = g->nsources;
	} else if (g->b->strategy == LAYERS_GROUPS) {
		g->first_implicit = g->b->ngroups;
	}
	g->nslots = g->first_implicit + IMPLICIT_MODELS + g->nmodels + steps;
	g->by_origin = mem_array(g->c->norigins, sizeof(*g->by_origin));
	g->ids = mem_array(g->nslots, sizeof(const char *));
	g->models = mem_array(g->nslots, sizeof(*g->models));
	g->steps = mem_array(g->nslots, sizeof(*g->steps));
	for (size_t i = 0; i < g->first_implicit; i++)
		g->ids[i] = g->b->strategy == LAYERS_ORIGIN ? g->sources[i] : g->b->groups[i].id;
	for (size_t i = 0; i < IMPLICIT_MODELS; i++)
		g->ids[g->first_implicit + i] = implicit_ids[i];
	slot_origins(g);
}

static void grouping_fini(struct grouping *g)
{
	free(g->sources);
	free(g->by_origin);
	free(g->ids);
	free(g->models);
	free(g->steps);
}

/* ---- filling the layers ---- */

static void add_node(struct group *v, size_t *caps, size_t slot, struct node *n)
{
	mem_grow(&v[slot].nodes, &caps[slot], v[slot].n);
	v[slot].nodes[v[slot].n++] = n;
}

/* Every engine makes a missing parent folder with attributes of its own, so each layer names all
 * the parents of what it holds. */
static void add_parents(struct group *v, size_t *caps, size_t slot, struct node *n, uint64_t *seen)
{
	struct node *up[TREE_DEPTH_MAX + 2];
	size_t depth = 0;

	for (struct node *p = n->parent; p && p->parent; p = p->parent)
		if (depth < TREE_DEPTH_MAX)
			up[depth++] = p;
	while (depth > 0) {
		struct node *p = up[--depth];

		if (seen[p->scratch] == slot + 1)
			continue;
		seen[p->scratch] = slot + 1;
		add_node(v, caps, slot, p);
	}
}

static void fill_slot(struct grouping *g, struct group *v, size_t *caps, size_t slot,
	const uint32_t *slots, uint64_t *seen)
{
	size_t i = 0;

	for (struct node *n = tree_root(g->c->tree); n; n = tree_next(n), i++) {
		if (slots[i] != slot || seen[i] == slot + 1)
			continue;
		add_parents(v, caps, slot, n, seen);
		seen[i] = slot + 1;
		add_node(v, caps, slot, n);
		v[slot].bytes += n->a.type == NODE_FILE ? n->a.size : 0;
	}
}

/* Layers of steps come last, in the order of the steps: what a step did to a folder that a layer
 * below names, too, is what counts. */
static void order_slots(const struct grouping *g, size_t *order)
{
	size_t n = 0;

	for (size_t i = 0; i < g->nslots; i++)
		if (!g->steps[i])
			order[n++] = i;
	for (uint32_t o = 1; o < g->c->norigins; o++)
		for (size_t i = 0; i < g->nslots; i++)
			if (g->steps[i] == o)
				order[n++] = i;
}

/* ---- what the base has and we have not ---- */

/* The folder of a path, when it is one still: else its own whiteout, or what took its place, hides
 * the path, too. */
static struct node *folder_of(struct tree *t, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[TREE_PATH_MAX + 1];
	struct node *n;

	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 0, path);
	n = tree_find(t, dir);
	return n && n->a.type == NODE_DIR ? n : NULL;
}

static void add_whiteouts(
	struct grouping *g, struct groups *out, size_t slot, size_t *caps, uint64_t *seen)
{
	for (size_t i = 0; i < g->c->nbase_paths; i++) {
		const char *path = g->c->base_paths[i], *slash = strrchr(path, '/');
		struct node *dir, *n;

		if (tree_find(g->c->tree, path))
			continue;
		dir = folder_of(g->c->tree, path);
		if (!dir)
			continue;
		n = arena_alloc(&out->arena, sizeof(*n));
		*n = (struct node){.parent = dir,
			.name = arena_printf(&out->arena, ".wh.%s", slash ? slash + 1 : path),
			.a = {.type = NODE_FILE, .mode = 0644, .mtime = g->b->epoch},
			.layer = CHUNK_NO_LAYER,
			.nlink = 1};
		add_parents(out->v, caps, slot, n, seen);
		add_node(out->v, caps, slot, n);
	}
}

/* The last layer that there is; the one of state when there is none. */
static size_t last_slot(const struct grouping *g, const struct group *v, const size_t *order)
{
	for (size_t i = g->nslots; i > 0; i--)
		if (v[order[i - 1]].n)
			return order[i - 1];
	return g->first_implicit + IMPLICIT_STATE;
}

/* A new name of an object of the base: both are ours then. */
static uint32_t slot_of_link(struct grouping *g, struct node *x, uint32_t *slots)
{
	uint32_t *object = &slots[x->link->scratch];

	if (*object == no_slot && x->layer == CHUNK_NO_LAYER) {
		x->link->layer = CHUNK_NO_LAYER;
		*object = slot_of(g, x);
	}
	return x->layer == CHUNK_NO_LAYER ? *object : no_slot;
}

static void fill(struct grouping *g, struct groups *out, const size_t *order)
{
	size_t n = tree_count(g->c->tree), i = 0;
	auto_free uint32_t *slots = mem_array(n, sizeof(*slots));
	auto_free uint64_t *seen = mem_array(n, sizeof(*seen)); /* slot + 1 that named it last */
	auto_free size_t *caps = mem_array(g->nslots, sizeof(*caps));

	for (struct node *x = tree_root(g->c->tree); x; x = tree_next(x))
		x->scratch = i++;
	for (struct node *x = tree_root(g->c->tree); x; x = tree_next(x)) {
		/* a hard link travels with its object: its target must be in the same layer */
		slots[x->scratch] = x->link ? slot_of_link(g, x, slots) : slot_of(g, x);
	}
	for (i = 0; i < g->nslots; i++)
		fill_slot(g, out->v, caps, order[i], slots, seen);
	add_whiteouts(g, out, last_slot(g, out->v, order), caps, seen);
}

/* A root folder that is as every engine makes it has no member in a tar. */
static bool has_members(const struct group *v)
{
	return v->n > 1 || (v->n == 1 && tar_has_member(v->nodes[0]));
}

/* In the order of the layers, without the empty ones. */
static void arrange(struct groups *out, const size_t *order)
{
	struct group *v = mem_array(out->n, sizeof(*v));
	size_t kept = 0;

	for (size_t i = 0; i < out->n; i++)
		if (has_members(&out->v[order[i]]))
			v[kept++] = out->v[order[i]];
		else
			free(out->v[order[i]].nodes);
	free(out->v);
	out->v = v;
	out->n = kept;
}

void group_slots(struct group_slots *out, struct composed *c, const struct manifest_build *b,
	struct arena *a)
{
	struct manifest_build how = *b;
	struct grouping g = {.c = c, .b = &how};

	if (how.strategy == LAYERS_ORIGIN) /* sizes decide: only the tree has them */
		how.strategy = LAYERS_SINGLE;
	grouping_init(&g);
	*out = (struct group_slots){.n = g.nslots,
		.ids = arena_alloc(a, g.nslots * sizeof(*out->ids)),
		.by_path = arena_alloc(a, g.nslots * sizeof(*out->by_path)),
		.of_origin = arena_dup(a, g.by_origin, c->norigins * sizeof(*g.by_origin))};
	for (size_t i = 0; i < g.nslots; i++) {
		out->ids[i] = arena_strdup(a, g.ids[i] ? g.ids[i] : "layer");
		for (size_t k = 0;
			i < b->ngroups && how.strategy == LAYERS_GROUPS && k < b->groups[i].match.n;
			k++)
			out->by_path[i] =
				out->by_path[i] || str_starts(b->groups[i].match.v[k], "path:");
	}
	grouping_fini(&g);
}

int group_tree(
	struct groups *out, struct composed *c, const struct manifest_build *b, struct err *e)
{
	struct grouping g = {.c = c, .b = b};
	size_t *order;

	grouping_init(&g);
	order = mem_array(g.nslots, sizeof(*order));
	order_slots(&g, order);
	*out = (struct groups){
		.v = mem_array(g.nslots, sizeof(*out->v)), .n = g.nslots, .first = c->nbase};
	for (size_t i = 0; i < g.nslots; i++) {
		struct layer *l = &out->v[i].layer;

		snprintf(l->id, sizeof(l->id), "%s", g.ids[i] ? g.ids[i] : "layer");
		l->codec = g.models[i] ? b->models_codec : b->codec;
		l->level = b->level;
	}
	fill(&g, out, order);
	arrange(out, order);
	free(order);
	grouping_fini(&g);
	if (out->n + 1 <= b->max_layers) /* one more for the index */
		return 0;
	err_set(e, ERR_USAGE, "%zu layers and the index, but build.layers.max is %u", out->n,
		b->max_layers);
	groups_fini(out);
	return err_hint(e, "merge groups, or raise build.layers.max");
}

void groups_fini(struct groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		free(g->v[i].nodes);
	free(g->v);
	arena_fini(&g->arena);
	*g = (struct groups){0};
}
