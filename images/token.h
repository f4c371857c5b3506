/* Bearer tokens: asked of the realm that a challenge names, and kept while they are good.
 *
 *   GET  realm?service=S&scope=A&scope=B      with Basic, or as nobody
 *   POST realm  grant_type=refresh_token ...  with an identity token; GET when the realm does not
 *                                             know POST
 *
 * Source: distribution "Token Authentication" and "OAuth2"; formats.md 4.3.
 * Thread-safe; one fetch at a time: who comes meanwhile waits and then takes what it brought.
 */
#ifndef IMAGES_TOKEN_H
#define IMAGES_TOKEN_H

#include <pthread.h>

#include "images/credentials.h"
#include "images/http.h"

enum {
	TOKEN_LIFETIME_S = 60, /* when the answer says nothing */
	TOKEN_MARGIN_S = 10,   /* renewed so long before it ends (or a quarter of a short life) */
	TOKEN_MAX = 64 << 10,
};

/* A token goes into a header as it is: printable ASCII without spaces, not empty, not too long. */
bool token_usable(const char *s);

struct tokens {
	pthread_mutex_t lock;
	struct token *list;
	unsigned generations;
	double (*now_ms)(void); /* tests have a clock of their own */
	unsigned backoff_ms;
};

void tokens_init(struct tokens *t);
void tokens_fini(struct tokens *t);

struct token_ask {
	struct http *http;
	const struct http_site *site;  /* of who asks for the token */
	const char *realm, *service;   /* service: "" none */
	const char *scope;             /* separated by spaces; "" none */
	struct credential *credential; /* all NULL: anonymous. A new identity token that the realm
					* hands out takes the place of the one that is there. */
};

/* A token for (realm, service, scope): kept, or fetched. *value is "Bearer ...", owned;
 * *generation tells it from the one before. Errors: DENIED (the realm does not know the
 * credentials, or is http:// while the registry is https://), CORRUPT, NETWORK. */
int tokens_get(struct tokens *t, const struct token_ask *q, char **value, unsigned *generation,
	struct err *e) must_check;
/* A server took the token. */
void tokens_prove(struct tokens *t, unsigned generation);
/* A server refused the token, which is forgotten. Is it worth asking for another one? Not when it
 * was refused from the beginning. */
bool tokens_refuse(struct tokens *t, unsigned generation);

#endif
