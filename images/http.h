/* libcurl as svrun uses it: what every transfer has in common, and how a host is reached
 * (certificates, plain HTTP). Source: formats.md 4.
 *
 * Where credentials may be sent libcurl does not follow redirects: who sends them decides for every
 * address anew whether they may go there.
 */
#ifndef IMAGES_HTTP_H
#define IMAGES_HTTP_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"
#include "images/config.h"

enum {
	HTTP_CONNECT_S = 20,
	HTTP_STALL_S = 20, /* a connection that moves less than HTTP_STALL_BYTES a second so long */
	HTTP_STALL_BYTES = 1024,
	HTTP_BUFFER = 128 << 10, /* libcurl's, per transfer */
};

/* curl_global_init(), once a process, before the first handle. */
void http_init(void);
/* What all transfers have in common: protocols (a comma-separated list; redirects may lead only to
 * http and https), trust, user agent, keep-alive, timeouts, no decoding of bodies: their digest is
 * what is known. Redirects are not followed. */
void http_common(CURL *h, const char *protocols);
/* Where redirects may lead: "http,https", or "https" alone. */
void http_redirects(CURL *h, const char *protocols);

/* How one host is reached. */
struct http_site {
	struct http_site *next;
	char *host; /* "host[:port]" */
	bool plain; /* http:// */
	bool insecure;
	const char *ca, *cert, *key; /* PEM files, or NULL */
	bool ca_also;                /* trust what the system trusts, too, and not only ca */
	struct config_registry config;
};

/* What the transfers of one registry share. Thread-safe. */
struct http {
	const struct config *config; /* may be NULL */
	pthread_mutex_t lock;
	struct http_site *sites;
	CURL **idle; /* handles, with their connections */
	size_t nidle, cap;
};

void http_open(struct http *http, const struct config *config);
void http_close(struct http *http);

/* What the site says of a host. Borrowed, lives as long as http; the caller may change what it says
 * before any other thread uses it. NULL: see config_registry(). */
struct http_site *http_site(struct http *http, const char *host, struct err *e) must_check;
/* How an address is reached that a host led to: by the settings of its own host; what these do not
 * say, by those of `from`: its certificate authority always, its carelessness about certificates
 * when it is the same host on another port, or when only content is asked for that is verified by
 * digest; never its client certificate. */
int http_site_led(struct http *http, const struct http_site *from, const char *url, bool content,
	struct http_site *led, struct err *e) must_check;
/* Certificates as the site wants them. */
void http_apply(CURL *h, const struct http_site *site);

/* A handle for http and https that may have open connections; options are http_common()'s. Never
 * NULL. Give it back. */
CURL *http_take(struct http *http);
void http_give(struct http *http, CURL *h);

#endif
