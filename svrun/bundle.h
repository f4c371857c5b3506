/* From an image's config and the options of `svrun run` to an OCI runtime configuration: the border
 * between images and runtime. Nothing of an image grants anything: its config can name environment,
 * program, user and working directory, and no mount but of its own models (models.h), device,
 * capability or hook. Devices are put in behind this (gpus.h). */
#ifndef SVRUN_BUNDLE_H
#define SVRUN_BUNDLE_H

#include <jansson.h>

#include "base/err.h"
#include "images/models.h"
#include "runtime/passwd.h"
#include "svrun/instance.h"
#include "svrun/run-options.h"

struct bundle_request {
	const struct run_options *o;
	const json_t *image; /* the image's config document, in the mode that was asked for */
	const json_t *env;   /* the caller's variables: of bundle_env() */
	size_t gpus;         /* that it gets */
	const char *digest;  /* of its manifest, for the annotation */
	struct instance *instance;
	const char *lower;           /* where the image is mounted: config.json's root.path */
	int rootfd;                  /* the container's root, for /etc/passwd */
	const struct models *models; /* beside the image's layers; NULL: none */
	const char *store;           /* where they are placed */
};

/* Make config.json, which the caller owns, and the small files it binds. Errors: USAGE (an option),
 * CORRUPT (the image's config), NOT_FOUND (user, volume). */
json_t *bundle_make(const struct bundle_request *r, struct err *e) must_check;

/* The caller's variables, of --env and --env-file: an array of "K=V". Read once: a file may be a
 * pipe. The caller owns it. Errors: USAGE, NOT_FOUND. */
json_t *bundle_env(const struct run_options *o, struct err *e) must_check;

/* ---- parts, one file each ---- */

/* bundle-process.c: the object "process". */
json_t *bundle_process(const struct bundle_request *r, struct err *e) must_check;
/* The bounding set that --cap-add and --cap-drop ask for; Docker's default without. */
int bundle_caps(const struct run_options *o, uint64_t *caps, struct err *e) must_check;

/* bundle-mounts.c: the array "mounts". */
json_t *bundle_mounts(const struct bundle_request *r, struct err *e) must_check;

/* bundle-expand.c: ${runtime:cpus}, ${runtime:memMiB} and ${runtime:gpus} in a value of the image's
 * config, as the limits of this start have them. Errors: CORRUPT names another one. The caller
 * frees. */
char *bundle_expand(
	const struct run_options *o, size_t gpus, const char *value, struct err *e) must_check;
/* Of these the cores. */
uint64_t bundle_cpus(const struct run_options *o);

#endif
