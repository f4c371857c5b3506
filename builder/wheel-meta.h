/* What a wheel, or an installed distribution, says of itself: METADATA, PKG-INFO and WHEEL.
 * Source: PyPA "Core metadata specifications", "Binary distribution format". */
#ifndef BUILDER_WHEEL_META_H
#define BUILDER_WHEEL_META_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "builder/python-name.h"

enum { METADATA_MAX = 16 << 20 }; /* some have a whole changelog in the description */

/* The next value of a header (its name in any case) of a text in the form of an e-mail's head, in
 * the arena; NULL when there is no more. Lines that go on the one before are joined by a blank.
 * *from: where to look, 0 at first; NULL: the first value. */
char *metadata_field(struct arena *a, const char *text, size_t n, const char *name, size_t *from);

/* "NAME-VERSION" of a folder NAME-VERSION.dist-info or .data; normal forms, in the arena. false: it
 * is none. */
bool metadata_folder(
	struct arena *a, const char *folder, size_t n, const char **name, const char **version);

/* Does METADATA name this name and version? CORRUPT: SV174. *project, unless NULL, is the name as
 * it is written there. */
int metadata_check(const char *text, size_t n, const struct wheel_name *w, struct arena *a,
	const char **project, struct err *e) must_check;

/* Wheel-Version 1.x? CORRUPT, UNSUPPORTED: SV174. */
int wheel_version_check(const char *text, size_t n, struct err *e) must_check;

#endif
