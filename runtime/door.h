/* Where a created container waits to be started: a socket in its state folder, so that `create` can
 * end and another process can `start` it, and hear how that went.
 *
 *	create: door_make -> the container's first process inherits it, listens
 *	start:  door_knock -> START -> failed | closed by exec        (messages: sync.h)
 *
 * The folder is 0700: who can connect may start it. No abstract sockets (CVE-2020-15257). */
#ifndef RUNTIME_DOOR_H
#define RUNTIME_DOOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Make the socket `name` in the folder dir, bound and not listening yet. Returns an fd. */
int door_make(int dir, const char *name, struct err *e) must_check;
/* In the container's first process: wait for one that knocks. Returns a connected fd. */
int door_open(int door, struct err *e) must_check;
/* Does somebody listen there? Told without waiting, also when that one does not answer. */
bool door_is_open(int dir, const char *name);
/* Connect, and see that it is process `pid` that listens there. Returns a connected fd. */
int door_knock(int dir, const char *name, pid_t pid, struct err *e) must_check;

#endif
