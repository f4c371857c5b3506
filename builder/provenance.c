#include "builder/provenance.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/npm.h"
#include "builder/sbom.h"
#include "images/signature.h"

#define BUILD_TYPE "urn:svrun:build:1"
#define BUILDER_ID "urn:svrun:builder"

/* ---- what went in ---- */

static void add(json_t *list, const char *name, const char *uri, const char *kind, const char *hex)
{
	json_t *o = json_pack("{s:s, s:{s:s}}", "name", name, "digest", kind, hex);

	if (uri)
		json_object_set_new(o, "uri", json_string(uri));
	json_array_append_new(list, o);
}

static void add_sha256(json_t *list, const char *name, const char *uri, const struct digest *d)
{
	char hex[DIGEST_HEX + 1];

	add(list, name, uri, "sha256", digest_hex(d, hex));
}

static void add_debs(json_t *list, const struct lock *l)
{
	for (size_t i = 0; i < l->nindexes; i++) {
		auto_free char *name =
			mem_printf("apt index %s %s", l->indexes[i].suite, l->indexes[i].date);

		add_sha256(list, name, l->indexes[i].uri, &l->indexes[i].release);
	}
	for (size_t i = 0; i < l->ndebs; i++) {
		auto_free char *name = mem_printf(
			"deb %s %s %s", l->debs[i].name, l->debs[i].version, l->debs[i].arch);

		add_sha256(list, name, l->debs[i].url, &l->debs[i].sha256);
	}
}

static int add_npms(json_t *list, const struct lock *l, struct err *e)
{
	for (size_t i = 0; i < l->nnpms; i++) {
		auto_free char *name = mem_printf("npm %s %s", l->npms[i].path, l->npms[i].version);
		uint8_t sha512[64];
		char hex[129];

		if (npm_integrity(l->npms[i].integrity, sha512, e) < 0)
			return -1;
		hex_encode(sha512, sizeof(sha512), hex);
		add(list, name, l->npms[i].url, "sha512", hex);
	}
	return 0;
}

static void add_wheels(json_t *list, const struct lock *l)
{
	for (size_t i = 0; i < l->nwheels; i++) {
		auto_free char *name = mem_printf("wheel %s", l->wheels[i].file);

		add_sha256(list, name, l->wheels[i].url, &l->wheels[i].sha256);
	}
}

static void add_sources(json_t *list, const struct lock *l)
{
	for (size_t i = 0; i < l->nsources; i++) {
		const struct lock_source *x = &l->sources[i];
		auto_free char *name = mem_printf("source %s", x->id);

		if (x->commit) {
			add(list, name, x->url, "gitCommit", x->commit);
			if (x->has_tree) {
				char hex[DIGEST_HEX + 1];
				json_t *last = json_array_get(list, json_array_size(list) - 1);

				json_object_set_new(json_object_get(last, "digest"), "sha256",
					json_string(digest_hex(&x->tree_sha256, hex)));
			}
		} else {
			add_sha256(list, name, x->url, &x->sha256);
		}
	}
}

static void add_models(json_t *list, const struct lock *l)
{
	for (size_t i = 0; i < l->nmodels; i++)
		for (size_t k = 0; k < l->models[i].nfiles; k++) {
			auto_free char *name = mem_printf(
				"model %s %s", l->models[i].id, l->models[i].files[k].path);

			add_sha256(list, name, NULL, &l->models[i].files[k].sha256);
		}
}

static bool has_model(const struct lock *l, const char *id)
{
	for (size_t i = 0; i < l->nmodels; i++)
		if (str_eq(l->models[i].id, id))
			return true;
	return false;
}

/* Of models whose files the manifest pins itself. */
static void add_pinned_models(json_t *list, const struct lock *l, const json_t *document)
{
	const json_t *m, *f;
	size_t i, k;

	json_array_foreach (json_object_get(document, "models"), i, m) {
		const char *id = json_string_value(json_object_get(m, "id"));

		if (!id || has_model(l, id))
			continue;
		json_array_foreach (json_object_get(m, "files"), k, f) {
			const char *path = json_string_value(json_object_get(f, "path")),
				   *hex = json_string_value(json_object_get(f, "sha256"));
			auto_free char *name = path ? mem_printf("model %s %s", id, path) : NULL;

			if (name && hex)
				add(list, name, NULL, "sha256", hex);
		}
	}
}

static void add_rest(json_t *list, const struct lock *l)
{
	if (l->base.present) {
		auto_free char *name = mem_printf("base %s", l->base.ref);

		add_sha256(list, name, l->base.ref, &l->base.manifest);
	}
	for (size_t i = 0; i < l->nfiles; i++) {
		auto_free char *name = mem_printf("file %s", l->files[i].path);

		add_sha256(list, name, NULL, &l->files[i].sha256);
	}
}

