/* svrun run of an image with models beside its layers (images/models.h). */
#ifndef SVRUN_RUN_MODELS_H
#define SVRUN_RUN_MODELS_H

#include <jansson.h>

#include "images/models.h"
#include "svrun/run-options.h"

/* Have them ready: what is missing is placed or fetched by svrun-image; licences must be accepted
 * (--accept-license), and what the user brings must be there. Called before self_protect(), which
 * starts the program again: the second call finds everything done. Errors: DENIED, NOT_FOUND (which
 * file, and what to mount), or svrun-image has printed its own. */
int run_models(const struct run_options *o, struct err *e) must_check;

/* The mounts of those that are placed in the store, read-only, into an array of config.json. */
int run_models_mount(const struct run_options *o, const struct models *m, const char *store,
	json_t *mounts, struct err *e) must_check;

#endif
