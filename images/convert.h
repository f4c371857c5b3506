/* The same image with its layers written anew: in another codec, with an index. */
#ifndef IMAGES_CONVERT_H
#define IMAGES_CONVERT_H

#include "images/complete.h"
#include "images/config.h"

struct progress;

struct convert_options {
	enum codec codec;
	int level;                 /* 0: convert_level() of the codec */
	bool plain_http, insecure; /* as the command line says of the source's host */
};

/* What layers are compressed with when nobody says. */
int convert_level(enum codec c);

/* Write layers, index, config and manifest of an image anew. The layers' tars stay as they are, so
 * all DiffIDs do, and with them the config, byte for byte, unless the image had no index layer:
 * that one adds a DiffID and a line of history. Layers that are in frames of this codec already
 * stay, too, unless a level is asked for. Media types become OCI's. Deterministic.
 *
 * Layer blobs that are not in the store are had again for the while (complete.h: c, source); an
 * image without any index is adopted first. The pool must not be open in this process. The result
 * has no name: the caller gives it one, or deletes it, before it closes *hold, which keeps garbage
 * collection away. Errors: CORRUPT (a layer that is not what its DiffID says, an index that does
 * not fit the layers), UNSUPPORTED, USAGE (no such level), SYSTEM, those of image_complete(). */
struct converted {
	struct digest manifest;
	uint64_t size; /* of the manifest */
	int hold;      /* to close */
};
int image_convert(struct image *im, struct store *s, const struct config *c, const char *source,
	const struct convert_options *o, struct converted *out, struct progress *p,
	struct err *e) must_check;

#endif
