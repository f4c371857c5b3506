/* One request that may be led elsewhere: redirects are followed here and not by libcurl, so that
 * Authorization never goes to another scheme, host or port, and https never turns into http.
 * Source: RFC 9110 10.2.2, 15.4. */
#ifndef IMAGES_REQUEST_H
#define IMAGES_REQUEST_H

#include "images/exchange.h"
#include "images/http.h"

enum { REQUEST_REDIRECTS = 5 };

struct request {
	const char *url;
	const char *authorization;    /* the field's value, or NULL: only for url's origin */
	const char *const *fields;    /* "Name: value", ends with NULL; or NULL */
	const struct http_site *site; /* of url */
	bool content; /* what is asked for is verified by digest: see http_site_led() */
	bool stay;    /* a redirect is the answer */
};

/* 0: x says how it went, and *at (NULL, or owned by the caller) is the last address asked. GET and
 * HEAD follow every redirect, other methods those that keep the method (307, 308). -1: a redirect
 * that may not be followed. */
int request_send(struct http *http, const struct request *q, struct exchange *x, CURL *h, char **at,
	struct err *e) must_check;
/* The value of Authorization for a user: "Basic ...". Owned. */
char *request_basic(const char *user, const char *secret);

#endif
