/* A manifest to begin with: what `svrun image new` writes. */
#ifndef BUILDER_TEMPLATE_H
#define BUILDER_TEMPLATE_H

#include "base/err.h"

/* Write the folder dir, which must not exist, with manifest.json and the files that it names.
 * template: "apt", "node", "python", "gpu"; NULL: "apt". Errors: USAGE (name, template), EXISTS,
 * SYSTEM; nothing is left behind then. */
int template_write(
	const char *dir, const char *name, const char *template, struct err *e) must_check;

#endif
