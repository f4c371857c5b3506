#include "images/models-move.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/attached.h"
#include "images/blob-fetch.h"
#include "images/models.h"
#include "images/pull-policy.h"
#include "images/progress.h"
#include "images/reference.h"

/* ---- pushing ---- */

/* Does the site say that nobody else reads this registry? */
static int is_private(const struct config *c, const char *host, struct err *e)
{
	struct config_registry r;
	int rc;

	if (config_registry(c, host, &r, e) < 0)
		return -1;
	rc = r.is_private;
	config_registry_fini(&r);
	return rc;
}

static int check_gates(
	const struct models *m, const struct config *c, const char *host, struct err *e)
{
	int private = -1;

	for (size_t i = 0; i < m->n; i++) {
		const struct models_entry *x = &m->v[i];

		if ((!x->gated && !x->keep) || x->delivery > MODELS_ARTIFACT)
			continue;
		if (private < 0)
		private = is_private(c, host, e);
		if (private != 0)
			return private < 0 ? -1 : 0;
		err_set(e, ERR_DENIED,
			"SV143: the model %s is %s, and %s is not known to be private", x->id,
			x->gated ? "gated" : "not to be passed on", host);
		return err_hint(e,
			"deliver it at run time, or set \"registries\": {\"%s\": {\"private\": "
			"true}}",
			host);
	}
	return 0;
}

static int push_artifact(struct push_target *t, const struct models_entry *x, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(REGISTRY_MANIFEST_MAX);
	char tag[ATTACHED_TAG];
	auto_json json_t *doc = NULL;
	int there;

	attached_tag(&x->artifact, ".model", tag);
	there = registry_has_manifest(t->r, tag, e);
	if (there != 0)
		return there < 0 ? -1 : 0;
	if (store_blob_read(t->s, &x->artifact, REGISTRY_MANIFEST_MAX, &b, e) < 0)
		return -1;
	doc = json_parse(b.data ? b.data : "", b.len, e);
	if (!doc || push_blobs(t, &x->artifact, doc, e) < 0)
		return -1;
	t->result->present = false;
	return registry_put_manifest(t->r, tag, OCI_MANIFEST_TYPE, b.data, b.len, e);
}

int models_push(struct push_target *t, const char *host, const json_t *manifest, struct err *e)
{
	struct models m;
	int rc;

	if (models_read(&m, manifest, e) < 0)
		return -1;
	rc = models_check_accepted(
		&m, t->o->accepted, t->o->naccepted, 1u << MODELS_LAYER | 1u << MODELS_ARTIFACT, e);
	if (rc == 0)
		rc = check_gates(&m, t->config, host, e);
	for (size_t i = 0; rc == 0 && i < m.n; i++)
		if (m.v[i].delivery == MODELS_ARTIFACT && push_artifact(t, &m.v[i], e) < 0)
			rc = err_ctx(e, "model %s", m.v[i].id);
	models_fini(&m);
	return rc;
}

/* ---- pulling ---- */

struct pulling {
	struct registry *r;
	struct download *d;
	struct store *s;
	struct progress *p;
	bool *fetched;
};

static int pull_blob(struct pulling *x, const json_t *o, struct err *e)
{
	struct descriptor d;

	if (descriptor_read(&d, o, e) < 0)
		return -1;
	if (store_has(x->s, &d.digest))
		return 0;
	if (d.size > 1ull << 46)
		return err_set(e, ERR_CORRUPT, "%" PRIu64 " bytes are beyond the limit", d.size);
	*x->fetched = true;
	return blob_fetch(x->d, x->s, &d.digest, d.size, x->p, e);
}

