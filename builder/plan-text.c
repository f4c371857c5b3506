/* Plans as people and programs read them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/plan.h"

enum { KINDS = PLAN_TEST + 1, LISTED = 12 };

static const char *size_text(uint64_t n, char out[32])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)n;
	size_t u = 0;

	for (; v >= 1024 && u + 1 < sizeof(units) / sizeof(units[0]); u++)
		v /= 1024;
	snprintf(out, 32, u ? "%.1f %s" : "%.0f %s", v, units[u]);
	return out;
}

static const char *acceptance_name(enum license_acceptance a)
{
	static const char *const names[] = {"none", "user", "org"};

	return names[a];
}

static const char *delivery_name(enum model_delivery d)
{
	static const char *const names[] = {"layer", "artifact", "runtime", "volume"};

	return names[d];
}

static const char *redistribute_name(enum license_redistribute r)
{
	static const char *const names[] = {"yes", "no", "with-notice"};

	return names[r];
}

/* ---- text ---- */

static void print_step(const struct plan_step *s, struct buf *out)
{
	char size[32];

	buf_printf(out, "  %-4s  %s", s->hit ? "hit" : "miss", s->id);
	if (s->detail)
		buf_printf(out, "  (%s)", s->detail);
	if (s->fetch)
		buf_printf(out, "  fetch %s", size_text(s->fetch, size));
	if (s->write)
		buf_printf(out, "  write %s", size_text(s->write, size));
	buf_printf(out, "\n");
}

/* Of a kind with many steps those that are missing, and of these the first. */
static void print_kind(const struct plan *p, enum plan_kind kind, bool all, struct buf *out)
{
	size_t n = 0, hits = 0, shown = 0;
	bool many;

	for (size_t i = 0; i < p->n; i++)
		if (p->steps[i].kind == kind) {
			n++;
			hits += p->steps[i].hit;
		}
	if (!n)
		return;
	if (kind == PLAN_TEST)
		buf_printf(out, "%-10s %zu, with svrun image test\n", plan_kind_name(kind), n);
	else
		buf_printf(out, "%-10s %zu of %zu hit\n", plan_kind_name(kind), hits, n);
	many = !all && (kind == PLAN_FETCH || kind == PLAN_UNPACK);
	for (size_t i = 0; i < p->n; i++) {
		if (p->steps[i].kind != kind || (many && p->steps[i].hit))
			continue;
		if (many && shown++ == LISTED) {
			buf_printf(out, "  ... and %zu more (--all)\n", n - hits - LISTED);
			break;
		}
		print_step(&p->steps[i], out);
	}
}

static void print_license(const struct manifest_model *m, struct buf *out)
{
	const struct model_license *x = &m->license;

	buf_printf(out, "  %s  %s  %s", m->id, delivery_name(m->delivery),
		x->spdx   ? x->spdx
		: x->name ? x->name
			  : "no licence named");
	if (x->gated)
		buf_printf(out, "  gated");
	if (x->acceptance != ACCEPT_NONE)
		buf_printf(out, "  to be accepted by %s", acceptance_name(x->acceptance));
	if (x->non_commercial)
		buf_printf(out, "  non-commercial");
	if (x->present && x->redistribute != REDISTRIBUTE_YES)
		buf_printf(out, "  redistribution: %s", redistribute_name(x->redistribute));
	for (size_t i = 0; i < x->excluded_territories.n; i++)
		buf_printf(out, "%s%s", i ? "," : "  not in ", x->excluded_territories.v[i]);
	if (x->max_monthly_users)
		buf_printf(out, "  up to %" PRIu64 " users a month", x->max_monthly_users);
	buf_printf(out, "\n");
}

static void print_gpu(const struct manifest_gpu *g, struct buf *out)
{
	static const char *const modes[] = {"none", "optional", "required"};
	static const char *const vendors[] = {"any", "nvidia", "amd", "intel"};

	if (!g->present || g->mode == GPU_NONE) {
		buf_printf(out, "gpu        none\n");
		return;
	}
	buf_printf(out, "gpu        %s, %s", modes[g->mode], vendors[g->vendor]);
	if (g->count_min)
		buf_printf(out, ", %u or more", g->count_min);
	if (g->vram_min)
		buf_printf(out, ", %u GiB%s", g->vram_min,
			g->vram_per == PER_TOTAL ? " in all" : " each");
	if (g->cc_min)
		buf_printf(out, ", compute capability %s", g->cc_min);
	if (g->cuda_min)
		buf_printf(out, ", CUDA %s", g->cuda_min);
	if (g->driver_min)
		buf_printf(out, ", driver %s", g->driver_min);
	buf_printf(out, "\n");
}

