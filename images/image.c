#include "images/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"

enum { DOCUMENT_MAX = 8 << 20, LAYERS_MAX = 512 };

/* What the layers' media types mean. */
static const struct {
	const char *type;
	enum codec codec;
} layer_types[] = {
	{"application/vnd.oci.image.layer.v1.tar", CODEC_NONE},
	{"application/vnd.oci.image.layer.v1.tar+gzip", CODEC_GZIP},
	{"application/vnd.oci.image.layer.v1.tar+zstd", CODEC_ZSTD},
	{"application/vnd.docker.image.rootfs.diff.tar", CODEC_NONE},
	{"application/vnd.docker.image.rootfs.diff.tar.gzip", CODEC_GZIP},
	{"application/vnd.docker.image.rootfs.diff.tar.zstd",
		CODEC_ZSTD}, /* not standard, but seen */
	{"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", CODEC_GZIP},
	{"application/vnd.oci.image.layer.nondistributable.v1.tar", CODEC_NONE},
	{"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", CODEC_GZIP},
	{"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", CODEC_ZSTD},
};

/* ---- loading ---- */

static json_t *load_document(
	struct store *s, const struct digest *d, const char *what, uint64_t *size, struct err *e)
{
	auto_buf struct buf b = {0};
	json_t *j;

	if (store_blob_read(s, d, DOCUMENT_MAX, &b, e) < 0)
		return err_ctx(e, "%s", what), NULL;
	*size = b.len;
	j = json_parse(b.data ? b.data : "", b.len, e);
	if (!j)
		err_ctx(e, "%s", what);
	return j;
}

/* CVE-2021-41190: one document must not be valid both as a manifest and as an index. */
static int check_manifest(const json_t *m, struct err *e)
{
	uint64_t version;
	const char *type;

	if (json_u64(m, "schemaVersion", 2, &version, e) < 0 ||
		json_str_opt(m, "mediaType", &type, e) < 0)
		return -1;
	if (version != 2)
		return err_set(e, ERR_CORRUPT, "schemaVersion is not 2");
	if (type && !image_type_is_manifest(type))
		return err_set(e, ERR_UNSUPPORTED, "mediaType '%s' is not an image manifest", type);
	if (json_object_get(m, "manifests"))
		return err_set(e, ERR_CORRUPT, "a manifest that is also an index");
	return 0;
}

static int layer_codec(struct image_layer *l, struct err *e)
{
	for (size_t i = 0; i < sizeof(layer_types) / sizeof(layer_types[0]); i++)
		if (str_eq(l->media_type, layer_types[i].type)) {
			l->codec = layer_types[i].codec;
			return 0;
		}
	return err_set(e, ERR_UNSUPPORTED, "mediaType '%.100s' is no layer that svrun reads",
		l->media_type);
}

static int load_layers(struct image *im, struct err *e)
{
	const json_t *list = json_array_of(im->manifest, "layers", e);

	if (!list)
		return -1;
	im->nlayers = json_array_size(list);
	if (im->nlayers > LAYERS_MAX)
		return err_set(e, ERR_CORRUPT, "%zu layers, more than the limit of %d", im->nlayers,
			LAYERS_MAX);
	im->layers = mem_array(im->nlayers, sizeof(*im->layers));
	for (size_t i = 0; i < im->nlayers; i++) {
		struct image_layer *l = &im->layers[i];
		struct descriptor d;

		if (descriptor_read(&d, json_array_get(list, i), e) < 0)
			return err_ctx(e, "/layers/%zu", i);
		l->digest = d.digest;
		l->size = d.size;
		l->media_type = d.media_type;
		if (layer_codec(l, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
	}
	return 0;
}

static int config_descriptor(const struct image *im, struct descriptor *d, struct err *e)
{
	const json_t *o = json_object_of(im->manifest, "config", e);

	if (!o || descriptor_read(d, o, e) < 0)
		return err_ctx(e, "/config");
	if (!str_eq(d->media_type, OCI_CONFIG_TYPE) && !str_eq(d->media_type, DOCKER_CONFIG_TYPE))
		return err_set(e, ERR_UNSUPPORTED,
			"/config: mediaType '%.100s' is not that of a container image",
			d->media_type);
	return 0;
}

static int load_index_place(struct image *im, struct err *e)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(im->manifest, "annotations"), INDEX_ANNOTATION));
	const struct image_layer *last;

	if (!text)
		return 0;
	if (index_place_parse(&im->index, text, e) < 0)
		return err_ctx(e, "annotation " INDEX_ANNOTATION);
	/* Tools that compress layers anew, or put one on top, keep annotations: then the last layer
	 * is another one, and to us the image is one that has no index. */
	last = im->nlayers ? &im->layers[im->nlayers - 1] : NULL;
	if (!last || !digest_eq(&last->digest, &im->index.layer))
		return 0;
	im->has_index =
		im->index.offset <= last->size && im->index.length <= last->size - im->index.offset;
	return im->has_index
		       ? 0
		       : err_set(e, ERR_CORRUPT, "the index lies beyond the end of its layer");
}

int image_read_manifest(struct image *im, struct descriptor *config, struct err *e)
{
	if (check_manifest(im->manifest, e) < 0 || load_layers(im, e) < 0)
		return err_ctx(e, "manifest");
	if (config_descriptor(im, config, e) < 0)
		return -1;
	im->config_digest = config->digest;
	return load_index_place(im, e);
}

int image_read_config(struct image *im, struct err *e)
{
	const json_t *rootfs = json_object_of(im->config, "rootfs", e),
		     *ids = rootfs ? json_array_of(rootfs, "diff_ids", e) : NULL;

	if (!ids)
		return err_ctx(e, "image config");
	if (json_array_size(ids) != im->nlayers)
		return err_set(e, ERR_CORRUPT, "%zu layers, but %zu diff_ids", im->nlayers,
			json_array_size(ids));
	for (size_t i = 0; i < im->nlayers; i++) {
		const char *text = json_string_value(json_array_get(ids, i));

		if (digest_parse(&im->layers[i].diff_id, text ? text : "", e) < 0)
			return err_ctx(e, "image config: /rootfs/diff_ids/%zu", i);
	}
	return 0;
}

static int load(struct image *im, struct store *s, struct err *e)
{
	struct descriptor config;
	uint64_t size;

	im->manifest = load_document(s, &im->manifest_digest, "manifest", &im->manifest_size, e);
	if (!im->manifest || image_read_manifest(im, &config, e) < 0)
		return -1;
	im->config = load_document(s, &im->config_digest, "image config", &size, e);
	if (!im->config)
		return -1;
	if (size != config.size)
		return err_set(e, ERR_CORRUPT,
			"/config: expected %" PRIu64 " bytes, found %" PRIu64, config.size, size);
	return image_read_config(im, e);
}

int image_load(struct image *im, struct store *s, const struct digest *manifest, struct err *e)
{
	char hex[DIGEST_HEX + 1];

	*im = (struct image){.manifest_digest = *manifest};
	if (load(im, s, e) == 0)
		return 0;
	image_fini(im);
	return err_ctx(e, "image %.12s", digest_hex(manifest, hex));
}

void image_fini(struct image *im)
{
	json_decref(im->manifest);
	json_decref(im->config);
	free(im->layers);
	*im = (struct image){0};
}
