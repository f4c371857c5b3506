/* Weights: where they are, what they may do, and who may have them. */
#include "builder/lint-parts.h"

#include <string.h>

#include "base/str.h"

/* Does it travel with the image wherever that goes? */
static bool travels(const struct manifest_model *o)
{
	return o->delivery == DELIVERY_LAYER || o->delivery == DELIVERY_ARTIFACT;
}

static const char *const delivered[] = {"layer", "artifact", "runtime", "volume"};

/* ---- places ---- */

static void check_weights(struct lint_pass *p, const char *pointer, const char *path)
{
	if (path && lint_is_weights(path))
		lint_found(p, pointer, "an entry of /models", "'%s' looks like weights", path);
}

void lint_140(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nfiles; i++)
		if (!p->m->files[i].inline_text)
			check_weights(p, lint_text(p, "/files/%zu/dest", i), p->m->files[i].dest);
	for (size_t i = 0; i < p->m->nsources; i++) {
		const struct manifest_source *s = &p->m->sources[i];

		if (s->type == SOURCE_FILE)
			check_weights(p, lint_text(p, "/sources/%zu/url", i), s->url);
		for (size_t k = 0; k < s->include.n; k++)
			check_weights(
				p, lint_text(p, "/sources/%zu/include/%zu", i, k), s->include.v[k]);
	}
	for (size_t i = 0; i < p->m->nruns; i++)
		for (size_t k = 0; k < p->m->runs[i].writes.n; k++)
			check_weights(p, lint_text(p, "/run/%zu/writes/%zu", i, k),
				p->m->runs[i].writes.v[k]);
}

/* Pickles of any other name than what `format` says, too. */
void lint_141(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++) {
		const struct manifest_model *o = &p->m->models[i];
		const char *pickle = o->format == FORMAT_CKPT ? "ckpt" : NULL;

		for (size_t k = 0; k < o->nfiles && !pickle; k++)
			pickle = lint_is_pickle(o->files[k].path) ? o->files[k].path : NULL;
		if (pickle)
			lint_found(p, lint_text(p, "/models/%zu/format", i), "\"safetensors\"",
				"'%s' of the model '%s' is a pickle: loading it runs code", pickle,
				o->id);
	}
}

/* ---- licences ---- */

void lint_142(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++) {
		const struct model_license *x = &p->m->models[i].license;
		const char *at = lint_text(p, "/models/%zu/license", i);

		if (x->non_commercial)
			lint_found(p, at, NULL, "'%s' may not be used commercially",
				p->m->models[i].id);
		if (x->excluded_territories.n)
			lint_found(p, at, NULL, "'%s' may not be used in: %s", p->m->models[i].id,
				lint_join(p, &x->excluded_territories));
	}
}

void lint_143(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++) {
		const struct manifest_model *o = &p->m->models[i];

		if (o->license.gated && travels(o))
			lint_found(p, lint_text(p, "/models/%zu/delivery", i),
				"\"runtime\" or \"volume\"",
				"'%s' is gated, and whoever pulls the image gets it (delivery %s)",
				o->id, delivered[o->delivery]);
	}
}

void lint_144(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++)
		if (!p->m->models[i].license.present)
			lint_found(p, lint_text(p, "/models/%zu", i), "license",
				"nothing says what '%s' may be used for", p->m->models[i].id);
}

void lint_145(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++) {
		const struct manifest_model *o = &p->m->models[i];

		if (o->license.gated && !o->secret && o->source != MODEL_FILE &&
			o->delivery != DELIVERY_VOLUME)
			lint_found(p, lint_text(p, "/models/%zu/source", i), "secret",
				"'%s' is gated: fetching it without a token will be refused",
				o->id);
	}
}

void lint_146(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++) {
		const struct manifest_model *o = &p->m->models[i];

		if (o->license.redistribute == REDISTRIBUTE_WITH_NOTICE && o->license.present &&
			travels(o) && !o->license.notice)
			lint_found(p, lint_text(p, "/models/%zu/license", i), "notice",
				"'%s' may be passed on only with its notice", o->id);
	}
}

void lint_147(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++) {
		const struct manifest_model *o = &p->m->models[i];

		if (o->license.present && o->license.redistribute == REDISTRIBUTE_NO && travels(o))
			lint_found(p, lint_text(p, "/models/%zu/delivery", i),
				"\"runtime\" or \"volume\"",
				"'%s' may not be passed on, and the image has it", o->id);
	}
}