void plan_print(const struct plan *p, const struct manifest *m, const struct lock *l, bool all,
	struct buf *out)
{
	char size[32];

	buf_printf(out, "%s %s  %s%s%s%s%s%s\n", m->name, m->version, l->platform,
		m->matrix ? "  " : "", m->matrix ? m->matrix : "", m->mode ? "  mode " : "",
		m->mode ? m->mode : "", p->cached ? "  is up to date" : "");
	for (int k = 0; k < KINDS; k++)
		print_kind(p, (enum plan_kind)k, all, out);
	buf_printf(out, "to fetch   %s\n", size_text(p->fetch, size));
	if (p->write_open && !p->write)
		buf_printf(out, "to write   not known before it was built once\n");
	else
		buf_printf(out, "to write   %s%s\n", size_text(p->write, size),
			p->write_open ? " and more" : "");
	if (m->nmodels)
		buf_printf(out, "models\n");
	for (size_t i = 0; i < m->nmodels; i++)
		print_license(&m->models[i], out);
	for (size_t i = 0; i < m->licenses.n; i++)
		buf_printf(out, "%s%s%s", i ? ", " : "licences   ", m->licenses.v[i],
			i + 1 == m->licenses.n ? "\n" : "");
	print_gpu(&m->gpu, out);
}

/* ---- JSON ---- */

static void set_text(json_t *o, const char *key, const char *v)
{
	if (v)
		json_object_set_new(o, key, json_string(v));
}

static void set_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static json_t *array_of(const struct strings *s)
{
	json_t *a = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(a, json_string(s->v[i]));
	return a;
}

static json_t *step_json(const struct plan_step *s)
{
	char text[DIGEST_TEXT + 1];
	json_t *o = json_object();

	set_text(o, "step", plan_kind_name(s->kind));
	set_text(o, "id", s->id);
	set_text(o, "detail", s->detail);
	set_text(o, "key", digest_text(&s->key, text));
	set_text(o, "cache", s->hit ? "hit" : "miss");
	set_number(o, "fetchBytes", s->fetch);
	set_number(o, "writeBytes", s->write);
	return o;
}

static json_t *model_json(const struct manifest_model *m)
{
	const struct model_license *x = &m->license;
	json_t *o = json_object();

	set_text(o, "id", m->id);
	set_text(o, "delivery", delivery_name(m->delivery));
	set_text(o, "license", x->spdx ? x->spdx : x->name);
	set_text(o, "acceptance", acceptance_name(x->acceptance));
	json_object_set_new(o, "gated", json_boolean(x->gated));
	json_object_set_new(o, "nonCommercial", json_boolean(x->non_commercial));
	if (x->present)
		set_text(o, "redistribute", redistribute_name(x->redistribute));
	json_object_set_new(o, "excludedTerritories", array_of(&x->excluded_territories));
	if (x->max_monthly_users)
		set_number(o, "maxMonthlyUsers", x->max_monthly_users);
	return o;
}

json_t *plan_json(const struct plan *p, const struct manifest *m, const struct lock *l)
{
	char text[DIGEST_TEXT + 1];
	json_t *o = json_object(), *steps = json_array(), *models = json_array(), *gpu;
	size_t layers = 0;

	for (size_t i = 0; i < p->n; i++) {
		json_array_append_new(steps, step_json(&p->steps[i]));
		layers += p->steps[i].kind == PLAN_LAYER;
	}
	for (size_t i = 0; i < m->nmodels; i++)
		json_array_append_new(models, model_json(&m->models[i]));
	set_text(o, "name", m->name);
	set_text(o, "version", m->version);
	set_text(o, "platform", l->platform);
	set_text(o, "matrix", m->matrix);
	set_text(o, "mode", m->mode);
	json_object_set_new(o, "upToDate", json_boolean(p->cached));
	if (p->cached)
		set_text(o, "manifest", digest_text(&p->image, text));
	set_number(o, "fetchBytes", p->fetch);
	set_number(o, "writeBytes", p->write);
	json_object_set_new(o, "writeKnown", json_boolean(!p->write_open));
	json_object_set_new(o, "layers",
		p->layers_open
			? json_null()
			: json_integer((json_int_t)(layers + l->base.nlayers + 1))); /* the index */
	json_object_set_new(o, "steps", steps);
	json_object_set_new(o, "models", models);
	json_object_set_new(o, "licenses", array_of(&m->licenses));
	gpu = json_object_get(m->doc.root, "gpu");
	json_object_set_new(o, "gpu", gpu ? json_deep_copy(gpu) : json_null());
	return o;
}
