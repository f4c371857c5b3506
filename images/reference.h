/* References to images in registries: host[:port]/path[:tag][@digest]. Source: distribution-spec
 * (name, tag), and what docker and podman accept on their command lines. */
#ifndef IMAGES_REFERENCE_H
#define IMAGES_REFERENCE_H

#include <stdbool.h>

#include "base/err.h"
#include "images/config.h"
#include "images/digest.h"

enum {
	REFERENCE_HOST = 270, /* host of 253 bytes, or [IPv6], and a port */
	REFERENCE_PATH = 256, /* what the specification asks registries to take */
	REFERENCE_TAG = 129,
	REFERENCE_TEXT = REFERENCE_HOST + REFERENCE_PATH + REFERENCE_TAG + DIGEST_TEXT + 4,
};

struct reference {
	char host[REFERENCE_HOST]; /* "registry.example:5000", "[::1]:5000"; lower case */
	char path[REFERENCE_PATH]; /* "team/app" */
	char tag[REFERENCE_TAG];   /* "" when there is a digest and no tag */
	bool has_digest;           /* wins over the tag */
	struct digest digest;
};

/* Does text begin with a host: is its first component "localhost", or has it a dot or a colon, and
 * does a slash follow? (docker's rule.) */
bool reference_has_host(const char *text);

/* Parse the full form, which has a host. Without tag and digest the tag is "latest". USAGE says
 * which part is malformed, and how. */
int reference_parse(struct reference *r, const char *text, struct err *e) must_check;

/* The same, and the host may be missing (host is "" then): names of images in the store. */
int reference_parse_name(struct reference *r, const char *text, struct err *e) must_check;
/* Only a host, as `svrun image login` takes it: "registry.example:5000", in lower case, without the
 * "https://" and final slash that people copy along. USAGE when malformed. */
int reference_host(const char *text, char out[REFERENCE_HOST], struct err *e) must_check;

/* The canonical form: tag latest is left out; with a digest both are shown if both were given. */
char *reference_text(const struct reference *r, char out[REFERENCE_TEXT]);
/* What to ask the registry for: the digest's text if there is one, else the tag. */
const char *reference_target(const struct reference *r, char out[DIGEST_TEXT + 1]);

/* All that text may mean, in order: itself when it has a host; else what the site's short-names say
 * (an alias by its name, or each of "search" put before it). At most max. USAGE when malformed;
 * NOT_FOUND when the site has no answer: short names work through configuration only, and the hint
 * says how to write one. */
int reference_expand(const struct config *c, const char *text, struct reference *v, size_t max,
	size_t *n, struct err *e) must_check;

#endif
