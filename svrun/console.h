/* Handing a terminal's master to the engine that asked for it: --console-socket PATH. Source:
 * runc's docs/terminals.md. */
#ifndef SVRUN_CONSOLE_H
#define SVRUN_CONSOLE_H

#include "base/err.h"

/* Connect before anything is made. Returns an fd. Errors: USAGE when it is no socket. */
int console_connect(const char *path, struct err *e) must_check;
/* Send the master. */
int console_send(int sock, int master, struct err *e) must_check;

#endif
