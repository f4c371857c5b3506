/* What an endpoint asks for before it answers, and what is sent for it: nothing, Basic, a Bearer
 * token for a scope, or a token that the site has stored. Learned from 401 answers.
 *
 *   UNKNOWN -- an answer without credentials --> NONE
 *      |  ^                                        |
 *      |  +------------- 401, not said how --------+
 *      +-- 401 + WWW-Authenticate --> BASIC, BEARER
 *
 * Source: RFC 9110 11; formats.md 4.3. Thread-safe; who needs a token waits for it.
 */
#ifndef IMAGES_AUTH_H
#define IMAGES_AUTH_H

#include <pthread.h>

#include "images/challenge.h"
#include "images/credentials.h"
#include "images/http.h"
#include "images/token.h"

enum auth_how { AUTH_UNKNOWN, AUTH_NONE, AUTH_BASIC, AUTH_BEARER };

struct auth {
	struct http *http;
	const struct http_site *site;
	const char *path; /* of the repository: podman's files have credentials for namespaces */
	const char *mount_from;    /* as the registry's; NULL */
	const char *user, *secret; /* to try instead of those that are stored; NULL: these */

	pthread_mutex_t lock;
	enum auth_how how;
	char *realm, *service, *scope; /* of the last Bearer challenge; scope: what nobody asks for
					* without being told */
	bool found;                    /* credential was looked for */
	struct credential credential;
	char *fixed; /* Authorization that needs no token server */
	unsigned generation;
	bool proven;
	bool knows_us; /* the token server took the credential */
	struct tokens tokens;
};

void auth_init(struct auth *a, struct http *http, const struct http_site *site, const char *path);
void auth_fini(struct auth *a);

/* How it has to be done is not known yet. */
bool auth_unknown(struct auth *a);
/* The value of Authorization for a scope ("repository:team/app:pull", several separated by
 * spaces; "": none), owned; NULL: nothing is to be sent. *generation is 0 then, else it says which
 * one it was. Errors: DENIED (there are no credentials, or the token server does not take them),
 * NETWORK, CORRUPT. */
int auth_value(struct auth *a, const char *scope, char **value, unsigned *generation,
	struct err *e) must_check;
/* The endpoint let in who had the value of that generation (0: nobody special). */
void auth_let_in(struct auth *a, unsigned generation);
/* It did not: 401 or 403, with these challenges (NULL: not known). 1: another try may help, with
 * what auth_value() says then. 0: it would not. -1: UNSUPPORTED, nothing of what it asks for can be
 * done. */
int auth_refused(
	struct auth *a, const struct challenges *c, unsigned generation, struct err *e) must_check;
/* Says in e's hint what may help. Returns -1. */
int auth_hint(struct auth *a, struct err *e);

#endif
