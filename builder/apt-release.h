/* What apt had verified: date, signers and digest of each source's release file. */
#ifndef BUILDER_APT_RELEASE_H
#define BUILDER_APT_RELEASE_H

#include "builder/apt-state.h"

/* Fill l->indexes after an `apt-get update`, one per source and suite. gpgv says who signed.
 * Errors: CORRUPT (no release file, none of the keyring's keys signed it), SYSTEM. */
int apt_release_facts(const struct apt_state *s, struct lock *l, struct err *e) must_check;

#endif
