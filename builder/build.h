/* `svrun image build`: from a manifest and its lock to an image with names. */
#ifndef BUILDER_BUILD_H
#define BUILDER_BUILD_H

#include "builder/steps.h"

struct build_options {
	bool no_cache;           /* do everything again */
	bool unnamed;            /* leave names as they are: build_set_names() is to come */
	size_t jobs;             /* steps that run at a time; 0: as many as processors */
	const enum codec *codec; /* instead of the manifest's; NULL: the manifest's */
	const struct build_secret *secrets;
	size_t nsecrets;
	struct strings accepted; /* licences of models: --accept-license */
	const struct config *config;
	const char *cache_from, *cache_to; /* repositories (cache-share.h); NULL: none */
	bool plain_http;                   /* they are asked without TLS */
};

struct build_result {
	struct digest manifest;
	bool cached;   /* nothing had to be done */
	bool imported; /* it came from --cache-from */
	struct build_count count;
	struct step_keys steps; /* of what was run or found */
};
void build_result_fini(struct build_result *r);

/* Build the image of a locked manifest into the store and give it its names (build_names()). What
 * an earlier try got done is not done again, however it ended. The pool must not be open in this
 * process. build_result_fini() is due in any case. */
int build_run(const struct manifest *m, const struct lock *l, struct mirrors *mirrors,
	struct store *s, const struct build_options *o, struct progress *p, struct build_result *r,
	struct err *e) must_check;

/* Have the names of the manifest lead to an image that build_run() made. NOT_FOUND: it is no longer
 * there, garbage collection has taken what had no name yet. */
int build_set_names(const struct manifest *m, const struct lock *l, struct store *s,
	const struct digest *manifest, struct err *e) must_check;

/* The same, 1; 0 when something of the image is missing. unnamed: only look whether it is. */
int build_name(const struct manifest *m, const struct lock *l, struct store *s,
	const struct digest *manifest, bool unnamed, struct err *e) must_check;

/* The key of the whole image: everything that decides its bytes. codec as in the options. */
struct digest build_key(const struct manifest *m, const struct lock *l, const enum codec *codec);

/* Names of the image: NAME:VERSION, with "-ENTRY" of the matrix and "-MODE" behind it, and plain
 * NAME for the manifest as it is (of a matrix its first entry). To be freed; *plain may become
 * NULL. */
void build_names(const struct manifest *m, char **versioned, char **plain);

/* Where the logs of an image's steps are, below the store: "logs/NAME", with ":ENTRY" of the matrix
 * and "-MODE" behind it. To be freed. */
char *build_log_folder(const struct manifest *m);

#endif
