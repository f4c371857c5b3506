/* TOML documents as JSON values: for lock files of Python packages. Dates and times become strings;
 * what JSON cannot hold otherwise (inf, nan, numbers beyond 64 bits) is refused.
 * Source: TOML 1.0.0. */
#ifndef BUILDER_TOML_H
#define BUILDER_TOML_H

#include <jansson.h>

#include "base/err.h"

/* CORRUPT: "name:line:col: what is wrong". At most 64 deep. Owned by the caller. */
json_t *toml_parse(const char *name, const char *text, size_t n, struct err *e) must_check;

#endif
