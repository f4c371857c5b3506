/* What a tmpfs covers, copied into it first: mount option "tmpcopyup". */
#ifndef RUNTIME_COPY_UP_H
#define RUNTIME_COPY_UP_H

#include "base/err.h"

enum { COPY_UP_FILES_MAX = 65536, COPY_UP_DEPTH_MAX = 64 };

/* Copy what is in the folder `from` to `to`, with all attributes and device nodes, without sockets
 * and what is mounted below; by descriptors, following no link. Memory is bounded by the size of
 * `to`. Errors: USAGE beyond the limits above; all name the file. */
int copy_up(int from, int to, struct err *e) must_check;

#endif
