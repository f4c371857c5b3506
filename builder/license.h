/* Licences as SPDX expressions, from what packages say: Debian's machine-readable copyright files,
 * Python's METADATA, npm's package.json. What has no SPDX identifier becomes LicenseRef-NAME.
 * Source: DEP-5 (copyright-format 1.0), SPDX 2.3 annex D, PyPA core metadata (License-Expression),
 * npm package.json. Everything returned lives in the arena; NULL: nothing is said. */
#ifndef BUILDER_LICENSE_H
#define BUILDER_LICENSE_H

#include <stdbool.h>

#include "base/mem.h"

/* A copyright file: all its licences, joined by AND. NULL when it is not machine-readable. */
const char *license_of_debian(struct arena *a, const char *text, size_t n);
/* What people write: "MIT", "(MIT OR Apache-2.0)", "GPL-2+", "BSD License". */
const char *license_of_text(struct arena *a, const char *text);
/* A Python classifier "License :: OSI Approved :: MIT License"; NULL: it is about something else.
 */
const char *license_of_classifier(struct arena *a, const char *classifier);

#endif
