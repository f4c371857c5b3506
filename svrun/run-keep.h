/* An instance's options, kept in its folder as options.json, so that it can start again:
 *
 *	{ "image": "ocr", "manifest": "sha256:...", "words": ["serve"],
 *	  "options": { "memory": "2g", "env": ["A=1", "TOKEN"], "gpus": ["1"], ... } }
 *
 * Paths are absolute. The value of a variable that was passed on (-e NAME) is not kept, nor is what
 * is in files (--env-file, --secret): both are read again. */
#ifndef SVRUN_RUN_KEEP_H
#define SVRUN_RUN_KEEP_H

#include "svrun/instance.h"
#include "svrun/run-options.h"

/* Nothing for one that goes when it ends. digest: of the image's manifest, as text. */
int run_keep(struct instance *i, const struct run_options *o, const char *digest,
	struct err *e) must_check;

/* Into an empty o, as they were given; o->digest is set. dir: the instance's folder. Errors:
 * NOT_FOUND (nothing is kept), CORRUPT. */
int run_keep_load(struct run_options *o, int dir, const char *id, struct err *e) must_check;

/* Put what was given on top: lists replace, but for variables, which are added. Asking for GPUs
 * ends a mode that has none, unless a mode is given, too, and asking for a mode gives GPUs back. */
void run_keep_change(struct run_options *o, const struct run_options *given);

#endif
