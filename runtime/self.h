/* svrun's own program file, out of reach of containers (CVE-2019-5736). */
#ifndef RUNTIME_SELF_H
#define RUNTIME_SELF_H

#include "base/err.h"

/* Go on as the same program, run from a read-only detached mount of its file (where none may be
 * made: a sealed copy in memory): what a container finds at /proc/self/exe, should an image make it
 * run "/proc/self/exe", can never be opened for writing. argv and the environment stay. Returns 0
 * when that is so already, -1 on failure, and not at all when it starts itself again. */
int self_protect(char *const *argv, struct err *e) must_check;

#endif
