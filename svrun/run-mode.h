/* svrun run --mode: an image's config as one of its modes has it (builder/image-modes.h). */
#ifndef SVRUN_RUN_MODE_H
#define SVRUN_RUN_MODE_H

#include <jansson.h>

#include "svrun/run-options.h"

/* The image's config document (borrowed) in the mode that was asked for; the caller owns what it
 * gets. "cpu" is a mode of every image: the same, without GPUs. Errors: NOT_FOUND lists its modes;
 * UNSUPPORTED: the mode needs an image of its own; CORRUPT names the label. */
json_t *run_mode_config(const json_t *image, const struct run_options *o, struct err *e) must_check;

/* Is what was asked for to run on the CPU? Its threads are then as many as the cores it may use. */
bool run_mode_is_cpu(const struct run_options *o);
/* The variables that tell libraries so: ends with NULL. */
extern const char *const run_mode_thread_variables[];

#endif
