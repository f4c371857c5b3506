/* Credentials for registries, where docker and podman keep them. Source: formats.md 4.3; docker's
 * config.json and credential helper protocol; containers-auth.json(5). */
#ifndef IMAGES_CREDENTIALS_H
#define IMAGES_CREDENTIALS_H

#include "base/err.h"

struct credential {
	char *user, *secret; /* Basic; NULL when there is none */
	char *identity;      /* a refresh token (identitytoken, or a helper's <token>), or NULL */
	char *registry;      /* a bearer token to send as it is (registrytoken), or NULL */
	char *origin;        /* of what file or helper, for errors */
};

void credential_fini(struct credential *c); /* overwrites the secrets */

/* For host ("registry.example:5000") and repository path (namespaces in podman's files: the longest
 * match wins; "" for none). Looks at $REGISTRY_AUTH_FILE alone when it is set; else
 * $XDG_RUNTIME_DIR/containers/auth.json (without that variable /run/containers/UID/auth.json),
 * ~/.config/containers/auth.json, then $DOCKER_CONFIG/config.json or ~/.docker/config.json. In a
 * file: credHelpers, credsStore, auths. 1 found, 0 anonymous, -1. Errors: CORRUPT (file, and
 * where), USAGE (a helper's name), SYSTEM (a helper that cannot run, or fails; its words), within
 * 30 s. */
int credential_find(
	const char *host, const char *path, struct credential *c, struct err *e) must_check;

/* Keep user and secret for a host: with the helper that the file names for it, else in the file
 * itself, mode 0600, everything else in the file kept. Which file: $REGISTRY_AUTH_FILE; else the
 * first of those above that has something for the host, so that the new one is what is found; else
 * docker's. *where: what holds it now; to free(). */
int credential_store(const char *host, const char *user, const char *secret, char **where,
	struct err *e) must_check;
/* Forget it wherever it would be found. *where: from what; to free(). NOT_FOUND when it is nowhere.
 */
int credential_remove(const char *host, char **where, struct err *e) must_check;

#endif
