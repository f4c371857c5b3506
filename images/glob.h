/* Patterns for paths and names. */
#ifndef IMAGES_GLOB_H
#define IMAGES_GLOB_H

#include <stdbool.h>

/* Shell pattern with ** crossing slashes; * and ? do not. */
bool glob_matches(const char *pattern, const char *s);

#endif
