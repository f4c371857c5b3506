#include "builder/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/build.h"
#include "builder/compose-private.h"
#include "builder/engine.h"
#include "images/image.h"

enum { KEY_TEXT = 64 << 20 };

const char *plan_kind_name(enum plan_kind k)
{
	static const char *const names[] = {
		"fetch", "unpack", "configure", "run", "layer", "config", "attest", "test"};

	return names[k];
}

/* ---- layers, as far as they can be told without the tree ---- */

/* The inputs as origins, in the order that compose_tree() gives them, and the key of each. */
struct inputs {
	struct composed c;
	struct digest *keys;
	size_t cap;
};

static void add_input(struct inputs *in, const struct origin *o, const struct digest *key)
{
	uint32_t at = compose_origin(&in->c, o);

	mem_grow(&in->keys, &in->cap, at);
	in->keys[at] = *key;
}

static void list_inputs(struct inputs *in, struct work *w, const struct plan_code *code, size_t n)
{
	const struct digest all = compose_key(w->m, w->l);
	const struct manifest *m = w->m;

	add_input(in, &(struct origin){.kind = ORIGIN_STATE, .name = "state"}, &all);
	if (w->l->base.present)
		add_input(in, &(struct origin){.kind = ORIGIN_BASE, .name = "base"}, &all);
	for (size_t i = 0; i < w->njobs; i++) {
		const struct job *j = &w->jobs[i];
		struct origin o = {.entry = i};

		if (j->kind == JOB_DEB)
			o = (struct origin){.kind = ORIGIN_DEB,
				.name = w->l->debs[j->i].name,
				.source = w->l->debs[j->i].source,
				.essential = w->l->debs[j->i].essential};
		else if (j->kind == JOB_NPM)
			o = (struct origin){.kind = ORIGIN_NPM, .name = w->l->npms[j->i].name};
		else if (j->kind == JOB_WHEEL)
			o = (struct origin){.kind = ORIGIN_WHEEL, .name = w->l->wheels[j->i].name};
		else if (j->kind == JOB_SOURCE)
			o = (struct origin){.kind = ORIGIN_SOURCE, .name = m->sources[j->i].id};
		else if (j->kind == JOB_MODEL && j->k == 0)
			o = (struct origin){.kind = ORIGIN_MODEL, .name = m->models[j->i].id};
		if (o.name)
			add_input(in, &o, &j->key);
	}
	add_input(in, &(struct origin){.kind = ORIGIN_FILE, .name = "manifest"}, &all);
	for (size_t i = n - m->nruns; i < n; i++)
		add_input(in,
			&(struct origin){
				.kind = ORIGIN_RUN, .name = m->runs[i - (n - m->nruns)].id},
			&code[i].key);
}

static bool has_path_patterns(const struct manifest_build *b)
{
	for (size_t i = 0; i < b->ngroups; i++)
		for (size_t k = 0; k < b->groups[i].match.n; k++)
			if (str_starts(b->groups[i].match.v[k], "path:"))
				return true;
	return false;
}

/* A layer's key: of all inputs that may put something into it. Where paths decide, or sizes, or
 * where everything is in one, that is all of them. */
static struct digest layer_plan_key(const struct manifest *m, const struct lock *l,
	const enum codec *codec, const struct inputs *in, const struct group_slots *slots,
	size_t slot, const struct digest *last)
{
	const struct manifest_build *b = &m->build;
	struct digest all = compose_key(m, l);
	bool everything = b->strategy != LAYERS_GROUPS || b->squash || has_path_patterns(b);
	char hex[DIGEST_HEX + 1];
	auto_buf struct buf t = BUF_INIT(KEY_TEXT);

	buf_printf(&t, "layer %s %s %s/%d %" PRId64, slots->ids[slot], ENGINE_VERSION,
		codec_name(codec ? *codec : b->codec), b->level, b->epoch);
	buf_printf(&t, " %s", codec_name(b->models_codec));
	if (everything)
		buf_printf(&t, " %s %s", digest_hex(&all, hex), digest_hex(last, hex));
	for (uint32_t o = 0; o < in->c.norigins; o++)
		if (slots->of_origin[o] == slot)
			buf_printf(&t, " %s", digest_hex(&in->keys[o], hex));
	return digest_of(t.data, t.len);
}

