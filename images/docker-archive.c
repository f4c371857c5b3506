/* What `docker save` wrote before it wrote OCI layouts, and `podman save` and skopeo still write:
 *
 *   manifest.json     [{"Config": "HEX.json", "RepoTags": ["name:tag"], "Layers":
 * ["ID/layer.tar"]}] HEX.json          image configs ID/layer.tar      layers, plain tars; or links
 * to those of other images
 *
 * There are no manifests in it, so each image gets one. Source: moby's image/spec/v1.2. */
#include "images/archive-load.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/image.h"

enum { LAYERS_MAX = 512 };

static json_t *make_descriptor(const char *type, const struct intake_file *f)
{
	char text[DIGEST_TEXT + 1];

	return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest",
		digest_text(&f->digest, text), "size", (json_int_t)f->size);
}

/* A plain tar's DiffID is its digest, so that a wrong layer is told here, with its name; compressed
 * ones (which docker load takes, too) are checked when they are read. */
static int check_diff_id(const struct intake *in, const char *name, const struct intake_file *f,
	const json_t *diff_id, struct err *e)
{
	struct digest want;

	if (digest_parse(&want, json_string_value(diff_id) ?: "", e) < 0)
		return err_ctx(e, "/rootfs/diff_ids");
	if (f->codec != CODEC_NONE)
		return 0;
	return digest_check(&want, &f->digest, e, "%s: %s", in->name, name);
}

static json_t *take_layers(
	struct intake *in, const json_t *layers, const json_t *diff_ids, struct err *e)
{
	auto_json json_t *list = json_array();
	const json_t *o;
	size_t i;

	if (json_array_size(layers) != json_array_size(diff_ids) ||
		json_array_size(layers) > LAYERS_MAX) {
		err_set(e, ERR_CORRUPT, "%zu layers, %zu diff_ids, and at most %d of them",
			json_array_size(layers), json_array_size(diff_ids), LAYERS_MAX);
		return NULL;
	}
	json_array_foreach (layers, i, o) {
		const char *name = json_string_value(o);
		struct intake_file f;

		if (!name) {
			err_set(e, ERR_CORRUPT, "/Layers/%zu: expected string", i);
			return NULL;
		}
		if (intake_get(in, name, &f, e) < 0 ||
			check_diff_id(in, name, &f, json_array_get(diff_ids, i), e) < 0) {
			err_ctx(e, "layer %zu", i);
			return NULL;
		}
		json_array_append_new(list, make_descriptor(codec_media_type(f.codec), &f));
	}
	return steal_ptr(&list);
}

static int make_manifest(struct intake *in, const struct intake_file *config, json_t *layers,
	struct digest *d, uint64_t *size, struct err *e)
{
	auto_json json_t *m = json_pack("{s:i, s:s, s:o, s:O}", "schemaVersion", 2, "mediaType",
		OCI_MANIFEST_TYPE, "config", make_descriptor(OCI_CONFIG_TYPE, config), "layers",
		layers);
	auto_buf struct buf b = BUF_INIT(ARCHIVE_DOCUMENT_MAX);

	json_text(m, true, &b);
	*size = b.len;
	return intake_add_blob(in, b.data, b.len, d, e);
}

static int take_image(
	struct intake *in, const json_t *o, struct digest *d, uint64_t *size, struct err *e)
{
	const char *name = json_str(o, "Config", e);
	const json_t *layers = name ? json_array_of(o, "Layers", e) : NULL, *rootfs, *ids;
	auto_json json_t *config = NULL, *list = NULL;
	struct intake_file f;

	if (!layers || intake_get(in, name, &f, e) < 0)
		return -1;
	config = intake_document(in, &f, ARCHIVE_DOCUMENT_MAX, e);
	if (!config)
		return -1;
	rootfs = json_object_of(config, "rootfs", e);
	ids = rootfs ? json_array_of(rootfs, "diff_ids", e) : NULL;
	list = ids ? take_layers(in, layers, ids, e) : NULL;
	return list ? make_manifest(in, &f, list, d, size, e) : err_ctx(e, "image config");
}

static int take_entry(struct intake *in, const json_t *o, struct archive_images *out, struct err *e)
{
	const json_t *tags = json_object_get(o, "RepoTags"), *tag;
	struct digest d;
	uint64_t size = 0;
	size_t i;

	if (take_image(in, o, &d, &size, e) < 0 || archive_images_add(out, &d, size, NULL, e) < 0)
		return -1;
	json_array_foreach (tags, i, tag)
		if (json_is_string(tag) &&
			archive_images_add(out, &d, size, json_string_value(tag), e) < 0)
			return -1;
	return 0;
}

int docker_archive_images(struct intake *in, struct archive_images *out, struct err *e)
{
	struct intake_file f;
	auto_json json_t *list = NULL;
	const json_t *o;
	size_t i;

	if (intake_get(in, "manifest.json", &f, e) < 0)
		return -1;
	list = intake_document(in, &f, ARCHIVE_INDEX_MAX, e);
	if (!list)
		return -1;
	if (!json_is_array(list) || json_array_size(list) > ARCHIVE_IMAGES_MAX)
		return err_set(e, ERR_CORRUPT,
			"%s: manifest.json: expected a list of at most %d images", in->name,
			ARCHIVE_IMAGES_MAX);
	json_array_foreach (list, i, o)
		if (take_entry(in, o, out, e) < 0)
			return err_ctx(e, "%s: manifest.json: /%zu", in->name, i);
	return 0;
}
