/* Looks for secrets in bytes that come piece by piece: as they are, as a string of JSON holds them,
 * in percent-encoding, in base64 wherever it begins in what was encoded and wherever its lines
 * break, and in hexadecimal digits with whatever between them, dumps with offsets too. Of a secret
 * of several lines, each line of 16 bytes and more counts, but for the "-----" ones of PEM.
 *
 * This finds what slips out by mistake. Who wants to hide a secret can. */
#ifndef BUILDER_SECRET_SCAN_H
#define BUILDER_SECRET_SCAN_H

#include "builder/build-secret.h"

struct secret_scan;
struct secret_scan *secret_scan_new(
	const struct build_secret *v, size_t n); /* the ids stay borrowed */
void secret_scan_free(struct secret_scan *s);
void secret_scan_begin(struct secret_scan *s); /* the next file */
/* The id of one that was found, or NULL. */
const char *secret_scan_add(struct secret_scan *s, const void *p, size_t n);

#endif