/* All that both the plan and the build need to name layers the same way. */
struct outlook {
	struct arena arena;
	struct work w;
	bool listed;
	struct plan_code *code;
	size_t ncode;
	struct inputs in;
	struct group_slots slots;
	struct digest last; /* of composing and all steps */
};

static struct digest last_key(const struct outlook *x)
{
	struct digest d = compose_key(x->w.m, x->w.l);
	struct hash h;

	hash_init(&h, HASH_SHA256);
	hash_add(&h, d.b, sizeof(d.b));
	for (size_t i = 0; i < x->ncode; i++)
		hash_add(&h, x->code[i].key.b, sizeof(d.b));
	return hash_digest(&h);
}

static int look_out(struct outlook *x, const struct manifest *m, const struct lock *l,
	struct store *s, struct err *e)
{
	*x = (struct outlook){.w = {.m = m, .l = l, .s = s}};
	if (work_init(&x->w, e) < 0)
		return -1;
	x->listed = true;
	x->code = plan_code(m, l, &x->arena, &x->ncode);
	x->last = last_key(x);
	list_inputs(&x->in, &x->w, x->code, x->ncode);
	group_slots(&x->slots, &x->in.c, &m->build, &x->arena);
	return 0;
}

static void outlook_fini(struct outlook *x)
{
	if (x->listed)
		work_fini(&x->w);
	compose_fini(&x->in.c);
	free(x->in.keys);
	arena_fini(&x->arena);
}

static struct digest note_key(const char *what, const struct digest *key)
{
	char text[128], hex[DIGEST_HEX + 1];
	int n = snprintf(text, sizeof(text), "plan %s %s", what, digest_hex(key, hex));

	return digest_of(text, (size_t)n);
}

/* The layer of a slot, NULL when nothing went into it. */
static const struct layer *layer_of(const struct groups *g, const char *id)
{
	for (size_t i = 0; i < g->n; i++)
		if (str_eq(g->v[i].layer.id, id))
			return &g->v[i].layer;
	return NULL;
}

/* How the ORIGIN strategy cuts is known only with the tree: what it came to is kept as a whole, for
 * the same inputs. "ID HEX SIZE" a line. */
static struct digest origin_key(const struct manifest *m, const struct lock *l,
	const enum codec *codec, const struct digest *last)
{
	const struct manifest_build *b = &m->build;
	struct digest all = compose_key(m, l);
	char one[DIGEST_HEX + 1], two[DIGEST_HEX + 1], text[512];
	int n = snprintf(text, sizeof(text),
		"layers %s %s/%d models %s, at most %u, epoch %" PRId64 " of %s %s", ENGINE_VERSION,
		codec_name(codec ? *codec : b->codec), b->level, codec_name(b->models_codec),
		b->max_layers, b->epoch, digest_hex(&all, one), digest_hex(last, two));
	struct digest key = digest_of(text, (size_t)n);

	return note_key("origin", &key);
}

static int remember_origin(const struct outlook *x, const enum codec *codec, const struct groups *g,
	struct pool *pool, struct err *e)
{
	struct digest key = origin_key(x->w.m, x->w.l, codec, &x->last);
	auto_buf struct buf text = BUF_INIT(KEY_TEXT);
	char hex[DIGEST_HEX + 1];

	for (size_t i = 0; i < g->n; i++)
		buf_printf(&text, "%s %s %" PRIu64 "\n", g->v[i].layer.id,
			digest_hex(&g->v[i].layer.digest, hex), g->v[i].layer.size);
	return pool_note_put(pool, &key, text.data ? text.data : "", e);
}

int plan_remember(const struct manifest *m, const struct lock *l, const enum codec *codec,
	const struct groups *g, struct store *s, struct pool *pool, struct err *e)
{
	struct outlook x;
	int rc = look_out(&x, m, l, s, e);

	for (size_t i = 0; rc == 0 && i < x.ncode; i++) {
		struct digest d = note_key("step", &x.code[i].key);

		rc = pool_note_put(pool, &d, "1", e);
	}
	if (rc == 0 && m->build.strategy == LAYERS_ORIGIN)
		rc = remember_origin(&x, codec, g, pool, e);
	for (size_t i = 0; rc == 0 && i < x.slots.n; i++) {
		const struct layer *layer = layer_of(g, x.slots.ids[i]);
		struct digest d = layer_plan_key(m, l, codec, &x.in, &x.slots, i, &x.last);
		char text[256] = "empty", hex[DIGEST_HEX + 1];

		if (layer)
			snprintf(text, sizeof(text), "%s %" PRIu64, digest_hex(&layer->digest, hex),
				layer->size);
		d = note_key("layer", &d);
		rc = pool_note_put(pool, &d, text, e);
	}
	outlook_fini(&x);
	return rc;
}

