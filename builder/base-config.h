/* The config of an image on a base: what the base says and ours does not. */
#ifndef BUILDER_BASE_CONFIG_H
#define BUILDER_BASE_CONFIG_H

#include "builder/manifest.h"

/* Put into ours (image_config()) what a Dockerfile's FROM would hand down from base (its whole
 * config document): environment, labels, ports and volumes are joined, ours win; entrypoint,
 * command, user, folder and stop signal are the base's where the manifest says nothing, and its
 * command only together with its entrypoint. */
void base_config_merge(json_t *ours, const json_t *base, const struct manifest *m);

/* The history of a base's first n layers, entries without a layer included; a new reference. */
json_t *base_history(const json_t *base, size_t n);

#endif
