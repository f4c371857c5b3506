/* What two images' configurations differ in. */
#ifndef IMAGES_CONFIG_DIFF_H
#define IMAGES_CONFIG_DIFF_H

#include <jansson.h>

/* The configs' documents (image-spec config.md) as flat members, "Env.PATH": "/bin": entries of
 * Env, Labels, ExposedPorts and Volumes one by one, lists as JSON, platform included. What says how
 * the image was made (rootfs, history, created) is left out. A new object of strings. */
json_t *config_flatten(const json_t *config);

#endif