/* ---- the plan ---- */

static struct plan_step *add(
	struct plan *p, enum plan_kind kind, const char *id, const struct digest *key, bool hit)
{
	if (p->n == p->cap) { /* the old array stays in the arena */
		struct plan_step *v = p->steps;

		p->cap = p->cap ? 2 * p->cap : 64;
		p->steps = arena_alloc(&p->arena, p->cap * sizeof(*v));
		if (v)
			memcpy(p->steps, v, p->n * sizeof(*v));
	}
	p->steps[p->n] = (struct plan_step){
		.kind = kind, .id = arena_strdup(&p->arena, id), .key = *key, .hit = hit};
	return &p->steps[p->n++];
}

static void add_fetches(struct plan *p, const struct input *in, size_t n, struct store *s)
{
	for (size_t i = 0; i < n; i++) {
		struct digest key;
		struct plan_step *x;

		memcpy(key.b, in[i].digest, DIGEST_SIZE); /* of a sha512 its first half */
		x = add(p, PLAN_FETCH, in[i].name, &key, s->fd >= 0 && cache_has(s, &in[i]));
		x->fetch = x->hit ? 0 : in[i].size;
		x->known = in[i].size || x->hit;
		p->fetch += x->fetch;
	}
}

static void add_unpacks(struct plan *p, const struct work *w)
{
	static const char *const kinds[] = {[JOB_DEB] = "deb",
		[JOB_NPM] = "npm",
		[JOB_WHEEL] = "wheel",
		[JOB_SOURCE] = "source",
		[JOB_MODEL] = "model",
		[JOB_FILE] = "file"};

	for (size_t i = 0; i < w->njobs; i++) {
		const struct job *j = &w->jobs[i];
		bool hit = j->has_key && w->s->fd >= 0 && unpacked_has(w->s, &j->key);

		if (j->has_key)
			add(p, PLAN_UNPACK, j->name, &j->key, hit)->detail = kinds[j->kind];
	}
}

static int noted(
	struct pool *pool, const char *what, const struct digest *key, char **text, struct err *e)
{
	struct digest d = note_key(what, key);

	*text = NULL;
	return pool ? pool_note_get(pool, &d, text, e) : 0;
}

static int add_code(struct plan *p, const struct outlook *x, struct pool *pool, struct err *e)
{
	const struct manifest *m = x->w.m;
	struct digest key = compose_key(m, x->w.l);

	if (m->apt.present && m->apt.configure == APT_BUILTIN)
		add(p, PLAN_CONFIGURE, "builtin", &key, p->cached)->detail =
			"dpkg's database, alternatives and users, without running code";
	for (size_t i = 0; i < x->ncode; i++) {
		auto_free char *text = NULL;
		bool run = str_starts(x->code[i].id, "run:");
		int rc = noted(pool, "step", &x->code[i].key, &text, e);

		if (rc < 0)
			return -1;
		add(p, run ? PLAN_RUN : PLAN_CONFIGURE,
			run ? x->code[i].id + strlen("run:") : x->code[i].id, &x->code[i].key,
			rc > 0 || p->cached);
	}
	return 0;
}

int plan_was_run(struct pool *pool, const struct plan_code *code, struct err *e)
{
	auto_free char *text = NULL;

	return noted(pool, "step", &code->key, &text, e);
}

static bool slot_is_used(const struct outlook *x, size_t slot)
{
	for (uint32_t o = 0; o < x->in.c.norigins; o++)
		if (x->slots.of_origin[o] == slot)
			return true;
	return x->slots.by_path[slot];
}

static uint64_t size_in(const char *note)
{
	const char *space = note ? strchr(note, ' ') : NULL;
	uint64_t n = 0;

	return space && str_u64(space + 1, INT64_MAX, &n) == 0 ? n : 0;
}

static void add_layer(
	struct plan *p, const char *id, const struct digest *key, const char *note, struct store *s)
{
	char hex[DIGEST_HEX + 1] = "";
	struct digest blob;
	struct plan_step *step;
	bool hit = p->cached;

