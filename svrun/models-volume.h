/* Which --volume has a path of the container in it. */
#ifndef SVRUN_MODELS_VOLUME_H
#define SVRUN_MODELS_VOLUME_H

#include <stddef.h>

/* Of n options "SRC:DST[:ro]" the one with the longest DST that target is at or below: *folder is
 * SRC, to free(), and what is returned the rest of target ("" or "a/b"), borrowed. NULL: none. */
const char *models_volume(const char *target, const char *const *volumes, size_t n, char **folder);

#endif
