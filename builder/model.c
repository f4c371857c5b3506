#include "builder/model.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/local.h"
#include "images/models-move.h"
#include "images/url.h"

/* ---- files ---- */

const struct model_file *model_files(
	const struct lock *l, const struct manifest_model *m, size_t *n)
{
	for (size_t i = 0; l && i < l->nmodels; i++)
		if (str_eq(l->models[i].id, m->id)) {
			*n = l->models[i].nfiles;
			return l->models[i].files;
		}
	*n = m->nfiles;
	return m->files;
}

const char *model_url(struct arena *a, const struct manifest_model *m, const char *path)
{
	if (m->source == MODEL_HF)
		return arena_printf(
			a, "mirror:huggingface/%s/resolve/%s/%s", m->repo, m->revision, path);
	if (str_ends(m->source_url, path)) /* the file itself, not its folder */
		return m->source_url;
	return arena_printf(a, "%s/%s", m->source_url, path);
}

static bool goes_along(const struct manifest_model *m)
{
	return m->delivery == DELIVERY_LAYER || m->delivery == DELIVERY_ARTIFACT;
}

/* ---- secrets ---- */

int model_authorize(struct input *in, const char *id, bool s3, const struct build_secret *v,
	size_t n, struct arena *a, struct err *e)
{
	const struct build_secret *found = NULL;

	for (size_t i = 0; id && i < n; i++)
		if (str_eq(v[i].id, id))
			found = &v[i];
	if (!id)
		return 0;
	if (!found) {
		err_set(e, ERR_USAGE, "the source wants the secret '%s'", id);
		return err_hint(e, "--secret %s=FILE", id);
	}
	if (url_is_plain(in->url) && !url_is_private(in->url)) {
		err_set(e, ERR_DENIED, "the secret '%s' would travel in the clear", id);
		return err_hint(e, "use an https:// address");
	}
	if (memchr(found->value, '\n', found->n) || memchr(found->value, '\0', found->n))
		return err_set(e, ERR_USAGE, "the secret '%s' is more than one line", id);
	if (s3)
		in->s3_key = arena_strndup(a, found->value, found->n);
	else if (memchr(found->value, ' ', found->n)) /* "Basic ..." */
		in->authorization = arena_strndup(a, found->value, found->n);
	else
		in->authorization = arena_printf(a, "Bearer %.*s", (int)found->n, found->value);
	return 0;
}

/* ---- fetching ---- */

static struct input input_of(
	struct arena *a, const struct manifest_model *m, const struct model_file *f)
{
	struct input in = {.name = arena_printf(a, "%s/%s", m->id, f->path),
		.kind = HASH_SHA256,
		.size = f->size,
		.max = f->size};

	memcpy(in.digest, f->sha256.b, DIGEST_SIZE);
	return in;
}

int model_open(const struct model_job *j, const struct manifest_model *m,
	const struct model_file *f, struct err *e)
{
	struct arena a = {0};
	struct input in = input_of(&a, m, f);
	int fd = m->source == MODEL_FILE
			 ? local_open(j->m->dir, local_model_path(&a, m, f), NULL, e)
			 : cache_open(j->s, &in, e);

	arena_fini(&a);
	return fd;
}

static int add_missing(const struct model_job *j, const struct manifest_model *m, struct arena *a,
	struct input *v, size_t *n, struct err *e)
{
	size_t count;
	const struct model_file *f = model_files(j->l, m, &count);

	for (size_t i = 0; i < count; i++) {
		struct input in = input_of(a, m, &f[i]);

		if (cache_has(j->s, &in))
			continue;
		in.url = mirror_url(j->mirrors, model_url(a, m, f[i].path), e);
		if (!in.url || model_authorize(&in, m->secret, m->source == MODEL_S3, j->secrets,
				       j->nsecrets, a, e) < 0)
			return -1;
		v[(*n)++] = in;
	}
	return 0;
}

static int fetch_missing(const struct model_job *j, struct arena *a, struct err *e)
{
	size_t most = 0, n = 0, k;
	struct input *v;

	for (size_t i = 0; i < j->m->nmodels; i++) {
		model_files(j->l, &j->m->models[i], &k);
		most += k;
	}
	v = arena_alloc(a, most * sizeof(*v));
	for (size_t i = 0; i < j->m->nmodels; i++) {
		const struct manifest_model *m = &j->m->models[i];

		if (goes_along(m) && m->source != MODEL_FILE && m->source != MODEL_OCI &&
			add_missing(j, m, a, v, &n, e) < 0)
			return err_ctx(e, "/models/%zu (%s)", i, m->id);
	}
	return n ? cache_fetch(j->s, v, n, j->p, e) : 0;
}