	if (note)
		snprintf(hex, sizeof(hex), "%.64s", note);
	hit = hit || (digest_from_hex(&blob, hex) == 0 && store_has(s, &blob));
	step = add(p, PLAN_LAYER, id, key, hit);
	step->write = hit ? 0 : size_in(note);
	step->known = hit || note;
	p->write += step->write;
	p->write_open = p->write_open || !step->known;
}

/* One step where nothing is known. */
static int add_origin_layers(struct plan *p, const struct outlook *x, const enum codec *codec,
	struct store *s, struct pool *pool, struct err *e)
{
	struct digest key = origin_key(x->w.m, x->w.l, codec, &x->last);
	auto_free char *text = NULL;
	int rc = pool ? pool_note_get(pool, &key, &text, e) : 0;
	char *next = NULL;

	if (rc <= 0) {
		add_layer(p, "by origin", &key, NULL, s);
		p->steps[p->n - 1].detail = "how many, the sizes of packages will tell";
		p->layers_open = true;
		return rc;
	}
	for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		char *space = strchr(line, ' ');

		if (space) {
			*space = '\0';
			add_layer(p, line, &key, space + 1, s);
		}
	}
	return 0;
}

static int add_layers(struct plan *p, const struct outlook *x, const enum codec *codec,
	struct store *s, struct pool *pool, struct err *e)
{
	if (x->w.m->build.strategy == LAYERS_ORIGIN && !x->w.m->build.squash)
		return add_origin_layers(p, x, codec, s, pool, e);
	for (size_t i = 0; i < x->slots.n; i++) {
		auto_free char *text = NULL;
		struct digest key =
			layer_plan_key(x->w.m, x->w.l, codec, &x->in, &x->slots, i, &x->last);
		int rc;

		if (!slot_is_used(x, i))
			continue;
		rc = noted(pool, "layer", &key, &text, e);
		if (rc < 0)
			return -1;
		if (rc > 0 && str_eq(text, "empty"))
			continue;
		add_layer(p, x->slots.ids[i], &key, text, s);
	}
	return 0;
}

static void add_rest(struct plan *p, const struct manifest *m, const struct digest *key)
{
	static const char *const stages[] = {"plan", "image", "run"};

	add(p, PLAN_CONFIG, "manifest, config and index", key, p->cached);
	for (size_t i = 0; i < m->build.sbom.n; i++)
		add(p, PLAN_ATTEST, m->build.sbom.v[i], key, p->cached)->detail = "when pushed";
	if (m->build.provenance)
		add(p, PLAN_ATTEST, "slsa-v1", key, p->cached)->detail = "when pushed";
	for (size_t i = 0; i < m->ntests; i++)
		if (!m->tests[i].disabled)
			add(p, PLAN_TEST, m->tests[i].id, key, false)->detail =
				stages[m->tests[i].stage];
}

static int find_image(
	struct plan *p, struct store *s, struct pool *pool, const struct digest *key, struct err *e)
{
	auto_free char *note = NULL;
	int rc = pool ? pool_note_get(pool, key, &note, e) : 0;

	p->cached = rc > 0 && digest_from_hex(&p->image, note) == 0 && store_has(s, &p->image);
	return rc < 0 ? -1 : 0;
}

int plan_make(struct plan *p, const struct manifest *m, const struct lock *l, struct store *s,
	struct pool *pool, const enum codec *codec, struct err *e)
{
	struct digest key = build_key(m, l, codec);
	struct outlook x;
	struct input *in;
	size_t n;
	int rc;

	*p = (struct plan){0};
	rc = look_out(&x, m, l, s, e);
	if (rc == 0)
		rc = find_image(p, s, pool, &key, e) < 0 ||
				     compose_inputs(m, l, &x.arena, &in, &n, e) < 0
			     ? -1
			     : 0;
	if (rc == 0) {
		add_fetches(p, in, n, s);
		add_unpacks(p, &x.w);
		rc = add_code(p, &x, pool, e) < 0 || add_layers(p, &x, codec, s, pool, e) < 0 ? -1
											      : 0;
	}
	if (rc == 0)
		add_rest(p, m, &key);
	outlook_fini(&x);
	if (rc < 0)
		plan_fini(p);
	return rc;
}

void plan_fini(struct plan *p)
{
	arena_fini(&p->arena);
	*p = (struct plan){0};
}
