/* The default filter: what a container may ask of the kernel unless told otherwise. */
#ifndef RUNTIME_SECCOMP_PROFILE_H
#define RUNTIME_SECCOMP_PROFILE_H

#include <jansson.h>
#include <stdint.h>

/* The object for config.json's linux.seccomp, for a container whose bounding set is `caps`: an
 * allow list; everything else is EPERM, and ENOSYS when it is newer than the list. The caller owns
 * it. */
json_t *seccomp_profile(uint64_t caps);

#endif
