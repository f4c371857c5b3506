/* Any bytes as the documents of an image, a manifest (or an index), a zero byte, a config: what is
 * accepted holds what the rest of svrun relies on. */
#include <assert.h>
#include <string.h>

#include "images/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_index(const json_t *doc, const char *platform)
{
	struct descriptor d;

	if (image_choose(doc, platform, &d, NULL) < 0)
		return;
	assert(image_type_is_manifest(d.media_type));
	assert(!json_object_get(doc, "layers"));
}

static void check_image(struct image *im, const char *config, size_t n)
{
	struct descriptor d;

	if (image_read_manifest(im, &d, NULL) < 0)
		return;
	assert(!json_object_get(im->manifest, "manifests"));
	assert(im->nlayers <= 512 && digest_eq(&d.digest, &im->config_digest));
	if (im->has_index) {
		const struct image_layer *last = &im->layers[im->nlayers - 1];

		assert(im->nlayers > 0 && digest_eq(&last->digest, &im->index.layer));
		assert(im->index.length > 0 && im->index.offset + im->index.length <= last->size);
	}
	im->config = json_parse(config, n, NULL);
	if (im->config && image_read_config(im, NULL) == 0)
		assert(json_array_size(json_object_get(
			       json_object_get(im->config, "rootfs"), "diff_ids")) == im->nlayers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = size ? (const char *)data : "";
	const char *end = memchr(text, 0, size);
	size_t first = end ? (size_t)(end - text) : size;
	struct image im = {.manifest = json_parse(text, first, NULL)};

	if (im.manifest) {
		check_index(im.manifest, NULL);
		check_index(im.manifest, "linux/arm64/v8");
		check_image(&im, end ? end + 1 : "", end ? size - first - 1 : 0);
	}
	image_fini(&im);
	return 0;
}
