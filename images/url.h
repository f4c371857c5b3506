/* Addresses of HTTP: reading those that servers name, and comparing where they lead.
 * Source: RFC 3986; RFC 9110 4.2, 10.2.2. Thread-safe. */
#ifndef IMAGES_URL_H
#define IMAGES_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { URL_MAX = 8192 };

/* The address as errors show it: without user, password and query (which may be a signature).
 * Returns out. */
char *url_show(const char *url, char *out, size_t size);
bool url_is_plain(const char *url); /* http:// */
/* Does nobody between read what is sent there? https, or this very machine by its numeric address
 * or as "localhost". */
bool url_is_private(const char *url);
/* Scheme, host and port of two addresses are the same? One that cannot be read is like no other. */
bool url_same_origin(const char *a, const char *b);
/* "host:port" as a site's configuration names it: without the port that the scheme implies. Owned;
 * NULL when it cannot be read. */
char *url_host(const char *url);
/* The address that text means, found in an answer from base: absolute, http or https, without user
 * and password, of printable characters, at most URL_MAX long. Owned. NULL: CORRUPT; DENIED when it
 * leads from https to http. */
char *url_resolve(const char *base, const char *text, struct err *e) must_check;

#endif
