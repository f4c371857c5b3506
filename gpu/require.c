#include "gpu/require.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "gpu/require-parts.h"

enum { SHOWN_MAX = 3, ERROR_MAX = 1400 };

/* ---- lines ---- */

void judge_line(struct judge *j, const char *what, const char *needed, const char *found, bool met,
	const char *hint)
{
	struct gpu_verdict *v = j->v;

	if ((v->n & (v->n - 1)) == 0) { /* full: twice as much */
		struct gpu_need *grown =
			arena_alloc(&v->mem, (v->n ? 2 * v->n : 1) * sizeof(*grown));

		if (v->n)
			memcpy(grown, v->v, v->n * sizeof(*grown));
		v->v = grown;
	}
	v->v[v->n++] =
		(struct gpu_need){what, needed, found, met ? NULL : hint, met, !met && j->spare};
	v->unmet += !met && !j->spare;
	v->without = v->without || (!met && j->spare);
}

static const char *candidate_name(struct judge *j, const struct candidate *c)
{
	const struct gpu_device *d = c->grant.device;
	const char *model = d->model ? d->model : d->bus;

	return c->grant.mig ? arena_printf(&j->v->mem, "MIG device %u:%u of %s", d->index,
				      c->grant.mig->index, model)
			    : arena_printf(&j->v->mem, "GPU %u, %s", d->index, model);
}

int judge_rule(struct judge *j, const struct rule *r, struct err *e)
{
	const char *found = "", *all = "", *last_hint = NULL;
	size_t yes = 0, shown = 0, others = 0;
	bool met;

	for (size_t k = 0; k < j->n; k++) {
		struct candidate *c = &j->c[k];
		const char *has = "unknown", *hint = NULL;
		int answer = r->check(j, r, c, &has, &hint, e);

		if (answer < 0)
			return -1;
		if (answer == GPU_YES) {
			yes++;
			all = has;
			continue;
		}
		c->fits = false;
		last_hint = hint ? hint : last_hint;
		if (shown < SHOWN_MAX)
			found = arena_printf(&j->v->mem, "%s%s%s (%s)", found, shown++ ? ", " : "",
				has, candidate_name(j, c));
		else
			others++;
	}
	/* Too few, of which all are good enough: that is count.min's to say. */
	met = yes == j->n ? j->given || yes || !j->need : !j->given && yes >= j->need;
	if (others)
		found = arena_printf(&j->v->mem, "%s and %zu more", found, others);
	if (met && yes) /* what is good enough is the answer, not what else there is */
		found = all;
	judge_line(j, r->what, r->needed, *found ? found : "no GPU", met, last_hint);
	return 0;
}

/* ---- all together ---- */

static const char *gpus(struct judge *j, uint64_t n)
{
	return arena_printf(&j->v->mem, "%" PRIu64 " GPU%s", n, n == 1 ? "" : "s");
}

static size_t fitting(const struct judge *j)
{
	size_t n = 0;

	for (size_t k = 0; k < j->n; k++)
		n += j->c[k].fits;
	return n;
}

static void judge_count(struct judge *j)
{
	const struct gpu_label *l = &j->label;
	bool required = str_eq(l->mode, "required");
	uint32_t min = l->count_min ? l->count_min : required;
	size_t fit = fitting(j), has = j->given ? j->n : fit;
	const char *found = gpus(j, has);

	if (!j->given && fit < j->n)
		found = arena_printf(&j->v->mem, "%zu of %zu fit", fit, j->n);
	/* An optional GPU that is not given is not missed; one that is has to have its company. */
	if (min && (required || j->spare || (j->given && j->n)))
		judge_line(j, "count.min", gpus(j, min), found, has >= min,
			j->given ? "--gpus N gives more" : NULL);
	if (l->count_max && j->given)
		judge_line(j, "count.max", arena_printf(&j->v->mem, "at most %u", l->count_max),
			found, has <= l->count_max, "--gpus N gives fewer");
}

