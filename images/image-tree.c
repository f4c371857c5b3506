/* What an image's index says. Apart from image-index.c, because this needs zstd. */
#include "images/image.h"

/* All of the manifest's layers; but an index that travels in the last layer does not speak of that
 * one. */
static int check_layers(const struct image *im, const struct layer *layers, size_t n, struct err *e)
{
	size_t own = im->has_index ? 1 : 0;

	if (n + own != im->nlayers)
		return err_set(
			e, ERR_CORRUPT, "%zu layers, %zu in the manifest", n + own, im->nlayers);
	for (size_t i = 0; i < n; i++) {
		const struct layer *a = &layers[i];
		const struct image_layer *b = &im->layers[i];

		if (!digest_eq(&a->digest, &b->digest) || !digest_eq(&a->diff_id, &b->diff_id) ||
			a->size != b->size || a->codec != b->codec)
			return err_set(
				e, ERR_CORRUPT, "layer %zu is another one in the manifest", i);
	}
	return 0;
}

struct tree *image_tree(
	struct image *im, struct store *s, struct layer **layers, size_t *n, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(INDEX_BYTES_MAX);
	auto_free struct layer *v = NULL;
	struct tree *t = NULL;
	size_t count = 0;

	if (image_index(im, s, &b, e) == 0)
		t = index_decode(b.data, b.len, &v, &count, e);
	if (!t || check_layers(im, v, count, e) < 0) {
		tree_free(t);
		err_ctx(e, "image index");
		return NULL;
	}
	if (layers) {
		*layers = steal_ptr(&v);
		*n = count;
	}
	return t;
}