/* Layers first: a manifest that is here means that all of it is. */
static int pull_artifact(struct pulling *x, const struct models_entry *m, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(REGISTRY_MANIFEST_MAX);
	char type[REGISTRY_TYPE], text[DIGEST_TEXT + 1];
	auto_json json_t *doc = NULL;
	struct digest d;
	const json_t *layers, *o;
	size_t i;

	if (store_has(x->s, &m->artifact))
		return 0;
	if (registry_manifest(x->r, digest_text(&m->artifact, text), &b, type, &d, e) < 0)
		return -1;
	doc = json_parse(b.data ? b.data : "", b.len, e);
	layers = doc ? json_array_of(doc, "layers", e) : NULL;
	if (!layers || pull_blob(x, json_object_get(doc, "config"), e) < 0)
		return -1;
	if (json_array_size(layers) > MODEL_LAYERS_MAX)
		return err_set(e, ERR_CORRUPT, "more than %d layers", MODEL_LAYERS_MAX);
	json_array_foreach (layers, i, o)
		if (pull_blob(x, o, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
	return store_blob_put(x->s, b.data, b.len, &d, e);
}

int models_pull(struct registry *r, struct download *d, struct store *s, const json_t *manifest,
	struct progress *p, bool *fetched, struct err *e)
{
	struct pulling x = {r, d, s, p, fetched};
	struct models m;
	int rc = 0;

	if (models_read(&m, manifest, e) < 0)
		return -1;
	progress_begin(p, "models", 0);
	for (size_t i = 0; rc == 0 && i < m.n; i++)
		if (m.v[i].delivery == MODELS_ARTIFACT && pull_artifact(&x, &m.v[i], e) < 0)
			rc = err_ctx(e, "model %s", m.v[i].id);
	progress_end(p);
	models_fini(&m);
	return rc;
}

static int fetch_allowed(
	struct pulling *x, const struct config *c, const struct models_entry *m, struct err *e)
{
	struct pull_policy policy;
	int rc = -1;

	if (pull_policy_open(&policy, c, registry_name(x->r), e) < 0)
		return -1;
	x->d = download_new(x->r, &download_defaults, e);
	if (x->d)
		rc = pull_artifact(x, m, e);
	if (rc == 0)
		rc = pull_policy_check(&policy, x->r, x->s, &m->artifact, NULL, e);
	download_free(x->d);
	pull_policy_close(&policy);
	return rc;
}

static int fetch_by(struct pulling *x, const struct registry_options *o,
	const struct models_entry *m, struct err *e)
{
	int rc;

	x->r = registry_open(o, e);
	if (!x->r)
		return -1;
	rc = fetch_allowed(x, o->config, m, e);
	registry_close(x->r);
	return rc;
}

int models_admitted(struct store *s, const struct config *c, const char *ref, struct err *e)
{
	struct policy policy;
	struct reference r;
	size_t n;
	int rc;

	if (reference_expand(c, ref, &r, 1, &n, e) < 0 || policy_open(&policy, c, e) < 0)
		return -1;

	auto_free char *name = mem_printf("%s/%s", r.host, r.path);

	rc = policy_verify(&policy, policy_find(&policy, name), s, name, &r.digest, e);
	policy_close(&policy);
	return rc;
}

int models_fetch(struct store *s, const struct config *c, const char *ref, struct digest *artifact,
	struct progress *p, struct err *e)
{
	bool fetched = false;
	struct pulling x = {.s = s, .p = p, .fetched = &fetched};
	struct models_entry m = {.id = ref};
	struct reference r;
	size_t n;

	if (reference_expand(c, ref, &r, 1, &n, e) < 0)
		return -1;
	if (!r.has_digest) {
		err_set(e, ERR_USAGE, "%.300s: no digest", ref);
		return err_hint(e, "write HOST/NAME@sha256:DIGEST");
	}
	const struct registry_options o = {.config = c, .host = r.host, .path = r.path};

	*artifact = m.artifact = r.digest;
	return fetch_by(&x, &o, &m, e);
}

int models_missing(struct store *s, const json_t *manifest, struct err *e)
{
	struct models m;
	int rc = 0;

	if (models_read(&m, manifest, e) < 0)
		return -1;
	for (size_t i = 0; i < m.n; i++)
		if (m.v[i].delivery == MODELS_ARTIFACT && !store_has(s, &m.v[i].artifact))
			rc = 1;
	models_fini(&m);
	return rc;
}
