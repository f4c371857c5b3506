/* The site's policy in svrun run. */
#ifndef SVRUN_RUN_POLICY_H
#define SVRUN_RUN_POLICY_H

#include "images/config.h"
#include "images/store.h"
#include "svrun/run-options.h"

/* The digest that the policy let through, in the environment: survives the second start, as nothing
 * else does. Whoever sets it could as well set $SVRUN_CONFIG. Tests set it: an image is signed
 * after them. */
#define RUN_ADMITTED "SVRUN_ADMITTED"

/* Ask the policy, if the site has one, about the image that is going to be run. Called after
 * run_pull() and before self_protect(), which starts the program again: signatures are checked by
 * svrun-image, which is beside our file only now. The second call does nothing. DENIED. */
int run_policy(const struct run_options *o, struct err *e) must_check;

/* The image that is going to be run has turned out to be d: is that what was asked about? */
int run_policy_confirm(const struct run_options *o, const struct config *c, struct store *s,
	const struct digest *d, struct err *e) must_check;

#endif