/* Files in the cache came with a signature that may be good no longer. */
static bool is_admitted(const struct model_job *j, const struct manifest_model *m)
{
	const struct config *c = j->mirrors->config;

	return m->source != MODEL_OCI || !c || !c->policy ||
	       models_admitted(j->s, c, m->source_url, NULL) == 0;
}

bool model_admitted(const struct model_job *j)
{
	for (size_t i = 0; i < j->m->nmodels; i++)
		if (goes_along(&j->m->models[i]) && !is_admitted(j, &j->m->models[i]))
			return false;
	return true;
}

static int fetch_from_registry(
	const struct model_job *j, const struct manifest_model *m, struct err *e)
{
	struct arena a = {0};
	size_t n;
	const struct model_file *f = model_files(j->l, m, &n);
	bool missing = false;

	for (size_t i = 0; i < n; i++) {
		struct input in = input_of(&a, m, &f[i]);

		missing = missing || !cache_has(j->s, &in);
	}
	arena_fini(&a);
	return missing || !is_admitted(j, m) ? model_registry_fetch(j, m, f, n, e) : 0;
}

static int check_all(const struct model_job *j, const struct manifest_model *m, struct err *e)
{
	size_t n;
	const struct model_file *f = model_files(j->l, m, &n);

	if (m->source == MODEL_OCI && fetch_from_registry(j, m, e) < 0)
		return -1;
	if (!n) {
		err_set(e, ERR_USAGE, "its files are neither in the manifest nor in the lock");
		return err_hint(e, "svrun image lock");
	}
	for (size_t i = 0; i < n; i++) {
		auto_fd int fd = model_open(j, m, &f[i], e);

		if (fd < 0 || model_check(fd, m->id, f[i].path, m->allow_pickle, e) < 0)
			return -1;
	}
	return 0;
}

int model_fetch(const struct model_job *j, struct err *e)
{
	struct arena a = {0};
	int rc = fetch_missing(j, &a, e);

	arena_fini(&a);
	for (size_t i = 0; rc == 0 && i < j->m->nmodels; i++)
		if (goes_along(&j->m->models[i]) && check_all(j, &j->m->models[i], e) < 0)
			rc = err_ctx(e, "/models/%zu (%s)", i, j->m->models[i].id);
	return rc;
}

/* ---- licences ---- */

static const char *license_id(const struct manifest_model *m)
{
	if (m->license.spdx)
		return m->license.spdx;
	return m->license.name ? m->license.name : m->id;
}

static int model_at(const struct manifest *m, size_t i, const char *member, struct err *e)
{
	auto_free char *pointer = mem_printf("/models/%zu%s", i, member);

	return manifest_at(m, pointer, e);
}

int model_gate(const struct manifest *m, const struct strings *accepted, struct err *e)
{
	for (size_t i = 0; i < m->nmodels; i++) {
		const struct manifest_model *x = &m->models[i];
		const char *id = license_id(x);
		bool found = x->license.acceptance == ACCEPT_NONE || !goes_along(x);

		for (size_t k = 0; k < accepted->n && !found; k++)
			found = str_eq(accepted->v[k], id);
		if (found)
			continue;
		err_set(e, ERR_DENIED,
			"/models/%zu/license: the licence '%s' of %s must be accepted%s", i, id,
			x->id, x->license.acceptance == ACCEPT_ORG ? " by your organisation" : "");
		err_hint(e, "read it, then: --accept-license '%s'", id);
		return model_at(m, i, "/license", e);
	}
	return 0;
}

/* ---- the annotation ---- */

static json_t *license_json(const struct manifest_model *m)
{
	static const char *const acceptances[] = {"none", "user", "org"};
	static const char *const passing[] = {"yes", "no", "with-notice"};

	return json_pack("{s:s, s:s, s:b, s:s}", "id", license_id(m), "acceptance",
		acceptances[m->license.acceptance], "gated", (int)m->license.gated, "redistribute",
		passing[m->license.redistribute]);
}

