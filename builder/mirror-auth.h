/* Credentials for named mirrors (a private package index, say): kept where those of registries are,
 * by the host's name (docs/credentials.md), and never in a manifest, a lock or an address. */
#ifndef BUILDER_MIRROR_AUTH_H
#define BUILDER_MIRROR_AUTH_H

#include "builder/mirror.h"

/* *value is what the header Authorization is to be for what uri ("mirror:NAME/...") names, found
 * at url; NULL: nothing, also for addresses that are no mirror's, since a lock may name any. Lives
 * as long as m. DENIED: there are some, but they would travel in the clear; else the errors of
 * credential_find(). Not thread-safe. */
int mirror_authorization(struct mirrors *m, const char *uri, const char *url, const char **value,
	struct err *e) must_check;

#endif
