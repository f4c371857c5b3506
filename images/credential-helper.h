/* docker-credential-NAME programs: they keep secrets in a keychain, a cloud's token service, or
 * elsewhere. Source: formats.md 4.3; docker-credential-helpers "Development". */
#ifndef IMAGES_CREDENTIAL_HELPER_H
#define IMAGES_CREDENTIAL_HELPER_H

#include "base/err.h"
#include "images/credentials.h"

/* Errors of all: USAGE (name is not [A-Za-z0-9._-]+), SYSTEM (it cannot run, fails, or has not
 * ended after 30 s; its own words), CORRUPT (its answer). */

/* What it knows of host: 1, 0 ("credentials not found"), -1. */
int credential_helper_get(
	const char *name, const char *host, struct credential *c, struct err *e) must_check;
int credential_helper_store(const char *name, const char *host, const char *user,
	const char *secret, struct err *e) must_check;
/* 1 erased, 0 it had nothing, -1. */
int credential_helper_erase(const char *name, const char *host, struct err *e) must_check;

#endif