static json_t *files_json(const struct model_job *j, const struct manifest_model *m)
{
	struct arena a = {0};
	size_t n;
	const struct model_file *f = model_files(j->l, m, &n);
	json_t *out = json_array();
	char hex[DIGEST_HEX + 1];

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_pack("{s:s, s:s, s:I}", "path", f[i].path, "sha256",
			digest_hex(&f[i].sha256, hex), "size", (json_int_t)f[i].size);

		if (m->delivery == DELIVERY_RUNTIME)
			json_object_set_new(o, "url", json_string(model_url(&a, m, f[i].path)));
		json_array_append_new(out, o);
	}
	arena_fini(&a);
	return out;
}

/* What is left of an absolute path below the model's target; NULL: it is elsewhere. */
static const char *below_target(const struct manifest_model *m, const char *path)
{
	size_t n = strlen(m->target);

	return strncmp(path, m->target, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static json_t *links_json(const struct manifest_model *m)
{
	json_t *out = json_object();

	for (size_t i = 0; i < m->links.n; i++) {
		const char *path = below_target(m, m->links.v[i].name);

		if (path)
			json_object_set_new(out, path, json_string(m->links.v[i].value));
	}
	return out;
}

static json_t *entry_json(const struct model_job *j, const struct manifest_model *m)
{
	static const char *const names[] = {"layer", "artifact", "runtime", "volume"};
	json_t *o = json_pack("{s:s, s:s, s:s}", "id", m->id, "delivery", names[m->delivery],
		"target", m->target);

	if (m->optional)
		json_object_set_new(o, "optional", json_true());
	if (m->allow_pickle)
		json_object_set_new(o, "allowPickle", json_true());
	if (m->license.present)
		json_object_set_new(o, "license", license_json(m));
	if (m->delivery != DELIVERY_LAYER) {
		json_object_set_new(o, "files", files_json(j, m));
		json_object_set_new(o, "links", links_json(m));
	}
	if (m->delivery == DELIVERY_RUNTIME && m->secret)
		json_object_set_new(o, "secret", json_string(m->secret));
	if (m->delivery == DELIVERY_RUNTIME && m->source == MODEL_S3)
		json_object_set_new(o, "s3", json_true());
	return o;
}

/* A model in a layer is told of when a push or a start must know its licence. */
static bool matters(const struct manifest_model *m)
{
	return m->delivery != DELIVERY_LAYER || m->license.gated ||
	       m->license.acceptance != ACCEPT_NONE ||
	       (m->license.present && m->license.redistribute == REDISTRIBUTE_NO);
}

/* What cannot be kept is refused before it is promised. */
static int check_delivery(const struct manifest_model *m, struct err *e)
{
	for (size_t i = 0; i < m->links.n && m->delivery != DELIVERY_LAYER; i++)
		if (!below_target(m, m->links.v[i].name)) {
			err_set(e, ERR_UNSUPPORTED,
				"links: '%s': a link outside of the target is not supported yet "
				"with this delivery",
				m->links.v[i].name);
			return err_hint(e, "write it to /links of the manifest");
		}
	if (m->delivery == DELIVERY_RUNTIME && (m->source == MODEL_FILE || m->source == MODEL_OCI))
		return err_set(e, ERR_UNSUPPORTED,
			"source: a %s is not supported yet with the delivery runtime",
			m->source == MODEL_FILE ? "file beside the manifest" : "registry");
	return 0;
}

static int add_entry(
	const struct model_job *j, const struct manifest_model *m, json_t *list, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	struct digest artifact;
	json_t *o;

	if (check_delivery(m, e) < 0 ||
		(m->delivery == DELIVERY_ARTIFACT && model_artifact(j, m, &artifact, e) < 0))
		return -1;
	o = entry_json(j, m);
	if (m->delivery == DELIVERY_ARTIFACT)
		json_object_set_new(o, "artifact", json_string(digest_text(&artifact, text)));
	json_array_append_new(list, o);
	return 0;
}

int model_publish(const struct model_job *j, json_t *annotations, struct err *e)
{
	auto_json json_t *list = json_array();
	auto_buf struct buf text = BUF_INIT(4 << 20);

	if (j->m->nmodels > MODELS_MAX)
		return err_set(e, ERR_UNSUPPORTED, "/models: more than %d", MODELS_MAX);
	for (size_t i = 0; i < j->m->nmodels; i++)
		if (matters(&j->m->models[i]) && add_entry(j, &j->m->models[i], list, e) < 0)
			return err_ctx(e, "/models/%zu (%s)", i, j->m->models[i].id);
	if (json_array_size(list) == 0)
		return 0;
	json_text(list, true, &text);
	json_object_set_new(annotations, MODELS_ANNOTATION, json_string(text.data));
	return 0;
}
