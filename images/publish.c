/* Writing an image's documents. Apart from image.c, because the index layer needs zstd and reading
 * an image does not. */
#include "images/publish.h"

#include <stdio.h>

enum { DOCUMENT_MAX = 8 << 20 };

json_t *publish_descriptor(const char *type, const struct digest *d, uint64_t size)
{
	char text[DIGEST_TEXT + 1];

	return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", digest_text(d, text),
		"size", (json_int_t)size);
}

static void add_layer(
	json_t *layers, json_t *ids, json_t *history, const struct layer *l, const char *created)
{
	char text[DIGEST_TEXT + 1];
	auto_free char *by = mem_printf("svrun layer %s", l->id);

	json_array_append_new(
		layers, publish_descriptor(codec_media_type(l->codec), &l->digest, l->size));
	json_array_append_new(ids, json_string(digest_text(&l->diff_id, text)));
	if (history)
		json_array_append_new(
			history, json_pack("{s:s, s:s}", "created", created, "created_by", by));
}

int publish_document(
	struct store *s, const json_t *j, struct digest *d, uint64_t *size, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(DOCUMENT_MAX);

	json_text(j, true, &b);
	*size = b.len;
	return store_blob_put(s, b.data, b.len, d, e);
}

int publish_index(struct store *s, struct tree *tree, const struct layer *layers, size_t nlayers,
	struct layer *index, struct index_place *place, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(INDEX_BYTES_MAX);
	enum codec codec = CODEC_GZIP;

	for (size_t i = 0; i < nlayers; i++)
		if (layers[i].codec == CODEC_ZSTD)
			codec = CODEC_ZSTD;
	if (index_encode(tree, layers, nlayers, &b, e) < 0 ||
		index_layer_write(s, codec, b.data, b.len, index, place, e) < 0)
		return err_ctx(e, "image index");
	return 0;
}

int image_publish(struct store *s, const struct image_plan *plan, struct digest *manifest,
	uint64_t *size, struct err *e)
{
	struct layer index = {0};
	struct index_place place;
	struct digest config_digest;
	uint64_t config_size;
	char annotation[256];
	auto_json json_t *config = json_deep_copy(plan->config), *m = json_object();
	json_t *layers = json_array(), *ids = json_array(),
	       *history = plan->base_history ? json_deep_copy(plan->base_history) : json_array(),
	       *annotations = plan->annotations ? json_deep_copy(plan->annotations) : json_object();

	json_object_set_new(m, "layers", layers);
	json_object_set_new(m, "annotations", annotations);
	json_object_set_new(config, "history", history);
	json_object_set_new(
		config, "rootfs", json_pack("{s:s, s:o}", "type", "layers", "diff_ids", ids));
	if (publish_index(s, plan->tree, plan->layers, plan->nlayers, &index, &place, e) < 0)
		return -1;
	for (size_t i = 0; i < plan->nlayers; i++)
		add_layer(layers, ids, i < plan->nbase ? NULL : history, &plan->layers[i],
			plan->created);
	add_layer(layers, ids, history, &index, plan->created);
	if (index_place_format(&place, annotation) < 0 ||
		publish_document(s, config, &config_digest, &config_size, e) < 0)
		return -1;
	json_object_set_new(annotations, INDEX_ANNOTATION, json_string(annotation));
	json_object_set_new(
		m, "config", publish_descriptor(OCI_CONFIG_TYPE, &config_digest, config_size));
	json_object_set_new(m, "mediaType", json_string(OCI_MANIFEST_TYPE));
	json_object_set_new(m, "schemaVersion", json_integer(2));
	return publish_document(s, m, manifest, size, e);
}
