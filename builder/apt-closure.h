/* The packages that apt chose: from its records to the lock's entries, with the reason for each. */
#ifndef BUILDER_APT_CLOSURE_H
#define BUILDER_APT_CLOSURE_H

#include "builder/apt-state.h"
#include "builder/control.h"

/* Fill l->debs. uris: what `apt-get --print-uris` printed. records: what `apt-cache show` says of
 * those packages. Every line of uris must have a record with sha256 and size, and an address below
 * one of the sources (CORRUPT). */
int apt_closure_read(struct lock *l, const struct manifest *m, const struct apt_state *s,
	struct slice uris, struct slice records, struct err *e) must_check;

/* The next package of --print-uris' output ("'URI' NAME_VERSION_ARCH.deb SIZE HASH") as
 * NAME=VERSION and the address with its escapes; false at the end. Other lines are skipped. */
bool apt_closure_next(struct slice *uris, struct arena *a, char **name_version, char **uri);

/* Package name in a manifest's "name", "name=version" or "name/suite". */
struct slice apt_asked_name(const char *asked);

#endif
