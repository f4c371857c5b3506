/* Files with credentials of registries, as docker (config.json) and podman (auth.json) keep them:
 *
 *   { "auths": { KEY: { "auth": base64("user:password") | "identitytoken" | "registrytoken" } },
 *     "credHelpers": { KEY: "NAME" }, "credsStore": "NAME" }
 *
 * A KEY is HOST[:PORT], HOST[:PORT]/NAMESPACE... (podman), or an address with a scheme, which
 * docker wrote once and which stands for its host. The longest match wins. Source: formats.md 4.3,
 * containers-auth.json(5). */
#ifndef IMAGES_AUTH_FILE_H
#define IMAGES_AUTH_FILE_H

#include "base/json.h"
#include "images/credentials.h"

struct auth_file {
	struct json_doc doc;
};

/* 1, 0 (there is no such file), -1. CORRUPT never quotes the file: it holds secrets. */
int auth_file_load(struct auth_file *f, const char *path, struct err *e) must_check;
void auth_file_close(struct auth_file *f);

/* How well a key fits a repository: 0 not at all, 1 an address with its host, 2 its host, more the
 * longer the namespace is. With path "": does it stand for the whole host? */
size_t auth_file_fits(const char *key, const char *host, const char *path);

/* The helper that credHelpers names for a repository, and the one for all (credsStore); "" for
 * none. Borrowed. NULL: CORRUPT. */
const char *auth_file_helper(
	struct auth_file *f, const char *host, const char *path, struct err *e) must_check;
const char *auth_file_store(struct auth_file *f, struct err *e) must_check;

/* What "auths" has for a repository: 1, 0, -1 CORRUPT ("FILE:LINE:COLUMN: ..."). */
int auth_file_find(struct auth_file *f, const char *host, const char *path, struct credential *c,
	struct err *e) must_check;
/* Does "auths" hold something for the whole host? */
bool auth_file_has(const struct auth_file *f, const char *host);

/* Let the file say user and secret for host, or nothing when user is NULL; all else in it stays as
 * it is, in its order. Mode 0600, as a whole or not at all; writers wait for each other. 1 changed,
 * 0 there was nothing to forget, -1. */
int auth_file_update(const char *path, const char *host, const char *user, const char *secret,
	struct err *e) must_check;

#endif
