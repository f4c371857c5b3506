/* The same image with its layers written anew: in another codec, with an index. */
#ifndef IMAGES_CONVERT_H
#define IMAGES_CONVERT_H

#include "images/image.h"

struct progress;

struct convert_options {
	enum codec codec;
	int level; /* 0: convert_level() of the codec */
};

/* What layers are compressed with when nobody says. */
int convert_level(enum codec c);

/* Write layers, index, config and manifest of an image that is indexed (image_is_indexed()), whose
 * layer blobs are in the store (image_complete()). The layers' tars stay as they are, so all
 * DiffIDs do, and with them the config, byte for byte, unless the image had no index layer: that
 * one adds a DiffID and a line of history. Layers that are in frames of this codec already stay,
 * too, unless a level is asked for. The result has no name yet; media types are OCI's.
 * Deterministic. Errors: CORRUPT (a layer that is not what its DiffID says, an index that does not
 * fit the layers), UNSUPPORTED, USAGE (no such level), SYSTEM. */
int image_convert(struct image *im, struct store *s, const struct convert_options *o,
	struct digest *manifest, uint64_t *size, struct progress *p, struct err *e) must_check;

#endif
