/* Does a lock say the same as the manifest of all that the manifest itself pins? Only lock.c
 * includes this. */
#ifndef BUILDER_LOCK_PINS_H
#define BUILDER_LOCK_PINS_H

#include "builder/lock.h"

/* The first difference, as words to follow "LOCK does not pin ", or NULL. A lock may have been
 * edited: its digest of the manifest says nothing then. What a base's or an image's index leads to
 * is compared where the store is at hand (base-image.c, source-oci.c). */
const char *lock_pins_differ(const struct lock *l, const struct manifest *m, struct arena *a);

#endif