static json_t *dependencies(const struct lock *l, const json_t *document, struct err *e)
{
	json_t *list = json_array();

	add_debs(list, l);
	if (add_npms(list, l, e) < 0) {
		json_decref(list);
		return NULL;
	}
	add_wheels(list, l);
	add_sources(list, l);
	add_models(list, l);
	add_pinned_models(list, l, document);
	add_rest(list, l);
	return list;
}

/* ---- the statement ---- */

/* Ids of the steps that had the network: what they fetched is in no lock. */
static json_t *open_steps(const json_t *document)
{
	json_t *out = json_array();
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(document, "run"), i, o)
		if (json_is_true(json_object_get(o, "network")))
			json_array_append(out, json_object_get(o, "id"));
	return out;
}

static json_t *statement(const struct bill *b, const struct digest *manifest, json_t *document,
	const struct lock *l, json_t *inputs)
{
	auto_free char *name = sbom_image_name(b);
	char hex[DIGEST_HEX + 1], lock[DIGEST_HEX + 1], doc[DIGEST_HEX + 1],
		envelope[DIGEST_HEX + 1];

	return json_pack(
		"{s:s, s:[{s:s, s:{s:s}}], s:s, s:{s:{s:s, s:{s:O}, s:{s:s, s:s, s:s, s:s, "
		"s:o}, s:o}, s:{s:{s:s, s:{s:s}}, s:{}}}}",
		"_type", IN_TOTO_STATEMENT, "subject", "name", name, "digest", "sha256",
		digest_hex(manifest, hex), "predicateType", PROVENANCE_PREDICATE, "predicate",
		"buildDefinition", "buildType", BUILD_TYPE, "externalParameters", "manifest",
		document, "internalParameters", "platform", b->platform, "lock",
		digest_hex(&b->lock, lock), "manifestDigest", digest_hex(&b->manifest_doc, doc),
		"envelope", digest_hex(&l->envelope, envelope), "networkSteps",
		open_steps(document), "resolvedDependencies", inputs, "runDetails", "builder", "id",
		BUILDER_ID, "version", "svrun", SVRUN_VERSION, "metadata");
}

int provenance_text(
	const struct bill *b, const struct digest *manifest, struct buf *out, struct err *e)
{
	auto_json json_t *document = json_parse(b->document, strlen(b->document), e), *j = NULL;
	json_t *inputs;
	struct lock l;

	if (!document || lock_parse(&l, "lock.json", b->lock_text, strlen(b->lock_text), e) < 0)
		return -1;
	inputs = dependencies(&l, document, e);
	if (inputs)
		j = statement(b, manifest, document, &l, inputs);
	lock_fini(&l);
	if (!inputs)
		return -1;
	if (!j)
		return err_set(e, ERR_CORRUPT, "a name in the lock is not UTF-8");
	json_text(j, true, out);
	return 0;
}

/* ---- attaching ---- */

static int attach_sbom(const struct bill *b, const char *format, struct store *s,
	const struct digest *manifest, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(SBOM_TEXT_MAX);
	auto_json json_t *annotations = NULL;
	struct attachment a = {0};
	enum sbom_format f;

	if (sbom_format_parse(format, &f, e) < 0)
		return -1;
	if (f != SBOM_SPDX) /* both versions are of one media type */
		annotations = json_pack("{s:s}", SBOM_ANNOTATION, format);
	a.annotations = annotations;
	sbom_text(f, b, manifest, NULL, &text);
	a.type = sbom_media_type(f);
	a.data = text.data;
	a.n = text.len;
	return attached_put(s, manifest, &a, annotations ? SBOM_ANNOTATION : NULL, e);
}

static int attach_all(const struct bill *b, const struct manifest_build *how, struct store *s,
	const struct digest *manifest, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(PROVENANCE_MAX);
	struct attachment a = {.type = IN_TOTO_TYPE};

	for (size_t i = 0; i < how->sbom.n; i++)
		if (attach_sbom(b, how->sbom.v[i], s, manifest, e) < 0)
			return err_ctx(e, "build.sbom");
	if (!how->provenance)
		return 0;
	if (provenance_text(b, manifest, &text, e) < 0)
		return err_ctx(e, "build.provenance");
	a.data = text.data;
	a.n = text.len;
	return attached_put(s, manifest, &a, NULL, e);
}

int provenance_attach(const struct bill *b, const struct manifest_build *how, struct store *s,
	const struct digest *manifest, struct err *e)
{
	struct bill first;
	int rc = bill_load_first(&first, b, s, manifest, e);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return attach_all(b, how, s, manifest, e);
	rc = attach_all(&first, how, s, manifest, e);
	bill_fini(&first);
	return rc;
}
