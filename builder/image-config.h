/* The OCI image config of a manifest. Source: image-spec config.md. */
#ifndef BUILDER_IMAGE_CONFIG_H
#define BUILDER_IMAGE_CONFIG_H

#include "builder/manifest.h"

/* The config without rootfs and history: {architecture, os, created, config}. What OCI has no field
 * for is in labels "run.svrun.gpu", .ports, .volumes, .health, .resources, .models, .inputs,
 * .presets, .services, .init, .category, .mode, .matrix, .modes (image-modes.h), as canonical JSON. Never NULL.
 */
json_t *image_config(const struct manifest *m);
/* Annotations of the image manifest: title, version, description, licenses, created, and
 * its own. Never NULL. */
json_t *image_annotations(const struct manifest *m);
/* build.epoch as RFC 3339. */
void image_created(const struct manifest *m, char out[32]);

#endif