static int by_vram(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (x->facts.vram_mib < y->facts.vram_mib) - (x->facts.vram_mib > y->facts.vram_mib);
}

/* The memory of what is granted, or of the best that may be. */
static void judge_total(struct judge *j)
{
	const struct gpu_label *l = &j->label;
	auto_free struct candidate *sorted = mem_array(j->n + 1, sizeof(*sorted));
	size_t n = 0, most = l->count_max && !j->given ? l->count_max : SIZE_MAX;
	uint64_t mib = 0;
	bool unknown = false, met;

	if (!l->vram_min || !l->vram_total || (j->given && !j->n))
		return;
	for (size_t k = 0; k < j->n; k++)
		if (j->given || j->c[k].fits)
			sorted[n++] = j->c[k];
	if (n)
		qsort(sorted, n, sizeof(*sorted), by_vram);
	for (size_t k = 0; k < n && k < most; k++) {
		mib += sorted[k].facts.vram_mib;
		unknown = unknown || !sorted[k].facts.vram_mib;
	}
	met = mib * 100 >= (uint64_t)l->vram_min * 1024 * 93 || (!j->given && !j->need);
	judge_line(j, "vramGiB.min",
		arena_printf(&j->v->mem, "%u GiB on all GPUs together", l->vram_min),
		arena_printf(&j->v->mem, "%" PRIu64 " GiB%s", mib / 1024,
			unknown ? " and some unknown" : ""),
		met, unknown ? GPU_ASK_HINT : NULL);
}

/* Links are known where a switch for them is there; which GPUs have bridges no file tells. */
static void judge_link(struct judge *j)
{
	const char *link = j->label.interconnect, *found = "unknown", *hint;
	size_t n = 0, several = 0, linked = 0;
	bool met;

	for (size_t k = 0; k < j->n; k++) {
		if (!j->given && !j->c[k].fits)
			continue;
		several++;
		n += j->c[k].grant.mig != NULL;
		linked += j->c[k].facts.nvlink;
	}
	if (str_eq(link, "none") || (j->given && !j->n))
		return;
	if (str_eq(link, "rdma")) {
		met = j->i->infiniband.n > 0 || (!j->given && !j->need);
		judge_line(j, "interconnect", "RDMA",
			j->i->infiniband.n ? "RDMA devices" : "no /dev/infiniband", met,
			"load the modules of the network card: ib_uverbs, rdma_cm");
		return;
	}
	hint = "nvidia-smi topo -m tells whether they are connected; --gpus 1 needs no connection";
	met = (j->given ? several : j->need) <= 1 ||
	      (j->i->nvswitch.n && linked >= (j->given ? several : j->need));
	if (met)
		found = several > 1 ? "NVLink by NVSwitch" : "one GPU";
	else if (n)
		found = "MIG devices have none";
	else if (linked < several)
		found = "models without NVLink";
	else
		found = "no NVSwitch; bridges are not known";
	judge_line(j, "interconnect", "NVLink between the GPUs", found, met, hint);
}

/* ---- candidates ---- */

static void add_candidate(struct judge *j, const struct gpu_device *d, const struct gpu_mig *m)
{
	struct candidate *c = &j->c[j->n++];

	*c = (struct candidate){.grant = {d, m}, .fits = true};
	gpu_facts_of(d, m, j->probe, &c->facts);
}

static void add_candidates(struct judge *j, const struct gpu_grants *g)
{
	const struct gpu_inventory *i = j->i;
	size_t most = g ? g->n : 0;

	for (size_t k = 0; !g && k < i->n; k++)
		most += i->v[k].nmigs + 1;
	j->c = arena_alloc(&j->v->mem, (most + 1) * sizeof(*j->c));
	for (size_t k = 0; g && k < g->n; k++)
		add_candidate(j, g->v[k].device, g->v[k].mig);
	for (size_t k = 0; !g && k < i->n; k++) {
		const struct gpu_device *d = &i->v[k];

		if (d->excluded)
			continue;
		if (!d->nmigs)
			add_candidate(j, d, NULL);
		for (size_t m = 0; m < d->nmigs; m++)
			add_candidate(j, d, &d->migs[m]);
	}
}

