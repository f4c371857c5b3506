/* Versions and version specifiers of Python packages. Pure functions of text; thread-safe.
 * Source: PEP 440 and its current form, PyPA "Version specifiers". */
#ifndef BUILDER_PEP440_H
#define BUILDER_PEP440_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	PEP440_MAX = 255,  /* bytes of a version */
	PEP440_PARTS = 64, /* numbers of a release, segments of a local version */
	PEP440_TEXT = PEP440_MAX + 32,
};

/* Digits or letters of the text; numbers are without leading zeros, zero has no digits. They may
 * have more digits than any integer type takes. */
struct pep440_span {
	uint16_t at, n;
};

struct pep440 {
	char text[PEP440_MAX + 1]; /* in lower case */
	struct pep440_span epoch, release[PEP440_PARTS], local[PEP440_PARTS];
	struct pep440_span pre, post, dev; /* their numbers */
	size_t nrelease, nlocal;
	char pre_kind; /* 'a', 'b', 'r' (rc), or 0 */
	bool has_post, has_dev;
};

/* Blanks around the version are fine. -1: it is none. */
int pep440_parse(struct pep440 *v, const char *text, size_t n) must_check;
/* As PEP 440 orders them: < 0, 0, > 0. */
int pep440_compare(const struct pep440 *a, const struct pep440 *b);
/* The normal form, "1!2.0rc1.post2.dev3+local.4". Returns out. */
char *pep440_text(const struct pep440 *v, char out[PEP440_TEXT]);

/* Are two texts the same version ("1.0" and "v1.0.0")? What is no version is like nothing. */
bool pep440_same(const char *a, const char *b);

/* Does a version fit a set of specifiers (">=1.2,!=1.5.*")? Pre-releases fit like others: who asks
 * has chosen the version. 1, 0, or -1: one of them is malformed. An empty set takes everything. */
int pep440_fits(const char *version, const char *specifiers);

#endif
