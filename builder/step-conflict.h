/* Do two steps that know nothing of each other write to the same place? */
#ifndef BUILDER_STEP_CONFLICT_H
#define BUILDER_STEP_CONFLICT_H

#include "images/entries.h"

/* A path that both lists change, in b's words, or NULL. Both may make the same folder, with the
 * same attributes. What one removes, or makes into something that is no folder, the other must not
 * have anything below. */
const char *step_conflict(const struct entries *a, const struct entries *b) must_check;

#endif