/* Does an image without a label ask for GPUs? */
static int asks(const struct strings *env, bool *yes, struct err *e)
{
	struct gpu_wishes w;

	if (!env)
		return 0;
	if (gpu_wishes_read(&w, env, e) < 0)
		return -1;
	*yes = !w.nothing && !w.none;
	gpu_wishes_fini(&w);
	return 0;
}

static int judge_all(
	struct judge *j, const json_t *label, const struct gpu_grants *g, struct err *e)
{
	struct gpu_label *l = &j->label;
	bool wants = false;

	if (gpu_label_read(l, label, &j->v->mem, e) < 0 || asks(j->env, &wants, e) < 0)
		return -1;
	j->v->required = str_eq(l->mode, "required");
	if (!str_eq(l->mode, "none"))
		j->v->count = l->count_default ? l->count_default
			      : l->count_min   ? l->count_min
					       : j->v->required;
	if (label && str_eq(l->mode, "none")) /* GPUs that it gets are of no concern to it */
		return 0;
	j->spare = !j->given && label && str_eq(l->mode, "optional");
	j->need = j->v->required || j->spare ? (l->count_min ? l->count_min : 1) : !label && wants;
	j->cuda = gpu_driver_cuda(j->i->driver, j->probe, &j->cuda_or_newer);
	add_candidates(j, g);
	if (judge_label(j, e) < 0 || judge_env(j, e) < 0)
		return -1;
	judge_count(j);
	judge_total(j);
	judge_link(j);
	/* each requirement is met by some GPU, and no GPU meets them all */
	j->v->without = j->v->without || (j->spare && fitting(j) < j->need);
	return 0;
}

int gpu_require(struct gpu_verdict *v, const json_t *label, const struct strings *env,
	const struct gpu_inventory *i, const struct gpu_probe *p, const struct gpu_grants *g,
	struct err *e)
{
	struct judge j = {.v = v, .env = env, .i = i, .probe = p, .given = g};

	*v = (struct gpu_verdict){0};
	if (judge_all(&j, label, g, e) < 0) {
		gpu_verdict_fini(v);
		return -1;
	}
	return 0;
}

void gpu_verdict_fini(struct gpu_verdict *v)
{
	arena_fini(&v->mem);
	*v = (struct gpu_verdict){0};
}

int gpu_verdict_check(const struct gpu_verdict *v, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);
	const char *hint = NULL;

	if (!v->unmet)
		return 0;
	for (size_t k = 0; k < v->n; k++) {
		const struct gpu_need *n = &v->v[k];

		if (n->met)
			continue;
		buf_printf(&text, "\n  %s: needs %s, found %s", n->what, n->needed, n->found);
		hint = hint ? hint : n->hint;
	}
	err_set(e, ERR_DENIED, "the GPUs do not meet what the image needs:%.*s%s",
		(int)(text.len < ERROR_MAX ? text.len : ERROR_MAX), text.data ? text.data : "",
		text.len < ERROR_MAX ? "" : " ...");
	return hint ? err_hint(e, "%s", hint) : -1;
}

json_t *gpu_verdict_json(const struct gpu_verdict *v)
{
	json_t *needs = json_array();

	for (size_t k = 0; k < v->n; k++)
		json_array_append_new(
			needs, json_pack("{s:s, s:s, s:s, s:b, s:s*}", "what", v->v[k].what,
				       "needed", v->v[k].needed, "found", v->v[k].found, "met",
				       (int)v->v[k].met, "hint", v->v[k].hint));
	return json_pack("{s:b, s:b, s:b, s:i, s:o}", "fits", (int)(v->unmet == 0), "withoutGpu",
		(int)(v->without && v->unmet == 0), "required", (int)v->required, "count",
		v->without ? 0 : (int)v->count, "needs", needs);
}
