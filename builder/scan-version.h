/* The order of versions, as each kind of package has it. Pure functions of text; thread-safe.
 * Source: deb-version(7) (Debian policy 5.6.12); PEP 440 (pep440.h); Semantic Versioning 2.0.0
 * clause 11. */
#ifndef BUILDER_SCAN_VERSION_H
#define BUILDER_SCAN_VERSION_H

#include "base/err.h"

enum version_kind { VERSION_DEB, VERSION_PYPI, VERSION_NPM };

enum { VERSION_MAX = 255 }; /* bytes */

/* *order: < 0, 0, > 0. -1: one of them is no version of that kind. */
int version_compare(enum version_kind k, const char *a, const char *b, int *order) must_check;

#endif
