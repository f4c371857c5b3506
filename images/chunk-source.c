#include "images/chunk-source.h"

#include "base/sys.h"

enum { STORED_MAX = 2 * CHUNK_SIZE }; /* no codec makes more of a chunk */

int chunk_from_layer(struct store *s, const struct layer *layers, size_t n, const struct chunk *c,
	void *data, struct err *e)
{
	const struct layer *l = &layers[c->layer];
	char text[DIGEST_TEXT + 1];
	struct digest d;

	if (c->layer < 0 || (size_t)c->layer >= n || c->stored == 0 || c->stored > STORED_MAX)
		return err_set(e, ERR_NOT_FOUND, "no layer is known to carry chunk %s",
			digest_text(&c->digest, text));

	auto_free unsigned char *stored = mem_alloc(c->stored);
	auto_fd int fd = store_blob_open(s, &l->digest, NULL, e);

	if (fd < 0)
		return -1;
	if (sys_pread_all(fd, stored, c->stored, (off_t)c->offset) < 0)
		return err_sys(e, "read layer %d", (int)c->layer);
	if (codec_decode(l->codec, stored, c->stored, data, c->length, e) < 0)
		return err_ctx(e, "layer %d", (int)c->layer);
	d = digest_of(data, c->length);
	return digest_check(&c->digest, &d, e, "layer %d: chunk", (int)c->layer);
}
