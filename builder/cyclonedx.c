/* CycloneDX as JSON. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/sbom.h"

/* ---- pieces ---- */

static json_t *hash_of(const char *kind, const char *hex)
{
	const char *name = str_eq(kind, "sha512") ? "SHA-512"
			   : str_eq(kind, "sha1") ? "SHA-1"
						  : "SHA-256";

	return json_pack("{s:s, s:s}", "alg", name, "content", hex);
}

static void add_property(json_t *list, const char *name, const char *value)
{
	json_t *o = json_pack("{s:s, s:s*}", "name", name, "value", value);

	json_array_append_new(list, o);
}

static void add_layer(json_t *list, const struct bill *b, size_t layer)
{
	char text[DIGEST_TEXT + 1];

	add_property(list, "svrun:layer", digest_text(&b->layers[layer].diff_id, text));
}

static const char *type_of(enum origin_kind k)
{
	return k == ORIGIN_MODEL    ? "machine-learning-model"
	       : k == ORIGIN_BASE   ? "container"
	       : k == ORIGIN_SOURCE ? "application"
				    : "library";
}

/* ---- components ---- */

/* npm's scope is the group. */
static void set_name(json_t *o, const struct bill_item *it)
{
	const char *slash =
		it->kind == ORIGIN_NPM && it->name[0] == '@' ? strchr(it->name, '/') : NULL;

	if (slash)
		json_object_set_new(o, "group", json_stringn(it->name, (size_t)(slash - it->name)));
	json_object_set_new(o, "name", json_string(slash ? slash + 1 : it->name));
}

static json_t *component(const struct bill *b, const struct bill_item *it)
{
	const struct bill_item *by = &b->items[it->via];
	json_t *o, *properties = json_array();
	char ref[SBOM_REF];

	o = json_pack("{s:s, s:s}", "type", type_of(it->kind), "bom-ref", sbom_ref(b, it, ref));
	set_name(o, it);
	if (it->version)
		json_object_set_new(o, "version", json_string(it->version));
	if (it->purl)
		json_object_set_new(o, "purl", json_string(it->purl));
	if (it->license)
		json_object_set_new(o, "licenses", json_pack("[{s:s}]", "expression", it->license));
	if (it->hash)
		json_object_set_new(
			o, "hashes", json_pack("[o]", hash_of(it->hash_kind, it->hash)));
	for (size_t i = 0; i < by->nlayers && it->kind != ORIGIN_BASE; i++)
		add_layer(properties, b, by->layers[i]);
	if (it->path)
		add_property(properties, "svrun:path", it->path);
	if (it->kind == ORIGIN_DEB && it->source)
		add_property(properties, "svrun:source-package", it->source);
	if (json_array_size(properties))
		json_object_set(o, "properties", properties);
	json_decref(properties);
	return o;
}

static json_t *file_component(const struct bill *b, size_t i, const struct sbom_sums *sum)
{
	const struct bill_file *f = &b->files[i];
	auto_free char *ref = mem_printf("file-%zu", i), *name = mem_printf("/%s", f->path);
	json_t *properties, *o;

	if (!str_utf8(f->path, strlen(f->path)))
		return NULL;
	properties = json_array();
	add_layer(properties, b, f->layer);
	o = json_pack("{s:s, s:s, s:s, s:[o, o], s:o}", "type", "file", "bom-ref", ref, "name",
		name, "hashes", hash_of("sha1", sum->sha1), hash_of("sha256", sum->sha256),
		"properties", properties);
	return o;
}

/* ---- who needs whom ---- */

static const struct bill_item *named(
	const struct bill *b, const struct bill_item *by, const char *who)
{
	for (size_t i = 0; i < b->nitems; i++) {
		const struct bill_item *it = &b->items[i];
		const char *name = by->kind == ORIGIN_NPM ? it->path : it->name;

		if (it->kind == by->kind && name && str_eq(name, who) && sbom_has(it))
			return it;
	}
	return NULL;
}

static void depend(json_t *edges, const char *from, const char *to)
{
	json_t *list = json_object_get(edges, from);

	if (!list) {
		list = json_array();
		json_object_set_new(edges, from, list);
	}
	json_array_append_new(list, json_string(to));
}

/* The lock says of each package who wants it: the other way round here. */
static json_t *dependencies(const struct bill *b)
{
	auto_json json_t *edges = json_object();
	json_t *out = json_array(), *list;
	const char *ref;

	for (size_t i = 0; i < b->nitems; i++) {
		const struct bill_item *it = &b->items[i];
		char to[SBOM_REF], from[SBOM_REF];
		bool wanted = false;

		if (!sbom_has(it))
			continue;
		sbom_ref(b, it, to);
		for (size_t k = 0; k < it->why.n; k++) {
			const struct bill_item *who = named(b, it, it->why.v[k]);

			if (who)
				depend(edges, sbom_ref(b, who, from), to);
			wanted = wanted || who;
		}
		if (!wanted || it->kind == ORIGIN_BASE)
			depend(edges, "image", to);
	}
	json_object_foreach (edges, ref, list)
		json_array_append_new(out, json_pack("{s:s, s:O}", "ref", ref, "dependsOn", list));
	return out;
}

/* ---- the document ---- */

/* A UUID (RFC 9562, version 8) out of the image's digest: the same image, the same number. */
static void serial(const struct digest *d, bool files, char out[64])
{
	uint8_t b[16];
	char hex[33];

	memcpy(b, d->b, sizeof(b));
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x80);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	b[15] = (uint8_t)(b[15] ^ (files ? 1 : 0));
	hex_encode(b, sizeof(b), hex);
	snprintf(out, 64, "urn:uuid:%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		hex + 20);
}

json_t *sbom_cyclonedx(const char *version, const struct bill *b, const struct digest *manifest,
	const struct sbom_sums *sums)
{
	json_t *components = json_array();
	char urn[64], hex[DIGEST_HEX + 1];

	for (size_t i = 0; i < b->nitems; i++)
		if (sbom_has(&b->items[i]))
			json_array_append_new(components, component(b, &b->items[i]));
	for (size_t i = 0; sums && i < b->nfiles; i++) {
		json_t *o = sums[i].sha1[0] ? file_component(b, i, &sums[i]) : NULL;

		if (o)
			json_array_append_new(components, o);
	}
	serial(manifest, sums, urn);
	return json_pack("{s:s, s:s, s:s, s:i, s:{s:s, s:{s:[{s:s, s:s, s:s}]}, s:{s:s, s:s, s:s, "
			 "s:s, s:[o]}}, s:o, s:o}",
		"bomFormat", "CycloneDX", "specVersion", version, "serialNumber", urn, "version", 1,
		"metadata", "timestamp", b->created, "tools", "components", "type", "application",
		"name", "svrun", "version", SVRUN_VERSION, "component", "type", "container",
		"bom-ref", "image", "name", b->name, "version", b->version, "hashes",
		hash_of("sha256", digest_hex(manifest, hex)), "components", components,
		"dependencies", dependencies(b));
}
