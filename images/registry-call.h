/* Inside of registry: its endpoints, and calls, which are requests with authorization, tries, and
 * errors that name what was asked. Only images/registry*.c and their test include this. */
#ifndef IMAGES_REGISTRY_CALL_H
#define IMAGES_REGISTRY_CALL_H

#include <limits.h>

#include "images/auth.h"
#include "images/exchange.h"
#include "images/registry.h"
#include "images/request.h"

enum {
	MIRROR_TRIES = 2,       /* there is somebody else to ask */
	MIRROR_REST_MS = 60000, /* one that could not be reached is left alone so long */
	UPLOAD_CHUNK = 16 << 20,
};

/* A place where the repository may be had. */
struct endpoint {
	char *base;        /* "https://host[:port]/v2/path" */
	char *name;        /* "host[:port]/path", for errors */
	char *path;        /* of the repository there: a mirror may have put something before it */
	char *scope;       /* "repository:path:pull" */
	char *mount_scope; /* that, and to pull from mount_from; NULL */
	struct http_site *site;
	struct auth auth;
	unsigned tries;
	bool last; /* the registry itself */

	pthread_mutex_t lock;
	double down_until;
	bool told; /* that a mirror did not do */
};

struct registry {
	struct http http;
	char *name; /* "host/path" */
	char *user, *secret;
	struct endpoint *v;
	size_t n;
	unsigned backoff_ms; /* tests are in a hurry, */
	uint64_t chunk;      /* and have little to upload */
	struct locations *locations;
	char *mount_from;
};

/* A mirror that could not be reached lately. */
bool endpoint_down(struct endpoint *p);
void endpoint_failed(struct endpoint *p);
/* A mirror does not do and the next one is asked: said once. */
void endpoint_passed_over(struct endpoint *p, const struct err *e);

#define CALL_NO_DEADLINE UINT_MAX

struct call {
	const char *method;
	const char *what; /* "manifest latest", for errors */
	const char *url;  /* absolute, and of the endpoint unless an upload led elsewhere */
	const char *const *fields; /* "Name: value", NULL at the end; or NULL */
	const char *scope;         /* NULL: the endpoint's */
	struct exchange_body *body;
	unsigned deadline_s; /* 0: EXCHANGE_DOCUMENT_S; or CALL_NO_DEADLINE */
	bool content;        /* verified by digest */
	bool once; /* what may pass is for the caller to try again: x->code and x->status say it */
	bool stay; /* a redirect is an answer, too */
	char **at; /* NULL, or gets the address that answered in the end; to free */
};

/* 0: there is an answer in x (initialised, its answer.max set): any status but those that ask for
 * credentials or, unless once, for another try. */
int call_send(struct registry *r, struct endpoint *p, const struct call *c, struct exchange *x,
	struct err *e) must_check;
/* The answer is not one that was hoped for: sets e from it, returns -1. */
int call_failed(struct endpoint *p, const char *what, const struct exchange *x, struct err *e);

/* Locations of blobs that registries redirected to. */
struct locations *locations_new(void);
void locations_free(struct locations *l);

#endif
