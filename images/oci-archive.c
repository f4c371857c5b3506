/* OCI layouts, packed or not. Source: image-spec image-layout.md, image-index.md, annotations.md.
 */
#include "images/archive-load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/archive-attached.h"
#include "images/image.h"

enum { DEPTH_MAX = 4 }; /* of indexes within indexes */

/* What containerd, and `docker save` with it, calls an image; there the other name is only a tag.
 */
#define CONTAINERD_NAME "io.containerd.image.name"

static const char *annotation(const json_t *descriptor, const char *key)
{
	return json_string_value(json_object_get(json_object_get(descriptor, "annotations"), key));
}

static const char *name_of(const json_t *descriptor)
{
	const char *name = annotation(descriptor, CONTAINERD_NAME);

	return name ? name : annotation(descriptor, REF_NAME);
}

/* Have a blob, as long as its descriptor says. Its digest was checked as it came in. */
int oci_archive_blob(
	struct intake *in, const struct descriptor *d, struct intake_file *f, struct err *e)
{
	char name[sizeof("blobs/sha256/") + DIGEST_HEX], hex[DIGEST_HEX + 1];

	snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(&d->digest, hex));
	if (intake_get(in, name, f, e) < 0)
		return -1;
	if (!digest_eq(&f->digest, &d->digest)) /* a link of that name led elsewhere */
		return digest_check(&d->digest, &f->digest, e, "%s: %s", in->name, name);
	if (f->size != d->size)
		return err_set(e, ERR_CORRUPT, "%s: %s: expected %" PRIu64 " bytes, found %" PRIu64,
			in->name, name, d->size, f->size);
	return 0;
}

static int take_listed(struct intake *in, const json_t *o, struct err *e)
{
	struct intake_file f;
	struct descriptor d;

	return descriptor_read(&d, o, e) < 0 ? -1 : oci_archive_blob(in, &d, &f, e);
}

/* The blobs that a manifest names; image_load() reads it more closely later. */
static int take_image(struct intake *in, const json_t *manifest, struct err *e)
{
	const json_t *config = json_object_of(manifest, "config", e), *layers, *o;
	size_t i;

	if (!config || take_listed(in, config, e) < 0)
		return config ? err_ctx(e, "config") : -1;
	layers = json_array_of(manifest, "layers", e);
	if (!layers)
		return -1;
	json_array_foreach (layers, i, o)
		if (take_listed(in, o, e) < 0)
			return err_ctx(e, "layer %zu", i);
	return 0;
}

/* From a descriptor of index.json through indexes to the manifest for the platform. */
static int take_manifest(struct intake *in, const json_t *o, const char *platform,
	struct digest *manifest, uint64_t *size, struct err *e)
{
	auto_json json_t *doc = NULL; /* which d borrows from */
	struct descriptor d;

	if (descriptor_read(&d, o, e) < 0)
		return -1;
	for (unsigned depth = 0;; depth++) {
		struct intake_file f;
		json_t *next;
		bool index = image_type_is_index(d.media_type);

		if (depth > DEPTH_MAX)
			return err_set(e, ERR_CORRUPT, "%s: indexes more than %d deep", in->name,
				DEPTH_MAX);
		if (oci_archive_blob(in, &d, &f, e) < 0)
			return -1;
		next = intake_document(in, &f, ARCHIVE_DOCUMENT_MAX, e);
		if (!next)
			return -1;
		json_decref(doc);
		doc = next;
		if (index && image_choose(doc, platform, &d, e) < 0)
			return -1;
		if (index)
			continue;
		*manifest = d.digest;
		*size = d.size;
		return take_image(in, doc, e);
	}
}

/* One name may stand at the images for several platforms. */
static json_t *same_name(const json_t *list, const char *name)
{
	json_t *group = json_array(), *o;
	size_t i;

	json_array_foreach (list, i, o) {
		const char *is = name_of(o);

		if (is && str_eq(is, name))
			json_array_append(group, o);
	}
	return group;
}

static bool is_image(const json_t *o)
{
	const char *type = json_string_value(json_object_get(o, "mediaType"));

	return type && (image_type_is_index(type) || image_type_is_manifest(type));
}

static bool of_other_platform(const json_t *list, const json_t *o, const char *platform)
{
	const char *name = name_of(o), *mine = json_string_value(json_object_get(o, "digest"));
	auto_json json_t *group = name ? same_name(list, name) : NULL;
	auto_json json_t *index = NULL;
	char text[DIGEST_TEXT + 1];
	struct descriptor d;

	if (json_array_size(group) < 2)
		return false;
	index = json_pack("{s:O}", "manifests", group);
	return image_choose(index, platform, &d, NULL) < 0 || !mine ||
	       !str_eq(digest_text(&d.digest, text), mine);
}

static int take_entries(struct intake *in, const json_t *list, const char *platform,
	struct archive_images *out, struct err *e)
{
	const json_t *o;
	size_t i;

	if (json_array_size(list) > ARCHIVE_IMAGES_MAX)
		return err_set(
			e, ERR_CORRUPT, "more than the limit of %d images", ARCHIVE_IMAGES_MAX);
	json_array_foreach (list, i, o) {
		struct digest manifest;
		uint64_t size = 0;

		/* what is no image may stand there, too: signatures, attestations */
		if (!is_image(o) || archive_is_attached(o) || of_other_platform(list, o, platform))
			continue;
		if (take_manifest(in, o, platform, &manifest, &size, e) < 0 ||
			archive_images_add(out, &manifest, size, name_of(o), e) < 0 ||
			archive_attached_load(in, list, o, &manifest, e) < 0)
			return err_ctx(e, "/manifests/%zu", i);
	}
	return 0;
}

static int check_version(struct intake *in, struct err *e)
{
	struct intake_file f;
	auto_json json_t *doc = NULL;
	const char *version;
	int rc = intake_find(in, "oci-layout", &f, e);

	if (rc <= 0) /* some writers leave it out */
		return rc;
	doc = intake_document(in, &f, 4096, e);
	version = doc ? json_str(doc, "imageLayoutVersion", e) : NULL;
	if (!version)
		return doc ? err_ctx(e, "%s: oci-layout", in->name) : -1;
	if (!str_starts(version, "1."))
		return err_set(
			e, ERR_UNSUPPORTED, "%s: imageLayoutVersion %.40s", in->name, version);
	return 0;
}

int oci_archive_images(
	struct intake *in, const char *platform, struct archive_images *out, struct err *e)
{
	struct intake_file f;
	auto_json json_t *doc = NULL;
	const json_t *list;

	if (check_version(in, e) < 0 || intake_get(in, "index.json", &f, e) < 0)
		return -1;
	doc = intake_document(in, &f, ARCHIVE_INDEX_MAX, e);
	if (!doc)
		return -1;
	list = json_array_of(doc, "manifests", e);
	if (!list || take_entries(in, list, platform, out, e) < 0)
		return err_ctx(e, "%s: index.json", in->name);
	return 0;
}
