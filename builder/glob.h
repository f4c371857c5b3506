/* Patterns for paths and names. */
#ifndef BUILDER_GLOB_H
#define BUILDER_GLOB_H

#include <stdbool.h>

/* Shell pattern with ** crossing slashes; * and ? do not. */
bool glob_matches(const char *pattern, const char *s);

#endif
