/* What a manifest's `gpu` says to the NVIDIA container toolkit. Source: its documentation of the
 * NVIDIA_* variables: in NVIDIA_REQUIRE_CUDA a space is "or", a comma is "and". */
#ifndef BUILDER_IMAGE_GPU_H
#define BUILDER_IMAGE_GPU_H

#include "builder/manifest.h"

/* Append "NAME=VALUE" strings to env, but for names that the manifest's own env has. */
void image_gpu_env(const struct manifest *m, json_t *env);

#endif
