/* SPDX 2.3 as JSON. The image is a package that contains the others; each layer is one, too, and
 * contains what it carries. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/sbom.h"

#define LICENSE_LIST "3.20"

struct writing {
	const struct bill *b;
	json_t *packages, *relations, *files, *licenses;
};

static void relate(struct writing *w, const char *from, const char *type, const char *to)
{
	json_array_append_new(
		w->relations, json_pack("{s:s, s:s, s:s}", "spdxElementId", from,
				      "relationshipType", type, "relatedSpdxElement", to));
}

static json_t *checksum(const char *kind, const char *hex)
{
	const char *name = str_eq(kind, "sha512") ? "SHA512"
			   : str_eq(kind, "sha1") ? "SHA1"
						  : "SHA256";

	return json_pack("{s:s, s:s}", "algorithm", name, "checksumValue", hex);
}

/* ---- licences ---- */

/* Each LicenseRef-X of an expression is explained once, as the format wants it. */
static void extract_licenses(struct writing *w, const char *expression)
{
	const char *at = expression;

	while ((at = strstr(at, "LicenseRef-"))) {
		size_t n = strcspn(at, " ()");
		auto_free char *id = mem_printf("%.*s", (int)n, at);

		if (!json_object_get(w->licenses, id))
			json_object_set_new(w->licenses, id,
				json_pack("{s:s, s:s, s:s}", "licenseId", id, "name",
					id + strlen("LicenseRef-"), "extractedText",
					"The package names this licence; SPDX has no identifier "
					"for it."));
		at += n;
	}
}

/* ---- packages ---- */

static const char *purpose(enum origin_kind k)
{
	static const char *const of_kind[] = {
		[ORIGIN_DEB] = "LIBRARY",
		[ORIGIN_NPM] = "LIBRARY",
		[ORIGIN_WHEEL] = "LIBRARY",
		[ORIGIN_SOURCE] = "SOURCE",
		[ORIGIN_MODEL] = "OTHER",
		[ORIGIN_BASE] = "CONTAINER",
	};

	return of_kind[k];
}

static void add_source(json_t *o, const struct bill_item *it)
{
	auto_free char *info = NULL;

	if (it->kind == ORIGIN_DEB && it->source)
		info = mem_printf("built from the Debian source package %s", it->source);
	else if (it->path)
		info = mem_printf("/%s", it->path);
	if (info)
		json_object_set_new(o, "sourceInfo", json_string(info));
}

static void add_package(struct writing *w, const struct bill_item *it, const char *id)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:s, s:s}", "SPDXID", id, "name",
		it->name, "downloadLocation",
		/* the address of a mirror is the site's business */
		it->url && strstr(it->url, "://") ? it->url : "NOASSERTION", "filesAnalyzed", 0,
		"supplier", "NOASSERTION", "licenseConcluded", "NOASSERTION", "licenseDeclared",
		it->license ? it->license : "NOASSERTION", "copyrightText", "NOASSERTION",
		"primaryPackagePurpose", purpose(it->kind));

	if (it->version)
		json_object_set_new(o, "versionInfo", json_string(it->version));
	if (it->hash)
		json_object_set_new(
			o, "checksums", json_pack("[o]", checksum(it->hash_kind, it->hash)));
	if (it->purl)
		json_object_set_new(o, "externalRefs",
			json_pack("[{s:s, s:s, s:s}]", "referenceCategory", "PACKAGE-MANAGER",
				"referenceType", "purl", "referenceLocator", it->purl));
	if (it->license)
		extract_licenses(w, it->license);
	add_source(o, it);
	json_array_append_new(w->packages, o);
}

static void layer_id(size_t i, char out[64])
{
	snprintf(out, 64, "SPDXRef-layer-%zu", i);
}

static void add_items(struct writing *w)
{
	for (size_t i = 0; i < w->b->nitems; i++) {
		const struct bill_item *it = &w->b->items[i];
		char ref[SBOM_REF], layer[64];
		auto_free char *id = NULL;
		const struct bill_item *by = &w->b->items[it->via];

		if (!sbom_has(it))
			continue;
		id = mem_printf("SPDXRef-%s", sbom_ref(w->b, it, ref));
		add_package(w, it, id);
		if (it->kind == ORIGIN_BASE)
			relate(w, "SPDXRef-image", "DESCENDANT_OF", id);
		else
			relate(w, "SPDXRef-image", "CONTAINS", id);
		for (size_t k = 0; k < by->nlayers && it->kind != ORIGIN_BASE; k++) {
			layer_id(by->layers[k], layer);
			relate(w, layer, "CONTAINS", id);
		}
	}
}

