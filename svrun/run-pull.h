/* svrun run of an image that is in a registry, and not yet here. */
#ifndef SVRUN_RUN_PULL_H
#define SVRUN_RUN_PULL_H

#include "images/config.h"
#include "images/store.h"
#include "svrun/run-options.h"

/* Have the image: pull it when it is missing (or always, as --pull says) and its name says, itself
 * or through the site's short names, where from. Called before self_protect(), which starts the
 * program again: the second call does nothing. Errors: svrun-image has printed its own; ours names
 * the status. */
int run_pull(const struct run_options *o, struct err *e) must_check;

/* The image in the store: by its name there, else by what the site's short names make of it, under
 * which run_pull() has put it. With --pull always the other way round. Of an instance that starts
 * again: by its digest, whatever the name means by now. Errors: as store_resolve(). */
int run_find(const struct run_options *o, const struct config *c, struct store *s, struct digest *d,
	struct err *e) must_check;

/* Run svrun-image with these words (the last is NULL); its stdout goes to stderr. Its exit status;
 * -1 when it could not be started. Before self_protect() only: it is looked for beside svrun. */
int run_helper(const char *const *words, struct err *e) must_check;

#endif
