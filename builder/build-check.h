/* What can be told before a build fetches anything. */
#ifndef BUILDER_BUILD_CHECK_H
#define BUILDER_BUILD_CHECK_H

#include "builder/build.h"

/* Code runs on this machine as it is: UNSUPPORTED for steps of another platform. */
int build_check_platform(const struct manifest *m, const struct lock *l, struct err *e) must_check;

/* USAGE (SV131): a step that was not run yet needs a secret that is not there, and something is to
 * be fetched. A step is often found done although something else changed, and needs no secret then:
 * with all inputs at hand, or a shared cache to ask, it is the step that complains. The pool must
 * not be open in this process. */
int build_check_secrets(const struct manifest *m, const struct lock *l, struct store *s,
	const struct build_options *o, struct err *e) must_check;

#endif
