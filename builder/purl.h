/* Package URLs: names of packages that scanners and vulnerability databases agree on. Source:
 * purl-spec, PURL-TYPES (deb, pypi, npm, generic, huggingface). */
#ifndef BUILDER_PURL_H
#define BUILDER_PURL_H

#include "base/mem.h"

struct purl {
	const char *type;
	const char *space;          /* namespace; NULL */
	const char *name, *version; /* version may be NULL */
	struct {
		const char *key, *value; /* keys in their order; a NULL value is left out */
	} qualifiers[4];
};

/* Percent-encoded, in the arena. */
const char *purl_text(struct arena *a, const struct purl *p);
/* Of npm's "@scope/name". */
const char *purl_npm(struct arena *a, const char *name, const char *version);

#endif