static void add_image(struct writing *w, const struct digest *manifest)
{
	char hex[DIGEST_HEX + 1];

	digest_hex(manifest, hex);
	json_array_append_new(w->packages,
		json_pack("{s:s, s:s, s:s, s:s, s:b, s:[o], s:s, s:s, s:s, s:s}", "SPDXID",
			"SPDXRef-image", "name", w->b->name, "versionInfo", w->b->version,
			"downloadLocation", "NOASSERTION", "filesAnalyzed", 0, "checksums",
			checksum("sha256", hex), "licenseConcluded", "NOASSERTION",
			"licenseDeclared", "NOASSERTION", "copyrightText", "NOASSERTION",
			"primaryPackagePurpose", "CONTAINER"));
	relate(w, "SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image");
	for (size_t i = 0; i < w->b->nlayers; i++) {
		auto_free char *name = mem_printf("layer %zu (%s)", i, w->b->layers[i].id);
		char id[64];

		layer_id(i, id);
		digest_hex(&w->b->layers[i].diff_id, hex);
		json_array_append_new(w->packages,
			json_pack("{s:s, s:s, s:s, s:b, s:[o], s:s, s:s, s:s, s:s}", "SPDXID", id,
				"name", name, "downloadLocation", "NOASSERTION", "filesAnalyzed", 0,
				"checksums", checksum("sha256", hex), "licenseConcluded",
				"NOASSERTION", "licenseDeclared", "NOASSERTION", "copyrightText",
				"NOASSERTION", "primaryPackagePurpose", "ARCHIVE"));
		relate(w, "SPDXRef-image", "CONTAINS", id);
	}
}

/* ---- files ---- */

static void add_file(struct writing *w, size_t i, const struct sbom_sums *sum)
{
	const struct bill_file *f = &w->b->files[i];
	const struct bill_item *it = &w->b->items[f->item];
	auto_free char *name = mem_printf("./%s", f->path), *id = mem_printf("SPDXRef-file-%zu", i);
	char ref[SBOM_REF], layer[64];
	auto_free char *package = mem_printf("SPDXRef-%s", sbom_ref(w->b, it, ref));
	json_t *o = json_pack("{s:s, s:s*, s:[o, o], s:s, s:s}", "SPDXID", id, "fileName", name,
		"checksums", checksum("sha1", sum->sha1), checksum("sha256", sum->sha256),
		"licenseConcluded", "NOASSERTION", "copyrightText", "NOASSERTION");

	if (!json_object_get(o, "fileName")) { /* a name that is not UTF-8 cannot be written */
		json_decref(o);
		return;
	}
	json_array_append_new(w->files, o);
	layer_id(f->layer, layer);
	relate(w, layer, "CONTAINS", id);
	if (sbom_has(it))
		relate(w, package, "CONTAINS", id);
}

/* ---- the document ---- */

static json_t *values_of(json_t *o)
{
	json_t *out = json_array(), *v;
	const char *key;

	json_object_foreach (o, key, v)
		json_array_append(out, v);
	return out;
}

json_t *sbom_spdx(const struct bill *b, const struct digest *manifest, const struct sbom_sums *sums)
{
	struct writing w = {b, json_array(), json_array(), json_array(), json_object()};
	auto_free char *name = sbom_image_name(b);
	auto_free char *space = NULL;
	char hex[DIGEST_HEX + 1];
	json_t *doc;

	space = mem_printf("urn:svrun:spdx:%s%s", digest_hex(manifest, hex), sums ? ":files" : "");
	add_image(&w, manifest);
	add_items(&w);
	for (size_t i = 0; sums && i < b->nfiles; i++)
		if (sums[i].sha1[0])
			add_file(&w, i, &sums[i]);
	doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:s, s:[s], s:s}, s:o, s:o}", "spdxVersion",
		"SPDX-2.3", "dataLicense", "CC0-1.0", "SPDXID", "SPDXRef-DOCUMENT", "name", name,
		"documentNamespace", space, "creationInfo", "created", b->created, "creators",
		"Tool: svrun-" SVRUN_VERSION, "licenseListVersion", LICENSE_LIST, "packages",
		w.packages, "relationships", w.relations);
	if (json_array_size(w.files))
		json_object_set(doc, "files", w.files);
	if (json_object_size(w.licenses))
		json_object_set_new(doc, "hasExtractedLicensingInfos", values_of(w.licenses));
	json_decref(w.files);
	json_decref(w.licenses);
	return doc;
}
