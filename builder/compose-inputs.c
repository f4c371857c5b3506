/* What is fetched before anything is unpacked. */
#include <string.h>

#include "base/str.h"
#include "builder/compose-private.h"
#include "builder/mirror-auth.h"
#include "builder/model.h"
#include "builder/npm.h"
#include "builder/source.h"

struct input compose_deb_input(struct arena *a, const struct lock_deb *d)
{
	struct input in = {.name = arena_printf(a, "%s %s", d->name, d->version),
		.kind = HASH_SHA256,
		.url = d->url,
		.size = d->size,
		.max = d->size};

	memcpy(in.digest, d->sha256.b, DIGEST_SIZE);
	return in;
}

int compose_npm_input(struct arena *a, const struct lock_npm *n, struct input *in, struct err *e)
{
	*in = (struct input){.name = arena_printf(a, "%s %s", n->name, n->version),
		.kind = HASH_SHA512,
		.url = n->url,
		.max = NPM_TARBALL_MAX};
	return npm_integrity(n->integrity, in->digest, e);
}

struct input compose_wheel_input(struct arena *a, const struct lock_wheel *w)
{
	struct input in = {.name = arena_printf(a, "%s %s", w->name, w->version),
		.kind = HASH_SHA256,
		.url = w->url,
		.size = w->size,
		.max = w->size};

	memcpy(in.digest, w->sha256.b, DIGEST_SIZE);
	return in;
}

const char *compose_wheel_path(const struct lock_wheel *w)
{
	return str_starts(w->url, "file:") ? w->url + strlen("file:") : NULL;
}

/* ---- models ---- */

const struct model_file *compose_model_files(
	const struct lock *l, const struct manifest_model *m, size_t *n)
{
	*n = 0;
	if (m->delivery != DELIVERY_LAYER)
		return NULL;
	return model_files(l, m, n);
}

static bool is_fetched(const struct manifest_model *m)
{
	return m->delivery == DELIVERY_LAYER && m->source != MODEL_FILE;
}

struct input compose_model_input(
	struct arena *a, const struct manifest_model *m, const struct model_file *f)
{
	struct input in = {.name = arena_printf(a, "%s/%s", m->id, f->path),
		.kind = HASH_SHA256,
		.url = m->source == MODEL_FILE ? NULL : model_url(a, m, f->path),
		.size = f->size,
		.max = f->size};

	memcpy(in.digest, f->sha256.b, DIGEST_SIZE);
	return in;
}

/* ---- all ---- */

static size_t count_inputs(const struct manifest *m, const struct lock *l)
{
	size_t n = l->ndebs + l->nnpms + l->nwheels, k;

	for (size_t i = 0; i < m->nmodels; i++) {
		compose_model_files(l, &m->models[i], &k);
		n += k;
	}
	return n;
}

int compose_inputs(const struct manifest *m, const struct lock *l, struct arena *a,
	struct input **v, size_t *n, struct err *e)
{
	struct input *in = arena_alloc(a, count_inputs(m, l) * sizeof(*in));
	size_t at = 0, k;

	for (size_t i = 0; i < l->ndebs; i++)
		in[at++] = compose_deb_input(a, &l->debs[i]);
	for (size_t i = 0; i < l->nnpms; i++)
		if (compose_npm_input(a, &l->npms[i], &in[at++], e) < 0)
			return err_ctx(e, "npm package %s", l->npms[i].path);
	for (size_t i = 0; i < l->nwheels; i++)
		if (!compose_wheel_path(&l->wheels[i]))
			in[at++] = compose_wheel_input(a, &l->wheels[i]);
	for (size_t i = 0; i < m->nmodels; i++) {
		const struct model_file *f = compose_model_files(l, &m->models[i], &k);

		for (size_t x = 0; is_fetched(&m->models[i]) && x < k; x++)
			in[at++] = compose_model_input(a, &m->models[i], &f[x]);
	}
	*v = in;
	*n = at;
	return 0;
}

static int fetch(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, struct arena *a, struct progress *p, struct err *e)
{
	struct input *in;
	const char *uri;
	size_t n, missing = 0;

	if (compose_inputs(m, l, a, &in, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (cache_has(s, &in[i]))
			continue;
		uri = in[i].url;
		in[i].url = mirror_url(mirrors, uri, e);
		if (!in[i].url ||
			mirror_authorization(mirrors, uri, in[i].url, &in[i].authorization, e) < 0)
			return err_ctx(e, "%s", in[i].name);
		in[missing++] = in[i];
	}
	return missing ? cache_fetch(s, in, missing, p, e) : 0;
}

int compose_fetch(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, struct progress *p, struct err *e)
{
	struct arena a = {0};
	int rc = fetch(m, l, mirrors, s, &a, p, e);

	arena_fini(&a);
	if (rc == 0 && m->nsources)
		rc = source_fetch(m, l, mirrors, s, p, e);
	return rc;
}
