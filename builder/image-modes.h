/* What the modes of a manifest change in its image's config, so that `svrun run --mode` can start
 *the same image in another: the label run.svrun.modes (images/image.h), a JSON object of
 *
 *	"NAME": {"env": {"A": "1", "B": null}, "Entrypoint": [...], "Cmd": null,
 *	         "Healthcheck": {...}, "Labels": {"run.svrun.gpu": "..."}, "image": true}
 *
 * with what differs alone; null: the mode has none. "image": packages or models differ, so that the
 * mode needs an image of its own, which `svrun image build --mode` makes. */
#ifndef BUILDER_IMAGE_MODES_H
#define BUILDER_IMAGE_MODES_H

#include "builder/manifest.h"

/* Add the label to config, what image_config() has made of m; nothing where m has no modes, or is
 * in one. */
void image_modes_label(const struct manifest *m, json_t *config);
/* What the label depends on beside m's own document, for the key of a build. */
void image_modes_key(const struct manifest *m, struct buf *out);

#endif
