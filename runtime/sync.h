/* Messages between the supervisor and the child it clones: whole, of one size, over a SEQPACKET
 *pair.
 *
 *	supervisor             child
 *	clone ---------------> sets up namespaces, mounts, devices
 *	       <--- READY ---- (with the terminal's master, if there is one)
 *	       ---- START ---> confines itself, execs
 *	       <--- end ------ the socket is closed by exec
 *
 * FAILED may come instead of READY or the end: an error value, and the status to exit with. */
#ifndef RUNTIME_SYNC_H
#define RUNTIME_SYNC_H

#include "base/err.h"

enum sync_kind { SYNC_END, SYNC_READY, SYNC_START, SYNC_FAILED };

struct sync_msg {
	enum sync_kind kind;
	int status;
	struct err err;
};

/* fd: a descriptor to pass along, or -1. */
int sync_send(int sock, const struct sync_msg *m, int fd, struct err *e) must_check;
/* *fd: receives a descriptor that came along, or -1; NULL refuses one. A closed socket is SYNC_END.
 */
int sync_recv(int sock, struct sync_msg *m, int *fd, struct err *e) must_check;

#endif
